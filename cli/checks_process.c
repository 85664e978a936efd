/* SPDX-License-Identifier: MIT */
#include "cli/checks_process.h"

#include <fcntl.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/checks_program.h"
#include "cli/checks_setting.h"
#include "cli/columns.h"
#include "cli/connections.h"
#include "cli/guards.h"
#include "cli/library.h"
#include "cli/state.h"
#include "core/text.h"

#define USER_SIZE 64

/* Into `text`, as the next look into the table of users overwrites the last. */
static const char *user_name(uid_t user, char text[USER_SIZE])
{
	const struct passwd *entry = getpwuid(user);

	if (entry)
		text_copy(text, USER_SIZE, entry->pw_name);
	else
		snprintf(text, USER_SIZE, "%u", (unsigned int)user);
	return text;
}

static void check_process(const struct patient *patient, struct report *report)
{
	const struct process *process = &patient->process;
	char user[USER_SIZE];

	report_line(report, VERDICT_OK, "process %d is %s, of user %s, with %u thread%s",
			(int)process->pid, process->program[0] ? process->program : process->name,
			user_name(process->user, user), process->threads,
			process->threads == 1 ? "" : "s");
}

static bool is_library_file(const struct patient *patient, const char *file)
{
	struct stat status;

	return patient->library[0] != '\0' && stat(patient->library, &status) == 0 &&
			status.st_ino == patient->process.library.inode && file[0] != '\0';
}

static void check_mapped_library(const struct patient *patient, struct report *report)
{
	const struct process_mapping *library = &patient->process.library;

	if (library->is_removed)
		report_line(report, VERDICT_WARN,
				"the library %s was replaced or removed since it started, and it "
				"works on with the old one; restart it for a new one",
				library->path);
	else if (is_library_file(patient, library->path))
		report_line(report, VERDICT_OK, "the library is loaded: %s", library->path);
	else
		report_line(report, VERDICT_WARN,
				"another build of the library is loaded, %s; this command is of %s",
				library->path,
				patient->library[0] ? patient->library : "none that is installed");
}

static bool preload_names_library(const char *preload)
{
	char entry[PATH_MAX];

	while (preload && library_next(&preload, entry)) {
		if (strstr(entry, LIBRARY_NAME))
			return true;
	}
	return false;
}

/* The kind of program is why, most of the time. */
static void check_kind(const struct patient *patient, struct report *report)
{
	struct executable executable;
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/exe", (int)patient->process.pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return;
	if (executable_read(fd, &executable) && executable.kind == EXECUTABLE_ELF) {
		struct program program = { path, &executable, &patient->process.environment };

		check_machine(&program, report);
		if (executable_is_static(&executable))
			check_linkage(&program, report);
		check_libc(&program, report);
		check_go(&program, report);
	}
	close(fd);
}

/* Why the loader did not load what it was told to. */
static void check_missing_library(const struct patient *patient, struct report *report)
{
	const struct process *process = &patient->process;
	const char *preload = environment_get(&process->environment, "LD_PRELOAD");

	if (!preload_names_library(preload)) {
		report_line(report, VERDICT_NO,
				"the library is not loaded: it was started without it; start it "
				"with 'shunt run'");
		check_kind(patient, report);
		return;
	}
	report_line(report, VERDICT_NO,
			"the library is not loaded, although it was started with "
			"LD_PRELOAD=%.1024s",
			preload);
	if (process->is_secured)
		report_line(report, VERDICT_NO,
				"it was started with the rights of another user, or with "
				"capabilities of its file: the loader ignores LD_PRELOAD there");
	if (!process->has_our_files)
		report_line(report, VERDICT_WARN,
				"it has file systems of its own (another mount namespace): the "
				"library may not be there under that name");
	check_kind(patient, report);
}

static void check_idle_library(const struct patient *patient, struct report *report)
{
	const char *only = environment_get(&patient->process.environment, "SHUNT_PROC");
	const char *skipped = environment_get(&patient->process.environment, "SHUNT_SKIP");

	if (patient->config.is_off)
		report_line(report, VERDICT_NO,
				"it does nothing: SHUNT_OFF was set; start it without");
	else if (patient->process.is_secured)
		report_line(report, VERDICT_NO,
				"it does nothing in a program with the rights of another user");
	else if (patient->config.rule_count + patient->config.fault_count == 0)
		report_line(report, VERDICT_NO,
				"it does nothing: there was no rule in its environment; set "
				"SHUNT_BREAK_NAME='HOST:PORT' and start it again");
	else if (only || skipped)
		report_line(report, VERDICT_NO,
				"it does nothing: SHUNT_PROC or SHUNT_SKIP keeps it out of "
				"programs that are called '%s'",
				patient->process.name);
	else
		report_line(report, VERDICT_NO,
				"it does nothing: at its start it had neither a segment nor memory "
				"for one; start it again");
}

/* Why it has circuits of its own, where that can be seen from here; or "". */
static const char *segment_problem(const struct process *process)
{
	if (process->user != geteuid() || !process->has_our_files || !process->has_our_pids)
		return "";
	return state_open_for(process->environment.entries)->reason;
}

static void check_shared_segment(const struct patient *patient, struct report *report)
{
	const struct process_mapping *segment = &patient->process.segment;
	struct stat file;
	const char *problem = segment_problem(&patient->process);
	bool is_there = patient->segment_file[0] != '\0' &&
			lstat(patient->segment_file, &file) == 0;

	if (is_there && file.st_ino == segment->inode)
		report_line(report, VERDICT_OK, "its circuits are shared in %s",
				patient->segment_path);
	else if (strcmp(segment->path, "/dev/zero") != 0)
		report_line(report, VERDICT_WARN,
				"its segment was removed: it shares no circuits with programs that "
				"were started later; start it again");
	else if (patient->config.state_private)
		report_line(report, VERDICT_WARN,
				"its circuits are its own, as SHUNT_STATE=private says");
	else
		report_line(report, VERDICT_WARN,
				"its circuits are its own: it could not use %s%s%s",
				patient->segment_path, problem[0] ? "; now, " : "", problem);
}

/* Does `shunt status`, as we would start it, show its circuits? */
static bool is_our_segment(const struct patient *patient)
{
	const struct state *state = state_open();
	struct stat file;

	return state->segment && patient->segment_file[0] != '\0' &&
			lstat(patient->segment_file, &file) == 0 && file.st_dev == state->device &&
			file.st_ino == state->inode &&
			file.st_ino == patient->process.segment.inode;
}

static void check_namespaces(const struct patient *patient, struct report *report)
{
	const struct process *process = &patient->process;

	if (is_our_segment(patient))
		return;
	if (!process->has_our_pids && patient->config.state_path[0] == '\0')
		report_line(report, VERDICT_WARN,
				"it has process numbers of its own (another pid namespace), and so "
				"a segment of its own; run 'shunt status' in there, or set "
				"SHUNT_STATE to one path on both sides");
	else if (!process->has_our_files)
		report_line(report, VERDICT_WARN,
				"it has file systems of its own (another mount namespace), where "
				"%s may be another file; run 'shunt status' in there",
				patient->segment_path);
}

static void check_surroundings(const struct patient *patient, struct report *report)
{
	const struct process *process = &patient->process;
	char theirs[USER_SIZE], ours[USER_SIZE];

	if (process->user != geteuid())
		report_line(report, VERDICT_WARN,
				"it belongs to user %s: 'shunt status' of %s does not show its "
				"circuits, that of its user does", user_name(process->user, theirs),
				user_name(geteuid(), ours));
	check_namespaces(patient, report);
	if (process->has_filter)
		report_line(report, VERDICT_WARN,
				"it has a seccomp filter: the library starts no thread and writes "
				"no log there");
}

static void check_rules(const struct patient *patient, struct report *report)
{
	const struct config *config = &patient->config;
	size_t rule_count = config->rule_count + config->fault_count;

	for (size_t i = 0; i < config->problem_count && i < CONFIG_MAX_PROBLEMS; i++)
		report_line(report, VERDICT_WARN, "left out: %s", config->problems[i].text);
	if (rule_count > 0)
		report_line(report, VERDICT_OK, "%zu rule%s", rule_count,
				rule_count == 1 ? "" : "s");
	else if (config->problem_count > 0)
		report_line(report, VERDICT_NO,
				"no rule is left, so nothing is guarded; mend them and start it "
				"again");
	else
		report_line(report, VERDICT_WARN,
				"its rules cannot be told, as it has written over the environment "
				"that it began with");
	if (config->observe)
		report_line(report, VERDICT_WARN,
				"SHUNT_MODE=observe: calls are judged and counted, none is "
				"refused");
}

static void print_connections(const struct patient *patient, struct segment *segment)
{
	static const struct column titles[] = {
		{ "DESCRIPTOR", true }, { "REMOTE", false }, { "TCP", false }, { "GUARD", false },
	};
	char address[64], text[GUARDS_TEXT_SIZE];
	struct connection *connections;
	struct columns columns;
	struct guards guards;
	bool is_any_under = false;
	size_t count;

	if (!connections_read(patient->process.pid, &connections, &count)) {
		puts("\nits connections cannot be read");
		return;
	}
	guards_begin(&guards, &patient->config, segment);
	columns_init(&columns, titles, sizeof(titles) / sizeof(titles[0]));
	for (size_t i = 0; i < count; i++) {
		const struct connection *connection = &connections[i];
		bool is_v6 = connection->address.family == 6;

		address_format(&connection->address, address);
		is_any_under |= guards_describe(&guards, connection, text);
		columns_add(&columns, "%d", connection->fd);
		columns_add(&columns, "%s%s%s:%u", is_v6 ? "[" : "", address, is_v6 ? "]" : "",
				(unsigned int)connection->port);
		columns_add(&columns, "%s", connection_state_name(connection));
		columns_add(&columns, "%s", text);
	}
	puts(count ? "" : "\nno connection now");
	columns_print(&columns);
	if (is_any_under)
		puts("\na connection that was handed to the process, over exec or a socket, or "
				"that\nstdio writes to, is not guarded though it falls under a "
				"rule");
	columns_finish(&columns);
	guards_finish(&guards);
	free(connections);
}

static void check_library_at_work(const struct patient *patient, struct report *report)
{
	static struct segment segment;

	check_shared_segment(patient, report);
	check_surroundings(patient, report);
	check_rules(patient, report);
	print_connections(patient, process_read_segment(&patient->process,
			patient->segment_file, &segment) ? &segment : NULL);
}

void checks_make_of_process(const struct patient *patient, struct report *report)
{
	check_process(patient, report);
	if (!patient->process.library.is_there) {
		check_missing_library(patient, report);
		return;
	}
	check_mapped_library(patient, report);
	check_earlier_preloads(environment_get(&patient->process.environment, "LD_PRELOAD"),
			report);
	if (patient->process.segment.is_there)
		check_library_at_work(patient, report);
	else
		check_idle_library(patient, report);
}
