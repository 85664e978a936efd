/* SPDX-License-Identifier: MIT */
#include "shim/resolve.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#include "core/clock.h"
#include "shim/answers.h"
#include "shim/host_entry.h"
#include "shim/inside.h"
#include "shim/real.h"
#include "shim/resolver.h"
#include "shim/runtime.h"
#include "shim/thread.h"

int resolve_refuse_list(void)
{
	h_errno = TRY_AGAIN;
	errno = EAGAIN;
	return EAI_AGAIN;
}

struct hostent *resolve_refuse_host(void)
{
	h_errno = TRY_AGAIN;
	errno = EAGAIN;
	return NULL;
}

int resolve_refuse_host_into(struct host_room room)
{
	resolve_refuse_host();
	*room.result = NULL;
	*room.h_error = TRY_AGAIN;
	return EAGAIN;
}

static const struct settings *settings_of(const struct lookup *lookup)
{
	return &lookup->rule->settings;
}

/* RESOLVER_UNAVAILABLE: the caller asks on this thread, for as long as it takes. */
static enum resolver_end ask_pool(const struct lookup *lookup, const struct question *question,
		size_t size, struct request_answer *ret_answer)
{
	uint64_t timeout_ns = settings_of(lookup)->resolve_timeout_ns;
	enum resolver_end end;

	if (!timeout_ns)
		return RESOLVER_UNAVAILABLE;
	end = resolver_ask(lookup->rule, question, size, clock_now_ns() + timeout_ns, ret_answer);
	if (end == RESOLVER_UNAVAILABLE)
		runtime_unenforced(lookup->rule, UNENFORCED_LOOKUP);
	return end;
}

/* Of a lookup that the pool did not answer. */
static enum outcome settle_unanswered(const struct lookup *lookup, enum resolver_end end)
{
	if (end == RESOLVER_TIMED_OUT) {
		lookup_timed_out(lookup);
		return OUTCOME_TIMEOUT;
	}
	lookup_rejected(lookup);
	return OUTCOME_REJECTED;
}

/* May an old answer stand in? Not for one that says something about the name. */
static bool may_be_stale(enum outcome outcome)
{
	return outcome_is_error(outcome) || outcome == OUTCOME_SHORT_CIRCUITED;
}

/* An answer that is kept and no older than that, 0: none. */
static bool list_kept(const struct lookup *lookup, const struct question *question,
		uint64_t max_age_ns, struct addrinfo **result)
{
	struct addrinfo *list;

	if (!max_age_ns || resolver_is_elsewhere())
		return false;
	list = answers_list(question, max_age_ns, clock_now_ns());
	if (!list)
		return false;
	lookup_cached(lookup, list);
	*result = list;
	return true;
}

static bool keeps(const struct lookup *lookup)
{
	return (settings_of(lookup)->resolve_cache_ns || settings_of(lookup)->resolve_stale_ns) &&
	       !resolver_is_elsewhere();
}

static const struct request_answer unanswered_list = {
		.result = EAI_AGAIN,
		.system_error = EAGAIN,
		.h_error = TRY_AGAIN,
};

/* What an admitted lookup came to. */
static struct request_answer list_ask(const struct lookup *lookup, const struct question *question,
		void *frame, enum outcome *ret_outcome)
{
	struct request_answer answer = {0};
	enum resolver_end end;

	inside_enter(frame);
	end = ask_pool(lookup, question, 0, &answer);
	if (end == RESOLVER_UNAVAILABLE) {
		answer.result = real()->getaddrinfo(
				question->host, question->service, question->hints, &answer.list);
		answer.system_error = errno;
		answer.h_error = h_errno;
		end = RESOLVER_ANSWERED;
	}
	inside_leave();
	if (end != RESOLVER_ANSWERED) {
		*ret_outcome = settle_unanswered(lookup, end);
		return unanswered_list;
	}
	errno = answer.system_error;
	*ret_outcome = lookup_ended(lookup, answer.result, answer.list);
	return answer;
}

int resolve_list(const struct lookup *lookup, const struct question *question, void *frame,
		struct addrinfo **result)
{
	struct request_answer answer = unanswered_list;
	enum outcome outcome = OUTCOME_SHORT_CIRCUITED;
	int kept = errno;

	if (list_kept(lookup, question, settings_of(lookup)->resolve_cache_ns, result))
		goto found;
	if (lookup_begin(lookup))
		answer = list_ask(lookup, question, frame, &outcome);
	if (!answer.result) {
		if (keeps(lookup))
			answers_keep_list(question, answer.list, clock_now_ns());
		*result = answer.list;
		goto found;
	}
	if (may_be_stale(outcome) &&
			list_kept(lookup, question, settings_of(lookup)->resolve_stale_ns, result))
		goto found;
	h_errno = answer.h_error;
	errno = answer.system_error;
	return answer.result;
found:
	errno = kept;
	return 0;
}

/* Where gethostbyname() and gethostbyname2() leave their answers. */
struct static_room {
	struct hostent entry;
	char *buffer;
	size_t size;
};

static struct static_room static_rooms[2];
static pthread_mutex_t static_mutex = PTHREAD_MUTEX_INITIALIZER;

static struct static_room *static_room_of(const struct question *question)
{
	return &static_rooms[question->kind == QUESTION_HOST_OF_FAMILY];
}

static bool static_grow(struct static_room *room, size_t size)
{
	char *buffer;

	if (room->size >= size)
		return true;
	buffer = realloc(room->buffer, size);
	if (!buffer)
		return false;
	room->buffer = buffer;
	room->size = size;
	return true;
}

static struct hostent *static_copy(const struct question *question, const struct hostent *entry)
{
	struct static_room *room = static_room_of(question);
	uint64_t signals;
	bool is_there;

	if (!thread_lock(&static_mutex, &signals))
		return NULL;
	is_there = static_grow(room, host_entry_bytes(entry)) &&
		   host_entry_copy(entry, &room->entry, room->buffer, room->size);
	thread_unlock(&static_mutex, signals);
	return is_there ? &room->entry : NULL;
}

static struct hostent *static_kept(
		const struct lookup *lookup, const struct question *question, uint64_t max_age_ns)
{
	struct static_room *room = static_room_of(question);
	enum answers_found found = ANSWERS_NONE;
	uint64_t signals;

	if (!max_age_ns || resolver_is_elsewhere() || !thread_lock(&static_mutex, &signals))
		return NULL;
	if (static_grow(room, ANSWERS_BYTES_EACH))
		found = answers_entry(question, max_age_ns, clock_now_ns(), &room->entry,
				room->buffer, room->size);
	thread_unlock(&static_mutex, signals);
	if (found != ANSWERS_FOUND)
		return NULL;
	lookup_host_cached(lookup, &room->entry);
	return &room->entry;
}

static const struct request_answer unanswered_host = {
		.result = EAGAIN,
		.system_error = EAGAIN,
		.h_error = TRY_AGAIN,
};

static struct request_answer ask_static(const struct question *question)
{
	struct request_answer answer = {0};

	answer.entry = question->kind == QUESTION_HOST
				       ? real()->gethostbyname(question->host)
				       : real()->gethostbyname2(question->host, question->family);
	answer.system_error = errno;
	answer.h_error = h_errno;
	return answer;
}

static struct request_answer ask_into(const struct question *question, const struct host_room *room)
{
	struct request_answer answer = {.h_error = *room->h_error};

	if (question->kind == QUESTION_HOST)
		answer.result = real()->gethostbyname_r(question->host, room->entry, room->buffer,
				room->size, &answer.entry, &answer.h_error);
	else
		answer.result = real()->gethostbyname2_r(question->host, question->family,
				room->entry, room->buffer, room->size, &answer.entry,
				&answer.h_error);
	answer.system_error = errno;
	return answer;
}

/* What an admitted lookup came to; without `room` the answer is libc's or is the pool's. */
static struct request_answer host_ask(const struct lookup *lookup, const struct question *question,
		void *frame, const struct host_room *room, enum outcome *ret_outcome)
{
	struct request_answer answer = {.h_error = room ? *room->h_error : 0};
	enum resolver_end end;

	inside_enter(frame);
	end = ask_pool(lookup, question, room ? room->size : REQUEST_ANY_SIZE, &answer);
	if (end == RESOLVER_UNAVAILABLE) {
		answer = room ? ask_into(question, room) : ask_static(question);
		end = RESOLVER_ANSWERED;
	}
	inside_leave();
	if (end != RESOLVER_ANSWERED) {
		*ret_outcome = settle_unanswered(lookup, end);
		return unanswered_host;
	}
	errno = answer.system_error;
	*ret_outcome = lookup_host_ended(lookup, answer.entry, answer.h_error);
	if (answer.entry && keeps(lookup))
		answers_keep_entry(question, answer.entry, clock_now_ns());
	return answer;
}

struct hostent *resolve_host(
		const struct lookup *lookup, const struct question *question, void *frame)
{
	int kept = errno;
	struct hostent *entry =
			static_kept(lookup, question, settings_of(lookup)->resolve_cache_ns);
	struct request_answer answer = unanswered_host;
	enum outcome outcome = OUTCOME_SHORT_CIRCUITED;

	if (!entry && lookup_begin(lookup)) {
		answer = host_ask(lookup, question, frame, NULL, &outcome);
		entry = answer.entry && answer.memory ? static_copy(question, answer.entry)
						      : answer.entry;
		free(answer.memory);
	}
	if (!entry && may_be_stale(outcome))
		entry = static_kept(lookup, question, settings_of(lookup)->resolve_stale_ns);
	errno = entry ? kept : answer.system_error;
	if (!entry)
		h_errno = answer.h_error;
	return entry;
}

/* The caller's buffer is too small: he will ask again with a larger one. */
static int refuse_room(struct host_room room)
{
	*room.result = NULL;
	*room.h_error = NETDB_INTERNAL;
	errno = ERANGE;
	return ERANGE;
}

/* True: *ret_result is the hook's. */
static bool kept_into(const struct lookup *lookup, const struct question *question,
		uint64_t max_age_ns, struct host_room room, int *ret_result)
{
	enum answers_found found = ANSWERS_NONE;

	if (max_age_ns && !resolver_is_elsewhere())
		found = answers_entry(question, max_age_ns, clock_now_ns(), room.entry, room.buffer,
				room.size);
	if (found == ANSWERS_TOO_LARGE)
		*ret_result = refuse_room(room);
	if (found != ANSWERS_FOUND)
		return found == ANSWERS_TOO_LARGE;
	lookup_host_cached(lookup, room.entry);
	*room.result = room.entry;
	*room.h_error = NETDB_SUCCESS;
	*ret_result = 0;
	return true;
}

/* Of an answer on the worker's memory. */
static int copy_into(struct request_answer answer, struct host_room room)
{
	int result = 0;

	if (host_entry_copy(answer.entry, room.entry, room.buffer, room.size))
		*room.result = room.entry;
	else
		result = refuse_room(room);
	free(answer.memory);
	return result;
}

int resolve_host_into(const struct lookup *lookup, const struct question *question, void *frame,
		struct host_room room)
{
	struct request_answer answer = unanswered_host;
	enum outcome outcome = OUTCOME_SHORT_CIRCUITED;
	int kept = errno, result;

	if (kept_into(lookup, question, settings_of(lookup)->resolve_cache_ns, room, &result))
		return result;
	if (lookup_begin(lookup))
		answer = host_ask(lookup, question, frame, &room, &outcome);
	if (!answer.entry && may_be_stale(outcome) &&
			kept_into(lookup, question, settings_of(lookup)->resolve_stale_ns, room,
					&result)) {
		free(answer.memory);
		return result;
	}
	*room.result = answer.entry;
	*room.h_error = answer.h_error;
	errno = answer.entry ? kept : answer.system_error;
	if (answer.entry && answer.memory)
		return copy_into(answer, room);
	free(answer.memory);
	return answer.result;
}

void resolve_forked(void)
{
	static_mutex = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
	answers_forked();
	resolver_forked();
}
