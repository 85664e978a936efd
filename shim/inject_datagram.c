/* SPDX-License-Identifier: MIT */
#include "shim/inject_datagram.h"

#include <errno.h>
#include <poll.h>

#include "core/clock.h"
#include "shim/below.h"
#include "shim/datagram_fate.h"
#include "shim/hold.h"
#include "shim/inside.h"
#include "shim/socket_ask.h"
#include "shim/socket_wait.h"
#include "shim/vectors.h"

#define LOST_AT_ONCE 64
#define MOMENT_NS 1000000

bool datagram_concerns(int fd)
{
	struct connection *connection = fd_table_find(fd);
	enum fd_kind kind = connection ? connection->kind : fd_table_kind(fd);

	return kind == FD_DATAGRAM && fault_rules_have_datagrams(clock_coarse_ns()) &&
	       !process_is_vfork_child();
}

static enum fate_kind sends(int fd, const struct msghdr *message)
{
	const struct sockaddr *address = message->msg_name;
	socklen_t length = message->msg_namelen;
	struct sockaddr_storage peer;
	int error = errno;
	struct fate fate;

	if (!address) {
		length = socket_peer(fd, &peer);
		address = (const struct sockaddr *)&peer;
	}
	fate = fate_of_sent(fd, address, length);
	errno = fate.kind == FATE_FAILS ? fate.error : error;
	return fate.kind;
}

ssize_t datagram_send(int fd, const struct msghdr *message, int flags)
{
	switch (sends(fd, message)) {
	case FATE_FAILS:
		return -1;
	case FATE_LOST:
		return (ssize_t)vectors_size(message->msg_iov, message->msg_iovlen);
	case FATE_TWICE:
		below()->sendmsg(fd, message, flags);
		break;
	default:
		break;
	}
	return below()->sendmsg(fd, message, flags);
}

int datagram_send_many(int fd, struct mmsghdr *messages, unsigned int count, int flags)
{
	unsigned int done = 0;

	while (done < count) {
		ssize_t size = datagram_send(fd, &messages[done].msg_hdr, flags);

		if (size < 0)
			break;
		messages[done++].msg_len = (unsigned int)size;
	}
	return done ? (int)done : -1;
}

/* A lost one is gone; what is doubled comes once more. */
static void end_next(int fd, enum fate_kind kind)
{
	int error = errno;

	if (kind == FATE_LOST)
		below()->recv(fd, NULL, 0, MSG_DONTWAIT);
	errno = error;
	fate_of_next_ends(fd, kind);
}

static enum fate_kind fail(int error)
{
	errno = error;
	return FATE_FAILS;
}

/* Late for whoever waits by poll, and for whoever waits here: 0, or what ends the call. */
static int wait_until(int fd, bool is_blocking, uint64_t due_ns, uint64_t end_ns)
{
	bool is_too_late = end_ns && end_ns < due_ns;

	if (!is_blocking) {
		hold_again(fd);
		return EAGAIN;
	}
	if (!socket_sleep(-1, is_too_late ? end_ns : due_ns, end_ns))
		return EINTR;
	return is_too_late ? EAGAIN : 0;
}

/* What becomes of the one that this call is to receive, after those that are lost. */
static enum fate_kind receives(int fd, int flags)
{
	bool is_blocking = !(flags & MSG_DONTWAIT) && socket_is_blocking(fd);
	uint64_t own_ns = is_blocking ? socket_timeout_ns(fd, SO_RCVTIMEO) : 0;
	uint64_t end_ns = own_ns ? clock_now_ns() + own_ns : 0;
	struct fate fate;

	do {
		int error = is_blocking ? socket_wait(fd, end_ns) : 0;
		uint64_t due_ns;

		if (error)
			return fail(error);
		if (!socket_readiness(fd, POLLIN))
			return FATE_PASSES;
		due_ns = fate_of_next(fd, clock_now_ns(), &fate);
		error = due_ns ? wait_until(fd, is_blocking, due_ns, end_ns) : 0;
		if (error)
			return fail(error);
		end_next(fd, fate.kind);
	} while (fate.kind == FATE_LOST);
	return fate.kind == FATE_FAILS ? fail(fate.error) : fate.kind;
}

ssize_t datagram_receive(int fd, struct msghdr *message, int flags)
{
	enum fate_kind kind = FATE_PASSES;

	if (!(flags & (MSG_ERRQUEUE | MSG_PEEK)))
		kind = receives(fd, flags);
	if (kind == FATE_FAILS)
		return -1;
	/* That it stays in the queue makes two of it. */
	return below()->recvmsg(fd, message, kind == FATE_TWICE ? flags | MSG_PEEK : flags);
}

/* As the kernel does, which looks at the time after each. */
int datagram_receive_many(int fd, struct mmsghdr *messages, unsigned int count, int flags,
		struct timespec *timeout)
{
	uint64_t end_ns = timeout ? clock_now_ns() + (uint64_t)timeout->tv_sec * CLOCK_SECOND_NS +
			(uint64_t)timeout->tv_nsec : 0, rest_ns = 1;
	unsigned int done = 0;

	while (done < count && rest_ns) {
		ssize_t size = datagram_receive(fd, &messages[done].msg_hdr,
				flags & ~MSG_WAITFORONE);

		if (size < 0)
			break;
		messages[done++].msg_len = (unsigned int)size;
		if (flags & MSG_WAITFORONE)
			flags |= MSG_DONTWAIT;
		if (timeout)
			rest_ns = clock_elapsed_ns(clock_now_ns(), end_ns);
	}
	if (timeout && done)
		*timeout = clock_timespec(rest_ns);
	return done ? (int)done : -1;
}

/* What is lost is so before anyone is told of it: to libuv's programs readiness with nothing there
 * is the end of the socket. What comes after is told when it is given back. */
struct hold_times datagram_hold(int fd, uint32_t events, uint64_t now_ns)
{
	struct hold_times times = { 0, 0 };
	struct fate fate;

	for (int i = 0; i < LOST_AT_ONCE && (events & EPOLLIN || fate_is_known(fd)); i++) {
		times.in_ns = fate_of_next(fd, now_ns, &fate);
		if (times.in_ns || fate.kind != FATE_LOST || !fate_is_known(fd))
			return times;
		end_next(fd, FATE_LOST);
		if (!socket_readiness(fd, POLLIN))
			break;
	}
	if (events & EPOLLIN)
		times.in_ns = now_ns + MOMENT_NS;
	return times;
}
