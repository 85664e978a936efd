/* SPDX-License-Identifier: MIT */
/* Every call that moves data on a connection, and what it answers to what cannot be. */
#include <fcntl.h>
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
	};

	return scenes_play(scenes, COUNT(scenes), argc, argv);
}
