/* SPDX-License-Identifier: MIT */
/* How descriptors are born, copied, moved and closed; what stays usable. */
#include <fcntl.h>
#include <linux/close_range.h>
#include <stdio.h>
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
	FILE *stream = fdopen(pair.client, "r+");
	char text[8] = "";

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

static void high_numbers(void)
{
	static const int numbers[] = { 1100, 5000, 60000, 300000 };
	struct rlimit limit = { 400000, 400000 };

	SAY(setrlimit(RLIMIT_NOFILE, &limit));
	for (size_t i = 0; i < COUNT(numbers); i++) {
		struct pair pair = pair_open();

		if (SAY(dup2(pair.client, numbers[i])) >= 0)
			use_copy(pair, numbers[i]);
		else
			pair_close(pair);
	}
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
		SCENE(high_numbers),
		SCENE(other_commands),
	};

	return scenes_play(scenes, COUNT(scenes), argc, argv);
}
