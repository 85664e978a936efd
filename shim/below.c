/* SPDX-License-Identifier: MIT */
#include "shim/below.h"

struct real below_table;

void below_start(void)
{
	real_resolve();
	below_table = real_table;
}
