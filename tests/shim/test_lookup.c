/* SPDX-License-Identifier: MIT */
#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <errno.h>
#include <netinet/in.h>
#include <pthread.h>
#include <setjmp.h>
#include <string.h>
#include <unistd.h>

#include "core/breaker.h"
#include "core/control.h"
#include "core/clock.h"
#include "shim/lookup.h"
#include "shim/names.h"
#include "shim/open_lookup.h"
#include "shim/real.h"
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

/* What the fake resolver answers, and how often it was asked. */
static struct {
	int error, h_error, system_error;
	int calls;
	jmp_buf *leave_to;
} resolver;

static struct sockaddr_in resolved = { .sin_family = AF_INET };
static struct addrinfo answer = {
	.ai_family = AF_INET,
	.ai_addr = (struct sockaddr *)&resolved,
	.ai_addrlen = sizeof(resolved),
};
static char *entry_list[] = { (char *)&resolved.sin_addr, NULL };
static struct hostent host_answer = {
	.h_addrtype = AF_INET,
	.h_length = 4,
	.h_addr_list = entry_list,
};

static int fake_getaddrinfo(const char *node, const char *service, const struct addrinfo *hints,
		struct addrinfo **result)
{
	(void)node;
	(void)service;
	(void)hints;
	resolver.calls++;
	if (resolver.leave_to)
		longjmp(*resolver.leave_to, 1);
	if (resolver.error) {
		if (resolver.system_error)
			errno = resolver.system_error;
		return resolver.error;
	}
	*result = &answer;
	return 0;
}

static struct hostent *fake_gethostbyname(const char *name)
{
	(void)name;
	resolver.calls++;
	h_errno = resolver.h_error;
	return resolver.h_error ? NULL : &host_answer;
}

static struct hostent *fake_gethostbyname2(const char *name, int family)
{
	(void)family;
	return fake_gethostbyname(name);
}

static int fake_gethostbyname_r(const char *name, struct hostent *entry, char *buffer, size_t size,
		struct hostent **result, int *h_error)
{
	(void)entry;
	(void)buffer;
	*result = NULL;
	if (size < 64) {
		resolver.calls++;
		*h_error = NETDB_INTERNAL;
		return errno = ERANGE;
	}
	*result = fake_gethostbyname(name);
	*h_error = resolver.h_error;
	return *h_error == TRY_AGAIN ? errno = EAGAIN : 0;
}

static int fake_gethostbyname2_r(const char *name, int family, struct hostent *entry, char *buffer,
		size_t size, struct hostent **result, int *h_error)
{
	(void)family;
	return fake_gethostbyname_r(name, entry, buffer, size, result, h_error);
}

static void start(char *const environment[])
{
	config_load(&runtime.config, environment, NULL);
	cr_assert(names_start());
	cr_assert_gt(runtime.config.rule_count, 0);
	runtime.segment = segment_open_private();
	cr_assert_not_null(runtime.segment);
	real();
	real_table.getaddrinfo = fake_getaddrinfo;
	real_table.gethostbyname = fake_gethostbyname;
	real_table.gethostbyname2 = fake_gethostbyname2;
	real_table.gethostbyname_r = fake_gethostbyname_r;
	real_table.gethostbyname2_r = fake_gethostbyname2_r;
	inet_pton(AF_INET, "10.1.2.3", &resolved.sin_addr);
	atomic_store_explicit(&runtime.is_active, true, memory_order_release);
}

static void start_with_rule(void)
{
	char *const environment[] = {
		"SHUNT_BREAK_DB=db.internal volume=3 sleep=1h lease=1h abandon=1h",
		"SHUNT_TIMER=off",
		NULL,
	};

	start(environment);
}

TestSuite(lookup, .init = start_with_rule, .timeout = 30);

static struct cell *cell_of(const char *host)
{
	struct endpoint endpoint = { .host = host, .is_lookup = true };

	return runtime_cell(&runtime.config.rules[0], CELL_LOOKUP, &endpoint, clock_now_ns(),
			NULL);
}

static uint64_t total(enum cell_total which)
{
	return atomic_load_explicit(&cell_of("db.internal")->totals[which], memory_order_relaxed);
}

static bool is_open(void)
{
	struct breaker breaker = runtime_breaker(&runtime.config.rules[0], cell_of("db.internal"));

	return breaker_state(&breaker, clock_now_ns()) == CIRCUIT_OPEN;
}

static void trip(void)
{
	struct breaker breaker = runtime_breaker(&runtime.config.rules[0], cell_of("db.internal"));

	control_trip(&breaker, clock_now_ns());
}

static int get(const char *host)
{
	struct addrinfo *result = NULL;

	return hook_getaddrinfo(host, "80", NULL, &result);
}

Test(lookup, a_good_answer_is_a_success)
{
	cr_assert_eq(get("db.internal"), 0);
	cr_assert_eq(total(CELL_TOTAL_success), 1);
}

Test(lookup, a_resolver_that_fails_opens_the_circuit)
{
	resolver.error = EAI_AGAIN;
	for (int i = 0; i < 3; i++)
		cr_assert_eq(get("db.internal"), EAI_AGAIN);
	cr_assert_eq(total(CELL_TOTAL_failure), 3);
	cr_assert(is_open());
}

Test(lookup, an_open_circuit_answers_without_the_resolver)
{
	struct addrinfo *untouched = &answer;

	trip();
	h_errno = 0;
	cr_assert_eq(hook_getaddrinfo("db.internal", "80", NULL, &untouched), EAI_AGAIN);
	/* As a resolver leaves them that does not answer. */
	cr_assert_eq(errno, EAGAIN);
	cr_assert_eq(h_errno, TRY_AGAIN);
	cr_assert_eq(untouched, &answer);
	cr_assert_eq(resolver.calls, 0);
	cr_assert_eq(total(CELL_TOTAL_short_circuited), 1);
}

Test(lookup, a_host_is_one_whatever_its_spelling)
{
	trip();
	cr_assert_eq(get("DB.Internal."), EAI_AGAIN);
	cr_assert_eq(resolver.calls, 0);
}

Test(lookup, a_name_that_does_not_exist_says_nothing_about_the_resolver)
{
	resolver.error = EAI_NONAME;
	for (int i = 0; i < 10; i++)
		cr_assert_eq(get("db.internal"), EAI_NONAME);
	cr_assert_eq(total(CELL_TOTAL_cancelled), 10);
	cr_assert_not(is_open());
}

Test(lookup, a_system_error_is_judged_by_errno)
{
	resolver.error = EAI_SYSTEM;
	resolver.system_error = ETIMEDOUT;
	cr_assert_eq(get("db.internal"), EAI_SYSTEM);
	cr_assert_eq(errno, ETIMEDOUT);
	cr_assert_eq(total(CELL_TOTAL_timeout), 1);
	resolver.system_error = EMFILE;
	get("db.internal");
	cr_assert_eq(total(CELL_TOTAL_cancelled), 1);
}

Test(lookup, hosts_without_a_rule_pass_whatever_is_open)
{
	trip();
	cr_assert_eq(get("other.internal"), 0);
	cr_assert_eq(resolver.calls, 1);
}

Test(lookup, in_observe_mode_nothing_is_refused)
{
	runtime.observe = true;
	trip();
	cr_assert_eq(get("db.internal"), 0);
	cr_assert_eq(total(CELL_TOTAL_short_circuited), 1);
	cr_assert_eq(total(CELL_TOTAL_success), 0);
}

Test(lookup, before_start_and_in_a_vfork_child_everything_passes)
{
	trip();
	atomic_store_explicit(&runtime.is_active, false, memory_order_release);
	cr_assert_eq(get("db.internal"), 0);
	cr_assert_eq(total(CELL_TOTAL_short_circuited), 0);
}

static void start_with_any(void)
{
	char *const environment[] = { "SHUNT_BREAK_ALL=any sleep=1h", "SHUNT_TIMER=off", NULL };

	start(environment);
}

static void trip_host(const char *host)
{
	struct breaker breaker = runtime_breaker(&runtime.config.rules[0], cell_of(host));

	control_trip(&breaker, clock_now_ns());
}

Test(lookup_any, numeric_hosts_are_never_touched, .init = start_with_any)
{
	const char *const hosts[] = { "127.0.0.1", "127.1", "0x7f000001", "017700000001", "::1",
		"fe80::1%eth0", "::ffff:10.1.2.3", "" };

	for (size_t i = 0; i < sizeof(hosts) / sizeof(*hosts); i++) {
		cr_assert(lookup_is_numeric(hosts[i]), "%s", hosts[i]);
		if (hosts[i][0])
			trip_host(hosts[i]);
		cr_assert_eq(get(hosts[i]), 0, "%s", hosts[i]);
	}
}

Test(lookup_any, names_that_look_like_numbers_are_names, .init = start_with_any)
{
	const char *const hosts[] = { "1and1.com", "10.1.2.3.nip.io", "0xcafe.org", "a.1", "1.2.",
		"." };

	for (size_t i = 0; i < sizeof(hosts) / sizeof(*hosts); i++)
		cr_assert_not(lookup_is_numeric(hosts[i]), "%s", hosts[i]);
}

Test(lookup_any, a_lookup_that_asks_no_resolver_passes, .init = start_with_any)
{
	struct addrinfo hints = { .ai_flags = AI_NUMERICHOST }, *result;

	trip_host("db.internal");
	cr_assert_eq(hook_getaddrinfo("db.internal", NULL, &hints, &result), 0);
	cr_assert_eq(hook_getaddrinfo(NULL, "80", NULL, &result), 0);
}

Test(lookup_any, every_combination_of_null_arguments_is_libcs, .init = start_with_any)
{
	struct addrinfo hints = { .ai_flags = AI_NUMERICHOST }, *ours, *theirs;

	real_table.getaddrinfo = getaddrinfo;
	for (int bits = 0; bits < 8; bits++) {
		const char *node = bits & 1 ? "127.0.0.1" : NULL;
		const char *service = bits & 2 ? "80" : NULL;
		const struct addrinfo *given = bits & 4 ? &hints : NULL;
		int error = getaddrinfo(node, service, given, &theirs);

		cr_assert_eq(hook_getaddrinfo(node, service, given, &ours), error, "%d", bits);
		if (error)
			continue;
		cr_assert_eq(memcmp(ours->ai_addr, theirs->ai_addr, theirs->ai_addrlen), 0);
		freeaddrinfo(ours);
		freeaddrinfo(theirs);
	}
}

Test(lookup, the_whole_gethostbyname_family_is_metered)
{
	struct hostent entry, *result = NULL;
	char buffer[512];
	int h_error = -7;

	cr_assert_eq(hook_gethostbyname("db.internal"), &host_answer);
	cr_assert_eq(hook_gethostbyname2("db.internal", AF_INET), &host_answer);
	cr_assert_eq(hook_gethostbyname_r("db.internal", &entry, buffer, sizeof(buffer), &result,
				     &h_error),
			0);
	cr_assert_eq(result, &host_answer);
	cr_assert_eq(hook_gethostbyname2_r("db.internal", AF_INET, &entry, buffer, sizeof(buffer),
				     &result, &h_error),
			0);
	cr_assert_eq(total(CELL_TOTAL_success), 4);
}

Test(lookup, a_refused_gethostbyname_looks_like_a_resolver_that_does_not_answer)
{
	trip();
	h_errno = 0;
	cr_assert_null(hook_gethostbyname("db.internal"));
	cr_assert_eq(h_errno, TRY_AGAIN);
	h_errno = 0;
	cr_assert_null(hook_gethostbyname2("db.internal", AF_INET6));
	cr_assert_eq(h_errno, TRY_AGAIN);
	cr_assert_eq(resolver.calls, 0);
}

Test(lookup, a_refused_gethostbyname_r_keeps_its_contract)
{
	struct hostent entry, *result = &entry;
	char buffer[512];
	int h_error = 0;

	trip();
	cr_assert_eq(hook_gethostbyname_r("db.internal", &entry, buffer, sizeof(buffer), &result,
				     &h_error),
			EAGAIN);
	cr_assert_null(result);
	cr_assert_eq(h_error, TRY_AGAIN);
	result = &entry;
	cr_assert_eq(hook_gethostbyname2_r("db.internal", AF_INET, &entry, buffer, sizeof(buffer),
				     &result, &h_error),
			EAGAIN);
	cr_assert_null(result);
}

Test(lookup, a_buffer_that_is_too_small_is_no_outcome)
{
	struct hostent entry, *result = &entry;
	char buffer[8];
	int h_error = 0;

	for (int i = 0; i < 10; i++) {
		errno = 0;
		cr_assert_eq(hook_gethostbyname_r("db.internal", &entry, buffer, sizeof(buffer),
					     &result, &h_error),
				ERANGE);
		cr_assert_eq(errno, ERANGE);
		cr_assert_eq(h_error, NETDB_INTERNAL);
	}
	cr_assert_eq(total(CELL_TOTAL_unused), 10);
	cr_assert_eq(total(CELL_TOTAL_failure), 0);
}

Test(lookup, gethostbyname_failures_open_the_circuit)
{
	resolver.h_error = TRY_AGAIN;
	for (int i = 0; i < 3; i++)
		cr_assert_null(hook_gethostbyname("db.internal"));
	cr_assert(is_open());
}

Test(lookup, a_host_that_is_not_found_opens_nothing)
{
	resolver.h_error = HOST_NOT_FOUND;
	for (int i = 0; i < 10; i++)
		cr_assert_null(hook_gethostbyname("db.internal"));
	cr_assert_eq(total(CELL_TOTAL_cancelled), 10);
}

static const char *name_of_answer(void)
{
	static char host[HOST_SIZE];
	struct address address = address_from_v4(&resolved.sin_addr);

	names_find(&address, host);
	return host;
}

Test(lookup, the_name_of_an_address_is_learned)
{
	cr_assert_eq(get("DB.internal"), 0);
	cr_assert_str_eq(name_of_answer(), "db.internal");
}

Test(lookup, gethostbyname_learns_too)
{
	cr_assert_not_null(hook_gethostbyname("db.internal"));
	cr_assert_str_eq(name_of_answer(), "db.internal");
}

Test(lookup, names_without_a_rule_only_hide)
{
	cr_assert_eq(get("other.internal"), 0);
	cr_assert_str_eq(name_of_answer(), "");
	cr_assert_eq(get("db.internal"), 0);
	cr_assert_eq(get("other.internal"), 0);
	cr_assert_str_eq(name_of_answer(), "other.internal");
}

static void start_with_exclusion(void)
{
	char *const environment[] = { "SHUNT_BREAK_ALL=any", "SHUNT_BREAK_NOT=^db.internal",
		"SHUNT_TIMER=off", NULL };

	start(environment);
}

Test(lookup_excluded, a_name_that_is_kept_out_is_learned_as_well, .init = start_with_exclusion)
{
	cr_assert_eq(get("db.internal"), 0);
	cr_assert_str_eq(name_of_answer(), "db.internal");
}

/* In a function of its own: the setjmp frame must outlive the jump. */
static void get_and_leave(const char *host)
{
	jmp_buf leave;

	resolver.leave_to = &leave;
	if (!setjmp(leave))
		get(host);
	resolver.leave_to = NULL;
}

Test(lookup, a_lookup_left_by_longjmp_is_settled_by_the_next_one)
{
	get_and_leave("db.internal");
	cr_assert_eq(total(CELL_TOTAL_cancelled), 0);
	cr_assert_eq(get("other.internal"), 0);
	cr_assert_eq(total(CELL_TOTAL_cancelled), 1);
	cr_assert_eq(total(CELL_TOTAL_success), 0);
}

Test(lookup, a_lookup_left_after_abandon_is_a_timeout)
{
	runtime.config.rules[0].settings.abandon_ns = 1;
	get_and_leave("db.internal");
	lookup_settle();
	lookup_settle();
	cr_assert_eq(total(CELL_TOTAL_timeout), 1);
}

Test(lookup, a_forked_child_leaves_the_parents_lookup_alone)
{
	get_and_leave("db.internal");
	lookup_forget();
	lookup_settle();
	lookup_settle_all();
	cr_assert_eq(total(CELL_TOTAL_cancelled), 0);
}

static int wait_to_be_cancelled(const char *node, const char *service,
		const struct addrinfo *hints, struct addrinfo **result)
{
	(void)node;
	(void)service;
	(void)hints;
	(void)result;
	pause();
	return EAI_AGAIN;
}

static void *look_up(void *nothing)
{
	get("db.internal");
	return nothing;
}

static void look_up_on_another_thread(void)
{
	pthread_t thread;

	cr_assert_eq(pthread_create(&thread, NULL, look_up, NULL), 0);
	pthread_join(thread, NULL);
}

static void *leave_a_lookup(void *nothing)
{
	get_and_leave("db.internal");
	return nothing;
}

static void leave_on_another_thread(void)
{
	pthread_t thread;

	cr_assert_eq(pthread_create(&thread, NULL, leave_a_lookup, NULL), 0);
	pthread_join(thread, NULL);
}

Test(lookup, exit_settles_what_other_threads_left)
{
	leave_on_another_thread();
	lookup_settle();
	cr_assert_eq(total(CELL_TOTAL_cancelled), 0);
	lookup_settle_all();
	lookup_settle_all();
	cr_assert_eq(total(CELL_TOTAL_cancelled), 1);
}

static void *hang_in_a_lookup(void *nothing)
{
	real_table.getaddrinfo = wait_to_be_cancelled;
	get("db.internal");
	return nothing;
}

static void cancel_in_a_lookup(void)
{
	pthread_t thread;

	cr_assert_eq(pthread_create(&thread, NULL, hang_in_a_lookup, NULL), 0);
	pthread_cancel(thread);
	pthread_join(thread, NULL);
}

Test(lookup, a_thread_cancelled_in_a_lookup_settles_it)
{
	SKIP_IF_SANITIZED("it takes the stack of a cancelled thread for overrun");
	open_lookup_start();
	cancel_in_a_lookup();
	cr_assert_eq(total(CELL_TOTAL_cancelled), 1);
	lookup_settle_all();
	cr_assert_eq(total(CELL_TOTAL_cancelled), 1);
}

Test(lookup, a_thread_cancelled_after_abandon_had_a_timeout)
{
	SKIP_IF_SANITIZED("it takes the stack of a cancelled thread for overrun");
	open_lookup_start();
	runtime.config.rules[0].settings.abandon_ns = 0;
	cancel_in_a_lookup();
	cr_assert_eq(total(CELL_TOTAL_timeout), 1);
}

Test(lookup, a_thread_that_ends_with_its_lookup_settled_says_nothing)
{
	open_lookup_start();
	resolver.error = 0;
	look_up_on_another_thread();
	cr_assert_eq(total(CELL_TOTAL_success), 1);
	cr_assert_eq(total(CELL_TOTAL_cancelled), 0);
}

Test(lookup, of_too_many_that_were_left_the_oldest_is_settled)
{
	for (int i = 0; i < 260; i++)
		leave_on_another_thread();
	cr_assert_eq(total(CELL_TOTAL_cancelled), 4);
	cr_assert_eq(get("db.internal"), 0);
	cr_assert_eq(total(CELL_TOTAL_success), 1);
}

static int lookup_from_inside(const char *node, const char *service, const struct addrinfo *hints,
		struct addrinfo **result)
{
	real_table.getaddrinfo = fake_getaddrinfo;
	lookup_settle_from(__builtin_frame_address(0));
	return hook_getaddrinfo(node, service, hints, result);
}

Test(lookup, what_the_resolver_looks_up_itself_is_not_the_programs)
{
	real_table.getaddrinfo = lookup_from_inside;
	cr_assert_eq(get("db.internal"), 0);
	cr_assert_eq(total(CELL_TOTAL_success), 1);
	cr_assert_eq(total(CELL_TOTAL_cancelled), 0);
}

Test(lookup, errno_stays_on_success)
{
	errno = EDOM;
	cr_assert_eq(get("db.internal"), 0);
	cr_assert_eq(errno, EDOM);
}

Test(lookup, a_probe_that_succeeds_closes_the_circuit)
{
	struct breaker breaker = runtime_breaker(&runtime.config.rules[0], cell_of("db.internal"));

	trip();
	control_half(&breaker, clock_now_ns());
	cr_assert_eq(get("db.internal"), 0);
	cr_assert_eq(breaker_state(&breaker, clock_now_ns()), CIRCUIT_CLOSED);
}
