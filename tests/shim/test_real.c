/* SPDX-License-Identifier: MIT */
#include <criterion/criterion.h>
#include <dlfcn.h>
#include <errno.h>
#include <string.h>

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

Test(real, of_libc_is_what_libc_itself_has)
{
	void *own = real_of_libc("clock_gettime");
	Dl_info info;

	cr_assert_neq(dladdr(own, &info), 0);
	cr_assert_not_null(strstr(info.dli_fname, "libc.so.6"), "%s", info.dli_fname);
	errno = EDOM;
	cr_assert_null(real_of_libc("no_such_function"));
	cr_assert_eq(errno, EDOM);
	cr_assert_null(dlerror());
}
