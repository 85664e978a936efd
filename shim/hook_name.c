/* SPDX-License-Identifier: MIT */
/*
 * Name lookups. A refused one ends as a resolver that does not answer does, in every field:
 * measured on glibc.
 */
#include <errno.h>

#include "shim/inject.h"
#include "shim/inside.h"
#include "shim/lookup.h"
#include "shim/question.h"
#include "shim/real.h"
#include "shim/resolve.h"
#include "shim/runtime.h"

/* Not the lookups that libc's own modules make on the way to an answer. Before real() is asked for:
 * rules that were added by hand may change what it says. */
static bool is_guarded(void *frame)
{
	if (!runtime_is_judging() || inside_is(frame))
		return false;
	inject_look();
	return true;
}

static bool asks_resolver(const char *node, const struct addrinfo *hints)
{
	return node && !(hints && hints->ai_flags & AI_NUMERICHOST);
}

HOOK(int, getaddrinfo,
		(const char *node, const char *service, const struct addrinfo *hints,
				struct addrinfo **result))
{
	void *frame = __builtin_frame_address(0);
	struct question question = { QUESTION_LIST, node, service, hints, AF_UNSPEC };
	struct lookup lookup;
	int error;

	if (!asks_resolver(node, hints) || !is_guarded(frame))
		return real()->getaddrinfo(node, service, hints, result);
	lookup = lookup_find(node);
	if (lookup_is_aided(&lookup))
		return resolve_list(&lookup, &question, frame, result);
	if (!lookup_begin(&lookup))
		return resolve_refuse_list();
	inside_enter(frame);
	error = real()->getaddrinfo(node, service, hints, result);
	inside_leave();
	lookup_ended(&lookup, error, error ? NULL : *result);
	return error;
}

static struct hostent *host_ended(const struct lookup *lookup, struct hostent *entry)
{
	inside_leave();
	lookup_host_ended(lookup, entry, h_errno);
	return entry;
}

HOOK(struct hostent *, gethostbyname, (const char *name))
{
	void *frame = __builtin_frame_address(0);
	struct question question = { .kind = QUESTION_HOST, .host = name };
	struct lookup lookup;

	if (!is_guarded(frame))
		return real()->gethostbyname(name);
	lookup = lookup_find(name);
	if (lookup_is_aided(&lookup))
		return resolve_host(&lookup, &question, frame);
	if (!lookup_begin(&lookup))
		return resolve_refuse_host();
	inside_enter(frame);
	return host_ended(&lookup, real()->gethostbyname(name));
}

HOOK(struct hostent *, gethostbyname2, (const char *name, int family))
{
	void *frame = __builtin_frame_address(0);
	struct question question = { .kind = QUESTION_HOST_OF_FAMILY, .host = name,
		.family = family };
	struct lookup lookup;

	if (!is_guarded(frame))
		return real()->gethostbyname2(name, family);
	lookup = lookup_find(name);
	if (lookup_is_aided(&lookup))
		return resolve_host(&lookup, &question, frame);
	if (!lookup_begin(&lookup))
		return resolve_refuse_host();
	inside_enter(frame);
	return host_ended(&lookup, real()->gethostbyname2(name, family));
}

static int reentrant_ended(const struct lookup *lookup, int error, struct hostent **result,
		const int *h_error)
{
	inside_leave();
	/* Of a numeric host libc never says why, and may be given nowhere to say it. */
	lookup_host_ended(lookup, error ? NULL : *result, h_error ? *h_error : 0);
	return error;
}

HOOK(int, gethostbyname_r,
		(const char *name, struct hostent *entry, char *buffer, size_t size,
				struct hostent **result, int *h_error))
{
	void *frame = __builtin_frame_address(0);
	struct question question = { .kind = QUESTION_HOST, .host = name };
	struct host_room room = { entry, buffer, size, result, h_error };
	struct lookup lookup;

	if (!is_guarded(frame))
		return real()->gethostbyname_r(name, entry, buffer, size, result, h_error);
	lookup = lookup_find(name);
	if (lookup_is_aided(&lookup))
		return resolve_host_into(&lookup, &question, frame, room);
	if (!lookup_begin(&lookup))
		return resolve_refuse_host_into(room);
	inside_enter(frame);
	return reentrant_ended(&lookup,
			real()->gethostbyname_r(name, entry, buffer, size, result, h_error), result,
			h_error);
}

HOOK(int, gethostbyname2_r,
		(const char *name, int family, struct hostent *entry, char *buffer, size_t size,
				struct hostent **result, int *h_error))
{
	void *frame = __builtin_frame_address(0);
	struct question question = { .kind = QUESTION_HOST_OF_FAMILY, .host = name,
		.family = family };
	struct host_room room = { entry, buffer, size, result, h_error };
	struct lookup lookup;

	if (!is_guarded(frame))
		return real()->gethostbyname2_r(name, family, entry, buffer, size, result, h_error);
	lookup = lookup_find(name);
	if (lookup_is_aided(&lookup))
		return resolve_host_into(&lookup, &question, frame, room);
	if (!lookup_begin(&lookup))
		return resolve_refuse_host_into(room);
	inside_enter(frame);
	return reentrant_ended(&lookup,
			real()->gethostbyname2_r(
					name, family, entry, buffer, size, result, h_error),
			result, h_error);
}
