/* SPDX-License-Identifier: MIT */
/*
 * Numbers that change hands: a connection goes by every way there is, also out of the library's
 * sight, and what is born by every way there is gets its number. Between the two a connect is
 * refused, so that a rule may open its circuit there: what is no connection is never refused.
 */
#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/uio.h>
#include <unistd.h>
#include <utmp.h>

#include "tests/programs/scene.h"

#define QUIETLY (MSG_DONTWAIT | MSG_NOSIGNAL)

static char text[64];
static struct iovec room = { text, sizeof(text) };
static struct iovec ping = { (void *)"ping", 4 };
static int other_end = -1;       /* of what was born as two */
static int file = -1;            /* to be copied and passed */
static int hole = -1;            /* the number that the connection had */

/* Ways to be born. Each returns the lowest free number. */

static int born_open(void)
{
	return open("/dev/null", O_RDWR);
}

static int born_openat(void)
{
	return openat(AT_FDCWD, "/dev/zero", O_RDWR);
}

static int born_creat(void)
{
	return creat("born", 0600);
}

static int born_fopen(void)
{
	return fileno(fopen("/dev/null", "r+"));
}

static int born_tmpfile(void)
{
	return fileno(tmpfile());
}

static int born_opendir(void)
{
	return dirfd(opendir("/"));
}

static int born_pipe(void)
{
	int ends[2];

	must(pipe(ends), "make a pipe");
	other_end = ends[1];
	return ends[0];
}

static int born_pipe2(void)
{
	int ends[2];

	must(pipe2(ends, O_NONBLOCK), "make a pipe");
	other_end = ends[1];
	return ends[0];
}

static int born_socketpair(void)
{
	int ends[2];

	must(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), "make a pair");
	other_end = ends[1];
	return ends[0];
}

/* As of a plug-in with a libc of its own. */
static int born_unseen_pair(void)
{
	int (*socketpair_of_libc)(int, int, int, int[2]) = unseen("socketpair");
	int ends[2];

	must(socketpair_of_libc(AF_UNIX, SOCK_STREAM, 0, ends), "make a pair");
	other_end = ends[1];
	return ends[0];
}

static int born_eventfd(void)
{
	return eventfd(1, 0);
}

static int born_epoll(void)
{
	return epoll_create1(0);
}

static int born_timerfd(void)
{
	return timerfd_create(CLOCK_MONOTONIC, 0);
}

static int born_signalfd(void)
{
	sigset_t none;

	sigemptyset(&none);
	return signalfd(-1, &none, 0);
}

static int born_inotify(void)
{
	return inotify_init1(0);
}

static int born_memfd(void)
{
	return memfd_create("born", 0);
}

static int born_dup(void)
{
	return dup(file);
}

static int born_fcntl(void)
{
	return fcntl(file, F_DUPFD_CLOEXEC, 0);
}

static int born_dup2(void)
{
	return dup2(file, hole);
}

static int born_dup3(void)
{
	return dup3(file, hole, O_CLOEXEC);
}

static int born_syscall_dup3(void)
{
	return (int)syscall(SYS_dup3, file, hole, 0);
}

static int born_syscall_dup(void)
{
	return (int)syscall(SYS_dup, file);
}

static int born_syscall_open(void)
{
	return (int)syscall(SYS_openat, AT_FDCWD, "/dev/null", O_RDWR);
}

static int born_datagram(void)
{
	return socket(AF_INET, SOCK_DGRAM, 0);
}

static int born_unix(void)
{
	return socket(AF_UNIX, SOCK_STREAM, 0);
}

static int born_stream(void)
{
	return socket(AF_INET, SOCK_STREAM, 0);
}

static int born_syscall_socket(void)
{
	return (int)syscall(SYS_socket, AF_UNIX, SOCK_DGRAM, 0);
}

/* What the kernel writes a passed descriptor into. */
union control {
	struct cmsghdr header;
	char bytes[CMSG_SPACE(sizeof(int))];
};

static void pass(int to, int fd)
{
	union control control = { { CMSG_LEN(sizeof(int)), SOL_SOCKET, SCM_RIGHTS } };
	struct msghdr message = { .msg_iov = &ping, .msg_iovlen = 1, .msg_control = &control,
		.msg_controllen = sizeof(control) };

	*(int *)CMSG_DATA(&control.header) = fd;
	must((int)sendmsg(to, &message, 0), "pass a descriptor");
}

static int passed_in(const struct msghdr *message)
{
	return *(const int *)CMSG_DATA(CMSG_FIRSTHDR(message));
}

static int channel[2];

static int born_recvmsg(void)
{
	union control control;
	struct msghdr message = { .msg_iov = &room, .msg_iovlen = 1, .msg_control = &control,
		.msg_controllen = sizeof(control) };

	pass(channel[0], file);
	must((int)recvmsg(channel[1], &message, MSG_CMSG_CLOEXEC), "take a descriptor");
	return passed_in(&message);
}

static int born_recvmmsg(void)
{
	union control control;
	struct mmsghdr message = { .msg_hdr = { .msg_iov = &room, .msg_iovlen = 1,
		.msg_control = &control, .msg_controllen = sizeof(control) } };

	pass(channel[0], file);
	must(recvmmsg(channel[1], &message, 1, 0, NULL), "take a descriptor");
	return passed_in(&message.msg_hdr);
}

static int born_syscall_recvmsg(void)
{
	union control control;
	struct msghdr message = { .msg_iov = &room, .msg_iovlen = 1, .msg_control = &control,
		.msg_controllen = sizeof(control) };

	pass(channel[0], file);
	must((int)syscall(SYS_recvmsg, channel[1], &message, 0), "take a descriptor");
	return passed_in(&message);
}

static const struct birth {
	const char *name;
	int (*make)(void);
} births[] = {
	{ "open", born_open },
	{ "openat", born_openat },
	{ "creat", born_creat },
	{ "fopen", born_fopen },
	{ "tmpfile", born_tmpfile },
	{ "opendir", born_opendir },
	{ "pipe", born_pipe },
	{ "pipe2", born_pipe2 },
	{ "socketpair", born_socketpair },
	{ "socketpair out of sight", born_unseen_pair },
	{ "eventfd", born_eventfd },
	{ "epoll", born_epoll },
	{ "timerfd", born_timerfd },
	{ "signalfd", born_signalfd },
	{ "inotify", born_inotify },
	{ "memfd", born_memfd },
	{ "dup", born_dup },
	{ "dup2", born_dup2 },
	{ "dup3", born_dup3 },
	{ "fcntl", born_fcntl },
	{ "syscall dup", born_syscall_dup },
	{ "syscall dup3", born_syscall_dup3 },
	{ "syscall open", born_syscall_open },
	{ "datagram socket", born_datagram },
	{ "unix socket", born_unix },
	{ "stream socket", born_stream },
	{ "syscall socket", born_syscall_socket },
	{ "recvmsg", born_recvmsg },
	{ "recvmmsg", born_recvmmsg },
	{ "syscall recvmsg", born_syscall_recvmsg },
};

/* Uses of a number; whichever comes first meets what was left of the connection. */

static void use_write(int fd)
{
	SAY(write(fd, "ping", 4));
}

static void use_read(int fd)
{
	SAY(read(fd, text, 8));
}

static void use_send(int fd)
{
	SAY(send(fd, "ping", 4, QUIETLY));
}

static void use_recv(int fd)
{
	SAY(recv(fd, text, sizeof(text), MSG_DONTWAIT));
}

static void use_peek(int fd)
{
	SAY(recv(fd, text, sizeof(text), MSG_DONTWAIT | MSG_PEEK));
}

static void use_vectors(int fd)
{
	SAY(writev(fd, &ping, 1));
	SAY(readv(fd, &room, 1));
}

static void use_readv(int fd)
{
	SAY(readv(fd, &room, 1));
}

static void use_sendmsg(int fd)
{
	struct msghdr message = { .msg_iov = &ping, .msg_iovlen = 1 };

	SAY(sendmsg(fd, &message, QUIETLY));
}

static void use_recvmsg(int fd)
{
	struct msghdr message = { .msg_iov = &room, .msg_iovlen = 1 };

	SAY(recvmsg(fd, &message, MSG_DONTWAIT));
}

static void use_sendto(int fd)
{
	SAY(sendto(fd, "ping", 4, QUIETLY, NULL, 0));
}

static void use_recvfrom(int fd)
{
	SAY(recvfrom(fd, text, sizeof(text), MSG_DONTWAIT, NULL, NULL));
}

static void use_batches(int fd)
{
	struct mmsghdr message = { .msg_hdr = { .msg_iov = &ping, .msg_iovlen = 1 } };

	SAY(sendmmsg(fd, &message, 1, QUIETLY));
	message.msg_hdr.msg_iov = &room;
	SAY(recvmmsg(fd, &message, 1, MSG_DONTWAIT, NULL));
}

static void use_sendfile(int fd)
{
	off_t offset = 0;
	int from = must(open("/proc/self/exe", O_RDONLY), "open");

	SAY(sendfile(fd, from, &offset, 4));
	close(from);
}

static void use_error(int fd)
{
	int error = -1;

	SAY(getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &(socklen_t){ sizeof(error) }));
	printf("SO_ERROR: %d\n", error);
}

static void use_poll(int fd)
{
	struct pollfd entry = { .fd = fd, .events = POLLIN | POLLOUT };

	SAY(poll(&entry, 1, 0));
	printf("revents: %#x\n", (unsigned int)entry.revents);
}

static void use_shutdown(int fd)
{
	SAY(shutdown(fd, SHUT_RD));
}

static void use_dup(int fd)
{
	int copy = (int)SAY(dup(fd));

	SAY(write(copy, "ping", 4));
	SAY(close(copy));
}

static void (*const uses[])(int fd) = {
	use_write, use_read, use_send, use_recv, use_peek, use_vectors, use_readv, use_sendmsg,
	use_recvmsg, use_sendto, use_recvfrom, use_batches, use_sendfile, use_error, use_poll,
	use_shutdown, use_dup,
};

/* Last, or before all others: it changes what a stream socket says to them. */
static void use_connect(int fd)
{
	struct sockaddr_in dead = address_refusing();

	fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) & ~O_NONBLOCK);
	SAY(connect(fd, as_sockaddr(&dead), sizeof(dead)));
	fcntl(fd, F_SETFL, O_NONBLOCK | fcntl(fd, F_GETFL));
}

/* From here on the circuit is open, where a rule says that one failure is enough. */
static void fail_once(void)
{
	struct sockaddr_in dead = address_refusing();
	int fd = stream_socket(0);

	SAY(connect(fd, as_sockaddr(&dead), sizeof(dead)));
	close(fd);
}

/* Connections whose numbers are to change hands, and what is borrowed for that. */
static void prepare(struct pair *pairs, size_t count)
{
	file = must(open("/dev/null", O_RDWR), "open");
	must(socketpair(AF_UNIX, SOCK_DGRAM, 0, channel), "make a pair");
	/* So that no use waits. */
	for (size_t i = 0; i < count; i++)
		pairs[i] = pair_answered();
}

static void clean_up(const struct pair *pairs, size_t count)
{
	for (size_t i = 0; i < count; i++)
		close(pairs[i].server);
	close(channel[0]);
	close(channel[1]);
	close(file);
	unlink("born");
}

/* Stdio's streams stay, and so does a child: their end is the process's. */
static void close_born(int fd)
{
	SAY(close(fd));
	if (other_end >= 0)
		close(other_end);
	other_end = -1;
}

/* `first` is the use that meets the new file first; past the last one, connect() is. */
static void change_hands(struct pair pair, const struct birth *birth, size_t first)
{
	int fd;

	hole = pair.client;
	close_unseen(hole);
	fd = birth->make();
	printf("%s: %s\n", birth->name, fd == pair.client ? "got the number" : "another number");
	fcntl(fd, F_SETFL, O_NONBLOCK | fcntl(fd, F_GETFL));
	if (first == COUNT(uses))
		use_connect(fd);
	for (size_t i = 0; i < COUNT(uses); i++)
		uses[(first + i) % COUNT(uses)](fd);
	use_connect(fd);
	close_born(fd);
	/* Its number must not be the lowest free one when the next is born. */
	must(dup2(pair.server, pair.client), "fill a hole");
}

static void fill_holes(const struct pair *pairs, size_t count)
{
	for (size_t i = 0; i < count; i++)
		close(pairs[i].client);
}

static void births_on_old_numbers(void)
{
	struct pair pairs[COUNT(births)];

	prepare(pairs, COUNT(pairs));
	fail_once();
	for (size_t i = 0; i < COUNT(pairs); i++)
		change_hands(pairs[i], &births[i], i % COUNT(uses));
	fill_holes(pairs, COUNT(pairs));
	clean_up(pairs, COUNT(pairs));
}

/* As above; where the circuit is open, the connections were cut in mid-life. */
static void births_on_cut_numbers(void)
{
	struct pair pairs[COUNT(births)];

	prepare(pairs, COUNT(pairs));
	fail_once();
	for (size_t i = 0; i < COUNT(pairs); i++) {
		send(pairs[i].client, "ping", 4, MSG_NOSIGNAL);
		change_hands(pairs[i], &births[i], i % COUNT(uses));
	}
	fill_holes(pairs, COUNT(pairs));
	clean_up(pairs, COUNT(pairs));
}

/* Every use is the first one of some number. */
static void uses_of_old_numbers(void)
{
	static const struct birth birth = { "socketpair out of sight", born_unseen_pair };
	struct pair pairs[2 * (COUNT(uses) + 1)];

	prepare(pairs, COUNT(pairs));
	fail_once();
	for (size_t i = 0; i < COUNT(pairs); i++) {
		if (i % 2)
			send(pairs[i].client, "ping", 4, MSG_NOSIGNAL);
		change_hands(pairs[i], &birth, i / 2);
	}
	fill_holes(pairs, COUNT(pairs));
	clean_up(pairs, COUNT(pairs));
}

/* Ways to go. */

static void gone_close(int fd)
{
	SAY(close(fd));
}

static void gone_close_range(int fd)
{
	SAY(close_range((unsigned int)fd, (unsigned int)fd, 0));
}

static void gone_syscall(int fd)
{
	SAY(syscall(SYS_close, fd));
}

static void gone_syscall_range(int fd)
{
	SAY(syscall(SYS_close_range, fd, fd, 0));
}

static void gone_fclose(int fd)
{
	SAY(fclose(fdopen(fd, "r+")));
}

static void gone_freopen(int fd)
{
	FILE *stream = fdopen(fd, "r+");

	SAY(freopen("/dev/null", "r", stream) == stream);
	SAY(fclose(stream));
}

static void gone_dup2(int fd)
{
	SAY(dup2(0, fd));
	SAY(close(fd));
}

static void gone_dup3(int fd)
{
	SAY(dup3(0, fd, O_CLOEXEC));
	SAY(close(fd));
}

static void gone_syscall_dup3(int fd)
{
	SAY(syscall(SYS_dup3, 0, fd, O_CLOEXEC));
	SAY(syscall(SYS_close, fd));
}

static void gone_out_of_sight(int fd)
{
	close_unseen(fd);
}

static void gone_disconnected(int fd)
{
	struct sockaddr nothing = { .sa_family = AF_UNSPEC };

	SAY(connect(fd, &nothing, sizeof(nothing)));
	SAY(close(fd));
}

static void (*const ways_to_go[])(int fd) = {
	gone_close, gone_close_range, gone_syscall, gone_syscall_range, gone_fclose, gone_freopen,
	gone_dup2, gone_dup3, gone_syscall_dup3, gone_out_of_sight, gone_disconnected,
};

static void exchange(struct pair pair)
{
	SAY(send(pair.client, "ping", 4, MSG_NOSIGNAL));
	server_answers(pair, 4);
	SAY(recv(pair.client, text, sizeof(text), 0));
}

/* With a call open and without; the number's next connection is one like any other. */
static void ends_of_connections(void)
{
	for (size_t i = 0; i < 2 * COUNT(ways_to_go); i++) {
		struct pair pair = pair_answered(), next;

		if (i % 2)
			SAY(send(pair.client, "ping", 4, MSG_NOSIGNAL));
		ways_to_go[i / 2](pair.client);
		next = pair_open();
		printf("%s number\n", next.client == pair.client ? "the same" : "another");
		exchange(next);
		exchange(next);
		pair_close(next);
		close(pair.server);
	}
}

/* A socket that no hook saw being born, on a number that a connection had. */
static void born_and_gone_out_of_sight(void)
{
	int (*socket_of_libc)(int, int, int) = unseen("socket");
	struct sockaddr_in address = address_listening();
	struct pair pair = pair_answered(), next;

	close_unseen(pair.client);
	next.client = must(socket_of_libc(AF_INET, SOCK_STREAM, 0), "make a socket");
	SAY(connect(next.client, as_sockaddr(&address), sizeof(address)));
	next.server = must(accept(listener(), NULL, NULL), "accept");
	exchange(next);
	pair_close(next);
	close(pair.server);
}

/* Two connections change numbers, by way of a third. */
static void numbers_swapped(void)
{
	struct pair one = pair_answered(), two = pair_answered();
	int spare = (int)SAY(fcntl(one.client, F_DUPFD_CLOEXEC, 10));

	SAY(dup2(two.client, one.client));
	SAY(dup2(spare, two.client));
	SAY(close(spare));
	exchange((struct pair){ two.client, one.server });
	exchange((struct pair){ one.client, two.server });
	SAY(close(one.client));
	exchange((struct pair){ two.client, one.server });
	close(two.client);
	close(one.server);
	close(two.server);
}

/* A connection, a listener and a file go through a unix socket, to this process and to a child. */
static void passed(void)
{
	struct pair pair = pair_answered();
	pid_t child;
	int copy;

	file = pair.client;
	must(socketpair(AF_UNIX, SOCK_DGRAM, 0, channel), "make a pair");
	copy = born_recvmsg();
	SAY(close(pair.client));
	exchange((struct pair){ copy, pair.server });
	file = copy;
	child = fork();
	if (child == 0) {
		copy = born_recvmmsg();
		exchange((struct pair){ copy, pair.server });
		_exit(0);
	}
	child_ended("child", child);
	exchange((struct pair){ copy, pair.server });
	close(copy);
	file = listener();
	copy = born_recvmsg();
	SAY(listen(copy, 64));
	close(copy);
	close(channel[0]);
	close(channel[1]);
	close(pair.server);
}

/* A child goes on with what its parent opened, and the parent after it. */
static void inherited_by_fork(void)
{
	struct pair idle = pair_answered(), asked = pair_answered();
	pid_t child;

	SAY(send(asked.client, "ping", 4, MSG_NOSIGNAL));
	child = fork();
	if (child == 0) {
		exchange(idle);
		server_answers(asked, 4);
		SAY(recv(asked.client, text, sizeof(text), 0));
		exchange(asked);
		SAY(close(asked.client));
		_exit(0);
	}
	child_ended("child", child);
	exchange(asked);
	exchange(idle);
	pair_close(asked);
	pair_close(idle);
}

/* Whoever hears of it through a pipe: stdout is not what it was. */
static void tell_from_child(void (*go)(void))
{
	struct pair pair = pair_answered();
	char heard[1024];
	size_t count = 0;
	ssize_t size;
	int ends[2];
	pid_t child;

	must(pipe(ends), "make a pipe");
	fail_once();
	child = fork();
	if (child == 0) {
		int kept = must(fcntl(ends[1], F_DUPFD, 50), "keep a pipe");

		must(dup2(pair.client, STDIN_FILENO), "move a socket");
		go();
		must(dup2(kept, STDOUT_FILENO), "restore stdout");
		SAY(write(STDIN_FILENO, "ping", 4));
		SAY(send(STDIN_FILENO, "ping", 4, QUIETLY));
		SAY(close(STDIN_FILENO));
		_exit(0);
	}
	close(ends[1]);
	child_ended("child", child);
	scene_marks("pauses", "");
	while ((size = read(ends[0], heard + count, sizeof(heard) - count)) > 0)
		count += (size_t)size;
	scene_marks("resumes", "");
	printf("%.*s", (int)count, heard);
	close(ends[0]);
	pair_close(pair);
}

/* libc moves /dev/null over the standard descriptors by itself, or a terminal. */
static void go_daemon(void)
{
	must(daemon(1, 0), "become a daemon");
}

static void daemonised(void)
{
	tell_from_child(go_daemon);
}

static void go_login(void)
{
	int master, terminal;

	must(openpty(&master, &terminal, NULL, NULL, NULL), "make a terminal");
	must(login_tty(terminal), "move to a terminal");
}

static void logged_in(void)
{
	tell_from_child(go_login);
}

/* A file gets the number of stderr, where a log may go. The refusal is something to log. */
static void stderr_replaced(void)
{
	int kept = must(dup(STDERR_FILENO), "keep stderr");
	int plain;

	close(STDERR_FILENO);
	plain = (int)SAY(open("plain", O_RDWR | O_CREAT | O_TRUNC, 0600));
	fail_once();
	SAY(write(plain, "ping", 4));
	SAY(lseek(plain, 0, SEEK_END));
	must(dup2(kept, STDERR_FILENO), "restore stderr");
	close(kept);
	unlink("plain");
}

int main(int argc, char *argv[])
{
	static const struct scene scenes[] = {
		SCENE(births_on_old_numbers),
		SCENE(births_on_cut_numbers),
		SCENE(uses_of_old_numbers),
		SCENE(ends_of_connections),
		SCENE(born_and_gone_out_of_sight),
		SCENE(numbers_swapped),
		SCENE(passed),
		SCENE(inherited_by_fork),
		SCENE(stderr_replaced),
		SCENE(daemonised),
		SCENE(logged_in),
	};

	return scenes_play(scenes, COUNT(scenes), argc, argv);
}
