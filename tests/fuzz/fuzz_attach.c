/* SPDX-License-Identifier: MIT */
/*
 * What other processes left in the segment. The input is a list of patches to a segment in use:
 * an offset (4 bytes), a length, and how often to repeat it (a byte each), then the bytes.
 * The first byte of the input says whether random bytes come before the patches, and where from.
 */
#include <fcntl.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "core/breaker.h"
#include "core/fault_text.h"
#include "core/segment.h"
#include "core/snapshot.h"
#include "core/words.h"
#include "tests/fuzz/fuzz.h"

#define TARGETS 24
#define NOW 1000000000000000ull
#define NEW_TARGETS 4
/* Far above what any input takes; a hang is a crash. */
#define PATIENCE_SECONDS 60

static char path[64];
static struct segment template, *file;
static struct settings settings;

static struct cell_key key_of(unsigned int number)
{
	struct cell_key key;
	char host[32];
	struct window_shape shape = settings.window;

	if (number % 3 == 2)
		shape = (struct window_shape){ .calls = 100 };
	snprintf(host, sizeof(host), "host-%u", number);
	cell_key_make(&key, number % 5 ? CELL_CONNECTION : CELL_LOOKUP, "PAY", host, NULL, 443,
			&shape);
	return key;
}

static struct cell *cell_of(struct segment *segment, unsigned int number)
{
	struct cell_key key = key_of(number);
	struct cell *cell = segment_cell(segment, &key, cell_key_hash(&key), NOW);

	FUZZ_EXPECT(!cell || words_equal(&cell->key, &key, sizeof(key)));
	return cell;
}

static void call(struct segment *segment, unsigned int number, uint64_t now_ns)
{
	struct permit permit;
	struct settings own = settings;
	struct breaker breaker = {
		.cell = cell_of(segment, number),
		.settings = &own,
		.events = &segment->events,
		.pid = 1,
	};

	if (!breaker.cell)
		return;
	if (number % 3 == 2)
		own.window = (struct window_shape){ .calls = 100 };
	breaker_acquire(&breaker, now_ns, number, &permit, &(place_t){ 0 });
	breaker_report(&breaker, permit, number % 2 ? OUTCOME_SUCCESS : OUTCOME_TIMEOUT, number,
			now_ns + number);
	FUZZ_EXPECT(breaker_state(&breaker, now_ns) <= CIRCUIT_HALF_OPEN);
	breaker_wake(&breaker, now_ns);
	breaker_wake_time_ns(&breaker, now_ns);
}

static struct fault fault_of(const char *text)
{
	struct fault fault;
	char error[64];

	FUZZ_EXPECT(fault_parse("PAY", text, strlen(text), &fault, error, sizeof(error)));
	return fault;
}

/* A rule of a process, and one that was added by hand. */
static void use_faults(struct segment *segment, uint64_t now_ns)
{
	static const char text[] = "pay refuse times=3 every=1s", by_hand[] = "pay hang";
	struct fault fault = fault_of(text), added = fault_of(by_hand);
	struct fault_record *record = fault_table_claim(&segment->faults, &fault, text, 0, now_ns);

	fault_table_add(&segment->faults, &added, by_hand, now_ns + FAULT_ADDED_FOR_NS, now_ns);
	if (!record)
		return;
	fault_record_seen(record);
	fault_record_matched(record);
	fault_record_connection(record, now_ns);
	fault_record_strike(record, &fault, now_ns);
}

static void file_remove(void)
{
	unlink(path);
}

static void start(void)
{
	const char *why = "";

	settings = settings_default;
	settings_finish(&settings, path, sizeof(path));
	segment_format(&template);
	for (unsigned int i = 0; i < TARGETS; i++) {
		for (unsigned int j = 0; j < 30; j++)
			call(&template, i, NOW - 30 + j);
	}
	use_faults(&template, NOW - 30);
	segment_rule(&template, "PAY", NULL);
	segment_rule(&template, "DB", "sleep: expected a duration");
	snprintf(path, sizeof(path), "/dev/shm/shunt-fuzz-%d", (int)getpid());
	unlink(path);
	file = segment_open(path, true, &why);
	FUZZ_EXPECT(file);
	atexit(file_remove);
}

static void fill_randomly(uint8_t seed)
{
	uint64_t state = seed;
	uint64_t *words = (uint64_t *)(void *)file;

	for (size_t i = sizeof(file->header) / 8; i < sizeof(*file) / 8; i++) {
		state = state * 6364136223846793005u + 1442695040888963407u;
		words[i] = state ^ state >> 29;
	}
}

static void patch(const uint8_t *data, size_t size)
{
	while (size > 6) {
		uint32_t offset;
		size_t length = data[4], times = data[5] + 1u;

		memcpy(&offset, data, sizeof(offset));
		data += 6;
		size -= 6;
		if (length > size)
			length = size;
		for (size_t i = 0, at = offset % sizeof(*file); i < times && length; i++) {
			if (at + length > sizeof(*file))
				break;
			memcpy((char *)file + at, data, length);
			at += length;
		}
		data += length;
		size -= length;
	}
}

static void expect_text(const char *text, size_t size)
{
	size_t length = strnlen(text, size);

	FUZZ_EXPECT(length < size);
	for (size_t i = 0; i < length; i++)
		FUZZ_EXPECT(text[i] >= ' ' && text[i] <= '~');
}

static void look_at_cells(struct segment *segment)
{
	for (uint32_t i = 0; i <= SEGMENT_CELLS; i++) {
		struct cell_snapshot snapshot;
		char text[HOST_SIZE];

		if (!snapshot_take(segment, i, NOW, &snapshot))
			continue;
		FUZZ_EXPECT(i < SEGMENT_CELLS && snapshot.state <= CIRCUIT_HALF_OPEN);
		FUZZ_EXPECT(snapshot.error_percent <= 100 && snapshot.errors <= snapshot.requests);
		FUZZ_EXPECT(snapshot.retry_in_ms <= SETTINGS_MAX_MS);
		expect_text(snapshot.key.name, sizeof(snapshot.key.name));
		expect_text(snapshot.key.host, sizeof(snapshot.key.host));
		snapshot_target(&snapshot, text, sizeof(text));
		expect_text(text, sizeof(text));
	}
}

static void look_at_the_rest(struct segment *segment)
{
	struct segment_rule_view rule;
	struct event event;
	uint64_t after = 0;
	unsigned int count = 0;

	for (uint32_t i = 0; i <= SEGMENT_RULES; i++) {
		if (!segment_rule_read(segment, i, &rule))
			continue;
		expect_text(rule.name, sizeof(rule.name));
		expect_text(rule.error, sizeof(rule.error));
	}
	while (event_read(&segment->events, after, &event)) {
		FUZZ_EXPECT(event.sequence > after && ++count <= EVENT_RING_SIZE);
		FUZZ_EXPECT(event.kind < EVENT_COUNT);
		expect_text(event.name, sizeof(event.name));
		expect_text(event.target, sizeof(event.target));
		after = event.sequence;
	}
}

/* What is added by hand reaches running processes: they read it as a rule. */
static void look_at_faults(struct segment *segment)
{
	struct fault_view view;
	struct fault fault;
	char error[256];

	for (uint32_t i = 0; i <= FAULT_TABLE_SIZE; i++) {
		if (!fault_table_read(&segment->faults, i, NOW, &view))
			continue;
		expect_text(view.name, sizeof(view.name));
		expect_text(view.text, sizeof(view.text));
		FUZZ_EXPECT(view.is_added || !view.is_over);
		FUZZ_EXPECT(fault_table_at(&segment->faults, i, view.key));
		fault_parse(view.name, view.text, strlen(view.text), &fault, error, sizeof(error));
	}
	fault_table_clear(&segment->faults, NULL, NOW);
}

static void use(struct segment *segment)
{
	use_faults(segment, NOW);
	for (unsigned int i = 0; i < TARGETS + NEW_TARGETS; i++)
		call(segment, i, NOW);
	segment_rule(segment, "PAY", NULL);
	segment_rule(segment, "NEW", "what is wrong");
	look_at_cells(segment);
	look_at_the_rest(segment);
	look_at_faults(segment);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *why = NULL;
	struct segment *segment;

	if (!file)
		start();
	alarm(PATIENCE_SECONDS);
	memcpy(file, &template, sizeof(template));
	if (size && data[0] % 64 == 63)
		fill_randomly(data[0]);
	if (size)
		patch(data + 1, size - 1);
	segment = segment_open(path, true, &why);
	FUZZ_EXPECT(segment || why);
	if (segment)
		segment_close(segment);
	/* The header too may change after it was checked. */
	use(file);
	return 0;
}
