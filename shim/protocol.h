/* SPDX-License-Identifier: MIT */
/* What the first bytes that a program sends say about all that follows. Pure. */
#ifndef SHUNT_SHIM_PROTOCOL_H
#define SHUNT_SHIM_PROTOCOL_H

#include <stdbool.h>

#include "shim/tls.h"

enum protocol {
	PROTOCOL_PLAIN, /* or not known */
	PROTOCOL_TLS,
	PROTOCOL_BLIND, /* SSH, rsync, HTTP/2: exchanges can't be told apart */
};

/* Of the first send: all that was offered, even if less was accepted. A greeting that is written in
 * pieces of a byte or two is plain. */
enum protocol protocol_of(struct bytes bytes);

/* A send of nothing at all. Data out of sight is taken for some. */
bool bytes_are_empty(struct bytes bytes);

#endif
