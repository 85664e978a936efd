/* SPDX-License-Identifier: MIT */
/*
 * Data in. The caller's vectors and messages are looked at only after the kernel has accepted them.
 * What was not to read any byte of the stream is not told: nothing asked for, out-of-band data, the
 * error queue.
 */
#include "shim/gate.h"
#include "shim/hook_io.h"
#include "shim/real.h"

#define MSG_NO_STREAM (MSG_OOB | MSG_ERRQUEUE)

/* MSG_TRUNC on TCP throws the data away instead of writing it. */
static struct bytes bytes_at(struct iovec *vector, int flags)
{
	return flags & MSG_TRUNC ? bytes_out_of_sight : (struct bytes){ vector, 1 };
}

HOOK(ssize_t, read, (int fd, void *data, size_t size))
{
	struct connection *connection = gate_find(fd);
	struct iovec vector = { data, size };
	struct gate gate;

	if (!connection || !size)
		return real()->read(fd, data, size);
	if (!gate_receive(&gate, connection, bytes_at(&vector, 0), 0))
		return -1;
	return gate_received(&gate, real()->read(fd, data, size));
}

HOOK(ssize_t, recv, (int fd, void *data, size_t size, int flags))
{
	struct connection *connection = gate_find(fd);
	struct iovec vector = { data, size };
	struct gate gate;

	if (!connection || !size || flags & MSG_NO_STREAM)
		return real()->recv(fd, data, size, flags);
	if (!gate_receive(&gate, connection, bytes_at(&vector, flags), flags))
		return -1;
	return gate_received(&gate, real()->recv(fd, data, size, flags));
}

HOOK(ssize_t, recvfrom, (int fd, void *data, size_t size, int flags, struct sockaddr *address,
		socklen_t *length))
{
	struct connection *connection = gate_find(fd);
	struct iovec vector = { data, size };
	struct gate gate;

	if (!connection || !size || flags & MSG_NO_STREAM)
		return real()->recvfrom(fd, data, size, flags, address, length);
	if (!gate_receive(&gate, connection, bytes_at(&vector, flags), flags))
		return -1;
	return gate_received(&gate, real()->recvfrom(fd, data, size, flags, address, length));
}

/* The fortified twins: where the data would not fit, the real one ends the program. */
HOOK(ssize_t, __read_chk, (int fd, void *data, size_t size, size_t room))
{
	struct connection *connection = gate_find(fd);
	struct iovec vector = { data, size };
	struct gate gate;

	if (!connection || !size || size > room)
		return real()->__read_chk(fd, data, size, room);
	if (!gate_receive(&gate, connection, bytes_at(&vector, 0), 0))
		return -1;
	return gate_received(&gate, real()->__read_chk(fd, data, size, room));
}

HOOK(ssize_t, __recv_chk, (int fd, void *data, size_t size, size_t room, int flags))
{
	struct connection *connection = gate_find(fd);
	struct iovec vector = { data, size };
	struct gate gate;

	if (!connection || !size || size > room || flags & MSG_NO_STREAM)
		return real()->__recv_chk(fd, data, size, room, flags);
	if (!gate_receive(&gate, connection, bytes_at(&vector, flags), flags))
		return -1;
	return gate_received(&gate, real()->__recv_chk(fd, data, size, room, flags));
}

HOOK(ssize_t, __recvfrom_chk, (int fd, void *data, size_t size, size_t room, int flags,
		struct sockaddr *address, socklen_t *length))
{
	struct connection *connection = gate_find(fd);
	struct iovec vector = { data, size };
	struct gate gate;

	if (!connection || !size || size > room || flags & MSG_NO_STREAM)
		return real()->__recvfrom_chk(fd, data, size, room, flags, address, length);
	if (!gate_receive(&gate, connection, bytes_at(&vector, flags), flags))
		return -1;
	return gate_received(&gate,
			real()->__recvfrom_chk(fd, data, size, room, flags, address, length));
}

/* Of a call that returned `result`: nothing read where nothing was asked for is no end of file. */
static ssize_t vectors_received(struct gate *gate, const struct iovec *vectors, size_t count,
		int flags, ssize_t result)
{
	if (result == 0 && !vectors_size(vectors, count))
		return 0;
	if (result > 0 && !(flags & MSG_TRUNC))
		gate->bytes = (struct bytes){ vectors, count };
	return gate_received(gate, result);
}

HOOK(ssize_t, readv, (int fd, const struct iovec *vectors, int count))
{
	struct connection *connection = gate_find(fd);
	struct gate gate;

	if (!connection || !vectors_may_be_read(vectors, (size_t)count))
		return real()->readv(fd, vectors, count);
	if (!gate_receive(&gate, connection, bytes_out_of_sight, 0))
		return -1;
	return vectors_received(&gate, vectors, (size_t)count, 0, real()->readv(fd, vectors, count));
}

HOOK(ssize_t, recvmsg, (int fd, struct msghdr *message, int flags))
{
	struct connection *connection = gate_find(fd);
	struct gate gate;
	ssize_t result;

	if (!connection || flags & MSG_NO_STREAM || !pointer_may_be_read(message))
		return real()->recvmsg(fd, message, flags);
	if (!gate_receive(&gate, connection, bytes_out_of_sight, flags))
		return -1;
	result = real()->recvmsg(fd, message, flags);
	if (result < 0)
		return gate_received(&gate, result);
	return vectors_received(&gate, message->msg_iov, message->msg_iovlen, flags, result);
}

/* Told once, of all the messages that came. */
HOOK(int, recvmmsg, (int fd, struct mmsghdr *messages, unsigned int count, int flags,
		struct timespec *timeout))
{
	struct connection *connection = gate_find(fd);
	struct gate gate;
	ssize_t size = 0;
	int result;

	if (!connection || !count || flags & MSG_NO_STREAM || !pointer_may_be_read(messages))
		return real()->recvmmsg(fd, messages, count, flags, timeout);
	if (!gate_receive(&gate, connection, bytes_out_of_sight, flags))
		return -1;
	result = real()->recvmmsg(fd, messages, count, flags, timeout);
	for (int i = 0; i < result; i++)
		size += messages[i].msg_len;
	if (result < 0 || size)
		return (int)gate_received(&gate, result < 0 ? -1 : size) < 0 ? -1 : result;
	return (int)vectors_received(&gate, messages[0].msg_hdr.msg_iov,
			messages[0].msg_hdr.msg_iovlen, flags, 0) < 0 ? -1 : result;
}
