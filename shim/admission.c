/* SPDX-License-Identifier: MIT */
#include "shim/admission.h"

#include <errno.h>
#include <pthread.h>
#include <sys/socket.h>

#include "core/breaker.h"
#include "core/clock.h"
#include "shim/bound.h"
#include "shim/holder.h"
#include "shim/own_call.h"
#include "shim/real.h"
#include "shim/runtime.h"

/* Of libc: a thread has room for so many keys before one allocates. */
#define KEYS_AT_HAND 32

/* In the queue of a bulkhead. A caller may leave by longjmp: the thread's next call gives it up, or
 * its end. */
static _Thread_local place_t queued;

static struct {
	pthread_key_t key;
	bool is_there;
} thread_end;

static struct bulkhead bulkhead_for(const struct asking *asking, enum bulkhead_purpose purpose)
{
	return bulkhead_of(holder_ready(), asking->cell_hash, purpose);
}

/* True where a place was taken, or none is needed. */
static bool take_connection(const struct asking *asking, place_t *ret_place)
{
	uint32_t limit = asking->rule->settings.connections;
	struct bulkhead bulkhead;

	*ret_place = 0;
	if (!limit || !asking->is_connect)
		return true;
	bulkhead = bulkhead_for(asking, BULKHEAD_CONNECTIONS);
	return bulkhead_take(&bulkhead, holder_ready(), limit, ret_place) != BULKHEAD_FULL;
}

/* Once its sleep is over the next call is a probe, which needs its places as any other. */
static bool is_open(const struct asking *asking, uint64_t now_ns)
{
	struct breaker breaker = runtime_breaker(asking->rule, asking->cell);

	return breaker_state(&breaker, now_ns) == CIRCUIT_OPEN &&
			breaker_wake_time_ns(&breaker, now_ns) != now_ns;
}

/* The place of a connection whose call found no place of its own. It was never used: who waits for
 * it would find the calls just as full, and in giving it back wake all the others in turn. But a
 * call may have ended meanwhile, and who was woken by that have found this one taken. */
static void give_unused(const struct asking *asking, place_t place, uint32_t released_before)
{
	uint32_t released = atomic_load_explicit(&asking->cell->released, memory_order_seq_cst);

	if (!queued && released != released_before)
		holder_give(asking->cell, place);
	else if (place)
		place_give(&runtime.segment->places, place);
}

/* An open circuit refuses first. Otherwise the place of the connection comes before the permit,
 * which would have to be given back without it. */
static enum admission ask(const struct asking *asking, struct admitted *ret,
		enum bulkhead_purpose *ret_full)
{
	uint32_t released = atomic_load_explicit(&asking->cell->released, memory_order_relaxed);
	bool has_connection = take_connection(asking, &ret->place);
	enum admission admission;

	*ret_full = BULKHEAD_CONNECTIONS;
	if (!has_connection && !is_open(asking, ret->now_ns))
		return CALL_NO_PLACE;
	admission = call_ask(asking->rule, asking->cell, asking->cell_hash, ret->now_ns,
			&ret->ticket);
	/* It was open a moment ago. */
	if (admission == CALL_ADMITTED && !has_connection) {
		call_return(asking->rule, asking->cell, ret->ticket, ret->now_ns);
		return CALL_NO_PLACE;
	}
	*ret_full = BULKHEAD_CALLS;
	if (admission == CALL_NO_PLACE)
		give_unused(asking, ret->place, released);
	else if (admission == CALL_REFUSED)
		holder_give(asking->cell, ret->place);
	return admission;
}

static void reject(const struct asking *asking, enum cell_total reason, uint64_t now_ns)
{
	struct breaker breaker = runtime_breaker(asking->rule, asking->cell);
	enum transition transition = breaker_reject(&breaker, reason, now_ns);

	if (transition != TRANSITION_NONE)
		runtime_announce(&breaker, transition);
}

static bool may_wait(const struct asking *asking)
{
	int error = errno;
	int flags;

	if (asking->may_not_wait || runtime.observe || !asking->rule->settings.queue ||
			!own_calls_begin())
		return false;
	flags = real()->fcntl(asking->fd, F_GETFL);
	own_calls_end();
	errno = error;
	return flags >= 0 && !(flags & O_NONBLOCK);
}

static void leave_queue(void)
{
	place_t place = queued;

	queued = 0;
	if (place)
		place_give(&runtime.segment->places, place);
}

static void thread_ends(void *nothing)
{
	(void)nothing;
	if (runtime_is_judging())
		leave_queue();
}

void admission_start(void)
{
	thread_end.is_there = !pthread_key_create(&thread_end.key, thread_ends) &&
			thread_end.key < KEYS_AT_HAND;
}

static bool join_queue(const struct asking *asking)
{
	struct bulkhead queue = bulkhead_for(asking, BULKHEAD_QUEUE);
	uint32_t limit = asking->rule->settings.queue;

	if (thread_end.is_there)
		pthread_setspecific(thread_end.key, &queued);
	if (bulkhead_take(&queue, holder_ready(), limit, &queued) == BULKHEAD_TAKEN)
		return true;
	return holder_reclaim(&queue, clock_now_ns()) &&
	       bulkhead_take(&queue, holder_ready(), limit, &queued) == BULKHEAD_TAKEN;
}

/* A send that has waited this long has waited as long as it may; a connect too. */
static uint64_t longest_wait_ns(const struct asking *asking)
{
	uint64_t own_ns = bound_own_ns(asking->fd, SO_SNDTIMEO);
	uint64_t wait_ns = asking->rule->settings.queue_wait_ns;

	return own_ns && own_ns < wait_ns ? own_ns : wait_ns;
}

/* What was full is asked again whenever a place came back, until the time is over, a handler of the
 * program's ends the wait, or a filter came by which nobody may wait. */
static enum admission wait_in_queue(const struct asking *asking, struct admitted *ret,
		enum bulkhead_purpose full)
{
	uint64_t until_ns = ret->now_ns + longest_wait_ns(asking);
	enum admission admission = CALL_NO_PLACE;
	enum holder_wait waited = HOLDER_WAITED;

	while (admission == CALL_NO_PLACE && waited == HOLDER_WAITED && ret->now_ns < until_ns) {
		uint32_t since = holder_wait_begins(asking->cell);
		struct bulkhead bulkhead = bulkhead_for(asking, full);

		holder_reclaim(&bulkhead, ret->now_ns);
		admission = ask(asking, ret, &full);
		if (admission == CALL_NO_PLACE)
			waited = holder_wait(asking->cell, since, until_ns);
		ret->now_ns = clock_now_ns();
	}
	/* After EINTR a connect is taken to go on by itself: without a place it cannot. */
	ret->is_interrupted = waited == HOLDER_INTERRUPTED && !asking->is_connect;
	return admission;
}

static bool refuse_full(const struct asking *asking, enum bulkhead_purpose full, bool has_waited,
		uint64_t now_ns)
{
	enum cell_total reason = CELL_TOTAL_rejected;

	if (has_waited)
		reason = CELL_TOTAL_rejected_queue;
	else if (full == BULKHEAD_CONNECTIONS)
		reason = CELL_TOTAL_rejected_connections;
	reject(asking, reason, now_ns);
	return false;
}

/* No place: perhaps the dead hold some, or somebody gives one back in time. */
__attribute__((noinline)) static bool ask_again(const struct asking *asking, struct admitted *ret,
		enum bulkhead_purpose full)
{
	struct bulkhead bulkhead = bulkhead_for(asking, full);
	enum admission admission = CALL_NO_PLACE;

	if (holder_reclaim(&bulkhead, ret->now_ns))
		admission = ask(asking, ret, &full);
	if (admission != CALL_NO_PLACE)
		return admission == CALL_ADMITTED;
	if (!may_wait(asking) || !join_queue(asking))
		return refuse_full(asking, full, false, ret->now_ns);
	admission = wait_in_queue(asking, ret, full);
	leave_queue();
	if (ret->is_interrupted)
		return false;
	if (admission == CALL_NO_PLACE)
		return refuse_full(asking, full, true, ret->now_ns);
	return admission == CALL_ADMITTED;
}

__attribute__((noinline)) static bool ask_limited(const struct asking *asking, struct admitted *ret)
{
	enum bulkhead_purpose full;
	enum admission admission;

	if (queued)
		leave_queue();
	admission = ask(asking, ret, &full);
	if (admission != CALL_NO_PLACE)
		return admission == CALL_ADMITTED;
	return ask_again(asking, ret, full);
}

bool admission_ask(const struct asking *asking, uint64_t now_ns, struct admitted *ret)
{
	ret->now_ns = now_ns;
	ret->place = 0;
	ret->is_interrupted = false;
	if (admission_is_limited(asking->rule, asking->cell))
		return ask_limited(asking, ret);
	ret->ticket.place = 0;
	return call_acquire(asking->rule, asking->cell, now_ns, &ret->ticket.permit);
}

void admission_return(const struct asking *asking, const struct admitted *admitted)
{
	holder_give(asking->cell, admitted->place);
	call_return(asking->rule, asking->cell, admitted->ticket, admitted->now_ns);
}
