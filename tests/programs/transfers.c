/* SPDX-License-Identifier: MIT */
/* Every call that moves data on a connection, and what it answers to what cannot be. */
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/sendfile.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <unistd.h>

#include "tests/programs/scene.h"

static char text[64];
static struct iovec halves[2] = { { text, 2 }, { text + 2, 62 } };
static struct iovec ping[2] = { { (void *)"pi", 2 }, { (void *)"ng", 2 } };

static struct msghdr message_of(struct iovec *vectors, size_t count)
{
	return (struct msghdr){ .msg_iov = vectors, .msg_iovlen = count };
}

/* What was sent is answered, and the answer read by plain recv. */
static void answered(struct pair pair, size_t size)
{
	server_answers(pair, size);
	SAY(recv(pair.client, text, sizeof(text), 0));
	pair_close(pair);
}

static void sends(void)
{
	struct msghdr message = message_of(ping, 2);
	struct mmsghdr batch[2] = { { .msg_hdr = message }, { .msg_hdr = message } };
	struct pair pair = pair_open();

	SAY(write(pair.client, "ping", 4));
	answered(pair, 4);
	pair = pair_open();
	SAY(send(pair.client, "ping", 4, 0));
	answered(pair, 4);
	pair = pair_open();
	SAY(sendto(pair.client, "ping", 4, 0, NULL, 0));
	answered(pair, 4);
	pair = pair_open();
	SAY(writev(pair.client, ping, 2));
	answered(pair, 4);
	pair = pair_open();
	SAY(sendmsg(pair.client, &message, 0));
	answered(pair, 4);
	pair = pair_open();
	SAY(sendmmsg(pair.client, batch, 2, 0));
	answered(pair, 8);
}

static void sends_out_of_sight(void)
{
	int file = must(open("/proc/self/exe", O_RDONLY), "open");
	struct pair pair = pair_open();
	off_t offset = 0;
	off64_t offset64 = 0;
	int ends[2];

	SAY(sendfile(pair.client, file, &offset, 100));
	answered(pair, 100);
	pair = pair_open();
	SAY(sendfile64(pair.client, file, &offset64, 100));
	answered(pair, 100);
	pair = pair_open();
	must(pipe(ends), "make a pipe");
	must((int)write(ends[1], "ping", 4), "fill a pipe");
	SAY(splice(ends[0], NULL, pair.client, NULL, 4, 0));
	server_answers(pair, 4);
	SAY(splice(pair.client, NULL, ends[1], NULL, 4, 0));
	SAY(read(ends[0], text, sizeof(text)));
	close(ends[0]);
	close(ends[1]);
	pair_close(pair);
	close(file);
}

/* A connection on which an answer lies ready. */
static struct pair asked(void)
{
	struct pair pair = pair_open();

	must((int)send(pair.client, "ping", 4, 0), "ask");
	server_answers(pair, 4);
	return pair;
}

static void receives(void)
{
	struct sockaddr_in from;
	socklen_t length = sizeof(from);
	struct msghdr message = message_of(halves, 2);
	struct mmsghdr batch[2] = { { .msg_hdr = message }, { .msg_hdr = message } };
	struct pair pair = asked();

	SAY(read(pair.client, text, sizeof(text)));
	pair_close(pair);
	pair = asked();
	SAY(recv(pair.client, text, sizeof(text), 0));
	pair_close(pair);
	pair = asked();
	SAY(recvfrom(pair.client, text, sizeof(text), 0, as_sockaddr(&from), &length));
	pair_close(pair);
	pair = asked();
	SAY(readv(pair.client, halves, 2));
	pair_close(pair);
	pair = asked();
	SAY(recvmsg(pair.client, &message, 0));
	pair_close(pair);
	pair = asked();
	SAY(recvmmsg(pair.client, batch, 2, MSG_WAITFORONE, NULL));
	printf("first: %u bytes\n", batch[0].msg_len);
	pair_close(pair);
}

static void receive_flags(void)
{
	struct pair pair = asked();

	SAY(recv(pair.client, text, sizeof(text), MSG_PEEK));
	SAY(recv(pair.client, NULL, 2, MSG_TRUNC));
	SAY(recv(pair.client, text, 0, 0));
	SAY(recv(pair.client, text, sizeof(text), MSG_OOB));
	SAY(recv(pair.client, text, sizeof(text), MSG_ERRQUEUE));
	SAY(recv(pair.client, text, sizeof(text), 0));
	SAY(recv(pair.client, text, sizeof(text), MSG_DONTWAIT));
	SAY(recv(pair.client, text, sizeof(text), MSG_DONTWAIT | MSG_PEEK));
	SAY(send(pair.client, "!", 1, MSG_OOB));
	pair_close(pair);
}

static void kept_alive(void)
{
	struct pair pair = pair_open();

	for (int i = 0; i < 3; i++) {
		SAY(send(pair.client, "ping", 4, MSG_NOSIGNAL));
		server_answers(pair, 4);
		SAY(recv(pair.client, text, sizeof(text), 0));
	}
	pair_close(pair);
}

static void ends(void)
{
	struct linger now = { .l_onoff = 1 };
	struct pair pair = pair_open();

	SAY(send(pair.client, "ping", 4, 0));
	SAY(shutdown(pair.client, SHUT_WR));
	SAY(send(pair.client, "ping", 4, MSG_NOSIGNAL));
	server_answers(pair, 4);
	close(pair.server);
	SAY(recv(pair.client, text, sizeof(text), 0));
	SAY(recv(pair.client, text, sizeof(text), 0));
	SAY(close(pair.client));
	pair = pair_open();
	SAY(send(pair.client, "ping", 4, 0));
	setsockopt(pair.server, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
	close(pair.server);
	SAY(recv(pair.client, text, sizeof(text), 0));
	SAY(send(pair.client, "ping", 4, MSG_NOSIGNAL));
	SAY(shutdown(pair.client, SHUT_RDWR));
	SAY(close(pair.client));
	SAY(shutdown(pair.client, SHUT_RDWR));
}

static void receive_timeout(void)
{
	struct timeval wait = { .tv_usec = 50000 };
	struct pair pair = pair_open();

	SAY(setsockopt(pair.client, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof(wait)));
	SAY(setsockopt(pair.client, SOL_SOCKET, SO_RCVTIMEO, &wait, 1));
	SAY(setsockopt(pair.client, SOL_SOCKET, SO_RCVTIMEO, NULL, sizeof(wait)));
	SAY(send(pair.client, "ping", 4, 0));
	SAY(recv(pair.client, text, sizeof(text), 0));
	answered(pair, 4);
}

static void bad_sends(int fd)
{
	struct iovec nowhere = { (void *)8, 4 };
	struct iovec empty = { NULL, 0 };
	struct msghdr messages[] = {
		message_of(NULL, 1), message_of(ping, 1025), message_of(&nowhere, 1),
		message_of(&empty, 1), message_of(NULL, 0),
	};

	SAY(send(fd, NULL, 0, 0));
	SAY(send(fd, NULL, 4, 0));
	SAY(send(fd, (void *)-8, 4, 0));
	SAY(write(fd, "x", SIZE_MAX));
	SAY(writev(fd, NULL, 1));
	SAY(writev(fd, ping, 0));
	SAY(writev(fd, ping, -1));
	SAY(writev(fd, ping, 1025));
	SAY(writev(fd, &nowhere, 1));
	SAY(sendmsg(fd, NULL, 0));
	for (size_t i = 0; i < COUNT(messages); i++)
		SAY(sendmsg(fd, &messages[i], 0));
	SAY(sendmmsg(fd, NULL, 0, 0));
	SAY(sendmmsg(fd, NULL, 1, 0));
	SAY(sendfile(fd, -1, NULL, 10));
	SAY(sendfile(fd, fd, NULL, 0));
	SAY(splice(fd, NULL, fd, NULL, 10, 0));
}

static void bad_receives(int fd)
{
	struct iovec nowhere = { (void *)8, 4 };
	struct msghdr messages[] = {
		message_of(NULL, 1), message_of(halves, 1025), message_of(&nowhere, 1),
		message_of(NULL, 0),
	};

	SAY(read(fd, NULL, 0));
	SAY(readv(fd, NULL, 1));
	SAY(readv(fd, halves, 0));
	SAY(readv(fd, halves, -1));
	SAY(readv(fd, halves, 1025));
	SAY(recvmsg(fd, NULL, MSG_DONTWAIT));
	for (size_t i = 0; i < COUNT(messages); i++)
		SAY(recvmsg(fd, &messages[i], MSG_DONTWAIT));
	SAY(recvmmsg(fd, NULL, 1, MSG_DONTWAIT, NULL));
	SAY(recvmmsg(fd, NULL, 0, MSG_DONTWAIT, NULL));
	SAY(recv(fd, NULL, 4, MSG_DONTWAIT));
}

static void bad_arguments(void)
{
	struct pair pair = pair_open();

	bad_sends(pair.client);
	bad_receives(pair.client);
	SAY(send(pair.client, "ping", 4, MSG_NOSIGNAL));
	server_answers(pair, 4);
	SAY(recv(pair.client, NULL, 4, 0));
	SAY(recv(pair.client, text, sizeof(text), 0));
	pair_close(pair);
	bad_sends(pair.client);
	bad_receives(-1);
}

/* Programs that ask again and again; whoever looks without taking sees the same. */
static void asks_until_answered(void)
{
	struct pair pair = pair_open();
	int again = 0;

	for (int i = 0; i < 50; i++)
		again += recv(pair.client, text, sizeof(text), MSG_DONTWAIT) < 0 && errno == EAGAIN;
	SAY(send(pair.client, "ping", 4, 0));
	for (int i = 0; i < 50; i++)
		again += recv(pair.client, text, 1, MSG_DONTWAIT | MSG_PEEK) < 0 && errno == EAGAIN;
	printf("again: %d\n", again);
	server_answers(pair, 4);
	SAY(recv(pair.client, text, 4, MSG_PEEK | MSG_WAITALL));
	SAY(recv(pair.client, text, 1, MSG_PEEK));
	SAY(recv(pair.client, text, 2, MSG_WAITALL));
	SAY(recv(pair.client, text, sizeof(text), MSG_DONTWAIT));
	close(pair.server);
	SAY(recv(pair.client, text, sizeof(text), MSG_PEEK));
	SAY(recv(pair.client, text, sizeof(text), MSG_PEEK));
	SAY(recv(pair.client, text, sizeof(text), 0));
	close(pair.client);
}

/* The byte out of band is none of the stream. */
static void out_of_band(void)
{
	struct pair pair = pair_open();
	struct pollfd urgent = { .fd = pair.client, .events = POLLPRI };

	SAY(send(pair.client, "ping", 4, 0));
	must((int)send(pair.server, "po!", 3, MSG_OOB), "send out of band");
	must(poll(&urgent, 1, -1), "wait for it");
	SAY(recv(pair.client, text, 1, MSG_OOB | MSG_PEEK));
	SAY(recv(pair.client, text, 1, MSG_OOB));
	SAY(recv(pair.client, text, 1, MSG_OOB));
	SAY(recv(pair.client, text, 2, MSG_WAITALL));
	SAY(recv(pair.client, text, sizeof(text), MSG_DONTWAIT));
	pair_close(pair);
}

static void flags_of_sends(void)
{
	struct msghdr empty = message_of(NULL, 0);
	struct pair pair = pair_open();

	SAY(send(pair.client, "pi", 2, MSG_MORE));
	SAY(send(pair.client, "n", 1, MSG_MORE | MSG_DONTWAIT));
	SAY(send(pair.client, "", 0, 0));
	SAY(sendmsg(pair.client, &empty, 0));
	SAY(write(pair.client, "", 0));
	SAY(send(pair.client, "g", 1, MSG_EOR | MSG_CONFIRM | MSG_DONTROUTE));
	answered(pair, 4);
}

static void datagrams(void)
{
	struct sockaddr_in address = address_refusing(), other = address_refusing(), from;
	int one = must(socket(AF_INET, SOCK_DGRAM, 0), "make a socket");
	int two = must(socket(AF_INET, SOCK_DGRAM, 0), "make a socket");
	struct msghdr message = message_of(ping, 2);
	struct mmsghdr batch[2] = { { .msg_hdr = message }, { .msg_hdr = message } };

	address.sin_port = 0;
	must(bind(two, as_sockaddr(&address), sizeof(address)), "bind");
	must(getsockname(two, as_sockaddr(&address), &(socklen_t){ sizeof(address) }), "ask");
	SAY(sendto(one, "ping", 4, 0, as_sockaddr(&address), sizeof(address)));
	SAY(recvfrom(two, text, sizeof(text), 0, as_sockaddr(&from), &(socklen_t){ sizeof(from) }));
	SAY(connect(one, as_sockaddr(&other), sizeof(other)));
	SAY(sendto(one, "ping", 4, 0, as_sockaddr(&address), sizeof(address)));
	SAY(recv(two, text, sizeof(text), 0));
	SAY(connect(one, as_sockaddr(&address), sizeof(address)));
	SAY(send(one, "", 0, 0));
	SAY(recv(two, text, sizeof(text), 0));
	SAY(sendmmsg(one, batch, 2, 0));
	SAY(recv(two, text, 2, MSG_TRUNC));
	SAY(recv(two, text, sizeof(text), 0));
	SAY(recv(two, text, sizeof(text), MSG_DONTWAIT));
	SAY(sendto(one, "ping", 4, MSG_FASTOPEN, as_sockaddr(&address), sizeof(address)));
	SAY(close(one));
	SAY(close(two));
}

static void unix_sockets(void)
{
	int pair[2];

	must(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), "make a pair");
	SAY(send(pair[0], "ping", 4, 0));
	SAY(recv(pair[1], text, sizeof(text), 0));
	SAY(writev(pair[1], ping, 2));
	SAY(readv(pair[0], halves, 2));
	SAY(shutdown(pair[0], SHUT_WR));
	SAY(recv(pair[1], text, sizeof(text), 0));
	SAY(close(pair[0]));
	SAY(send(pair[1], "ping", 4, MSG_NOSIGNAL));
	SAY(close(pair[1]));
}

static void by_write(int fd)
{
	SAY(write(fd, "ping", 4));
}

static void by_send(int fd)
{
	SAY(send(fd, "ping", 4, 0));
}

static void by_writev(int fd)
{
	SAY(writev(fd, ping, 2));
}

static void by_sendmsg(int fd)
{
	struct msghdr message = message_of(ping, 2);

	SAY(sendmsg(fd, &message, 0));
}

static void by_sendfile(int fd)
{
	off_t offset = 0;

	SAY(sendfile(fd, must(open("/proc/self/exe", O_RDONLY), "open"), &offset, 100));
}

static void without_signal(int fd)
{
	SAY(send(fd, "ping", 4, MSG_NOSIGNAL));
}

/* Who writes to a reset connection dies of SIGPIPE, unless it asked not to. */
static void broken_pipes(void)
{
	static void (*const ways[])(int fd) = {
		by_write, by_send, by_writev, by_sendmsg, by_sendfile, without_signal,
	};

	for (size_t i = 0; i < COUNT(ways); i++) {
		pid_t child = fork();

		if (child == 0) {
			struct pair pair = pair_open();

			signal(SIGPIPE, SIG_DFL);
			server_resets(pair);
			SAY(send(pair.client, "ping", 4, 0));
			ways[i](pair.client);
			_exit(0);
		}
		child_ended("child", child);
	}
}

int main(int argc, char *argv[])
{
	static const struct scene scenes[] = {
		SCENE(sends),
		SCENE(sends_out_of_sight),
		SCENE(receives),
		SCENE(receive_flags),
		SCENE(kept_alive),
		SCENE(ends),
		SCENE(receive_timeout),
		SCENE(bad_arguments),
		SCENE(asks_until_answered),
		SCENE(out_of_band),
		SCENE(flags_of_sends),
		SCENE(datagrams),
		SCENE(unix_sockets),
		SCENE(broken_pipes),
	};

	return scenes_play(scenes, COUNT(scenes), argc, argv);
}
