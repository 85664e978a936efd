/* SPDX-License-Identifier: MIT */
#include "cli/fault_run.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/environment.h"
#include "cli/terminal.h"
#include "core/clock.h"
#include "core/injection.h"
#include "core/text.h"

#define REPORT_VARIABLE "SHUNT_REPORT"
#define REPLAY_VARIABLE "SHUNT_REPLAY"
#define RUN_VARIABLE	"SHUNT_RUN"
#define PATH_ROOM	sizeof(((struct config *)NULL)->report_path)

bool fault_run_stays(const struct fault_run *run, const struct config *config)
{
	return run->report || run->requires_hits || (run->is_verbose && config->fault_count > 0);
}

/* As the program finds it from wherever it goes. */
static bool set_path(const char *variable, const char *option, const char *path)
{
	char directory[PATH_MAX], whole[2 * PATH_MAX];

	directory[0] = '\0';
	if (path[0] != '/' && !getcwd(directory, sizeof(directory))) {
		terminal_complain("run: %s: expected an absolute path where there is no working "
				  "directory, got '%s': %s", option, path, strerror(errno));
		return false;
	}
	snprintf(whole, sizeof(whole), "%s%s%s", strcmp(directory, "/") ? directory : "",
			path[0] == '/' ? "" : "/", path);
	if (strlen(whole) >= PATH_ROOM) {
		terminal_complain("run: %s: expected a path of at most %zu characters, got '%s'",
				option, PATH_ROOM - 1, whole);
		return false;
	}
	environment_set_own(variable, whole);
	return true;
}

static bool check_line(const struct fault_run *run, const char *line, size_t length,
		unsigned int number)
{
	struct injection injection;
	const struct fault *fault;
	char quoted[TEXT_QUOTE_SIZE];
	const char *expected = injection_parse(line, length, &injection);

	if (expected) {
		text_quote(quoted, sizeof(quoted), line, length);
		terminal_complain("run: --replay %s:%u: expected %s, got '%s'", run->replay, number,
				expected, quoted);
		return false;
	}
	fault = fault_find(
			run->tally.config->faults, run->tally.config->fault_count, injection.rule);
	if (fault && fault->kind == injection.kind)
		return true;
	if (fault && !fault->target.is_excluded)
		terminal_complain("run: --replay %s:%u: expected the fault %s of %s, got '%s'; "
				  "give the rules of the run that wrote the report", run->replay,
				number, fault_kind_name(fault->kind), fault->name,
				fault_kind_name(injection.kind));
	else
		terminal_complain("run: --replay %s:%u: expected the name of a fault rule, got "
				  "'%s'; give the rules of the run that wrote the report, one "
				  "that was added by hand as SHUNT_FAULT_%s", run->replay, number,
				injection.rule, injection.rule);
	return false;
}

static const char *kind_of_file(mode_t mode)
{
	switch (mode & S_IFMT) {
	case S_IFLNK:
		return "a symbolic link";
	case S_IFDIR:
		return "a directory";
	case S_IFIFO:
		return "a pipe";
	case S_IFSOCK:
		return "a socket";
	default:
		return "a device";
	}
}

/* NULL, with errno, where there is none. Waits for no writer of a pipe. */
static FILE *open_replay(const struct fault_run *run)
{
	int fd = open(run->replay, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	const char *why = NULL;
	struct stat about;
	FILE *file = NULL;

	if (fd < 0 || fstat(fd, &about) != 0)
		why = strerror(errno);
	else if (!S_ISREG(about.st_mode))
		why = kind_of_file(about.st_mode);
	else if (!(file = fdopen(fd, "r")))
		why = strerror(errno);
	if (why)
		terminal_complain("run: --replay: expected a report of an earlier run, got '%s': "
				  "%s", run->replay, why);
	if (fd >= 0 && !file)
		close(fd);
	return file;
}

static bool check_replay(struct fault_run *run)
{
	FILE *file = open_replay(run);
	char *line = NULL;
	size_t size = 0;
	unsigned int number = 0;
	bool is_good = file != NULL;

	if (!file)
		return false;
	for (ssize_t length; is_good && (length = getline(&line, &size, file)) >= 0;) {
		number++;
		if (length > 0 && line[length - 1] == '\n')
			length--;
		is_good = check_line(run, line, (size_t)length, number);
	}
	if (is_good && ferror(file)) {
		is_good = false;
		terminal_complain("run: --replay: expected a report of an earlier run, got '%s': "
				  "%s", run->replay, strerror(errno));
	}
	free(line);
	fclose(file);
	run->replay_count = number;
	return is_good;
}

static bool files_are_one(const char *one, const char *other)
{
	struct stat first, second;

	return stat(one, &first) == 0 && stat(other, &second) == 0 &&
			first.st_dev == second.st_dev && first.st_ino == second.st_ino;
}

/* As the library opens it, and refuses it. NULL, or why not. */
static const char *empty_file(const char *path)
{
	struct stat file;
	const char *why = NULL;

	/* Before it is opened: of what is no report, nothing is. */
	if (lstat(path, &file) == 0 && !S_ISREG(file.st_mode))
		return kind_of_file(file.st_mode);
	int fd = open(path, INJECTION_REPORT_FLAGS, 0666);
	if (fd < 0)
		return strerror(errno);
	if (fstat(fd, &file) != 0 || (S_ISREG(file.st_mode) && ftruncate(fd, 0) != 0))
		why = strerror(errno);
	else if (!S_ISREG(file.st_mode))
		why = kind_of_file(file.st_mode);
	close(fd);
	return why;
}

static bool empty_report(const struct fault_run *run)
{
	const char *why;

	if (run->replay && files_are_one(run->report, run->replay)) {
		terminal_complain("run: --report: expected another file than that of --replay, got "
				  "'%s' for both", run->report);
		return false;
	}
	why = empty_file(run->report);
	if (why)
		terminal_complain("run: --report: expected a regular file that can be written, got "
				  "'%s': %s", run->report, why);
	return !why;
}

/* Each run counts its connections from 1; those that it starts itself are part of it. */
static uint64_t number_run(bool *ret_is_outermost)
{
	const char *given = getenv(RUN_VARIABLE);
	uint64_t number = 0;
	char text[24];

	*ret_is_outermost = false;
	if (given && given[0] && !text_count(given, &number))
		return number;
	*ret_is_outermost = true;
	number = clock_now_ns() << 8 ^ (uint64_t)getpid();
	number &= INT64_MAX;
	snprintf(text, sizeof(text), "%" PRIu64, number);
	environment_set_own(RUN_VARIABLE, text);
	return number;
}

bool fault_run_begin(struct fault_run *run, const struct config *config)
{
	uint64_t number;

	run->tally.config = config;
	if (run->replay && !(set_path(REPLAY_VARIABLE, "--replay", run->replay) &&
			check_replay(run)))
		return false;
	if (run->report && !(set_path(REPORT_VARIABLE, "--report", run->report) &&
			empty_report(run)))
		return false;
	number = number_run(&run->tally.is_last);
	return !fault_run_stays(run, config) ||
			fault_tally_begin(&run->tally, number, run->requires_hits);
}

static uint64_t count_lines(int fd)
{
	char bytes[4096];
	uint64_t lines = 0;

	for (ssize_t length; (length = read(fd, bytes, sizeof(bytes))) > 0;) {
		for (ssize_t i = 0; i < length; i++)
			lines += bytes[i] == '\n';
	}
	return lines;
}

/* The library is silent where it cannot write: what it ran out of may be the program's to say. */
static void tell_report(const struct fault_run *run, const struct fault_sum *sum)
{
	uint64_t injected = sum->injected;
	struct stat file;
	int fd = open(run->report, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	uint64_t lines = 0;
	bool is_counted = fd >= 0 && fstat(fd, &file) == 0 && S_ISREG(file.st_mode);

	if (is_counted)
		lines = count_lines(fd);
	if (fd >= 0)
		close(fd);
	if (is_counted && lines < injected)
		terminal_complain("run: --report: expected %" PRIu64 " line%s, one for each "
				  "injection, got %" PRIu64 " in '%s'; %s?", injected,
				injected == 1 ? "" : "s", lines, run->report,
				lines + sum->unreported < injected ?
				"was it changed, or has a run inside this one its own report" :
				"is there room, may the program write it, and has it no seccomp "
				"filter");
	else if (fd < 0 && injected > 0)
		terminal_complain("run: --report: expected the report, got none in '%s': %s",
				run->report, strerror(errno));
}

static void tell_replay(const struct fault_run *run, uint64_t injected, char line[FAULT_TALLY_SIZE])
{
	size_t length = strlen(line);

	snprintf(line + length, FAULT_TALLY_SIZE - length, "; replayed %" PRIu64 " of %u", injected,
			run->replay_count);
}

bool fault_run_end(const struct fault_run *run)
{
	char line[FAULT_TALLY_SIZE];
	struct fault_sum sum = fault_tally_end(&run->tally, line);

	if (run->requires_hits && sum.injected + sum.added == 0) {
		terminal_complain("run: --require-hits: expected a fault to be injected, got none: "
				  "%s", line);
		return false;
	}
	if (run->replay && run->tally.table)
		tell_replay(run, sum.injected, line);
	if (run->report || run->is_verbose)
		terminal_complain("%s", line);
	if (run->report)
		tell_report(run, &sum);
	return true;
}
