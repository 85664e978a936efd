/* SPDX-License-Identifier: MIT */
#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <errno.h>
#include <netinet/in.h>
#include <pthread.h>
#include <resolv.h>
#include <semaphore.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "core/breaker.h"
#include "core/clock.h"
#include "core/control.h"
#include "shim/lookup.h"
#include "shim/names.h"
#include "shim/open_lookup.h"
#include "shim/real.h"
#include "shim/resolve.h"
#include "shim/resolver.h"
#include "shim/runtime.h"
#include "tests/support/sanitized.h"

int hook_getaddrinfo(const char *node, const char *service, const struct addrinfo *hints,
		struct addrinfo **result);
struct hostent *hook_gethostbyname(const char *name);
struct hostent *hook_gethostbyname2(const char *name, int family);
int hook_gethostbyname_r(const char *name, struct hostent *entry, char *buffer, size_t size,
		struct hostent **result, int *h_error);
int hook_gethostbyname2_r(const char *name, int family, struct hostent *entry, char *buffer,
		size_t size, struct hostent **result, int *h_error);

#define SECOND_NS 1000000000ull

/* libc, and what it says. */
static struct {
	int error, h_error, system_error;
	_Atomic int calls;
	_Atomic bool hangs;
	sem_t begun, may_end;
	char address[16];
} libc = {.address = "10.1.2.3"};

static int (*libc_getaddrinfo)(const char *node, const char *service, const struct addrinfo *hints,
		struct addrinfo **result);

static void serve(void)
{
	atomic_fetch_add(&libc.calls, 1);
	sem_post(&libc.begun);
	if (atomic_load(&libc.hangs))
		sem_wait(&libc.may_end);
}

static int fake_getaddrinfo(const char *node, const char *service, const struct addrinfo *hints,
		struct addrinfo **result)
{
	/* Kept answers are made of these. */
	if (hints && hints->ai_flags & AI_NUMERICHOST)
		return libc_getaddrinfo(node, service, hints, result);
	serve();
	errno = libc.system_error;
	return libc.error ? libc.error : libc_getaddrinfo(libc.address, service, hints, result);
}

static char first_address[] = {10, 1, 2, 3};
static char *addresses[] = {first_address, NULL};
static char *aliases[] = {"alias.test", NULL};
static struct hostent libcs_entry = {"canonical.test", aliases, AF_INET, 4, addresses};

static struct hostent *fake_gethostbyname(const char *name)
{
	(void)name;
	serve();
	errno = libc.system_error;
	h_errno = libc.h_error;
	return libc.h_error ? NULL : &libcs_entry;
}

static struct hostent *fake_gethostbyname2(const char *name, int family)
{
	(void)family;
	return fake_gethostbyname(name);
}

static int fake_gethostbyname_r(const char *name, struct hostent *entry, char *buffer, size_t size,
		struct hostent **result, int *h_error)
{
	(void)buffer;
	(void)name;
	serve();
	*result = NULL;
	*h_error = libc.h_error;
	if (libc.h_error)
		return libc.h_error == TRY_AGAIN ? errno = EAGAIN : 0;
	if (size < 64) {
		*h_error = NETDB_INTERNAL;
		return errno = ERANGE;
	}
	*entry = libcs_entry;
	*result = entry;
	return 0;
}

static int fake_gethostbyname2_r(const char *name, int family, struct hostent *entry, char *buffer,
		size_t size, struct hostent **result, int *h_error)
{
	(void)family;
	return fake_gethostbyname_r(name, entry, buffer, size, result, h_error);
}

/* The time is the test's where it does not wait for it. */
static _Atomic uint64_t added_ns;

static int read_clock(clockid_t clock, struct timespec *ret)
{
	int result = clock_gettime(clock, ret);

	ret->tv_sec += (time_t)(atomic_load(&added_ns) / SECOND_NS);
	return result;
}

static void pass(unsigned int seconds)
{
	atomic_fetch_add(&added_ns, seconds * SECOND_NS);
}

static void start_with(const char *text)
{
	char *const environment[] = {(char *)text, NULL};

	config_load(&runtime.config, environment, NULL);
	cr_assert(names_start());
	cr_assert_eq(runtime.config.rule_count, 1, "%s", runtime.config.problems[0].text);
	runtime.segment = segment_open_private();
	cr_assert_not_null(runtime.segment);
	runtime.rule_records[0] = segment_rule(runtime.segment, "DB", NULL);
	sem_init(&libc.begun, 0, 0);
	sem_init(&libc.may_end, 0, 0);
	clock_use(read_clock);
	libc_getaddrinfo = getaddrinfo;
	runtime.pid = (uint32_t)getpid();
	real();
	real_table.getaddrinfo = fake_getaddrinfo;
	real_table.gethostbyname = fake_gethostbyname;
	real_table.gethostbyname2 = fake_gethostbyname2;
	real_table.gethostbyname_r = fake_gethostbyname_r;
	real_table.gethostbyname2_r = fake_gethostbyname2_r;
	atomic_store_explicit(&runtime.is_active, true, memory_order_release);
}

#define RULE "SHUNT_BREAK_DB=db.internal volume=3 sleep=1h lease=1h abandon=1h "

static void start_pooled(void)
{
	start_with(RULE "resolve-timeout=1h resolve-pool=1");
}

static void start_caching(void)
{
	start_with(RULE "resolve-cache=10s");
}

static void start_stale(void)
{
	start_with(RULE "resolve-stale=1h");
}

static void start_all(void)
{
	start_with(RULE "resolve-timeout=1h resolve-pool=1 resolve-cache=10s resolve-stale=1h");
}

TestSuite(resolve_pooled, .init = start_pooled, .timeout = 60);
TestSuite(resolve_cache, .init = start_caching, .timeout = 60);
TestSuite(resolve_stale, .init = start_stale, .timeout = 60);
TestSuite(resolve_all, .init = start_all, .timeout = 60);

static struct cell *cell(void)
{
	struct endpoint endpoint = {.host = "db.internal", .is_lookup = true};

	return runtime_cell(&runtime.config.rules[0], CELL_LOOKUP, &endpoint, clock_now_ns(), NULL);
}

static struct breaker breaker(void)
{
	return runtime_breaker(&runtime.config.rules[0], cell());
}

static uint64_t total(enum cell_total which)
{
	return atomic_load_explicit(&cell()->totals[which], memory_order_relaxed);
}

static uint64_t unbounded(void)
{
	return atomic_load(&runtime.rule_records[0]->unenforced[UNENFORCED_LOOKUP]);
}

static enum circuit_state state(void)
{
	struct breaker now = breaker();

	return breaker_state(&now, clock_now_ns());
}

/* From now on libc does not answer, and nobody waits for it for long. */
static void libc_hangs(void)
{
	runtime.config.rules[0].settings.resolve_timeout_ns = 30000000;
	atomic_store(&libc.hangs, true);
}

/* It does again. */
static void libc_goes_on(void)
{
	runtime.config.rules[0].settings.resolve_timeout_ns = 3600 * SECOND_NS;
	atomic_store(&libc.hangs, false);
	sem_post(&libc.may_end);
}

/* The answer's address as text, or what went wrong. */
static const char *get_service(const char *service)
{
	static char text[INET6_ADDRSTRLEN];
	struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *list = NULL;
	int error = hook_getaddrinfo("db.internal", service, &hints, &list);

	if (error)
		return gai_strerror(error);
	inet_ntop(AF_INET, &((struct sockaddr_in *)(void *)list->ai_addr)->sin_addr, text,
			sizeof(text));
	freeaddrinfo(list);
	return text;
}

static const char *get(void)
{
	return get_service("80");
}

#define AGAIN "Temporary failure in name resolution"

/* A lookup that nobody waits for any more gets the only thread. How many were late until then? */
static uint64_t occupy(void)
{
	int before = atomic_load(&libc.calls);
	uint64_t late = total(CELL_TOTAL_timeout);

	runtime.config.rules[0].settings.volume = 1000;
	libc_hangs();
	while (atomic_load(&libc.calls) == before)
		cr_assert_str_eq(get(), AGAIN);
	return total(CELL_TOTAL_timeout) - late;
}

Test(resolve_pooled, an_answer_in_time_is_a_success)
{
	errno = EDOM;
	cr_assert_str_eq(get(), "10.1.2.3");
	cr_assert_eq(errno, EDOM);
	cr_assert_eq(total(CELL_TOTAL_success), 1);
	cr_assert_eq(unbounded(), 0);
}

Test(resolve_pooled, one_that_is_late_is_a_timeout_and_looks_like_no_answer)
{
	libc_hangs();
	errno = h_errno = 0;
	cr_assert_str_eq(get(), AGAIN);
	cr_assert_eq(errno, EAGAIN);
	cr_assert_eq(h_errno, TRY_AGAIN);
	cr_assert_eq(total(CELL_TOTAL_timeout), 1);
	libc_goes_on();
}

Test(resolve_pooled, one_that_finds_no_thread_is_rejected_and_counts)
{
	runtime.config.rules[0].settings.volume = (uint32_t)occupy() + 2;
	cr_assert_str_eq(get(), AGAIN);
	cr_assert_eq(state(), CIRCUIT_CLOSED);
	cr_assert_str_eq(get(), AGAIN);
	cr_assert_eq(total(CELL_TOTAL_rejected), 2);
	cr_assert_eq(total(CELL_TOTAL_rejected_pool), 2);
	cr_assert_eq(state(), CIRCUIT_OPEN);
	cr_assert_str_eq(get(), AGAIN);
	cr_assert_eq(total(CELL_TOTAL_short_circuited), 1);
	cr_assert_eq(atomic_load(&libc.calls), 1);
	libc_goes_on();
}

Test(resolve_pooled, rejected_ones_may_be_ignored)
{
	runtime.config.rules[0].settings.rejects_count = false;
	runtime.config.rules[0].settings.volume = (uint32_t)occupy() + 1;
	for (int i = 0; i < 9; i++)
		cr_assert_str_eq(get(), AGAIN);
	cr_assert_eq(total(CELL_TOTAL_rejected_pool), 9);
	cr_assert_eq(state(), CIRCUIT_CLOSED);
	libc_goes_on();
}

Test(resolve_pooled, a_full_pool_does_not_eat_the_probe)
{
	struct breaker now = breaker();

	occupy();
	control_half(&now, clock_now_ns());
	cr_assert_str_eq(get(), AGAIN);
	cr_assert_str_eq(get(), AGAIN);
	cr_assert_eq(total(CELL_TOTAL_rejected_pool), 2);
	cr_assert_eq(state(), CIRCUIT_HALF_OPEN);
	libc_goes_on();
	while (strcmp(get(), "10.1.2.3") != 0)
		;
	cr_assert_eq(state(), CIRCUIT_CLOSED);
}

Test(resolve_pooled, a_failure_is_handed_on_with_all_that_belongs_to_it)
{
	libc.error = EAI_SYSTEM;
	libc.system_error = EMFILE;
	cr_assert_str_eq(get(), gai_strerror(EAI_SYSTEM));
	cr_assert_eq(errno, EMFILE);
	cr_assert_eq(total(CELL_TOTAL_cancelled), 1);
	libc.error = EAI_NONAME;
	cr_assert_str_eq(get(), gai_strerror(EAI_NONAME));
	cr_assert_eq(total(CELL_TOTAL_cancelled), 2);
}

Test(resolve_pooled, the_gethostbyname_family_runs_there_as_well)
{
	struct hostent entry, *result = NULL, *found;
	char buffer[512];
	int h_error = 7;

	errno = EDOM;
	found = hook_gethostbyname("db.internal");
	cr_assert_str_eq(found->h_name, "canonical.test");
	cr_assert_neq(found, &libcs_entry);
	cr_assert_str_eq(hook_gethostbyname2("db.internal", AF_INET)->h_name, "canonical.test");
	cr_assert_eq(hook_gethostbyname_r("db.internal", &entry, buffer, sizeof(buffer), &result,
				     &h_error),
			0);
	cr_assert_eq(result, &entry);
	cr_assert_str_eq(entry.h_name, "canonical.test");
	cr_assert(entry.h_name > buffer && entry.h_name < buffer + sizeof(buffer));
	cr_assert_eq(h_error, NETDB_SUCCESS);
	cr_assert_eq(hook_gethostbyname2_r("db.internal", AF_INET, &entry, buffer, sizeof(buffer),
				     &result, &h_error),
			0);
	cr_assert_eq(errno, EDOM);
	cr_assert_eq(total(CELL_TOTAL_success), 4);
}

Test(resolve_pooled, a_late_gethostbyname_keeps_its_contract)
{
	struct hostent entry, *result = &entry;
	char buffer[512];
	int h_error = 0;

	runtime.config.rules[0].settings.volume = 1000;
	libc_hangs();
	while (!atomic_load(&libc.calls)) {
		h_errno = 0;
		cr_assert_null(hook_gethostbyname("db.internal"));
		cr_assert_eq(h_errno, TRY_AGAIN);
		cr_assert_eq(errno, EAGAIN);
	}
	h_errno = 0;
	cr_assert_null(hook_gethostbyname2("db.internal", AF_INET6));
	cr_assert_eq(h_errno, TRY_AGAIN);
	cr_assert_eq(hook_gethostbyname_r("db.internal", &entry, buffer, sizeof(buffer), &result,
				     &h_error),
			EAGAIN);
	cr_assert_null(result);
	cr_assert_eq(h_error, TRY_AGAIN);
	cr_assert_eq(total(CELL_TOTAL_rejected_pool), 2);
	libc_goes_on();
}

Test(resolve_pooled, a_buffer_that_is_too_small_is_no_outcome)
{
	struct hostent entry, *result = &entry;
	char buffer[63];
	int h_error = 0;

	cr_assert_eq(hook_gethostbyname_r("db.internal", &entry, buffer, sizeof(buffer), &result,
				     &h_error),
			ERANGE);
	cr_assert_eq(errno, ERANGE);
	cr_assert_null(result);
	cr_assert_eq(h_error, NETDB_INTERNAL);
	cr_assert_eq(total(CELL_TOTAL_unused), 1);
	cr_assert_eq(hook_gethostbyname_r("db.internal", &entry, NULL, 0, &result, &h_error),
			ERANGE);
}

Test(resolve_pooled, a_host_that_is_not_found_is_not_found)
{
	struct hostent entry, *result = &entry;
	char buffer[512];
	int h_error = 0;

	libc.h_error = HOST_NOT_FOUND;
	cr_assert_eq(hook_gethostbyname_r("db.internal", &entry, buffer, sizeof(buffer), &result,
				     &h_error),
			0);
	cr_assert_null(result);
	cr_assert_eq(h_error, HOST_NOT_FOUND);
	cr_assert_null(hook_gethostbyname("db.internal"));
	cr_assert_eq(h_errno, HOST_NOT_FOUND);
	cr_assert_eq(total(CELL_TOTAL_cancelled), 2);
}

Test(resolve_pooled, what_cannot_be_bounded_is_asked_all_the_same_and_counted)
{
	resolver_moved();
	cr_assert_str_eq(get(), "10.1.2.3");
	cr_assert_eq(hook_gethostbyname("db.internal"), &libcs_entry);
	cr_assert_eq(unbounded(), 2);
	cr_assert_eq(total(CELL_TOTAL_success), 2);
}

Test(resolve_pooled, where_the_rule_only_watches_a_late_answer_is_given_and_counted)
{
	runtime.observe = true;
	cr_assert_str_eq(get(), "10.1.2.3");
	runtime.config.rules[0].settings.resolve_timeout_ns = 1;
	cr_assert_str_eq(get(), "10.1.2.3");
	cr_assert_eq(total(CELL_TOTAL_success), 1);
	cr_assert_eq(total(CELL_TOTAL_timeout), 1);
	cr_assert_eq(unbounded(), 0);
}

static void *look_up(void *nothing)
{
	get();
	return nothing;
}

Test(resolve_pooled, a_thread_cancelled_in_a_lookup_settles_it)
{
	pthread_t thread;

	SKIP_IF_SANITIZED("it takes the stack of a cancelled thread for overrun");
	open_lookup_start();
	atomic_store(&libc.hangs, true);
	cr_assert_eq(pthread_create(&thread, NULL, look_up, NULL), 0);
	sem_wait(&libc.begun);
	pthread_cancel(thread);
	pthread_join(thread, NULL);
	cr_assert_eq(total(CELL_TOTAL_cancelled), 1);
	sem_post(&libc.may_end);
}

/* A rule without a cache asks each time. */
Test(resolve_pooled, nothing_is_kept_that_nobody_wants)
{
	for (int i = 0; i < 3; i++)
		cr_assert_str_eq(get(), "10.1.2.3");
	cr_assert_eq(atomic_load(&libc.calls), 3);
	cr_assert_eq(total(CELL_TOTAL_cached), 0);
}

Test(resolve_cache, the_same_question_is_asked_once)
{
	for (int i = 0; i < 5; i++)
		cr_assert_str_eq(get(), "10.1.2.3");
	cr_assert_eq(atomic_load(&libc.calls), 1);
	cr_assert_eq(total(CELL_TOTAL_success), 1);
	cr_assert_eq(total(CELL_TOTAL_cached), 4);
	cr_assert_str_eq(get_service("81"), "10.1.2.3");
	cr_assert_eq(atomic_load(&libc.calls), 2);
}

Test(resolve_cache, it_is_asked_again_when_the_answer_is_old)
{
	cr_assert_str_eq(get(), "10.1.2.3");
	strcpy(libc.address, "10.9.9.9");
	pass(9);
	cr_assert_str_eq(get(), "10.1.2.3");
	pass(2);
	cr_assert_str_eq(get(), "10.9.9.9");
	cr_assert_str_eq(get(), "10.9.9.9");
	cr_assert_eq(atomic_load(&libc.calls), 2);
}

Test(resolve_cache, an_old_answer_does_not_stand_in_for_a_failure)
{
	cr_assert_str_eq(get(), "10.1.2.3");
	pass(11);
	libc.error = EAI_AGAIN;
	cr_assert_str_eq(get(), AGAIN);
	cr_assert_eq(total(CELL_TOTAL_failure), 1);
}

Test(resolve_cache, a_young_answer_is_given_whatever_the_circuit_says)
{
	struct breaker now = breaker();

	cr_assert_str_eq(get(), "10.1.2.3");
	control_trip(&now, clock_now_ns());
	cr_assert_str_eq(get(), "10.1.2.3");
	cr_assert_eq(total(CELL_TOTAL_cached), 1);
	cr_assert_eq(total(CELL_TOTAL_short_circuited), 0);
}

Test(resolve_cache, failures_are_not_kept)
{
	libc.error = EAI_NONAME;
	cr_assert_str_eq(get(), gai_strerror(EAI_NONAME));
	libc.error = 0;
	cr_assert_str_eq(get(), "10.1.2.3");
}

static void compare_entry(const struct hostent *entry)
{
	cr_assert_str_eq(entry->h_name, "canonical.test");
	cr_assert_str_eq(entry->h_aliases[0], "alias.test");
	cr_assert_null(entry->h_aliases[1]);
	cr_assert_eq(entry->h_addrtype, AF_INET);
	cr_assert_eq(memcmp(entry->h_addr_list[0], first_address, 4), 0);
	cr_assert_null(entry->h_addr_list[1]);
}

Test(resolve_cache, the_gethostbyname_family_is_served_as_well)
{
	struct hostent entry, *result = NULL;
	char buffer[512];
	int h_error = 7;

	compare_entry(hook_gethostbyname("db.internal"));
	compare_entry(hook_gethostbyname("db.internal"));
	cr_assert_eq(hook_gethostbyname_r("db.internal", &entry, buffer, sizeof(buffer), &result,
				     &h_error),
			0);
	compare_entry(result);
	cr_assert_eq(h_error, NETDB_SUCCESS);
	cr_assert_eq(atomic_load(&libc.calls), 1);
	/* Too small for what is kept. */
	cr_assert_eq(hook_gethostbyname_r("db.internal", &entry, buffer, 8, &result, &h_error),
			ERANGE);
	cr_assert_null(result);
	cr_assert_eq(h_error, NETDB_INTERNAL);
	cr_assert_eq(atomic_load(&libc.calls), 1);
	compare_entry(hook_gethostbyname2("db.internal", AF_INET));
	cr_assert_eq(atomic_load(&libc.calls), 2);
	cr_assert_eq(total(CELL_TOTAL_cached), 2);
}

/* Every way to ask, once. */
static void ask_all(void)
{
	struct hostent entry, *result = NULL;
	char buffer[512];
	int h_error;

	get();
	hook_gethostbyname("db.internal");
	hook_gethostbyname2("db.internal", AF_INET);
	hook_gethostbyname_r("db.internal", &entry, buffer, sizeof(buffer), &result, &h_error);
	hook_gethostbyname2_r("db.internal", AF_INET, &entry, buffer, sizeof(buffer), &result,
			&h_error);
}

Test(resolve_cache, who_has_a_resolver_state_of_his_own_neither_takes_nor_leaves_an_answer)
{
	int asked;

	cr_assert_eq(res_init(), 0);
	ask_all();
	asked = atomic_load(&libc.calls);
	ask_all();
	cr_assert_eq(atomic_load(&libc.calls), asked, "all are kept");
	_res.ndots++;
	ask_all();
	cr_assert_eq(atomic_load(&libc.calls), asked + 5);
	strcpy(libc.address, "10.9.9.9");
	cr_assert_str_eq(get(), "10.9.9.9");
	_res.ndots--;
	cr_assert_str_eq(get(), "10.1.2.3");
	cr_assert_eq(atomic_load(&libc.calls), asked + 6);
}

Test(resolve_cache, after_a_move_to_other_namespaces_libc_is_asked)
{
	int asked;

	ask_all();
	asked = atomic_load(&libc.calls);
	resolver_moved();
	errno = EDOM;
	ask_all();
	cr_assert_eq(errno, EDOM);
	ask_all();
	cr_assert_eq(atomic_load(&libc.calls), asked + 10);
}

Test(resolve_stale, an_answer_from_elsewhere_does_not_stand_in)
{
	cr_assert_eq(res_init(), 0);
	ask_all();
	libc.error = EAI_AGAIN;
	libc.h_error = TRY_AGAIN;
	_res.ndots++;
	cr_assert_str_eq(get(), AGAIN);
	cr_assert_null(hook_gethostbyname("db.internal"));
	_res.ndots--;
	cr_assert_str_eq(get(), "10.1.2.3");
	resolver_moved();
	cr_assert_str_eq(get(), AGAIN);
	cr_assert_null(hook_gethostbyname("db.internal"));
}

/* As the program last looked it up, it must be known when the address is connected to. */
static const char *learned(void)
{
	static char host[HOST_SIZE];
	struct address address = address_from_v4(first_address);

	names_find(&address, host);
	return host;
}

Test(resolve_cache, names_are_learned_from_kept_answers_too)
{
	struct address address = address_from_v4(first_address);

	cr_assert_str_eq(get(), "10.1.2.3");
	names_looked_up("other.internal");
	names_learn("other.internal", &address, true);
	cr_assert_str_eq(learned(), "other.internal");
	cr_assert_str_eq(get(), "10.1.2.3");
	cr_assert_str_eq(learned(), "db.internal");
	compare_entry(hook_gethostbyname("db.internal"));
	names_looked_up("other.internal");
	cr_assert_str_eq(learned(), "other.internal");
	compare_entry(hook_gethostbyname("db.internal"));
	cr_assert_str_eq(learned(), "db.internal");
}

Test(resolve_cache, where_the_rule_only_watches_libc_is_asked)
{
	runtime.observe = true;
	get();
	get();
	cr_assert_eq(atomic_load(&libc.calls), 2);
	cr_assert_eq(total(CELL_TOTAL_cached), 0);
}

Test(resolve_cache, a_rule_that_is_not_enabled_does_nothing)
{
	runtime.config.rules[0].settings.enabled = false;
	get();
	get();
	cr_assert_eq(atomic_load(&libc.calls), 2);
	cr_assert_eq(total(CELL_TOTAL_cached), 0);
}

Test(resolve_stale, libc_is_asked_while_it_answers)
{
	for (int i = 0; i < 3; i++)
		cr_assert_str_eq(get(), "10.1.2.3");
	cr_assert_eq(atomic_load(&libc.calls), 3);
	cr_assert_eq(total(CELL_TOTAL_cached), 0);
}

Test(resolve_stale, the_last_good_answer_stands_in_for_a_failure)
{
	cr_assert_str_eq(get(), "10.1.2.3");
	libc.error = EAI_AGAIN;
	pass(1800);
	errno = EDOM;
	cr_assert_str_eq(get(), "10.1.2.3");
	cr_assert_eq(errno, EDOM);
	cr_assert_eq(total(CELL_TOTAL_failure), 1);
	cr_assert_eq(total(CELL_TOTAL_cached), 1);
	pass(1801);
	cr_assert_str_eq(get(), AGAIN);
	cr_assert_eq(total(CELL_TOTAL_cached), 1);
}

Test(resolve_stale, and_for_an_open_circuit)
{
	struct breaker now = breaker();

	cr_assert_str_eq(get(), "10.1.2.3");
	control_trip(&now, clock_now_ns());
	cr_assert_str_eq(get(), "10.1.2.3");
	cr_assert_eq(total(CELL_TOTAL_short_circuited), 1);
	cr_assert_eq(total(CELL_TOTAL_cached), 1);
	cr_assert_str_eq(get_service("never asked"), AGAIN);
}

Test(resolve_stale, but_not_for_a_name_that_is_gone)
{
	cr_assert_str_eq(get(), "10.1.2.3");
	libc.error = EAI_NONAME;
	cr_assert_str_eq(get(), gai_strerror(EAI_NONAME));
	cr_assert_eq(total(CELL_TOTAL_cached), 0);
}

Test(resolve_stale, the_gethostbyname_family_as_well)
{
	struct hostent entry, *result = NULL;
	char buffer[512];
	int h_error = 7;

	runtime.config.rules[0].settings.volume = 100;
	compare_entry(hook_gethostbyname("db.internal"));
	libc.h_error = TRY_AGAIN;
	compare_entry(hook_gethostbyname("db.internal"));
	cr_assert_eq(hook_gethostbyname_r("db.internal", &entry, buffer, sizeof(buffer), &result,
				     &h_error),
			0);
	compare_entry(result);
	cr_assert_eq(h_error, NETDB_SUCCESS);
	cr_assert_null(hook_gethostbyname2("db.internal", AF_INET6));
	cr_assert_eq(h_errno, TRY_AGAIN);
	cr_assert_eq(total(CELL_TOTAL_cached), 2);
	libc.h_error = HOST_NOT_FOUND;
	cr_assert_null(hook_gethostbyname("db.internal"));
}

Test(resolve_all, a_late_or_rejected_lookup_is_given_the_last_good_answer)
{
	cr_assert_str_eq(get(), "10.1.2.3");
	pass(60);
	runtime.config.rules[0].settings.volume = 1000;
	libc_hangs();
	while (!total(CELL_TOTAL_rejected_pool))
		cr_assert_str_eq(get(), "10.1.2.3");
	cr_assert_geq(total(CELL_TOTAL_timeout), 1);
	cr_assert_eq(total(CELL_TOTAL_cached), total(CELL_TOTAL_timeout) + 1);
	libc_goes_on();
}

/* What the worker heard after nobody waited any more is nobody's; the next success is kept. */
Test(resolve_all, the_answer_of_the_pool_is_kept)
{
	for (int i = 0; i < 3; i++)
		cr_assert_str_eq(get(), "10.1.2.3");
	cr_assert_eq(atomic_load(&libc.calls), 1);
	cr_assert_eq(total(CELL_TOTAL_cached), 2);
	compare_entry(hook_gethostbyname2("db.internal", AF_INET));
	compare_entry(hook_gethostbyname2("db.internal", AF_INET));
	cr_assert_eq(atomic_load(&libc.calls), 2);
}

Test(resolve_all, every_field_stays_what_libc_gave)
{
	struct addrinfo hints = {.ai_flags = AI_CANONNAME, .ai_family = AF_INET}, *one, *other;
	const struct addrinfo *at, *kept;

	cr_assert_eq(hook_getaddrinfo("db.internal", "443", &hints, &one), 0);
	cr_assert_eq(hook_getaddrinfo("db.internal", "443", &hints, &other), 0);
	cr_assert_eq(atomic_load(&libc.calls), 1);
	for (at = one, kept = other; at && kept; at = at->ai_next, kept = kept->ai_next) {
		cr_assert_eq(at->ai_flags, kept->ai_flags);
		cr_assert_eq(at->ai_socktype, kept->ai_socktype);
		cr_assert_eq(at->ai_protocol, kept->ai_protocol);
		cr_assert_eq(memcmp(at->ai_addr, kept->ai_addr, at->ai_addrlen), 0);
	}
	cr_assert_eq(at, kept);
	cr_assert_str_eq(one->ai_canonname, other->ai_canonname);
	freeaddrinfo(one);
	freeaddrinfo(other);
}
