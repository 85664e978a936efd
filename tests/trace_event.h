/* SPDX-License-Identifier: MIT */
/* One event of a recorded trace: a call that a program made, and what it got. */
#ifndef SHUNT_TESTS_TRACE_EVENT_H
#define SHUNT_TESTS_TRACE_EVENT_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TRACE_POLLED_MAX 64
#define TRACE_PEER_SIZE 64
#define TRACE_TASK_MAX 4095
#define TRACE_FD_MAX 65535

enum trace_call {
	TRACE_SOCKET,
	TRACE_CONNECT,
	TRACE_SEND,
	TRACE_RECV,
	TRACE_POLL,
	TRACE_SELECT,
	TRACE_GETSOCKOPT,
	TRACE_SETSOCKOPT,
	TRACE_FCNTL,
	TRACE_IOCTL,
	TRACE_SHUTDOWN,
	TRACE_DUP,
	TRACE_DUP2,
	TRACE_DUP3,
	TRACE_CLOSE,
	TRACE_CLOSE_RANGE,
	TRACE_FORK,
	TRACE_VFORK,
	TRACE_THREAD,
	TRACE_EXECVE,
	TRACE_EXIT,
	TRACE_KILLED,
	TRACE_FDOPEN,
	TRACE_CALLS
};

struct trace_event {
	enum trace_call call;
	uint64_t began_us, ended_us;
	int task, child;
	int fd;     /* -1 where the call has none */
	int last;   /* close_range */
	int result; /* -1 with `error` */
	int error;
	bool never_returns;
	bool is_stream;       /* socket: IPv4 or IPv6, SOCK_STREAM */
	bool is_disconnect;   /* connect */
	bool is_peek;         /* recv */
	bool is_copy;         /* fcntl: F_DUPFD */
	bool is_receive_time; /* setsockopt: SO_RCVTIMEO */
	bool is_error_asked;  /* getsockopt: SO_ERROR */
	int option_error;     /* what it said */
	int how;
	int64_t timeout_ms; /* -1: for ever */
	int polled[TRACE_POLLED_MAX]; /* descriptors named for reading */
	size_t polled_count;
	char peer[TRACE_PEER_SIZE]; /* connect: normalised */
	uint8_t *data;              /* NULL where nothing is known; see trace_event_free() */
	size_t data_size; /* what was moved; less is known of it than that, the rest is zero */
};

/* What was expected where, and what stood there. */
struct trace_complaint {
	char text[200];
};

/* Reads [t_us, task, call, fd, ret, errno, {extra}]. False with the complaint, and nothing to be
 * freed. */
bool trace_event_read(
		const json_t *json, struct trace_event *ret, struct trace_complaint *complaint);
void trace_event_free(struct trace_event *event);

/* "[::ffff:127.0.0.1]:80" is "127.0.0.1:80". False where it doesn't fit. */
bool trace_peer_normalize(const char *text, char ret[static TRACE_PEER_SIZE]);

/* Fills a complaint; false, for the caller to return. */
bool trace_complain(struct trace_complaint *complaint, const char *where, const char *expected,
		const json_t *got);

#endif
