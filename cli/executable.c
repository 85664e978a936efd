/* SPDX-License-Identifier: MIT */
#include "cli/executable.h"

#include <elf.h>
#include <link.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/reader.h"
#include "core/text.h"

#define HEADERS_SIZE 65536 /* of program headers: the kernel takes no more */
#define DYNAMIC_SIZE 65536
#define NOTE_SIZE 4096
#define NEEDED_MAX 256
#define SECTIONS_MAX 4096
#define SECTION_NAMES_SIZE 65536
#define NATIVE_DATA (__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? ELFDATA2LSB : ELFDATA2MSB)
#define NATIVE_CLASS (sizeof(void *) == 8 ? ELFCLASS64 : ELFCLASS32)

struct file {
	int fd;
	ElfW(Ehdr) header;
	ElfW(Phdr) *programs;
	size_t program_count;
};

static bool starts_with(const char *text, const char *start)
{
	return strncmp(text, start, strlen(start)) == 0;
}

/* Where in the file the loader would find what it maps at `address`. */
static bool file_offset(const struct file *file, uint64_t address, uint64_t *ret)
{
	for (size_t i = 0; i < file->program_count; i++) {
		const ElfW(Phdr) *program = &file->programs[i];

		if (program->p_type != PT_LOAD || address < program->p_vaddr ||
				address - program->p_vaddr >= program->p_filesz)
			continue;
		if ((uint64_t)program->p_offset > UINT64_MAX - (address - program->p_vaddr))
			return false;
		*ret = program->p_offset + (address - program->p_vaddr);
		return true;
	}
	return false;
}

static bool is_part_of_libc(const char *library)
{
	return starts_with(library, "libc.so.") || starts_with(library, "libpthread.so.") ||
			starts_with(library, "libdl.so.") ||
			starts_with(library, "libresolv.so.") || starts_with(library, "ld-linux") ||
			starts_with(library, "ld64.so.");
}

static void take_needed(struct executable *executable, const char *library)
{
	if (strcmp(library, "libc.so.6") == 0)
		executable->needs_libc = true;
	if (!is_part_of_libc(library))
		executable->needs_others = true;
	if (starts_with(library, "libasan.so") || starts_with(library, "libclang_rt.asan"))
		executable->needs_asan = true;
}

static void take_dynamic(const struct file *file, struct executable *executable,
		const ElfW(Dyn) *entries, size_t count)
{
	uint64_t names = 0, offset;
	char name[EXECUTABLE_SONAME_SIZE];
	size_t needed = 0;

	for (size_t i = 0; i < count && entries[i].d_tag != DT_NULL; i++) {
		if (entries[i].d_tag == DT_STRTAB)
			names = entries[i].d_un.d_ptr;
	}
	if (!file_offset(file, names, &offset))
		return;
	for (size_t i = 0; i < count && entries[i].d_tag != DT_NULL && needed < NEEDED_MAX; i++) {
		bool is_soname = entries[i].d_tag == DT_SONAME;

		if ((entries[i].d_tag != DT_NEEDED && !is_soname) ||
				entries[i].d_un.d_val > UINT64_MAX - offset ||
				!reader_text(file->fd, offset + entries[i].d_un.d_val, name,
						sizeof(name)))
			continue;
		needed++;
		if (is_soname)
			text_copy(executable->soname, sizeof(executable->soname), name);
		else
			take_needed(executable, name);
	}
}

static void read_dynamic(const struct file *file, struct executable *executable,
		const ElfW(Phdr) *program)
{
	size_t size = program->p_filesz < DYNAMIC_SIZE ? program->p_filesz : DYNAMIC_SIZE;
	ElfW(Dyn) *entries = reader_copy(file->fd, program->p_offset, size);

	if (entries)
		take_dynamic(file, executable, entries, size / sizeof(*entries));
	free(entries);
}

/* Go writes its build id as a note of its own. */
static void read_note(const struct file *file, struct executable *executable,
		const ElfW(Phdr) *program)
{
	size_t size = program->p_filesz < NOTE_SIZE ? program->p_filesz : NOTE_SIZE;
	uint8_t *notes = reader_copy(file->fd, program->p_offset, size);
	size_t at = 0;

	while (notes && size - at > sizeof(ElfW(Nhdr))) {
		ElfW(Nhdr) note;
		uint64_t length;

		memcpy(&note, notes + at, sizeof(note));
		length = sizeof(note) + (((uint64_t)note.n_namesz + 3) & ~3ull) +
				(((uint64_t)note.n_descsz + 3) & ~3ull);
		if (length > size - at)
			break;
		if (note.n_namesz == sizeof("Go") &&
				memcmp(notes + at + sizeof(note), "Go", sizeof("Go")) == 0)
			executable->is_go = true;
		at += length;
	}
	free(notes);
}

static bool read_loader(const struct file *file, struct executable *executable,
		const ElfW(Phdr) *program)
{
	size_t size = program->p_filesz;

	return size >= 2 && size <= sizeof(executable->loader) &&
			reader_bytes(file->fd, program->p_offset, executable->loader, size) &&
			executable->loader[size - 1] == '\0';
}

static void read_programs(const struct file *file, struct executable *executable)
{
	for (size_t i = 0; i < file->program_count; i++) {
		const ElfW(Phdr) *program = &file->programs[i];

		if (program->p_type == PT_DYNAMIC)
			read_dynamic(file, executable, program);
		else if (program->p_type == PT_NOTE)
			read_note(file, executable, program);
		else if (program->p_type == PT_INTERP && !read_loader(file, executable, program))
			executable->is_damaged = true;
	}
	if (executable->is_damaged)
		executable->loader[0] = '\0';
}

/* A build id may be left out; the table that says which Go it was is always there, but stands in
 * the sections alone. */
static void read_sections(const struct file *file, struct executable *executable)
{
	size_t count = file->header.e_shnum;
	ElfW(Shdr) *sections = NULL;
	char *names = NULL;
	size_t size;

	if (count == 0 || count > SECTIONS_MAX || file->header.e_shstrndx >= count ||
			file->header.e_shentsize != sizeof(*sections))
		return;
	sections = reader_copy(file->fd, file->header.e_shoff, count * sizeof(*sections));
	if (!sections)
		return;
	size = sections[file->header.e_shstrndx].sh_size;
	if (size > 0 && size <= SECTION_NAMES_SIZE)
		names = reader_copy(file->fd, sections[file->header.e_shstrndx].sh_offset, size);
	for (size_t i = 0; names && i < count; i++) {
		size_t at = sections[i].sh_name;

		if (at < size && memchr(names + at, '\0', size - at) &&
				(strcmp(names + at, ".go.buildinfo") == 0 ||
						strcmp(names + at, ".note.go.buildid") == 0))
			executable->is_go = true;
	}
	free(names);
	free(sections);
}

/* UPX writes its mark right behind the program headers, AppImage into the unused bytes of the
 * first. */
static bool is_packed(const struct file *file)
{
	const size_t mark = 4; /* behind a checksum */
	uint64_t end = file->header.e_phoff + file->program_count * sizeof(ElfW(Phdr));
	char bytes[8];

	if (memcmp(file->header.e_ident + EI_ABIVERSION, "AI", 2) == 0)
		return true;
	return reader_bytes(file->fd, end, bytes, sizeof(bytes)) &&
			memcmp(bytes + mark, "UPX!", 4) == 0;
}

static void read_elf(int fd, struct executable *executable)
{
	struct file file = { .fd = fd };
	size_t size;

	executable->is_damaged = true;
	if (!reader_bytes(fd, 0, &file.header, sizeof(file.header)))
		return;
	executable->machine = file.header.e_machine;
	if (executable->elf_data != NATIVE_DATA)
		executable->machine = (uint16_t)__builtin_bswap16(file.header.e_machine);
	executable->is_native = executable->elf_data == NATIVE_DATA &&
			executable->elf_class == NATIVE_CLASS;
	if (!executable->is_native) {
		executable->is_damaged = false;
		return;
	}
	size = (size_t)file.header.e_phnum * sizeof(ElfW(Phdr));
	if (size == 0 || size > HEADERS_SIZE || file.header.e_phentsize != sizeof(ElfW(Phdr)) ||
			(file.header.e_type != ET_EXEC && file.header.e_type != ET_DYN))
		return;
	file.programs = reader_copy(fd, file.header.e_phoff, size);
	if (!file.programs)
		return;
	file.program_count = file.header.e_phnum;
	executable->is_damaged = false;
	read_programs(&file, executable);
	read_sections(&file, executable);
	executable->is_packed = is_packed(&file);
	free(file.programs);
}

static bool is_blank(char byte)
{
	return byte == ' ' || byte == '\t';
}

/* As the kernel reads it: an interpreter, and all the rest of the line as one argument. A path that
 * may be cut off, or none, makes no script. */
static bool read_script(const char head[EXECUTABLE_HEAD_SIZE], struct executable *executable)
{
	const char *end = memchr(head, '\n', EXECUTABLE_HEAD_SIZE);
	const char *last = head + EXECUTABLE_HEAD_SIZE - 1;
	const char *name = head + 2, *name_end;
	bool is_cut = !end;

	end = end ? end : last;
	while (end > name && is_blank(end[-1]))
		end--;
	while (name < end && is_blank(*name))
		name++;
	for (name_end = name; name_end < end && !is_blank(*name_end) && *name_end != '\0';)
		name_end++;
	if (name == name_end || (is_cut && name_end == last && !is_blank(*last) && *last != '\0'))
		return false;
	memcpy(executable->interpreter, name, (size_t)(name_end - name));
	if (name_end < end && *name_end != '\0') {
		for (name = name_end; name < end && is_blank(*name);)
			name++;
		memcpy(executable->argument, name, strnlen(name, (size_t)(end - name)));
	}
	return true;
}

bool executable_read(int fd, struct executable *ret)
{
	char head[EXECUTABLE_HEAD_SIZE] = { 0 };
	ssize_t length = pread(fd, head, sizeof(head), 0);

	if (length < 0)
		return false;
	*ret = (struct executable){ .kind = EXECUTABLE_OTHER };
	if (length >= EI_NIDENT && memcmp(head, ELFMAG, SELFMAG) == 0) {
		ret->kind = EXECUTABLE_ELF;
		ret->elf_class = (uint8_t)head[EI_CLASS];
		ret->elf_data = (uint8_t)head[EI_DATA];
		read_elf(fd, ret);
	} else if (length >= 2 && memcmp(head, "#!", 2) == 0 && read_script(head, ret)) {
		ret->kind = EXECUTABLE_SCRIPT;
	}
	return true;
}

bool executable_is_loader(const struct executable *executable)
{
	const char *name = executable->soname;

	return executable->loader[0] == '\0' &&
			(starts_with(name, "ld-") || starts_with(name, "ld64.") ||
					starts_with(name, "ld.so"));
}

bool executable_is_static(const struct executable *executable)
{
	return executable->kind == EXECUTABLE_ELF && executable->is_native &&
			!executable->is_damaged && executable->loader[0] == '\0' &&
			!executable_is_loader(executable);
}

const char *executable_machine_name(const struct executable *executable, char *text)
{
	static const struct {
		uint16_t machine;
		const char *name;
	} names[] = {
		{ EM_386, "i386" },
		{ EM_X86_64, "x86-64" },
		{ EM_ARM, "ARM" },
		{ EM_AARCH64, "AArch64" },
		{ EM_RISCV, "RISC-V" },
		{ EM_PPC64, "PowerPC64" },
		{ EM_S390, "S/390" },
		{ EM_MIPS, "MIPS" },
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (names[i].machine == executable->machine)
			return names[i].name;
	}
	snprintf(text, 32, "machine %u", (unsigned int)executable->machine);
	return text;
}
