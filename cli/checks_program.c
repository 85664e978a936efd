/* SPDX-License-Identifier: MIT */
#include "cli/checks_program.h"

#include <elf.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/arguments.h"
#include "cli/symbols.h"

#define BITS(executable) ((executable)->elf_class == ELFCLASS32 ? 32 : 64)

/* This program itself: it was built with the library, for the same machine and libc. */
static const struct executable *ourselves(void)
{
	static struct executable executable;
	static bool is_read;
	int fd;

	if (is_read)
		return &executable;
	fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return NULL;
	is_read = executable_read(fd, &executable);
	close(fd);
	return is_read ? &executable : NULL;
}

static bool is_for_our_machine(const struct executable *executable)
{
	const struct executable *ours = ourselves();

	return !ours || (executable->is_native && executable->machine == ours->machine);
}

void check_machine(const struct program *program, struct report *report)
{
	const struct executable *ours = ourselves();
	char their_machine[32], our_machine[32];

	if (is_for_our_machine(program->executable))
		return;
	report_line(report, VERDICT_NO,
			"built for %s, %d bit: this library is for %s, %d bit, and cannot be "
			"loaded there; use a shunt that was built for that machine",
			executable_machine_name(program->executable, their_machine),
			BITS(program->executable), executable_machine_name(ours, our_machine),
			BITS(ours));
}

void check_linkage(const struct program *program, struct report *report)
{
	const struct executable *executable = program->executable;

	if (!is_for_our_machine(executable))
		return;
	if (executable_is_static(executable) && executable->is_packed)
		report_line(report, VERDICT_WARN,
				"packed: what is inside cannot be told from here; start it, and "
				"ask 'shunt doctor PID'");
	else if (executable_is_static(executable))
		report_line(report, VERDICT_NO,
				"statically linked: no preloaded library is loaded; use a build of "
				"it that is linked dynamically, or, if it only starts other "
				"programs, put 'shunt run' before those");
	else if (executable_is_loader(executable))
		report_line(report, VERDICT_OK, "a loader, which loads the library itself");
	else
		report_line(report, VERDICT_OK, "dynamically linked%s",
				executable->needs_libc ? " against libc.so.6" : "");
}

static bool starts_with(const char *text, const char *start)
{
	return strncmp(text, start, strlen(start)) == 0;
}

static bool paths_are_one(const char *a, const char *b)
{
	char *first = realpath(a, NULL), *second = realpath(b, NULL);
	bool are_one = first && second && strcmp(first, second) == 0;

	free(first);
	free(second);
	return are_one;
}

void check_libc(const struct program *program, struct report *report)
{
	const struct executable *ours = ourselves();
	const char *loader = program->executable->loader;
	const char *name = arguments_base_name(loader);

	if (!ours || !is_for_our_machine(program->executable) || loader[0] == '\0' ||
			strcmp(loader, ours->loader) == 0 || paths_are_one(loader, ours->loader))
		return;
	if (starts_with(name, "ld-musl") || starts_with(name, "ld-uClibc"))
		report_line(report, VERDICT_NO,
				"another libc, by its loader %s: this library needs glibc and "
				"cannot be loaded there; use a build of the program for glibc",
				loader);
	else
		report_line(report, VERDICT_WARN,
				"a loader of its own, %s: where its libc is older than this "
				"system's or no glibc, the library cannot be loaded there; start "
				"it, and ask 'shunt doctor PID'", loader);
}

/* Does it define a function of that name, or want one? False where that cannot be told. */
static bool find_symbol(const struct program *program, const char *name, bool *ret_defines,
		bool *ret_wants)
{
	int fd = open(program->path, O_RDONLY | O_CLOEXEC);
	uint32_t defined = 0, wanted = 0;
	bool is_known;

	if (fd < 0)
		return false;
	is_known = symbols_find(fd, &name, 1, &defined, &wanted);
	close(fd);
	*ret_defines = defined;
	*ret_wants = wanted;
	return is_known;
}

/* Has a Go program parts in C that may connect by themselves? */
static bool has_parts_in_c(const struct program *program)
{
	bool defines, wants;

	return !find_symbol(program, "connect", &defines, &wants) || wants ||
			program->executable->needs_others;
}

void check_go(const struct program *program, struct report *report)
{
	if (!program->executable->is_go || !is_for_our_machine(program->executable))
		return;
	if (!executable_is_static(program->executable) && has_parts_in_c(program))
		report_line(report, VERDICT_WARN,
				"written in Go, with parts in C: only what the parts in C call is "
				"seen, as Go makes system calls of its own");
	else
		report_line(report, VERDICT_NO,
				"written in Go: it makes system calls of its own, which no "
				"preloaded library sees (libc, if any, resolves names for it); let "
				"it connect through a proxy, and run that under shunt");
}

void check_sanitizer(const struct program *program, struct report *report)
{
	const char *options = environment_get(program->environment, "ASAN_OPTIONS");
	bool defines, wants;

	if (!program->executable->needs_asan ||
			(options && strstr(options, "verify_asan_link_order=0")))
		return;
	if (!find_symbol(program, "__asan_default_options", &defines, &wants) || defines)
		report_line(report, VERDICT_WARN,
				"linked against AddressSanitizer's library, which ends the program "
				"where another comes first, unless the options that it has inside "
				"say otherwise; set ASAN_OPTIONS=verify_asan_link_order=0");
	else
		report_line(report, VERDICT_NO,
				"linked against AddressSanitizer's library, which ends the program "
				"where another comes first; set "
				"ASAN_OPTIONS=verify_asan_link_order=0");
}
