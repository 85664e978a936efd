/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/replay.h"
#include "tests/trace_event.h"
#include "tests/trace_world.h"

/* Where in which file, for messages. */
struct place {
	const char *path;
	size_t line;
};

static bool refuse(struct place place, const char *what)
{
	fprintf(stderr, "%s:%zu: %s\n", place.path, place.line, what);
	return false;
}

/* Outcomes as a text in brackets. */
static void outcomes_format(const struct trace_attempt *attempt, char *ret, size_t size)
{
	size_t length = (size_t)snprintf(ret, size, "[");

	for (size_t i = 0; i < attempt->count && length < size; i++)
		length += (size_t)snprintf(ret + length, size - length, "%s%s", i ? ", " : "",
				outcome_name(attempt->outcomes[i]));
	if (length < size)
		snprintf(ret + length, size - length, "]");
}

static bool expectation_read(const json_t *json, struct trace_attempt *ret,
		struct trace_complaint *complaint)
{
	const json_t *outcomes = json_object_get(json, "outcomes");
	const char *peer = json_string_value(json_object_get(json, "peer"));
	size_t count = json_array_size(outcomes);

	*ret = (struct trace_attempt){ 0 };
	if (!peer || !json_is_array(outcomes) || !trace_peer_normalize(peer, ret->peer))
		return trace_complain(complaint, "expect", "peer and outcomes", json);
	ret->outcomes = calloc(count + 1, sizeof(*ret->outcomes));
	if (!ret->outcomes)
		return trace_complain(complaint, "expect", "less than fills the memory", NULL);
	for (; ret->count < count; ret->count++) {
		const json_t *name = json_array_get(outcomes, ret->count);

		if (json_is_string(name))
			ret->outcomes[ret->count] = outcome_from_name(json_string_value(name));
		if (ret->outcomes[ret->count] == OUTCOME_NONE) {
			free(ret->outcomes);
			return trace_complain(
					complaint, "outcomes", "the name of an outcome", name);
		}
	}
	return true;
}

static bool attempts_are_equal(const struct trace_attempt *a, const struct trace_attempt *b)
{
	return strcmp(a->peer, b->peer) == 0 && a->count == b->count &&
		(a->count == 0 ||
			memcmp(a->outcomes, b->outcomes, a->count * sizeof(*a->outcomes)) == 0);
}

static bool compare_one(const char *id, size_t index, const struct trace_attempt *expected,
		const struct trace_attempt *got)
{
	char expected_text[256], got_text[256];

	if (attempts_are_equal(expected, got))
		return true;
	outcomes_format(expected, expected_text, sizeof(expected_text));
	outcomes_format(got, got_text, sizeof(got_text));
	printf("failed: %s: connection %zu: expected %s %s, got %s %s\n", id, index + 1,
			expected->peer, expected_text, got->peer, got_text);
	return false;
}

/* False where the expectation is not in the language; otherwise *ret says if it was met. */
static bool compare(const char *id, const json_t *expect, const struct trace_world *world,
		bool *ret, struct trace_complaint *complaint)
{
	static const struct trace_attempt none = { .peer = "nothing" };
	struct trace_attempt expected;
	size_t count;
	const struct trace_attempt *attempts = trace_world_attempts(world, &count);

	*ret = true;
	for (size_t i = 0; i < json_array_size(expect); i++) {
		if (!expectation_read(json_array_get(expect, i), &expected, complaint))
			return false;
		*ret &= compare_one(id, i, &expected, i < count ? &attempts[i] : &none);
		free(expected.outcomes);
	}
	for (size_t i = json_array_size(expect); i < count; i++)
		*ret &= compare_one(id, i, &none, &attempts[i]);
	return true;
}

static bool events_happen(const json_t *events, struct trace_world *world,
		struct trace_complaint *complaint)
{
	for (size_t i = 0; i < json_array_size(events); i++) {
		struct trace_event event;
		struct trace_complaint why;
		bool has_happened;

		if (!trace_event_read(json_array_get(events, i), &event, &why)) {
			snprintf(complaint->text, sizeof(complaint->text), "event %zu: %.160s",
					i + 1, why.text);
			return false;
		}
		has_happened = trace_world_happens(world, &event, &why);
		trace_event_free(&event);
		if (!has_happened) {
			snprintf(complaint->text, sizeof(complaint->text), "event %zu: %.160s",
					i + 1, why.text);
			return false;
		}
	}
	return true;
}

static bool trace_replay(const json_t *trace, struct replay_tally *tally,
		struct trace_complaint *complaint)
{
	const char *id = json_string_value(json_object_get(trace, "id"));
	const json_t *events = json_object_get(trace, "events");
	const json_t *expect = json_object_get(trace, "expect");
	struct trace_world *world;
	bool is_met = false;
	bool is_read;

	if (!id || !json_is_array(events) || !json_is_array(expect))
		return trace_complain(
				complaint, "trace", "an object with id, events and expect", trace);
	world = trace_world_create(&settings_default);
	if (!world)
		return trace_complain(complaint, "trace", "less than fills the memory", NULL);
	is_read = events_happen(events, world, complaint) &&
		compare(id, expect, world, &is_met, complaint);
	trace_world_destroy(world);
	if (is_read && is_met)
		tally->passed++;
	else if (is_read)
		tally->failed++;
	return is_read;
}

static bool line_replay(struct place place, const char *line, size_t length,
		struct replay_tally *tally)
{
	struct trace_complaint complaint;
	json_error_t error;
	json_t *trace;
	bool is_read;

	if (strspn(line, " \t\r\n") == length)
		return true;
	trace = json_loadb(line, length, JSON_REJECT_DUPLICATES, &error);
	if (!trace) {
		snprintf(complaint.text, sizeof(complaint.text), "trace: expected JSON: %s",
				error.text);
		return refuse(place, complaint.text);
	}
	is_read = trace_replay(trace, tally, &complaint);
	json_decref(trace);
	return is_read || refuse(place, complaint.text);
}

bool replay_traces(const char *path, struct replay_tally *tally)
{
	FILE *file = fopen(path, "re");
	struct place place = { .path = path };
	char *line = NULL;
	size_t size = 0;
	ssize_t length;
	bool is_good = true;

	if (!file)
		return refuse(place, strerror(errno));
	while (is_good && (length = getline(&line, &size, file)) >= 0) {
		place.line++;
		is_good = line_replay(place, line, (size_t)length, tally);
	}
	if (is_good && ferror(file))
		is_good = refuse(place, strerror(errno));
	free(line);
	fclose(file);
	return is_good;
}
