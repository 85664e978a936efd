/* SPDX-License-Identifier: MIT */
#include <inttypes.h>
#include <stdio.h>
#include <time.h>

#include "cli/command.h"
#include "cli/json.h"
#include "cli/state.h"
#include "cli/terminal.h"
#include "cli/label.h"
#include "core/clock.h"
#include "core/event.h"

#define FOLLOW_INTERVAL_MS 100

enum { EVENTS_FOLLOW, EVENTS_JSON, EVENTS_OPTION_COUNT };

static const struct command_option events_options[] = {
	[EVENTS_FOLLOW] = { "--follow", .has_value = false },
	[EVENTS_JSON] = { "--json", .has_value = false },
};

/* Events carry the monotonic clock; people want the wall's, as it stands now. */
static struct timespec event_wall_time(const struct event *event)
{
	uint64_t age_ns = clock_elapsed_ns(event->time_ns, clock_now_ns());
	uint64_t wall_ns;
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	wall_ns = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
	wall_ns = wall_ns > age_ns ? wall_ns - age_ns : 0;
	return (struct timespec){ (time_t)(wall_ns / 1000000000u), (long)(wall_ns % 1000000000u) };
}

static void print_as_json(const struct event *event)
{
	struct timespec wall = event_wall_time(event);
	char date[32], time[48];
	struct tm parts;

	gmtime_r(&wall.tv_sec, &parts);
	strftime(date, sizeof(date), "%Y-%m-%dT%H:%M:%S", &parts);
	snprintf(time, sizeof(time), "%s.%03ldZ", date, wall.tv_nsec / 1000000);
	json_print(json_event(event, time));
}

static void print_for_people(const struct event *event)
{
	struct timespec wall = event_wall_time(event);
	char date[32];
	struct tm parts;

	localtime_r(&wall.tv_sec, &parts);
	strftime(date, sizeof(date), "%Y-%m-%d %H:%M:%S", &parts);
	printf("%s.%03ld  %s  %s%s%s  %s", date, wall.tv_nsec / 1000000, event->name,
			event->is_lookup ? "lookup of " : "", event->target,
					event->target[0] ? "" : "any",
			event_kind_name((enum event_kind)event->kind));
	if (event->kind == EVENT_FORCED)
		printf(" %s", label_force((enum force)event->detail));
	if (event->kind == EVENT_INJECTED)
		printf("  %" PRIu32 " so far", event->detail);
	if (event->requests > 0)
		printf("  %" PRIu32 " of %" PRIu32 " failed", event->errors, event->requests);
	printf("  (process %" PRIu32 ")\n", event->pid);
}

/* Everything after *after, oldest first. A ring that is written faster than it is read skips. */
static void print_new(const struct state *state, bool as_json, uint64_t *after)
{
	struct event event;

	for (int i = 0; i < EVENT_RING_SIZE && event_read(&state->segment->events, *after, &event);
			i++) {
		*after = event.sequence;
		if (as_json)
			print_as_json(&event);
		else
			print_for_people(&event);
	}
}

static int follow(struct state *state, bool as_json)
{
	uint64_t after = 0;

	for (;;) {
		if (state->segment)
			print_new(state, as_json, &after);
		if (!terminal_flush())
			return EXIT_OWN_FAILURE;
		if (!terminal_wait(FOLLOW_INTERVAL_MS))
			return 0;
		if (state_refresh(state))
			after = 0;
	}
}

int cmd_events(int argc, char *argv[])
{
	struct command_options options;
	bool is_set[EVENTS_OPTION_COUNT] = { false };
	const char *value;
	struct state *state;
	uint64_t after = 0;
	int option;

	command_options_init(&options, events_options, EVENTS_OPTION_COUNT, argc, argv);
	while ((option = command_options_next(&options, &value)) >= 0)
		is_set[option] = true;
	if (option == COMMAND_OPTIONS_BAD || !command_operands_fit(&options, 0, 0, "only options"))
		return EXIT_OWN_FAILURE;
	state = state_open();
	if (!state->segment)
		terminal_complain("events: %s", state->reason);
	if (!state->segment && !state->is_missing)
		return EXIT_OWN_FAILURE;
	if (is_set[EVENTS_FOLLOW])
		return follow(state, is_set[EVENTS_JSON]);
	if (state->segment)
		print_new(state, is_set[EVENTS_JSON], &after);
	return 0;
}
