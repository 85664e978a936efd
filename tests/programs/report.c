/* SPDX-License-Identifier: MIT */
#include "tests/programs/report.h"

#include <dirent.h>
#include <fcntl.h>
#include <locale.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

extern char **environ;

/* Inodes, and the numbers that some links have, differ from run to run. */
static void say_descriptor(int fd, int flags)
{
	char path[32], link[256];
	ssize_t length;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	length = readlink(path, link, sizeof(link) - 1);
	link[length < 0 ? 0 : length] = '\0';
	link[strcspn(link, "[")] = '\0';
	printf("   %d: %s%s, flags %#o\n", fd, link, flags & FD_CLOEXEC ? ", closed by exec" : "",
			fcntl(fd, F_GETFL));
}

static void say_status(const char *const *wanted, size_t count)
{
	char line[256];
	FILE *status = fopen("/proc/self/status", "re");

	while (status && fgets(line, sizeof(line), status))
		for (size_t i = 0; i < count; i++)
			if (!strncmp(line, wanted[i], strlen(wanted[i])))
				printf("   %s", line);
	if (status)
		fclose(status);
}

#define SAY_STATUS(...) \
	say_status((const char *const[]){ __VA_ARGS__ }, \
			sizeof((const char *const[]){ __VA_ARGS__ }) / sizeof(char *))

void report_state(void)
{
	DIR *directory = opendir("/proc/self/fd");
	struct dirent *entry;

	/* The kernel lists them in order. */
	while (directory && (entry = readdir(directory))) {
		int fd = atoi(entry->d_name);

		if (entry->d_name[0] != '.' && fd != dirfd(directory))
			say_descriptor(fd, fcntl(fd, F_GETFD));
	}
	if (directory)
		closedir(directory);
	SAY_STATUS("Threads:", "SigPnd:", "SigBlk:");
}

static int by_text(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static void say_environment(void)
{
	char *lines[256];
	size_t count = 0;

	for (char **at = environ; *at && count < sizeof(lines) / sizeof(lines[0]); at++)
		if (strncmp(*at, "SHUNT_", 6) && strncmp(*at, "LD_PRELOAD=", 11))
			lines[count++] = *at;
	qsort(lines, count, sizeof(lines[0]), by_text);
	for (size_t i = 0; i < count; i++)
		printf("   %s\n", lines[i]);
}

static void say_limits(void)
{
	struct rlimit limit;

	for (int i = 0; i < RLIM_NLIMITS; i++) {
		if (!getrlimit((__rlimit_resource_t)i, &limit))
			printf("   limit %d: %llu of %llu\n", i, (unsigned long long)limit.rlim_cur,
					(unsigned long long)limit.rlim_max);
	}
}

void report_process(void)
{
	char directory[4096];
	mode_t mask = umask(0);

	umask(mask);
	printf("-- the process\n");
	SAY_STATUS("SigIgn:", "SigCgt:", "ShdPnd:", "Seccomp:", "NoNewPrivs:");
	say_environment();
	say_limits();
	printf("   random: %ld %ld %ld, rand: %d, drand48: %f\n", random(), random(), random(),
			rand(), drand48());
	printf("   locale: %s, umask: %o, directory: %s\n", setlocale(LC_ALL, NULL), mask,
			getcwd(directory, sizeof(directory)));
}
