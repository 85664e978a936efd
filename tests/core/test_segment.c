/* SPDX-License-Identifier: MIT */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/segment.h"

#define NOW 1000000000000ull

static char directory[64];
static char path[128];

static void setup(void)
{
	strcpy(directory, "/dev/shm/test-segment-XXXXXX");
	cr_assert(mkdtemp(directory));
	snprintf(path, sizeof(path), "%s/segment", directory);
}

static void teardown(void)
{
	unlink(path);
	rmdir(directory);
}

TestSuite(segment, .init = setup, .fini = teardown, .timeout = 60);

static struct cell *cell_of(struct segment *segment, unsigned int number)
{
	static const struct window_shape shape = { .span_ns = 1000000000, .buckets = 10 };
	struct cell_key key;
	char host[32];

	snprintf(host, sizeof(host), "host-%u", number);
	cell_key_make(&key, CELL_CONNECTION, "PAY", host, NULL, 443, &shape);
	return segment_cell(segment, &key, cell_key_hash(&key), NOW);
}

Test(segment, the_default_path_names_user_and_pid_namespace)
{
	char text[SEGMENT_PATH_SIZE], expected[SEGMENT_PATH_SIZE], link[64];
	unsigned long inode;

	link[readlink("/proc/self/ns/pid", link, sizeof(link) - 1)] = '\0';
	cr_assert_eq(sscanf(link, "pid:[%lu]", &inode), 1);
	snprintf(expected, sizeof(expected), "/dev/shm/shunt-%u-%lu-v3", geteuid(), inode);
	cr_assert(segment_default_path(text, sizeof(text)));
	cr_assert_str_eq(text, expected);
}

Test(segment, the_default_path_of_another_process_is_the_one_it_would_tell)
{
	char text[SEGMENT_PATH_SIZE], own[SEGMENT_PATH_SIZE], other[SEGMENT_PATH_SIZE];

	cr_assert(segment_default_path(own, sizeof(own)));
	cr_assert(segment_default_path_of((uint32_t)getpid(), geteuid(), text, sizeof(text)));
	cr_expect_str_eq(text, own);
	cr_assert(segment_default_path_of((uint32_t)getpid(), geteuid() + 1, other, sizeof(other)));
	cr_expect_str_neq(text, other);
	cr_expect_not(segment_default_path_of(UINT32_MAX, geteuid(), text, sizeof(text)));
	cr_expect_str_eq(text, own, "left alone");
}

Test(segment, what_one_process_counts_the_next_one_sees)
{
	const char *why = NULL;
	struct segment *segment;
	pid_t child = fork();

	if (!child) {
		segment = segment_open(path, true, &why);
		if (segment)
			atomic_fetch_add(&cell_of(segment, 1)->totals[0], 5);
		_exit(!segment);
	}
	cr_assert_eq(waitpid(child, NULL, 0), child);
	segment = segment_open(path, false, &why);
	cr_assert(segment, "%s", why);
	cr_assert_eq(atomic_load(&cell_of(segment, 1)->totals[0]), 5);
	segment_close(segment);
}

Test(segment, a_fresh_one_is_empty)
{
	struct segment *segment = segment_open_private();
	struct segment_rule_view rule;
	struct event event;

	cr_assert(segment);
	for (uint32_t i = 0; i <= SEGMENT_CELLS; i++)
		cr_assert_null(segment_cell_at(segment, i));
	for (uint32_t i = 0; i <= SEGMENT_RULES; i++)
		cr_assert_not(segment_rule_read(segment, i, &rule));
	cr_assert_not(event_read(&segment->events, 0, &event));
}

/* Changes the header of a good file and expects to be told so. */
static void expect_header_refusal(size_t offset, const char *reason)
{
	const char *why = NULL;
	unsigned char byte;
	int fd;

	cr_assert(segment_open(path, true, &why), "%s", why);
	fd = open(path, O_RDWR);
	cr_assert_eq(pread(fd, &byte, 1, (off_t)offset), 1);
	byte++;
	cr_assert_eq(pwrite(fd, &byte, 1, (off_t)offset), 1);
	close(fd);
	cr_assert_null(segment_open(path, true, &why));
	cr_assert_str_eq(why, reason);
	unlink(path);
}

Test(segment, another_header_is_refused)
{
	expect_header_refusal(0, "it is no segment of shunt's");
	expect_header_refusal(offsetof(struct segment_header, version), "it is of another version");
	expect_header_refusal(offsetof(struct segment_header, size), "its layout is another");
	expect_header_refusal(offsetof(struct segment_header, cells), "its layout is another");
	expect_header_refusal(offsetof(struct segment_header, cell_size), "its layout is another");
}

Test(segment, those_who_have_it_keep_it_when_it_is_unlinked)
{
	const char *why = NULL;
	struct segment *old = segment_open(path, true, &why), *new;

	cr_assert(old, "%s", why);
	unlink(path);
	new = segment_open(path, true, &why);
	cr_assert(new, "%s", why);
	atomic_fetch_add(&cell_of(old, 1)->totals[0], 5);
	cr_assert_eq(atomic_load(&cell_of(new, 1)->totals[0]), 0);
}

Test(segment, targets_without_a_cell_are_counted)
{
	struct segment *segment = segment_open_private();

	for (unsigned int i = 0; i < SEGMENT_CELLS; i++) {
		struct cell *cell = cell_of(segment, i);

		cr_assert_eq(segment_cell_at(segment, segment_cell_index(segment, cell)), cell);
	}
	cr_assert_eq(atomic_load(&segment->header.overflow), 0);
	cr_assert_null(cell_of(segment, SEGMENT_CELLS));
	cr_assert_null(cell_of(segment, SEGMENT_CELLS + 1));
	cr_assert_eq(atomic_load(&segment->header.overflow), 2);
}

static struct segment_rule_view rule_read(struct segment *segment, const char *name)
{
	struct segment_rule_view view;

	for (uint32_t i = 0; i < SEGMENT_RULES; i++) {
		if (segment_rule_read(segment, i, &view) && strcmp(view.name, name) == 0)
			return view;
	}
	cr_assert_fail("no rule %s", name);
	return view;
}

Test(segment, a_rule_has_one_record_and_its_latest_error)
{
	struct segment *segment = segment_open_private();
	struct segment_rule *rule = segment_rule(segment, "PAY", "sleep: expected a duration");

	cr_assert(rule);
	cr_assert_str_eq(rule_read(segment, "PAY").error, "sleep: expected a duration");
	atomic_fetch_add(&rule->matched, 3);
	cr_assert_eq(segment_rule(segment, "PAY", "no"), rule);
	cr_assert_str_eq(rule_read(segment, "PAY").error, "no");
	cr_assert_eq(segment_rule(segment, "PAY", NULL), rule);
	cr_assert_str_eq(rule_read(segment, "PAY").error, "");
	cr_assert_eq(rule_read(segment, "PAY").matched, 3);
	cr_assert_neq(segment_rule(segment, "DB", NULL), rule);
}

Test(segment, a_rule_record_claimed_by_the_dead_gets_its_name)
{
	struct segment *segment = segment_open_private();
	struct segment_rule *rule = segment_rule(segment, "PAY", NULL);

	memset(rule->name, 0, sizeof(rule->name));
	cr_assert_eq(segment_rule(segment, "PAY", NULL), rule);
	cr_assert_str_eq(rule->name, "PAY");
}

Test(segment, has_room_for_as_many_rules_as_it_says)
{
	struct segment *segment = segment_open_private();
	char name[32];

	for (unsigned int i = 0; i < SEGMENT_RULES; i++) {
		snprintf(name, sizeof(name), "RULE_%u", i);
		cr_assert(segment_rule(segment, name, NULL));
	}
	cr_assert_null(segment_rule(segment, "ONE_MORE", NULL));
	cr_assert(segment_rule(segment, "RULE_0", NULL));
}

Test(segment, text_of_rules_comes_out_terminated_and_printable)
{
	struct segment *segment = segment_open_private();
	struct segment_rule *rule = segment_rule(segment, "PAY", NULL);
	struct segment_rule_view view;
	char endless[512];

	memset(rule->name, '\n', sizeof(rule->name) + sizeof(rule->error));
	cr_assert(segment_rule_read(segment, (uint32_t)(rule - segment->rules), &view));
	cr_assert_eq(strspn(view.name, "?"), sizeof(view.name) - 1);
	cr_assert_eq(strlen(view.error), sizeof(view.error) - 1);
	memset(endless, 'x', sizeof(endless) - 1);
	endless[sizeof(endless) - 1] = '\0';
	cr_assert(segment_rule(segment, endless, endless));
}
