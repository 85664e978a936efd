/* SPDX-License-Identifier: MIT */
/* Result and errno, by phase, into an outcome: the table of docs/BEHAVIOUR.md section 2. Pure. */
#ifndef SHUNT_SHIM_CLASSIFY_H
#define SHUNT_SHIM_CLASSIFY_H

#include "core/outcome.h"
#include "core/settings.h"

enum phase { PHASE_CONNECT, PHASE_EXCHANGE };

/* `error` is an errno, not 0 and not one that means pending (EINPROGRESS, EALREADY, EINTR; EAGAIN
 * in PHASE_EXCHANGE). The rule's `ignore` and `fail` come first. What no table names is CANCELLED:
 * it says nothing about the peer. */
enum outcome classify_errno(const struct settings *settings, enum phase phase, int error);

/* `error` is a getaddrinfo() result: 0, EAI_*; with EAI_SYSTEM, `system_error` is the errno. */
enum outcome classify_lookup(const struct settings *settings, int error, int system_error);

#endif
