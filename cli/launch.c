/* SPDX-License-Identifier: MIT */
#include "cli/launch.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/library.h"
#include "cli/privileges.h"
#include "cli/search.h"
#include "core/text.h"

#define SCRIPTS_MAX 5 /* interpreters that are scripts themselves: the kernel follows no more */
#define SHELL "/bin/sh" /* execvp() gives it what the kernel does not know */

static void add_step(struct launch *launch, enum launch_step_kind kind, const char *path,
		const char *by)
{
	if (launch->step_count == LAUNCH_STEPS_MAX)
		return;
	launch->steps[launch->step_count] = (struct launch_step){ kind, strdup(path), strdup(by) };
	launch->step_count++;
}

static void fail(struct launch *launch, enum launch_answer answer, const char *expected,
		const char *got, const char *why)
{
	size_t length = strlen(got);
	char quoted[PATH_MAX];

	text_quote(quoted, sizeof(quoted), got, length);
	launch->answer = answer;
	snprintf(launch->problem, sizeof(launch->problem), "expected %s, got '%s': %s%s", expected,
			quoted, why,
			length > 0 && got[length - 1] == '\r'
					? "; the lines of the script end in CR LF, which only "
					  "Windows understands: remove the CR, as dos2unix does"
					: "");
}

static void fail_errno(struct launch *launch, const char *expected, const char *got, int error)
{
	fail(launch, error == ENOENT ? LAUNCH_NOT_FOUND : LAUNCH_NOT_EXECUTABLE, expected, got,
			error == ENOENT ? "not found" : strerror(error));
}

/* The kernel's step from a script to its interpreter, which is a path, never looked for on PATH. */
static bool enter_interpreter(struct launch *launch)
{
	const struct executable *script = &launch->executable;
	char wanted[EXECUTABLE_HEAD_SIZE + 2], path[PATH_MAX];
	struct search search;

	snprintf(wanted, sizeof(wanted), "%s%s", strchr(script->interpreter, '/') ? "" : "./",
			script->interpreter);
	search = search_begin(wanted, NULL, launch->directory);
	if (!search_next(&search, path)) {
		fail_errno(launch, "an interpreter that is there, in the first line of the script",
				script->interpreter, search.error);
		return false;
	}
	add_step(launch, STEP_SCRIPT, launch->path, script->interpreter);
	arguments_remove(&launch->arguments, 0);
	arguments_insert(&launch->arguments, 0, launch->path);
	if (script->argument[0] != '\0')
		arguments_insert(&launch->arguments, 0, script->argument);
	arguments_insert(&launch->arguments, 0, script->interpreter);
	strcpy(launch->path, path);
	return true;
}

/* What is known of the file at launch->path. */
static bool read_program(struct launch *launch)
{
	int fd = open(launch->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	char how[256];

	launch->is_unreadable = fd < 0 || !executable_read(fd, &launch->executable);
	if (fd >= 0)
		close(fd);
	launch->privileges[0] = '\0';
	if (privileges_are_raised(launch->path, how, sizeof(how)))
		snprintf(launch->privileges, sizeof(launch->privileges), "%s: %s", launch->path,
				how);
	return !launch->is_unreadable;
}

static void enter_shell(struct launch *launch, const char *script)
{
	add_step(launch, STEP_SHELL, script, SHELL);
	arguments_remove(&launch->arguments, 0);
	arguments_insert(&launch->arguments, 0, script);
	arguments_insert(&launch->arguments, 0, SHELL);
	strcpy(launch->path, SHELL);
	read_program(launch);
}

/* What the kernel asks of a program before it starts it. */
static void demand_loadable(struct launch *launch)
{
	const struct executable *program = &launch->executable;

	if (program->is_damaged)
		fail(launch, LAUNCH_NOT_EXECUTABLE, "a program", launch->path,
				"its ELF headers are damaged");
	else if (program->loader[0] != '\0' && access(program->loader, F_OK) != 0)
		fail_errno(launch, "the loader that the program names", program->loader, errno);
}

/* One execve() of launch->path, with what the kernel and execvp() make of it. */
static void execute(struct launch *launch)
{
	char file[PATH_MAX];

	strcpy(file, launch->path);
	launch->answer = LAUNCH_FOUND;
	for (int depth = 0; read_program(launch); depth++) {
		if (launch->executable.kind == EXECUTABLE_OTHER) {
			enter_shell(launch, file);
			return;
		}
		if (launch->executable.kind == EXECUTABLE_ELF) {
			demand_loadable(launch);
			return;
		}
		if (depth == SCRIPTS_MAX) {
			fail_errno(launch, "a script whose interpreters end in a program", file,
					ELOOP);
			return;
		}
		if (!enter_interpreter(launch))
			return;
	}
}

static void undo_steps(struct launch *launch, size_t count)
{
	while (launch->step_count > count) {
		launch->step_count--;
		free(launch->steps[launch->step_count].path);
		free(launch->steps[launch->step_count].by);
	}
}

/* As execvp(): a script without its interpreter is not there itself, and the search goes on. */
static void find(struct launch *launch)
{
	struct arguments given = launch->arguments;
	const char *command = given.words[0];
	struct search search = search_begin(command,
			environment_get(&launch->environment, "PATH"), launch->directory);
	size_t steps = launch->step_count;

	launch->answer = LAUNCH_NOT_FOUND;
	launch->problem[0] = '\0';
	while (launch->answer != LAUNCH_FOUND && search_next(&search, launch->path)) {
		undo_steps(launch, steps);
		if (launch->problem[0] != '\0')
			arguments_finish(&launch->arguments);
		arguments_copy(&launch->arguments, given.words);
		execute(launch);
	}
	if (launch->answer != LAUNCH_FOUND && launch->problem[0] == '\0')
		fail_errno(launch, strchr(command, '/') ? "a path to a command"
							: "a command on PATH",
				command, search.error);
	if (launch->arguments.words != given.words)
		arguments_finish(&given);
}

static bool has_library(const struct launch *launch, const char *library)
{
	return library_is_in(environment_get(&launch->environment, "LD_PRELOAD"), library);
}

/* Says once who it was that took the library out. */
static void note_loss(struct launch *launch, const char *name)
{
	if (launch->lost_by[0] != '\0')
		return;
	if (launch->privileges[0] != '\0')
		text_copy(launch->lost_by, sizeof(launch->lost_by), launch->privileges);
	else
		snprintf(launch->lost_by, sizeof(launch->lost_by), "%s drops LD_PRELOAD", name);
}

static void note_hidden(struct launch *launch, const struct wrapped *wrapped, const char *path)
{
	text_copy(launch->hidden_by, sizeof(launch->hidden_by), path);
	launch->may_change_root = wrapped->may_change_root;
}

/* True where there is a program behind this one to go on with. `script` was the file that it reads,
 * or NULL. */
static bool open_wrapper(struct launch *launch, const char *script, const char *library)
{
	bool had_library = has_library(launch, library);
	const char *name = arguments_base_name(launch->path);
	struct wrapped wrapped = { 0 };
	enum wrapper_answer answer;
	char *path = strdup(launch->path);

	/* The loader of a program that gets rights takes it out before the program sees it. */
	if (launch->privileges[0] != '\0')
		environment_unset_all(&launch->environment, "LD_");
	if (executable_is_loader(&launch->executable))
		answer = wrapper_open_loader(&launch->arguments);
	else
		answer = wrapper_open(name, &launch->arguments, &launch->environment, &wrapped);
	if (answer != WRAPPER_NONE) {
		add_step(launch, STEP_STARTER, path,
				answer == WRAPPER_RUNS ? launch->arguments.words[0] : "");
		if (had_library && !has_library(launch, library))
			note_loss(launch, name);
	}
	if (wrapped.may_drop)
		snprintf(launch->may_lose, sizeof(launch->may_lose), "%s", name);
	if (wrapped.directory[0] != '\0')
		strcpy(launch->directory, wrapped.directory);
	if (answer == WRAPPER_HIDES)
		note_hidden(launch, &wrapped, path);
	else if (answer == WRAPPER_NONE && script &&
			wrapper_open_script(arguments_base_name(script), &wrapped) == WRAPPER_HIDES)
		note_hidden(launch, &wrapped, script);
	free(path);
	return answer == WRAPPER_RUNS;
}

/* The script that was found, where that is how the steps beyond `count` begin; or NULL. */
static const char *script_since(const struct launch *launch, size_t count)
{
	return launch->step_count > count ? launch->steps[count].path : NULL;
}

/* `sudo shunt run -- COMMAND` is how it should be. */
static bool brings_library(const struct launch *launch)
{
	const char *verb = arguments_at(&launch->arguments, 1);

	return strcmp(arguments_base_name(launch->arguments.words[0]), "shunt") == 0 && verb &&
			strcmp(verb, "run") == 0;
}

void launch_follow(struct launch *launch, char *const words[], char *const environment[],
		const char *library)
{
	size_t steps;

	*launch = (struct launch){ 0 };
	arguments_copy(&launch->arguments, words);
	environment_copy(&launch->environment, environment);
	do {
		if (launch->step_count > 0 && brings_library(launch)) {
			launch->is_told = true;
			launch->lost_by[0] = launch->may_lose[0] = '\0';
		}
		steps = launch->step_count;
		find(launch);
	} while (launch->answer == LAUNCH_FOUND && !launch->is_told &&
			launch->step_count < LAUNCH_STEPS_MAX &&
			open_wrapper(launch, script_since(launch, steps), library));
}

void launch_finish(struct launch *launch)
{
	undo_steps(launch, 0);
	arguments_finish(&launch->arguments);
	environment_finish(&launch->environment);
}
