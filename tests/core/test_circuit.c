/* SPDX-License-Identifier: MIT */
#include "core/circuit.h"

#include <criterion/criterion.h>
#include <pthread.h>
#include <stddef.h>

static struct circuit circuit;

static const struct circuit_policy plain = {
	.sleep_ms = 5000, .probes = 1, .errors_ratio = 500000, .slow_ratio = UINT32_MAX
};
static const struct circuit_policy leased = {
	.sleep_ms = 5000, .lease_ms = 5000, .probes = 1, .slow_ratio = UINT32_MAX
};

static struct permit acquire(const struct circuit_policy *policy, uint32_t now_ms)
{
	struct permit permit;

	circuit_acquire(&circuit, policy, now_ms, 0, &permit);
	return permit;
}

static struct permit probe(const struct circuit_policy *policy, uint32_t now_ms)
{
	struct permit permit = acquire(policy, now_ms);

	cr_assert_eq(permit.kind, PERMIT_PROBE);
	return permit;
}

static void assert_refused(const struct circuit_policy *policy, uint32_t now_ms)
{
	cr_assert_not(policy->probes_ratio == 0 && circuit_admits(&circuit, policy, now_ms));
	cr_assert_eq(acquire(policy, now_ms).kind, PERMIT_NONE);
}

static struct probe_settlement settle(const struct circuit_policy *policy, struct permit permit,
		enum probe_end end, uint32_t now_ms)
{
	return circuit_settle(&circuit, policy, permit, end, false, now_ms);
}

static void assert_state(enum circuit_state state, uint32_t epoch)
{
	struct circuit_view view = circuit_read(&circuit);

	cr_assert_eq(view.state, state, "state %s", circuit_state_name(view.state));
	cr_assert_eq(view.epoch, epoch, "epoch %u, not %u", view.epoch, epoch);
}

Test(circuit, zeroed_memory_is_a_closed_circuit)
{
	assert_state(CIRCUIT_CLOSED, 0);
	cr_assert_eq(acquire(&plain, 77).kind, PERMIT_NORMAL);
	assert_state(CIRCUIT_CLOSED, 0);
}

Test(circuit, state_three_reads_as_closed)
{
	atomic_store_explicit(&circuit.word, UINT64_MAX, memory_order_relaxed);
	assert_state(CIRCUIT_CLOSED, 16383);
	cr_assert_eq(circuit_trip(&circuit, 16383, 5), TRANSITION_TRIPPED);
	assert_state(CIRCUIT_OPEN, 16383);
}

Test(circuit, states_have_names)
{
	cr_assert_str_eq(circuit_state_name(CIRCUIT_CLOSED), "closed");
	cr_assert_str_eq(circuit_state_name(CIRCUIT_OPEN), "open");
	cr_assert_str_eq(circuit_state_name(CIRCUIT_HALF_OPEN), "half_open");
	cr_assert_str_eq(circuit_state_name((enum circuit_state)3), "closed");
}

Test(circuit, it_trips_once_and_only_in_its_epoch)
{
	cr_assert_eq(circuit_trip(&circuit, 1, 100), TRANSITION_NONE);
	cr_assert_eq(circuit_trip(&circuit, 0, 100), TRANSITION_TRIPPED);
	cr_assert_eq(circuit_trip(&circuit, 0, 200), TRANSITION_NONE);
	assert_state(CIRCUIT_OPEN, 0);
	cr_assert_eq(circuit_read(&circuit).time_ms, 100);
}

Test(circuit, it_sleeps_to_the_last_millisecond)
{
	circuit_trip(&circuit, 0, 100);
	assert_refused(&plain, 100);
	assert_refused(&plain, 5100);
	assert_state(CIRCUIT_OPEN, 0);
	cr_assert(circuit_admits(&circuit, &plain, 5101));
	probe(&plain, 5101);
	assert_state(CIRCUIT_HALF_OPEN, 0);
	assert_refused(&plain, 5101);
}

Test(circuit, a_changed_sleep_acts_at_once)
{
	struct circuit_policy brief = plain;

	brief.sleep_ms = 10;
	circuit_trip(&circuit, 0, 100);
	assert_refused(&plain, 111);
	probe(&brief, 111);
}

Test(circuit, the_millisecond_clock_may_wrap)
{
	circuit_trip(&circuit, 0, UINT32_MAX - 1000);
	assert_refused(&plain, 3999);
	probe(&plain, 4000);
}

Test(circuit, a_clock_slightly_behind_is_no_time)
{
	cr_assert_eq(circuit_elapsed_ms(1000, 999), 0);
	cr_assert_eq(circuit_elapsed_ms(61000, 1001), 0);
	cr_assert_eq(circuit_elapsed_ms(5, 5), 0);
	cr_assert_eq(circuit_elapsed_ms(UINT32_MAX, 4), 5);
	circuit_trip(&circuit, 0, 1000);
	assert_refused(&plain, 900);
}

Test(circuit, an_open_circuit_from_before_a_reboot_heals)
{
	circuit_trip(&circuit, 0, 900000000);
	probe(&plain, 20000);
	assert_state(CIRCUIT_HALF_OPEN, 0);
}

Test(circuit, a_probe_success_closes_in_a_new_epoch)
{
	struct permit permit;

	circuit_trip(&circuit, 0, 0);
	permit = probe(&plain, 5001);
	cr_assert_eq(settle(&plain, permit, PROBE_OK, 5002).transition, TRANSITION_CLOSED);
	assert_state(CIRCUIT_CLOSED, 1);
}

Test(circuit, a_probe_failure_reopens_with_a_new_sleep)
{
	struct permit permit;

	circuit_trip(&circuit, 0, 0);
	permit = probe(&plain, 5001);
	cr_assert_eq(settle(&plain, permit, PROBE_BAD, 6000).transition, TRANSITION_REOPENED);
	assert_state(CIRCUIT_OPEN, 1);
	assert_refused(&plain, 11000);
	probe(&plain, 11001);
}

Test(circuit, a_probe_of_an_earlier_epoch_is_late)
{
	struct permit first, second;

	circuit_trip(&circuit, 0, 0);
	first = probe(&plain, 5001);
	settle(&plain, first, PROBE_BAD, 5002);
	second = probe(&plain, 10003);
	cr_assert(settle(&plain, first, PROBE_OK, 10004).is_late);
	assert_state(CIRCUIT_HALF_OPEN, 1);
	cr_assert_not(settle(&plain, second, PROBE_OK, 10005).is_late);
	assert_state(CIRCUIT_CLOSED, 2);
}

Test(circuit, a_lost_probe_without_lease_keeps_refusing)
{
	circuit_trip(&circuit, 0, 0);
	probe(&plain, 5001);
	assert_refused(&plain, 86400000);
}

Test(circuit, a_lost_probe_is_replaced_when_its_lease_ends)
{
	circuit_trip(&circuit, 0, 0);
	probe(&leased, 5001);
	assert_refused(&leased, 10001);
	probe(&leased, 10002);
	assert_refused(&leased, 15002);
	probe(&leased, 15003);
	assert_state(CIRCUIT_HALF_OPEN, 0);
}

Test(circuit, a_superseded_probe_may_still_close_but_not_reopen)
{
	struct permit first, second;

	circuit_trip(&circuit, 0, 0);
	first = probe(&leased, 5001);
	second = probe(&leased, 10002);
	cr_assert(settle(&leased, first, PROBE_BAD, 10003).is_late);
	cr_assert(settle(&leased, first, PROBE_NEUTRAL, 10003).is_late);
	assert_state(CIRCUIT_HALF_OPEN, 0);
	cr_assert_eq(settle(&leased, first, PROBE_OK, 10004).transition, TRANSITION_CLOSED);
	cr_assert(settle(&leased, second, PROBE_BAD, 10005).is_late);
	assert_state(CIRCUIT_CLOSED, 1);
}

Test(circuit, a_probe_past_its_lease_still_counts_while_nobody_replaced_it)
{
	struct permit permit;

	circuit_trip(&circuit, 0, 0);
	permit = probe(&leased, 5001);
	cr_assert_eq(settle(&leased, permit, PROBE_BAD, 80000).transition, TRANSITION_REOPENED);
}

Test(circuit, an_unused_probe_gives_its_slot_back)
{
	struct permit permit;

	circuit_trip(&circuit, 0, 0);
	permit = probe(&plain, 5001);
	cr_assert_eq(settle(&plain, permit, PROBE_UNUSED, 5002).transition, TRANSITION_NONE);
	assert_state(CIRCUIT_HALF_OPEN, 0);
	probe(&plain, 5003);
	assert_refused(&plain, 5003);
}

Test(circuit, an_unused_superseded_probe_gives_nothing_back)
{
	struct permit first;

	circuit_trip(&circuit, 0, 0);
	first = probe(&leased, 5001);
	probe(&leased, 10002);
	cr_assert_not(settle(&leased, first, PROBE_UNUSED, 10003).is_late);
	assert_refused(&leased, 10004);
}

Test(circuit, a_neutral_probe_reopens_or_frees_its_slot)
{
	struct circuit_policy releasing = plain;

	releasing.releases_neutral = true;
	circuit_trip(&circuit, 0, 0);
	settle(&releasing, probe(&releasing, 5001), PROBE_NEUTRAL, 5002);
	assert_state(CIRCUIT_HALF_OPEN, 0);
	cr_assert_eq(settle(&plain, probe(&plain, 5003), PROBE_NEUTRAL, 5004).transition,
			TRANSITION_REOPENED);
	assert_state(CIRCUIT_OPEN, 1);
}

Test(circuit, all_of_several_probes_must_succeed)
{
	struct circuit_policy three = plain;
	struct permit permits[3];

	three.probes = 3;
	circuit_trip(&circuit, 0, 0);
	for (int i = 0; i < 3; i++)
		permits[i] = probe(&three, 5001);
	assert_refused(&three, 5001);
	settle(&three, permits[0], PROBE_OK, 5002);
	settle(&three, permits[1], PROBE_OK, 5002);
	assert_state(CIRCUIT_HALF_OPEN, 0);
	assert_refused(&three, 5003);
	cr_assert_eq(settle(&three, permits[2], PROBE_OK, 5004).transition, TRANSITION_CLOSED);
}

Test(circuit, a_lost_one_of_several_probes_is_replaced)
{
	struct circuit_policy two = leased;
	struct permit kept;

	two.probes = 2;
	circuit_trip(&circuit, 0, 0);
	kept = probe(&two, 5001);
	probe(&two, 5002);
	settle(&two, kept, PROBE_OK, 5003);
	assert_refused(&two, 10002);
	settle(&two, probe(&two, 10003), PROBE_OK, 10004);
	assert_state(CIRCUIT_CLOSED, 1);
}

Test(circuit, probes_judged_by_rate)
{
	static const struct {
		const char *ends; /* + good, s good but slow, - bad */
		enum circuit_state state;
	} table[] = {
		{ "++++", CIRCUIT_CLOSED },
		{ "-+++", CIRCUIT_CLOSED },
		{ "--++", CIRCUIT_OPEN },
		{ "--+", CIRCUIT_HALF_OPEN },
		{ "ss++", CIRCUIT_CLOSED },
		{ "sss+", CIRCUIT_OPEN },
	};
	struct circuit_policy rate = plain;

	rate.probes = 4;
	rate.judges_by_rate = true;
	rate.slow_ratio = 750000;
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		circuit_set(&circuit, CIRCUIT_HALF_OPEN, 0);
		for (const char *end = table[i].ends; *end != '\0'; end++)
			circuit_settle(&circuit, &rate, probe(&rate, 1),
					*end == '-' ? PROBE_BAD : PROBE_OK, *end == 's', 2);
		cr_assert_eq(circuit_read(&circuit).state, table[i].state, "%s", table[i].ends);
		circuit_set(&circuit, CIRCUIT_CLOSED, 3);
	}
}

Test(circuit, a_share_of_calls_probes_at_random)
{
	struct circuit_policy share = plain;
	struct permit permit;
	uint64_t random = 0;
	int admitted = 0;

	share.probes_ratio = 200000;
	circuit_trip(&circuit, 0, 0);
	for (int i = 0; i < 10000; i++) {
		circuit_acquire(&circuit, &share, 5001, random, &permit);
		admitted += permit.kind == PERMIT_PROBE;
		random += UINT64_MAX / 10000;
	}
	cr_assert_leq(abs(admitted - 2000), 1);
	circuit_acquire(&circuit, &share, 5001, 0, &permit);
	cr_assert_eq(settle(&share, permit, PROBE_BAD, 5002).transition, TRANSITION_NONE);
	cr_assert_eq(settle(&share, permit, PROBE_NEUTRAL, 5002).transition, TRANSITION_NONE);
	assert_state(CIRCUIT_HALF_OPEN, 0);
	cr_assert_eq(settle(&share, permit, PROBE_OK, 5003).transition, TRANSITION_CLOSED);
}

Test(circuit, the_call_that_ends_the_sleep_may_be_drawn_out)
{
	struct circuit_policy share = plain;
	struct permit permit;

	share.probes_ratio = 200000;
	circuit_trip(&circuit, 0, 0);
	cr_assert_eq(circuit_acquire(&circuit, &share, 5001, UINT64_MAX, &permit),
			TRANSITION_HALF_OPENED);
	cr_assert_eq(permit.kind, PERMIT_NONE);
	assert_state(CIRCUIT_HALF_OPEN, 0);
}

Test(circuit, the_timer_opens_half_with_all_slots_free)
{
	circuit_trip(&circuit, 0, 0);
	cr_assert_eq(circuit_wake(&circuit, &plain, 5000), TRANSITION_NONE);
	cr_assert_eq(circuit_wake(&circuit, &plain, 5001), TRANSITION_HALF_OPENED);
	cr_assert_eq(circuit_wake(&circuit, &plain, 5002), TRANSITION_NONE);
	probe(&plain, 5003);
	assert_refused(&plain, 5003);
}

Test(circuit, backoff_grows_with_failed_probes_up_to_its_cap)
{
	static const uint32_t sleeps_ms[] = { 5000, 10000, 15000, 15000 };
	struct circuit_policy growing = plain;
	uint32_t now_ms = 0;

	growing.backoff_factor_thousandths = 2000;
	growing.backoff_max_ms = 15000;
	for (int turn = 0; turn < 2; turn++) {
		circuit_trip(&circuit, circuit_read(&circuit).epoch, now_ms);
		for (size_t i = 0; i < 4; i++) {
			cr_assert_eq(circuit_sleep_ms(&circuit, &growing,
				circuit_read(&circuit).epoch), sleeps_ms[i]);
			assert_refused(&growing, now_ms + sleeps_ms[i]);
			now_ms += sleeps_ms[i] + 1;
			settle(&growing, probe(&growing, now_ms), PROBE_BAD, now_ms);
		}
		/* A close resets it. */
		now_ms += 15001;
		settle(&growing, probe(&growing, now_ms), PROBE_OK, now_ms);
	}
}

Test(circuit, backoff_takes_any_factor_and_cap)
{
	static const struct {
		uint32_t factor, cap_ms, failures, want_ms;
	} table[] = {
		{ 0, 60000, 9, 1000 },
		{ 1000, 60000, 9, 1000 },
		{ 1500, 60000, 2, 2250 },
		{ 2000, 500, 9, 1000 },
		{ 2000, 60000, 16000, 60000 },
		{ 1001, 60000, 16000, 60000 },
		{ UINT32_MAX, 86400000, 3, 86400000 },
	};

	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		struct circuit_policy policy = {
			.sleep_ms = 1000,
			.backoff_factor_thousandths = table[i].factor,
			.backoff_max_ms = table[i].cap_ms,
		};

		cr_assert_eq(circuit_sleep_ms(&circuit, &policy, table[i].failures),
				table[i].want_ms);
	}
}

Test(circuit, a_renewed_lease_ends_when_it_was_asked_to)
{
	struct permit permit;

	circuit_trip(&circuit, 0, 0);
	permit = probe(&leased, 6000);
	permit = circuit_renew(&circuit, &leased, permit, 1000, 6500);
	assert_refused(&leased, 7500);
	permit = circuit_renew(&circuit, &leased, permit, 0, 7400);
	assert_refused(&leased, 12400);
	probe(&leased, 12401);
	/* No longer the newest: it has nothing to renew, and its failure is late. */
	cr_assert_eq(circuit_renew(&circuit, &leased, permit, 0, 12402).issued_ms,
			permit.issued_ms);
	cr_assert(settle(&leased, permit, PROBE_BAD, 12403).is_late);
}

Test(circuit, a_shrunk_lease_supersedes_as_soon_as_it_ends)
{
	struct permit permit;

	circuit_trip(&circuit, 0, 0);
	permit = circuit_renew(&circuit, &leased, probe(&leased, 6000), 1000, 6000);
	probe(&leased, 7001);
	cr_assert(settle(&leased, permit, PROBE_BAD, 7002).is_late);
	assert_state(CIRCUIT_HALF_OPEN, 0);
}

Test(circuit, a_shrunk_lease_makes_no_older_probe_late)
{
	struct circuit_policy day = leased;
	struct permit older;

	day.lease_ms = 86400000;
	day.probes = 2;
	circuit_trip(&circuit, 0, 100000000);
	older = probe(&day, 100006000);
	circuit_renew(&circuit, &day, probe(&day, 100006001), 1000, 100006002);
	cr_assert_not(settle(&day, older, PROBE_BAD, 100006003).is_late);
}

Test(circuit, only_a_leased_probe_can_be_renewed)
{
	struct permit normal = acquire(&leased, 5), unleased;

	cr_assert_eq(circuit_renew(&circuit, &leased, normal, 1000, 9).issued_ms, normal.issued_ms);
	circuit_trip(&circuit, 0, 0);
	unleased = probe(&plain, 5001);
	circuit_renew(&circuit, &plain, unleased, 1000, 9000);
	cr_assert_eq(circuit_read(&circuit).time_ms, 5001);
}

Test(circuit, a_lagging_caller_cannot_shorten_a_lease)
{
	struct circuit_policy two = leased;

	two.probes = 2;
	circuit_trip(&circuit, 0, 0);
	probe(&two, 6000);
	cr_assert_eq(probe(&two, 5900).issued_ms, 6000);
	assert_refused(&two, 11000);
}

Test(circuit, by_hand_from_every_state)
{
	static const enum circuit_state states[] = {
		CIRCUIT_CLOSED, CIRCUIT_OPEN, CIRCUIT_HALF_OPEN
	};

	for (size_t from = 0; from < 3; from++) {
		for (size_t to = 0; to < 3; to++) {
			uint32_t epoch;

			circuit_set(&circuit, states[from], 0);
			epoch = circuit_read(&circuit).epoch;
			cr_assert_eq(circuit_set(&circuit, states[to], 5), states[from]);
			cr_assert_eq(circuit_read(&circuit).state, states[to]);
			cr_assert_eq(circuit_read(&circuit).epoch - epoch,
					states[to] == CIRCUIT_CLOSED ||
							states[from] == CIRCUIT_HALF_OPEN);
		}
	}
}

Test(circuit, a_trip_by_hand_starts_a_new_sleep)
{
	circuit_trip(&circuit, 0, 0);
	circuit_set(&circuit, CIRCUIT_OPEN, 4000);
	assert_refused(&plain, 9000);
	probe(&plain, 9001);
}

Test(circuit, epochs_wrap)
{
	for (uint32_t i = 0; i < 16384 * 2 + 5; i++) {
		struct permit permit;

		circuit_trip(&circuit, i & 16383, i * 10);
		permit = acquire(&(struct circuit_policy){ .probes = 1 }, i * 10 + 1);
		cr_assert_eq(permit.kind, PERMIT_PROBE);
		settle(&plain, permit, PROBE_OK, i * 10 + 2);
	}
	assert_state(CIRCUIT_CLOSED, 5);
}

static pthread_barrier_t barrier;

static void *trip(void *argument)
{
	(void)argument;
	pthread_barrier_wait(&barrier);
	return (void *)(uintptr_t)circuit_trip(&circuit, 0, 1000);
}

static void *ask(void *argument)
{
	struct permit permit;

	(void)argument;
	pthread_barrier_wait(&barrier);
	circuit_acquire(&circuit, &plain, 6001, 0, &permit);
	return (void *)(uintptr_t)(permit.kind == PERMIT_PROBE);
}

static uintptr_t sum_of_threads(void *(*function)(void *))
{
	pthread_t threads[16];
	uintptr_t sum = 0;

	pthread_barrier_init(&barrier, NULL, 16);
	for (int i = 0; i < 16; i++)
		cr_assert_eq(pthread_create(&threads[i], NULL, function, NULL), 0);
	for (int i = 0; i < 16; i++) {
		void *result;

		pthread_join(threads[i], &result);
		sum += (uintptr_t)result;
	}
	pthread_barrier_destroy(&barrier);
	return sum;
}

Test(circuit, one_of_many_threads_sees_the_trip)
{
	for (int round = 0; round < 50; round++) {
		circuit = (struct circuit){ 0 };
		cr_assert_eq(sum_of_threads(trip), TRANSITION_TRIPPED);
		cr_assert_eq(sum_of_threads(ask), 1);
	}
}

Test(circuit, any_word_is_legal_and_leads_back_to_closed)
{
	uint64_t state = 88172645463325252u;

	for (int round = 0; round < 200000; round++) {
		uint32_t now_ms;
		struct permit permit;

		state ^= state << 13;
		state ^= state >> 7;
		state ^= state << 17;
		now_ms = (uint32_t)(state * 0x9e3779b97f4a7c15u >> 32);
		atomic_store_explicit(&circuit.word, state, memory_order_relaxed);
		atomic_store_explicit(&circuit.tripped_epoch, now_ms, memory_order_relaxed);
		circuit_renew(&circuit, &leased, (struct permit){.kind = PERMIT_PROBE}, 9, now_ms);
		circuit_trip(&circuit, circuit_read(&circuit).epoch, now_ms);
		now_ms += 70000;
		permit = acquire(&leased, now_ms);
		if (permit.kind == PERMIT_NONE)
			permit = acquire(&leased, now_ms + 5001);
		cr_assert_eq(permit.kind, PERMIT_PROBE);
		cr_assert_eq(settle(&leased, permit, PROBE_OK, now_ms).transition,
				TRANSITION_CLOSED);
	}
}
