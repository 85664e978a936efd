/* SPDX-License-Identifier: MIT */
/* A call that moves data meets a strike that is armed or on: each kind of fault strikes it in its
 * own way. */
#ifndef SHUNT_SHIM_MEETING_H
#define SHUNT_SHIM_MEETING_H

#include "shim/crossing.h"

/* False: the call is answered. Otherwise it goes on, perhaps with less. */
bool meeting_goes_on(struct crossing *crossing, struct strike *strike);

/* So many bytes went. Also of one that is not armed. */
void meeting_moved(struct crossing *crossing, struct strike *strike, size_t size);

#endif
