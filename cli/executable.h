/* SPDX-License-Identifier: MIT */
/*
 * What a file is that somebody wants to execute, as far as the kernel and the loader will see it.
 * Any bytes are a legal file: every offset and length in it is checked, and little of it is read.
 */
#ifndef SHUNT_CLI_EXECUTABLE_H
#define SHUNT_CLI_EXECUTABLE_H

#include <stdbool.h>
#include <stdint.h>

#define EXECUTABLE_HEAD_SIZE 256 /* what the kernel reads of a script */
#define EXECUTABLE_LOADER_SIZE 4096
#define EXECUTABLE_SONAME_SIZE 64

enum executable_kind {
	EXECUTABLE_ELF,
	EXECUTABLE_SCRIPT, /* #! and an interpreter */
	EXECUTABLE_OTHER,  /* the kernel refuses it; execvp() and shells give it to /bin/sh */
};

struct executable {
	enum executable_kind kind;
	/* ELF. */
	uint8_t elf_class; /* ELFCLASS64, ... */
	uint8_t elf_data;
	uint16_t machine;
	bool is_native;  /* class and byte order are those of this program; the rest is read then */
	bool is_damaged; /* its headers lead nowhere */
	char loader[EXECUTABLE_LOADER_SIZE];
	char soname[EXECUTABLE_SONAME_SIZE];
	bool needs_libc;   /* names libc.so.6 itself */
	bool needs_others; /* names libraries that are not libc's */
	bool needs_asan;   /* names a shared library of AddressSanitizer */
	bool is_go;
	bool is_packed; /* a stub that unpacks another program: UPX, AppImage */
	/* Script. */
	char interpreter[EXECUTABLE_HEAD_SIZE];
	char argument[EXECUTABLE_HEAD_SIZE]; /* "" for none */
};

/* False, with errno, where the file cannot be read. Moves no offset. */
bool executable_read(int fd, struct executable *ret);

/* Is it started without a loader, so that nothing is preloaded? A loader itself is not. */
bool executable_is_static(const struct executable *executable);

/* Is it a loader of programs, such as ld-linux-x86-64.so.2? By the name that it has inside. */
bool executable_is_loader(const struct executable *executable);

/* "x86-64", "AArch64", "machine 123"; static or in `text` of at least 32 bytes. */
const char *executable_machine_name(const struct executable *executable, char *text);

#endif
