/* SPDX-License-Identifier: MIT */
/* Attempts. Those that a send makes (MSG_FASTOPEN) are in hook_send.c. */
#include <errno.h>

#include "shim/fallback.h"
#include "shim/gate.h"
#include "shim/gate_connect.h"
#include "shim/real.h"

HOOK(int, connect, (int fd, const struct sockaddr *address, socklen_t length))
{
	struct gate gate;
	int result;

	if (!gate_connect(&gate, fd, address, length))
		return gate_may_fall_back(&gate) ? fallback_connect(fd, address, length) : -1;
	do
		result = real()->connect(fd, address, length);
	while (result && gate_connects_again(&gate));
	if (!gate.connection)
		return result;
	result = gate_connected(&gate, result);
	if (result && gate_may_fall_back(&gate))
		return fallback_connect(fd, address, length);
	return result;
}
