/* SPDX-License-Identifier: MIT */
#include "shim/timed.h"

#include <errno.h>
#include <sys/socket.h>

#include "core/clock.h"
#include "shim/call.h"
#include "shim/deadline.h"
#include "shim/runtime.h"
#include "shim/timer.h"

enum timed_answer timed_answer(struct connection *connection, int fd)
{
	if (!deadline_has_passed(connection))
		return TIMED_GOES_ON;
	if (!deadline_holds(connection, fd)) {
		call_end(fd_table_set(fd, FD_OTHER));
		return TIMED_ANOTHER;
	}
	errno = ETIMEDOUT;
	return TIMED_ANSWERED;
}

/* What our shutdown makes the kernel say. */
static bool is_our_doing(int error)
{
	return error == ECONNRESET || error == ENOTCONN || error == EPIPE;
}

void timed_begin(struct connection *connection, int fd)
{
	int error = errno;

	if (!deadline_begin(connection, fd))
		runtime_unenforced(call_judge(connection).rule, UNENFORCED_FILTER);
	errno = error;
}

void timed_expect(struct connection *connection)
{
	timer_expect(deadline_ns(connection));
}

/* From now to the deadline, 0 where none runs or it has passed. */
static uint64_t left_ns(const struct connection *connection)
{
	return clock_elapsed_ns(clock_now_ns(), deadline_ns(connection));
}

void timed_watch(struct connection *connection)
{
	if (!timer_watch_deadlines(deadline_ns(connection)))
		runtime_unenforced(call_judge(connection).rule, UNENFORCED_NO_THREAD);
}

/* By the socket's option even where the timer will wake it: some kernels do not let it. */
void timed_connect(struct connection *connection, int fd, struct bound *bound)
{
	uint64_t rest_ns = left_ns(connection);

	if (rest_ns && !runtime.observe)
		bound_begin(bound, fd, SO_SNDTIMEO, rest_ns);
}

bool timed_connect_goes_on(struct connection *connection, int fd, const struct bound *bound)
{
	bool was_interrupted = errno == EINTR;

	if (!bound_is_set(bound) || (errno != EINTR && errno != EINPROGRESS && errno != EALREADY))
		return false;
	if (!left_ns(connection))
		deadline_enforce(connection, clock_now_ns());
	/* The time is over, and yet the call is not? Then the kernel has completed the attempt
	 * meanwhile, and says so at once. */
	return deadline_ns(connection) &&
			(!was_interrupted || bound_goes_on(bound, fd, left_ns(connection)));
}

int timed_connected(struct connection *connection, int fd, const struct bound *bound, int result)
{
	int error = errno;

	if (bound_is_set(bound)) {
		bound_end(bound, fd);
		/* The second: one that was made again. */
		if (result && (error == EINPROGRESS || error == EALREADY))
			deadline_enforce(connection, clock_now_ns());
	}
	if (deadline_has_passed(connection)) {
		result = -1;
		error = ETIMEDOUT;
	}
	errno = error;
	return result;
}

enum timed_answer timed_send(struct connection *connection, int fd)
{
	uint32_t flags = exchange_flags(&connection->exchange);

	if (!(flags & EXCHANGE_OPEN) && !exchange_flags_are_sending(flags))
		deadline_call_begins(connection, fd);
	return deadline_send_begins(connection) ? TIMED_GOES_ON : timed_answer(connection, fd);
}

ssize_t timed_sent(struct connection *connection, ssize_t result)
{
	int error = errno;

	deadline_send_ends(connection);
	if (!deadline_has_passed(connection))
		timed_expect(connection);
	else if (result < 0 && is_our_doing(error))
		error = ETIMEDOUT;
	errno = error;
	return result;
}

/* Until there is something to be read, the deadline has passed, or none runs: as long as another
 * thread sends, or the peer is seen to move, it starts again. */
static enum timed_answer await_answer(struct connection *connection, int fd)
{
	uint32_t generation = fd_table_generation(connection);
	uint64_t rest_ns;

	while ((rest_ns = left_ns(connection)) != 0) {
		enum bound_waited waited = bound_await(fd, rest_ns);

		if (waited == BOUND_INTERRUPTED)
			return TIMED_INTERRUPTED;
		/* Closed meanwhile, the connection may be another. */
		if (waited == BOUND_READY || generation != fd_table_generation(connection))
			return TIMED_GOES_ON;
		deadline_enforce(connection, clock_now_ns());
	}
	return timed_answer(connection, fd);
}

enum timed_answer timed_receive(struct connection *connection, int fd, bool waits)
{
	uint64_t due_ns = deadline_ns(connection);

	if (!due_ns)
		return TIMED_GOES_ON;
	timer_expect(due_ns);
	if (timer_is_running() || runtime.observe)
		return TIMED_GOES_ON;
	deadline_enforce(connection, clock_now_ns());
	return waits ? await_answer(connection, fd) : timed_answer(connection, fd);
}

ssize_t timed_received(const struct connection *connection, ssize_t result)
{
	if (deadline_has_passed(connection) &&
			(result == 0 || (result < 0 && is_our_doing(errno)))) {
		errno = ETIMEDOUT;
		return -1;
	}
	return result;
}
