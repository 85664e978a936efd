/* SPDX-License-Identifier: MIT */
/* How a call ended, from what was known of it when it did (docs/BEHAVIOUR.md section 2,
 * rules 3, 6, 7 and 10). Pure. */
#ifndef SHUNT_SHIM_VERDICT_H
#define SHUNT_SHIM_VERDICT_H

#include <stdbool.h>

#include "core/outcome.h"
#include "core/settings.h"

struct verdict {
	bool is_pending;      /* still connecting */
	bool is_silent;       /* established, and nothing was sent */
	bool is_reused;       /* not the connection's first call */
	bool has_waited;      /* for `abandon` or longer; where it is silent, for a greeting */
	bool has_shut_write;  /* the program has, itself */
	bool has_said_farewell; /* the program has, in TLS, and the server may be gone by then */
	bool may_be_answered; /* by the one record that was taken for a session ticket */
};

/* EOF came in place of an answer. */
enum outcome verdict_eof(struct verdict verdict);

/* An errno that ends the call: of connect, send, recv or SO_ERROR. */
enum outcome verdict_error(struct verdict verdict, const struct settings *settings, int error);

/* The program gave up, or left. */
enum outcome verdict_closed(struct verdict verdict);

#endif
