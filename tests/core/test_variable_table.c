/* SPDX-License-Identifier: MIT */
#include <criterion/criterion.h>
#include <string.h>

#include "core/config_rules.h"
#include "core/variable_table.h"

static struct config config;
static char error[256];

static const struct variable *row_of(const char *name)
{
	size_t count;
	const struct variable *table = variable_table(&count);

	return variable_find(table, count, span_of(name));
}

Test(variable_table, each_row_is_there_once_and_fits_a_word_of_bits)
{
	size_t count;
	const struct variable *table = variable_table(&count);

	cr_expect_leq(count, 32);
	for (size_t i = 0; i < count; i++) {
		cr_expect_eq(strncmp(table[i].name, "SHUNT_", 6), 0);
		cr_expect_eq(row_of(table[i].name), &table[i], "%s is there twice", table[i].name);
	}
}

Test(variable_table, what_cannot_be_read_errs_on_the_safe_side)
{
	cr_expect_not(variable_read(row_of("SHUNT_MODE"), &config, "observ", error, sizeof(error)));
	cr_expect(config.observe);
	cr_expect_not(variable_read(row_of("SHUNT_EXPIRE"), &config, "10", error, sizeof(error)));
	cr_expect(config.has_bad_bound && config.expire_ns == 0);
	cr_expect_not(variable_read(row_of("SHUNT_SEED"), &config, "x", error, sizeof(error)));
	cr_expect_not(config.has_seed);
}

Test(variable_table, each_value_goes_into_its_field)
{
	static const char *const values[][2] = {{"SHUNT_MODE", "observe"},
			{"SHUNT_STATE", "private"}, {"SHUNT_LOG", "/log"}, {"SHUNT_SEED", "7"},
			{"SHUNT_TIMER", "off"}, {"SHUNT_EXPIRE", "10m"}, {"SHUNT_BACKTRACE", "1"},
			{"SHUNT_REPORT", "/report"}, {"SHUNT_REPLAY", "/replay"},
			{"SHUNT_RUN", "3"}};

	for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++)
		cr_assert(variable_read(row_of(values[i][0]), &config, values[i][1], error,
				sizeof(error)), "%s", values[i][0]);
	cr_expect(config.observe && config.state_private && config.backtrace && config.has_seed);
	cr_expect(config.log == LOG_FILE && config.timer == TIMER_OFF && !config.has_bad_bound);
	cr_expect(config.seed == 7 && config.run == 3 && config.expire_ns == 600000000000u);
	cr_expect_str_eq(config.log_path, "/log");
	cr_expect_str_eq(config.report_path, "/report");
	cr_expect_str_eq(config.replay_path, "/replay");
}
