/* SPDX-License-Identifier: MIT */
/* The hooks between a real gate and fake real functions. */
#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <errno.h>
#include <linux/close_range.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>

#include "shim/gate.h"
#include "shim/gate_lifetime.h"
#include "shim/real.h"
#include "shim/runtime.h"

#define FD 5
#define COPY 7

__typeof__(connect) hook_connect;
__typeof__(close) hook_close;
__typeof__(close_range) hook_close_range;
__typeof__(dup2) hook_dup2;
__typeof__(dup3) hook_dup3;
__typeof__(fcntl) hook_fcntl;
__typeof__(send) hook_send;
__typeof__(sendmsg) hook_sendmsg;
__typeof__(sendmmsg) hook_sendmmsg;
__typeof__(writev) hook_writev;
__typeof__(recv) hook_recv;
__typeof__(readv) hook_readv;
__typeof__(recvmsg) hook_recvmsg;
__typeof__(poll) hook_poll;
__typeof__(syscall) hook_syscall;

/* What cannot be, kept from the compiler, which would say so. */
static void *volatile nowhere = (void *)8, *volatile null;
static volatile int minus_one = -1;
static volatile nfds_t endless = 1ul << 40;

/* What the fakes saw and shall answer. */
static int calls;
static ssize_t answer;
static int answer_errno;
static bool was_ours; /* at the time of the real call */

static ssize_t answered(int fd)
{
	calls++;
	was_ours = gate_find(fd);
	if (answer < 0)
		errno = answer_errno;
	return answer;
}

static int fake_connect(int fd, const struct sockaddr *address, socklen_t length)
{
	(void)address, (void)length;
	return (int)answered(fd);
}

static int fake_close(int fd)
{
	return (int)answered(fd);
}

static int fake_close_range(unsigned int first, unsigned int last, int flags)
{
	(void)last, (void)flags;
	return (int)answered((int)first);
}

static int fake_dup2(int fd, int copy)
{
	(void)fd;
	return (int)answered(copy);
}

static int fake_dup3(int fd, int copy, int flags)
{
	(void)fd, (void)flags;
	return (int)answered(copy);
}

static int fake_fcntl(int fd, int command, ...)
{
	(void)command;
	return (int)answered(fd);
}

static ssize_t fake_send(int fd, const void *data, size_t size, int flags)
{
	(void)data, (void)size, (void)flags;
	return answered(fd);
}

static ssize_t fake_sendmsg(int fd, const struct msghdr *message, int flags)
{
	(void)message, (void)flags;
	return answered(fd);
}

static int fake_sendmmsg(int fd, struct mmsghdr *messages, unsigned int count, int flags)
{
	(void)flags;
	for (unsigned int i = 0; answer > 0 && i < count; i++)
		messages[i].msg_len = 4;
	return (int)answered(fd);
}

static ssize_t fake_vectors(int fd, const struct iovec *vectors, int count)
{
	(void)vectors, (void)count;
	return answered(fd);
}

static ssize_t fake_recv(int fd, void *data, size_t size, int flags)
{
	(void)data, (void)size, (void)flags;
	return answered(fd);
}

static ssize_t fake_recvmsg(int fd, struct msghdr *message, int flags)
{
	(void)message, (void)flags;
	return answered(fd);
}

static int fake_poll(struct pollfd *entries, nfds_t count, int timeout)
{
	(void)entries, (void)count, (void)timeout;
	return (int)answered(FD);
}

static long fake_syscall(long number, ...)
{
	(void)number;
	return answered(FD);
}

static void start(void)
{
	static const char rules[] =
			"break PAY = 127.0.0.1:9\nbreak DEAD = 127.0.0.1:7 force=open\n";

	real()->connect = fake_connect;
	real()->close = fake_close;
	real()->close_range = fake_close_range;
	real()->dup2 = fake_dup2;
	real()->dup3 = fake_dup3;
	real()->fcntl = fake_fcntl;
	real()->send = fake_send;
	real()->sendmsg = fake_sendmsg;
	real()->sendmmsg = fake_sendmmsg;
	real()->writev = fake_vectors;
	real()->readv = fake_vectors;
	real()->recv = fake_recv;
	real()->recvmsg = fake_recvmsg;
	real()->poll = fake_poll;
	real()->syscall = fake_syscall;
	config_load_text(&runtime.config, "test", rules, strlen(rules));
	runtime.segment = segment_open_private();
	cr_assert(fd_table_start());
	atomic_store(&runtime.is_active, true);
	gate_born(FD, AF_INET, SOCK_STREAM);
	gate_born(COPY, AF_INET, SOCK_STREAM);
}

TestSuite(hooks, .init = start);

static struct sockaddr_in peer(int port)
{
	return (struct sockaddr_in){
		.sin_family = AF_INET,
		.sin_port = htons((uint16_t)port),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
}

static void connected(int fd)
{
	struct sockaddr_in address = peer(9);

	answer = 0;
	cr_assert_eq(hook_connect(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	cr_assert_not_null(gate_find(fd));
	calls = 0;
}

/* Connected, and a request sent. */
static void asked(int fd)
{
	connected(fd);
	answer = 4;
	cr_assert_eq(hook_send(fd, "ping", 4, 0), 4);
	calls = 0;
}

static bool call_is_open(int fd)
{
	return gate_find(fd) && exchange_has(&gate_find(fd)->exchange, EXCHANGE_OPEN);
}

Test(hooks, a_refused_connect_calls_nothing)
{
	struct sockaddr_in address = peer(7);

	cr_assert_eq(hook_connect(FD, (struct sockaddr *)&address, sizeof(address)), -1);
	cr_assert_eq(errno, ECONNREFUSED);
	cr_assert_eq(hook_syscall(SYS_connect, (long)FD, &address, sizeof(address)), -1);
	cr_assert_eq(errno, ECONNREFUSED);
	cr_assert_eq(calls, 0);
}

Test(hooks, close_forgets_before_the_real_call_and_makes_exactly_one)
{
	connected(FD);
	answer = -1;
	answer_errno = EIO;

	cr_assert_eq(hook_close(FD), -1);
	cr_assert_eq(errno, EIO);
	cr_assert_eq(calls, 1);
	cr_assert_not(was_ours);
}

Test(hooks, close_by_syscall_forgets_too)
{
	connected(FD);

	cr_assert_eq(hook_syscall(SYS_close, (long)FD), 0);
	cr_assert_not(was_ours);
	cr_assert_null(gate_find(FD));
}

Test(hooks, close_range_forgets_what_it_closes)
{
	connected(FD);
	connected(COPY);

	cr_assert_eq(hook_close_range(COPY, FD, 0), 0);
	cr_assert_eq(hook_close_range(FD, COPY, CLOSE_RANGE_CLOEXEC), 0);
	cr_assert_eq(hook_close_range(FD, COPY, 1 << 30), 0);
	cr_assert_not_null(gate_find(FD));
	cr_assert_eq(hook_close_range(FD, COPY, CLOSE_RANGE_UNSHARE), 0);
	cr_assert_null(gate_find(FD));
	cr_assert_null(gate_find(COPY));
}

Test(hooks, dup2_replaces_the_target_before_the_real_call)
{
	connected(FD);
	connected(COPY);
	answer = COPY;

	cr_assert_eq(hook_dup2(FD, COPY), COPY);
	cr_assert_not(was_ours);
	cr_assert_eq(gate_find(COPY), gate_find(FD));
}

Test(hooks, dup2_that_must_fail_leaves_the_target)
{
	connected(FD);
	answer = -1;
	answer_errno = EBADF;

	cr_assert_eq(hook_dup2(-1, FD), -1);
	cr_assert_eq(hook_dup2(999, FD), -1);
	cr_assert_eq(hook_dup3(COPY, FD, ~0), -1);
	cr_assert_eq(hook_dup3(FD, FD, 0), -1);
	cr_assert_not_null(gate_find(FD));
}

Test(hooks, dup2_onto_itself_changes_nothing)
{
	struct connection *connection;

	connected(FD);
	connection = gate_find(FD);
	answer = FD;

	cr_assert_eq(hook_dup2(FD, FD), FD);
	cr_assert_eq(gate_find(FD), connection);
	cr_assert_eq(connection->references, 1);
}

Test(hooks, fcntl_copies_share_the_connection)
{
	connected(FD);
	answer = COPY;

	cr_assert_eq(hook_fcntl(FD, F_DUPFD_CLOEXEC, 0), COPY);
	cr_assert_eq(gate_find(COPY), gate_find(FD));
	answer = 1;
	cr_assert_eq(hook_fcntl(FD, F_GETFD), 1);
	cr_assert_eq(gate_find(FD)->references, 2);
}

Test(hooks, a_call_that_sends_nothing_is_not_told)
{
	struct iovec low = { nowhere, 4 };
	struct msghdr message = { .msg_iov = &low, .msg_iovlen = 1 };

	asked(FD);
	answer = -1;
	answer_errno = EFAULT;
	hook_send(FD, null, 4, 0);
	hook_send(FD, "", 0, 0);
	hook_send(FD, "!", 1, MSG_OOB);
	hook_writev(FD, null, 1);
	hook_writev(FD, &low, minus_one);
	hook_sendmsg(FD, null, 0);
	hook_sendmsg(FD, &message, 0);
	hook_sendmmsg(FD, null, 1, 0);
	cr_assert_eq(calls, 8);
	cr_assert(call_is_open(FD));
}

Test(hooks, a_batch_is_answered_in_messages)
{
	struct iovec vector = { (void *)"ping", 4 };
	struct msghdr message = { .msg_iov = &vector, .msg_iovlen = 1 };
	struct mmsghdr batch[2] = { { .msg_hdr = message }, { .msg_hdr = message } };

	connected(FD);
	answer = 2;

	cr_assert_eq(hook_sendmmsg(FD, batch, 2, 0), 2);
	cr_assert(call_is_open(FD));
	cr_assert(exchange_has(&gate_find(FD)->exchange, EXCHANGE_SENT));
}

Test(hooks, nothing_asked_for_is_no_end_of_file)
{
	struct iovec empty = { NULL, 0 };
	struct msghdr message = { .msg_iov = &empty, .msg_iovlen = 1 };
	char data[8];

	asked(FD);
	answer = 0;
	cr_assert_eq(hook_recv(FD, data, 0, 0), 0);
	cr_assert_eq(hook_readv(FD, &empty, 1), 0);
	cr_assert_eq(hook_recvmsg(FD, &message, 0), 0);
	cr_assert(call_is_open(FD));
	cr_assert_eq(hook_recv(FD, data, sizeof(data), 0), 0);
	cr_assert_not(call_is_open(FD));
}

Test(hooks, the_error_queue_and_urgent_data_are_no_answer)
{
	char data[8];

	asked(FD);
	answer = 1;
	hook_recv(FD, data, sizeof(data), MSG_ERRQUEUE);
	hook_recv(FD, data, sizeof(data), MSG_OOB);
	cr_assert(call_is_open(FD));
	hook_recv(FD, data, sizeof(data), 0);
	cr_assert_not(call_is_open(FD));
}

Test(hooks, a_poll_that_failed_reads_nothing)
{
	connected(FD);
	answer = -1;
	answer_errno = EFAULT;

	cr_assert_eq(hook_poll(nowhere, 1000, 10), -1);
	cr_assert_eq(errno, EFAULT);
}

/* The kernel's count has 32 bits. */
Test(hooks, a_poll_of_2_to_the_40_reads_nothing)
{
	struct pollfd entry = { .fd = FD, .events = POLLIN };

	connected(FD);
	answer = 0;
	cr_assert_eq(hook_poll(&entry, endless, 10), 0);
}

Test(hooks, a_fork_by_syscall_cancels_the_call_in_both)
{
	asked(FD);
	answer = 1234; /* as the parent */
	cr_assert_eq(hook_syscall(SYS_clone, (long)SIGCHLD, 0L), 1234);
	cr_assert_not(call_is_open(FD));

	connected(COPY);
	answer = 0; /* as the child */
	cr_assert_eq(hook_syscall(SYS_clone, (long)SIGCHLD, 0L), 0);
	cr_assert_not(call_is_open(COPY));
}

Test(hooks, a_thread_by_syscall_shares_its_calls)
{
	asked(FD);
	answer = 0;
	cr_assert_eq(hook_syscall(SYS_clone, (long)CLONE_VM, 0L), 0);
	cr_assert(call_is_open(FD));
}

/* Whatever was at the numbers was closed where nobody saw it. */
Test(hooks, descriptors_that_come_with_a_message_are_new_files)
{
	int fds[] = { FD, COPY };
	char control[CMSG_SPACE(sizeof(fds))] = "";
	struct msghdr message = { .msg_control = control, .msg_controllen = sizeof(control) };
	struct cmsghdr *part = CMSG_FIRSTHDR(&message);

	*part = (struct cmsghdr){ CMSG_LEN(sizeof(fds)), SOL_SOCKET, SCM_RIGHTS };
	memcpy(CMSG_DATA(part), fds, sizeof(fds));
	connected(FD);
	connected(COPY);
	answer = -1;
	hook_recvmsg(COPY + 1, &message, 0);
	cr_assert_not_null(gate_find(FD));
	answer = 1;
	cr_assert_eq(hook_recvmsg(COPY + 1, &message, 0), 1);
	cr_assert_null(gate_find(FD));
	cr_assert_null(gate_find(COPY));
}
