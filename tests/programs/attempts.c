/* SPDX-License-Identifier: MIT */
/* Every way to connect, and every way to be told how it went. */
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "tests/programs/scene.h"

static void say_error(int fd)
{
	int error = -1;
	socklen_t size = sizeof(error);

	SAY(getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size));
	printf("SO_ERROR: %s\n", error ? strerrorname_np(error) : "0");
}

static void wait_writable(int fd)
{
	struct pollfd entry = { .fd = fd, .events = POLLOUT };

	must(poll(&entry, 1, 5000), "poll");
	printf("revents: %#x\n", (unsigned int)entry.revents);
}

static void succeeds(void)
{
	struct sockaddr_in address = address_listening();
	int fd = stream_socket(0);

	SAY(connect(fd, as_sockaddr(&address), sizeof(address)));
	say_error(fd);
	SAY(connect(fd, as_sockaddr(&address), sizeof(address)));
	SAY(close(fd));
}

static void refused(void)
{
	struct sockaddr_in address = address_refusing();
	int fd = stream_socket(0);

	SAY(connect(fd, as_sockaddr(&address), sizeof(address)));
	say_error(fd);
	SAY(connect(fd, as_sockaddr(&address), sizeof(address)));
	SAY(close(fd));
}

static void nonblocking(void)
{
	struct sockaddr_in address = address_listening();
	int fd = stream_socket(SOCK_NONBLOCK);

	SAY(connect(fd, as_sockaddr(&address), sizeof(address)));
	wait_writable(fd);
	say_error(fd);
	SAY(connect(fd, as_sockaddr(&address), sizeof(address)));
	SAY(connect(fd, as_sockaddr(&address), sizeof(address)));
	SAY(close(fd));
}

static void nonblocking_refused(void)
{
	struct sockaddr_in address = address_refusing();
	int fd = stream_socket(SOCK_NONBLOCK);

	SAY(connect(fd, as_sockaddr(&address), sizeof(address)));
	wait_writable(fd);
	say_error(fd);
	SAY(close(fd));
}

/* redis-cli asks so. */
static void asked_by_second_connect(void)
{
	struct sockaddr_in address = address_refusing();
	int fd = stream_socket(SOCK_NONBLOCK);

	SAY(connect(fd, as_sockaddr(&address), sizeof(address)));
	wait_writable(fd);
	SAY(connect(fd, as_sockaddr(&address), sizeof(address)));
	SAY(close(fd));
}

static void asked_by_send(void)
{
	struct sockaddr_in address = address_refusing();
	int fd = stream_socket(SOCK_NONBLOCK);

	SAY(connect(fd, as_sockaddr(&address), sizeof(address)));
	wait_writable(fd);
	SAY(send(fd, "ping", 4, MSG_NOSIGNAL));
	SAY(close(fd));
}

static void say_peer(int fd, socklen_t size)
{
	struct sockaddr_in peer = { 0 }, address = address_listening();

	SAY(getpeername(fd, as_sockaddr(&peer), &size));
	printf("%u bytes, family %d, %s port\n", size, peer.sin_family,
			peer.sin_port == address.sin_port ? "its" : "no");
}

/* As programs do that take a peer for the sign of success. */
static void asked_by_peer(void)
{
	struct sockaddr_in address = address_listening(), dead = address_refusing();
	int fd = stream_socket(SOCK_NONBLOCK);

	say_peer(fd, sizeof(address));
	SAY(connect(fd, as_sockaddr(&address), sizeof(address)));
	wait_writable(fd);
	say_peer(fd, sizeof(address));
	say_peer(fd, sizeof(address.sin_family));
	say_peer(fd, (socklen_t)-1);
	SAY(getpeername(fd, NULL, &(socklen_t){ sizeof(address) }));
	SAY(close(fd));
	say_peer(fd, sizeof(address));
	fd = stream_socket(SOCK_NONBLOCK);
	SAY(connect(fd, as_sockaddr(&dead), sizeof(dead)));
	wait_writable(fd);
	say_peer(fd, sizeof(address));
	say_error(fd);
	SAY(close(fd));
}

static void by_syscall(void)
{
	struct sockaddr_in address = address_listening();
	struct sockaddr_in dead = address_refusing();
	int fd = (int)SAY(syscall(SYS_socket, AF_INET, SOCK_STREAM, 0));

	SAY(syscall(SYS_connect, fd, &dead, sizeof(dead)));
	SAY(syscall(SYS_connect, fd, &address, sizeof(address)));
	SAY(send(fd, "ping", 4, 0));
	SAY(syscall(SYS_close, fd));
	SAY(syscall(SYS_close, fd));
}

static void disconnects(void)
{
	struct sockaddr_in address = address_listening();
	struct sockaddr nothing = { .sa_family = AF_UNSPEC };
	int fd = stream_socket(0);

	SAY(connect(fd, as_sockaddr(&address), sizeof(address)));
	SAY(connect(fd, &nothing, sizeof(nothing)));
	SAY(send(fd, "ping", 4, MSG_NOSIGNAL));
	SAY(connect(fd, as_sockaddr(&address), sizeof(address)));
	SAY(send(fd, "ping", 4, MSG_NOSIGNAL));
	SAY(close(fd));
}

static void fast_open_to(struct sockaddr_in *address)
{
	struct iovec vector = { (void *)"ping", 4 };
	struct msghdr message = {
		.msg_name = address,
		.msg_namelen = sizeof(*address),
		.msg_iov = &vector,
		.msg_iovlen = 1,
	};
	struct mmsghdr batch[1] = { { .msg_hdr = message } };
	int flags = MSG_FASTOPEN | MSG_NOSIGNAL;
	int fd = stream_socket(0);

	SAY(sendto(fd, "ping", 4, flags, as_sockaddr(address), sizeof(*address)));
	SAY(close(fd));
	fd = stream_socket(0);
	SAY(sendmsg(fd, &message, flags));
	SAY(close(fd));
	fd = stream_socket(0);
	SAY(sendmmsg(fd, batch, 1, flags));
	SAY(sendto(fd, "ping", 4, flags, as_sockaddr(address), sizeof(*address)));
	SAY(close(fd));
}

static void fast_open(void)
{
	struct sockaddr_in address = address_listening();

	fast_open_to(&address);
}

static void fast_open_refused(void)
{
	struct sockaddr_in address = address_refusing();

	fast_open_to(&address);
}

/* connect() succeeds before anything was sent. */
static void fast_open_connect(void)
{
	struct sockaddr_in address = address_listening();
	struct sockaddr_in dead = address_refusing();
	int on = 1;
	int fd = stream_socket(0);

	SAY(setsockopt(fd, IPPROTO_TCP, TCP_FASTOPEN_CONNECT, &on, sizeof(on)));
	SAY(connect(fd, as_sockaddr(&address), sizeof(address)));
	SAY(send(fd, "ping", 4, MSG_NOSIGNAL));
	SAY(close(fd));
	fd = stream_socket(0);
	SAY(setsockopt(fd, IPPROTO_TCP, TCP_FASTOPEN_CONNECT, &on, sizeof(on)));
	SAY(connect(fd, as_sockaddr(&dead), sizeof(dead)));
	SAY(send(fd, "ping", 4, MSG_NOSIGNAL));
	SAY(close(fd));
}

static void bad_arguments(void)
{
	struct sockaddr_in address = address_refusing();
	int fd = stream_socket(0);
	int file = must(open("/dev/null", O_RDWR), "open");

	SAY(connect(fd, NULL, 0));
	SAY(connect(fd, NULL, 16));
	SAY(connect(fd, (struct sockaddr *)8, 16));
	SAY(connect(fd, (struct sockaddr *)-4096, 16));
	SAY(connect(-1, as_sockaddr(&address), sizeof(address)));
	SAY(connect(999, as_sockaddr(&address), sizeof(address)));
	SAY(connect(file, as_sockaddr(&address), sizeof(address)));
	SAY(connect(fd, as_sockaddr(&address), (socklen_t)-1));
	SAY(sendto(fd, "x", 1, MSG_FASTOPEN, (struct sockaddr *)8, 16));
	SAY(sendmsg(fd, NULL, MSG_FASTOPEN));
	SAY(close(fd));
	SAY(close(file));
}

static void lengths(void)
{
	struct sockaddr_storage address = { 0 };
	struct sockaddr_in dead = address_refusing();

	memcpy(&address, &dead, sizeof(dead));
	for (socklen_t length = 0; length <= 128; length++) {
		int fd = stream_socket(0);

		printf("%u: ", length);
		SAY(connect(fd, as_sockaddr(&address), length));
		close(fd);
	}
}

/* Addresses of another family than the socket's, and sockets that are not to be connected. */
static void no_match(void)
{
	struct sockaddr_in dead = address_refusing();
	struct sockaddr_in6 other = { .sin6_family = AF_INET6, .sin6_port = dead.sin_port,
		.sin6_addr = IN6ADDR_LOOPBACK_INIT };
	int fd = stream_socket(0);
	int other_fd = must(socket(AF_INET6, SOCK_STREAM, 0), "make a socket");

	SAY(connect(fd, as_sockaddr(&other), sizeof(other)));
	SAY(connect(other_fd, as_sockaddr(&dead), sizeof(dead)));
	SAY(connect(listener(), as_sockaddr(&dead), sizeof(dead)));
	close(fd);
	close(other_fd);
}

/* What a descriptor or an address rules out, whoever is asked. */
static void bad_sockets(void)
{
	struct sockaddr_in dead = address_refusing();
	struct sockaddr unknown = { .sa_family = 99 };
	struct sockaddr nothing = { .sa_family = AF_UNSPEC };
	struct pair pair = pair_open_unseen();
	int ends[2];
	int fd = stream_socket(0);

	must(pipe(ends), "make a pipe");
	SAY(connect(ends[0], as_sockaddr(&dead), sizeof(dead)));
	SAY(connect(fd, &unknown, sizeof(unknown)));
	SAY(connect(fd, &nothing, sizeof(nothing)));
	SAY(connect(pair.server, as_sockaddr(&dead), sizeof(dead)));
	SAY(send(fd, "ping", 4, MSG_NOSIGNAL));
	SAY(close(fd));
	SAY(connect(fd, as_sockaddr(&dead), sizeof(dead)));
	SAY(sendto(fd, "x", 1, MSG_FASTOPEN, as_sockaddr(&dead), sizeof(dead)));
	close(ends[0]);
	close(ends[1]);
	pair_close(pair);
}

static struct sockaddr_in6 mapped_of(struct sockaddr_in address)
{
	struct sockaddr_in6 mapped = { .sin6_family = AF_INET6, .sin6_port = address.sin_port };

	mapped.sin6_addr.s6_addr[10] = mapped.sin6_addr.s6_addr[11] = 0xff;
	memcpy(&mapped.sin6_addr.s6_addr[12], &address.sin_addr, 4);
	return mapped;
}

static void connect_v6(struct sockaddr_in6 address)
{
	int fd = (int)SAY(socket(AF_INET6, SOCK_STREAM, 0));

	SAY(connect(fd, as_sockaddr(&address), sizeof(address)));
	SAY(close(fd));
}

/* An IPv4 address in IPv6 form, with and without a scope, and in the form of before scopes. */
static void mapped_to(struct sockaddr_in6 address)
{
	int fd = (int)SAY(socket(AF_INET6, SOCK_STREAM, 0));

	SAY(connect(fd, as_sockaddr(&address), 24));
	SAY(close(fd));
	connect_v6(address);
	address.sin6_scope_id = 1;
	address.sin6_flowinfo = htonl(5);
	connect_v6(address);
}

static void mapped(void)
{
	mapped_to(mapped_of(address_listening()));
}

static void mapped_refused(void)
{
	mapped_to(mapped_of(address_refusing()));
}

/* "Any" address means this host. */
static void any_address_to(struct sockaddr_in address)
{
	struct sockaddr_in6 any = { .sin6_family = AF_INET6, .sin6_port = address.sin_port };
	int fd = stream_socket(0);

	address.sin_addr.s_addr = INADDR_ANY;
	SAY(connect(fd, as_sockaddr(&address), sizeof(address)));
	SAY(close(fd));
	connect_v6(any);
	any.sin6_addr = in6addr_loopback;
	connect_v6(any);
}

static void any_address(void)
{
	any_address_to(address_listening());
}

static void any_address_refused(void)
{
	any_address_to(address_refusing());
}

static void not_ours(void)
{
	struct sockaddr_in address = address_refusing();
	struct sockaddr_un path = { .sun_family = AF_UNIX, .sun_path = "/nonexistent/socket" };
	struct sockaddr_un abstract = { .sun_family = AF_UNIX };
	int datagram = must(socket(AF_INET, SOCK_DGRAM, 0), "make a socket");
	int local = must(socket(AF_UNIX, SOCK_STREAM, 0), "make a socket");
	int server = must(socket(AF_UNIX, SOCK_STREAM, 0), "make a socket");
	socklen_t length = (socklen_t)offsetof(struct sockaddr_un, sun_path) + 12;

	snprintf(abstract.sun_path + 1, 12, "s%010d", getpid());
	SAY(connect(datagram, as_sockaddr(&address), sizeof(address)));
	SAY(send(datagram, "ping", 4, 0));
	SAY(sendto(datagram, "ping", 4, 0, as_sockaddr(&address), sizeof(address)));
	SAY(connect(local, as_sockaddr(&path), sizeof(path)));
	SAY(connect(local, as_sockaddr(&abstract), length));
	SAY(bind(server, as_sockaddr(&abstract), length));
	SAY(listen(server, 1));
	SAY(connect(local, as_sockaddr(&abstract), length));
	SAY(send(local, "ping", 4, MSG_NOSIGNAL));
	SAY(close(datagram));
	SAY(close(server));
	SAY(send(local, "ping", 4, MSG_NOSIGNAL));
	SAY(close(local));
}

static void on_alarm(int number)
{
	(void)number;
}

/* A listener that takes no more connections: connect() waits, and a signal ends the wait. */
static void interrupted(void)
{
	struct sigaction action = { .sa_handler = on_alarm };
	struct itimerspec soon = { { 0, 10000000 }, { 0, 10000000 } }, never = { 0 };
	struct sigevent event = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1 };
	struct sockaddr_in address = address_refusing();
	int full = stream_socket(0), first = stream_socket(0), fd = stream_socket(0);
	timer_t timer;

	address.sin_port = 0;
	must(bind(full, as_sockaddr(&address), sizeof(address)), "bind");
	must(listen(full, 0), "listen");
	must(getsockname(full, as_sockaddr(&address), &(socklen_t){ sizeof(address) }), "ask");
	must(connect(first, as_sockaddr(&address), sizeof(address)), "connect");
	must(sigaction(SIGUSR1, &action, NULL), "handle a signal");
	must(timer_create(CLOCK_MONOTONIC, &event, &timer), "make a timer");
	/* Again and again: on a slow machine the first may come before the wait. */
	must(timer_settime(timer, 0, &soon, NULL), "start a timer");
	SAY(connect(fd, as_sockaddr(&address), sizeof(address)));
	timer_settime(timer, 0, &never, NULL);
	timer_delete(timer);
	SAY(send(fd, "ping", 4, MSG_DONTWAIT | MSG_NOSIGNAL));
	fcntl(fd, F_SETFL, O_NONBLOCK);
	SAY(connect(fd, as_sockaddr(&address), sizeof(address)));
	say_error(fd);
	SAY(close(fd));
	close(first);
	close(full);
}

/* The peer is gone before the first byte was sent. */
static void reset_before_send(void)
{
	struct sockaddr_in peer = address_refusing();
	struct pair pair = pair_open();

	server_resets(pair);
	SAY(getpeername(pair.client, as_sockaddr(&peer), &(socklen_t){ sizeof(peer) }));
	SAY(send(pair.client, "ping", 4, MSG_NOSIGNAL));
	SAY(send(pair.client, "ping", 4, MSG_NOSIGNAL));
	SAY(recv(pair.client, &peer, 1, 0));
	SAY(close(pair.client));
	pair = pair_open();
	server_resets(pair);
	SAY(recv(pair.client, &peer, 1, 0));
	SAY(recv(pair.client, &peer, 1, 0));
	SAY(close(pair.client));
	pair = pair_open();
	server_resets(pair);
	say_error(pair.client);
	say_error(pair.client);
	SAY(connect(pair.client, as_sockaddr(&peer), sizeof(peer)));
	SAY(close(pair.client));
}

int main(int argc, char *argv[])
{
	static const struct scene scenes[] = {
		SCENE(succeeds),
		SCENE(refused),
		SCENE(nonblocking),
		SCENE(nonblocking_refused),
		SCENE(asked_by_second_connect),
		SCENE(asked_by_send),
		SCENE(asked_by_peer),
		SCENE(by_syscall),
		SCENE(disconnects),
		SCENE(fast_open),
		SCENE(fast_open_refused),
		SCENE(fast_open_connect),
		SCENE(bad_arguments),
		SCENE(lengths),
		SCENE(bad_sockets),
		SCENE(no_match),
		SCENE(mapped),
		SCENE(mapped_refused),
		SCENE(any_address),
		SCENE(any_address_refused),
		SCENE(not_ours),
		SCENE(interrupted),
		SCENE(reset_before_send),
	};

	return scenes_play(scenes, COUNT(scenes), argc, argv);
}
