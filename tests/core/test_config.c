/* SPDX-License-Identifier: MIT */
#include "core/config.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* What a run before left there must not matter. */
static struct config config;

static void spoil_config(void)
{
	memset(&config, 0x5a, sizeof(config));
}

TestSuite(config, .init = spoil_config);

static const struct config_process curl = { "curl", 1000 };

#define LOAD(...) config_load(&config, (char *[]){ __VA_ARGS__, NULL }, &curl)
#define LOAD_TEXT(text) config_load_text(&config, "FILE", text, sizeof(text) - 1)

static void expect_problem(const char *text)
{
	cr_expect_eq(config.problem_count, 1, "%zu problems, expected: %s", config.problem_count,
			text);
	cr_expect_str_eq(config.problems[0].text, text, "%s", config.problems[0].text);
}

Test(config, no_variable_is_no_rule_and_no_problem)
{
	char *empty[] = { NULL };

	config_load(&config, empty, &curl);
	cr_expect(config.rule_count == 0 && config.problem_count == 0 && !config.is_off);
	cr_expect(config.log == LOG_OFF && config.timer == TIMER_AUTO && !config.observe);
	cr_expect(!config.has_seed && !config.backtrace && !config.state_private);
	cr_expect(config.state_path[0] == '\0' && config.log_path[0] == '\0');
	config_load(&config, NULL, NULL);
	cr_expect_eq(config.rule_count, 0);
	LOAD("PATH=/bin", "SHUN=1", "SHUNT=1", "XSHUNT_BREAK=x", "", "=", "SHUNT_BREAK");
	cr_expect(config.rule_count == 0 && config.problem_count == 0);
}

Test(config, one_variable_is_one_named_rule)
{
	LOAD("SHUNT_BREAK_PAY=pay.internal:443 volume=3", "SHUNT_BREAK=any",
			"SHUNT_BREAK_a-b_1=10.0.0.0/8");
	cr_assert_eq(config.problem_count, 0, "%s", config.problems[0].text);
	cr_assert_eq(config.rule_count, 3);
	cr_expect_str_eq(config.rules[0].name, "PAY");
	cr_expect_eq(config.rules[0].settings.volume, 3);
	cr_expect_str_eq(config.rules[1].name, "a-b_1");
	cr_expect_str_eq(config.rules[2].name, "default");
	cr_expect(config.wants_names);
	cr_expect_not(config.rules[0].is_from_file);
}

Test(config, only_rules_by_name_want_names)
{
	LOAD("SHUNT_BREAK_A=any", "SHUNT_BREAK_B=10.0.0.1", "SHUNT_BREAK_C=10.0.0.0/8");
	cr_expect_eq(config.rule_count, 3);
	cr_expect_not(config.wants_names);
	LOAD("SHUNT_BREAK_A=any", "SHUNT_BREAK_B=^pay");
	cr_expect(config.wants_names);
}

Test(config, a_bad_rule_is_left_out_and_named)
{
	LOAD("SHUNT_BREAK_PAY=pay.internal sleep=5", "SHUNT_BREAK_DB=db");
	cr_assert_eq(config.rule_count, 1);
	cr_expect_str_eq(config.rules[0].name, "DB");
	expect_problem("SHUNT_BREAK_PAY: sleep: expected a duration such as 250ms, 5s or 1m, got "
		       "'5'");
	cr_expect_str_eq(config.problems[0].name, "PAY");
}

static const struct {
	const char *variable;
	const char *problem;
} problems[] = {
		{"SHUNT_BREAK=", "SHUNT_BREAK: expected a target such as pay.internal:443, got "
				 "nothing"},
		{"SHUNT_BREAK_X=pay timeout=1d",
				"SHUNT_BREAK_X: timeout: expected a duration such as 250ms, 5s or "
				"1m, or off, got '1d'"},
		{"SHUNT_BREAK_=pay", "SHUNT_BREAK_: expected a name of letters, digits, _ and -, "
				     "at most 63 of them, got ''"},
		{"SHUNT_BREAK_a.b=pay", "SHUNT_BREAK_a.b: expected a name of letters, digits, _ "
					"and -, at most 63 of them, got 'a.b'"},
		{"SHUNT_BREAK_\xff=pay", "SHUNT_BREAK_\\xff: expected a name of letters, digits, _ "
					 "and -, at most "
					 "63 of them, got '\\xff'"},
		{"SHUNT_FAULT=", "SHUNT_FAULT: expected a target such as redis:6379, got nothing"},
		{"SHUNT_FAULT_REDIS=redis,rate=64",
				"SHUNT_FAULT_REDIS: rate: expected a rate such as 64KB/s or "
				"512kbit/s, got '64', did you mean 64B/s or 64KB/s?"},
		{"SHUNT_FAULT_a.b=redis,refuse",
				"SHUNT_FAULT_a.b: expected a name of letters, digits, _ and -, at "
				"most 63 of them, got 'a.b'"},
		{"SHUNT_FAULTS=redis,refuse",
				"SHUNT_FAULTS: no such variable, did you mean SHUNT_FAULT?"},
		{"SHUNT_EXPIRE=0s", "SHUNT_EXPIRE: expected a duration above 0s, got '0s'"},
		{"SHUNT_REPORT=report",
				"SHUNT_REPORT: expected an absolute path of at most 255 "
				"characters, got 'report'"},
		{"SHUNT_RUN=x", "SHUNT_RUN: expected a whole number, got 'x'"},
		{"SHUNT_MOD=observe", "SHUNT_MOD: no such variable, did you mean SHUNT_MODE?"},
		{"SHUNT_BREAKS=pay", "SHUNT_BREAKS: no such variable, did you mean SHUNT_BREAK?"},
		{"SHUNT_BRAEK_PAYMENTS_OF_THE_SHOP=pay",
				"SHUNT_BRAEK_PAYMENTS_OF_THE_SHOP: no such variable, did you mean "
				"SHUNT_BREAK?"},
		{"SHUNT_ELEPHANTS=1", "SHUNT_ELEPHANTS: no such variable"},
		{"SHUNT_=1", "SHUNT_: no such variable"},
		{"SHUNT_MODE=observ", "SHUNT_MODE: expected enforce or observe, got 'observ', did "
				      "you mean observe?"},
		{"SHUNT_STATE=shm/x", "SHUNT_STATE: expected private, or an absolute path of at "
				      "most 255 characters, got 'shm/x'"},
		{"SHUNT_STATE=privat",
				"SHUNT_STATE: expected private, or an absolute path of at most 255 "
				"characters, got 'privat', did you mean private?"},
		{"SHUNT_LOG=stdout", "SHUNT_LOG: expected off, stderr, syslog, or an absolute path "
				     "of at most 255 "
				     "characters, got 'stdout'"},
		{"SHUNT_LOG=stder", "SHUNT_LOG: expected off, stderr, syslog, or an absolute path "
				    "of at most 255 "
				    "characters, got 'stder', did you mean stderr?"},
		{"SHUNT_SEED=-1", "SHUNT_SEED: expected a whole number, got '-1'"},
		{"SHUNT_SEED=99999999999999999999", "SHUNT_SEED: expected a smaller number, got "
						    "'99999999999999999999'"},
		{"SHUNT_BREAK_X=redis errors=10% hang",
				"SHUNT_BREAK_X: expected setting=value, got 'hang'; hang is of "
				"fault rules (--fault, SHUNT_FAULT_NAME)"},
		{"SHUNT_FAULT_X=redis errors=50%",
				"SHUNT_FAULT_X: expected a fault, when or where, such as refuse, "
				"20% or for=2m, got 'errors'; errors is of breaker rules (--break, "
				"SHUNT_BREAK_NAME)"},
		{"SHUNT_TIMER=of", "SHUNT_TIMER: expected auto, on or off, got 'of', did you mean "
				   "off?"},
		{"SHUNT_TIMER=yes", "SHUNT_TIMER: expected auto, on or off, got 'yes'"},
		{"SHUNT_BACKTRACE=yes", "SHUNT_BACKTRACE: expected 0 or 1, got 'yes'"},
		{"SHUNT_EXPIRE=60", "SHUNT_EXPIRE: expected a duration such as 250ms, 5s or 1m, "
				    "got '60'"},
		{"SHUNT_CONF=shunt.conf",
				"SHUNT_CONF: expected an absolute path, got 'shunt.conf'"},
		{"SHUNT_CONF=/nonexistent/shunt.conf",
				"SHUNT_CONF: /nonexistent/shunt.conf: no such file"},
		{"SHUNT_CONF=/tmp", "SHUNT_CONF: /tmp: not a regular file"},
};

Test(config, what_is_wrong_is_said)
{
	for (size_t i = 0; i < COUNT(problems); i++) {
		LOAD((char *)problems[i].variable);
		expect_problem(problems[i].problem);
		cr_expect_eq(config.rule_count, 0);
	}
}

Test(config, a_mode_that_cannot_be_read_spares_the_program)
{
	LOAD("SHUNT_MODE=obsrve");
	cr_expect(config.observe);
	LOAD("SHUNT_MODE=enforce");
	cr_expect_not(config.observe);
	LOAD("SHUNT_MODE=observe");
	cr_expect(config.observe);
}

Test(config, switches_are_read)
{
	LOAD("SHUNT_STATE=private", "SHUNT_LOG=/var/log/shunt.log", "SHUNT_SEED=42",
			"SHUNT_TIMER=off", "SHUNT_BACKTRACE=1", "SHUNT_EXPIRE=10m",
			"SHUNT_REPORT=/tmp/new", "SHUNT_REPLAY=/tmp/old", "SHUNT_RUN=77");
	cr_assert_eq(config.problem_count, 0, "%s", config.problems[0].text);
	cr_expect(config.state_private && config.backtrace && config.has_seed);
	cr_expect_eq(config.log, LOG_FILE);
	cr_expect_str_eq(config.log_path, "/var/log/shunt.log");
	cr_expect_eq(config.seed, 42);
	cr_expect_eq(config.timer, TIMER_OFF);
	cr_expect_eq(config.expire_ns, 600000000000u);
	cr_expect_str_eq(config.report_path, "/tmp/new");
	cr_expect_str_eq(config.replay_path, "/tmp/old");
	cr_expect_eq(config.run, 77);
	LOAD("SHUNT_STATE=/run/shunt", "SHUNT_LOG=syslog", "SHUNT_TIMER=on", "SHUNT_BACKTRACE=0");
	cr_assert_eq(config.problem_count, 0, "%s", config.problems[0].text);
	cr_expect_str_eq(config.state_path, "/run/shunt");
	cr_expect(!config.state_private && !config.backtrace && !config.has_seed);
	cr_expect_eq(config.log, LOG_SYSLOG);
	cr_expect(config.expire_ns == 0 && config.run == 0);
	cr_expect(config.report_path[0] == '\0' && config.replay_path[0] == '\0');
	cr_expect_eq(config.timer, TIMER_ON);
	LOAD("SHUNT_LOG=stderr");
	cr_expect_eq(config.log, LOG_STDERR);
}

Test(config, an_empty_switch_is_not_set)
{
	LOAD("SHUNT_MODE=", "SHUNT_STATE=", "SHUNT_LOG=", "SHUNT_SEED=", "SHUNT_TIMER=",
			"SHUNT_BACKTRACE=", "SHUNT_EXPIRE=", "SHUNT_OFF=", "SHUNT_PROC=",
			"SHUNT_SKIP=", "SHUNT_CONF=");
	cr_expect_eq(config.problem_count, 0, "%s", config.problems[0].text);
	cr_expect(!config.is_off && !config.observe);
}

Test(config, the_first_of_two_equal_variables_counts)
{
	LOAD("SHUNT_LOG=stderr", "SHUNT_LOG=off", "SHUNT_LOG=nonsense");
	cr_expect_eq(config.log, LOG_STDERR);
	cr_expect_eq(config.problem_count, 0);
	LOAD("SHUNT_BREAK_A=pay", "SHUNT_BREAK_A=other");
	cr_expect_str_eq(config.rules[0].target.host, "pay");
	expect_problem("SHUNT_BREAK_A: expected a name no rule has, got 'A'");
}

Test(config, a_path_that_does_not_fit_is_refused)
{
	static char variable[300];

	memset(variable, 'x', sizeof(variable) - 1);
	memcpy(variable, "SHUNT_STATE=/", 13);
	variable[12 + 255] = '\0';
	LOAD(variable);
	cr_expect_eq(config.problem_count, 0);
	cr_expect_eq(strlen(config.state_path), 255);
	variable[12 + 255] = 'x';
	variable[12 + 256] = '\0';
	LOAD(variable);
	cr_expect_eq(config.problem_count, 1);
	cr_expect_str_eq(config.state_path, "");
}

Test(config, the_kill_switch_comes_before_everything)
{
	LOAD("SHUNT_BREAK=bad!", "SHUNT_OFF=1", "SHUNT_NONSENSE=1", "SHUNT_CONF=x");
	cr_expect(config.is_off);
	cr_expect(config.rule_count == 0 && config.problem_count == 0);
	LOAD("SHUNT_OFF=0", "SHUNT_BREAK=any");
	cr_expect(!config.is_off && config.rule_count == 1 && config.problem_count == 0);
	LOAD("SHUNT_OFF=yes", "SHUNT_BREAK=any");
	cr_expect(config.is_off && config.rule_count == 0);
	expect_problem("SHUNT_OFF: expected 0 or 1, got 'yes'");
}

static bool is_off_for(const char *program, char *variable)
{
	struct config_process process = { program, 1000 };

	config_load(&config, (char *[]){ variable, "SHUNT_BREAK=any", NULL },
			program ? &process : NULL);
	cr_expect_eq(config.problem_count, 0);
	cr_expect_eq(config.rule_count, config.is_off ? 0 : 1);
	return config.is_off;
}

Test(config, programs_are_kept_out_by_name)
{
	cr_expect_not(is_off_for("curl", "SHUNT_PROC=curl"));
	cr_expect_not(is_off_for("curl", "SHUNT_PROC=wget, c?rl ,x"));
	cr_expect_not(is_off_for("python3.11", "SHUNT_PROC=python*"));
	cr_expect(is_off_for("wget", "SHUNT_PROC=curl"));
	cr_expect(is_off_for("wget", "SHUNT_PROC=,"));
	cr_expect(is_off_for("curl", "SHUNT_SKIP=curl"));
	cr_expect(is_off_for("curl", "SHUNT_SKIP=wget,c*"));
	cr_expect_not(is_off_for("curl", "SHUNT_SKIP=wget,url,cur"));
	cr_expect_not(is_off_for(NULL, "SHUNT_PROC=wget"));
	cr_expect_not(is_off_for(NULL, "SHUNT_SKIP=*"));
	LOAD("SHUNT_PROC=curl", "SHUNT_SKIP=curl");
	cr_expect(config.is_off);
}

Test(config, rules_stand_in_the_order_they_are_asked_in)
{
	static const char *const names[] = {"EXCLUSION", "EXACT", "ADDRESS", "LONG", "SHORT",
			"GLOB", "NARROW", "WIDE", "A", "B"};

	LOAD("SHUNT_BREAK_WIDE=10.0.0.0/8", "SHUNT_BREAK_B=any", "SHUNT_BREAK_GLOB=p*",
			"SHUNT_BREAK_A=any", "SHUNT_BREAK_SHORT=.com", "SHUNT_BREAK_EXACT=pay",
			"SHUNT_BREAK_EXCLUSION=^10.9.0.0/16", "SHUNT_BREAK_LONG=.example.com",
			"SHUNT_BREAK_ADDRESS=10.0.0.1", "SHUNT_BREAK_NARROW=10.1.0.0/16");
	cr_assert_eq(config.rule_count, COUNT(names));
	for (size_t i = 0; i < COUNT(names); i++)
		cr_expect_str_eq(
				config.rules[i].name, names[i], "%zu: %s", i, config.rules[i].name);
}

static const char *matched(const char *host, const char *address_text, uint16_t port)
{
	struct address address;
	struct endpoint endpoint = { .host = host, .port = port, .is_lookup = !address_text };

	if (address_text) {
		cr_assert(address_parse(address_text, &address));
		endpoint.address = &address;
	}
	const struct rule *rule = config_match(&config, &endpoint);
	return rule ? rule->name : "none";
}

Test(config, the_most_specific_rule_applies)
{
	LOAD("SHUNT_BREAK_PAY=pay.internal:443", "SHUNT_BREAK_INTERNAL=.internal",
			"SHUNT_BREAK_NET=10.0.0.0/8", "SHUNT_BREAK_NEAR=10.1.0.0/16:80",
			"SHUNT_BREAK_ALL=any:80-90");
	cr_expect_str_eq(matched("pay.internal", "10.1.0.1", 443), "PAY");
	cr_expect_str_eq(matched("pay.internal", "10.1.0.1", 80), "INTERNAL");
	cr_expect_str_eq(matched("other", "10.1.0.1", 80), "NEAR");
	cr_expect_str_eq(matched(NULL, "10.1.0.1", 81), "NET");
	cr_expect_str_eq(matched(NULL, "11.1.0.1", 81), "ALL");
	cr_expect_str_eq(matched(NULL, "11.1.0.1", 91), "none");
	cr_expect_str_eq(matched("pay.internal", NULL, 0), "PAY");
	cr_expect_str_eq(matched("db.internal", NULL, 0), "INTERNAL");
	cr_expect_str_eq(matched("elsewhere", NULL, 0), "ALL");
}

Test(config, an_exclusion_keeps_out_of_every_other_rule)
{
	LOAD("SHUNT_BREAK_PAY=pay.internal", "SHUNT_BREAK_ALL=any", "SHUNT_BREAK_NOT=^10.9.0.0/16",
			"SHUNT_BREAK_NOR=^.internal:22");
	cr_expect_str_eq(matched("pay.internal", "10.1.0.1", 80), "PAY");
	cr_expect_str_eq(matched("pay.internal", "10.9.0.1", 80), "none");
	cr_expect_str_eq(matched("pay.internal", "10.1.0.1", 22), "none");
	cr_expect_str_eq(matched("pay.internal", NULL, 0), "none");
	cr_expect_str_eq(matched("pay", "10.1.0.1", 22), "ALL");
}

static char variables[200][40];
static char *many[201];

Test(config, there_are_at_most_128_rules)
{
	for (int i = 0; i < 200; i++) {
		snprintf(variables[i], sizeof(variables[i]), "SHUNT_BREAK_R%03d=host%03d", i,
				199 - i);
		many[i] = variables[i];
	}
	config_load(&config, many, &curl);
	cr_expect_eq(config.rule_count, CONFIG_MAX_RULES);
	cr_expect_eq(config.problem_count, 200 - CONFIG_MAX_RULES);
	cr_expect_str_eq(config.problems[0].text,
			"SHUNT_BREAK_R128: left out, there are 128 rules already");
	cr_expect_str_eq(config.problems[0].name, "R128");
	/* Equally specific: in the order of their names, which is not that of their hosts. */
	for (size_t i = 0; i < CONFIG_MAX_RULES; i++) {
		char name[8], host[8];

		snprintf(name, sizeof(name), "R%03zu", i);
		snprintf(host, sizeof(host), "host%03zu", 199 - i);
		cr_expect_str_eq(config.rules[i].name, name);
		cr_expect_str_eq(config.rules[i].target.host, host);
	}
}

Test(config, problems_are_counted_past_what_is_kept)
{
	for (int i = 0; i < 200; i++) {
		snprintf(variables[i], sizeof(variables[i]), "SHUNT_NONSENSE_%d=1", i);
		many[i] = variables[i];
	}
	config_load(&config, many, &curl);
	cr_expect_eq(config.problem_count, 200);
	cr_expect_str_eq(config.problems[CONFIG_MAX_PROBLEMS - 1].text,
			"SHUNT_NONSENSE_31: no such variable");
}

Test(config, a_name_of_64_characters_is_too_long)
{
	static char variable[128] = "SHUNT_BREAK_";

	memset(variable + 12, 'N', 63);
	strcpy(variable + 12 + 63, "=pay");
	LOAD(variable);
	cr_expect_eq(config.rule_count, 1);
	cr_expect_eq(strlen(config.rules[0].name), 63);
	memset(variable + 12, 'N', 64);
	strcpy(variable + 12 + 64, "=pay");
	LOAD(variable);
	cr_expect_eq(config.rule_count, 0);
	cr_expect_eq(config.problem_count, 1);
}

Test(config, every_message_is_printable_and_terminated, .timeout = 60)
{
	static char huge[70000];

	memset(huge, 0xfe, sizeof(huge) - 1);
	memcpy(huge, "SHUNT_BREAK_X=pay ", 18);
	LOAD(huge);
	expect_problem("SHUNT_BREAK_X: expected setting=value, got "
		       "'\\xfe\\xfe\\xfe\\xfe\\xfe\\xfe\\xfe\\xfe\\xfe\\xfe\\xfe\\xfe\\xfe\\xfe\\xf"
		       "e...'");
	memcpy(huge, "SHUNT_\xfe\xfe\xfe\xfe\xfe\xfe\xfe\xfe\xfe\xfe\xfe\xfe", 18);
	huge[60000] = '=';
	LOAD(huge);
	cr_assert_eq(config.problem_count, 1);
	cr_expect(strlen(config.problems[0].text) < 160);
	for (const char *c = config.problems[0].text; *c; c++)
		cr_expect(*c >= 0x20 && *c < 0x7f);
}

Test(config, a_file_has_lines_and_comments)
{
	config_load(&config, NULL, NULL);
	LOAD_TEXT("# rules\n"
		  "\n"
		  "break PAY = pay.internal:443 volume=5 # five\r\n"
		  "\t break  DB=10.0.0.0/8,sleep=2s\n"
		  "   # more\n"
		  "break LAST = any");
	cr_assert_eq(config.problem_count, 0, "%s", config.problems[0].text);
	cr_assert_eq(config.rule_count, 3);
	cr_expect_str_eq(config.rules[0].name, "PAY");
	cr_expect_eq(config.rules[0].settings.volume, 5);
	cr_expect_str_eq(config.rules[1].name, "DB");
	cr_expect_eq(config.rules[1].settings.sleep_ms, 2000);
	cr_expect_str_eq(config.rules[2].name, "LAST");
	cr_expect(config.rules[0].is_from_file);
}

static const struct {
	const char *line;
	const char *problem;
} lines[] = {
		{"break PAY pay", "FILE:3: expected break NAME = rule, got 'break PAY pay'"},
		{"break = pay", "FILE:3: expected break NAME = rule, got 'break = pay'"},
		{"break", "FILE:3: expected break NAME = rule, got 'break'"},
		{"break PAY", "FILE:3: expected break NAME = rule, got 'break PAY'"},
		{"brake PAY = pay", "FILE:3: expected break NAME = rule or fault NAME = rule, got "
				    "'brake PAY = pay'"},
		{"= pay", "FILE:3: expected break NAME = rule or fault NAME = rule, got '= pay'"},
		{"SHUNT_BREAK_PAY=pay", "FILE:3: expected break NAME = rule or fault NAME = rule, "
					"got 'SHUNT_BREAK_PAY=pay'"},
		{"\xef\xbb\xbf"
		 "break",
				"FILE:3: expected break NAME = rule or fault NAME = rule, got "
				"'\\xef\\xbb\\xbfbreak'"},
		{"break P.Y = pay", "FILE:3: expected a name of letters, digits, _ and -, at most "
				    "63 of them, "
				    "got 'P.Y'"},
		{"break PAY =", "FILE:3: expected a target such as pay.internal:443, got nothing"},
		{"break PAY = # x",
				"FILE:3: expected a target such as pay.internal:443, got nothing"},
		{"break PAY = pay sleep=5", "FILE:3: sleep: expected a duration such as 250ms, 5s "
					    "or 1m, got '5'"},
		{"fault REDIS = redis,refuse=1", "FILE:3: refuse: expected no value, got '1'"},
		{"fault REDIS redis,refuse", "FILE:3: expected fault NAME = rule, got 'fault REDIS "
					     "redis,refuse'"},
		{"break FIRST = other", "FILE:3: expected a name no rule has, got 'FIRST'"},
};

Test(config, a_bad_line_is_left_out_and_numbered)
{
	for (size_t i = 0; i < COUNT(lines); i++) {
		char text[256];
		int length = snprintf(text, sizeof(text),
				"\nbreak FIRST = first\n%s\nbreak LAST = last\n", lines[i].line);

		config_load(&config, NULL, NULL);
		config_load_text(&config, "FILE", text, (size_t)length);
		expect_problem(lines[i].problem);
		cr_assert_eq(config.rule_count, 2);
		cr_expect_str_eq(config.rules[0].target.host, "first");
		cr_expect_str_eq(config.rules[1].target.host, "last");
	}
}

Test(config, nul_bytes_in_a_file_are_no_ends)
{
	config_load(&config, NULL, NULL);
	LOAD_TEXT("break PAY = pay\0 sleep=5s\n");
	expect_problem("FILE:1: expected text without a NUL byte, at most 511 bytes of it, got "
		       "'pay\\x00'");
	config_load(&config, NULL, NULL);
	LOAD_TEXT("break P\0Y = pay\n");
	expect_problem("FILE:1: expected a name of letters, digits, _ and -, at most 63 of them, "
		       "got 'P\\x00Y'");
}

Test(config, a_long_path_is_named_by_its_end)
{
	char path[400];

	memset(path, 'd', sizeof(path));
	strcpy(path + 380, "/shunt.conf");
	config_load(&config, NULL, NULL);
	config_load_text(&config, path, "x\n", 2);
	cr_expect(strstr(config.problems[0].text, "ddd/shunt.conf:1: expected"), "%s",
			config.problems[0].text);
	cr_expect_eq(strncmp(config.problems[0].text, "...ddd", 6), 0);
}

static char path[64] = "/tmp/shunt-config-XXXXXX";
static char conf_variable[96];

static void write_conf(const char *text, size_t length)
{
	int fd = mkstemp(path);

	cr_assert(fd >= 0 && write(fd, text, length) == (ssize_t)length);
	close(fd);
	snprintf(conf_variable, sizeof(conf_variable), "SHUNT_CONF=%s", path);
}

Test(config, the_environment_beats_the_file)
{
	static const char text[] = "break PAY = file volume=9\nbreak DB = db\nnonsense\n";
	char expected[192];

	write_conf(text, sizeof(text) - 1);
	errno = EXDEV;
	LOAD(conf_variable, "SHUNT_BREAK_PAY=environment volume=3");
	cr_expect_eq(errno, EXDEV);
	unlink(path);
	snprintf(expected, sizeof(expected),
			"%s:3: expected break NAME = rule or fault NAME = rule, got 'nonsense'",
			path);
	expect_problem(expected);
	cr_assert_eq(config.rule_count, 2);
	cr_expect_str_eq(config.rules[0].name, "PAY");
	cr_expect_str_eq(config.rules[0].target.host, "environment");
	cr_expect_eq(config.rules[0].settings.volume, 3);
	cr_expect_str_eq(config.rules[1].name, "DB");
}

/* Bits as of config_match_faults(), by the first letters of the rules' names. */
static const char *faults_of(const char *host, bool is_lookup, enum fault_protocol protocol)
{
	static char names[CONFIG_MAX_FAULTS + 1];
	struct address address = { .family = 0 };
	struct endpoint endpoint = { host, &address, 6379, is_lookup };
	size_t count = 0;

	address_parse("10.1.2.3", &address);
	uint32_t matches = config_match_faults(&config, &endpoint, protocol);
	for (size_t i = 0; i < CONFIG_MAX_FAULTS; i++) {
		if (matches >> i & 1)
			names[count++] = config.faults[i].name[0];
	}
	names[count] = '\0';
	return names;
}

Test(config, every_fault_rule_that_matches_applies_in_order)
{
	LOAD("SHUNT_FAULT_A=any,latency=1s", "SHUNT_FAULT_B=redis:6379 refuse 20%",
			"SHUNT_FAULT_C=redis:6379 drop proto=udp", "SHUNT_FAULT_D=dns:redis again",
			"SHUNT_FAULT_E=10.0.0.0/8 short", "SHUNT_FAULT_F=redis:1 hang",
			"SHUNT_FAULT=dns:any nxdomain");
	cr_assert_eq(config.problem_count, 0, "%s", config.problems[0].text);
	cr_expect(config.fault_count == 7 && config.rule_count == 0 && config.wants_names);
	cr_expect_str_eq(faults_of("redis", false, FAULT_TCP), "BEA");
	cr_expect_str_eq(faults_of("redis", false, FAULT_UDP), "C");
	cr_expect_str_eq(faults_of("redis", true, FAULT_TCP), "Dd");
	cr_expect_str_eq(faults_of("other", true, FAULT_TCP), "d");
	cr_expect_str_eq(faults_of(NULL, false, FAULT_TCP), "EA");
}

Test(config, an_exclusion_keeps_a_target_out_of_all_fault_rules_and_no_breaker_rule)
{
	LOAD("SHUNT_FAULT_A=any,latency=1s", "SHUNT_FAULT_B=^redis", "SHUNT_FAULT_C=^dns:db",
			"SHUNT_FAULT_D=dns:any again", "SHUNT_FAULT_E=any drop proto=udp",
			"SHUNT_BREAK=any");
	cr_assert_eq(config.problem_count, 0, "%s", config.problems[0].text);
	cr_expect_str_eq(faults_of("redis", false, FAULT_TCP), "");
	cr_expect_str_eq(faults_of("redis", false, FAULT_UDP), "");
	cr_expect_str_eq(faults_of("redis", true, FAULT_TCP), "");
	cr_expect_str_eq(faults_of("db", true, FAULT_TCP), "");
	cr_expect_str_eq(faults_of("db", false, FAULT_TCP), "A");
	cr_expect_str_eq(faults_of("db", false, FAULT_UDP), "E");
	cr_expect_str_eq(faults_of("x", true, FAULT_TCP), "D");
	cr_expect_not_null(config_match(&config, &(struct endpoint){ .host = "redis",
		.is_lookup = true }));
}

Test(config, fault_and_breaker_rules_may_share_a_name)
{
	LOAD("SHUNT_FAULT_PAY=pay refuse", "SHUNT_BREAK_PAY=pay", "SHUNT_FAULT=pay refuse",
			"SHUNT_BREAK=any");
	cr_expect(config.problem_count == 0 && config.rule_count == 2 && config.fault_count == 2);
	LOAD("SHUNT_FAULT_PAY=pay", "SHUNT_BREAK_PAY=pay");
	cr_expect(config.rule_count == 1 && config.fault_count == 0);
	expect_problem("SHUNT_FAULT_PAY: expected a fault such as refuse or latency=300ms, got "
		       "none");
	cr_expect_str_eq(config.problems[0].name, "", "it is not the breaker rule's");
}

Test(config, fault_rules_for_others_are_left_out)
{
	static const struct config_process root = { "wget", 0 };
	char *rules[] = { "SHUNT_FAULT_A=a refuse proc=wget|curl", "SHUNT_FAULT_B=a refuse proc=w*",
		"SHUNT_FAULT_C=a refuse uid=1000", "SHUNT_FAULT_D=a refuse uid=0",
		"SHUNT_FAULT_E=a refuse", "SHUNT_FAULT_F=a refuse proc=curl uid=0", NULL };

	config_load(&config, rules, &curl);
	cr_expect_str_eq(faults_of("a", false, FAULT_TCP), "ACE");
	config_load(&config, rules, &root);
	cr_expect_str_eq(faults_of("a", false, FAULT_TCP), "ABDE");
	config_load(&config, rules, NULL);
	cr_expect_str_eq(faults_of("a", false, FAULT_TCP), "ABCDEF");
	cr_expect_eq(config.problem_count, 0);
}

Test(config, a_rule_for_others_keeps_its_name_from_the_file)
{
	static const char text[] = "fault A = file refuse\nfault B = file latency=1s # slow\n";

	write_conf(text, sizeof(text) - 1);
	LOAD(conf_variable, "SHUNT_FAULT_A=a refuse proc=wget");
	unlink(path);
	cr_expect_eq(config.problem_count, 0);
	cr_assert_eq(config.fault_count, 1);
	cr_expect_str_eq(config.faults[0].name, "B");
	cr_expect(config.faults[0].is_from_file);
}

Test(config, the_end_of_all_faults_is_in_each)
{
	LOAD("SHUNT_FAULT_A=a refuse", "SHUNT_EXPIRE=5s", "SHUNT_FAULT_B=b refuse");
	cr_assert_eq(config.fault_count, 2);
	cr_expect(config.faults[0].expire_ns == 5000000000u &&
			config.faults[1].expire_ns == 5000000000u);
}

/* A bound that cannot be read was meant to be one. */
Test(config, without_their_bounds_faults_are_left_out_and_breaker_rules_are_not)
{
	static const char *const bad[] = { "SHUNT_EXPIRE=10", "SHUNT_EXPIRE=0s",
		"SHUNT_EXPIRE=99999999999h", "SHUNT_FAULT_B=^pay:0", "SHUNT_FAULT_B= ,^",
		"SHUNT_FAULT_B=^pay refuse", "SHUNT_FAULT_b!=^pay" };

	for (size_t i = 0; i < COUNT(bad); i++) {
		LOAD("SHUNT_FAULT_A=a refuse", (char *)bad[i], "SHUNT_BREAK=any");
		cr_expect(config.fault_count == 0 && config.rule_count == 1, "%s", bad[i]);
		cr_expect_eq(config.problem_count, 2, "%s", bad[i]);
		cr_expect_str_eq(config.problems[1].text,
				"fault rules: all left out, as SHUNT_EXPIRE or a ^target, which is "
				"to bound them, cannot be read");
		LOAD((char *)bad[i], "SHUNT_BREAK=any");
		cr_expect_eq(config.problem_count, 1, "%s: there is nothing to leave out", bad[i]);
	}
	LOAD("SHUNT_FAULT_A=a refuse", "SHUNT_FAULT_B=b", "SHUNT_EXPIRE=", "SHUNT_FAULT_C=^c");
	cr_expect(config.problem_count == 1 && config.fault_count == 2,
			"any other rule goes alone");
	LOAD("SHUNT_EXPIRE=10s", "SHUNT_EXPIRE=10", "SHUNT_FAULT_A=a refuse");
	cr_expect(config.problem_count == 0 && config.fault_count == 1, "the first counts");
}

Test(config, an_exclusion_of_the_file_that_yields_is_no_bad_one)
{
	static const char text[] = "fault A = ^file\nfault B = file latency=1s\n";

	write_conf(text, sizeof(text) - 1);
	LOAD(conf_variable, "SHUNT_FAULT_A=^a");
	unlink(path);
	cr_expect(config.problem_count == 0 && config.fault_count == 2);
}

Test(config, there_are_32_fault_rules_at_most)
{
	static char texts[CONFIG_MAX_FAULTS + 1][40];
	char *rules[CONFIG_MAX_FAULTS + 2] = { NULL };

	for (int i = 0; i <= CONFIG_MAX_FAULTS; i++) {
		snprintf(texts[i], sizeof(texts[i]), "SHUNT_FAULT_R%d=host%d refuse", i, i);
		rules[i] = texts[i];
	}
	config_load(&config, rules, &curl);
	cr_expect_eq(config.fault_count, CONFIG_MAX_FAULTS);
	expect_problem("SHUNT_FAULT_R32: left out, there are 32 fault rules already");
}

Test(config, a_file_above_256_kib_is_refused)
{
	static char text[CONFIG_FILE_SIZE];
	char expected[128];

	memset(text, '\n', sizeof(text));
	memcpy(text, "break A = a", 11);
	write_conf(text, sizeof(text) - 1);
	LOAD(conf_variable);
	unlink(path);
	cr_expect(config.rule_count == 1 && config.problem_count == 0);
	strcpy(path, "/tmp/shunt-config-XXXXXX");
	write_conf(text, sizeof(text));
	LOAD(conf_variable);
	unlink(path);
	snprintf(expected, sizeof(expected), "SHUNT_CONF: %s: too large", path);
	expect_problem(expected);
	cr_expect_eq(config.rule_count, 0);
}
