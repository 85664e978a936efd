/* SPDX-License-Identifier: MIT */
/* The TCP connections that a process has descriptors of. */
#ifndef SHUNT_CLI_CONNECTIONS_H
#define SHUNT_CLI_CONNECTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "core/address.h"

struct connection {
	int fd; /* the lowest of those that have it */
	uint64_t inode;
	struct address address; /* of the other side */
	uint16_t port, local_port;
	uint8_t state;    /* TCP_ESTABLISHED, ... of <netinet/tcp.h> */
	bool is_incoming; /* by its port, it was accepted */
};

/* In order of descriptors, one entry per socket; to be freed. NULL and 0 where there is none. False
 * where they cannot be read. */
bool connections_read(pid_t pid, struct connection **ret, size_t *ret_count);

/* "established"; static. */
const char *connection_state_name(const struct connection *connection);

#endif
