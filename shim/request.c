/* SPDX-License-Identifier: MIT */
#include "shim/request.h"

#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>

#include "core/clock.h"
#include "shim/inside.h"
#include "shim/own_call.h"
#include "shim/raw.h"
#include "shim/real.h"

/* As libc begins, and where an answer ends that was to have as much as it needs. */
#define HOST_BYTES     1024
#define HOST_BYTES_MAX (1024 * 1024)

enum request_state {
	REQUEST_OPEN,
	REQUEST_DONE, /* the caller frees it */
	REQUEST_LEFT  /* who asks does */
};

struct request *request_make(const struct question *question)
{
	struct request *request = malloc(sizeof(*request) + question_bytes(question));

	if (!request)
		return NULL;
	*request = (struct request){.question = question_copy(question, request->memory)};
	return request;
}

void request_free(struct request *request)
{
	if (request->answer.list)
		freeaddrinfo(request->answer.list);
	free(request->answer.memory);
	free(request);
}

/* The entry, and its buffer behind it. */
static int ask_entry(struct request *request, struct hostent *entry, size_t size)
{
	struct request_answer *answer = &request->answer;
	const struct question *question = &request->question;
	char *buffer = (char *)(entry + 1);

	if (question->kind == QUESTION_HOST)
		return real()->gethostbyname_r(question->host, entry, buffer, size, &answer->entry,
				&answer->h_error);
	return real()->gethostbyname2_r(question->host, question->family, entry, buffer, size,
			&answer->entry, &answer->h_error);
}

static void ask_host(struct request *request)
{
	struct request_answer *answer = &request->answer;
	bool may_grow = request->size == REQUEST_ANY_SIZE;
	size_t size = may_grow ? HOST_BYTES : request->size;

	if (size > HOST_BYTES_MAX)
		size = HOST_BYTES_MAX;
	do {
		free(answer->memory);
		answer->memory = malloc(sizeof(struct hostent) + size);
		if (!answer->memory) {
			answer->result = errno = ENOMEM;
			answer->h_error = NETDB_INTERNAL;
			return;
		}
		answer->result = ask_entry(request, answer->memory, size);
		size *= 2;
	} while (may_grow && answer->result == ERANGE && size <= HOST_BYTES_MAX);
}

__attribute__((noinline)) static void ask(struct request *request)
{
	const struct question *question = &request->question;

	inside_enter(__builtin_frame_address(0));
	/* What libc leaves alone is the caller's. */
	errno = request->answer.system_error;
	if (question->kind == QUESTION_LIST) {
		request->answer.result = real()->getaddrinfo(question->host, question->service,
				question->hints, &request->answer.list);
		request->answer.h_error = h_errno;
	} else {
		ask_host(request);
	}
	request->answer.system_error = errno;
	if (request->answer.result)
		request->answer.list = NULL;
	inside_leave();
}

void request_ask(struct request *request)
{
	request->is_late = clock_now_ns() >= request->deadline_ns;
	if (!request->is_late)
		ask(request);
}

static void wake(_Atomic uint32_t *state)
{
	raw_syscall(SYS_futex, (long)state, FUTEX_WAKE_PRIVATE, 1, 0, 0, 0);
	own_calls_end();
}

void request_publish(struct request *request)
{
	uint32_t seen = REQUEST_OPEN;

	/* release: who sees it done sees the answer. Whoever it is may free it at once; waking a
	 * word that is gone wakes nobody. */
	if (!atomic_compare_exchange_strong_explicit(&request->state, &seen, REQUEST_DONE,
			    memory_order_acq_rel, memory_order_acquire))
		request_free(request);
	else if (own_calls_begin())
		wake(&request->state);
}

void request_wait(struct request *request)
{
	struct timespec left;
	uint64_t now_ns;
	int type;

	/* A resolver can be cancelled where it waits. */
	pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, &type);
	while (atomic_load_explicit(&request->state, memory_order_acquire) == REQUEST_OPEN &&
			(now_ns = clock_now_ns()) < request->deadline_ns &&
			!own_calls_are_forbidden()) {
		left.tv_sec = (time_t)((request->deadline_ns - now_ns) / 1000000000u);
		left.tv_nsec = (long)((request->deadline_ns - now_ns) % 1000000000u);
		raw_syscall(SYS_futex, (long)&request->state, FUTEX_WAIT_PRIVATE, REQUEST_OPEN,
				(long)&left, 0, 0);
	}
	pthread_setcanceltype(type, NULL);
}

bool request_is_done(const struct request *request)
{
	return atomic_load_explicit(&request->state, memory_order_acquire) == REQUEST_DONE;
}

bool request_leave(struct request *request)
{
	uint32_t seen = REQUEST_OPEN;

	return atomic_compare_exchange_strong_explicit(&request->state, &seen, REQUEST_LEFT,
			memory_order_acq_rel, memory_order_acquire);
}
