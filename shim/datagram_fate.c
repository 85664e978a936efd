/* SPDX-License-Identifier: MIT */
#include "shim/datagram_fate.h"

#include <errno.h>

#include "core/clock.h"
#include "shim/datagram_socket.h"
#include "shim/inject_unit.h"
#include "shim/socket_ask.h"

static enum fate_kind fate_by(enum fault_kind kind)
{
	switch (kind) {
	case FAULT_DROP:
		return FATE_LOST;
	case FAULT_DUP:
		return FATE_TWICE;
	case FAULT_ERRNO:
		return FATE_FAILS;
	default:
		return FATE_PASSES;
	}
}

/* All delays add up; of the others the first. */
static void meet(struct fate *fate, const struct inject_unit *unit, uint64_t now_ns)
{
	const struct fault *fault = &unit->rule->fault;
	enum fate_kind kind = fate_by(fault->kind);
	struct fault_choice choice = inject_unit_choose(unit, now_ns);

	if (choice.reason != FAULT_STRIKES)
		return;
	if (fault->kind == FAULT_LATENCY) {
		fate->delay_ns += inject_unit_strikes_delay(unit, choice.value, now_ns);
		return;
	}
	if (kind == FATE_PASSES || fate->kind != FATE_PASSES) {
		fault_record_suppressed(fault_rule_record(unit->rule), FAULT_IMPOSSIBLE);
		return;
	}
	if (!inject_unit_strikes(unit, choice.value, now_ns))
		return;
	fate->kind = kind;
	fate->error = fault->error;
}

/* Every datagram to or from an endpoint of a rule is a call of it. */
static void count_call(struct fate *fate, struct strike *strike, enum fault_direction direction,
		uint64_t now_ns)
{
	struct inject_unit unit = { .rule = strike_rule(strike) };

	if (!datagram_is_about(&unit.rule->fault, direction))
		return;
	unit.unit.connection = strike_number(strike);
	unit.unit.call = 1 + atomic_fetch_add_explicit(
			&strike->datagrams, 1, memory_order_relaxed);
	meet(fate, &unit, now_ns);
}

static struct fate judge(int fd, const struct sockaddr *address, socklen_t length,
		enum fault_direction direction)
{
	struct fate fate = { .kind = FATE_PASSES };
	uint32_t rules[FAULT_TOGETHER_MAX], count;
	uint64_t now_ns = clock_now_ns();
	struct slot *slot;

	count = fault_rules_match_peer(address, length, FAULT_UDP, now_ns, rules,
			FAULT_TOGETHER_MAX);
	slot = count ? datagram_track(fd) : NULL;
	for (uint32_t i = 0; slot && i < count; i++) {
		struct strike *strike = datagram_strike(slot, rules[i], now_ns);

		if (strike)
			count_call(&fate, strike, direction, now_ns);
	}
	return fate;
}

static struct fate judge_to_peer(int fd)
{
	struct fate fate = { .kind = FATE_PASSES };
	struct slot *slot = datagram_track(fd);
	uint32_t strikes = slot ? datagram_peer(slot, fd) & PEER_STRIKES : 0;
	uint64_t now_ns = strikes ? clock_now_ns() : 0;

	for (; strikes; strikes &= strikes - 1)
		count_call(&fate, &slot->strikes[__builtin_ctz(strikes)], FAULT_OUT, now_ns);
	return fate;
}

struct fate fate_of_sent(int fd, const struct sockaddr *address, socklen_t length)
{
	struct slot *slot = datagram_slot(fd);
	int error = slot && atomic_load_explicit(&slot->unsent, memory_order_relaxed)
			? atomic_exchange_explicit(&slot->unsent, 0, memory_order_relaxed)
			: 0;

	if (error)
		return (struct fate){ .kind = FATE_FAILS, .error = error };
	return address ? judge(fd, address, length, FAULT_OUT) : judge_to_peer(fd);
}

void fate_put_off(int fd, int error)
{
	struct slot *slot = datagram_slot(fd);

	if (slot)
		atomic_store_explicit(&slot->unsent, error, memory_order_relaxed);
}

/* The kernel begins to stamp what comes in a moment: all before that came as one. */
static uint64_t came_unstamped_ns(struct slot *slot, uint64_t now_ns)
{
	uint64_t first_ns = 0;

	atomic_compare_exchange_strong_explicit(&slot->unstamped_ns, &first_ns, now_ns,
			memory_order_relaxed, memory_order_relaxed);
	return first_ns ? first_ns : now_ns;
}

/* Its time began when it came, be it that others were held before it. */
static uint64_t due_ns(int fd, struct slot *slot, const struct fate *fate)
{
	uint64_t age_ns = fate->delay_ns ? socket_datagram_age_ns(fd) : 0, now_ns;

	if (!fate->delay_ns)
		return 0;
	/* After its age was asked for: this thread may have stood still since it was woken. */
	now_ns = clock_now_ns();
	if (age_ns == SOCKET_UNSTAMPED)
		return came_unstamped_ns(slot, now_ns) + fate->delay_ns;
	return (age_ns < now_ns ? now_ns - age_ns : now_ns) + fate->delay_ns;
}

#define KIND_OF(state) ((enum fate_kind)((state) & ((1u << FATE_BITS) - 1)))
#define BUSY_NS 100000000ull
#define LOOK_AGAIN_NS 1000000ull

static uint32_t state_of(const struct fate_kept *kept)
{
	return atomic_load_explicit(&kept->state, memory_order_acquire);
}

static uint32_t next_state(uint32_t state, enum fate_kind kind)
{
	return (((state >> FATE_BITS) + 1) << FATE_BITS) | (uint32_t)kind;
}

/* Somebody else may do nothing with it now. 0: somebody else is at it. */
static uint32_t claim(struct fate_kept *kept, uint32_t state, uint64_t now_ns)
{
	uint32_t own = next_state(state, FATE_BUSY);

	if (KIND_OF(state) == FATE_BUSY && now_ns < atomic_load_explicit(&kept->busy_until_ns,
							    memory_order_relaxed))
		return 0;
	/* Before: who finds it busy finds for how long. */
	atomic_store_explicit(&kept->busy_until_ns, now_ns + BUSY_NS, memory_order_relaxed);
	return atomic_compare_exchange_strong_explicit(&kept->state, &state, own,
			       memory_order_acq_rel, memory_order_relaxed) ? own : 0;
}

/* Nobody else's meanwhile, unless it took too long. */
static void let_go(struct fate_kept *kept, uint32_t own, enum fate_kind kind)
{
	atomic_compare_exchange_strong_explicit(&kept->state, &own, next_state(own, kind),
			memory_order_acq_rel, memory_order_relaxed);
}

static void keep(struct fate_kept *kept, uint32_t own, const struct fate *fate, uint64_t until_ns)
{
	atomic_store_explicit(&kept->error, fate->error, memory_order_relaxed);
	atomic_store_explicit(&kept->due_ns, until_ns, memory_order_relaxed);
	let_go(kept, own, fate->kind);
}

/* An error that the socket had was taken by asking: it is the program's, and goes on to it. */
static struct fate decide(int fd)
{
	struct sockaddr_storage sender;
	long length = socket_next_sender(fd, &sender);

	if (length == -EAGAIN)
		return (struct fate){ .kind = FATE_OPEN };
	if (length < 0)
		return (struct fate){ .kind = FATE_FAILS, .error = (int)-length };
	return judge(fd, (const struct sockaddr *)&sender, (socklen_t)length, FAULT_IN);
}

/* Those that are lost are so before anybody is told of them: a call that waits for them would wait
 * for ever, and to libuv's programs readiness with nothing there is the end of the socket. False:
 * there is none, and *ret says why. */
static bool look(int fd, struct slot *slot, uint64_t now_ns, struct fate *ret)
{
	struct fate_kept *kept = &slot->next;
	uint32_t own = claim(kept, state_of(kept), now_ns);
	enum fate_kind nothing = FATE_OPEN;

	if (!own) {
		*ret = (struct fate){ .kind = FATE_BUSY };
		return false;
	}
	while ((*ret = decide(fd)).kind == FATE_LOST) {
		socket_drop_next(fd);
		nothing = FATE_LOST;
	}
	if (ret->kind != FATE_OPEN) {
		keep(kept, own, ret, due_ns(fd, slot, ret));
		return true;
	}
	let_go(kept, own, FATE_OPEN);
	ret->kind = nothing;
	return false;
}

/* Decided once: who waits for it asks often. */
struct fate fate_of_next(int fd, uint64_t now_ns, uint64_t *ret_due_ns)
{
	struct slot *slot = datagram_slot(fd);
	struct fate fate = { .kind = FATE_PASSES };
	uint32_t state;

	*ret_due_ns = 0;
	if (!slot)
		return fate;
	state = state_of(&slot->next);
	if (KIND_OF(state) == FATE_OPEN || KIND_OF(state) == FATE_BUSY) {
		if (!look(fd, slot, now_ns, &fate)) {
			*ret_due_ns = fate.kind == FATE_BUSY ? now_ns + LOOK_AGAIN_NS : 0;
			return fate;
		}
		state = state_of(&slot->next);
	}
	fate.kind = KIND_OF(state);
	fate.turn = state;
	fate.error = atomic_load_explicit(&slot->next.error, memory_order_relaxed);
	*ret_due_ns = fate_is_held(fd, now_ns);
	return fate;
}

uint64_t fate_is_held(int fd, uint64_t now_ns)
{
	const struct slot *slot = datagram_slot(fd);
	enum fate_kind kind = slot ? KIND_OF(state_of(&slot->next)) : FATE_OPEN;
	uint64_t until_ns;

	if (kind == FATE_OPEN || kind == FATE_BUSY)
		return 0;
	until_ns = atomic_load_explicit(&slot->next.due_ns, memory_order_relaxed);
	return until_ns > now_ns ? until_ns : 0;
}

bool fate_is_failure(int fd)
{
	const struct slot *slot = datagram_slot(fd);

	return slot && KIND_OF(state_of(&slot->next)) == FATE_FAILS;
}

bool fate_take(int fd, struct fate *fate, uint64_t now_ns)
{
	struct slot *slot = datagram_slot(fd);

	if (!slot || KIND_OF(fate->turn) == FATE_OPEN)
		return true;
	fate->turn = claim(&slot->next, fate->turn, now_ns);
	return fate->turn;
}

void fate_taken(int fd, const struct fate *fate)
{
	static const struct fate passes = { .kind = FATE_PASSES };
	struct slot *slot = datagram_slot(fd);

	if (!slot || KIND_OF(fate->turn) != FATE_BUSY)
		return;
	if (fate->kind == FATE_TWICE || fate->kind == FATE_FAILS)
		keep(&slot->next, fate->turn, &passes, 0);
	else
		let_go(&slot->next, fate->turn, FATE_OPEN);
}
