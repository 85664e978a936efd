/* SPDX-License-Identifier: MIT */
#include "shim/inject_send.h"

#include "shim/below.h"
#include "shim/datagram_socket.h"
#include "shim/inject_connect.h"
#include "shim/inject_datagram.h"
#include "shim/passage.h"
#include "shim/vectors.h"

struct to {
	const struct sockaddr *address;
	socklen_t length;
};

static struct move sending(move_make *make, int fd, const struct iovec *vectors, size_t count,
		int flags)
{
	return (struct move){
		.make = make,
		.vectors = vectors,
		.count = count,
		.size = vectors_size(vectors, count),
		.fd = fd,
		.flags = flags,
		.direction = FAULT_OUT,
	};
}

static bool is_data(const void *data, size_t size)
{
	return (ssize_t)size > 0 && pointer_may_be_read(data);
}

static bool is_datagram(int fd, const struct slot *slot)
{
	return !slot && datagram_is_concerned(fd, FAULT_OUT);
}

static ssize_t make_write(const struct move *move, const struct iovec *vectors, size_t count,
		size_t size)
{
	(void)size;
	return count == 1 ? below()->write(move->fd, vectors->iov_base, vectors->iov_len)
			  : below()->writev(move->fd, vectors, (int)count);
}

static ssize_t inject_write(int fd, const void *data, size_t size)
{
	struct connection *connection;
	struct slot *slot = passage_find(fd, &connection);
	struct iovec vector = { (void *)(uintptr_t)data, size };
	struct move move = sending(make_write, fd, &vector, 1, 0);

	if (is_datagram(fd, slot))
		return datagram_send(&move, NULL, 0);
	if (!slot || !is_data(data, size))
		return below()->write(fd, data, size);
	return passage_move(&move, connection, slot);
}

static ssize_t inject_writev(int fd, const struct iovec *vectors, int count)
{
	struct connection *connection;
	struct slot *slot = passage_find(fd, &connection);
	struct move move = sending(make_write, fd, vectors, (size_t)count, 0);

	if (vectors_may_be_read(vectors, (size_t)count) && is_datagram(fd, slot))
		return datagram_send(&move, NULL, 0);
	if (!slot || !move.size)
		return below()->writev(fd, vectors, count);
	return passage_move(&move, connection, slot);
}

static ssize_t make_sendto(const struct move *move, const struct iovec *vectors, size_t count,
		size_t size)
{
	const struct to *to = move->arguments;

	(void)count;
	(void)size;
	return below()->sendto(move->fd, vectors->iov_base, vectors->iov_len, move->flags,
			to->address, to->length);
}

static ssize_t inject_sendto(int fd, const void *data, size_t size, int flags,
		const struct sockaddr *address, socklen_t length)
{
	struct iovec vector = { (void *)(uintptr_t)data, size };
	struct to to = { address, length };
	struct move move = sending(make_sendto, fd, &vector, 1, flags);
	struct connection *connection;
	struct slot *slot;

	if (flags & MSG_FASTOPEN && address) {
		if (!inject_fast_open(fd, address, length))
			return -1;
		return below()->sendto(fd, data, size, flags, address, length);
	}
	slot = passage_find(fd, &connection);
	move.arguments = &to;
	if (is_datagram(fd, slot))
		return datagram_send(&move, address, length);
	if (!slot || !is_data(data, size) || flags & MSG_OOB)
		return below()->sendto(fd, data, size, flags, address, length);
	return passage_move(&move, connection, slot);
}

static ssize_t make_send(const struct move *move, const struct iovec *vectors, size_t count,
		size_t size)
{
	(void)count;
	(void)size;
	return below()->send(move->fd, vectors->iov_base, vectors->iov_len, move->flags);
}

static ssize_t inject_send(int fd, const void *data, size_t size, int flags)
{
	struct connection *connection;
	struct slot *slot = passage_find(fd, &connection);
	struct iovec vector = { (void *)(uintptr_t)data, size };
	struct move move = sending(make_send, fd, &vector, 1, flags);

	if (is_datagram(fd, slot))
		return datagram_send(&move, NULL, 0);
	if (!slot || !is_data(data, size) || flags & MSG_OOB)
		return below()->send(fd, data, size, flags);
	return passage_move(&move, connection, slot);
}

static ssize_t make_sendmsg(const struct move *move, const struct iovec *vectors, size_t count,
		size_t size)
{
	struct msghdr message = *(const struct msghdr *)move->arguments;

	(void)size;
	message.msg_iov = (struct iovec *)(uintptr_t)vectors;
	message.msg_iovlen = count;
	return below()->sendmsg(move->fd, &message, move->flags);
}

static ssize_t inject_sendmsg(int fd, const struct msghdr *message, int flags)
{
	struct connection *connection;
	struct slot *slot;
	struct move move;

	if (flags & MSG_FASTOPEN && pointer_may_be_read(message) && message->msg_name) {
		if (!inject_fast_open(fd, message->msg_name, message->msg_namelen))
			return -1;
		return below()->sendmsg(fd, message, flags);
	}
	slot = passage_find(fd, &connection);
	if (!pointer_may_be_read(message))
		return below()->sendmsg(fd, message, flags);
	move = sending(make_sendmsg, fd, message->msg_iov, message->msg_iovlen, flags);
	move.arguments = message;
	if (is_datagram(fd, slot))
		return datagram_send(&move, message->msg_name, message->msg_namelen);
	if (!slot || flags & MSG_OOB || !move.size)
		return below()->sendmsg(fd, message, flags);
	return passage_move(&move, connection, slot);
}

/* The first message alone: the rest is of the same stream, and the program sends it again. */
static int inject_sendmmsg(int fd, struct mmsghdr *messages, unsigned int count, int flags)
{
	struct connection *connection;
	const struct msghdr *first;
	ssize_t result;

	if (!count || !pointer_may_be_read(messages))
		return below()->sendmmsg(fd, messages, count, flags);
	if (is_datagram(fd, NULL))
		return datagram_send_many(fd, messages, count, flags);
	first = &messages[0].msg_hdr;
	if (flags & MSG_FASTOPEN && first->msg_name) {
		if (!inject_fast_open(fd, first->msg_name, first->msg_namelen))
			return -1;
		return below()->sendmmsg(fd, messages, count, flags);
	}
	if (!passage_find(fd, &connection))
		return below()->sendmmsg(fd, messages, count, flags);
	result = inject_sendmsg(fd, &messages[0].msg_hdr, flags);
	if (result < 0)
		return -1;
	messages[0].msg_len = (unsigned int)result;
	return 1;
}

/* Data that never passes through the program. */

struct file {
	int from;
	int unused;
	off64_t *offset;
};

static ssize_t make_sendfile(const struct move *move, const struct iovec *vectors, size_t count,
		size_t size)
{
	const struct file *file = move->arguments;

	(void)vectors;
	(void)count;
	return below()->sendfile64(move->fd, file->from, file->offset, size);
}

static ssize_t inject_sendfile64(int to, int from, off64_t *offset, size_t size)
{
	struct connection *connection;
	struct slot *slot = passage_find(to, &connection);
	struct file file = { .from = from, .offset = offset };
	struct move move;

	if (!slot || !size)
		return below()->sendfile64(to, from, offset, size);
	move = sending(make_sendfile, to, NULL, 0, 0);
	move.size = size;
	move.arguments = &file;
	return passage_move(&move, connection, slot);
}

/* The same on 64-bit machines; on others what goes by the old type is left alone. */
static ssize_t inject_sendfile(int to, int from, off_t *offset, size_t size)
{
	if (sizeof(off_t) != sizeof(off64_t))
		return below()->sendfile(to, from, offset, size);
	return inject_sendfile64(to, from, (off64_t *)offset, size);
}

struct splicing {
	int from, to;
	off64_t *from_offset, *to_offset;
	unsigned int flags;
};

static ssize_t make_splice(const struct move *move, const struct iovec *vectors, size_t count,
		size_t size)
{
	const struct splicing *splicing = move->arguments;

	(void)vectors;
	(void)count;
	return below()->splice(splicing->from, splicing->from_offset, splicing->to,
			splicing->to_offset, size, splicing->flags);
}

static ssize_t inject_splice(int from, off64_t *from_offset, int to, off64_t *to_offset,
		size_t size, unsigned int flags)
{
	struct splicing splicing = { from, to, from_offset, to_offset, flags };
	struct connection *connection;
	struct slot *slot = passage_find(to, &connection);
	bool is_out = slot;
	struct move move;

	if (!slot)
		slot = passage_find(from, &connection);
	if (!slot || !size)
		return below()->splice(from, from_offset, to, to_offset, size, flags);
	move = sending(make_splice, is_out ? to : from, NULL, 0,
			flags & SPLICE_F_NONBLOCK ? MSG_DONTWAIT : 0);
	move.direction = is_out ? FAULT_OUT : FAULT_IN;
	move.size = size;
	move.arguments = &splicing;
	return passage_move(&move, connection, slot);
}

void inject_send_start(void)
{
	REPLACE(write, inject_write);
	REPLACE(writev, inject_writev);
	REPLACE(send, inject_send);
	REPLACE(sendto, inject_sendto);
	REPLACE(sendmsg, inject_sendmsg);
	REPLACE(sendmmsg, inject_sendmmsg);
	REPLACE(sendfile, inject_sendfile);
	REPLACE(sendfile64, inject_sendfile64);
	REPLACE(splice, inject_splice);
}
