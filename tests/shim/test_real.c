/* SPDX-License-Identifier: MIT */
#include <criterion/criterion.h>
#include <dlfcn.h>
#include <errno.h>

#include "shim/real.h"

Test(real, every_entry_is_the_next_of_its_name)
{
#define CHECK(name, number) \
	cr_assert_eq((void *)real()->name, dlsym(RTLD_NEXT, #name), #name);
	REAL_SYMBOLS(CHECK)
#undef CHECK
}

Test(real, filling_again_keeps_what_a_test_wrote)
{
	__typeof__(close) *fake = real()->dup;

	real()->close = fake;
	real_resolve();
	cr_assert_eq(real()->close, fake);
}

Test(real, errno_is_kept)
{
	errno = EDOM;
	real_resolve();
	cr_assert_eq(errno, EDOM);
}
