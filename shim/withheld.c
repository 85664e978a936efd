/* SPDX-License-Identifier: MIT */
#include "shim/withheld.h"

#include <errno.h>
#include <stdatomic.h>
#include <stddef.h>
#include <sys/single_threaded.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include "shim/fd_table.h"
#include "shim/inside.h"
#include "shim/own_call.h"
#include "shim/raw.h"
#include "shim/registration.h"
#include "shim/runtime.h"

/* Of registration.withheld: which halves are not in the set, and whether nothing is. */
#define HALF_IN	  1u
#define HALF_OUT  2u
#define HALVES	  (HALF_IN | HALF_OUT)
#define IS_AWAY	  4u

#define OUT_BITS  ((uint32_t)(EPOLLOUT | EPOLLWRNORM | EPOLLWRBAND))
#define IN_BITS   ((uint32_t)(EPOLLIN | EPOLLPRI | EPOLLRDNORM | EPOLLRDBAND | EPOLLMSG | EPOLLRDHUP))
#define ERRORS	  ((uint32_t)(EPOLLERR | EPOLLHUP)) /* reported whether wanted or not */

#define WORDS_MAX (REGISTRATIONS_MAX / 64)
/* Where the kernel has no memory for a registration. */
#define TRY_AGAIN_NS 10000000ull

static hold_ask *ask_whom;

/* A bit for each registration that is withheld; one whose registration is not is stale. */
static _Atomic uint64_t marked[WORDS_MAX];
static _Atomic uint32_t marked_count;

bool withheld_start(hold_ask *ask)
{
	ask_whom = ask;
	return registrations_start();
}

bool hold_is_possible(void)
{
	if (atomic_load_explicit(&runtime.has_filter, memory_order_relaxed) ||
			process_is_vfork_child())
		return false;
	return runtime.config.timer != TIMER_OFF || __libc_single_threaded;
}

uint32_t withheld_bits(const struct hold_times *times, uint32_t events, uint64_t now_ns)
{
	uint32_t bits = 0;

	if (times->in_ns > now_ns)
		bits |= events & (IN_BITS | ERRORS);
	if (times->out_ns > now_ns)
		bits |= events & OUT_BITS;
	return bits;
}

struct hold_times withheld_ask(int fd, uint32_t events, uint64_t now_ns)
{
	if (!fd_table_find(fd))
		return (struct hold_times){ 0 };
	return ask_whom(fd, events, now_ns);
}

bool holds_exist(void)
{
	return atomic_load_explicit(&marked_count, memory_order_seq_cst);
}

/* seq_cst, here and in unmark(): who withholds says so in the registration and then marks it, who
 * takes the mark away looks then whether the registration says so. And who marks looks then whether
 * the timer thread runs, which goes idle and then looks for marks. */
static void mark(const struct registration *registration)
{
	uint32_t index = (uint32_t)(registration - registrations.all);
	uint64_t bit = UINT64_C(1) << index % 64;

	if (!(atomic_fetch_or_explicit(&marked[index / 64], bit, memory_order_seq_cst) & bit))
		atomic_fetch_add_explicit(&marked_count, 1, memory_order_seq_cst);
}

static void unmark(const struct registration *registration)
{
	uint32_t index = (uint32_t)(registration - registrations.all);
	uint64_t bit = UINT64_C(1) << index % 64;

	if (atomic_fetch_and_explicit(&marked[index / 64], ~bit, memory_order_seq_cst) & bit)
		atomic_fetch_sub_explicit(&marked_count, 1, memory_order_seq_cst);
	if (atomic_load_explicit(&registration->withheld, memory_order_seq_cst))
		mark(registration);
}

static uint32_t withheld_of(const struct registration *registration)
{
	return atomic_load_explicit(&registration->withheld, memory_order_seq_cst);
}

static uint32_t events_of(const struct registration *registration)
{
	return atomic_load_explicit(&registration->events, memory_order_relaxed);
}

static uint64_t data_of(const struct registration *registration)
{
	return atomic_load_explicit(&registration->data, memory_order_relaxed);
}

static uint64_t cookie_of(int fd)
{
	uint64_t cookie = 0;
	uint32_t size = sizeof(cookie);

	raw_syscall(SYS_getsockopt, fd, SOL_SOCKET, SO_COOKIE, (long)&cookie, (long)&size, 0);
	return cookie;
}

/* Is it about what these descriptors name now? Who connects a socket again has not closed it. */
static bool is_current(const struct registration *registration)
{
	return fd_table_kind(registration_set(registration)) == FD_EPOLL &&
	       cookie_of(registration_fd(registration)) ==
			       atomic_load_explicit(&registration->cookie, memory_order_relaxed);
}

static uint32_t halves_held(const struct hold_times *times, uint64_t now_ns)
{
	return (times->in_ns > now_ns ? HALF_IN : 0) | (times->out_ns > now_ns ? HALF_OUT : 0);
}

/* What stays in the set while these halves are not to be. */
static uint32_t events_without(uint32_t events, uint32_t withheld)
{
	if (withheld & HALF_IN)
		events &= ~IN_BITS;
	if (withheld & HALF_OUT)
		events &= ~OUT_BITS;
	return events;
}

/* Errors are reported as long as it is in the set at all; and only what is not in it is certain to
 * stay fired where it has. */
static uint32_t withheld_for(uint32_t events, uint32_t halves, bool is_failing)
{
	bool wants_out = events_without(events, halves) & OUT_BITS;

	if (halves && events & EPOLLONESHOT)
		return halves | IS_AWAY;
	if (halves & HALF_IN && (is_failing || !wants_out))
		return halves | IS_AWAY;
	return halves;
}

/* Does not go by libc: no hook, no errno. */
static long set_change(const struct registration *registration, int operation, uint32_t events)
{
	struct epoll_event event = { .events = events, .data.u64 = data_of(registration) };

	return raw_syscall(SYS_epoll_ctl, registration_set(registration), operation,
			registration_fd(registration), (long)&event, 0, 0);
}

/* From what is withheld to what shall be. 0 or a negated errno. */
static long set_move(const struct registration *registration, uint32_t withheld)
{
	bool was_away = withheld_of(registration) & IS_AWAY, is_away = withheld & IS_AWAY;
	uint32_t all = events_of(registration), events = events_without(all, withheld);
	long result = 0;

	if (was_away)
		return is_away ? 0 : set_change(registration, EPOLL_CTL_ADD, events);
	if (!is_away && !(all & EPOLLEXCLUSIVE))
		return set_change(registration, EPOLL_CTL_MOD, events);
	result = set_change(registration, EPOLL_CTL_DEL, 0);
	return is_away || result ? result : set_change(registration, EPOLL_CTL_ADD, events);
}

static void times_store(struct registration *registration, const struct hold_times *times)
{
	atomic_store_explicit(&registration->in_ns, times->in_ns, memory_order_relaxed);
	atomic_store_explicit(&registration->out_ns, times->out_ns, memory_order_relaxed);
}

/* What of `events` is left to tell. */
static uint32_t keep_out(struct registration *registration, uint32_t events,
		const struct hold_times *times, uint64_t now_ns)
{
	uint64_t cookie = cookie_of(registration_fd(registration));
	uint32_t left = events & ~withheld_bits(times, events, now_ns);
	uint32_t all = events_of(registration), was = withheld_of(registration);
	uint32_t withheld = withheld_for(all, halves_held(times, now_ns),
			!left && events & ERRORS);

	/* It has fired, and the program arms it again. Or the report is from before another thread
	 * took it out. */
	if ((left && all & EPOLLONESHOT) || was & IS_AWAY)
		return left;
	if (!cookie)
		return events;
	atomic_store_explicit(&registration->cookie, cookie, memory_order_relaxed);
	times_store(registration, times);
	if (was == withheld)
		return left;
	if (set_move(registration, withheld)) {
		registration_free(registration);
		return events;
	}
	atomic_store_explicit(&registration->withheld, withheld, memory_order_seq_cst);
	mark(registration);
	return left;
}

uint32_t withhold(int set, int fd, const struct epoll_event *event, uint64_t now_ns)
{
	const struct connection *connection = fd_table_find(fd);
	struct registration *registration;
	uint32_t left = event->events;
	struct hold_times times;
	uint64_t signals;

	if (!connection || !hold_is_possible())
		return left;
	times = ask_whom(fd, event->events, now_ns);
	if (!withheld_bits(&times, event->events, now_ns) || !own_calls_begin())
		return left;
	signals = registrations_lock(fd);
	registration = registration_find(set, fd);
	if (registration && data_of(registration) == event->data.u64 &&
			fd_table_find(fd) == connection)
		left = keep_out(registration, event->events, &times, now_ns);
	registrations_unlock(fd, signals);
	own_calls_end();
	return left;
}

bool withheld_is_away(int set, int fd)
{
	const struct registration *registration = registration_find(set, fd);

	return registration && withheld_of(registration) & IS_AWAY;
}

void withheld_returned(struct registration *registration)
{
	atomic_store_explicit(&registration->withheld, 0, memory_order_seq_cst);
	unmark(registration);
}

static int modify(struct registration *registration, const struct epoll_event *event)
{
	uint32_t before = events_of(registration);
	uint64_t data = data_of(registration);
	long result;

	if ((before | event->events) & EPOLLEXCLUSIVE)
		return -EINVAL;
	registration_fill(registration, event->events, event->data.u64);
	result = set_change(registration, EPOLL_CTL_ADD, event->events);
	if (result)
		registration_fill(registration, before, data);
	else
		withheld_returned(registration);
	return (int)result;
}

/* MOD gives it back at once: the kernel looks at it anew, and so does whoever is told. */
bool withheld_answers(int set, int operation, int fd, const struct epoll_event *event,
		int *ret_result)
{
	struct registration *registration = registration_find(set, fd);
	uint32_t withheld = registration ? withheld_of(registration) : 0;

	if (!withheld)
		return false;
	if (!is_current(registration)) {
		registration_free(registration);
		return false;
	}
	if (!(withheld & IS_AWAY))
		return false;
	*ret_result = -EEXIST;
	if (operation == EPOLL_CTL_MOD) {
		*ret_result = modify(registration, event);
	} else if (operation == EPOLL_CTL_DEL) {
		registration_free(registration);
		*ret_result = 0;
	}
	return operation == EPOLL_CTL_ADD || operation == EPOLL_CTL_MOD ||
			operation == EPOLL_CTL_DEL;
}

/* When the first of what is withheld of it is due. */
static uint64_t due_of(const struct registration *registration)
{
	uint32_t withheld = withheld_of(registration);
	uint64_t in_ns = atomic_load_explicit(&registration->in_ns, memory_order_relaxed);
	uint64_t out_ns = atomic_load_explicit(&registration->out_ns, memory_order_relaxed);

	if (!(withheld & HALF_IN))
		return out_ns;
	return withheld & HALF_OUT && out_ns < in_ns ? out_ns : in_ns;
}

/* When to look at it again; 0: not. */
static uint64_t give_back(struct registration *registration, const struct hold_times *times,
		uint64_t now_ns)
{
	uint32_t was = withheld_of(registration), halves = was & halves_held(times, now_ns);
	uint32_t withheld = withheld_for(events_of(registration), halves, false);
	long result;

	if (halves == (was & HALVES)) {
		times_store(registration, times);
		return due_of(registration);
	}
	result = set_move(registration, withheld);
	if (result == -ENOMEM || result == -ENOSPC) {
		times_store(registration, &(struct hold_times){ now_ns + TRY_AGAIN_NS,
				now_ns + TRY_AGAIN_NS });
		return now_ns + TRY_AGAIN_NS;
	}
	if (result && result != -EEXIST) {
		registration_free(registration);
		return 0;
	}
	times_store(registration, times);
	atomic_store_explicit(&registration->withheld, withheld, memory_order_seq_cst);
	return withheld ? due_of(registration) : 0;
}

/* With the lock. Pinned: the descriptor is not another's until it is done. */
static uint64_t settle(struct registration *registration, bool is_released, uint64_t now_ns)
{
	int fd = registration_fd(registration);
	struct connection *connection = fd_table_find(fd);
	struct hold_times times = { 0 };
	uint64_t due_ns = 0;

	if (connection && !fd_table_pin(connection))
		connection = NULL;
	if (!is_current(registration)) {
		registration_free(registration);
	} else {
		if (!is_released && hold_is_possible())
			times = withheld_ask(fd, 0, now_ns);
		due_ns = give_back(registration, &times, now_ns);
	}
	if (connection)
		fd_table_unpin(connection);
	return due_ns;
}

static uint64_t serve(struct registration *registration, bool is_released, uint64_t now_ns)
{
	int fd = registration_fd(registration);
	uint64_t pair = atomic_load_explicit(&registration->pair, memory_order_acquire), due_ns = 0;
	uint64_t signals;

	if (!withheld_of(registration)) {
		unmark(registration);
		return 0;
	}
	if (!is_released && due_of(registration) > now_ns)
		return due_of(registration);
	signals = registrations_lock(fd);
	if (pair && atomic_load_explicit(&registration->pair, memory_order_acquire) == pair &&
			registration_fd(registration) == fd && withheld_of(registration))
		due_ns = settle(registration, is_released, now_ns);
	if (!due_ns)
		unmark(registration);
	registrations_unlock(fd, signals);
	return due_ns;
}

static uint64_t serve_all(bool is_released, uint64_t now_ns)
{
	uint64_t earliest_ns = 0, due_ns, bits;

	if (!holds_exist() || !own_calls_begin())
		return 0;
	for (uint32_t i = 0; i < WORDS_MAX; i++) {
		bits = atomic_load_explicit(&marked[i], memory_order_acquire);
		for (; bits; bits &= bits - 1) {
			uint32_t bit = (uint32_t)__builtin_ctzll(bits);

			due_ns = serve(&registrations.all[i * 64 + bit], is_released, now_ns);
			if (due_ns && (!earliest_ns || due_ns < earliest_ns))
				earliest_ns = due_ns;
		}
	}
	own_calls_end();
	return earliest_ns;
}

uint64_t holds_serve(uint64_t now_ns)
{
	return serve_all(false, now_ns);
}

void holds_release(void)
{
	if (!process_is_vfork_child())
		serve_all(true, 0);
}

/* What has fired stays so, and one that is withheld will be reported anyway. */
static bool has_spent_edge(const struct registration *registration)
{
	uint32_t events = events_of(registration);

	return events & EPOLLET && !(events & EPOLLONESHOT) && !withheld_of(registration);
}

void hold_again(int fd)
{
	struct registration *registration;
	uint32_t position = 0;
	uint64_t signals;

	if (!hold_is_possible() || !registrations.all || !own_calls_begin())
		return;
	signals = registrations_lock(fd);
	while ((registration = registration_next(fd, &position))) {
		if (has_spent_edge(registration))
			set_move(registration, 0);
	}
	registrations_unlock(fd, signals);
	own_calls_end();
}

void hold_forked(void)
{
	registrations_forked();
	for (uint32_t i = 0; i < WORDS_MAX; i++) {
		uint64_t bits = atomic_exchange_explicit(&marked[i], 0, memory_order_relaxed);

		for (; bits; bits &= bits - 1)
			atomic_store_explicit(&registrations.all[i * 64 +
							(uint32_t)__builtin_ctzll(bits)]
							      .withheld,
					0, memory_order_relaxed);
	}
	atomic_store_explicit(&marked_count, 0, memory_order_relaxed);
}
