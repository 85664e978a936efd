/* SPDX-License-Identifier: MIT */
/*
 * What stands before and after each real call that moves data on a connection under faults. Of all
 * rules on it delays and rates add up, of the others the first that strikes wins.
 */
#ifndef SHUNT_SHIM_BARRIER_H
#define SHUNT_SHIM_BARRIER_H

#include <stdbool.h>
#include <sys/types.h>

#include "shim/crossing.h"

/* False: the call is not made, `answer` and errno are its result. */
bool barrier_lets(struct crossing *crossing);

/* After the real call; its result as the program shall see it, with errno. */
ssize_t barrier_passed(struct crossing *crossing, ssize_t result);

#endif
