/* SPDX-License-Identifier: MIT */
#include "cli/state.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/processes.h"
#include "cli/terminal.h"
#include "core/text.h"
#include "core/variable.h"

char **state_environment(void)
{
	static char **kept;
	size_t count = 0;

	free(kept);
	while (environ[count])
		count++;
	kept = calloc(count + 1, sizeof(*kept));
	if (!kept)
		terminal_die_without_memory();
	count = 0;
	for (size_t i = 0; environ[i]; i++) {
		if (strncmp(environ[i], "SHUNT_OFF=", strlen("SHUNT_OFF=")) != 0)
			kept[count++] = environ[i];
	}
	return kept;
}

/* Programs take the default instead; but who asks for another segment is not to change that of all
 * programs. */
static bool is_misspelt(struct state *state)
{
	const char *given = state->is_own ? getenv("SHUNT_STATE") : NULL;
	char quoted[TEXT_QUOTE_SIZE];

	if (!given || given[0] == '\0')
		return false;
	snprintf(state->reason, sizeof(state->reason),
			"SHUNT_STATE: expected private, or an absolute path of at most %d "
			"characters, got '%s'", VARIABLE_PATH_SIZE - 1,
			text_quote(quoted, sizeof(quoted), given, strlen(given)));
	return true;
}

/* False, with a reason, where processes would not share a segment by this environment. */
static bool find_path(struct state *state)
{
	state->path[0] = '\0';
	if (state->config.state_private) {
		snprintf(state->reason, sizeof(state->reason),
				"SHUNT_STATE=private: every process has circuits of its own, which "
				"nobody else can see; set SHUNT_STATE to a path to share them");
		return false;
	}
	if (state->config.state_path[0] != '\0') {
		text_copy(state->path, sizeof(state->path), state->config.state_path);
		return true;
	}
	if (is_misspelt(state))
		return false;
	if (segment_default_path(state->path, sizeof(state->path)))
		return true;
	state->path[0] = '\0';
	snprintf(state->reason, sizeof(state->reason),
			"no path for the segment can be told without /proc; mount it or set "
			"SHUNT_STATE to a path");
	return false;
}

static void attach(struct state *state)
{
	const char *why = "unknown";

	state->segment = segment_open(state->path, false, &why);
	if (state->segment)
		return;
	snprintf(state->reason, sizeof(state->reason),
			"%s is not used: %s; every process has circuits of its own until it is "
			"out of the way, or SHUNT_STATE names another", state->path, why);
}

/* NULL, or why a file cannot be made there. */
static const char *directory_problem(const char *path)
{
	char directory[SEGMENT_PATH_SIZE];
	char *slash;

	text_copy(directory, sizeof(directory), path);
	slash = strrchr(directory, '/');
	if (!slash)
		return NULL;
	slash[slash == directory ? 1 : 0] = '\0';
	if (access(directory, F_OK) != 0)
		return "its directory is not there";
	return access(directory, W_OK | X_OK) == 0 ? NULL : "this user cannot write its directory";
}

static void describe_missing(struct state *state)
{
	const char *problem = directory_problem(state->path);

	state->is_missing = !problem;
	if (state->is_missing)
		snprintf(state->reason, sizeof(state->reason),
				"no segment yet at %s: no process has run under shunt; start one "
				"with 'shunt run'", state->path);
	else
		snprintf(state->reason, sizeof(state->reason),
				"%s cannot be made: %s; every process has circuits of its own "
				"until that is mended, or SHUNT_STATE names another",
				state->path, problem);
}

static void read_segment(struct state *state)
{
	struct stat file = { 0 };

	state->segment = NULL;
	state->reason[0] = '\0';
	state->is_missing = false;
	if (!find_path(state))
		return;
	if (lstat(state->path, &file) == 0) {
		attach(state);
	} else if (errno == ENOENT) {
		describe_missing(state);
	} else {
		snprintf(state->reason, sizeof(state->reason), "%s cannot be looked at: %s",
				state->path, strerror(errno));
	}
	state->device = file.st_dev;
	state->inode = file.st_ino;
	state->removed_count = processes_on_removed_segment(state->path, state->inode,
			state->removed_pids,
			sizeof(state->removed_pids) / sizeof(state->removed_pids[0]));
}

static struct state *open_state(char *const environment[], bool is_own)
{
	static struct state state;

	config_load(&state.config, environment, NULL);
	state.is_own = is_own;
	read_segment(&state);
	return &state;
}

struct state *state_open_for(char *const environment[])
{
	return open_state(environment, false);
}

struct state *state_open(void)
{
	return open_state(state_environment(), true);
}

bool state_refresh(struct state *state)
{
	struct stat file = { 0 };

	if (state->path[0] == '\0')
		return false;
	(void)lstat(state->path, &file);
	if (file.st_dev == state->device && file.st_ino == state->inode)
		return false;
	if (state->segment)
		segment_close(state->segment);
	read_segment(state);
	return true;
}

static int compare_cells(const void *a, const void *b)
{
	const struct cell_key *first = &((const struct cell_snapshot *)a)->key;
	const struct cell_key *second = &((const struct cell_snapshot *)b)->key;
	int order = strcmp(first->name, second->name);

	if (order == 0)
		order = strcmp(first->host, second->host);
	if (order == 0)
		order = (second->kind == CELL_LOOKUP) - (first->kind == CELL_LOOKUP);
	if (order == 0)
		order = memcmp(&first->address, &second->address, sizeof(first->address));
	if (order == 0)
		order = (int)first->port - (int)second->port;
	if (order == 0)
		order = (first->window_span_ns > second->window_span_ns) -
				(first->window_span_ns < second->window_span_ns);
	return order;
}

size_t state_cells(const struct state *state, uint64_t now_ns, struct cell_snapshot *ret)
{
	size_t count = 0;

	if (!state->segment)
		return 0;
	snapshot_reclaim(state->segment, process_is_alive);
	for (uint32_t i = 0; i < SEGMENT_CELLS; i++) {
		if (snapshot_take(state->segment, i, now_ns, &ret[count]))
			count++;
	}
	qsort(ret, count, sizeof(*ret), compare_cells);
	return count;
}

static void note_removed(const struct state *state, char *ret)
{
	size_t listed = sizeof(state->removed_pids) / sizeof(state->removed_pids[0]);
	char pids[128] = "";
	size_t length = 0;

	for (size_t i = 0; i < state->removed_count && i < listed; i++)
		length += (size_t)snprintf(pids + length, sizeof(pids) - length, "%s%d",
				i ? " " : "",
				(int)state->removed_pids[i]);
	snprintf(ret, STATE_NOTE_SIZE,
			"the segment was removed under %zu running process%s (%s%s), which do%s "
			"not share circuits with later ones; restart %s. (logind's RemoveIPC=yes "
			"removes it when the user logs out.)",
			state->removed_count, state->removed_count == 1 ? "" : "es", pids,
			state->removed_count > listed ? " ..." : "",
			state->removed_count == 1 ? "es" : "",
			state->removed_count == 1 ? "it" : "them");
}

bool state_log_is_writable(const struct config *config, char *ret)
{
	char directory[sizeof(config->log_path)];
	char *slash;

	if (config->log != LOG_FILE)
		return true;
	text_copy(directory, sizeof(directory), config->log_path);
	slash = strrchr(directory, '/');
	if (slash)
		slash[slash == directory ? 1 : 0] = '\0';
	if (!access(config->log_path, F_OK) ? !access(config->log_path, W_OK)
					   : !access(directory, W_OK | X_OK))
		return true;
	snprintf(ret, STATE_NOTE_SIZE, "SHUNT_LOG: expected a file that can be written, got '%s'",
			config->log_path);
	return false;
}

/* Where a rule's timeouts do less than they say; a line for each reason. */
static size_t note_unenforced(const struct segment *segment, char (*ret)[STATE_NOTE_SIZE])
{
	static const char *const said[] = {
		[UNENFORCED_NO_THREAD] = "%s: timeout bounded blocking calls only, on %u "
			"connection%s: no timer thread could run there (SHUNT_TIMER=off, or none "
			"could be made)",
		[UNENFORCED_FILTER] = "%s: timeout was not enforced on %u connection%s: under a "
			"seccomp filter the library makes no system calls of its own",
		[UNENFORCED_LOOKUP] = "%s: resolve-timeout did not bound %u lookup%s: no thread "
			"could run for them, or the program has namespaces or a resolver state "
			"(_res) of its own",
	};
	struct segment_rule_view rule;
	size_t count = 0;

	for (uint32_t i = 0; i < SEGMENT_RULES; i++) {
		if (!segment_rule_read(segment, i, &rule))
			continue;
		for (int why = 0; why < UNENFORCED_COUNT; why++) {
			uint32_t calls = rule.unenforced[why];

			if (calls)
				snprintf(ret[count++], STATE_NOTE_SIZE, said[why], rule.name,
						calls, calls == 1 ? "" : "s");
		}
	}
	return count;
}

static uint64_t filtered_count(const struct state *state)
{
	if (!state->segment)
		return 0;
	return atomic_load_explicit(&state->segment->header.filtered, memory_order_relaxed);
}

static uint64_t unseated_count(const struct state *state)
{
	if (!state->segment)
		return 0;
	return atomic_load_explicit(&state->segment->header.unseated, memory_order_relaxed);
}

size_t state_notes(const struct state *state, char (*ret)[STATE_NOTE_SIZE])
{
	const struct config *config = &state->config;
	size_t count = 0;

	if (state->reason[0] != '\0')
		text_copy(ret[count++], STATE_NOTE_SIZE, state->reason);
	if (state->removed_count > 0)
		note_removed(state, ret[count++]);
	if (filtered_count(state) > 0)
		snprintf(ret[count++], STATE_NOTE_SIZE,
				"%" PRIu64 " of the processes so far had a seccomp filter, under "
				"which the library keeps no log and no thread, and wakes nobody: "
				"see 'shunt events'", filtered_count(state));
	if (unseated_count(state) > 0)
		snprintf(ret[count++], STATE_NOTE_SIZE,
				"%" PRIu64 " of the processes so far came when %d others held "
				"calls: concurrency, connections and fallback-concurrency do not "
				"bound the calls of one more", unseated_count(state), SEAT_COUNT);
	if (!state_log_is_writable(config, ret[count]))
		count++;
	for (size_t i = 0; i < config->problem_count && i < CONFIG_MAX_PROBLEMS; i++) {
		if (config->problems[i].name[0] == '\0')
			text_copy(ret[count++], STATE_NOTE_SIZE, config->problems[i].text);
	}
	if (config->problem_count > CONFIG_MAX_PROBLEMS)
		snprintf(ret[count++], STATE_NOTE_SIZE,
				"%zu more problems with the rules were not kept; mend the others "
				"first",
				config->problem_count - CONFIG_MAX_PROBLEMS);
	if (state->segment)
		count += note_unenforced(state->segment, ret + count);
	return count;
}

uint64_t state_overflow(const struct state *state)
{
	if (!state->segment)
		return 0;
	return atomic_load_explicit(&state->segment->header.overflow, memory_order_relaxed);
}
