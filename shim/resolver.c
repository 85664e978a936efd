/* SPDX-License-Identifier: MIT */
#include "shim/resolver.h"

#include <errno.h>
#include <linux/futex.h>
#include <locale.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/syscall.h>

#include "core/clock.h"
#include "core/pool.h"
#include "shim/own_call.h"
#include "shim/raw.h"
#include "shim/res_state.h"
#include "shim/runtime.h"
#include "shim/thread.h"

/* libc itself was seen to need 16 KiB; the modules behind it are anybody's. */
#define STACK_BYTES (256 * 1024)
#define IDLE_NS	    3000000000ull

/* All but `bell` are under the lock. */
struct pool {
	struct request *first, **end; /* asked for, and not begun */
	uint32_t waiting;	      /* of them */
	uint32_t threads;
	uint32_t free; /* threads that look for work, or will when they have started */
	_Atomic uint32_t bell;
};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct pool pools[CONFIG_MAX_RULES];
static _Atomic bool has_moved;

/* What the calling thread waits for, or left by longjmp. */
static _Thread_local struct request *own;

static void line_append(struct pool *pool, struct request *request)
{
	if (!pool->first)
		pool->end = &pool->first;
	*pool->end = request;
	pool->end = &request->next;
	pool->waiting++;
}

static struct request *line_take(struct pool *pool)
{
	struct request *request = pool->first;

	if (!request)
		return NULL;
	pool->first = request->next;
	pool->waiting--;
	return request;
}

/* False: it is begun. */
static bool line_remove(struct pool *pool, struct request *request)
{
	struct request **link = &pool->first;

	while (*link && *link != request)
		link = &(*link)->next;
	if (!*link)
		return false;
	*link = request->next;
	if (pool->end == &request->next)
		pool->end = link;
	pool->waiting--;
	return true;
}

/* The next to serve; NULL: nothing came for long, or the thread must end. With the lock, which is
 * not held while it waits. */
static struct request *work_wait(struct pool *pool)
{
	uint64_t idle_since_ns = clock_now_ns();
	struct request *request;
	uint32_t bell;
	bool must_end = false;

	for (;;) {
		request = line_take(pool);
		if (request || must_end)
			return request;
		bell = atomic_load_explicit(&pool->bell, memory_order_acquire);
		pthread_mutex_unlock(&mutex);
		must_end = thread_must_end() ||
			   clock_elapsed_ns(idle_since_ns, clock_now_ns()) > IDLE_NS;
		if (!must_end)
			thread_wait(&pool->bell, bell, THREAD_ROUND_NS);
		pthread_mutex_lock(&mutex);
	}
}

/* All signals are blocked on this thread. */
static void worker_run(void *argument)
{
	struct pool *pool = argument;
	struct request *request;

	res_state_forget();
	pthread_mutex_lock(&mutex);
	while ((request = work_wait(pool)) != NULL) {
		pool->free--;
		pthread_mutex_unlock(&mutex);
		request_ask(request);
		pthread_mutex_lock(&mutex);
		/* First: who has his answer may ask again at once. */
		pool->free++;
		request_publish(request);
	}
	pool->free--;
	pool->threads--;
	pthread_mutex_unlock(&mutex);
}

static int worker_start(struct pool *pool)
{
	struct thread_plan plan = {
			.run = worker_run,
			.argument = pool,
			.bell = &pool->bell,
			.name = "shunt-resolver",
			.stack_bytes = STACK_BYTES,
	};

	return thread_start(&plan);
}

static enum pool_answer admit(const struct rule *rule, const struct pool *pool)
{
	const struct settings *settings = &rule->settings;
	struct pool_shape shape = {settings->resolve_pool, settings->resolve_pool_max,
			settings->resolve_queue, settings->resolve_queue_reject};
	struct pool_load load = {.threads = pool->threads};

	if (pool->free > pool->waiting)
		load.idle = pool->free - pool->waiting;
	else
		load.queued = pool->waiting - pool->free;
	return pool_admit(shape, load);
}

/* The callers in line have nobody to wait for. */
static void line_dismiss(struct pool *pool)
{
	struct request *request;

	while ((request = line_take(pool)) != NULL) {
		request->is_unasked = true;
		request_publish(request);
	}
}

/* False where it is nobody's: no thread could be made for it. */
static bool worker_begin(struct pool *pool, struct request *request)
{
	bool is_taken;

	if (worker_start(pool) == 0)
		return true;
	pthread_mutex_lock(&mutex);
	pool->threads--;
	pool->free--;
	is_taken = !line_remove(pool, request);
	if (!pool->threads)
		line_dismiss(pool);
	pthread_mutex_unlock(&mutex);
	return is_taken;
}

static void pool_ring(struct pool *pool)
{
	atomic_fetch_add_explicit(&pool->bell, 1, memory_order_release);
	raw_syscall(SYS_futex, (long)&pool->bell, FUTEX_WAKE_PRIVATE, 1, 0, 0, 0);
}

/* All signals are blocked. */
static enum resolver_end submit(const struct rule *rule, struct request *request)
{
	struct pool *pool = request->pool;
	enum pool_answer answer;

	pthread_mutex_lock(&mutex);
	answer = admit(rule, pool);
	if (answer != POOL_REJECTS)
		line_append(pool, request);
	if (answer == POOL_STARTS) {
		pool->threads++;
		pool->free++;
	}
	pthread_mutex_unlock(&mutex);
	if (answer == POOL_REJECTS)
		return RESOLVER_REJECTED;
	if (answer == POOL_HANDS_OVER)
		pool_ring(pool);
	return answer != POOL_STARTS || worker_begin(pool, request) ? RESOLVER_ANSWERED
								    : RESOLVER_UNAVAILABLE;
}

/* Conversions of names go by the caller's own locale, if he has one. */
static bool is_of_caller(const struct question *question)
{
	return question->hints && question->hints->ai_flags & (AI_IDN | AI_CANONIDN) &&
	       uselocale((locale_t)0) != LC_GLOBAL_LOCALE;
}

/* Not one that clone() made out of our sight: the pool's threads are its parent's. */
static bool is_own_process(void)
{
	return (uint32_t)raw_syscall(SYS_getpid, 0, 0, 0, 0, 0, 0) == runtime.pid;
}

static bool may_ask(const struct question *question)
{
	return runtime.config.timer != TIMER_OFF &&
	       !atomic_load_explicit(&has_moved, memory_order_relaxed) && is_own_process() &&
	       !is_of_caller(question) && !res_state_is_changed();
}

bool resolver_is_elsewhere(void)
{
	bool is_elsewhere = atomic_load_explicit(&has_moved, memory_order_relaxed);
	uint64_t signals;

	if (is_elsewhere || !own_calls_begin())
		return is_elsewhere;
	signals = thread_block_signals();
	is_elsewhere = res_state_is_changed();
	thread_restore_signals(signals);
	own_calls_end();
	return is_elsewhere;
}

/* True where it stood there. Under a filter it stays: who comes to it finds it left. */
static bool leave_line(struct request *request)
{
	bool was_waiting;
	uint64_t signals;

	if (!own_calls_begin())
		return false;
	signals = thread_block_signals();
	pthread_mutex_lock(&mutex);
	was_waiting = line_remove(request->pool, request);
	pthread_mutex_unlock(&mutex);
	thread_restore_signals(signals);
	own_calls_end();
	return was_waiting;
}

/* Nobody waits for it any more. False: it is done. */
static bool abandon(struct request *request)
{
	if (!leave_line(request))
		return request_leave(request);
	request_free(request);
	return true;
}

/* The answer, in time or just so; or it is not waited for any more, as a filter came. */
static enum resolver_end finish(struct request *request, struct request_answer *ret_answer)
{
	enum resolver_end end = RESOLVER_ANSWERED;
	uint64_t deadline_ns = request->deadline_ns;

	own = NULL;
	if (!request_is_done(request) && abandon(request))
		return clock_now_ns() < deadline_ns ? RESOLVER_UNAVAILABLE : RESOLVER_TIMED_OUT;
	if (request->is_unasked)
		end = RESOLVER_UNAVAILABLE;
	else if (request->is_late)
		end = RESOLVER_TIMED_OUT;
	*ret_answer = request->answer;
	free(request);
	return end;
}

/* RESOLVER_ANSWERED: it will be, and *ret_request is what to wait for. */
static enum resolver_end begin(const struct rule *rule, const struct question *question,
		size_t size, uint64_t deadline_ns, const struct request_answer *before,
		struct request **ret_request)
{
	enum resolver_end end = RESOLVER_UNAVAILABLE;
	struct request *request;
	uint64_t signals;
	int kept = errno;

	signals = thread_block_signals();
	request = may_ask(question) ? request_make(question) : NULL;
	if (request) {
		request->pool = &pools[rule - runtime.config.rules];
		request->deadline_ns = deadline_ns;
		request->size = size;
		request->answer.h_error = before->h_error;
		request->answer.system_error = kept;
		end = submit(rule, request);
	}
	if (end == RESOLVER_ANSWERED)
		*ret_request = own = request;
	else
		free(request);
	thread_restore_signals(signals);
	return end;
}

enum resolver_end resolver_ask(const struct rule *rule, const struct question *question,
		size_t size, uint64_t deadline_ns, struct request_answer *ret_answer)
{
	struct request *request;
	enum resolver_end end;

	if (!own_calls_begin())
		return RESOLVER_UNAVAILABLE;
	end = begin(rule, question, size, deadline_ns, ret_answer, &request);
	own_calls_end();
	if (end != RESOLVER_ANSWERED)
		return end;
	request_wait(request);
	return finish(request, ret_answer);
}

/* A signal handler there may have come upon a caller who waits, and will go on. (On the same stack
 * it is inside his lookup, and leaves nothing.) In doubt. */
static bool is_on_signal_stack(void)
{
	stack_t stack = {.ss_flags = 0};

	if (!own_calls_begin())
		return true;
	raw_syscall(SYS_sigaltstack, 0, (long)&stack, 0, 0, 0, 0);
	own_calls_end();
	return stack.ss_flags & SS_ONSTACK;
}

void resolver_leave(void)
{
	struct request *request = own;

	if (!request || is_on_signal_stack())
		return;
	own = NULL;
	if (!abandon(request))
		request_free(request);
}

void resolver_moved(void)
{
	atomic_store_explicit(&has_moved, true, memory_order_relaxed);
}

void resolver_forked(void)
{
	mutex = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
	/* Requests that nobody will serve are few, and not worth a look into a heap that this
	 * thread did not leave in order. */
	for (size_t i = 0; i < CONFIG_MAX_RULES; i++)
		pools[i] = (struct pool){.first = NULL};
	own = NULL;
}
