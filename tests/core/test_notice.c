/* SPDX-License-Identifier: MIT */
#include <criterion/criterion.h>
#include <string.h>

#include "core/notice.h"

static struct cell cell;
static struct event_ring ring;

Test(notice, tells_who_and_what_and_how_many)
{
	struct notice notice = { EVENT_TRIPPED, .detail = 3, .sum = { .total = 20, .errors = 11 } };
	struct event event;

	strcpy(cell.key.name, "PAY");
	strcpy(cell.key.host, "pay.internal");
	cell.key.kind = CELL_LOOKUP;
	notice_write(&ring, &cell, 77, notice, 5000);
	cr_assert(event_read(&ring, 0, &event));
	cr_expect_eq(event.kind, EVENT_TRIPPED);
	cr_expect_eq(event.time_ns, 5000);
	cr_expect_eq(event.pid, 77);
	cr_expect_eq(event.requests, 20);
	cr_expect_eq(event.errors, 11);
	cr_expect_eq(event.detail, 3);
	cr_expect(event.is_lookup);
	cr_expect_str_eq(event.name, "PAY");
	cr_expect_str_eq(event.target, "pay.internal");
}

Test(notice, any_bytes_are_a_key_and_no_ring_is_fine)
{
	memset(&cell, 0xff, sizeof(cell));
	notice_write(&ring, &cell, 77, (struct notice){ .kind = EVENT_RESET }, 1);
	notice_write(NULL, &cell, 77, (struct notice){ .kind = EVENT_RESET }, 1);
}
