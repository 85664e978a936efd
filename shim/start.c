/* SPDX-License-Identifier: MIT */
/* Boot in stages, fork handlers, stop. Until the last stage is through, hooks pass straight on. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/text.h"
#include "shim/admission.h"
#include "shim/backtrace.h"
#include "shim/copies.h"
#include "shim/fd_table.h"
#include "shim/gate.h"
#include "shim/gate_lifetime.h"
#include "shim/holder.h"
#include "shim/inherited.h"
#include "shim/inject.h"
#include "shim/log.h"
#include "shim/names.h"
#include "shim/open_lookup.h"
#include "shim/real.h"
#include "shim/runtime.h"
#include "shim/withheld.h"

/* Most processes under a preload are not meant at all: find that out without reading anything else.
 */
static bool is_meant(char *const environment[])
{
	for (size_t index = 0; environment && environment[index]; index++)
		if (!strncmp(environment[index], "SHUNT_", strlen("SHUNT_")))
			return true;
	return false;
}

/* Under a seccomp filter a call of our own may be the program's death. */
static bool has_filter(void)
{
	static char text[4096];
	const char *line;
	ssize_t size;
	int fd = open("/proc/self/status", O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return false;
	size = read(fd, text, sizeof(text) - 1);
	close(fd);
	if (size <= 0)
		return false;
	text[size] = '\0';
	line = strstr(text, "\nSeccomp:\t");
	return line && line[strlen("\nSeccomp:\t")] != '0';
}

/* Over exec it stays so. */
static bool is_counter_forbidden(void)
{
	int setting = PR_TSC_ENABLE;

	return !real()->prctl(PR_GET_TSC, &setting) && setting == PR_TSC_SIGSEGV;
}

static bool start_segment(void)
{
	const struct config *config = &runtime.config;
	const char *path = config->state_path[0] ? config->state_path : NULL;

	if (config->state_private)
		runtime.private_reason = "SHUNT_STATE=private";
	else
		runtime.segment = segment_open(path, true, &runtime.private_reason);
	if (!runtime.segment)
		runtime.segment = segment_open_private();
	return runtime.segment;
}

/* Every rule and every rule that was left out gets its line in status. */
static void register_rules(void)
{
	const struct config *config = &runtime.config;

	for (size_t index = 0; index < config->rule_count; index++)
		runtime.rule_records[index] = segment_rule(runtime.segment,
				config->rules[index].name, NULL);
	for (size_t index = 0; index < config->problem_count && index < CONFIG_MAX_PROBLEMS;
			index++) {
		const struct problem *problem = &config->problems[index];

		log_line("%s", problem->text);
		if (problem->name[0])
			segment_rule(runtime.segment, problem->name, problem->text);
	}
}

static void start(char *const environment[])
{
	struct config *config = &runtime.config;
	int (*read_clock)(clockid_t, struct timespec *);
	bool is_filtered;

	config_load(config, environment,
			&(struct config_process){ program_invocation_short_name, geteuid() });
	if (config->is_off ||
			(!config->rule_count && !config->fault_count && !config->problem_count))
		return;
	/* Another preload's clock may be made up (libfaketime), and times are shared. */
	*(void **)&read_clock = real_of_libc("clock_gettime");
	clock_use(read_clock);
	is_filtered = has_filter();
	if (is_filtered)
		runtime_filter_begins();
	else
		clock_avoid_counter(is_counter_forbidden());
	runtime.observe = config->observe;
	runtime.pid = (uint32_t)getpid();
	runtime.seed = config->has_seed ? config->seed
					: clock_now_ns() ^ (uint64_t)runtime.pid << 32;
	if (!is_filtered)
		log_start(config->log, config->log_path);
	if (!start_segment())
		return;
	if (is_filtered)
		runtime_filter_ended(true);
	register_rules();
	if (!is_filtered)
		holder_start();
	if ((!config->rule_count && !config->fault_count) || !fd_table_start())
		return;
	if (!is_filtered)
		inherited_tell();
	if (config->backtrace)
		backtrace_start();
	if (config->wants_names && !names_start())
		log_line("rules for names are without effect: no memory");
	admission_start();
	open_lookup_start();
	inject_start(program_invocation_short_name);
	/* Parent and child share their epoll sets: both find in them what they registered. */
	pthread_atfork(holds_release, gate_fork_parent, gate_fork_child);
	pthread_atfork(NULL, NULL, inject_forked);
	/* release: a hook that sees this sees all of the above. */
	atomic_store_explicit(&runtime.is_active, true, memory_order_release);
}

__attribute__((constructor)) static void library_start(int count, char **arguments,
		char **environment)
{
	int error = errno;

	(void)count;
	(void)arguments;
	if (is_meant(environment) && !getauxval(AT_SECURE) && copies_is_first())
		start(environment);
	errno = error;
}

__attribute__((destructor)) static void library_stop(void)
{
	inject_exit();
	gate_exit();
}
