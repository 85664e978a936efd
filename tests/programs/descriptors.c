/* SPDX-License-Identifier: MIT */
/* How descriptors are born, copied, moved and closed; what stays usable. */
#include <fcntl.h>
#include <linux/close_range.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tests/programs/scene.h"

/* A whole exchange on a copy of the client's end. */
static void exchange(int fd, struct pair pair)
{
	char text[8];

	SAY(send(fd, "ping", 4, MSG_NOSIGNAL));
	server_answers(pair, 4);
	SAY(recv(fd, text, sizeof(text), 0));
}

/* The original goes, the copy lives on. */
static void use_copy(struct pair pair, int copy)
{
	SAY(close(pair.client));
	exchange(copy, pair);
	SAY(close(copy));
	SAY(close(copy));
	close(pair.server);
}

static void copy_dup(void)
{
	struct pair pair = pair_open();

	use_copy(pair, (int)SAY(dup(pair.client)));
}

static void copy_dup2(void)
{
	struct pair pair = pair_open();

	use_copy(pair, (int)SAY(dup2(pair.client, 100)));
}

static void copy_dup3(void)
{
	struct pair pair = pair_open();

	use_copy(pair, (int)SAY(dup3(pair.client, 100, O_CLOEXEC)));
}

static void copy_fcntl(void)
{
	struct pair pair = pair_open();

	use_copy(pair, (int)SAY(fcntl(pair.client, F_DUPFD, 100)));
	pair = pair_open();
	use_copy(pair, (int)SAY(fcntl(pair.client, F_DUPFD_CLOEXEC, 100)));
}

static void copy_fcntl64(void)
{
	struct pair pair = pair_open();

	use_copy(pair, (int)SAY(fcntl64(pair.client, F_DUPFD, 100)));
	pair = pair_open();
	use_copy(pair, (int)SAY(fcntl64(pair.client, F_DUPFD_CLOEXEC, 100)));
}

static void copy_syscall(void)
{
	struct pair pair = pair_open();

	use_copy(pair, (int)SAY(syscall(SYS_dup, pair.client)));
	pair = pair_open();
	use_copy(pair, (int)SAY(syscall(SYS_dup3, pair.client, 100, 0)));
	pair = pair_open();
	use_copy(pair, (int)SAY(syscall(SYS_fcntl, pair.client, F_DUPFD_CLOEXEC, 100)));
#ifdef SYS_dup2
	pair = pair_open();
	use_copy(pair, (int)SAY(syscall(SYS_dup2, pair.client, 100)));
#endif
}

static void copy_onto_itself(void)
{
	struct pair pair = pair_open();

	SAY(dup2(pair.client, pair.client));
	SAY(dup3(pair.client, pair.client, 0));
	exchange(pair.client, pair);
	pair_close(pair);
}

/* Nothing was replaced: the target goes on. */
static void copy_fails(void)
{
	struct pair pair = pair_open();

	SAY(dup2(-1, pair.client));
	SAY(dup2(999, pair.client));
	SAY(dup3(pair.server, pair.client, ~0));
	SAY(dup2(pair.client, -1));
	SAY(dup2(pair.client, 1 << 30));
	SAY(syscall(SYS_dup3, 999, pair.client, 0));
	exchange(pair.client, pair);
	pair_close(pair);
}

/* java closes a socket under its reader so. */
static void replaced_by_file(void)
{
	struct pair pair = pair_open();
	int file = must(open("/dev/null", O_RDWR), "open");
	char text[8];

	SAY(send(pair.client, "ping", 4, 0));
	SAY(dup2(file, pair.client));
	SAY(read(pair.client, text, sizeof(text)));
	SAY(write(pair.client, "ping", 4));
	SAY(send(pair.client, "ping", 4, MSG_NOSIGNAL));
	close(file);
	pair_close(pair);
}

static void closed_in_range(void)
{
	struct pair pair = pair_open();
	int last = pair.client > pair.server ? pair.client : pair.server;
	int first = pair.client + pair.server - last;

	SAY(close_range((unsigned int)last, (unsigned int)first, 0));
	SAY(close_range((unsigned int)first, (unsigned int)last, 1 << 20));
	SAY(close_range((unsigned int)first, (unsigned int)last, CLOSE_RANGE_CLOEXEC));
	exchange(pair.client, pair);
	SAY(close_range((unsigned int)first, (unsigned int)last, 0));
	SAY(send(pair.client, "ping", 4, MSG_NOSIGNAL));
	pair = pair_open();
	SAY(syscall(SYS_close_range, first, last, 0));
	SAY(send(pair.client, "ping", 4, MSG_NOSIGNAL));
}

static void closed_from(void)
{
	struct pair pair = pair_open();
	int first = pair.client < pair.server ? pair.client : pair.server;

	closefrom(first);
	SAY(send(pair.client, "ping", 4, MSG_NOSIGNAL));
	SAY(close(pair.client));
	SAY(close(pair.server));
}

static void closed_in_loop(void)
{
	struct pair pair = pair_open();
	int fd = pair.client < pair.server ? pair.client : pair.server;

	while (close(fd) == 0)
		fd++;
	SAY(close(fd));
	SAY(close(pair.client));
	SAY(close(-1));
	SAY(close(1 << 30));
}

/* The number of a closed connection is another file's. */
static void number_reused(void)
{
	struct pair pair = pair_open();
	int file;
	char text[8];

	SAY(send(pair.client, "ping", 4, 0));
	SAY(close(pair.client));
	file = (int)SAY(open("/dev/null", O_RDWR));
	SAY(write(file, "ping", 4));
	SAY(read(file, text, sizeof(text)));
	SAY(send(file, "ping", 4, 0));
	close(file);
	close(pair.server);
}

/* stdio closes it out of sight. */
static void left_to_stdio(void)
{
	struct pair pair = pair_open();
	FILE *stream;
	char text[8] = "";

	SAY((stream = fdopen(pair.client, "r+")) != NULL);
	fputs("ping", stream);
	fflush(stream);
	server_answers(pair, 4);
	SAY(fread(text, 1, 4, stream));
	SAY(fclose(stream));
	close(pair.server);
	SAY(fdopen(-1, "r") != NULL);
	pair = pair_open();
	exchange(pair.client, pair);
	pair_close(pair);
}

static void births(void)
{
	int ends[2];
	struct sockaddr_in address = address_listening();
	int fd = (int)SAY(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
	int accepted;

	SAY(connect(fd, as_sockaddr(&address), sizeof(address)));
	accepted = (int)SAY(accept4(listener(), NULL, NULL, SOCK_NONBLOCK));
	close(accepted);
	close(fd);
	SAY(socketpair(AF_UNIX, SOCK_STREAM, 0, ends));
	SAY(write(ends[0], "x", 1));
	close(ends[0]);
	close(ends[1]);
	SAY(socketpair(AF_INET, SOCK_STREAM, 0, ends));
	SAY(socket(AF_INET, SOCK_STREAM, 9999));
	SAY(accept(-1, NULL, NULL));
	SAY(syscall(SYS_accept4, -1, NULL, NULL, 0));
}

/* Programs that start by closing whatever there may be. */
static void close_one_by_one(void)
{
	int fd = 3;

	while (close(fd) == 0 || errno != EBADF || fd < 1023)
		fd++;
	printf("up to %d\n", fd);
}

static void close_far(void)
{
	int closed = 0, others = 0;

	for (int fd = 3; fd < 5000; fd++) {
		if (close(fd) == 0)
			closed++;
		else
			others += errno != EBADF;
	}
	printf("closed: %d, other errors: %d\n", closed, others);
}

static void close_from(void)
{
	closefrom(3);
}

static void close_all_in_range(void)
{
	SAY(close_range(3, ~0u, 0));
}

static void everything_closed(void)
{
	static void (*const ways[])(void) = {
		close_one_by_one, close_far, close_from, close_all_in_range,
	};
	struct sockaddr_in live = address_listening(), dead = address_refusing();

	for (size_t i = 0; i < COUNT(ways); i++) {
		struct pair idle = pair_open();
		pid_t child = fork();

		if (child == 0) {
			ways[i]();
			for (int j = 0; j < 3; j++) {
				int fd = (int)SAY(socket(AF_INET, SOCK_STREAM, 0));

				SAY(connect(fd, as_sockaddr(j % 2 ? &dead : &live), sizeof(live)));
				SAY(close(fd));
			}
			_exit(0);
		}
		child_ended("child", child);
		exchange(idle.client, idle);
		pair_close(idle);
	}
}

/* As many as wanted, or as can be had. */
static rlim_t raise_limit(rlim_t wanted)
{
	struct rlimit limit, more = { wanted, wanted };

	must(getrlimit(RLIMIT_NOFILE, &limit), "ask for a limit");
	if (limit.rlim_max < wanted && setrlimit(RLIMIT_NOFILE, &more) == 0)
		return wanted;
	limit.rlim_cur = limit.rlim_max < wanted ? limit.rlim_max : wanted;
	must(setrlimit(RLIMIT_NOFILE, &limit), "raise a limit");
	return limit.rlim_cur;
}

/* From there on, in steps: the descriptor is used as any other. */
static void use_numbers(int first, int last, int step)
{
	rlim_t limit = raise_limit((rlim_t)last + 1);

	for (int number = first; number <= last; number += step) {
		struct pair pair = pair_open();

		if ((rlim_t)number >= limit) {
			printf("cannot be tried: descriptor %d, the limit is %llu\n", number,
					(unsigned long long)limit);
			pair_close(pair);
			return;
		}
		SAY(dup2(pair.client, number));
		use_copy(pair, number);
		pair = pair_open();
		SAY(dup2(pair.client, number));
		SAY(close(pair.client));
		SAY(dup2(0, number));
		SAY(read(number, NULL, 0));
		SAY(close_range((unsigned int)number, ~0u, 0));
		close(pair.server);
	}
}

static void high_numbers(void)
{
	use_numbers(1100, 19100, 6000);
}

static void numbers_past_60000(void)
{
	use_numbers(60000, 70000, 2000);
}

static void numbers_past_the_table(void)
{
	use_numbers((1 << 20) - 1, (1 << 20) + 1, 1);
}

static void other_commands(void)
{
	struct pair pair = pair_open();
	struct flock lock = { .l_type = F_RDLCK, .l_whence = SEEK_SET };
	int file = must(open("/dev/null", O_RDWR), "open");

	SAY(fcntl(pair.client, F_GETFD));
	SAY(fcntl(pair.client, F_SETFD, FD_CLOEXEC));
	SAY(fcntl(pair.client, F_GETFD));
	SAY(fcntl(pair.client, F_SETFL, O_NONBLOCK) | (fcntl(pair.client, F_GETFL) & O_NONBLOCK));
	SAY(fcntl(file, F_OFD_SETLK, &lock));
	SAY(fcntl64(file, F_GETLK, &lock));
	SAY(fcntl(-1, F_DUPFD, 0));
	SAY(fcntl(pair.client, F_DUPFD, -1));
	close(file);
	pair_close(pair);
}

/* Not of `all`: prints the processor time of closing all there may be, in microseconds. */
static void time_of_closing(int last)
{
	struct rusage usage;

	for (int fd = 3; fd < last; fd++)
		close(fd);
	must(getrusage(RUSAGE_SELF, &usage), "ask for the time");
	printf("%ld\n", (usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1000000 +
			usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
}

int main(int argc, char *argv[])
{
	static const struct scene scenes[] = {
		SCENE(copy_dup),
		SCENE(copy_dup2),
		SCENE(copy_dup3),
		SCENE(copy_fcntl),
		SCENE(copy_fcntl64),
		SCENE(copy_syscall),
		SCENE(copy_onto_itself),
		SCENE(copy_fails),
		SCENE(replaced_by_file),
		SCENE(closed_in_range),
		SCENE(closed_from),
		SCENE(closed_in_loop),
		SCENE(number_reused),
		SCENE(left_to_stdio),
		SCENE(births),
		SCENE(everything_closed),
		SCENE(high_numbers),
		SCENE(numbers_past_60000),
		SCENE(numbers_past_the_table),
		SCENE(other_commands),
	};

	if (argc == 3 && !strcmp(argv[1], "time_of_closing")) {
		time_of_closing(atoi(argv[2]));
		return 0;
	}
	return scenes_play(scenes, COUNT(scenes), argc, argv);
}
