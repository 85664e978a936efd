/* SPDX-License-Identifier: MIT */
/*
 * The window against a list of all events: exact over idle gaps of any length and over any pattern
 * of traffic; and threads that record across bucket edges and gaps at once lose and invent nothing.
 * stress_core_window [GAPS [ROUNDS]]
 */
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "core/window.h"

#define SECOND UINT64_C(1000000000)
#define MAX_LATE_NS (59 * SECOND)
#define HISTORY 4096
#define THREADS 4
#define EVENTS_PER_THREAD 40

static uint64_t random_state = 88172645463325252u;

static uint64_t next_random(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

static uint64_t below(uint64_t limit)
{
	return next_random(&random_state) % limit;
}

static void fail(const char *what, uint64_t round, struct window_sum want, struct window_sum got)
{
	fprintf(stderr, "stress_core_window: %s: round %" PRIu64 ": expected %" PRIu64 "/%" PRIu64
			", got %" PRIu64 "/%" PRIu64 "\n", what, round, want.errors, want.total,
			got.errors, got.total);
	exit(1);
}

/* All that happened, in a ring. Ticks in exact rationals, as the manual has them. */
struct model {
	struct window_shape shape;
	uint64_t newest_ns;
	uint64_t count;
	struct {
		uint64_t time_ns;
		uint32_t epoch;
		bool error;
	} events[HISTORY];
};

static uint64_t tick_of(const struct model *model, uint64_t now_ns)
{
	return (uint64_t)((unsigned __int128)now_ns * model->shape.buckets / model->shape.span_ns);
}

static void model_record(struct model *model, uint32_t epoch, uint64_t now_ns, bool error)
{
	uint64_t newest = tick_of(model, model->newest_ns), tick = tick_of(model, now_ns);

	if (model->count > 0 && newest >= tick + model->shape.buckets)
		return;
	if (model->count == 0 || now_ns > model->newest_ns)
		model->newest_ns = now_ns;
	model->events[model->count % HISTORY].time_ns = now_ns;
	model->events[model->count % HISTORY].epoch = epoch;
	model->events[model->count % HISTORY].error = error;
	model->count++;
}

static struct window_sum model_sum(const struct model *model, uint32_t epoch, uint64_t now_ns)
{
	uint64_t last = tick_of(model, now_ns);
	uint64_t stored = model->count < HISTORY ? model->count : HISTORY;
	struct window_sum sum = { 0 };

	for (uint64_t i = 0; i < stored; i++) {
		uint64_t tick = tick_of(model, model->events[i].time_ns);

		if (model->events[i].epoch != epoch || tick > last ||
				tick + model->shape.buckets <= last)
			continue;
		sum.total++;
		sum.errors += model->events[i].error;
	}
	return sum;
}

/* Gaps that try to meet an eight-bit tick again, and ordinary ones. */
static uint64_t hostile_gap(const struct window_shape *shape)
{
	uint64_t bucket_ns = shape->span_ns / shape->buckets;

	switch (below(8)) {
	case 0:
		return 0;
	case 1:
		return below(bucket_ns + 1);
	case 2:
		return shape->span_ns + below(3) * bucket_ns - bucket_ns;
	case 3:
		return below(shape->span_ns * 3);
	case 4:
		return (256 * (1 + below(20)) + below(5) - 2) * bucket_ns;
	case 5:
		return (256 * shape->buckets * (1 + below(3)) + below(5) - 2) * bucket_ns;
	case 6:
		return below(1000) * bucket_ns;
	default:
		return bucket_ns * (1 + below(shape->buckets));
	}
}

static struct window_shape some_shape(void)
{
	static const uint64_t spans_ns[] = {
		10 * SECOND, SECOND, 60 * SECOND, 64000000, 1000003, 7 * SECOND, 3600 * SECOND
	};
	static const uint32_t buckets[] = { 10, 1, 64, 7, 13, 2, 60 };

	return (struct window_shape){
		.span_ns = spans_ns[below(sizeof(spans_ns) / sizeof(spans_ns[0]))],
		.buckets = buckets[below(sizeof(buckets) / sizeof(buckets[0]))],
	};
}

static void compare_with_model(uint64_t gaps)
{
	static struct model model;
	static struct window window;
	uint64_t now_ns = 0;
	uint32_t epoch = 0;

	for (uint64_t i = 0; i < gaps; i++) {
		struct window_sum want, got;
		uint64_t burst = 1 + below(3);

		if (i % 2000 == 0) {
			model = (struct model){ .shape = some_shape() };
			window = (struct window){ 0 };
			now_ns = below(1 << 20) * SECOND;
			epoch = (uint32_t)below(16384);
		}
		now_ns += hostile_gap(&model.shape);
		if (below(20) == 0)
			epoch = (epoch + 1) % 16384;
		for (uint64_t n = 0; n < burst; n++) {
			uint64_t late_ns = below(4) == 0 ? below(model.shape.span_ns / 4) : 0;
			bool error = below(2) == 0;

			/* A minute would mean another boot. */
			late_ns = late_ns < MAX_LATE_NS ? late_ns : MAX_LATE_NS;
			late_ns = late_ns < now_ns ? late_ns : now_ns;
			window_record(&window, &model.shape, epoch, now_ns - late_ns, error);
			model_record(&model, epoch, now_ns - late_ns, error);
		}
		want = model_sum(&model, epoch, now_ns);
		got = window_sum(&window, &model.shape, epoch, now_ns);
		if (want.total != got.total || want.errors != got.errors)
			fail("against the model", i, want, got);
	}
}

/* What each thread is told to do in a round. */
struct round {
	const struct window_shape *shape;
	struct window *window;
	pthread_barrier_t *start, *end;
	uint64_t base_ns;
	uint64_t seed;
	uint64_t rounds;
	uint64_t errors;
};

static void *record_rounds(void *argument)
{
	struct round *round = argument;

	for (uint64_t i = 0; i < round->rounds; i++) {
		pthread_barrier_wait(round->start);
		round->errors = 0;
		for (int n = 0; n < EVENTS_PER_THREAD; n++) {
			uint64_t drawn = next_random(&round->seed);
			bool error = drawn % 2 == 0;

			/* Time runs forward through half a window, not quite in order. */
			window_record(round->window, round->shape, 7,
					round->base_ns + round->shape->span_ns / 2 * (uint64_t)n /
							EVENTS_PER_THREAD +
					drawn % (round->shape->span_ns / 20), error);
			round->errors += error;
		}
		pthread_barrier_wait(round->end);
	}
	return NULL;
}

static void race(const struct window_shape *shape, uint64_t rounds)
{
	static struct window window;
	struct round each[THREADS];
	pthread_t threads[THREADS];
	pthread_barrier_t start, end;
	uint64_t base_ns = 1000 * SECOND;

	pthread_barrier_init(&start, NULL, THREADS + 1);
	pthread_barrier_init(&end, NULL, THREADS + 1);
	for (int i = 0; i < THREADS; i++) {
		each[i] = (struct round){
			.shape = shape, .window = &window, .start = &start, .end = &end,
			.seed = 77 + (uint64_t)i, .rounds = rounds,
		};
		if (pthread_create(&threads[i], NULL, record_rounds, &each[i]) != 0)
			exit(2);
	}
	for (uint64_t i = 0; i < rounds; i++) {
		struct window_sum want = { .total = THREADS * EVENTS_PER_THREAD }, got;

		base_ns += shape->span_ns * 2 + below(4) * 256 * (shape->span_ns / 10);
		for (int n = 0; n < THREADS; n++)
			each[n].base_ns = base_ns;
		pthread_barrier_wait(&start);
		pthread_barrier_wait(&end);
		for (int n = 0; n < THREADS; n++)
			want.errors += each[n].errors;
		if (shape->calls != 0)
			want.total = shape->calls;
		got = window_sum(&window, shape, 7, base_ns + shape->span_ns * 6 / 10);
		if (want.total != got.total || (shape->calls == 0 && want.errors != got.errors))
			fail(shape->calls != 0 ? "threads, calls" : "threads, time", i, want, got);
	}
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	pthread_barrier_destroy(&start);
	pthread_barrier_destroy(&end);
}

int main(int argc, char **argv)
{
	const struct window_shape time = { .span_ns = 10 * SECOND, .buckets = 10 };
	const struct window_shape calls = { .span_ns = SECOND, .calls = 100 };
	uint64_t gaps = argc > 1 ? strtoull(argv[1], NULL, 10) : 200000;
	uint64_t rounds = argc > 2 ? strtoull(argv[2], NULL, 10) : 2000;

	compare_with_model(gaps);
	race(&time, rounds);
	race(&calls, rounds);
	printf("stress_core_window: %" PRIu64 " gaps, %" PRIu64 " rounds of %d threads: exact\n",
			gaps, rounds, THREADS);
	return 0;
}
