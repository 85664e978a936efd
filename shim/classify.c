/* SPDX-License-Identifier: MIT */
#include "shim/classify.h"

#include <errno.h>
#include <netdb.h>
#include <stddef.h>

/* What the tables of failures don't name is local: it says nothing about the peer. */
static const int connect_failures[] = { ECONNREFUSED, ECONNRESET, ECONNABORTED, EHOSTUNREACH,
	EHOSTDOWN, ENONET, ENOPROTOOPT, EPROTO };
static const int exchange_failures[] = { ECONNRESET, ECONNABORTED, EPIPE, EHOSTUNREACH };

#define LENGTH(array) (sizeof(array) / sizeof(array[0]))

static bool list_has(const int *list, size_t length, int error)
{
	for (size_t i = 0; i < length; i++) {
		if (list[i] == error)
			return true;
	}
	return false;
}

static bool is_failure(enum phase phase, int error)
{
	if (phase == PHASE_CONNECT)
		return list_has(connect_failures, LENGTH(connect_failures), error);
	return list_has(exchange_failures, LENGTH(exchange_failures), error);
}

enum outcome classify_errno(const struct settings *settings, enum phase phase, int error)
{
	if (error_set_has_errno(&settings->ignore, error))
		return OUTCOME_IGNORED;
	if (error_set_has_errno(&settings->fail, error))
		return OUTCOME_FAILURE;
	if (error == ETIMEDOUT)
		return OUTCOME_TIMEOUT;
	return is_failure(phase, error) ? OUTCOME_FAILURE : OUTCOME_CANCELLED;
}

enum outcome classify_lookup(const struct settings *settings, int error, int system_error)
{
	if (error == 0)
		return OUTCOME_SUCCESS;
	if (error_set_has_eai(&settings->ignore, error))
		return OUTCOME_IGNORED;
	if (error_set_has_eai(&settings->fail, error))
		return OUTCOME_FAILURE;
	if (error == EAI_SYSTEM)
		return classify_errno(settings, PHASE_CONNECT, system_error);
	return error == EAI_AGAIN || error == EAI_FAIL ? OUTCOME_FAILURE : OUTCOME_CANCELLED;
}
