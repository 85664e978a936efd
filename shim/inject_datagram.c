/* SPDX-License-Identifier: MIT */
#include "shim/inject_datagram.h"

#include <errno.h>
#include <poll.h>

#include "core/clock.h"
#include "shim/below.h"
#include "shim/datagram_fate.h"
#include "shim/datagram_socket.h"
#include "shim/hold.h"
#include "shim/socket_ask.h"
#include "shim/socket_wait.h"
#include "shim/vectors.h"

/* What became of one that was lost is seen again after this. */
#define MOMENT_NS 1000000ull

static enum fate_kind sends(int fd, const struct sockaddr *address, socklen_t length)
{
	int error = errno;
	struct fate fate = fate_of_sent(fd, address, length);

	errno = fate.kind == FATE_FAILS ? fate.error : error;
	return fate.kind;
}

ssize_t datagram_send(const struct move *move, const struct sockaddr *address, socklen_t length)
{
	switch (sends(move->fd, address, length)) {
	case FATE_FAILS:
		return -1;
	case FATE_LOST:
		return (ssize_t)move->size;
	case FATE_TWICE:
		move->make(move, move->vectors, move->count, move->size);
		break;
	default:
		break;
	}
	return move->make(move, move->vectors, move->count, move->size);
}

static bool send_struck(int fd, struct mmsghdr *message, int flags, enum fate_kind kind)
{
	const struct msghdr *header = &message->msg_hdr;

	if (kind == FATE_FAILS)
		return false;
	if (kind == FATE_TWICE) {
		below()->sendmmsg(fd, message, 1, flags);
		return below()->sendmmsg(fd, message, 1, flags) == 1;
	}
	message->msg_len = (unsigned int)vectors_size(header->msg_iov, header->msg_iovlen);
	return true;
}

/* Those that pass go together, as the program sends them. */
int datagram_send_many(int fd, struct mmsghdr *messages, unsigned int count, int flags)
{
	unsigned int done = 0, end = 0;
	int error = errno;

	while (done < count) {
		enum fate_kind kind = FATE_PASSES;
		int sent = 0;

		while (end < count && kind == FATE_PASSES) {
			const struct msghdr *header = &messages[end].msg_hdr;

			kind = sends(fd, header->msg_name, header->msg_namelen);
			end += kind == FATE_PASSES;
		}
		if (done < end)
			sent = below()->sendmmsg(fd, &messages[done], end - done, flags);
		if (sent > 0)
			done += (unsigned int)sent;
		if (done < end || kind == FATE_PASSES)
			break;
		if (kind == FATE_FAILS && done)
			fate_put_off(fd, errno);
		if (!send_struck(fd, &messages[done], flags, kind))
			break;
		end = ++done;
	}
	if (done)
		errno = error;
	return done ? (int)done : -1;
}

static struct fate fail(int error)
{
	return (struct fate){ .kind = FATE_FAILS, .error = error };
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

static struct fate pass(void)
{
	return (struct fate){ .kind = FATE_PASSES };
}

/* What becomes of the one that this call is to receive, which then is taken; errno is set where it
 * fails. `is_first`: of one call. An error behind others stays, for the next call. */
static struct fate receives(int fd, int flags, bool is_first)
{
	bool is_blocking = !(flags & MSG_DONTWAIT) && socket_is_blocking(fd);
	uint64_t own_ns = is_blocking ? socket_timeout_ns(fd, SO_RCVTIMEO) : 0;
	uint64_t end_ns = own_ns ? clock_now_ns() + own_ns : 0;
	struct fate fate;

	for (;;) {
		/* There may be nothing there but that. */
		bool is_failing = fate_is_failure(fd);
		int error = is_blocking && !is_failing ? socket_wait(fd, end_ns) : 0;
		uint64_t now_ns = clock_now_ns(), due_ns;
		uint32_t readiness;

		if (error)
			return fail(error);
		readiness = is_failing ? POLLIN : socket_readiness(fd, POLLIN);
		if (readiness & POLLERR && !is_first)
			return fail(EAGAIN);
		if (!(readiness & POLLIN))
			return pass();
		/* Told before any data, as the kernel does. */
		error = readiness & POLLERR ? socket_error(fd) : 0;
		if (error)
			return fail(error);
		fate = fate_of_next(fd, now_ns, &due_ns);
		error = due_ns ? wait_until(fd, is_blocking, due_ns, end_ns) : 0;
		if (fate.kind == FATE_LOST && !is_blocking)
			error = EAGAIN;
		if (error)
			return fail(error);
		if (fate.kind == FATE_OPEN)
			return pass();
		/* Who slept looks again: others may have taken it meanwhile. */
		if (due_ns || fate.kind == FATE_LOST)
			continue;
		if (fate.kind == FATE_FAILS && !is_first)
			return fail(fate.error);
		/* A look takes what is an error, and nothing else. */
		if (flags & MSG_PEEK && fate.kind != FATE_FAILS)
			return pass();
		if (fate_take(fd, &fate, now_ns))
			return fate;
	}
}

static ssize_t receive(const struct move *move, bool is_first)
{
	struct fate fate = pass();
	struct move again = *move;
	ssize_t result;

	if (!(move->flags & MSG_ERRQUEUE))
		fate = receives(move->fd, move->flags, is_first);
	/* That it stays in the queue makes two of it. */
	if (fate.kind == FATE_TWICE)
		again.flags |= MSG_PEEK;
	if (fate.kind != FATE_FAILS) {
		result = again.make(&again, again.vectors, again.count, again.size);
	} else {
		errno = fate.error;
		result = -1;
	}
	fate_taken(move->fd, &fate);
	return result;
}

ssize_t datagram_receive(const struct move *move)
{
	return receive(move, true);
}

static ssize_t make_one(const struct move *move, const struct iovec *vectors, size_t count,
		size_t size)
{
	struct mmsghdr *message = (struct mmsghdr *)(uintptr_t)move->arguments;

	(void)vectors;
	(void)count;
	(void)size;
	return below()->recvmmsg(move->fd, message, 1, move->flags, NULL);
}

/* As the kernel does, which looks at the time after each. */
int datagram_receive_many(int fd, struct mmsghdr *messages, unsigned int count, int flags,
		struct timespec *timeout)
{
	uint64_t end_ns = timeout ? clock_now_ns() + (uint64_t)timeout->tv_sec * CLOCK_SECOND_NS +
			(uint64_t)timeout->tv_nsec : 0, rest_ns = 1;
	struct move move = { .make = make_one, .fd = fd, .flags = flags & ~MSG_WAITFORONE };
	unsigned int done = 0;
	int error = errno;

	while (done < count && rest_ns) {
		move.arguments = &messages[done];
		if (receive(&move, !done) < 0)
			break;
		done++;
		if (flags & MSG_WAITFORONE)
			move.flags |= MSG_DONTWAIT;
		if (timeout)
			rest_ns = clock_elapsed_ns(clock_now_ns(), end_ns);
	}
	if (timeout && done)
		*timeout = clock_timespec(rest_ns);
	if (done)
		errno = error;
	return done ? (int)done : -1;
}

/* To look would take an error away; select() tells of one as of data. What is lost the program
 * shall not be told of: it would wait for it. */
struct hold_times datagram_hold(int fd, uint32_t events, uint64_t now_ns)
{
	struct hold_times times = { 0, 0 };

	if (events & EPOLLERR)
		return times;
	if (!(events & EPOLLIN))
		times.in_ns = fate_is_held(fd, now_ns);
	else if (datagram_is_concerned(fd, FAULT_IN) && socket_readiness(fd, POLLIN) == POLLIN &&
			fate_of_next(fd, now_ns, &times.in_ns).kind == FATE_LOST)
		times.in_ns = now_ns + MOMENT_NS;
	return times;
}
