/* SPDX-License-Identifier: MIT */
/*
 * Faults on real loopback sockets, for unit tests: rules in which PORT is the listener's, the hooks
 * as a program calls them, and a peer of which nothing is hooked.
 */
#ifndef SHUNT_TESTS_SHIM_FAULTS_H
#define SHUNT_TESTS_SHIM_FAULTS_H

#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/fault_text.h"
#include "shim/fault_rules.h"
#include "shim/fd_table.h"
#include "shim/inject.h"
#include "shim/real.h"
#include "shim/runtime.h"

#define MS_NS 1000000ull

int hook_socket(int domain, int type, int protocol);
int hook_connect(int fd, const struct sockaddr *address, socklen_t length);
int hook_close(int fd);
ssize_t hook_send(int fd, const void *data, size_t size, int flags);
ssize_t hook_recv(int fd, void *data, size_t size, int flags);
ssize_t hook_read(int fd, void *data, size_t size);
ssize_t hook_write(int fd, const void *data, size_t size);
int hook_getsockopt(int fd, int level, int option, void *value, socklen_t *size);
int hook_getpeername(int fd, struct sockaddr *address, socklen_t *length);

static struct sockaddr_in listener_address;
static int listener;

/* A socket of that type on a port of its own, of which no hook knows. */
static inline int peer_open(int type, struct sockaddr_in *ret)
{
	int fd = real()->socket(AF_INET, type, 0);
	socklen_t length = sizeof(*ret);

	*ret = (struct sockaddr_in){ .sin_family = AF_INET,
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	cr_assert_geq(fd, 0);
	cr_assert_eq(bind(fd, (struct sockaddr *)ret, sizeof(*ret)), 0);
	cr_assert_eq(getsockname(fd, (struct sockaddr *)ret, &length), 0);
	return fd;
}

/* The text, with the listener's port for each PORT. */
static inline void with_port(const char *text, char *ret, size_t size)
{
	size_t used = 0;

	while (*text && used + 8 < size) {
		if (strncmp(text, "PORT", 4) == 0) {
			used += (size_t)snprintf(ret + used, size - used, "%d",
					ntohs(listener_address.sin_port));
			text += 4;
		} else {
			ret[used++] = *text++;
		}
	}
	ret[used] = '\0';
}

static inline void faults_open(int type)
{
	real_resolve();
	listener = peer_open(type, &listener_address);
	if (type == SOCK_STREAM)
		cr_assert_eq(real()->listen(listener, 16), 0);
}

/* "fault A = 127.0.0.1:PORT refuse\n"; after faults_open(). */
static inline void faults_start(const char *rules)
{
	char text[1024];

	with_port(rules, text, sizeof(text));
	config_load_text(&runtime.config, "test", text, strlen(text));
	cr_assert_eq(runtime.config.problem_count, 0, "%s", runtime.config.problems[0].text);
	runtime.segment = segment_open_private();
	cr_assert_not_null(runtime.segment);
	cr_assert(fd_table_start());
	runtime.pid = (uint32_t)getpid();
	runtime.seed = 1;
	inject_start("test");
	atomic_store(&runtime.is_active, true);
}

/* As `shunt fault add` does; the rule is "127.0.0.1:PORT refuse". */
static inline void fault_added(const char *name, const char *rule)
{
	uint64_t now_ns = clock_now_ns();
	char text[FAULT_TEXT_SIZE], error[128];
	struct fault fault;

	with_port(rule, text, sizeof(text));
	cr_assert(fault_parse(name, text, strlen(text), &fault, error, sizeof(error)), "%s", error);
	cr_assert(fault_table_add(&runtime.segment->faults, &fault, text, now_ns + 3600000 * MS_NS,
			now_ns));
}

static inline int connect_fd(int fd)
{
	return hook_connect(fd, (struct sockaddr *)&listener_address, sizeof(listener_address));
}

static inline int socket_new(int flags)
{
	int fd = hook_socket(AF_INET, SOCK_STREAM | flags, 0);

	cr_assert_geq(fd, 0);
	return fd;
}

/* A blocking connection, and the peer's end of it. */
static inline int connection_new(int *ret_peer)
{
	int fd = socket_new(0);

	cr_assert_eq(connect_fd(fd), 0, "%s", strerror(errno));
	*ret_peer = real()->accept(listener, NULL, NULL);
	cr_assert_geq(*ret_peer, 0);
	return fd;
}

static inline void peer_says(int peer, const char *text)
{
	cr_assert_eq(send(peer, text, strlen(text), 0), (ssize_t)strlen(text));
}

/* A request and its answer, which is there before it is asked for. */
static inline ssize_t exchange_on(int fd, int peer, char *answer, size_t size)
{
	char request[16];

	if (hook_send(fd, "ask", 3, MSG_NOSIGNAL) != 3)
		return -1;
	cr_assert_gt(recv(peer, request, sizeof(request), 0), 0);
	peer_says(peer, "answer");
	return hook_recv(fd, answer, size, 0);
}

static inline const struct fault_record *record_of(uint32_t rule)
{
	return fault_rule_at(rule)->record;
}

static inline uint64_t injected(uint32_t rule)
{
	return atomic_load(&record_of(rule)->injected);
}

static inline uint64_t suppressed(uint32_t rule, enum fault_reason reason)
{
	return atomic_load(&record_of(rule)->suppressed[reason]);
}

#endif
