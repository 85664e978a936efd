/* SPDX-License-Identifier: MIT */
/*
 * Registrations of stream sockets in epoll sets, as the program made them: the pair of a set's
 * descriptor and a socket's, with events and data. An event that epoll reports carries only the
 * data; here it is found again by that.
 *
 * Finding takes no lock. What changes a registration of fd is done with fd's lock held and signals
 * blocked, so that a handler never waits for what it has interrupted. A full table records no
 * more.
 */
#ifndef SHUNT_SHIM_REGISTRATION_H
#define SHUNT_SHIM_REGISTRATION_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define REGISTRATIONS_MAX 32768u

/* Sockets that one event may be about. */
#define CANDIDATES_MAX 8

struct registration {
	_Atomic uint64_t pair; /* 1 + the set's descriptor above, the socket's below; 0: free */
	_Atomic uint64_t data;
	_Atomic uint32_t events;
	/* shim/withheld.c's; zeroed memory: it is in its set as it is here. */
	_Atomic uint32_t withheld;
	_Atomic uint64_t in_ns, out_ns;
	_Atomic uint64_t cookie; /* the socket's, by which to know it again */
};

struct registrations {
	struct registration *all;
	_Atomic uint32_t end; /* none beyond was ever in use */
};

extern struct registrations registrations __attribute__((visibility("hidden")));

/* Reserves memory. False without it. */
bool registrations_start(void);

/* Around what changes registrations of fd; returns the signals that were blocked before. */
uint64_t registrations_lock(int fd);
void registrations_unlock(int fd, uint64_t signals);

/* In a forked child: who held a lock is not here. */
void registrations_forked(void);

/* Is fd a socket that may be held, or become one? */
bool registration_is_for(int fd);

/* Of a pair, or NULL. */
struct registration *registration_find(int set, int fd);

/* With fd's lock: the pair's, made where there is none; NULL where there is no room. */
struct registration *registration_claim(int set, int fd);
void registration_fill(struct registration *registration, uint32_t events, uint64_t data);
void registration_free(struct registration *registration);

static inline int registration_fd(const struct registration *registration)
{
	return (int)(uint32_t)atomic_load_explicit(&registration->pair, memory_order_relaxed);
}

static inline int registration_set(const struct registration *registration)
{
	return (int)(uint32_t)(atomic_load_explicit(&registration->pair,
			memory_order_relaxed) >> 32) - 1;
}

/* The next one of fd, from *position (0: the first); NULL: no more. */
struct registration *registration_next(int fd, uint32_t *position);

/* Something that is not recorded was registered with this data. */
void registration_other(uint64_t data);

/* Which sockets may an event of `set` with this data be about? *ret_is_certain: the one found, and
 * nothing else. */
uint32_t registration_candidates(int set, uint64_t data, int fds[CANDIDATES_MAX],
		bool *ret_is_certain);

/* What its number names is another set now: whatever was recorded of it is so no more. */
void registrations_forget(int set);

/* By which number the registrations of that set are recorded: one of several may name it (dup). */
int registrations_name(int set);

/* An event with this data came from `set`, and no candidate was found: is something recorded by
 * another number that names the same set? Then registrations_name() says so from now on. */
bool registrations_same(int set, uint64_t data);

#endif
