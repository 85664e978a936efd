/* SPDX-License-Identifier: MIT */
/* One running process, as /proc shows it: does it have the library, and which segment. */
#ifndef SHUNT_CLI_PROCESS_H
#define SHUNT_CLI_PROCESS_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "cli/environment.h"
#include "core/segment.h"

enum process_answer {
	PROCESS_READ,
	PROCESS_GONE,    /* or it has ended, and nobody has asked how */
	PROCESS_CLOSED,  /* we may not look into it */
	PROCESS_KERNEL,  /* a thread of the kernel's */
};

/* Something that it has mapped. */
struct process_mapping {
	bool is_there;
	bool is_removed; /* no file has that name any more, or never had */
	uint64_t start, inode;
	char path[PATH_MAX];
};

struct process {
	pid_t pid;
	uid_t user; /* the effective one, as the segment's owner */
	unsigned int threads;
	bool has_filter; /* of seccomp */
	bool is_secured; /* its loader obeyed no LD_PRELOAD */
	bool has_our_files, has_our_pids; /* the same mount, the same pid namespace */
	char program[PATH_MAX];           /* the file; "" where it is not told */
	char name[NAME_MAX + 1];          /* as the library knows it */
	struct environment environment;   /* that it began with, unless it wrote over it */
	struct process_mapping library, segment;
};

enum process_answer process_read(pid_t pid, struct process *process);

/* A copy of the segment that it has mapped; `file` is where that should be, as process_path() gives
 * it, or NULL. False where we may not read it, or there is none. */
bool process_read_segment(const struct process *process, const char *file, struct segment *ret);

/* "/proc/PID/root" and the path: as the process sees the file. Into `ret` of PATH_MAX. */
void process_path(const struct process *process, const char *path, char *ret);

void process_finish(struct process *process);

#endif
