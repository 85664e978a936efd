/* SPDX-License-Identifier: MIT */
#include "shim/withheld.h"

#include <errno.h>
#include <stdatomic.h>
#include <stddef.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include "shim/epoll_set.h"
#include "shim/fd_table.h"
#include "shim/halves.h"
#include "shim/inside.h"
#include "shim/own_call.h"
#include "shim/raw.h"
#include "shim/registration.h"
#include "shim/select_range.h"

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

struct hold_times withheld_ask(int fd, uint32_t events, uint64_t now_ns)
{
	if (!ask_whom || !fd_table_find(fd))
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

/* What of `events` is left to tell. */
static uint32_t keep_out(struct registration *registration, uint32_t events,
		const struct hold_times *times, uint64_t now_ns)
{
	uint64_t cookie = cookie_of(registration_fd(registration));
	uint32_t left = events & ~halves_bits(times, events, now_ns);
	uint32_t all = halves_events(registration), was = halves_of(registration);
	uint32_t withheld = halves_withheld(all, halves_held(times, now_ns),
			!left && events & HALVES_ERRORS);

	/* It has fired, and the program arms it again. Or the report is from before another thread
	 * took it out. */
	if ((left && all & EPOLLONESHOT) || was & HALVES_AWAY)
		return left;
	if (!cookie)
		return events;
	atomic_store_explicit(&registration->cookie, cookie, memory_order_relaxed);
	halves_set_times(registration, times);
	if (was == withheld)
		return left;
	if (halves_move(registration, withheld)) {
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

	if (!connection || !hold_may_be_given_back())
		return left;
	times = ask_whom(fd, event->events, now_ns);
	if (!halves_bits(&times, event->events, now_ns) || !own_calls_begin())
		return left;
	signals = registrations_lock(fd);
	registration = registration_find(set, fd);
	if (registration && halves_data(registration) == event->data.u64 &&
			fd_table_find(fd) == connection)
		left = keep_out(registration, event->events, &times, now_ns);
	registrations_unlock(fd, signals);
	own_calls_end();
	return left;
}

bool withheld_is_away(int set, int fd)
{
	const struct registration *registration = registration_find(set, fd);

	return registration && halves_of(registration) & HALVES_AWAY;
}

void withheld_returned(struct registration *registration)
{
	atomic_store_explicit(&registration->withheld, 0, memory_order_seq_cst);
	unmark(registration);
}

static int modify(struct registration *registration, const struct epoll_event *event)
{
	uint32_t before = halves_events(registration);
	uint64_t data = halves_data(registration);
	long result;

	if ((before | event->events) & EPOLLEXCLUSIVE)
		return -EINVAL;
	registration_fill(registration, event->events, event->data.u64);
	result = halves_control(registration, EPOLL_CTL_ADD, event->events);
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
	uint32_t withheld = registration ? halves_of(registration) : 0;

	if (!withheld)
		return false;
	if (!is_current(registration)) {
		registration_free(registration);
		return false;
	}
	if (!(withheld & HALVES_AWAY))
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

/* When to look at it again; 0: not. */
static uint64_t give_back(struct registration *registration, const struct hold_times *times,
		uint64_t now_ns)
{
	uint32_t was = halves_of(registration), halves = was & halves_held(times, now_ns);
	uint32_t withheld = halves_withheld(halves_events(registration), halves, false);
	long result;

	if (halves == (was & HALVES)) {
		halves_set_times(registration, times);
		return halves_due_ns(registration);
	}
	result = halves_move(registration, withheld);
	if (result == -ENOMEM || result == -ENOSPC) {
		halves_set_times(registration, &(struct hold_times){ now_ns + TRY_AGAIN_NS,
				now_ns + TRY_AGAIN_NS });
		return now_ns + TRY_AGAIN_NS;
	}
	if (result && result != -EEXIST) {
		registration_free(registration);
		return 0;
	}
	halves_set_times(registration, times);
	atomic_store_explicit(&registration->withheld, withheld, memory_order_seq_cst);
	return withheld ? halves_due_ns(registration) : 0;
}

/* With the lock. Pinned: the descriptor is not another's until it is done. */
static uint64_t settle(struct registration *registration, const struct hold_times *times,
		uint64_t now_ns)
{
	struct connection *connection = fd_table_find(registration_fd(registration));
	uint64_t due_ns = 0;

	if (connection && !fd_table_pin(connection))
		connection = NULL;
	if (is_current(registration))
		due_ns = give_back(registration, times, now_ns);
	else
		registration_free(registration);
	if (connection)
		fd_table_unpin(connection);
	return due_ns;
}

static uint64_t serve(struct registration *registration, bool is_released, uint64_t now_ns)
{
	int fd = registration_fd(registration);
	uint64_t pair = atomic_load_explicit(&registration->pair, memory_order_acquire), due_ns = 0;
	struct hold_times times = { 0 };
	uint64_t signals;

	if (!halves_of(registration)) {
		unmark(registration);
		return 0;
	}
	if (!is_released && halves_due_ns(registration) > now_ns)
		return halves_due_ns(registration);
	/* Without the lock: who is asked may want to know what is registered. */
	if (!is_released && hold_may_be_given_back())
		times = withheld_ask(fd, 0, now_ns);
	signals = registrations_lock(fd);
	if (pair && atomic_load_explicit(&registration->pair, memory_order_acquire) == pair &&
			registration_fd(registration) == fd && halves_of(registration))
		due_ns = settle(registration, &times, now_ns);
	if (!due_ns)
		unmark(registration);
	registrations_unlock(fd, signals);
	return due_ns;
}

static uint64_t serve_marked(bool is_released, uint64_t now_ns)
{
	uint64_t earliest_ns = 0, due_ns, bits;

	for (uint32_t i = 0; i < WORDS_MAX; i++) {
		bits = atomic_load_explicit(&marked[i], memory_order_acquire);
		for (; bits; bits &= bits - 1) {
			uint32_t bit = (uint32_t)__builtin_ctzll(bits);

			due_ns = serve(&registrations.all[i * 64 + bit], is_released, now_ns);
			if (due_ns && (!earliest_ns || due_ns < earliest_ns))
				earliest_ns = due_ns;
		}
	}
	return earliest_ns;
}

static uint64_t serve_all(bool is_released, uint64_t now_ns)
{
	uint64_t earliest_ns;

	if (!holds_exist() || !own_calls_begin())
		return 0;
	earliest_ns = serve_marked(is_released, now_ns);
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

/* Once no thread takes anything out any more, and before it is true that none may call. */
void holds_release_before_filter(void)
{
	bool is_first = atomic_load_explicit(&own_calls.forbidden, memory_order_relaxed) == 1;

	if (is_first && holds_exist())
		serve_marked(true, 0);
}

void holds_release_copy(int fd)
{
	const struct connection *connection = fd_table_find(fd);

	if (connection && (holds_are_shared() || atomic_load_explicit(&connection->references,
							 memory_order_relaxed) >= 2))
		holds_release_descriptor(fd);
}

void holds_release_descriptor(int fd)
{
	struct registration *registration;
	uint32_t position = 0;

	if (!holds_exist())
		return;
	while ((registration = registration_next(fd, &position))) {
		if (own_calls_begin()) {
			serve(registration, true, 0);
			own_calls_end();
		}
	}
}

/* What has fired stays so, and one that is withheld will be reported anyway. */
static bool has_spent_edge(const struct registration *registration)
{
	uint32_t events = halves_events(registration);

	return events & EPOLLET && !(events & EPOLLONESHOT) && !halves_of(registration);
}

void hold_again(int fd)
{
	struct registration *registration;
	uint32_t position = 0;
	uint64_t signals;

	if (!hold_may_be_given_back() || !registrations.all || !own_calls_begin())
		return;
	epoll_sets_know_seen();
	signals = registrations_lock(fd);
	while ((registration = registration_next(fd, &position))) {
		if (has_spent_edge(registration))
			halves_move(registration, 0);
	}
	registrations_unlock(fd, signals);
	own_calls_end();
}

void hold_forked(void)
{
	holds_share();
	registrations_forked();
	select_range_forked();
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
