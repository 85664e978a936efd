/* SPDX-License-Identifier: MIT */
#include "tests/trace_world.h"

#include <stdlib.h>
#include <string.h>

#include "shim/exchange.h"

#define NS_PER_US 1000ull
#define NS_PER_MS 1000000ull
#define EPOCH_NS 1000000000000ull /* a clock that has run for a while */

/* A socket of one process, and all its copies there. */
struct link {
	struct exchange exchange;
	size_t attempt; /* SIZE_MAX: it never tried to connect */
	size_t references;
};

struct process {
	struct link **links; /* by descriptor */
	size_t size;
	bool is_borrowed; /* a vfork child: its hooks pass through */
};

struct trace_world {
	const struct settings *settings;
	struct process *tasks[TRACE_TASK_MAX + 1];
	struct process **all;
	size_t all_count;
	struct trace_attempt *attempts;
	size_t attempt_count;
};

/* The times of an event on the clock of the exchanges. */
static uint64_t began_ns(const struct trace_event *event)
{
	return EPOCH_NS + event->began_us * NS_PER_US;
}

static uint64_t ended_ns(const struct trace_event *event)
{
	return EPOCH_NS + event->ended_us * NS_PER_US;
}

static void *grown(void *array, size_t count, size_t size)
{
	void *larger = realloc(array, count * size);

	if (!larger)
		abort();
	return larger;
}

static struct process *process_create(struct trace_world *world)
{
	struct process *process = calloc(1, sizeof(*process));

	world->all = grown(world->all, world->all_count + 1, sizeof(*world->all));
	if (!process)
		abort();
	world->all[world->all_count++] = process;
	return process;
}

struct trace_world *trace_world_create(const struct settings *settings)
{
	struct trace_world *world = calloc(1, sizeof(*world));

	if (!world)
		return NULL;
	world->settings = settings;
	world->tasks[1] = process_create(world);
	return world;
}

static struct link *link_find(const struct process *process, int fd)
{
	return fd >= 0 && (size_t)fd < process->size ? process->links[fd] : NULL;
}

static void link_put(struct process *process, int fd, struct link *link)
{
	size_t size = (size_t)fd + 1;

	if (size > process->size) {
		process->links = grown(process->links, size, sizeof(*process->links));
		memset(process->links + process->size, 0,
				(size - process->size) * sizeof(*process->links));
		process->size = size;
	}
	process->links[fd] = link;
	if (link)
		link->references++;
}

/* Reports how the open call ended, if it did. */
static void settle(struct trace_world *world, const struct link *link, struct exchange_step step)
{
	struct trace_attempt *attempt;

	if (step.ended == OUTCOME_NONE)
		return;
	attempt = &world->attempts[link->attempt];
	attempt->outcomes = grown(attempt->outcomes, attempt->count + 1,
			sizeof(*attempt->outcomes));
	attempt->outcomes[attempt->count++] = step.ended;
}

/* close(): the last copy ends the call. */
static void drop(struct trace_world *world, struct process *process, int fd, uint64_t now_ns)
{
	struct link *link = link_find(process, fd);

	if (!link)
		return;
	process->links[fd] = NULL;
	if (--link->references > 0)
		return;
	settle(world, link, exchange_closed(&link->exchange, world->settings, now_ns));
	free(link);
}

static void make_socket(struct trace_world *world, struct process *process,
		const struct trace_event *event)
{
	struct link *link;

	if (event->result < 0)
		return;
	drop(world, process, event->result, began_ns(event));
	if (!event->is_stream)
		return;
	link = calloc(1, sizeof(*link));
	if (!link)
		abort();
	link->attempt = SIZE_MAX;
	link_put(process, event->result, link);
}

static void begin_attempt(struct trace_world *world, struct link *link,
		const struct trace_event *event)
{
	world->attempts = grown(world->attempts, world->attempt_count + 1,
			sizeof(*world->attempts));
	link->attempt = world->attempt_count++;
	world->attempts[link->attempt] = (struct trace_attempt){ 0 };
	memcpy(world->attempts[link->attempt].peer, event->peer, TRACE_PEER_SIZE);
	exchange_begin(&link->exchange, began_ns(event));
}

static void connect_link(struct trace_world *world, struct link *link,
		const struct trace_event *event)
{
	if (event->is_disconnect) {
		if (event->result == 0)
			settle(world, link, exchange_closed(&link->exchange, world->settings,
					ended_ns(event)));
		return;
	}
	if (exchange_is_new_attempt(&link->exchange))
		begin_attempt(world, link, event);
	if (!event->never_returns)
		settle(world, link, exchange_connected(&link->exchange, world->settings,
				event->error, ended_ns(event)));
}

static struct bytes event_bytes(const struct trace_event *event, struct iovec *vector)
{
	*vector = (struct iovec){ event->data, event->data_size };
	return (struct bytes){ event->data ? vector : NULL, event->data ? 1 : 0 };
}

static void send_on(struct trace_world *world, struct link *link, const struct trace_event *event)
{
	struct exchange *exchange = &link->exchange;
	struct iovec vector;
	struct bytes bytes = event_bytes(event, &vector);
	struct exchange_step step;

	if (exchange_has(exchange, EXCHANGE_UNMETERED))
		return;
	if (!exchange_is_sending(exchange)) {
		step = exchange_will_send(exchange, world->settings, bytes, began_ns(event));
		settle(world, link, step);
		if (step.starts_call)
			exchange_call(exchange, began_ns(event));
	}
	if (!event->never_returns && exchange_minds_sent(exchange))
		settle(world, link, exchange_sent(exchange, world->settings, bytes, event->result,
				event->error, ended_ns(event)));
}

static void receive_on(struct trace_world *world, struct link *link,
		const struct trace_event *event)
{
	struct exchange *exchange = &link->exchange;
	struct iovec vector;
	uint64_t began = exchange_times_receive(exchange) ? began_ns(event) : 0;

	if (began)
		exchange_wait_begins(exchange, began);
	if (!event->never_returns && exchange_minds_receive(exchange))
		settle(world, link, exchange_received(exchange, world->settings,
				event_bytes(event, &vector), event->result, event->error,
				event->is_peek, began, ended_ns(event)));
}

static void wait_on(struct trace_world *world, struct process *process,
		const struct trace_event *event)
{
	if (event->timeout_ms == 0)
		return;
	for (size_t i = 0; i < event->polled_count; i++) {
		struct link *link = link_find(process, event->polled[i]);

		if (!link || !exchange_times_receive(&link->exchange))
			continue;
		exchange_wait_begins(&link->exchange, began_ns(event));
		if (!event->never_returns)
			settle(world, link, exchange_waited(&link->exchange, began_ns(event),
					ended_ns(event)));
	}
}

static void option_on(struct trace_world *world, struct link *link, const struct trace_event *event)
{
	if (event->never_returns || event->result != 0)
		return;
	if (event->is_error_asked)
		settle(world, link, exchange_so_error(&link->exchange, world->settings,
				event->option_error, ended_ns(event)));
	if (event->is_receive_time)
		exchange_set_receive_timeout(&link->exchange,
				(uint64_t)event->timeout_ms * NS_PER_MS);
}

static void shut(struct trace_world *world, struct link *link, const struct trace_event *event)
{
	if (!event->never_returns && event->result == 0)
		settle(world, link, exchange_shutdown(&link->exchange, world->settings, event->how,
				ended_ns(event)));
}

static void copy(struct trace_world *world, struct process *process,
		const struct trace_event *event)
{
	struct link *link = link_find(process, event->fd);

	if (event->never_returns || event->result < 0 || event->result == event->fd)
		return;
	drop(world, process, event->result, began_ns(event));
	if (link)
		link_put(process, event->result, link);
}

static void hand_to_stdio(struct trace_world *world, struct process *process,
		const struct trace_event *event)
{
	struct link *link = link_find(process, event->fd);

	if (!link)
		return;
	settle(world, link, exchange_left_to_stdio(&link->exchange));
	drop(world, process, event->fd, ended_ns(event));
}

static void drop_range(struct trace_world *world, struct process *process,
		const struct trace_event *event)
{
	for (size_t fd = (size_t)event->fd; fd < process->size && fd <= (size_t)event->last; fd++)
		drop(world, process, (int)fd, began_ns(event));
}

/* The child's socket that is a copy of the parent's one: the same for every copy of a descriptor.
 */
static struct link *link_fork(const struct process *parent, const struct process *child, size_t fd)
{
	struct link *link;

	for (size_t i = 0; i < fd; i++) {
		if (parent->links[i] == parent->links[fd])
			return child->links[i];
	}
	link = malloc(sizeof(*link));
	if (!link)
		abort();
	memcpy(link, parent->links[fd], sizeof(*link));
	link->references = 0;
	return link;
}

static void fork_process(struct trace_world *world, struct process *parent,
		const struct trace_event *event)
{
	struct process *child = process_create(world);

	world->tasks[event->child] = child;
	child->is_borrowed = event->call == TRACE_VFORK;
	if (child->is_borrowed)
		return;
	for (size_t fd = 0; fd < parent->size; fd++) {
		struct link *link = parent->links[fd];

		if (!link)
			continue;
		settle(world, link, exchange_cancelled(&link->exchange));
		link_put(child, (int)fd, link_fork(parent, child, fd));
	}
}

/* exec, death by signal, exit: what was open ends, and nothing is left. */
static void end_process(struct trace_world *world, struct process *process,
		const struct trace_event *event)
{
	if (event->call == TRACE_EXECVE && (event->never_returns || event->result < 0))
		return;
	for (size_t fd = 0; fd < process->size; fd++) {
		struct link *link = process->links[fd];

		if (link && event->call != TRACE_EXIT)
			settle(world, link, exchange_cancelled(&link->exchange));
		drop(world, process, (int)fd, ended_ns(event));
	}
	process->is_borrowed = false;
}

static void begin_task(struct trace_world *world, struct process *process,
		const struct trace_event *event)
{
	if (event->never_returns || event->result < 0)
		return;
	if (event->call == TRACE_THREAD)
		world->tasks[event->child] = process;
	else
		fork_process(world, process, event);
}

static void on_link(struct trace_world *world, struct link *link, const struct trace_event *event)
{
	switch (event->call) {
	case TRACE_CONNECT:
		connect_link(world, link, event);
		break;
	case TRACE_SEND:
		send_on(world, link, event);
		break;
	case TRACE_RECV:
		receive_on(world, link, event);
		break;
	case TRACE_GETSOCKOPT:
	case TRACE_SETSOCKOPT:
		option_on(world, link, event);
		break;
	case TRACE_SHUTDOWN:
		shut(world, link, event);
		break;
	default:
		break;
	}
}

static void on_process(struct trace_world *world, struct process *process,
		const struct trace_event *event)
{
	switch (event->call) {
	case TRACE_SOCKET:
		make_socket(world, process, event);
		break;
	case TRACE_POLL:
	case TRACE_SELECT:
		wait_on(world, process, event);
		break;
	case TRACE_FCNTL:
		if (event->is_copy)
			copy(world, process, event);
		break;
	case TRACE_DUP:
	case TRACE_DUP2:
	case TRACE_DUP3:
		copy(world, process, event);
		break;
	case TRACE_CLOSE:
		drop(world, process, event->fd, began_ns(event));
		break;
	case TRACE_CLOSE_RANGE:
		drop_range(world, process, event);
		break;
	case TRACE_FORK:
	case TRACE_VFORK:
	case TRACE_THREAD:
		begin_task(world, process, event);
		break;
	case TRACE_EXECVE:
	case TRACE_EXIT:
	case TRACE_KILLED:
		end_process(world, process, event);
		break;
	case TRACE_FDOPEN:
		hand_to_stdio(world, process, event);
		break;
	default:
		if (link_find(process, event->fd))
			on_link(world, link_find(process, event->fd), event);
	}
}

bool trace_world_happens(struct trace_world *world, const struct trace_event *event,
		struct trace_complaint *complaint)
{
	struct process *process = world->tasks[event->task];

	if (!process)
		return trace_complain(complaint, "task", "one that was started before", NULL);
	if (event->child && world->tasks[event->child])
		return trace_complain(complaint, "child", "a new task", NULL);
	on_process(world, process, event);
	return true;
}

const struct trace_attempt *trace_world_attempts(const struct trace_world *world, size_t *ret_count)
{
	*ret_count = world->attempt_count;
	return world->attempts;
}

static void process_destroy(struct process *process)
{
	for (size_t fd = 0; fd < process->size; fd++) {
		struct link *link = process->links[fd];

		if (link && --link->references == 0)
			free(link);
	}
	free(process->links);
	free(process);
}

void trace_world_destroy(struct trace_world *world)
{
	for (size_t i = 0; i < world->all_count; i++)
		process_destroy(world->all[i]);
	for (size_t i = 0; i < world->attempt_count; i++)
		free(world->attempts[i].outcomes);
	free(world->attempts);
	free(world->all);
	free(world);
}
