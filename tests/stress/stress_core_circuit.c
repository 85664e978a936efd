/* SPDX-License-Identifier: MIT */
/*
 * Processes, killed at random, and then threads race through one circuit that trips, probes and
 * closes every few milliseconds. Never two probes in one lease, nothing stuck, every call counted
 * once, every turn told once. stress_core_circuit [SECONDS]
 */
#include <inttypes.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "core/breaker.h"
#include "core/clock.h"

#define PROCESSES 3
#define THREADS	  2
#define WORKERS	  (PROCESSES * THREADS)
#define LEASE_MS  4
#define MS	  UINT64_C(1000000)
#define SECOND	  (1000 * MS)
/* Each epoch lasts longer than the sleep of 1 ms; a number comes back after 16384 of them. */
#define EPOCH_RETURNS_NS (8 * SECOND)
#define STUCK_NS	 (30 * SECOND)
#define CLOSES		 10
/* Where threads wait long for a processor, so many take longer. */
#define PATIENCE_NS	 (60 * SECOND)
#define EPOCHS		 (CIRCUIT_EPOCH_MASK + 1)
/* A probe that is known to hold its slot. */
#define HELD (UINT64_C(1) << 63)

/* Begun before, ended after the step: with kills the truth lies between them. */
struct count {
	_Atomic uint64_t begun, ended;
};

struct shared {
	struct cell cell;
	struct event_ring events;
	_Atomic bool is_over;
	_Atomic uint64_t failures;
	_Atomic uint64_t kills;
	struct count acquires, reports;
	_Atomic uint64_t refused, admitted;
	_Atomic uint64_t transitions[TRANSITION_CLOSED + 1];
	_Atomic uint64_t newest_probe[EPOCHS]; /* HELD | issued_ms */
	_Atomic uint64_t ended_ns[EPOCHS];     /* when a probe closed or reopened the circuit */
};

static struct shared *shared;

static struct settings settings;

static void make_settings(void)
{
	settings = settings_default;
	settings.window = (struct window_shape){.span_ns = 50 * MS, .buckets = 10};
	settings.volume = 4;
	settings.sleep_ms = 1;
	settings.lease_ms = LEASE_MS;
	settings.consecutive = 12;
	settings.slow_ns = 5 * MS;
}

static void complain(const char *what, uint64_t want, uint64_t got)
{
	fprintf(stderr, "stress_core_circuit: %s: expected %" PRIu64 ", got %" PRIu64 "\n", what,
			want, got);
	atomic_fetch_add(&shared->failures, 1);
}

static uint64_t next_random(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

static void count_transition(enum transition transition)
{
	atomic_fetch_add(&shared->transitions[transition], 1);
}

/* Two probes of one epoch whose leases overlap. An epoch number comes back after many seconds. */
static void check_probe(struct permit permit)
{
	uint64_t before = atomic_exchange(
			&shared->newest_probe[permit.epoch], HELD | permit.issued_ms);
	uint32_t apart_ms = permit.issued_ms - (uint32_t)before;

	if ((int32_t)apart_ms < 0)
		apart_ms = -apart_ms;
	if ((before & HELD) != 0 && apart_ms <= LEASE_MS)
		complain("ms between two probes of an epoch", LEASE_MS + 1, apart_ms);
}

/* A probe can end its own epoch only, and every epoch ends once. */
static void check_end(struct permit permit, enum transition transition, uint64_t now_ns)
{
	uint64_t before_ns;

	if (transition != TRANSITION_CLOSED && transition != TRANSITION_REOPENED)
		return;
	before_ns = atomic_exchange(&shared->ended_ns[permit.epoch], now_ns);
	if (before_ns != 0 && now_ns - before_ns < EPOCH_RETURNS_NS)
		complain("ends of one epoch", 1, 2);
}

/* Before its slot is free again. */
static void forget_probe(struct permit permit)
{
	uint64_t held = HELD | permit.issued_ms;

	atomic_compare_exchange_strong(&shared->newest_probe[permit.epoch], &held, 0);
}

/* Good and bad times take turns, so that the circuit does too. */
static enum outcome draw_outcome(uint64_t now_ns, uint64_t *random)
{
	bool is_bad_time = now_ns / (16 * MS) % 2 == 0;
	uint64_t drawn = next_random(random) % 100;

	if (drawn < 3)
		return OUTCOME_UNUSED;
	if (drawn < 6)
		return OUTCOME_CANCELLED;
	if (drawn < 8)
		return OUTCOME_IGNORED;
	if (drawn < (is_bad_time ? 70 : 10))
		return drawn % 2 == 0 ? OUTCOME_FAILURE : OUTCOME_TIMEOUT;
	return OUTCOME_SUCCESS;
}

/* One thread, and a call that takes it longer than the others: long enough to come back late. */
struct worker {
	struct breaker breaker;
	uint64_t random;
	struct permit slow_call;
};

static bool one_in(struct worker *worker, uint64_t count)
{
	return next_random(&worker->random) % count == 0;
}

static struct permit begin_call(struct worker *worker)
{
	struct permit permit;
	struct decision decision;

	atomic_fetch_add(&shared->acquires.begun, 1);
	decision = breaker_acquire(
			&worker->breaker, clock_now_ns(), next_random(&worker->random), &permit,
			&(place_t){ 0 });
	atomic_fetch_add(decision.is_admitted ? &shared->admitted : &shared->refused, 1);
	atomic_fetch_add(&shared->acquires.ended, 1);
	count_transition(decision.transition);
	if (permit.kind == PERMIT_PROBE)
		check_probe(permit);
	return permit;
}

static void end_call(struct worker *worker, struct permit permit)
{
	uint64_t now_ns = clock_now_ns();
	uint64_t duration_ns = next_random(&worker->random) % (10 * MS);
	enum outcome outcome = draw_outcome(now_ns, &worker->random);
	enum transition transition;

	if (permit.kind == PERMIT_PROBE && outcome == OUTCOME_UNUSED)
		forget_probe(permit);
	atomic_fetch_add(&shared->reports.begun, 1);
	transition = breaker_report(&worker->breaker, permit, outcome, duration_ns, now_ns);
	atomic_fetch_add(&shared->reports.ended, 1);
	count_transition(transition);
	check_end(permit, transition, now_ns);
}

static void call_once(struct worker *worker)
{
	struct permit permit = begin_call(worker);

	if (worker->slow_call.kind != PERMIT_NONE && one_in(worker, 500)) {
		end_call(worker, worker->slow_call);
		worker->slow_call = (struct permit){ .kind = PERMIT_NONE };
	}
	if (permit.kind == PERMIT_NONE) {
		sched_yield();
		return;
	}
	if (worker->slow_call.kind == PERMIT_NONE &&
			one_in(worker, permit.kind == PERMIT_PROBE ? 4 : 100)) {
		worker->slow_call = permit;
		return;
	}
	/* Some are lost, as with a thread that was cancelled. */
	if (one_in(worker, 200))
		return;
	if (one_in(worker, 4))
		sched_yield();
	end_call(worker, permit);
}

static struct breaker make_breaker(void)
{
	return (struct breaker){
			.cell = &shared->cell,
			.settings = &settings,
			.events = &shared->events,
			.pid = (uint32_t)getpid(),
	};
}

static void *work(void *argument)
{
	struct worker worker = {
		.breaker = make_breaker(),
		.random = (uint64_t)(uintptr_t)argument * 2654435761u + clock_now_ns(),
	};

	while (!atomic_load(&shared->is_over))
		call_once(&worker);
	return NULL;
}

static void work_in_threads(int count)
{
	pthread_t threads[WORKERS];

	for (int i = 0; i < count; i++) {
		if (pthread_create(&threads[i], NULL, work, (void *)(uintptr_t)(i + 1)) != 0)
			exit(2);
	}
	for (int i = 0; i < count; i++)
		pthread_join(threads[i], NULL);
}

static pid_t start_process(void)
{
	pid_t child = fork();

	if (child < 0)
		exit(2);
	if (child > 0)
		return child;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	work_in_threads(THREADS);
	_exit(0);
}

/* What must hold at any moment, seen by one who only reads. */
struct watch {
	uint64_t word;
	uint64_t since_ns;
	uint32_t epoch;
};

static void watch_once(struct watch *watch)
{
	struct circuit_view view = circuit_read(&shared->cell.circuit);
	uint64_t word = atomic_load(&shared->cell.circuit.word);
	uint64_t now_ns = clock_now_ns();
	uint32_t ahead = (view.epoch - watch->epoch) & CIRCUIT_EPOCH_MASK;
	struct window_sum sum =
			window_sum(&shared->cell.outcomes, &settings.window, view.epoch, now_ns);

	if (view.issued > 1 || view.ok > 1 || view.bad > 1)
		complain("probes of a circuit that has one", 1, view.issued + view.ok + view.bad);
	if (view.state != CIRCUIT_HALF_OPEN && view.issued + view.ok + view.bad + view.slow != 0)
		complain("probes outside half-open", 0, view.issued);
	if (ahead > EPOCHS / 2)
		complain("an epoch that goes back", watch->epoch, view.epoch);
	if (sum.errors > sum.total)
		complain("errors of a window", sum.total, sum.errors);
	watch->epoch = view.epoch;
	if (word != watch->word || view.state == CIRCUIT_CLOSED)
		watch->since_ns = now_ns;
	watch->word = word;
	if (now_ns - watch->since_ns > STUCK_NS) {
		complain("turns of a circuit under traffic", 1, 0);
		watch->since_ns = now_ns;
	}
}

static void kill_one(pid_t *child)
{
	kill(*child, SIGKILL);
	waitpid(*child, NULL, 0);
	atomic_fetch_add(&shared->kills, 1);
	*child = start_process();
}

static bool goes_on(uint64_t end_ns)
{
	uint64_t now_ns = clock_now_ns();

	return now_ns < end_ns || (now_ns < end_ns + PATIENCE_NS &&
			atomic_load(&shared->transitions[TRANSITION_CLOSED]) < CLOSES);
}

static void watch_until(uint64_t end_ns, pid_t *children)
{
	struct watch watch = {.since_ns = clock_now_ns()};
	uint64_t random = 12345, calls_to_kill = 1000;

	while (goes_on(end_ns)) {
		watch_once(&watch);
		if (children != NULL && atomic_load(&shared->acquires.ended) > calls_to_kill) {
			kill_one(&children[next_random(&random) % PROCESSES]);
			calls_to_kill = atomic_load(&shared->acquires.ended) +
					next_random(&random) % 2000;
		}
		nanosleep(&(struct timespec){.tv_nsec = 100000}, NULL);
	}
	atomic_store(&shared->is_over, true);
}

static uint64_t total(enum cell_total which)
{
	return atomic_load(&shared->cell.totals[which]);
}

static void check_between(const char *what, uint64_t low, uint64_t high, uint64_t got)
{
	if (got < low || got > high)
		complain(what, got < low ? low : high, got);
}

/* A killed thread may have done one step that it could not note. */
static void check_totals(void)
{
	uint64_t slack = atomic_load(&shared->kills) * THREADS;
	uint64_t reports = total(CELL_TOTAL_success) + total(CELL_TOTAL_failure) +
			   total(CELL_TOTAL_timeout) + total(CELL_TOTAL_cancelled) +
			   total(CELL_TOTAL_ignored) + total(CELL_TOTAL_unused) +
			   total(CELL_TOTAL_late);
	uint64_t refused = atomic_load(&shared->refused);
	uint64_t tripped = atomic_load(&shared->transitions[TRANSITION_TRIPPED]);

	check_between("reports in the totals",
			atomic_load(&shared->reports.ended) < slack
					? 0
					: atomic_load(&shared->reports.ended) - slack,
			atomic_load(&shared->reports.begun), reports);
	check_between("refused calls", refused, refused + slack, total(CELL_TOTAL_short_circuited));
	check_between("trips", tripped, tripped + slack, total(CELL_TOTAL_trips));
}

/* Without kills every turn was told to exactly one caller, so they add up to the state. */
static void check_turns(void)
{
	struct circuit_view view = circuit_read(&shared->cell.circuit);
	uint64_t tripped = atomic_load(&shared->transitions[TRANSITION_TRIPPED]);
	uint64_t half = atomic_load(&shared->transitions[TRANSITION_HALF_OPENED]);
	uint64_t reopened = atomic_load(&shared->transitions[TRANSITION_REOPENED]);
	uint64_t closed = atomic_load(&shared->transitions[TRANSITION_CLOSED]);
	uint64_t acquires = atomic_load(&shared->acquires.ended);

	check_between("closes of all trips", tripped - (view.state != CIRCUIT_CLOSED),
			tripped - (view.state != CIRCUIT_CLOSED), closed);
	check_between("ends of all probes", half - (view.state == CIRCUIT_HALF_OPEN),
			half - (view.state == CIRCUIT_HALF_OPEN), closed + reopened);
	check_between("epochs", (closed + reopened) % EPOCHS, (closed + reopened) % EPOCHS,
			view.epoch);
	check_between("admitted and refused", acquires, acquires,
			atomic_load(&shared->admitted) + atomic_load(&shared->refused));
	check_between("turns", CLOSES, UINT64_MAX, closed);
}

/* Whatever was lost, one call after sleep and lease is let through and closes. */
static void check_recovery(void)
{
	struct breaker breaker = make_breaker();
	uint64_t now_ns = clock_now_ns() + SECOND;
	struct permit permit;

	if (!breaker_acquire(&breaker, now_ns, 0, &permit, &(place_t){ 0 }).is_admitted)
		complain("calls let through in the end", 1, 0);
	breaker_report(&breaker, permit, OUTCOME_SUCCESS, 0, now_ns);
	if (breaker_state(&breaker, now_ns) != CIRCUIT_CLOSED)
		complain("the state in the end", CIRCUIT_CLOSED, breaker_state(&breaker, now_ns));
}

static void tell(const char *phase)
{
	printf("stress_core_circuit: %s: %" PRIu64 " calls, %" PRIu64 " trips, %" PRIu64
	       " closes, %" PRIu64 " late, %" PRIu64 " kills, %" PRIu64 " failures\n",
			phase, atomic_load(&shared->acquires.ended), total(CELL_TOTAL_trips),
			atomic_load(&shared->transitions[TRANSITION_CLOSED]),
			total(CELL_TOTAL_late), atomic_load(&shared->kills),
			atomic_load(&shared->failures));
}

static void map_shared(void)
{
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
			0);
	if (shared == MAP_FAILED)
		exit(2);
}

static uint64_t race_processes(uint64_t length_ns)
{
	pid_t children[PROCESSES];

	map_shared();
	for (int i = 0; i < PROCESSES; i++)
		children[i] = start_process();
	watch_until(clock_now_ns() + length_ns, children);
	for (int i = 0; i < PROCESSES; i++)
		waitpid(children[i], NULL, 0);
	check_totals();
	check_recovery();
	tell("processes");
	return atomic_load(&shared->failures);
}

static void *watch_in_thread(void *argument)
{
	watch_until(*(uint64_t *)argument, NULL);
	return NULL;
}

static uint64_t race_threads(uint64_t length_ns)
{
	uint64_t end_ns = clock_now_ns() + length_ns;
	pthread_t watcher;

	map_shared();
	if (pthread_create(&watcher, NULL, watch_in_thread, &end_ns) != 0)
		exit(2);
	work_in_threads(WORKERS);
	pthread_join(watcher, NULL);
	check_totals();
	check_turns();
	check_recovery();
	tell("threads");
	return atomic_load(&shared->failures);
}

int main(int argc, char **argv)
{
	uint64_t seconds = argc > 1 ? strtoull(argv[1], NULL, 10) : 2;

	make_settings();
	return race_processes(seconds * SECOND) + race_threads(seconds * SECOND) != 0;
}
