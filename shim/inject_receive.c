/* SPDX-License-Identifier: MIT */
#include "shim/inject_receive.h"

#include "shim/below.h"
#include "shim/datagram_socket.h"
#include "shim/inject_datagram.h"
#include "shim/passage.h"
#include "shim/vectors.h"

/* Not of the stream, or of no interest to it. */
#define MSG_NO_STREAM (MSG_OOB | MSG_ERRQUEUE)

struct from {
	struct sockaddr *address;
	socklen_t *length;
};

static struct move receiving(move_make *make, int fd, const struct iovec *vectors, size_t count,
		int flags)
{
	return (struct move){
		.make = make,
		.vectors = vectors,
		.count = count,
		.size = vectors_size(vectors, count),
		.fd = fd,
		.flags = flags,
		.direction = FAULT_IN,
	};
}

static bool is_datagram(int fd, const struct slot *slot)
{
	return !slot && datagram_is_concerned(fd, FAULT_IN);
}

/* With flags (of a datagram that comes twice) it is another call. */
static ssize_t make_read(const struct move *move, const struct iovec *vectors, size_t count,
		size_t size)
{
	struct msghdr message = {
		.msg_iov = (struct iovec *)(uintptr_t)vectors,
		.msg_iovlen = count,
	};

	(void)size;
	if (move->flags)
		return below()->recvmsg(move->fd, &message, move->flags);
	return count == 1 ? below()->read(move->fd, vectors->iov_base, vectors->iov_len)
			  : below()->readv(move->fd, vectors, (int)count);
}

static ssize_t inject_read(int fd, void *data, size_t size)
{
	struct connection *connection;
	struct slot *slot = passage_find(fd, &connection);
	struct iovec vector = { data, size };
	struct move move = receiving(make_read, fd, &vector, 1, 0);

	if (is_datagram(fd, slot))
		return datagram_receive(&move);
	if (!slot || !move.size)
		return below()->read(fd, data, size);
	return passage_move(&move, connection, slot);
}

/* What is too large the hooks have sent on to the real one, which ends the program. */
static ssize_t inject_read_chk(int fd, void *data, size_t size, size_t room)
{
	if (size > room)
		return below()->__read_chk(fd, data, size, room);
	return inject_read(fd, data, size);
}

static ssize_t inject_readv(int fd, const struct iovec *vectors, int count)
{
	struct connection *connection;
	struct slot *slot = passage_find(fd, &connection);
	struct move move = receiving(make_read, fd, vectors, (size_t)count, 0);

	if (vectors_may_be_read(vectors, (size_t)count) && is_datagram(fd, slot))
		return datagram_receive(&move);
	if (!slot || !move.size)
		return below()->readv(fd, vectors, count);
	return passage_move(&move, connection, slot);
}

static ssize_t make_recvfrom(const struct move *move, const struct iovec *vectors, size_t count,
		size_t size)
{
	const struct from *from = move->arguments;

	(void)count;
	(void)size;
	return below()->recvfrom(move->fd, vectors->iov_base, vectors->iov_len, move->flags,
			from->address, from->length);
}

static ssize_t inject_recvfrom(int fd, void *data, size_t size, int flags, struct sockaddr *address,
		socklen_t *length)
{
	struct connection *connection;
	struct slot *slot = passage_find(fd, &connection);
	struct iovec vector = { data, size };
	struct from from = { address, length };
	struct move move = receiving(make_recvfrom, fd, &vector, 1, flags);

	move.arguments = &from;
	if (is_datagram(fd, slot))
		return datagram_receive(&move);
	if (!slot || !move.size || flags & MSG_NO_STREAM)
		return below()->recvfrom(fd, data, size, flags, address, length);
	return passage_move(&move, connection, slot);
}

static ssize_t make_recv(const struct move *move, const struct iovec *vectors, size_t count,
		size_t size)
{
	(void)count;
	(void)size;
	return below()->recv(move->fd, vectors->iov_base, vectors->iov_len, move->flags);
}

static ssize_t inject_recv(int fd, void *data, size_t size, int flags)
{
	struct connection *connection;
	struct slot *slot = passage_find(fd, &connection);
	struct iovec vector = { data, size };
	struct move move = receiving(make_recv, fd, &vector, 1, flags);

	if (is_datagram(fd, slot))
		return datagram_receive(&move);
	if (!slot || !move.size || flags & MSG_NO_STREAM)
		return below()->recv(fd, data, size, flags);
	return passage_move(&move, connection, slot);
}

static ssize_t inject_recv_chk(int fd, void *data, size_t size, size_t room, int flags)
{
	if (size > room)
		return below()->__recv_chk(fd, data, size, room, flags);
	return inject_recv(fd, data, size, flags);
}

static ssize_t inject_recvfrom_chk(int fd, void *data, size_t size, size_t room, int flags,
		struct sockaddr *address, socklen_t *length)
{
	if (size > room)
		return below()->__recvfrom_chk(fd, data, size, room, flags, address, length);
	return inject_recvfrom(fd, data, size, flags, address, length);
}

/* The program's own is not pointed elsewhere meanwhile: a handler may leave the call for good. */
static ssize_t make_recvmsg(const struct move *move, const struct iovec *vectors, size_t count,
		size_t size)
{
	struct msghdr *own = (struct msghdr *)(uintptr_t)move->arguments;
	struct msghdr message = *own;
	ssize_t result;

	(void)size;
	message.msg_iov = (struct iovec *)(uintptr_t)vectors;
	message.msg_iovlen = count;
	result = below()->recvmsg(move->fd, &message, move->flags);
	if (result < 0)
		return result;
	own->msg_namelen = message.msg_namelen;
	own->msg_controllen = message.msg_controllen;
	own->msg_flags = message.msg_flags;
	return result;
}

static ssize_t inject_recvmsg(int fd, struct msghdr *message, int flags)
{
	struct connection *connection;
	struct slot *slot = passage_find(fd, &connection);
	struct move move;

	if (!pointer_may_be_read(message))
		return below()->recvmsg(fd, message, flags);
	move = receiving(make_recvmsg, fd, message->msg_iov, message->msg_iovlen, flags);
	move.arguments = message;
	if (is_datagram(fd, slot))
		return datagram_receive(&move);
	if (!slot || flags & MSG_NO_STREAM || !move.size)
		return below()->recvmsg(fd, message, flags);
	return passage_move(&move, connection, slot);
}

/* None, or one that the kernel takes. */
static bool is_timeout(const struct timespec *timeout)
{
	return !timeout || (pointer_may_be_read(timeout) && timeout->tv_sec >= 0 &&
			timeout->tv_nsec >= 0 && timeout->tv_nsec < 1000000000);
}

/* The first message alone: what follows is one stream. */
static int inject_recvmmsg(int fd, struct mmsghdr *messages, unsigned int count, int flags,
		struct timespec *timeout)
{
	struct connection *connection;
	struct slot *slot = passage_find(fd, &connection);
	ssize_t result;

	if (count && pointer_may_be_read(messages) && is_timeout(timeout) && is_datagram(fd, slot))
		return datagram_receive_many(fd, messages, count, flags, timeout);
	if (!slot || !count || flags & MSG_NO_STREAM || !pointer_may_be_read(messages))
		return below()->recvmmsg(fd, messages, count, flags, timeout);
	result = inject_recvmsg(fd, &messages[0].msg_hdr, flags & ~MSG_WAITFORONE);
	if (result < 0)
		return -1;
	messages[0].msg_len = (unsigned int)result;
	return 1;
}

void inject_receive_start(void)
{
	REPLACE(read, inject_read);
	REPLACE(readv, inject_readv);
	REPLACE(recv, inject_recv);
	REPLACE(recvfrom, inject_recvfrom);
	REPLACE(recvmsg, inject_recvmsg);
	REPLACE(recvmmsg, inject_recvmmsg);
	REPLACE(__read_chk, inject_read_chk);
	REPLACE(__recv_chk, inject_recv_chk);
	REPLACE(__recvfrom_chk, inject_recvfrom_chk);
}
