/* SPDX-License-Identifier: MIT */
/* Any file can stand where a program is expected: it is read without a step outside, and what is
 * said of it holds together. */
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "cli/executable.h"
#include "cli/symbols.h"
#include "tests/fuzz/fuzz.h"

/* The file is one for all runs: it is cut to the size of each. */
static int file_of(const uint8_t *data, size_t size)
{
	static int fd = -1;

	if (fd < 0)
		fd = memfd_create("executable", MFD_CLOEXEC);
	FUZZ_EXPECT(fd >= 0);
	FUZZ_EXPECT(ftruncate(fd, 0) == 0);
	FUZZ_EXPECT(pwrite(fd, data, size, 0) == (ssize_t)size);
	return fd;
}

static void expect_text(const char *text, size_t size)
{
	FUZZ_EXPECT(memchr(text, '\0', size));
}

static void expect_script(const struct executable *script, const uint8_t *data, size_t size)
{
	FUZZ_EXPECT(size >= 3 && memcmp(data, "#!", 2) == 0);
	FUZZ_EXPECT(script->interpreter[0] != '\0');
	FUZZ_EXPECT(!strpbrk(script->interpreter, " \t\n"));
	FUZZ_EXPECT(!strchr(script->argument, '\n'));
	FUZZ_EXPECT(strlen(script->interpreter) + strlen(script->argument) < EXECUTABLE_HEAD_SIZE);
}

static void expect_elf(const struct executable *elf, const uint8_t *data, size_t size)
{
	char name[32];

	FUZZ_EXPECT(size >= 16 && memcmp(data, "\x7f" "ELF", 4) == 0);
	expect_text(elf->loader, sizeof(elf->loader));
	expect_text(elf->soname, sizeof(elf->soname));
	FUZZ_EXPECT(strlen(executable_machine_name(elf, name)) > 0);
	if (executable_is_static(elf))
		FUZZ_EXPECT(elf->is_native && !executable_is_loader(elf));
	if (elf->is_damaged || !elf->is_native)
		FUZZ_EXPECT(elf->loader[0] == '\0' && !executable_is_static(elf));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const names[] = { "connect", "getaddrinfo" };
	int fd = file_of(data, size);
	struct executable executable;
	uint32_t defined, wanted;

	FUZZ_EXPECT(executable_read(fd, &executable));
	expect_text(executable.interpreter, sizeof(executable.interpreter));
	expect_text(executable.argument, sizeof(executable.argument));
	if (executable.kind == EXECUTABLE_SCRIPT)
		expect_script(&executable, data, size);
	if (executable.kind == EXECUTABLE_ELF)
		expect_elf(&executable, data, size);
	if (symbols_find(fd, names, 2, &defined, &wanted))
		FUZZ_EXPECT((defined | wanted) < 4);
	return 0;
}
