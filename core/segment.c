/* SPDX-License-Identifier: MIT */
#include "core/segment.h"

#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/mapping.h"
#include "core/text.h"
#include "core/words.h"

static const char magic[8] = "shunt\r\n";

static_assert(offsetof(struct segment, rules) == 256, "layout is shared: bump SEGMENT_VERSION");
static_assert(offsetof(struct segment, events) == 33024, "layout is shared: bump SEGMENT_VERSION");
static_assert(offsetof(struct segment, table) == 131392, "layout is shared: bump SEGMENT_VERSION");
static_assert(offsetof(struct segment, seats) == 953856, "layout is shared: bump SEGMENT_VERSION");
static_assert(offsetof(struct segment, places) == 957952, "layout is shared: bump SEGMENT_VERSION");
static_assert(offsetof(struct segment, faults) == 1019392,
		"layout is shared: bump SEGMENT_VERSION");

void segment_format(struct segment *segment)
{
	struct segment_header *header = &segment->header;

	memcpy(header->magic, magic, sizeof(magic));
	header->version = SEGMENT_VERSION;
	header->size = sizeof(*segment);
	header->cells = SEGMENT_CELLS;
	header->cell_size = sizeof(struct cell);
}

static const char *segment_check(const void *memory)
{
	const struct segment_header *header = memory;

	if (memcmp(header->magic, magic, sizeof(magic)) != 0)
		return "it is no segment of shunt's";
	if (header->version != SEGMENT_VERSION)
		return "it is of another version";
	if (header->size != sizeof(struct segment) || header->cells != SEGMENT_CELLS ||
			header->cell_size != sizeof(struct cell))
		return "its layout is another";
	return NULL;
}

static void segment_fill(void *memory)
{
	segment_format(memory);
}

static const struct mapping_format format = {
	.size = sizeof(struct segment),
	.fill = segment_fill,
	.check = segment_check,
};

static bool default_path(const char *pid_namespace, uint32_t user, char *ret, size_t size)
{
	struct stat namespace;

	if (stat(pid_namespace, &namespace))
		return false;
	text_format(ret, size, "/dev/shm/shunt-%u-%lu-v%u", user, (unsigned long)namespace.st_ino,
			SEGMENT_VERSION);
	return true;
}

bool segment_default_path(char *ret, size_t size)
{
	return default_path("/proc/self/ns/pid", geteuid(), ret, size);
}

bool segment_default_path_of(uint32_t pid, uint32_t user, char *ret, size_t size)
{
	char namespace[32];

	text_format(namespace, sizeof(namespace), "/proc/%u/ns/pid", pid);
	return default_path(namespace, user, ret, size);
}

struct segment *segment_open(const char *path, bool make, const char **ret_why)
{
	char by_default[SEGMENT_PATH_SIZE];

	if (!path) {
		if (!segment_default_path(by_default, sizeof(by_default))) {
			*ret_why = "no /proc to name it by";
			return NULL;
		}
		path = by_default;
	}
	return mapping_open(path, &format, make, ret_why);
}

struct segment *segment_open_private(void)
{
	return mapping_open_private(&format);
}

void segment_close(struct segment *segment)
{
	mapping_close(segment, sizeof(*segment));
}

struct cell *segment_cell(struct segment *segment, const struct cell_key *key, uint64_t hash,
		uint64_t now_ns)
{
	struct cell *cell = cell_table_get(&segment->table, key, hash, now_ns);

	if (!cell)
		atomic_fetch_add_explicit(&segment->header.overflow, 1, memory_order_relaxed);
	return cell;
}

bool segment_cell_is(const struct segment *segment, const struct cell *cell, uint64_t hash)
{
	return cell_table_is(&segment->table, cell, hash);
}

uint32_t segment_cell_index(const struct segment *segment, const struct cell *cell)
{
	return cell_table_index(&segment->table, cell);
}

struct cell *segment_cell_at(struct segment *segment, uint32_t index)
{
	return cell_table_at(&segment->table, index);
}

static struct segment_rule *record_find(struct segment *segment, uint64_t hash)
{
	for (uint32_t i = 0; i < SEGMENT_RULES; i++) {
		struct segment_rule *rule = &segment->rules[(hash + i) % SEGMENT_RULES];
		uint64_t seen = 0;

		if (atomic_compare_exchange_strong_explicit(&rule->hash, &seen, hash,
			memory_order_acq_rel, memory_order_acquire) || seen == hash)
			return rule;
	}
	return NULL;
}

struct segment_rule *segment_rule(struct segment *segment, const char *name, const char *error)
{
	struct segment_rule_view texts = { .matched = 0 };
	struct segment_rule *rule;
	uint64_t hash;

	text_copy(texts.name, sizeof(texts.name), name);
	text_copy(texts.error, sizeof(texts.error), error ? error : "");
	hash = words_hash(texts.name, sizeof(texts.name));
	rule = record_find(segment, hash);
	if (!rule)
		return NULL;
	/* By hash alone: whoever claimed it may have died before it wrote the name. */
	words_store(rule->name, texts.name, sizeof(texts.name), &rule->hash, hash);
	words_store(rule->error, texts.error, sizeof(texts.error), &rule->hash, hash);
	return rule;
}

bool segment_rule_read(const struct segment *segment, uint32_t index,
		struct segment_rule_view *ret)
{
	const struct segment_rule *rule;

	if (index >= SEGMENT_RULES)
		return false;
	rule = &segment->rules[index];
	if (!atomic_load_explicit(&rule->hash, memory_order_acquire))
		return false;
	words_load(ret->name, rule->name, sizeof(ret->name));
	words_load(ret->error, rule->error, sizeof(ret->error));
	words_text(ret->name, sizeof(ret->name));
	words_text(ret->error, sizeof(ret->error));
	ret->matched = atomic_load_explicit(&rule->matched, memory_order_relaxed);
	for (int why = 0; why < UNENFORCED_COUNT; why++)
		ret->unenforced[why] = atomic_load_explicit(&rule->unenforced[why],
				memory_order_relaxed);
	return true;
}
