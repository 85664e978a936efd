/* SPDX-License-Identifier: MIT */
#include <criterion/criterion.h>
#include <string.h>

#include "core/reader.h"
#include "core/setting_table.h"
#include "core/settings.h"

static struct settings settings;

static const char *read_fallback(const char *value)
{
	return reader_place(setting_find("fallback"), &settings, value);
}

Test(reader, a_fallback_is_an_address_and_a_port)
{
	cr_expect_null(read_fallback("127.0.0.1:8080"));
	cr_expect_eq(settings.fallback.address.family, 4);
	cr_expect_eq(settings.fallback.port, 8080);
	cr_expect_null(read_fallback("[::1]:443"));
	cr_expect_eq(settings.fallback.address.family, 6);
	cr_expect_eq(settings.fallback.port, 443);
	cr_expect_null(read_fallback("none"));
	cr_expect_eq(settings.fallback.address.family, 0);
}

Test(reader, what_is_no_fallback_changes_nothing)
{
	static const char *const bad[] = {"", "127.0.0.1", "127.0.0.1:", ":80", "127.0.0.1:0",
			"::1:443", "[::1]", "[::1:443", "localhost:80", "127.0.0.1:80-90",
			"127.0.0.1:65536",
			"11111111111111111111111111111111111111111111111111111111111111111:80" };

	settings.fallback.port = 77;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		cr_expect_not_null(read_fallback(bad[i]), "%s", bad[i]);
		cr_expect_eq(settings.fallback.port, 77, "%s", bad[i]);
	}
}

Test(reader, off_is_no_number)
{
	settings.concurrency = 3;
	settings.timeout_ns = 3;
	cr_expect_null(setting_find("concurrency")->read(
			setting_find("concurrency"), &settings, "off"));
	cr_expect_null(setting_find("timeout")->read(setting_find("timeout"), &settings, "off"));
	cr_expect_eq(settings.concurrency, 0);
	cr_expect_eq(settings.timeout_ns, 0);
}
