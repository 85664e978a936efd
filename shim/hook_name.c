/* SPDX-License-Identifier: MIT */
/*
 * Name lookups. A refused one ends as a resolver that does not answer does, in every field:
 * measured on glibc, whose gethostbyname family then sets errno to EAGAIN as well.
 */
#include <errno.h>

#include "shim/inside.h"
#include "shim/lookup.h"
#include "shim/real.h"
#include "shim/runtime.h"

/* Not the lookups that libc's own modules make on the way to an answer. */
static bool is_guarded(void *frame)
{
	return runtime_is_judging() && !inside_is(frame);
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
	int error;

	if (!asks_resolver(node, hints) || !is_guarded(frame))
		return real()->getaddrinfo(node, service, hints, result);
	if (!lookup_begin(node))
		return EAI_AGAIN;
	inside_enter(frame);
	error = real()->getaddrinfo(node, service, hints, result);
	inside_leave();
	lookup_ended(node, error, error ? NULL : *result);
	return error;
}

static struct hostent *refuse(void)
{
	h_errno = TRY_AGAIN;
	errno = EAGAIN;
	return NULL;
}

static struct hostent *host_ended(const char *name, struct hostent *entry)
{
	inside_leave();
	lookup_host_ended(name, entry, h_errno);
	return entry;
}

HOOK(struct hostent *, gethostbyname, (const char *name))
{
	void *frame = __builtin_frame_address(0);

	if (!is_guarded(frame))
		return real()->gethostbyname(name);
	if (!lookup_begin(name))
		return refuse();
	inside_enter(frame);
	return host_ended(name, real()->gethostbyname(name));
}

HOOK(struct hostent *, gethostbyname2, (const char *name, int family))
{
	void *frame = __builtin_frame_address(0);

	if (!is_guarded(frame))
		return real()->gethostbyname2(name, family);
	if (!lookup_begin(name))
		return refuse();
	inside_enter(frame);
	return host_ended(name, real()->gethostbyname2(name, family));
}

static int refuse_reentrant(struct hostent **result, int *h_error)
{
	*result = NULL;
	*h_error = TRY_AGAIN;
	errno = EAGAIN;
	return EAGAIN;
}

static int reentrant_ended(const char *name, int error, struct hostent **result, const int *h_error)
{
	inside_leave();
	lookup_host_ended(name, error ? NULL : *result, *h_error);
	return error;
}

HOOK(int, gethostbyname_r,
		(const char *name, struct hostent *entry, char *buffer, size_t size,
				struct hostent **result, int *h_error))
{
	void *frame = __builtin_frame_address(0);

	if (!is_guarded(frame))
		return real()->gethostbyname_r(name, entry, buffer, size, result, h_error);
	if (!lookup_begin(name))
		return refuse_reentrant(result, h_error);
	inside_enter(frame);
	return reentrant_ended(name,
			real()->gethostbyname_r(name, entry, buffer, size, result, h_error), result,
			h_error);
}

HOOK(int, gethostbyname2_r,
		(const char *name, int family, struct hostent *entry, char *buffer, size_t size,
				struct hostent **result, int *h_error))
{
	void *frame = __builtin_frame_address(0);

	if (!is_guarded(frame))
		return real()->gethostbyname2_r(name, family, entry, buffer, size, result, h_error);
	if (!lookup_begin(name))
		return refuse_reentrant(result, h_error);
	inside_enter(frame);
	return reentrant_ended(name,
			real()->gethostbyname2_r(
					name, family, entry, buffer, size, result, h_error),
			result, h_error);
}
