/* SPDX-License-Identifier: MIT */
#include "cli/process.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/arguments.h"
#include "cli/library.h"
#include "cli/mapping_line.h"
#include "cli/reader.h"
#include "cli/terminal.h"
#include "core/text.h"

#define FILE_MAX (4u << 20) /* of an environment */

static int process_open(const struct process *process, const char *file)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/%s", (int)process->pid, file);
	return open(path, O_RDONLY | O_CLOEXEC);
}

/* All of a file whose size nobody knows before; NULL where it cannot be read. One more byte, a NUL,
 * stands behind it. */
static char *process_slurp(const struct process *process, const char *file, size_t *ret_size)
{
	int fd = process_open(process, file);
	char *bytes = NULL;
	size_t size = 0;
	ssize_t length = 1;

	if (fd < 0)
		return NULL;
	while (length > 0 && size < FILE_MAX) {
		char *larger = realloc(bytes, size + 4096 + 1);

		if (!larger)
			terminal_die_without_memory();
		bytes = larger;
		length = read(fd, bytes + size, 4096);
		size += length > 0 ? (size_t)length : 0;
	}
	close(fd);
	if (length < 0) {
		free(bytes);
		return NULL;
	}
	bytes[size] = '\0';
	*ret_size = size;
	return bytes;
}

static const char *field(const char *status, const char *name)
{
	const char *found = strstr(status, name);

	return found ? found + strlen(name) : "";
}

/* The state letter, or 0 where there is no such process. */
static char read_status(struct process *process)
{
	unsigned int real = 0, effective = 0;
	size_t size;
	char *status = process_slurp(process, "status", &size);
	char state;

	if (!status)
		return '\0';
	state = *field(status, "\nState:\t");
	sscanf(field(status, "\nUid:"), "%u %u", &real, &effective);
	process->user = effective;
	process->threads = (unsigned int)strtoul(field(status, "\nThreads:"), NULL, 10);
	process->has_filter = strtoul(field(status, "\nSeccomp:"), NULL, 10) != 0;
	free(status);
	return state;
}

static void take_mapping(const struct mapping_line *line, struct process_mapping *ret)
{
	ret->is_there = true;
	ret->is_removed = line->is_removed;
	ret->start = line->start;
	ret->inode = line->inode;
	text_copy(ret->path, sizeof(ret->path), line->path);
}

/* False where we may not. */
static bool read_maps(struct process *process, bool *ret_is_empty)
{
	int fd = process_open(process, "maps");
	FILE *maps = fd >= 0 ? fdopen(fd, "r") : NULL;
	struct mapping_line mapping;
	size_t capacity = 0;
	char *line = NULL;

	*ret_is_empty = true;
	if (!maps)
		return false;
	while (getline(&line, &capacity, maps) > 0) {
		*ret_is_empty = false;
		if (!mapping_line_parse(line, &mapping))
			continue;
		if (!process->library.is_there &&
				strcmp(arguments_base_name(mapping.path), LIBRARY_NAME) == 0)
			take_mapping(&mapping, &process->library);
		else if (!process->segment.is_there && mapping_line_fits_segment(&mapping))
			take_mapping(&mapping, &process->segment);
	}
	free(line);
	fclose(maps);
	return true;
}

static void read_auxiliary(struct process *process)
{
	size_t size;
	char *bytes = process_slurp(process, "auxv", &size);

	for (size_t at = 0; bytes && at + sizeof(ElfW(auxv_t)) <= size;
			at += sizeof(ElfW(auxv_t))) {
		ElfW(auxv_t) entry;

		memcpy(&entry, bytes + at, sizeof(entry));
		if (entry.a_type == AT_SECURE)
			process->is_secured = entry.a_un.a_val != 0;
	}
	free(bytes);
}

static bool has_our_namespace(const struct process *process, const char *name)
{
	char path[64];
	struct stat theirs, ours;

	snprintf(path, sizeof(path), "/proc/%d/ns/%s", (int)process->pid, name);
	if (stat(path, &theirs))
		return false;
	snprintf(path, sizeof(path), "/proc/self/ns/%s", name);
	return stat(path, &ours) == 0 && theirs.st_ino == ours.st_ino;
}

static void read_names(struct process *process)
{
	size_t size;
	char *words = process_slurp(process, "cmdline", &size);
	char path[64];
	ssize_t length;

	if (words)
		text_copy(process->name, sizeof(process->name), arguments_base_name(words));
	free(words);
	snprintf(path, sizeof(path), "/proc/%d/exe", (int)process->pid);
	length = readlink(path, process->program, sizeof(process->program) - 1);
	process->program[length > 0 ? length : 0] = '\0';
}

enum process_answer process_read(pid_t pid, struct process *process)
{
	char state, *entries;
	bool is_empty;
	size_t size;

	*process = (struct process){ .pid = pid };
	state = read_status(process);
	if (state == '\0' || state == 'Z' || state == 'X')
		return PROCESS_GONE;
	if (!read_maps(process, &is_empty))
		return errno == EACCES || errno == EPERM ? PROCESS_CLOSED : PROCESS_GONE;
	if (is_empty)
		return PROCESS_KERNEL;
	entries = process_slurp(process, "environ", &size);
	if (!entries)
		return PROCESS_CLOSED;
	environment_read(&process->environment, entries, size);
	free(entries);
	read_auxiliary(process);
	read_names(process);
	process->has_our_files = has_our_namespace(process, "mnt");
	process->has_our_pids = has_our_namespace(process, "pid");
	return PROCESS_READ;
}

static bool is_segment(const struct segment *segment)
{
	static struct segment blank;

	segment_format(&blank);
	return memcmp(segment->header.magic, blank.header.magic, sizeof(blank.header.magic)) == 0 &&
			segment->header.version == blank.header.version &&
			segment->header.size == blank.header.size &&
			segment->header.cells == blank.header.cells &&
			segment->header.cell_size == blank.header.cell_size;
}

static bool read_mapped_file(const struct process *process, const char *file, struct segment *ret)
{
	int fd = open(file, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	struct stat status;
	bool is_read;

	if (fd < 0)
		return false;
	is_read = fstat(fd, &status) == 0 && status.st_ino == process->segment.inode &&
			reader_bytes(fd, 0, ret, sizeof(*ret));
	close(fd);
	return is_read;
}

/* Where it is no file any more, or never was; this may be forbidden where the file is not. */
static bool read_memory(const struct process *process, struct segment *ret)
{
	int fd = process_open(process, "mem");
	bool is_read;

	if (fd < 0)
		return false;
	is_read = reader_bytes(fd, process->segment.start, ret, sizeof(*ret));
	close(fd);
	return is_read;
}

bool process_read_segment(const struct process *process, const char *file, struct segment *ret)
{
	if (!process->segment.is_there)
		return false;
	if (!(file && read_mapped_file(process, file, ret)) && !read_memory(process, ret))
		return false;
	return is_segment(ret);
}

void process_path(const struct process *process, const char *path, char *ret)
{
	snprintf(ret, PATH_MAX, "/proc/%d/root%s", (int)process->pid, path);
}

void process_finish(struct process *process)
{
	environment_finish(&process->environment);
}
