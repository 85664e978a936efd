/* SPDX-License-Identifier: MIT */
/* Attempts. Those that a send makes (MSG_FASTOPEN) are in hook_send.c. */
#include <errno.h>

#include "shim/gate.h"
#include "shim/real.h"

HOOK(int, connect, (int fd, const struct sockaddr *address, socklen_t length))
{
	struct gate gate;
	int result;

	if (!gate_connect(&gate, fd, address, length))
		return -1;
	do
		result = real()->connect(fd, address, length);
	while (result && errno == EINTR && gate_connects_again(&gate));
	return gate.connection ? gate_connected(&gate, result) : result;
}
