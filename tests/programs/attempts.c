/* SPDX-License-Identifier: MIT */
/* Every way to connect, and every way to be told how it went. */
#include <fcntl.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/un.h>
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

static void mapped(void)
{
	struct sockaddr_in dead = address_refusing();
	struct sockaddr_in6 address = { .sin6_family = AF_INET6, .sin6_port = dead.sin_port };
	int fd = socket(AF_INET6, SOCK_STREAM, 0);

	address.sin6_addr.s6_addr[10] = address.sin6_addr.s6_addr[11] = 0xff;
	memcpy(&address.sin6_addr.s6_addr[12], &dead.sin_addr, 4);
	SAY(connect(fd, as_sockaddr(&address), sizeof(address)));
	SAY(close(fd));
}

static void not_ours(void)
{
	struct sockaddr_in address = address_refusing();
	struct sockaddr_un path = { .sun_family = AF_UNIX, .sun_path = "/nonexistent/socket" };
	int datagram = must(socket(AF_INET, SOCK_DGRAM, 0), "make a socket");
	int local = must(socket(AF_UNIX, SOCK_STREAM, 0), "make a socket");

	SAY(connect(datagram, as_sockaddr(&address), sizeof(address)));
	SAY(send(datagram, "ping", 4, 0));
	SAY(sendto(datagram, "ping", 4, 0, as_sockaddr(&address), sizeof(address)));
	SAY(connect(local, as_sockaddr(&path), sizeof(path)));
	SAY(close(datagram));
	SAY(close(local));
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
		SCENE(by_syscall),
		SCENE(disconnects),
		SCENE(fast_open),
		SCENE(fast_open_refused),
		SCENE(fast_open_connect),
		SCENE(bad_arguments),
		SCENE(lengths),
		SCENE(mapped),
		SCENE(not_ours),
	};

	return scenes_play(scenes, COUNT(scenes), argc, argv);
}
