/* SPDX-License-Identifier: MIT */
#include "core/fault.h"

#include <string.h>

#include "core/draw.h"
#include "core/order.h"
#include "core/text.h"

/* Which numbers of a unit's draw are for what. */
enum { DRAW_CHANCE, DRAW_VALUE, DRAW_FURTHER };

static const char *const kind_names[FAULT_KIND_COUNT + 1] = {
	[FAULT_REFUSE] = "refuse",
	[FAULT_UNREACHABLE] = "unreachable",
	[FAULT_TIMEOUT] = "timeout",
	[FAULT_HANG] = "hang",
	[FAULT_RESET] = "reset",
	[FAULT_CLOSE] = "close",
	[FAULT_LATENCY] = "latency",
	[FAULT_RATE] = "rate",
	[FAULT_SHORT] = "short",
	[FAULT_EINTR] = "eintr",
	[FAULT_EAGAIN] = "eagain",
	[FAULT_ERRNO] = "errno",
	[FAULT_SLOWCLOSE] = "slowclose",
	[FAULT_CORRUPT] = "corrupt",
	[FAULT_DROP] = "drop",
	[FAULT_DUP] = "dup",
	[FAULT_MAXCONN] = "maxconn",
	[FAULT_NXDOMAIN] = "nxdomain",
	[FAULT_SERVFAIL] = "servfail",
	[FAULT_AGAIN] = "again",
	[FAULT_NODATA] = "nodata",
	[FAULT_ADDR] = "addr",
	[FAULT_KIND_COUNT] = "none",
};

static const char *const reason_names[FAULT_REASON_COUNT] = {
	[FAULT_STRIKES] = "strikes",
	[FAULT_BY_CHANCE] = "chance",
	[FAULT_BY_NUMBER] = "number",
	[FAULT_BY_TIMES] = "times",
	[FAULT_BY_TIME] = "time",
	[FAULT_IMPOSSIBLE] = "impossible",
	[FAULT_UNREACHED] = "unreached",
	[FAULT_BY_MODE] = "mode",
};

const char *fault_kind_name(enum fault_kind kind)
{
	return kind_names[(unsigned int)kind < FAULT_KIND_COUNT ? kind : FAULT_KIND_COUNT];
}

const char *fault_reason_name(enum fault_reason reason)
{
	return (unsigned int)reason < FAULT_REASON_COUNT ? reason_names[reason] : "unknown";
}

enum fault_kind fault_kind_of(const char *name)
{
	int kind = 0;

	while (kind < FAULT_KIND_COUNT && strcmp(kind_names[kind], name) != 0)
		kind++;
	return (enum fault_kind)kind;
}

int fault_compare(const struct fault *a, const struct fault *b)
{
	if (a->target.is_excluded != b->target.is_excluded)
		return a->target.is_excluded ? -1 : 1;
	int order = target_compare(&a->target, &b->target);
	return order ? order : strcmp(a->name, b->name);
}

const struct fault *fault_find(const struct fault faults[], size_t count, const char *name)
{
	for (size_t i = 0; i < count; i++) {
		if (strcmp(faults[i].name, name) == 0)
			return &faults[i];
	}
	return NULL;
}

static int compare_faults(const void *a, const void *b)
{
	return fault_compare(a, b);
}

void fault_place(struct fault faults[], size_t last)
{
	order_place(faults, sizeof(faults[0]), last, compare_faults);
}

/* The globs of proc= stand between bars: commas separate the words of a rule. */
static bool proc_matches(const char *globs, const char *program)
{
	char glob[FAULT_PROC_SIZE];

	for (;;) {
		size_t length = strcspn(globs, "|");

		text_copy(glob, length + 1, globs);
		if (text_glob(glob, program))
			return true;
		if (globs[length] == '\0')
			return false;
		globs += length + 1;
	}
}

bool fault_is_for(const struct fault *fault, const char *program, uint32_t euid)
{
	if (!program)
		return true;
	if (fault->has_uid && fault->uid != euid)
		return false;
	return fault->proc[0] == '\0' || proc_matches(fault->proc, program);
}

bool fault_matches(const struct fault *fault, const struct endpoint *endpoint,
		enum fault_protocol protocol)
{
	bool is_about = endpoint->is_lookup == fault->is_lookup;

	if (fault->target.is_excluded)
		is_about = endpoint->is_lookup || !fault->is_lookup;
	else if (!endpoint->is_lookup && fault->protocol != protocol)
		is_about = false;
	return is_about && target_matches(&fault->target, endpoint);
}

static bool is_in_time(const struct fault *fault, uint64_t elapsed_ns)
{
	if (fault->expire_ns && elapsed_ns >= fault->expire_ns)
		return false;
	if (elapsed_ns < fault->after_ns)
		return false;
	elapsed_ns -= fault->after_ns;
	if (fault->for_ns && elapsed_ns >= fault->for_ns)
		return false;
	return !fault->down_ns || elapsed_ns % (fault->down_ns + fault->up_ns) < fault->down_ns;
}

static bool is_in_number(const struct fault *fault, uint32_t number)
{
	if (fault->first == 0)
		return true;
	return number >= fault->first && number <= fault->last &&
			(number - fault->first) % (fault->step ? fault->step : 1) == 0;
}

static struct draw draw_of(const struct fault *fault, uint64_t seed, struct fault_unit unit)
{
	uint32_t call = fault->per == FAULT_PER_CALL ? unit.call : 0;

	return (struct draw){ seed, fault->hash, unit.connection, call };
}

static uint64_t draw_delay(const struct fault *fault, uint64_t number)
{
	__extension__ typedef __int128 wide;
	wide delay = (wide)fault->delay_ns, jitter = (wide)fault->jitter_ns;

	if (fault->spread == FAULT_NORMAL)
		delay += jitter * draw_normal(number) / 65536;
	else
		delay += (wide)draw_below(number, 2 * fault->jitter_ns + 1) - jitter;
	return delay > 0 ? (uint64_t)delay : 0;
}

static uint64_t value_of(const struct fault *fault, uint64_t number)
{
	switch (fault->kind) {
	case FAULT_LATENCY:
		return draw_delay(fault, number);
	case FAULT_SHORT:
		return fault->low + draw_below(number, (uint64_t)fault->high - fault->low + 1);
	case FAULT_TIMEOUT:
	case FAULT_SLOWCLOSE:
		return fault->delay_ns;
	case FAULT_RESET:
	case FAULT_CLOSE:
	case FAULT_RATE:
		return fault->bytes;
	case FAULT_CORRUPT:
	case FAULT_MAXCONN:
		return fault->low;
	case FAULT_ERRNO:
		return (uint64_t)fault->error;
	default:
		return 0;
	}
}

struct fault_choice fault_choose(const struct fault *fault, uint64_t seed, struct fault_unit unit,
		uint64_t elapsed_ns)
{
	struct draw draw = draw_of(fault, seed, unit);
	struct fault_choice choice = { .reason = FAULT_STRIKES };

	if (fault->target.is_excluded)
		choice.reason = FAULT_IMPOSSIBLE;
	else if (!is_in_time(fault, elapsed_ns))
		choice.reason = FAULT_BY_TIME;
	else if (!is_in_number(fault, fault->per == FAULT_PER_CALL ? unit.call : unit.connection))
		choice.reason = FAULT_BY_NUMBER;
	else if (draw_below(draw_number(&draw, DRAW_CHANCE), RATIO_ONE) >= fault->ratio)
		choice.reason = FAULT_BY_CHANCE;
	else
		choice.value = value_of(fault, draw_number(&draw, DRAW_VALUE));
	return choice;
}

uint64_t fault_number(const struct fault *fault, uint64_t seed, struct fault_unit unit,
		uint32_t index)
{
	struct draw draw = draw_of(fault, seed, unit);

	return draw_number(&draw, DRAW_FURTHER + index);
}
