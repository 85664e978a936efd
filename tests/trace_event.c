/* SPDX-License-Identifier: MIT */
#include "tests/trace_event.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#define DATA_MAX (64 << 20)
#define TIME_MAX_US 1000000000000ll /* eleven days */

static const char *const call_names[TRACE_CALLS] = {
	[TRACE_SOCKET] = "socket",
	[TRACE_CONNECT] = "connect",
	[TRACE_SEND] = "send",
	[TRACE_RECV] = "recv",
	[TRACE_POLL] = "poll",
	[TRACE_SELECT] = "select",
	[TRACE_GETSOCKOPT] = "getsockopt",
	[TRACE_SETSOCKOPT] = "setsockopt",
	[TRACE_FCNTL] = "fcntl",
	[TRACE_IOCTL] = "ioctl",
	[TRACE_SHUTDOWN] = "shutdown",
	[TRACE_DUP] = "dup",
	[TRACE_DUP2] = "dup2",
	[TRACE_DUP3] = "dup3",
	[TRACE_CLOSE] = "close",
	[TRACE_CLOSE_RANGE] = "close_range",
	[TRACE_FORK] = "fork",
	[TRACE_VFORK] = "vfork",
	[TRACE_THREAD] = "thread",
	[TRACE_EXECVE] = "execve",
	[TRACE_EXIT] = "exit_group",
	[TRACE_KILLED] = "killed",
	[TRACE_FDOPEN] = "fdopen",
};

bool trace_complain(struct trace_complaint *complaint, const char *where, const char *expected,
		const json_t *got)
{
	char *text = got ? json_dumps(got, JSON_ENCODE_ANY | JSON_COMPACT) : NULL;

	snprintf(complaint->text, sizeof(complaint->text), "%s: expected %s, got %.60s", where,
			expected, text ? text : "nothing");
	free(text);
	return false;
}

/* A whole number in a range; `optional`: null or missing leaves *ret alone. */
static bool read_number(const json_t *json, const char *where, bool optional, int64_t low,
		int64_t high, int64_t *ret, struct trace_complaint *complaint)
{
	char expected[80];

	if (optional && (!json || json_is_null(json)))
		return true;
	if (json_is_integer(json) && json_integer_value(json) >= low &&
			json_integer_value(json) <= high) {
		*ret = json_integer_value(json);
		return true;
	}
	snprintf(expected, sizeof(expected), "a whole number from %lld to %lld", (long long)low,
			(long long)high);
	return trace_complain(complaint, where, expected, json);
}

static bool read_int(const json_t *json, const char *where, bool optional, int low, int high,
		int *ret, struct trace_complaint *complaint)
{
	int64_t number = *ret;

	if (!read_number(json, where, optional, low, high, &number, complaint))
		return false;
	*ret = (int)number;
	return true;
}

static bool read_errno(const json_t *json, const char *where, int *ret,
		struct trace_complaint *complaint)
{
	const char *name = json_string_value(json);

	if (!json || json_is_null(json))
		return true;
	for (int error = 1; name && error < 200; error++) {
		const char *known = strerrorname_np(error);

		if (known && strcmp(known, name) == 0) {
			*ret = error;
			return true;
		}
	}
	/* The C library knows this one by its other name only. */
	if (name && strcmp(name, "EWOULDBLOCK") == 0) {
		*ret = EWOULDBLOCK;
		return true;
	}
	return trace_complain(complaint, where, "the name of an errno or null", json);
}

static bool read_flag(const json_t *extra, const char *name, bool *ret,
		struct trace_complaint *complaint)
{
	const json_t *json = json_object_get(extra, name);

	if (json && !json_is_boolean(json))
		return trace_complain(complaint, name, "true or false", json);
	*ret = json_is_true(json);
	return true;
}

/* One of several words: its place in the list. */
static bool read_word(const json_t *extra, const char *name, const char *const words[], int *ret,
		struct trace_complaint *complaint)
{
	const json_t *json = json_object_get(extra, name);
	const char *text = json_string_value(json);
	char expected[120] = "";

	for (int i = 0; words[i]; i++) {
		if (text && strcmp(text, words[i]) == 0) {
			*ret = i;
			return true;
		}
		snprintf(expected + strlen(expected), sizeof(expected) - strlen(expected), "%s%s",
				i ? " or " : "", words[i]);
	}
	return trace_complain(complaint, name, expected, json);
}

bool trace_peer_normalize(const char *text, char ret[static TRACE_PEER_SIZE])
{
	static const char mapped[] = "[::ffff:";
	const char *end;

	if (strlen(text) >= TRACE_PEER_SIZE)
		return false;
	end = strchr(text, ']');
	if (end && strncmp(text, mapped, strlen(mapped)) == 0 && strchr(text, '.'))
		snprintf(ret, TRACE_PEER_SIZE, "%.*s%s", (int)(end - text - (long)strlen(mapped)),
				text + strlen(mapped), end + 1);
	else
		snprintf(ret, TRACE_PEER_SIZE, "%s", text);
	return true;
}

static int hex_digit(char digit)
{
	static const char digits[] = "0123456789abcdef";
	const char *at = digit ? strchr(digits, digit) : NULL;

	return at ? (int)(at - digits) : -1;
}

static bool hex_decode(const char *text, size_t length, uint8_t *ret)
{
	if (length % 2)
		return false;
	for (size_t i = 0; i < length / 2; i++) {
		int high = hex_digit(text[2 * i]), low = hex_digit(text[2 * i + 1]);

		if (high < 0 || low < 0)
			return false;
		ret[i] = (uint8_t)(high << 4 | low);
	}
	return true;
}

static bool read_data(struct trace_event *event, const json_t *extra,
		struct trace_complaint *complaint)
{
	const json_t *json = json_object_get(extra, "data");
	size_t length = json_is_string(json) ? json_string_length(json) : 0;
	int64_t moved = 0, asked = -1;

	if (!read_number(json_object_get(extra, "n"), "n", true, 0, DATA_MAX, &moved, complaint) ||
			!read_number(json_object_get(extra, "len"), "len", true, 0, DATA_MAX,
					&asked, complaint))
		return false;
	if (json && !json_is_string(json))
		return trace_complain(complaint, "data", "hex digits", json);
	if (length > 2 * (size_t)DATA_MAX)
		return trace_complain(complaint, "data", "64 MiB at most", NULL);
	event->data_size = length / 2 > (size_t)moved ? length / 2 : (size_t)moved;
	/* What is not known is out of sight; only a send of nothing is nothing. */
	if (event->data_size == 0 && event->result != 0)
		return true;
	if (event->data_size == 0 && event->call == TRACE_RECV && asked != 0)
		return true;
	event->data = calloc(1, event->data_size + 1);
	if (!event->data)
		return trace_complain(complaint, "data", "less than fills the memory", NULL);
	if (json && !hex_decode(json_string_value(json), length, event->data)) {
		trace_event_free(event);
		return trace_complain(complaint, "data", "hex digits in pairs", json);
	}
	return true;
}

static bool names_reading(const char *asked)
{
	return strstr(asked, "POLLIN") || strstr(asked, "POLLRDNORM");
}

static bool read_polled(struct trace_event *event, const json_t *extra,
		struct trace_complaint *complaint)
{
	const json_t *list = json_object_get(extra, "fds");
	const json_t *entry;
	size_t i;

	if (!json_is_array(list))
		return trace_complain(complaint, "fds", "a list", list);
	json_array_foreach(list, i, entry)
	{
		const char *asked = json_string_value(json_array_get(entry, 1));
		int fd = -1;

		if (!asked)
			return trace_complain(complaint, "fds", "[descriptor, asked, got]", entry);
		if (!read_int(json_array_get(entry, 0), "fds", false, 0, TRACE_FD_MAX, &fd,
				    complaint))
			return false;
		if (!names_reading(asked))
			continue;
		if (event->polled_count == TRACE_POLLED_MAX)
			return trace_complain(complaint, "fds", "64 descriptors at most", NULL);
		event->polled[event->polled_count++] = fd;
	}
	return read_number(json_object_get(extra, "timeout_ms"), "timeout_ms", false, -1, INT_MAX,
			&event->timeout_ms, complaint);
}

static bool read_socket(struct trace_event *event, const json_t *extra,
		struct trace_complaint *complaint)
{
	const char *family = json_string_value(json_object_get(extra, "family"));
	const char *type = json_string_value(json_object_get(extra, "type"));

	if (!family || !type)
		return trace_complain(complaint, "socket", "family and type", extra);
	event->is_stream =
			strncmp(family, "AF_INET", 7) == 0 && strncmp(type, "SOCK_STREAM", 11) == 0;
	return true;
}

static bool read_address(struct trace_event *event, const json_t *extra,
		struct trace_complaint *complaint)
{
	const json_t *json = json_object_get(extra, "addr");

	event->is_disconnect = json && json_is_null(json);
	if (event->is_disconnect)
		return true;
	if (!json_is_string(json) || !trace_peer_normalize(json_string_value(json), event->peer))
		return trace_complain(complaint, "addr", "ADDRESS:PORT or null", json);
	return true;
}

static bool read_option(struct trace_event *event, const json_t *extra,
		struct trace_complaint *complaint)
{
	const json_t *json = json_object_get(extra, "name");
	const char *name = json_string_value(json);

	if (!name)
		return trace_complain(complaint, "name", "the name of an option", json);
	event->is_error_asked = event->call == TRACE_GETSOCKOPT && strcmp(name, "SO_ERROR") == 0;
	event->is_receive_time =
			event->call == TRACE_SETSOCKOPT && strcmp(name, "SO_RCVTIMEO") == 0;
	if (event->is_error_asked)
		return read_errno(json_object_get(extra, "so_error"), "so_error",
				&event->option_error, complaint);
	return read_number(json_object_get(extra, "timeout_ms"), "timeout_ms",
			!event->is_receive_time, 0, INT_MAX, &event->timeout_ms, complaint);
}

/* What only some calls have. */
static bool read_extra(struct trace_event *event, const json_t *extra,
		struct trace_complaint *complaint)
{
	static const char *const hows[] = { "SHUT_RD", "SHUT_WR", "SHUT_RDWR", NULL };
	const char *command = json_string_value(json_object_get(extra, "cmd"));

	switch (event->call) {
	case TRACE_SOCKET:
		return read_socket(event, extra, complaint);
	case TRACE_CONNECT:
		return read_address(event, extra, complaint);
	case TRACE_RECV:
		if (!read_flag(extra, "peek", &event->is_peek, complaint))
			return false;
		return read_data(event, extra, complaint);
	case TRACE_SEND:
		return read_data(event, extra, complaint);
	case TRACE_POLL:
	case TRACE_SELECT:
		return read_polled(event, extra, complaint);
	case TRACE_GETSOCKOPT:
	case TRACE_SETSOCKOPT:
		return read_option(event, extra, complaint);
	case TRACE_FCNTL:
		event->is_copy = command && strncmp(command, "F_DUPFD", 7) == 0;
		return true;
	case TRACE_SHUTDOWN:
		return read_word(extra, "how", hows, &event->how, complaint);
	case TRACE_CLOSE_RANGE:
		return read_int(json_object_get(extra, "last"), "last", false, 0, INT_MAX,
				&event->last, complaint);
	case TRACE_FORK:
	case TRACE_VFORK:
	case TRACE_THREAD:
		return read_int(json_object_get(extra, "child"), "child", event->result < 0, 1,
				TRACE_TASK_MAX, &event->child, complaint);
	default:
		return true;
	}
}

static bool has_descriptor(enum trace_call call)
{
	static const uint32_t without = 1u << TRACE_POLL | 1u << TRACE_SELECT | 1u << TRACE_FORK |
		1u << TRACE_VFORK | 1u << TRACE_THREAD | 1u << TRACE_EXECVE | 1u << TRACE_EXIT |
		1u << TRACE_KILLED | 1u << TRACE_SOCKET;

	return !(without >> call & 1);
}

static bool read_call(const json_t *json, enum trace_call *ret, struct trace_complaint *complaint)
{
	const char *name = json_string_value(json);

	for (int i = 0; name && i < TRACE_CALLS; i++) {
		if (strcmp(call_names[i], name) == 0) {
			*ret = (enum trace_call)i;
			return true;
		}
	}
	return trace_complain(complaint, "call", "the name of a call such as connect", json);
}

static bool read_times(struct trace_event *event, const json_t *json, const json_t *extra,
		struct trace_complaint *complaint)
{
	int64_t began_us = 0, ended_us;

	if (!read_number(json_array_get(json, 0), "t_us", false, 0, TIME_MAX_US, &began_us,
			complaint))
		return false;
	ended_us = began_us;
	if (!read_number(json_object_get(extra, "until_us"), "until_us", true, began_us,
			    TIME_MAX_US, &ended_us, complaint))
		return false;
	event->began_us = (uint64_t)began_us;
	event->ended_us = (uint64_t)ended_us;
	return true;
}

/* What the call returned: -1 with an errno, or what it promises to; nothing where it never did. */
static bool read_result(struct trace_event *event, const json_t *json,
		struct trace_complaint *complaint)
{
	const json_t *result = json_array_get(json, 4);
	bool makes_descriptor = event->call == TRACE_SOCKET || event->is_copy ||
		event->call == TRACE_DUP || event->call == TRACE_DUP2 || event->call == TRACE_DUP3;
	bool is_free = event->never_returns || event->call == TRACE_EXIT ||
		event->call == TRACE_KILLED || event->call == TRACE_FDOPEN;

	if (!read_errno(json_array_get(json, 5), "errno", &event->error, complaint) ||
			!read_int(result, "ret", is_free, -1,
					makes_descriptor ? TRACE_FD_MAX : INT_MAX, &event->result,
					complaint))
		return false;
	if (event->result < 0 && event->error == 0 && !is_free)
		return trace_complain(complaint, "errno", "a name, since the call failed",
				json_array_get(json, 5));
	return true;
}

bool trace_event_read(
		const json_t *json, struct trace_event *ret, struct trace_complaint *complaint)
{
	struct trace_event event = { .fd = -1 };
	const json_t *extra = json_array_get(json, 6);
	const char *command = json_string_value(json_object_get(extra, "cmd"));

	if (json_array_size(json) != 7 || !json_is_object(extra))
		return trace_complain(complaint, "event",
				"[t_us, task, call, fd, ret, errno, {extra}]", json);
	event.is_copy = command && strncmp(command, "F_DUPFD", 7) == 0;
	if (!read_call(json_array_get(json, 2), &event.call, complaint) ||
			!read_times(&event, json, extra, complaint) ||
			!read_int(json_array_get(json, 1), "task", false, 1, TRACE_TASK_MAX,
					&event.task, complaint) ||
			!read_int(json_array_get(json, 3), "fd", !has_descriptor(event.call), 0,
					TRACE_FD_MAX, &event.fd, complaint) ||
			!read_flag(extra, "never_returns", &event.never_returns, complaint) ||
			!read_result(&event, json, complaint) ||
			!read_extra(&event, extra, complaint))
		return false;
	*ret = event;
	return true;
}

void trace_event_free(struct trace_event *event)
{
	free(event->data);
	event->data = NULL;
}
