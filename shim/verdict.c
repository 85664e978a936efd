/* SPDX-License-Identifier: MIT */
#include "shim/verdict.h"

#include <errno.h>

#include "shim/classify.h"

/* On a reused connection it was idle, and the server closed it in that moment: harmless. */
static enum outcome broken_off(struct verdict verdict)
{
	if (verdict.has_waited)
		return OUTCOME_TIMEOUT;
	return verdict.is_reused ? OUTCOME_CANCELLED : OUTCOME_FAILURE;
}

enum outcome verdict_eof(struct verdict verdict)
{
	if (!verdict.has_waited && verdict.may_be_answered)
		return OUTCOME_SUCCESS;
	if (!verdict.has_waited && (verdict.has_shut_write || verdict.has_said_farewell))
		return OUTCOME_UNUSED;
	return broken_off(verdict);
}

static bool is_reset(int error)
{
	return error == ECONNRESET || error == ECONNABORTED || error == EPIPE;
}

enum outcome verdict_error(struct verdict verdict, const struct settings *settings, int error)
{
	enum outcome outcome;

	if (verdict.is_pending)
		return classify_errno(settings, PHASE_CONNECT, error);
	outcome = classify_errno(settings, PHASE_EXCHANGE, error);
	/* With fast open, or after a hasty SO_ERROR, the connect's own error comes this late. */
	if (outcome == OUTCOME_CANCELLED && !verdict.is_reused)
		return classify_errno(settings, PHASE_CONNECT, error);
	if (outcome == OUTCOME_FAILURE && is_reset(error) &&
			!error_set_has_errno(&settings->fail, error))
		return verdict.has_said_farewell ? verdict_eof(verdict) : broken_off(verdict);
	return outcome;
}

enum outcome verdict_closed(struct verdict verdict)
{
	if (verdict.has_waited)
		return OUTCOME_TIMEOUT;
	if (verdict.may_be_answered)
		return OUTCOME_SUCCESS;
	return verdict.is_silent || verdict.is_reused ? OUTCOME_UNUSED : OUTCOME_CANCELLED;
}
