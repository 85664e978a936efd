/* SPDX-License-Identifier: MIT */
/*
 * poll and select tell which connections the program waited to read from; nothing of theirs is
 * changed. Ended by a signal they have waited too. Any other failure tells nothing: the caller's
 * memory may not be there.
 */
#include <errno.h>

#include "shim/gate.h"
#include "shim/gate_wait.h"
#include "shim/inject.h"
#include "shim/inside.h"
#include "shim/real.h"
#include "shim/vectors.h"

static bool has_waited(int result)
{
	return (result >= 0 || errno == EINTR) && !process_is_vfork_child();
}

/* When the wait began; 0 where it cannot be one, or nobody cares. */
static uint64_t wait_begins(bool can_wait)
{
	/* Here comes by whoever calls nothing else on what no rule concerned so far. */
	inject_look_outside();
	return can_wait ? gate_wait_clock() : 0;
}

GUARDED void alone_begins(const struct pollfd *entry)
{
	if (pointer_may_be_read(entry) && entry->events & (POLLIN | POLLRDNORM))
		gate_wait_begins(entry->fd);
}

/* A number: libc declares that poll only writes there, and a compiler takes a pointer that is read
 * before for one to nothing yet. */
static uint64_t poll_begins(uintptr_t entries, nfds_t count, bool can_wait)
{
	uint64_t began_ns = wait_begins(count && can_wait);

	if (began_ns && count == 1)
		alone_begins((const struct pollfd *)entries);
	return began_ns;
}

GUARDED int poll_ended(const struct pollfd *entries, nfds_t count,
		uint64_t began_ns, int result)
{
	if (!has_waited(result))
		return result;
	/* The kernel counts in 32 bits. */
	for (unsigned int i = 0; i < (unsigned int)count; i++) {
		struct connection *connection = gate_find(entries[i].fd);

		if (connection && entries[i].events & (POLLIN | POLLRDNORM))
			gate_waited(connection, began_ns);
	}
	return result;
}

HOOK(int, poll, (struct pollfd *entries, nfds_t count, int timeout))
{
	uint64_t began_ns = poll_begins((uintptr_t)entries, count, timeout);
	int result = real()->poll(entries, count, timeout);

	return began_ns ? poll_ended(entries, count, began_ns, result) : result;
}

HOOK(int, __poll_chk, (struct pollfd *entries, nfds_t count, int timeout, size_t room))
{
	uint64_t began_ns = poll_begins((uintptr_t)entries, count, timeout);
	int result = real()->__poll_chk(entries, count, timeout, room);

	return began_ns ? poll_ended(entries, count, began_ns, result) : result;
}

static bool is_zero(const struct timespec *timeout)
{
	return timeout && timeout->tv_sec == 0 && timeout->tv_nsec == 0;
}

HOOK(int, ppoll, (struct pollfd *entries, nfds_t count, const struct timespec *timeout,
		const sigset_t *mask))
{
	uint64_t began_ns = poll_begins((uintptr_t)entries, count, !is_zero(timeout));
	int result = real()->ppoll(entries, count, timeout, mask);

	return began_ns ? poll_ended(entries, count, began_ns, result) : result;
}

HOOK(int, __ppoll_chk, (struct pollfd *entries, nfds_t count, const struct timespec *timeout,
		const sigset_t *mask, size_t room))
{
	uint64_t began_ns = poll_begins((uintptr_t)entries, count, !is_zero(timeout));
	int result = real()->__ppoll_chk(entries, count, timeout, mask, room);

	return began_ns ? poll_ended(entries, count, began_ns, result) : result;
}

/* select overwrites its sets with its answer, so the question is kept. Descriptors past a plain
 * fd_set are waited for all the same; only the model does not see it. */
static fd_set read_set_copy(const fd_set *reads, int count)
{
	fd_set copy;
	size_t words = ((size_t)count + NFDBITS - 1) / NFDBITS;

	FD_ZERO(&copy);
	for (size_t i = 0; i < words && i < sizeof(copy.fds_bits) / sizeof(copy.fds_bits[0]); i++)
		copy.fds_bits[i] = reads->fds_bits[i];
	return copy;
}

static void select_begins(const fd_set *reads, int count)
{
	int alone = -1;

	for (int fd = 0; fd < count && fd < FD_SETSIZE; fd++) {
		if (!FD_ISSET(fd, reads))
			continue;
		if (alone >= 0)
			return;
		alone = fd;
	}
	gate_wait_begins(alone);
}

static int select_ended(const fd_set *reads, int count, uint64_t began_ns, int result)
{
	if (!has_waited(result))
		return result;
	for (int fd = 0; fd < count && fd < FD_SETSIZE; fd++) {
		struct connection *connection = FD_ISSET(fd, reads) ? gate_find(fd) : NULL;

		if (connection)
			gate_waited(connection, began_ns);
	}
	return result;
}

GUARDED int select_told(int count, fd_set *reads, fd_set *writes, fd_set *others,
		struct timeval *timeout, uint64_t began_ns)
{
	fd_set copy = read_set_copy(reads, count);

	select_begins(&copy, count);
	return select_ended(&copy, count, began_ns,
			real()->select(count, reads, writes, others, timeout));
}

HOOK(int, select, (int count, fd_set *reads, fd_set *writes, fd_set *others,
		struct timeval *timeout))
{
	bool names_some = count > 0 && pointer_may_be_read(reads);
	bool can_wait = !timeout || timeout->tv_sec || timeout->tv_usec;
	uint64_t began_ns = wait_begins(names_some && can_wait);

	if (began_ns)
		return select_told(count, reads, writes, others, timeout, began_ns);
	return real()->select(count, reads, writes, others, timeout);
}

GUARDED int pselect_told(int count, fd_set *reads, fd_set *writes, fd_set *others,
		const struct timespec *timeout, const sigset_t *mask, uint64_t began_ns)
{
	fd_set copy = read_set_copy(reads, count);

	select_begins(&copy, count);
	return select_ended(&copy, count, began_ns,
			real()->pselect(count, reads, writes, others, timeout, mask));
}

HOOK(int, pselect, (int count, fd_set *reads, fd_set *writes, fd_set *others,
		const struct timespec *timeout, const sigset_t *mask))
{
	bool names_some = count > 0 && pointer_may_be_read(reads);
	uint64_t began_ns = wait_begins(names_some && !is_zero(timeout));

	if (began_ns)
		return pselect_told(count, reads, writes, others, timeout, mask, began_ns);
	return real()->pselect(count, reads, writes, others, timeout, mask);
}
