/* SPDX-License-Identifier: MIT */
/*
 * Data out. What sends no byte of the stream, or what the kernel refuses before it looks at the
 * socket, goes straight to it: no data, out-of-band data, pointers and counts that cannot be.
 *
 * The guarded half of a hook is a function of its own, so that the other half, which most calls
 * take, needs no frame.
 */
#include "shim/gate.h"
#include "shim/gate_connect.h"
#include "shim/inject.h"
#include "shim/real.h"
#include "shim/vectors.h"

static bool is_data(const void *data, size_t size)
{
	return (ssize_t)size > 0 && pointer_may_be_read(data);
}

static struct bytes message_bytes(const struct msghdr *message)
{
	return (struct bytes){ message->msg_iov, message->msg_iovlen };
}

static bool is_message(const struct msghdr *message)
{
	return pointer_may_be_read(message) && vectors_size(message->msg_iov, message->msg_iovlen);
}

GUARDED ssize_t write_guarded(struct connection *connection, int fd, const void *data, size_t size)
{
	struct iovec vector = { (void *)data, size };
	struct gate gate;

	if (!is_data(data, size))
		return real()->write(fd, data, size);
	if (!gate_send(&gate, connection, fd, (struct bytes){ &vector, 1 }, 0))
		return -1;
	return gate_sent(&gate, real()->write(fd, data, size));
}

HOOK(ssize_t, write, (int fd, const void *data, size_t size))
{
	struct connection *connection = gate_find(fd);

	if (connection)
		return write_guarded(connection, fd, data, size);
	return real()->write(fd, data, size);
}

GUARDED ssize_t send_guarded(struct connection *connection, int fd, const void *data, size_t size,
		int flags)
{
	struct iovec vector = { (void *)data, size };
	struct gate gate;

	if (flags & MSG_OOB || !is_data(data, size))
		return real()->send(fd, data, size, flags);
	if (!gate_send(&gate, connection, fd, (struct bytes){ &vector, 1 }, flags))
		return -1;
	return gate_sent(&gate, real()->send(fd, data, size, flags));
}

HOOK(ssize_t, send, (int fd, const void *data, size_t size, int flags))
{
	struct connection *connection = gate_find(fd);

	if (connection)
		return send_guarded(connection, fd, data, size, flags);
	return real()->send(fd, data, size, flags);
}

/* Connects and sends in one call. */
GUARDED ssize_t sendto_fast_open(int fd, const void *data, size_t size, int flags,
		const struct sockaddr *address, socklen_t length)
{
	struct iovec vector = { (void *)data, size };
	struct gate gate;

	if (!gate_connect(&gate, fd, address, length))
		return -1;
	return gate_fast_opened(&gate, (struct bytes){ &vector, 1 },
			real()->sendto(fd, data, size, flags, address, length));
}

/* A connected stream pays no attention to an address. */
GUARDED ssize_t sendto_guarded(struct connection *connection, int fd, const void *data, size_t size,
		int flags, const struct sockaddr *address, socklen_t length)
{
	struct iovec vector = { (void *)data, size };
	struct gate gate;

	if (flags & MSG_OOB || !is_data(data, size))
		return real()->sendto(fd, data, size, flags, address, length);
	if (!gate_send(&gate, connection, fd, (struct bytes){ &vector, 1 }, flags))
		return -1;
	return gate_sent(&gate, real()->sendto(fd, data, size, flags, address, length));
}

HOOK(ssize_t, sendto, (int fd, const void *data, size_t size, int flags,
		const struct sockaddr *address, socklen_t length))
{
	struct connection *connection = gate_find(fd);

	if (flags & MSG_FASTOPEN && address)
		return sendto_fast_open(fd, data, size, flags, address, length);
	if (connection)
		return sendto_guarded(connection, fd, data, size, flags, address, length);
	/* A datagram: whoever sends nothing else looks nowhere else. */
	if (address)
		inject_look_outside();
	return real()->sendto(fd, data, size, flags, address, length);
}

GUARDED ssize_t sendmsg_fast_open(int fd, const struct msghdr *message, int flags)
{
	struct gate gate;

	if (!gate_connect(&gate, fd, message->msg_name, message->msg_namelen))
		return -1;
	return gate_fast_opened(&gate, message_bytes(message), real()->sendmsg(fd, message, flags));
}

GUARDED ssize_t sendmsg_guarded(struct connection *connection, int fd, const struct msghdr *message,
		int flags)
{
	struct gate gate;

	if (flags & MSG_OOB || !is_message(message))
		return real()->sendmsg(fd, message, flags);
	if (!gate_send(&gate, connection, fd, message_bytes(message), flags))
		return -1;
	return gate_sent(&gate, real()->sendmsg(fd, message, flags));
}

HOOK(ssize_t, sendmsg, (int fd, const struct msghdr *message, int flags))
{
	struct connection *connection = gate_find(fd);

	if (flags & MSG_FASTOPEN && pointer_may_be_read(message) && message->msg_name)
		return sendmsg_fast_open(fd, message, flags);
	if (connection)
		return sendmsg_guarded(connection, fd, message, flags);
	return real()->sendmsg(fd, message, flags);
}

/* Of `count` messages that were sent; -1 stays. Where there were several, the data that went is not
 * in one place any more. */
static ssize_t batch_size(const struct mmsghdr *messages, int count, struct bytes *bytes)
{
	ssize_t size = count < 0 ? -1 : 0;

	if (count > 1)
		*bytes = bytes_out_of_sight;
	for (int i = 0; i < count; i++)
		size += messages[i].msg_len;
	return size;
}

GUARDED int sendmmsg_fast_open(int fd, struct mmsghdr *messages, unsigned int count, int flags)
{
	struct msghdr *first = &messages[0].msg_hdr;
	struct bytes bytes = message_bytes(first);
	struct gate gate;
	ssize_t size;
	int result;

	if (!gate_connect(&gate, fd, first->msg_name, first->msg_namelen))
		return -1;
	result = real()->sendmmsg(fd, messages, count, flags);
	size = batch_size(messages, result, &bytes);
	gate_fast_opened(&gate, bytes, size);
	return result;
}

/* One question for the whole batch: its messages are one stream. */
GUARDED int sendmmsg_guarded(struct connection *connection, int fd, struct mmsghdr *messages,
		unsigned int count, int flags)
{
	struct gate gate;
	int result;

	if (flags & MSG_OOB || !count || !pointer_may_be_read(messages) ||
			!is_message(&messages[0].msg_hdr))
		return real()->sendmmsg(fd, messages, count, flags);
	if (!gate_send(&gate, connection, fd, message_bytes(&messages[0].msg_hdr), flags))
		return -1;
	result = real()->sendmmsg(fd, messages, count, flags);
	gate_sent(&gate, batch_size(messages, result, &gate.bytes));
	return result;
}

HOOK(int, sendmmsg, (int fd, struct mmsghdr *messages, unsigned int count, int flags))
{
	struct connection *connection = gate_find(fd);

	if (flags & MSG_FASTOPEN && count && pointer_may_be_read(messages) &&
			messages[0].msg_hdr.msg_name)
		return sendmmsg_fast_open(fd, messages, count, flags);
	if (connection)
		return sendmmsg_guarded(connection, fd, messages, count, flags);
	return real()->sendmmsg(fd, messages, count, flags);
}

GUARDED ssize_t writev_guarded(struct connection *connection, int fd, const struct iovec *vectors,
		int count)
{
	struct gate gate;

	if (!vectors_size(vectors, (size_t)count))
		return real()->writev(fd, vectors, count);
	if (!gate_send(&gate, connection, fd, (struct bytes){ vectors, (size_t)count }, 0))
		return -1;
	return gate_sent(&gate, real()->writev(fd, vectors, count));
}

HOOK(ssize_t, writev, (int fd, const struct iovec *vectors, int count))
{
	struct connection *connection = gate_find(fd);

	if (connection)
		return writev_guarded(connection, fd, vectors, count);
	return real()->writev(fd, vectors, count);
}

HOOK(ssize_t, sendfile, (int to, int from, off_t *offset, size_t size))
{
	struct connection *connection = gate_find(to);
	struct gate gate;

	if (!connection || !size)
		return real()->sendfile(to, from, offset, size);
	if (!gate_send(&gate, connection, to, bytes_out_of_sight, 0))
		return -1;
	return gate_sent(&gate, real()->sendfile(to, from, offset, size));
}

HOOK(ssize_t, sendfile64, (int to, int from, off64_t *offset, size_t size))
{
	struct connection *connection = gate_find(to);
	struct gate gate;

	if (!connection || !size)
		return real()->sendfile64(to, from, offset, size);
	if (!gate_send(&gate, connection, to, bytes_out_of_sight, 0))
		return -1;
	return gate_sent(&gate, real()->sendfile64(to, from, offset, size));
}

/* One end is a pipe, the other may be a connection of ours. */
HOOK(ssize_t, splice, (int from, off64_t *from_offset, int to, off64_t *to_offset, size_t size,
		unsigned int flags))
{
	struct connection *source = gate_find(from);
	struct connection *sink = gate_find(to);
	struct gate gate;
	ssize_t result;
	bool may;

	if (!size || (!source && !sink))
		return real()->splice(from, from_offset, to, to_offset, size, flags);
	if (sink)
		may = gate_send(&gate, sink, to, bytes_out_of_sight, 0);
	else
		may = gate_receive(&gate, source, from, bytes_out_of_sight,
				flags & SPLICE_F_NONBLOCK ? MSG_DONTWAIT : 0);
	if (!may)
		return -1;
	result = real()->splice(from, from_offset, to, to_offset, size, flags);
	return sink ? gate_sent(&gate, result) : gate_received(&gate, result);
}
