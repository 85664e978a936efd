/* SPDX-License-Identifier: MIT */
/* Other copies of this library in the process, loaded from another path. */
#ifndef SHUNT_SHIM_COPIES_H
#define SHUNT_SHIM_COPIES_H

#include <stdbool.h>

/* Is this the copy that the loader asks first? The others must stay still, or every call would be
 * judged and counted twice. Takes the loader's lock: for constructors only. */
bool copies_is_first(void);

#endif
