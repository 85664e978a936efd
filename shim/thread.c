/* SPDX-License-Identifier: MIT */
#include "shim/thread.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <link.h>
#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>

#include "shim/own_call.h"
#include "shim/raw.h"

/* All but the one by which setuid() reaches every thread: who makes it waits for all, with a lock
 * that pthread_create() wants. */
#define ALL_SIGNALS    (~(UINT64_C(1) << (__SIGRTMIN + 1 - 1)))
/* Every thread of a JVM blocks it. */
#define BLOCKED_BY_JVM (UINT64_C(1) << (SIGQUIT - 1))
/* No set of blocked signals: two of these cannot be. */
#define NOT_BLOCKED    UINT64_MAX
#define THREADS_MAX    256

/* Thread ids have 22 bits. */
#define SLOT_CLAIMED (1u << 30) /* its thread is being made */
#define SLOT_ENDED   (1u << 31) /* the kernel may not have let go of it yet */

struct slot {
	_Atomic uint32_t id; /* of its thread; 0: free */
	_Atomic(_Atomic uint32_t *) bell; /* of its plan; who holds may see the next one's */
	struct thread_plan plan;
};

static struct slot slots[THREADS_MAX];
static _Atomic uint32_t slots_used; /* none beyond was ever claimed */
static _Atomic uint32_t holds;	    /* thread_hold() without its thread_release() */
static _Atomic uint32_t alive;

static uint32_t own_id(void)
{
	return (uint32_t)raw_syscall(SYS_gettid, 0, 0, 0, 0, 0, 0);
}

/* glibc counts a thread as ended before the kernel does, and unshare() asks the kernel. */
static bool is_gone(uint32_t id)
{
	long process_id = raw_syscall(SYS_getpid, 0, 0, 0, 0, 0, 0);

	return raw_syscall(SYS_tgkill, process_id, id, 0, 0, 0, 0) == -ESRCH;
}

static struct slot *slot_claim(void)
{
	uint32_t used = atomic_load_explicit(&slots_used, memory_order_relaxed), seen;

	for (uint32_t i = 0; i < THREADS_MAX; i++) {
		seen = atomic_load_explicit(&slots[i].id, memory_order_relaxed);
		if (seen && !(seen & SLOT_ENDED && is_gone(seen & ~SLOT_ENDED)))
			continue;
		/* seq_cst, as in all that orders slots against `holds`: we claim and then look for
		 * a hold, who holds looks then for what is claimed. */
		if (!atomic_compare_exchange_strong_explicit(&slots[i].id, &seen, SLOT_CLAIMED,
				    memory_order_seq_cst, memory_order_relaxed))
			continue;
		while (used < i + 1 &&
				!atomic_compare_exchange_weak_explicit(&slots_used, &used, i + 1,
						memory_order_seq_cst, memory_order_relaxed))
			;
		return &slots[i];
	}
	return NULL;
}

static void *slot_run(void *argument)
{
	struct slot *slot = argument;
	struct thread_plan plan = slot->plan;
	uint32_t id = own_id();

	atomic_fetch_add_explicit(&alive, 1, memory_order_relaxed);
	atomic_store_explicit(&slot->id, id, memory_order_seq_cst);
	raw_syscall(SYS_prctl, PR_SET_NAME, (long)plan.name, 0, 0, 0, 0);
	plan.run(plan.argument);
	atomic_fetch_sub_explicit(&alive, 1, memory_order_relaxed);
	atomic_store_explicit(&slot->id, id | SLOT_ENDED, memory_order_seq_cst);
	return NULL;
}

static int add_thread_local(struct dl_phdr_info *object, size_t size, void *sum)
{
	(void)size;
	for (size_t i = 0; i < object->dlpi_phnum; i++) {
		const ElfW(Phdr) *part = &object->dlpi_phdr[i];

		if (part->p_type == PT_TLS)
			*(size_t *)sum += part->p_memsz + part->p_align;
	}
	return 0;
}

/* Thread-local data of the program and its libraries lies on the stack. */
static size_t thread_local_bytes(void)
{
	size_t sum = 0;

	dl_iterate_phdr(add_thread_local, &sum);
	return sum;
}

static int thread_create(struct slot *slot, size_t stack_bytes)
{
	pthread_attr_t attributes;
	pthread_t thread;
	sigset_t all;
	int error = pthread_attr_init(&attributes);

	if (error)
		return error;
	sigfillset(&all);
	pthread_attr_setsigmask_np(&attributes, &all);
	pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
	if (stack_bytes)
		pthread_attr_setstacksize(&attributes, stack_bytes);
	error = pthread_create(&thread, &attributes, slot_run, slot);
	pthread_attr_destroy(&attributes);
	return error;
}

/* A zombie has no memory to read from. */
static bool is_first_thread_gone(void)
{
	long process_id = raw_syscall(SYS_getpid, 0, 0, 0, 0, 0, 0);
	char from = 0, to;
	struct iovec remote = {&from, 1}, local = {&to, 1};

	return raw_syscall(SYS_process_vm_readv, process_id, (long)&local, 1, (long)&remote, 1,
			       0) != 1;
}

long thread_alive_count(void)
{
	struct stat tasks;

	if (raw_syscall(SYS_newfstatat, AT_FDCWD, (long)"/proc/self/task", (long)&tasks, 0, 0, 0))
		return 0;
	return (long)tasks.st_nlink - 2;
}

/*
 * Have all threads of the program ended? Only its first one may be left, as a zombie, which has no
 * program file any more. Asked without a descriptor. In doubt they have: no program may be kept
 * alive by us, and where /proc is missing we only know of the first one.
 */
static bool is_program_gone(void)
{
	char path[1];
	long threads = thread_alive_count();

	if (!threads)
		return is_first_thread_gone();
	if (threads > 1 + (long)atomic_load_explicit(&alive, memory_order_relaxed))
		return false;
	return raw_syscall(SYS_readlinkat, AT_FDCWD, (long)"/proc/self/exe", (long)path,
			       sizeof(path), 0, 0) <= 0;
}

/* In a claimed slot. */
static int slot_start(struct slot *slot)
{
	int error;

	/* Who holds sees that it is starting, or we see the hold; when that was released, the
	 * filter that it was for. */
	if (atomic_load_explicit(&holds, memory_order_seq_cst) || own_calls_are_forbidden())
		return EBUSY;
	/* It would end at once, and be started again for each call. */
	if (is_program_gone())
		return ESRCH;
	error = thread_create(slot,
			(size_t)PTHREAD_STACK_MIN + slot->plan.stack_bytes + thread_local_bytes());
	return error == EINVAL ? thread_create(slot, 0) : error;
}

int thread_start(const struct thread_plan *plan)
{
	int kept = errno, error;
	struct slot *slot = slot_claim();

	if (!slot)
		return EAGAIN;
	slot->plan = *plan;
	atomic_store_explicit(&slot->bell, plan->bell, memory_order_relaxed);
	error = slot_start(slot);
	if (error)
		atomic_store_explicit(&slot->id, 0, memory_order_seq_cst);
	errno = kept;
	return error;
}

bool thread_must_end(void)
{
	return atomic_load_explicit(&holds, memory_order_seq_cst) || own_calls_are_forbidden() ||
	       is_program_gone();
}

void thread_ring(_Atomic uint32_t *bell)
{
	atomic_fetch_add_explicit(bell, 1, memory_order_release);
	raw_syscall(SYS_futex, (long)bell, FUTEX_WAKE_PRIVATE, INT_MAX, 0, 0, 0);
}

void thread_wait(_Atomic uint32_t *bell, uint32_t seen, uint64_t duration_ns)
{
	struct timespec duration = {.tv_nsec = (long)duration_ns};

	if (duration_ns > THREAD_ROUND_NS)
		duration.tv_nsec = THREAD_ROUND_NS;
	raw_syscall(SYS_futex, (long)bell, FUTEX_WAIT_PRIVATE, seen, (long)&duration, 0, 0);
}

static void slot_end(struct slot *slot, struct own_wait *wait)
{
	uint32_t seen = atomic_load_explicit(&slot->id, memory_order_seq_cst), id;

	while (seen == SLOT_CLAIMED && own_wait_step(wait))
		seen = atomic_load_explicit(&slot->id, memory_order_seq_cst);
	id = seen & ~SLOT_ENDED;
	/* On a thread of ours when it was the last one alive: glibc runs exit handlers there. */
	if (!id || id == SLOT_CLAIMED || id == own_id())
		return;
	if (!(seen & SLOT_ENDED))
		thread_ring(atomic_load_explicit(&slot->bell, memory_order_relaxed));
	while (!is_gone(id) && own_wait_step(wait))
		;
	/* Unless another's hold has ended, and the next thread is there; or this one stays. */
	seen = id | SLOT_ENDED;
	atomic_compare_exchange_strong_explicit(
			&slot->id, &seen, 0, memory_order_relaxed, memory_order_relaxed);
}

void thread_hold(void)
{
	struct own_wait wait = { 0 };

	atomic_fetch_add_explicit(&holds, 1, memory_order_seq_cst);
	for (uint32_t i = 0; i < atomic_load_explicit(&slots_used, memory_order_seq_cst); i++)
		slot_end(&slots[i], &wait);
}

bool thread_is_held(void)
{
	return atomic_load_explicit(&holds, memory_order_relaxed);
}

void thread_release(void)
{
	atomic_fetch_sub_explicit(&holds, 1, memory_order_seq_cst);
}

void thread_forget(void)
{
	for (uint32_t i = 0; i < THREADS_MAX; i++)
		atomic_store_explicit(&slots[i].id, 0, memory_order_relaxed);
	atomic_store_explicit(&slots_used, 0, memory_order_relaxed);
	atomic_store_explicit(&holds, 0, memory_order_relaxed);
	atomic_store_explicit(&alive, 0, memory_order_relaxed);
}

static uint64_t signals_change(int how, uint64_t signals)
{
	uint64_t before = 0;

	raw_syscall(SYS_rt_sigprocmask, how, (long)&signals, (long)&before, sizeof(signals), 0, 0);
	return before;
}

bool thread_blocks_signals(void)
{
	return signals_change(SIG_BLOCK, 0) & ~BLOCKED_BY_JVM;
}

uint64_t thread_block_signals(void)
{
	return signals_change(SIG_SETMASK, ALL_SIGNALS);
}

void thread_restore_signals(uint64_t before)
{
	signals_change(SIG_SETMASK, before);
}

/* Left by a handler's longjmp it stays locked: then it is never had again, and nobody hangs. */
bool thread_lock(pthread_mutex_t *mutex, uint64_t *ret_signals)
{
	*ret_signals = NOT_BLOCKED;
	if (!own_calls_begin())
		return pthread_mutex_trylock(mutex) == 0;
	*ret_signals = thread_block_signals();
	pthread_mutex_lock(mutex);
	return true;
}

void thread_unlock(pthread_mutex_t *mutex, uint64_t signals)
{
	pthread_mutex_unlock(mutex);
	if (signals == NOT_BLOCKED)
		return;
	thread_restore_signals(signals);
	own_calls_end();
}
