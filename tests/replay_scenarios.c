/* SPDX-License-Identifier: MIT */
#include "tests/replay.h"

#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/breaker.h"
#include "core/bulkhead.h"
#include "core/control.h"
#include "core/segment.h"
#include "tests/replay_script.h"

#define MAX_THREADS 256
#define ATTACH_FIRST_MS 100
#define ATTACH_EVERY_MS 600
#define ATTACH_LAST_MS 4900
#define SLOW_NS 1000000000u
#define MAX_PROCESSES 4

/* A permit that somebody holds, or held. */
struct holding {
	char *id;
	const char *proc;
	struct permit permit;
	place_t place;
	bool is_ended, is_dead;
};

/* A process of the script, by name; its number is its pid. */
struct process {
	const char *name; /* NULL where a script names none */
	struct holder holder;
	bool is_dead;
};

static struct process processes[MAX_PROCESSES];

static bool process_is_alive(struct seat_owner owner)
{
	return owner.pid <= MAX_PROCESSES && !processes[owner.pid - 1].is_dead;
}

/* One scenario under way. */
struct play {
	const struct script *script;
	struct script_config config;
	struct segment *segment;
	struct cell_key key;
	struct breaker breaker;
	struct breaker other; /* the second key, which only ever succeeds */
	char path[64];        /* of the segment, where processes attach to it */
	uint64_t start_ns, now_ns;
	struct holding *holdings;
	size_t holding_count, holding_room;
	long long double_done;
	long long attached_ms;
	uint64_t random;
	char failure[300]; /* "" while everything is as told */
};

__attribute__((format(printf, 2, 3))) static void fail(struct play *play, const char *format, ...)
{
	va_list args;

	if (play->failure[0] != '\0')
		return;
	va_start(args, format);
	vsnprintf(play->failure, sizeof(play->failure), format, args);
	va_end(args);
}

static void check_number(struct play *play, const char *what, long long want, long long got)
{
	if (want >= 0 && want != got)
		fail(play, "%s: expected %lld, got '%lld'", what, want, got);
}

static uint64_t next_random(struct play *play)
{
	uint64_t mixed = play->random += 0x9e3779b97f4a7c15u;

	mixed = (mixed ^ mixed >> 30) * 0xbf58476d1ce4e5b9u;
	mixed = (mixed ^ mixed >> 27) * 0x94d049bb133111ebu;
	return mixed ^ mixed >> 31;
}

static void *must_have(void *memory)
{
	if (memory == NULL) {
		perror("replay");
		exit(2);
	}
	return memory;
}

static bool has_name(const struct process *process, const char *name)
{
	if (process->name == NULL || name == NULL)
		return process->name == name;
	return strcmp(process->name, name) == 0;
}

static struct process *process_of(struct play *play, const char *name)
{
	uint32_t i = 0;

	while (processes[i].holder.places != NULL && !has_name(&processes[i], name))
		if (++i == MAX_PROCESSES)
			must_have(NULL);
	if (processes[i].holder.places == NULL)
		processes[i] = (struct process){
			.name = name,
			.holder = {
				.places = &play->segment->places,
				.seats = &play->segment->seats,
				.seat = seat_take(&play->segment->seats,
						(struct seat_owner){ i + 1, 0 },
						process_is_alive),
			},
		};
	return &processes[i];
}

static struct bulkhead bulkhead(struct play *play)
{
	return bulkhead_of(&process_of(play, NULL)->holder, play->breaker.cell_hash,
			BULKHEAD_CALLS);
}

/* As a hook does: the places of the dead are missed when there is none left. */
static bool acquire(struct play *play, const char *process, struct permit *ret_permit,
		place_t *ret_place)
{
	struct breaker *breaker = &play->breaker;
	struct bulkhead calls = bulkhead(play);
	struct decision decision;

	breaker->holder = &process_of(play, process)->holder;
	decision = breaker_acquire(breaker, play->now_ns, next_random(play), ret_permit, ret_place);
	if (decision.is_full && bulkhead_reclaim(&calls, process_is_alive) > 0)
		decision = breaker_acquire(breaker, play->now_ns, next_random(play), ret_permit,
				ret_place);
	if (decision.is_full)
		breaker_reject(breaker, CELL_TOTAL_rejected, play->now_ns);
	return decision.is_admitted;
}

static void hold(struct play *play, const struct step *step, long long number,
		struct permit permit, place_t place)
{
	struct holding *holding;
	char id[128];

	if (step->has_count)
		snprintf(id, sizeof(id), "%.100s%lld", step->id, number);
	else
		snprintf(id, sizeof(id), "%.100s", step->id);
	if (play->holding_count == play->holding_room) {
		play->holding_room = play->holding_room * 2 + 16;
		play->holdings = must_have(realloc(play->holdings,
			play->holding_room * sizeof(*play->holdings)));
	}
	holding = &play->holdings[play->holding_count++];
	*holding = (struct holding){
		.id = must_have(strdup(id)),
		.proc = step->proc,
		.permit = permit,
		.place = place,
	};
}

static struct holding *find_holding(struct play *play, const char *id)
{
	for (size_t i = play->holding_count; i > 0; i--) {
		if (strcmp(play->holdings[i - 1].id, id) == 0)
			return &play->holdings[i - 1];
	}
	return NULL;
}

static uint64_t duration_ns(const struct play *play, bool is_slow)
{
	uint64_t slow_ns = play->config.settings.slow_ns;

	if (is_slow)
		return slow_ns + 1;
	return slow_ns == 0 ? 1000000 : slow_ns / 2;
}

static void report(struct play *play, struct permit permit, place_t place,
		const struct step *step)
{
	place_give(&play->segment->places, place);
	breaker_report(&play->breaker, permit, step->outcome, duration_ns(play, step->is_slow),
			play->now_ns);
}

struct racer {
	const struct play *play;
	pthread_barrier_t *barrier;
	uint64_t random;
	struct permit permit;
	place_t place;
	bool is_admitted;
};

static void *race(void *argument)
{
	struct racer *racer = argument;

	pthread_barrier_wait(racer->barrier);
	racer->is_admitted = breaker_acquire(&racer->play->breaker, racer->play->now_ns,
		racer->random, &racer->permit, &racer->place).is_admitted;
	return NULL;
}

static long long acquire_by_threads(struct play *play, const struct step *step)
{
	unsigned int count = (unsigned int)step->count;
	struct racer racers[MAX_THREADS];
	pthread_t threads[MAX_THREADS];
	pthread_barrier_t barrier;
	long long admitted = 0;

	pthread_barrier_init(&barrier, NULL, count);
	for (unsigned int i = 0; i < count; i++) {
		racers[i] = (struct racer){
			.play = play, .barrier = &barrier, .random = next_random(play)
		};
		if (pthread_create(&threads[i], NULL, race, &racers[i]) != 0)
			must_have(NULL);
	}
	for (unsigned int i = 0; i < count; i++) {
		pthread_join(threads[i], NULL);
		if (racers[i].is_admitted)
			hold(play, step, admitted++, racers[i].permit, racers[i].place);
	}
	pthread_barrier_destroy(&barrier);
	return admitted;
}

static long long acquire_in_turn(struct play *play, const struct step *step)
{
	long long admitted = 0;

	for (long long i = 0; i < step->count; i++) {
		struct permit permit;
		place_t place;

		if (acquire(play, step->proc, &permit, &place))
			hold(play, step, admitted++, permit, place);
	}
	return admitted;
}

static void check_admitted(struct play *play, const struct step *step, long long admitted)
{
	check_number(play, "allowed", step->allowed, admitted);
	if (step->allow >= 0 && admitted != (step->allow ? step->count : 0))
		fail(play, "allow: expected %s, got '%lld of %lld'", step->allow ? "true" : "false",
				admitted, step->count);
}

static void step_acquire(struct play *play, const struct step *step)
{
	bool has_threads = script_requires(play->script, "threads") && step->count > 1 &&
		step->count <= MAX_THREADS;

	check_admitted(play, step,
			has_threads ? acquire_by_threads(play, step) : acquire_in_turn(play, step));
}

static void step_done(struct play *play, const struct step *step)
{
	struct holding *holding = find_holding(play, step->id);

	if (holding == NULL) {
		fail(play, "id: expected one that was admitted, got '%s'", step->id);
		return;
	}
	if (holding->is_dead)
		return;
	if (holding->is_ended)
		play->double_done++;
	/* As a caller that swaps its permit out: the second end holds PERMIT_NONE. */
	report(play, holding->permit, holding->place, step);
	holding->permit = (struct permit){ .kind = PERMIT_NONE };
	holding->is_ended = true;
}

static void step_call(struct play *play, const struct step *step)
{
	long long admitted = 0;

	for (long long i = 0; i < step->count; i++) {
		struct permit permit;
		place_t place;

		if (!acquire(play, step->proc, &permit, &place))
			continue;
		admitted++;
		report(play, permit, place, step);
	}
	check_admitted(play, step, admitted);
}

static struct window_sum sum_of(const struct breaker *breaker, const struct window *window,
		uint64_t now_ns)
{
	return window_sum(window, &breaker->settings->window,
			circuit_read(&breaker->cell->circuit).epoch, now_ns);
}

static void step_counts(struct play *play, const struct step *step)
{
	struct cell *cell = play->breaker.cell;
	struct window_sum sum = sum_of(&play->breaker, &cell->outcomes, play->now_ns);
	struct window_sum slow = sum_of(&play->breaker, &cell->slow, play->now_ns);

	check_number(play, "total", step->total, (long long)sum.total);
	check_number(play, "errors", step->errors, (long long)sum.errors);
	check_number(play, "pct", step->percent,
			sum.total == 0 ? 0 : (long long)(sum.errors * 100 / sum.total));
	check_number(play, "slow", step->slow, (long long)slow.errors);
}

static void step_set(struct play *play, const struct step *step)
{
	char error[SCRIPT_ERROR_SIZE];
	enum force force;

	if (!script_configure(&play->config, step->key, step->value_to_set, error)) {
		fail(play, "%.250s", error);
		return;
	}
	if (strcmp(step->key, "force") != 0)
		return;
	force = play->config.settings.force;
	play->config.settings.force = FORCE_NONE;
	control_force(&play->breaker, force, play->now_ns);
}

static void step_die(struct play *play, const struct step *step)
{
	process_of(play, step->proc)->is_dead = true;
	for (size_t i = 0; i < play->holding_count; i++) {
		struct holding *holding = &play->holdings[i];

		if (holding->proc != NULL && strcmp(holding->proc, step->proc) == 0)
			holding->is_dead = true;
	}
}

static void step_metric(struct play *play, const struct step *step)
{
	if (strcmp(step->metric, "double_done") == 0) {
		check_number(play, step->metric, step->value, play->double_done);
		return;
	}
	for (int i = 0; i < CELL_TOTAL_COUNT; i++) {
		const char *name = strcmp(step->metric, "semaphore_rejected") == 0 ? "rejected"
										     : step->metric;

		if (strcmp(cell_total_name((enum cell_total)i), name) == 0) {
			check_number(play, step->metric, step->value,
					(long long)atomic_load_explicit(
							&play->breaker.cell->totals[i],
							memory_order_relaxed));
			return;
		}
	}
	fail(play, "name: expected the name of a total, got '%s'", step->metric);
}

static void step_inflight(struct play *play, const struct step *step)
{
	struct bulkhead calls = bulkhead(play);
	long long open = 0;

	if (play->config.settings.concurrency != 0) {
		bulkhead_reclaim(&calls, process_is_alive);
		check_number(play, "inflight", step->value, bulkhead_in_flight(&calls));
		return;
	}

	for (size_t i = 0; i < play->holding_count; i++)
		open += !play->holdings[i].is_ended && !play->holdings[i].is_dead;
	check_number(play, "inflight", step->value, open);
}

static void step_reset(struct play *play, const struct step *step)
{
	(void)step;
	control_reset(&play->breaker, play->now_ns);
}

static void step_trip(struct play *play, const struct step *step)
{
	(void)step;
	control_trip(&play->breaker, play->now_ns);
}

static void step_half(struct play *play, const struct step *step)
{
	(void)step;
	control_half(&play->breaker, play->now_ns);
}

/* What a step only checks by its `state`; and the wall clock, which core cannot even read. */
static void step_nothing(struct play *play, const struct step *step)
{
	(void)play;
	(void)step;
}

static void (*const step_functions[])(struct play *play, const struct step *step) = {
	[STEP_ACQUIRE] = step_acquire,
	[STEP_DONE] = step_done,
	[STEP_CALL] = step_call,
	[STEP_COUNTS] = step_counts,
	[STEP_STATE] = step_nothing,
	[STEP_SET] = step_set,
	[STEP_RESET] = step_reset,
	[STEP_TRIP] = step_trip,
	[STEP_HALF] = step_half,
	[STEP_WALL] = step_nothing,
	[STEP_DIE] = step_die,
	[STEP_METRIC] = step_metric,
	[STEP_INFLIGHT] = step_inflight,
};

static struct cell *cell_of(struct segment *segment, const struct cell_key *key, uint64_t now_ns)
{
	return segment_cell(segment, key, cell_key_hash(key), now_ns);
}

/* A new process finds the cell in the state that it was in, and leaves it so. */
static void attach_process(struct play *play)
{
	uint64_t before = atomic_load_explicit(&play->breaker.cell->circuit.word,
		memory_order_acquire);
	int status = 0;
	pid_t child;

	fflush(NULL);
	child = fork();
	if (child == 0) {
		const char *why;
		struct segment *segment = segment_open(play->path, true, &why);
		struct cell *cell = segment == NULL ? NULL :
						      cell_of(segment, &play->key, play->now_ns);

		_exit(cell == NULL || atomic_load_explicit(&cell->circuit.word,
			memory_order_acquire) != before);
	}
	while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR)
		;
	if (child < 0 || status != 0)
		fail(play, "attach: expected a process that sees the circuit, got '%d'", status);
	if (atomic_load_explicit(&play->breaker.cell->circuit.word, memory_order_acquire) != before)
		fail(play, "attach: expected an untouched circuit, got 'another'");
}

static void attach_until(struct play *play, long long t_ms)
{
	while (play->attached_ms <= t_ms && play->attached_ms <= ATTACH_LAST_MS) {
		play->now_ns = play->start_ns + (uint64_t)play->attached_ms * 1000000;
		attach_process(play);
		play->attached_ms += ATTACH_EVERY_MS;
	}
}

static void call_other(struct play *play)
{
	struct breaker *other = &play->other;
	struct permit permit;

	if (!breaker_acquire(other, play->now_ns, 0, &permit, &(place_t){ 0 }).is_admitted)
		fail(play, "second key: expected an admitted call, got 'refused'");
	breaker_report(other, permit, OUTCOME_SUCCESS, 0, play->now_ns);
	if (breaker_state(other, play->now_ns) != CIRCUIT_CLOSED ||
			sum_of(other, &other->cell->outcomes, play->now_ns).errors != 0)
		fail(play, "second key: expected a closed circuit without errors, got 'another'");
}

static void play_step(struct play *play, const struct step *step)
{
	if (script_requires(play->script, "attach"))
		attach_until(play, step->t_ms);
	play->now_ns = play->start_ns + (uint64_t)step->t_ms * 1000000;
	if (script_requires(play->script, "two_keys"))
		call_other(play);
	step_functions[step->op](play, step);
	if (step->state >= 0) {
		enum circuit_state state = breaker_state(&play->breaker, play->now_ns);

		if (state != (enum circuit_state)step->state)
			fail(play, "state: expected %s, got '%s'",
					circuit_state_name((enum circuit_state)step->state),
					circuit_state_name(state));
	}
}

static struct breaker make_breaker(struct play *play, const char *name, struct cell_key *ret_key)
{
	struct breaker breaker = {
		.settings = &play->config.settings,
		.events = &play->segment->events,
		.pid = (uint32_t)getpid(),
	};

	cell_key_make(ret_key, CELL_CONNECTION, name, "host", NULL, 0,
			&play->config.settings.window);
	breaker.cell = must_have(cell_of(play->segment, ret_key, play->start_ns));
	breaker.cell_hash = cell_key_hash(ret_key);
	return breaker;
}

static struct segment *make_segment(struct play *play)
{
	const char *why = "no directory for it";
	struct segment *segment = NULL;

	if (!script_requires(play->script, "attach"))
		return must_have(segment_open_private());
	snprintf(play->path, sizeof(play->path), "/dev/shm/shunt-replay-%d", (int)getpid());
	unlink(play->path);
	segment = segment_open(play->path, true, &why);
	if (segment == NULL) {
		fprintf(stderr, "replay: %s: %s\n", play->path, why);
		exit(2);
	}
	return segment;
}

static void start_play(struct play *play, const struct script *script, uint64_t about_ms)
{
	struct settings *settings = &play->config.settings;
	struct cell_key other_key;
	uint64_t span_ns;

	*play = (struct play){
		.script = script,
		.config = script->config,
		.attached_ms = ATTACH_FIRST_MS,
		.random = 1,
	};
	/* Slow calls are recorded where a script has any, and judged where it says so. */
	if (script->uses_slow && settings->slow_ns == 0) {
		settings->slow_ns = SLOW_NS;
		settings->slow_ratio = RATIO_ONE + 1;
	}
	span_ns = settings->window.span_ns;
	play->start_ns = play->now_ns = about_ms * 1000000 / span_ns * span_ns;
	play->segment = make_segment(play);
	memset(processes, 0, sizeof(processes));
	play->breaker = make_breaker(play, "SCENARIO", &play->key);
	play->other = make_breaker(play, "OTHER", &other_key);
}

static void finish_play(struct play *play)
{
	for (size_t i = 0; i < play->holding_count; i++)
		free(play->holdings[i].id);
	free(play->holdings);
	segment_close(play->segment);
	if (play->path[0] != '\0')
		unlink(play->path);
}

/* True if everything went as told. */
static bool play_script(const struct script *script, uint64_t about_ms)
{
	struct play play;

	start_play(&play, script, about_ms);
	for (size_t i = 0; i < script->step_count && play.failure[0] == '\0'; i++) {
		play_step(&play, &script->steps[i]);
		if (play.failure[0] != '\0')
			printf("FAIL %s (%s): step %zu, t=%lld: %s\n", script->id,
					script->title == NULL ? "" : script->title, i + 1,
					script->steps[i].t_ms, play.failure);
	}
	finish_play(&play);
	return play.failure[0] == '\0';
}

/* NULL, or what the breaker has not. */
static const char *reason_to_skip(const struct script *script)
{
	if (script_requires(script, "snapshot") || script->config.is_snapshot)
		return "there is no snapshot mode: every outcome is judged at once";
	if (script->config.close_after != 0 &&
			script->config.close_after != script->config.settings.probes)
		return "half-open needs as many successes as it admits probes";
	return NULL;
}

static void replay_script(const struct script *script, struct replay_tally *tally)
{
	const char *reason = reason_to_skip(script);

	if (reason != NULL) {
		printf("SKIP %s (%s): %s\n", script->id, script->title == NULL ? "" : script->title,
				reason);
		tally->skipped++;
		return;
	}
	/* Twice: on an ordinary day, and while the circuit's 32-bit milliseconds wrap. */
	if (play_script(script, 1000000000) && play_script(script, (UINT64_C(1) << 32) - 1))
		tally->passed++;
	else
		tally->failed++;
}

static bool replay_line(const char *path, unsigned long number, const char *line,
		struct replay_tally *tally)
{
	char error[SCRIPT_ERROR_SIZE];
	struct script script;

	if (line[strspn(line, " \t\r\n")] == '\0')
		return true;
	if (!script_read(line, &script, error)) {
		fprintf(stderr, "%s:%lu: %s\n", path, number, error);
		return false;
	}
	replay_script(&script, tally);
	script_finish(&script);
	return true;
}

bool replay_scenarios(const char *path, struct replay_tally *tally)
{
	FILE *file = fopen(path, "re");
	unsigned long number = 0;
	char *line = NULL;
	size_t room = 0;
	bool is_good = true;

	if (file == NULL) {
		fprintf(stderr, "%s: file: expected a readable one, got '%s'\n", path,
				strerror(errno));
		return false;
	}
	while (is_good && getline(&line, &room, file) > 0)
		is_good = replay_line(path, ++number, line, tally);
	if (ferror(file)) {
		fprintf(stderr, "%s: file: expected a readable one, got '%s'\n", path,
				strerror(errno));
		is_good = false;
	}
	free(line);
	fclose(file);
	return is_good;
}
