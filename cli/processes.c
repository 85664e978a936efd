/* SPDX-License-Identifier: MIT */
#include "cli/processes.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/mapping_line.h"

static bool directory_has(const char *path, size_t length, ino_t inode)
{
	char name[PATH_MAX];
	struct dirent *entry;
	DIR *directory;
	bool is_found = false;

	snprintf(name, sizeof(name), "%.*s", (int)length, path);
	directory = opendir(name);
	while (directory && !is_found && (entry = readdir(directory)))
		is_found = entry->d_ino == inode;
	if (directory)
		closedir(directory);
	return is_found;
}

/* Was this removed file the segment at `path`? The process that made it knows it by the name that a
 * file has before it is linked into its place: "#123" in the same directory. One that still is
 * there is a segment in use, under another name. */
static bool mapping_was_at(const struct mapping_line *mapping, const char *path)
{
	const char *slash = strrchr(path, '/');
	size_t directory = slash ? (size_t)(slash - path) + 1 : 0;

	if (!mapping->is_removed)
		return false;
	if (strcmp(mapping->path, path) == 0)
		return true;
	return strncmp(mapping->path, path, directory) == 0 && mapping->path[directory] == '#' &&
		!directory_has(path, directory, mapping->inode);
}

static bool is_removed_segment(char *line, const char *path, ino_t inode)
{
	struct mapping_line mapping;

	return mapping_line_parse(line, &mapping) && mapping.inode != inode &&
			mapping_line_fits_segment(&mapping) && mapping_was_at(&mapping, path);
}

static bool process_maps_removed(const char *pid, const char *path, ino_t inode)
{
	char maps_path[64];
	char *line = NULL;
	size_t capacity = 0;
	bool is_found = false;
	FILE *maps;

	snprintf(maps_path, sizeof(maps_path), "/proc/%.20s/maps", pid);
	maps = fopen(maps_path, "re");
	if (!maps)
		return false;
	while (!is_found && getline(&line, &capacity, maps) > 0)
		is_found = is_removed_segment(line, path, inode);
	free(line);
	fclose(maps);
	return is_found;
}

/* The same user, and the same view of the file system: elsewhere the path names another file. */
static bool process_is_ours(const char *pid)
{
	char path[64];
	struct stat process, theirs, ours;

	snprintf(path, sizeof(path), "/proc/%.20s", pid);
	if (stat(path, &process) != 0 || process.st_uid != geteuid())
		return false;
	snprintf(path, sizeof(path), "/proc/%.20s/ns/mnt", pid);
	if (stat(path, &theirs) != 0 || stat("/proc/self/ns/mnt", &ours) != 0)
		return false;
	return theirs.st_ino == ours.st_ino;
}

size_t processes_on_removed_segment(const char *path, ino_t inode, pid_t *ret, size_t most)
{
	DIR *directory = opendir("/proc");
	struct dirent *entry;
	size_t count = 0;

	if (!directory)
		return 0;
	while ((entry = readdir(directory))) {
		pid_t pid = (pid_t)strtol(entry->d_name, NULL, 10);

		if (pid <= 0 || pid == getpid() || !process_is_ours(entry->d_name) ||
				!process_maps_removed(entry->d_name, path, inode))
			continue;
		if (count < most)
			ret[count] = pid;
		count++;
	}
	closedir(directory);
	return count;
}

/* The fields of /proc/PID/stat behind the name in parentheses, which may hold anything. */
static bool read_stat(uint32_t pid, char *ret_state, unsigned long *ret_threads,
		unsigned long long *ret_start)
{
	char path[64], text[512];
	const char *behind;
	FILE *file;
	size_t size;

	snprintf(path, sizeof(path), "/proc/%u/stat", pid);
	file = fopen(path, "re");
	if (!file)
		return false;
	size = fread(text, 1, sizeof(text) - 1, file);
	fclose(file);
	text[size] = '\0';
	behind = strrchr(text, ')');
	return behind && sscanf(behind, ") %c %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s "
			"%*s %*s %*s %lu %*s %llu", ret_state, ret_threads, ret_start) == 3;
}

bool process_is_alive(struct seat_owner owner)
{
	unsigned long long start = 0;
	unsigned long threads = 0;
	char state = '\0';

	if (kill((pid_t)owner.pid, 0) != 0 && errno == ESRCH)
		return false;
	if (!read_stat(owner.pid, &state, &threads, &start))
		return true;
	/* A leader that left by pthread_exit() looks like one, too, but has more threads. */
	if ((state == 'Z' || state == 'X') && threads <= 1)
		return false;
	return !owner.start || owner.start == (start & ((1u << SEAT_START_BITS) - 1));
}
