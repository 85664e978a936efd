/* SPDX-License-Identifier: MIT */
/* sockaddr to address and port. */
#ifndef SHUNT_SHIM_ENDPOINT_H
#define SHUNT_SHIM_ENDPOINT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include "core/target.h"

/*
 * False for what is not ours to judge: NULL, a pointer that cannot be user memory, a length too
 * short for the family, a family other than AF_INET and AF_INET6. Reads nothing but what the length
 * covers. v4-mapped becomes IPv4.
 */
bool endpoint_read(const struct sockaddr *address, socklen_t length, struct address *ret_address,
		uint16_t *ret_port);

/* Of an address that endpoint_read() took; it may stand anywhere. */
sa_family_t endpoint_family(const struct sockaddr *address);

/* connect() with AF_UNSPEC: the socket is to be disconnected. As careful as endpoint_read(). */
bool endpoint_is_disconnect(const struct sockaddr *address, socklen_t length);

#endif
