/* SPDX-License-Identifier: MIT */
#include "shim/crossing.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include "core/clock.h"
#include "core/possible.h"
#include "shim/held_attempt.h"
#include "shim/hold.h"
#include "shim/own_call.h"
#include "shim/raw.h"
#include "shim/socket_ask.h"

bool crossing_answer(struct crossing *crossing, ssize_t result, int error)
{
	if (!crossing_is_receiving(crossing))
		slot_set(crossing->sight.slot, SLOT_UNSENT);
	crossing->answer = result;
	if (result < 0)
		errno = error;
	return false;
}

bool crossing_answer_again(struct crossing *crossing)
{
	hold_again(crossing->sight.fd);
	return crossing_answer(crossing, -1, EAGAIN);
}

uint64_t crossing_end_ns(struct crossing *crossing)
{
	if (!crossing->knows_own)
		crossing->own_ns = socket_timeout_ns(crossing->sight.fd,
				crossing_is_receiving(crossing) ? SO_RCVTIMEO : SO_SNDTIMEO);
	crossing->knows_own = true;
	return crossing->own_ns ? crossing->began_ns + crossing->own_ns : 0;
}

bool crossing_sleep(struct crossing *crossing, uint64_t until_ns)
{
	uint64_t end_ns = crossing_end_ns(crossing);
	bool is_too_late = end_ns && end_ns < until_ns;

	if (!held_sleep(crossing->sight.connection, crossing->sight.fd,
			is_too_late ? end_ns : until_ns, end_ns))
		return crossing_answer(crossing, -1, EINTR);
	crossing->sight.now_ns = clock_now_ns();
	return !is_too_late || crossing->sight.now_ns < end_ns ||
			crossing_answer(crossing, -1, EAGAIN);
}

static uint32_t events_of(const struct crossing *crossing)
{
	return crossing_is_receiving(crossing) ? POLLIN | POLLRDHUP : POLLOUT;
}

bool crossing_is_ready(const struct crossing *crossing)
{
	return socket_readiness(crossing->sight.fd, events_of(crossing));
}

/* As the kernel does where nobody reads any more. */
static void raise_pipe(const struct crossing *crossing)
{
	if (crossing_is_receiving(crossing) || crossing->flags & MSG_NOSIGNAL || !own_calls_begin())
		return;
	raw_syscall(SYS_tgkill, getpid(), raw_syscall(SYS_gettid, 0, 0, 0, 0, 0, 0), SIGPIPE, 0, 0,
			0);
	own_calls_end();
}

void crossing_end_connection(struct crossing *crossing, int error)
{
	struct slot *slot = crossing->sight.slot;

	atomic_store_explicit(&slot->error, error, memory_order_relaxed);
	slot_set(slot, error ? SLOT_RESET : SLOT_CLOSED);
	socket_wake(crossing->sight.fd);
}

int crossing_dead_error(const struct crossing *crossing)
{
	int error = atomic_load_explicit(&crossing->sight.slot->error, memory_order_relaxed);
	bool receives = crossing_is_receiving(crossing);

	if (possible_calls(receives ? POSSIBLE_RECV : POSSIBLE_SEND, false, true, error))
		return error;
	return receives ? 0 : EPIPE;
}

bool crossing_answer_dead(struct crossing *crossing)
{
	int error;

	if (!slot_has(crossing->sight.slot, SLOT_RESET))
		return !crossing_is_receiving(crossing) || crossing_answer(crossing, 0, 0);
	error = crossing_dead_error(crossing);
	if (error == EPIPE)
		raise_pipe(crossing);
	return crossing_answer(crossing, error ? -1 : 0, error);
}
