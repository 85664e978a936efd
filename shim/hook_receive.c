/* SPDX-License-Identifier: MIT */
/*
 * Data in. The caller's vectors and messages are looked at only after the kernel has accepted them.
 * What was not to read any byte of the stream is not told: nothing asked for, out-of-band data, the
 * error queue.
 */
#include <string.h>

#include "shim/gate.h"
#include "shim/gate_lifetime.h"
#include "shim/inject.h"
#include "shim/real.h"
#include "shim/vectors.h"

#define MSG_NO_STREAM (MSG_OOB | MSG_ERRQUEUE)

/* MSG_TRUNC on TCP throws the data away instead of writing it. */
static struct bytes bytes_at(struct iovec *vector, int flags)
{
	return flags & MSG_TRUNC ? bytes_out_of_sight : (struct bytes){ vector, 1 };
}

GUARDED ssize_t read_guarded(struct connection *connection, int fd, void *data, size_t size)
{
	struct iovec vector = { data, size };
	struct gate gate;

	if (!size)
		return real()->read(fd, data, size);
	if (!gate_receive(&gate, connection, fd, bytes_at(&vector, 0), 0))
		return -1;
	return gate_received(&gate, real()->read(fd, data, size));
}

HOOK(ssize_t, read, (int fd, void *data, size_t size))
{
	struct connection *connection = gate_find(fd);

	if (connection)
		return read_guarded(connection, fd, data, size);
	return real()->read(fd, data, size);
}

GUARDED ssize_t recv_guarded(struct connection *connection, int fd, void *data, size_t size,
		int flags)
{
	struct iovec vector = { data, size };
	struct gate gate;

	if (!size || flags & MSG_NO_STREAM)
		return real()->recv(fd, data, size, flags);
	if (!gate_receive(&gate, connection, fd, bytes_at(&vector, flags), flags))
		return -1;
	return gate_received(&gate, real()->recv(fd, data, size, flags));
}

HOOK(ssize_t, recv, (int fd, void *data, size_t size, int flags))
{
	struct connection *connection = gate_find(fd);

	if (connection)
		return recv_guarded(connection, fd, data, size, flags);
	return real()->recv(fd, data, size, flags);
}

GUARDED ssize_t recvfrom_guarded(struct connection *connection, int fd, void *data, size_t size,
		int flags, struct sockaddr *address, socklen_t *length)
{
	struct iovec vector = { data, size };
	struct gate gate;

	if (!size || flags & MSG_NO_STREAM)
		return real()->recvfrom(fd, data, size, flags, address, length);
	if (!gate_receive(&gate, connection, fd, bytes_at(&vector, flags), flags))
		return -1;
	return gate_received(&gate, real()->recvfrom(fd, data, size, flags, address, length));
}

HOOK(ssize_t, recvfrom, (int fd, void *data, size_t size, int flags, struct sockaddr *address,
		socklen_t *length))
{
	struct connection *connection = gate_find(fd);

	if (connection)
		return recvfrom_guarded(connection, fd, data, size, flags, address, length);
	if (address)
		inject_look_outside();
	return real()->recvfrom(fd, data, size, flags, address, length);
}

/* The fortified twins: where the data would not fit, the real one ends the program. */
HOOK(ssize_t, __read_chk, (int fd, void *data, size_t size, size_t room))
{
	struct connection *connection = gate_find(fd);
	struct iovec vector = { data, size };
	struct gate gate;

	if (!connection || !size || size > room)
		return real()->__read_chk(fd, data, size, room);
	if (!gate_receive(&gate, connection, fd, bytes_at(&vector, 0), 0))
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
	if (!gate_receive(&gate, connection, fd, bytes_at(&vector, flags), flags))
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
	if (!gate_receive(&gate, connection, fd, bytes_at(&vector, flags), flags))
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

GUARDED ssize_t readv_guarded(struct connection *connection, int fd, const struct iovec *vectors,
		int count)
{
	struct gate gate;

	if (!vectors_may_be_read(vectors, (size_t)count))
		return real()->readv(fd, vectors, count);
	if (!gate_receive(&gate, connection, fd, bytes_out_of_sight, 0))
		return -1;
	return vectors_received(&gate, vectors, (size_t)count, 0,
			real()->readv(fd, vectors, count));
}

HOOK(ssize_t, readv, (int fd, const struct iovec *vectors, int count))
{
	struct connection *connection = gate_find(fd);

	if (connection)
		return readv_guarded(connection, fd, vectors, count);
	return real()->readv(fd, vectors, count);
}

/* A descriptor that came with a message: whatever stood at its number was closed out of sight. */
static void rights_received(struct msghdr *message)
{
	for (struct cmsghdr *part = CMSG_FIRSTHDR(message); part;
			part = CMSG_NXTHDR(message, part)) {
		size_t size = part->cmsg_len - CMSG_LEN(0);
		int fd;

		if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS)
			continue;
		for (size_t at = 0; at + sizeof(fd) <= size; at += sizeof(fd)) {
			memcpy(&fd, CMSG_DATA(part) + at, sizeof(fd));
			gate_born_other(fd);
		}
	}
}

/* After success, when the kernel has written to it. */
static inline void control_received(struct msghdr *message)
{
	if (message->msg_controllen >= CMSG_LEN(sizeof(int)))
		rights_received(message);
}

GUARDED ssize_t recvmsg_guarded(struct connection *connection, int fd, struct msghdr *message,
		int flags)
{
	struct gate gate;
	ssize_t result;

	if (flags & MSG_NO_STREAM || !pointer_may_be_read(message))
		return real()->recvmsg(fd, message, flags);
	if (!gate_receive(&gate, connection, fd, bytes_out_of_sight, flags))
		return -1;
	result = real()->recvmsg(fd, message, flags);
	if (result < 0)
		return gate_received(&gate, result);
	return vectors_received(&gate, message->msg_iov, message->msg_iovlen, flags, result);
}

HOOK(ssize_t, recvmsg, (int fd, struct msghdr *message, int flags))
{
	struct connection *connection = gate_find(fd);
	ssize_t result;

	if (connection)
		return recvmsg_guarded(connection, fd, message, flags);
	result = real()->recvmsg(fd, message, flags);
	if (result >= 0)
		control_received(message);
	return result;
}

/* Told once, of all the messages that came. */
GUARDED int recvmmsg_guarded(struct connection *connection, int fd, struct mmsghdr *messages,
		unsigned int count, int flags, struct timespec *timeout)
{
	struct gate gate;
	ssize_t size = 0;
	int result;

	if (!count || flags & MSG_NO_STREAM || !pointer_may_be_read(messages))
		return real()->recvmmsg(fd, messages, count, flags, timeout);
	if (!gate_receive(&gate, connection, fd, bytes_out_of_sight, flags))
		return -1;
	result = real()->recvmmsg(fd, messages, count, flags, timeout);
	for (int i = 0; i < result; i++)
		size += messages[i].msg_len;
	if (result < 0 || size)
		size = gate_received(&gate, result < 0 ? -1 : size);
	else
		size = vectors_received(&gate, messages[0].msg_hdr.msg_iov,
				messages[0].msg_hdr.msg_iovlen, flags, 0);
	return size < 0 ? -1 : result;
}

HOOK(int, recvmmsg, (int fd, struct mmsghdr *messages, unsigned int count, int flags,
		struct timespec *timeout))
{
	struct connection *connection = gate_find(fd);
	int result;

	if (connection)
		return recvmmsg_guarded(connection, fd, messages, count, flags, timeout);
	result = real()->recvmmsg(fd, messages, count, flags, timeout);
	for (int i = 0; i < result; i++)
		control_received(&messages[i].msg_hdr);
	return result;
}
