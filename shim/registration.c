/* SPDX-License-Identifier: MIT */
#include "shim/registration.h"

#include <errno.h>
#include <stddef.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>

#include "shim/fd_table.h"
#include "shim/own_call.h"
#include "shim/raw.h"
#include "shim/thread.h"

#define COUNT	       REGISTRATIONS_MAX
#define WINDOW	       32u /* a pair stands in one of so many places */
#define PLACES_FOR_FD  4u
#define LOCKS	       1024u
#define BUCKETS	       8192u
#define WAYS	       8u
#define OTHER_WORDS    8192u
#define NAMED_MAX      1024 /* sets by these numbers may be known by another */
#define LOCK_SPINS     100
#define WAIT_STEP_NS   50000

/* Where to look for data: 1 + the number of a registration. Only hints: one may have been freed, or
 * may have other data by now. */
struct bucket {
	_Atomic uint32_t ways[WAYS];
};

struct registrations registrations;

static struct bucket *buckets;
static _Atomic uint64_t *others; /* a bit for each datum that something else has */
static _Atomic uint32_t locks[LOCKS];
static _Atomic bool is_incomplete; /* something had no room */
static _Atomic uint32_t names[NAMED_MAX]; /* 1 + another number of the same set; 0: none */

static void *reserve(size_t size)
{
	void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	return memory == MAP_FAILED ? NULL : memory;
}

bool registrations_start(void)
{
	size_t all = COUNT * sizeof(struct registration), hints = BUCKETS * sizeof(*buckets);
	char *memory = reserve(all + hints + OTHER_WORDS * sizeof(*others));

	if (!memory)
		return false;
	registrations.all = (struct registration *)(void *)memory;
	buckets = (struct bucket *)(void *)(memory + all);
	others = (_Atomic uint64_t *)(void *)(memory + all + hints);
	return true;
}

static _Atomic uint32_t *lock_of(int fd)
{
	return &locks[(uint32_t)fd % LOCKS];
}

uint64_t registrations_lock(int fd)
{
	uint64_t signals = thread_block_signals();
	struct timespec step = { .tv_nsec = WAIT_STEP_NS };
	uint32_t unlocked = 0;

	for (int spin = 0; !atomic_compare_exchange_weak_explicit(lock_of(fd), &unlocked, 1,
			memory_order_acquire, memory_order_relaxed); spin++) {
		unlocked = 0;
		if (spin >= LOCK_SPINS)
			raw_syscall(SYS_nanosleep, (long)&step, 0, 0, 0, 0, 0);
	}
	return signals;
}

void registrations_unlock(int fd, uint64_t signals)
{
	atomic_store_explicit(lock_of(fd), 0, memory_order_release);
	thread_restore_signals(signals);
}

void registrations_forked(void)
{
	for (uint32_t i = 0; i < LOCKS; i++)
		atomic_store_explicit(&locks[i], 0, memory_order_relaxed);
}

static uint64_t pair_of(int set, int fd)
{
	return ((uint64_t)(uint32_t)set + 1) << 32 | (uint32_t)fd;
}

static struct registration *place(int fd, uint32_t step)
{
	return &registrations.all[((uint32_t)fd * PLACES_FOR_FD + step) % COUNT];
}

static uint64_t pair_at(const struct registration *registration)
{
	return atomic_load_explicit(&registration->pair, memory_order_acquire);
}

struct registration *registration_find(int set, int fd)
{
	uint64_t pair = pair_of(set, fd);

	for (uint32_t i = 0; i < WINDOW; i++) {
		if (pair_at(place(fd, i)) == pair)
			return place(fd, i);
	}
	return NULL;
}

struct registration *registration_next(int fd, uint32_t *position)
{
	while (*position < WINDOW) {
		struct registration *registration = place(fd, (*position)++);
		uint64_t pair = pair_at(registration);

		if (pair && (uint32_t)pair == (uint32_t)fd)
			return registration;
	}
	return NULL;
}

bool registration_is_for(int fd)
{
	enum fd_kind kind = fd_table_kind(fd);

	return kind != FD_OTHER && kind != FD_EPOLL;
}

/* Nothing tells when a socket is closed. One that is withheld is given up by whoever serves it. */
static bool is_stale(const struct registration *registration)
{
	return !registration_is_for(registration_fd(registration)) &&
	       !atomic_load_explicit(&registration->withheld, memory_order_relaxed);
}

static void in_use(const struct registration *registration)
{
	uint32_t past = (uint32_t)(registration - registrations.all) + 1;
	uint32_t end = atomic_load_explicit(&registrations.end, memory_order_relaxed);

	while (end < past && !atomic_compare_exchange_weak_explicit(&registrations.end, &end, past,
			memory_order_release, memory_order_relaxed))
		;
}

static bool take(struct registration *registration, uint64_t pair)
{
	uint64_t seen = pair_at(registration);

	if (seen && !is_stale(registration))
		return false;
	if (!atomic_compare_exchange_strong_explicit(&registration->pair, &seen, pair,
			memory_order_acq_rel, memory_order_relaxed))
		return false;
	in_use(registration);
	return true;
}

struct registration *registration_claim(int set, int fd)
{
	struct registration *registration = registration_find(set, fd);

	for (uint32_t i = 0; !registration && i < WINDOW; i++) {
		if (take(place(fd, i), pair_of(set, fd)))
			registration = place(fd, i);
	}
	if (!registration)
		atomic_store_explicit(&is_incomplete, true, memory_order_relaxed);
	return registration;
}

static uint64_t mixed(uint64_t data)
{
	data ^= data >> 32;
	data *= 0x9e3779b97f4a7c15u;
	return data >> 32;
}

static struct bucket *bucket_of(uint64_t data)
{
	return &buckets[mixed(data) % BUCKETS];
}

static const struct registration *hinted(uint32_t hint)
{
	return hint && hint <= COUNT ? &registrations.all[hint - 1] : NULL;
}

/* Does it still lead to something that is looked for here? */
static bool hint_holds(uint32_t hint, const struct bucket *bucket)
{
	const struct registration *to = hinted(hint);

	return to && pair_at(to) && bucket_of(atomic_load_explicit(&to->data,
			memory_order_relaxed)) == bucket;
}

static void hint_add(const struct registration *registration, uint64_t data)
{
	uint32_t hint = (uint32_t)(registration - registrations.all) + 1, seen;
	struct bucket *bucket = bucket_of(data);

	for (uint32_t i = 0; i < WAYS; i++) {
		if (atomic_load_explicit(&bucket->ways[i], memory_order_relaxed) == hint)
			return;
	}
	for (uint32_t i = 0; i < WAYS; i++) {
		seen = atomic_load_explicit(&bucket->ways[i], memory_order_relaxed);
		if (!hint_holds(seen, bucket) &&
				atomic_compare_exchange_strong_explicit(&bucket->ways[i], &seen,
						hint, memory_order_release, memory_order_relaxed))
			return;
	}
	/* So many sockets of one datum: none of them can be told from the others anyway. */
}

void registration_fill(struct registration *registration, uint32_t events, uint64_t data)
{
	atomic_store_explicit(&registration->events, events, memory_order_relaxed);
	atomic_store_explicit(&registration->data, data, memory_order_relaxed);
	hint_add(registration, data);
}

void registration_free(struct registration *registration)
{
	atomic_store_explicit(&registration->withheld, 0, memory_order_relaxed);
	atomic_store_explicit(&registration->pair, 0, memory_order_release);
}

void registration_other(uint64_t data)
{
	uint64_t bit = mixed(data) % (OTHER_WORDS * 64);

	atomic_fetch_or_explicit(&others[bit / 64], UINT64_C(1) << bit % 64, memory_order_relaxed);
}

static bool has_other(uint64_t data)
{
	uint64_t bit = mixed(data) % (OTHER_WORDS * 64);

	return atomic_load_explicit(&others[bit / 64], memory_order_relaxed) >> bit % 64 & 1;
}

static bool has_data(const struct registration *registration, uint64_t data)
{
	return atomic_load_explicit(&registration->data, memory_order_relaxed) == data;
}

static bool has(const int fds[], uint32_t count, int fd)
{
	for (uint32_t i = 0; i < count; i++) {
		if (fds[i] == fd)
			return true;
	}
	return false;
}

uint32_t registration_candidates(int set, uint64_t data, int fds[CANDIDATES_MAX],
		bool *ret_is_certain)
{
	const struct bucket *bucket = bucket_of(data);
	uint32_t count = 0;

	for (uint32_t i = 0; i < WAYS; i++) {
		const struct registration *to = hinted(
				atomic_load_explicit(&bucket->ways[i], memory_order_acquire));

		if (!to || !registration_is_for(registration_fd(to)) || !has_data(to, data))
			continue;
		/* Of a socket in many sets, not each of them has a hint. */
		if (registration_set(to) != set)
			to = registration_find(set, registration_fd(to));
		if (to && has_data(to, data) && !has(fds, count, registration_fd(to)))
			fds[count++] = registration_fd(to);
	}
	*ret_is_certain = count == 1 && !has_other(data);
	return count;
}

int registrations_name(int set)
{
	int other = (uint32_t)set < NAMED_MAX ? (int)atomic_load_explicit(&names[set],
			memory_order_relaxed) - 1 : -1;

	return other >= 0 && fd_table_kind(other) == FD_EPOLL ? other : set;
}

/* Asked by adding it a second time, which the kernel refuses. */
static bool set_has(int set, int fd)
{
	struct epoll_event event = { .events = 0 };
	long result;

	if (!own_calls_begin())
		return false;
	result = raw_syscall(SYS_epoll_ctl, set, EPOLL_CTL_ADD, fd, (long)&event, 0, 0);
	if (result == 0)
		raw_syscall(SYS_epoll_ctl, set, EPOLL_CTL_DEL, fd, (long)&event, 0, 0);
	own_calls_end();
	return result == -EEXIST;
}

bool registrations_same(int set, uint64_t data)
{
	const struct bucket *bucket = bucket_of(data);

	if ((uint32_t)set >= NAMED_MAX ||
			atomic_load_explicit(&is_incomplete, memory_order_relaxed))
		return false;
	for (uint32_t i = 0; i < WAYS; i++) {
		const struct registration *to = hinted(
				atomic_load_explicit(&bucket->ways[i], memory_order_acquire));

		if (!to || !pair_at(to) || registration_set(to) == set ||
				fd_table_kind(registration_set(to)) != FD_EPOLL ||
				!fd_table_find(registration_fd(to)) ||
				!has_data(to, data) || !set_has(set, registration_fd(to)))
			continue;
		atomic_store_explicit(&names[set], (uint32_t)registration_set(to) + 1,
				memory_order_relaxed);
		return true;
	}
	return false;
}

void registrations_forget(int set)
{
	uint32_t end = atomic_load_explicit(&registrations.end, memory_order_acquire);

	for (uint32_t i = 0; i < NAMED_MAX; i++) {
		if (i == (uint32_t)set || atomic_load_explicit(&names[i],
				memory_order_relaxed) == (uint32_t)set + 1)
			atomic_store_explicit(&names[i], 0, memory_order_relaxed);
	}
	for (uint32_t i = 0; i < end; i++) {
		struct registration *registration = &registrations.all[i];
		uint64_t pair = pair_at(registration), signals;
		int fd = (int)(uint32_t)pair;

		if (pair >> 32 != (uint64_t)(uint32_t)set + 1)
			continue;
		signals = registrations_lock(fd);
		if (pair_at(registration) == pair)
			registration_free(registration);
		registrations_unlock(fd, signals);
	}
}
