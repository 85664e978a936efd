/* SPDX-License-Identifier: MIT */
#include "shim/inject_slot.h"

#include <sys/mman.h>
#include <sys/socket.h>

#include "shim/withheld.h"

#define KIND(kind) (1u << FAULT_##kind)
/* Those that do not let a program see what it waits for, or spend an edge that told of more. */
#define KINDS_HELD \
	(KIND(LATENCY) | KIND(TIMEOUT) | KIND(RATE) | KIND(SLOWCLOSE) | KIND(EAGAIN) | \
	 KIND(SHORT) | KIND(CORRUPT) | KIND(DROP))

static struct slot *slots;

bool slots_start(void)
{
	void *memory;

	if (slots)
		return true;
	memory = mmap(NULL, fd_table.capacity * sizeof(struct slot), PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (memory == MAP_FAILED)
		return false;
	slots = memory;
	return true;
}

struct slot *slot_of(const struct connection *connection)
{
	return slots ? &slots[connection - fd_table.connections] : NULL;
}

static uint32_t generation_of(const struct connection *connection)
{
	return fd_table_generation(connection) + 1;
}

bool slot_is_valid(const struct slot *slot, const struct connection *connection)
{
	return atomic_load_explicit(&slot->generation, memory_order_acquire) ==
			generation_of(connection);
}

static void strikes_clear(struct slot *slot)
{
	atomic_store_explicit(&slot->count, 0, memory_order_relaxed);
	atomic_store_explicit(&slot->kinds, 0, memory_order_relaxed);
}

void slot_begin(struct slot *slot, const struct connection *connection, uint32_t call)
{
	uint64_t began_ns = atomic_load_explicit(
			&connection->exchange.began_ns, memory_order_relaxed);

	atomic_store_explicit(&slot->generation, 0, memory_order_relaxed);
	strikes_clear(slot);
	atomic_store_explicit(&slot->flags, 0, memory_order_relaxed);
	atomic_store_explicit(&slot->call, call, memory_order_relaxed);
	atomic_store_explicit(&slot->attempt_error, 0, memory_order_relaxed);
	atomic_store_explicit(&slot->error, 0, memory_order_relaxed);
	atomic_store_explicit(&slot->rules, 0, memory_order_relaxed);
	atomic_store_explicit(&slot->attempt_ns, began_ns, memory_order_relaxed);
	atomic_store_explicit(&slot->call_ns, began_ns, memory_order_relaxed);
	atomic_store_explicit(&slot->attempt_due_ns, 0, memory_order_relaxed);
	atomic_store_explicit(&slot->answer_due_ns, 0, memory_order_relaxed);
	atomic_store_explicit(&slot->end_due_ns, 0, memory_order_relaxed);
	atomic_store_explicit(&slot->peer, 0, memory_order_relaxed);
	atomic_store_explicit(&slot->in_until_ns, 0, memory_order_relaxed);
	atomic_store_explicit(&slot->out_until_ns, 0, memory_order_relaxed);
	atomic_store_explicit(&slot->next.state, FATE_OPEN, memory_order_relaxed);
	atomic_store_explicit(&slot->unstamped_ns, 0, memory_order_relaxed);
	atomic_store_explicit(&slot->unsent, 0, memory_order_relaxed);
	/* release: who finds it valid finds it empty. */
	atomic_store_explicit(&slot->generation, generation_of(connection), memory_order_release);
}

struct strike *slot_room(struct slot *slot)
{
	uint32_t count = slot_count(slot);
	struct strike *strike;

	if (count == FAULT_TOGETHER_MAX)
		return NULL;
	strike = &slot->strikes[count];
	atomic_store_explicit(&strike->state, STRIKE_IDLE, memory_order_relaxed);
	atomic_store_explicit(&strike->value, 0, memory_order_relaxed);
	atomic_store_explicit(&strike->moved, 0, memory_order_relaxed);
	atomic_store_explicit(&strike->datagrams, 0, memory_order_relaxed);
	atomic_store_explicit(&strike->in.paid_ns, 0, memory_order_relaxed);
	atomic_store_explicit(&strike->out.paid_ns, 0, memory_order_relaxed);
	return strike;
}

/* A silence does where the kernel will not keep it. */
bool slot_kind_holds(enum fault_kind kind)
{
	return kind == FAULT_HANG || KINDS_HELD >> kind & 1;
}

void slot_add(struct slot *slot, const struct strike *strike)
{
	if (KINDS_HELD >> strike_fault(strike)->kind & 1)
		holds_expect();
	atomic_fetch_add_explicit(&slot->count, 1, memory_order_release);
}

struct strike *slot_find(struct slot *slot, uint32_t rule)
{
	uint32_t count = slot_count(slot);

	for (uint32_t i = 0; i < count; i++) {
		struct strike *strike = &slot->strikes[i];

		if (atomic_load_explicit(&strike->rule, memory_order_relaxed) == rule)
			return strike;
	}
	return NULL;
}

void slot_count_kinds(struct slot *slot)
{
	uint32_t count = slot_count(slot), kinds = 0;

	for (uint32_t i = 0; i < count; i++) {
		const struct strike *strike = &slot->strikes[i];

		if (strike_is(strike, STRIKE_ARMED) || strike_is(strike, STRIKE_ON))
			kinds |= 1u << strike_fault(strike)->kind;
	}
	atomic_store_explicit(&slot->kinds, kinds, memory_order_relaxed);
}

void slot_shut(const struct connection *connection, int how)
{
	struct slot *slot = slot_of(connection);

	if (slot && how != SHUT_WR && slot_is_valid(slot, connection))
		slot_set(slot, SLOT_SHUT);
}

/* The connection of a slot, where it is in use and has it. */
static bool is_in_use(uint32_t index, struct connection **ret)
{
	*ret = fd_table_at(index);
	return *ret && atomic_load_explicit(&(*ret)->references, memory_order_acquire) &&
	       slot_is_valid(&slots[index], *ret);
}

uint32_t slots_of_rule(uint32_t rule, uint32_t number)
{
	struct connection *connection;
	uint32_t count = 0;

	for (uint32_t i = 0; fd_table_at(i); i++) {
		const struct strike *strike =
				is_in_use(i, &connection) ? slot_find(&slots[i], rule) : NULL;

		if (strike && strike_number(strike) < number &&
				exchange_has(&connection->exchange,
						EXCHANGE_PENDING | EXCHANGE_ESTABLISHED))
			count++;
	}
	return count;
}

void slots_each(void (*each)(struct slot *slot))
{
	for (uint32_t i = 0; slots && fd_table_at(i); i++) {
		if (atomic_load_explicit(&slots[i].generation, memory_order_acquire))
			each(&slots[i]);
	}
}
