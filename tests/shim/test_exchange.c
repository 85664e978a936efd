/* SPDX-License-Identifier: MIT */
#include "shim/exchange.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#define EPOCH_NS 1000000000000ull
#define AT(ms) (EPOCH_NS + (uint64_t)(ms) * 1000000ull)

static struct exchange exchange;
static struct settings settings;

static void setup(void)
{
	settings = settings_default;
	exchange_begin(&exchange, AT(0));
}

TestSuite(exchange, .init = setup);

static struct bytes text_bytes(const char *text)
{
	static struct iovec vector;

	vector = (struct iovec){ (void *)text, strlen(text) };
	return (struct bytes){ &vector, 1 };
}

static enum outcome connects(unsigned int ms, int error)
{
	return exchange_connected(&exchange, &settings, error, AT(ms)).ended;
}

static struct exchange_step will_send(unsigned int ms, const char *text)
{
	return exchange_will_send(&exchange, &settings, text_bytes(text), AT(ms));
}

static enum outcome sent(unsigned int ms, const char *text, ssize_t result, int error)
{
	return exchange_sent(&exchange, &settings, text_bytes(text), result, error, AT(ms)).ended;
}

/* A send that starts no call and is accepted whole. */
static void sends(unsigned int ms, const char *text)
{
	cr_assert_not(will_send(ms, text).starts_call);
	cr_assert_eq(sent(ms, text, (ssize_t)strlen(text), 0), OUTCOME_NONE);
}

/* A send that starts a call, admitted. */
static void asks(unsigned int ms, const char *text)
{
	cr_assert(will_send(ms, text).starts_call);
	cr_assert(exchange_call(&exchange, AT(ms)));
	cr_assert_eq(sent(ms, text, (ssize_t)strlen(text), 0), OUTCOME_NONE);
}

static enum outcome receives(unsigned int ms, const char *text)
{
	return exchange_received(&exchange, &settings, text_bytes(text), (ssize_t)strlen(text), 0,
			false, 0, AT(ms)).ended;
}

/* recv() that began at one time and failed at another; error 0: EOF. */
static enum outcome receive_fails(unsigned int began_ms, unsigned int ms, int error, bool is_peek)
{
	return exchange_received(&exchange, &settings, text_bytes("buffer"), error ? -1 : 0, error,
			is_peek, exchange_times_receive(&exchange) ? AT(began_ms) : 0, AT(ms))
			.ended;
}

static enum outcome sees_eof(unsigned int ms)
{
	return receive_fails(ms, ms, 0, false);
}

static enum outcome closes(unsigned int ms)
{
	return exchange_closed(&exchange, &settings, AT(ms)).ended;
}

static enum outcome waits(unsigned int began_ms, unsigned int ms)
{
	return exchange_waited(&exchange, AT(began_ms), AT(ms)).ended;
}

/* Established, one exchange done. */
static void had_an_answer(void)
{
	connects(0, 0);
	sends(0, "GET /a");
	cr_assert_eq(receives(1, "200"), OUTCOME_SUCCESS);
}

Test(exchange, every_way_of_pending_leaves_the_attempt_open)
{
	cr_expect_eq(connects(0, EINPROGRESS), OUTCOME_NONE);
	cr_expect_eq(connects(1, EALREADY), OUTCOME_NONE);
	cr_expect_eq(connects(2, EINTR), OUTCOME_NONE);
	cr_expect(exchange_has(&exchange, EXCHANGE_PENDING));
	cr_expect_not(exchange_is_new_attempt(&exchange));
	cr_expect_eq(connects(3, ECONNREFUSED), OUTCOME_FAILURE);
}

Test(exchange, a_connect_that_says_already_connected_completes_the_attempt)
{
	connects(0, EINPROGRESS);
	cr_expect(exchange_connected(&exchange, &settings, EISCONN, AT(1)).is_silent);
	cr_expect(exchange_has(&exchange, EXCHANGE_ESTABLISHED));
	cr_expect_not(exchange_is_new_attempt(&exchange));
}

Test(exchange, an_attempt_is_settled_once_however_often_its_error_is_read)
{
	connects(0, EINPROGRESS);
	cr_expect_eq(exchange_so_error(&exchange, &settings, ECONNREFUSED, AT(1)).ended,
		OUTCOME_FAILURE);
	cr_expect_eq(exchange_so_error(&exchange, &settings, ECONNREFUSED, AT(2)).ended,
			OUTCOME_NONE);
	cr_expect_eq(exchange_so_error(&exchange, &settings, 0, AT(2)).ended, OUTCOME_NONE);
	cr_expect_eq(closes(3), OUTCOME_NONE);
}

Test(exchange, after_a_failure_a_connect_is_a_new_attempt)
{
	cr_expect_eq(connects(1, ECONNREFUSED), OUTCOME_FAILURE);
	cr_assert(exchange_is_new_attempt(&exchange));
	exchange_begin(&exchange, AT(2));
	cr_expect_eq(connects(3, 0), OUTCOME_NONE);
	sends(3, "GET /");
	cr_expect_eq(receives(4, "200"), OUTCOME_SUCCESS);
}

Test(exchange, a_disconnect_ends_the_call_and_forgets_the_connection)
{
	had_an_answer();
	asks(2, "GET /b");
	cr_expect_eq(closes(1500), OUTCOME_TIMEOUT);
	cr_expect(exchange_is_new_attempt(&exchange));
	cr_expect_not(will_send(1501, "GET /c").starts_call);
}

Test(exchange, a_first_send_or_recv_that_succeeds_completes_the_attempt)
{
	connects(0, EINPROGRESS);
	sends(5, "GET /");
	cr_expect(exchange_has(&exchange, EXCHANGE_ESTABLISHED));
	cr_expect_not(exchange_has(&exchange, EXCHANGE_PENDING));
	exchange_begin(&exchange, AT(10));
	connects(10, EINPROGRESS);
	cr_expect_eq(receives(15, "220 ready"), OUTCOME_SUCCESS);
}

Test(exchange, a_first_send_that_fails_shows_how_the_connect_ended)
{
	connects(0, EINPROGRESS);
	cr_expect_eq(sent(1, "GET /", -1, EAGAIN), OUTCOME_NONE);
	cr_expect_eq(sent(2, "GET /", -1, ENOTCONN), OUTCOME_NONE);
	cr_expect_eq(sent(3, "GET /", -1, ECONNREFUSED), OUTCOME_FAILURE);
}

Test(exchange, a_connect_error_after_fast_open_is_still_one)
{
	connects(0, EINPROGRESS);
	sends(0, "GET /");
	cr_expect_eq(receive_fails(0, 5, ECONNREFUSED, false), OUTCOME_FAILURE);
}

Test(exchange, an_attempt_that_never_returned_is_ended_by_close)
{
	cr_expect_eq(closes(999), OUTCOME_CANCELLED);
	setup();
	cr_expect_eq(closes(1000), OUTCOME_TIMEOUT);
}

Test(exchange, local_errors_of_a_connect_cancel_it)
{
	cr_expect_eq(connects(0, ENETUNREACH), OUTCOME_CANCELLED);
}

Test(exchange, established_is_not_yet_a_success)
{
	cr_expect_eq(connects(0, 0), OUTCOME_NONE);
	cr_expect(exchange_has(&exchange, EXCHANGE_OPEN));
}

Test(exchange, with_guard_connect_established_is_success_and_all_that_is_metered)
{
	settings.guard = GUARD_CONNECT;
	cr_expect_eq(connects(1, 0), OUTCOME_SUCCESS);
	cr_expect_not(will_send(2, "GET /").starts_call);
	cr_expect(exchange_is_sending(&exchange));
	cr_expect_not(exchange_minds_receive(&exchange));
	cr_expect_eq(sent(2, "GET /", 5, 0), OUTCOME_NONE);
	cr_expect_eq(closes(5000), OUTCOME_NONE);
}

Test(exchange, with_guard_connect_the_first_send_that_succeeds_is_success)
{
	settings.guard = GUARD_CONNECT;
	connects(0, EINPROGRESS);
	cr_expect_eq(sent(1, "GET /", 5, 0), OUTCOME_SUCCESS);
}

Test(exchange, with_guard_connect_an_eof_tells_of_a_connect_that_succeeded)
{
	settings.guard = GUARD_CONNECT;
	connects(0, EINPROGRESS);
	cr_expect_eq(sees_eof(1), OUTCOME_SUCCESS);
}

Test(exchange, a_probe_is_told_of_silence_and_of_the_first_byte)
{
	struct exchange_step step = exchange_connected(&exchange, &settings, 0, AT(0));

	cr_expect(step.is_silent);
	step = exchange_sent(&exchange, &settings, text_bytes("GET"), 3, 0, AT(10));
	cr_expect(step.has_spoken);
	step = exchange_sent(&exchange, &settings, text_bytes(" /"), 2, 0, AT(11));
	cr_expect_not(step.has_spoken);
}

Test(exchange, idle_for_a_second_is_unused_and_the_first_send_then_starts_a_call)
{
	struct exchange_step step;

	connects(0, 0);
	step = will_send(1000, "GET /");
	cr_expect_eq(step.ended, OUTCOME_UNUSED);
	cr_expect(step.starts_call);
	cr_expect(exchange_call(&exchange, AT(1000)));
	cr_expect_eq(sent(1000, "GET /", 5, 0), OUTCOME_NONE);
	cr_expect_eq(sees_eof(1001), OUTCOME_CANCELLED, "as on a reused connection");
}

Test(exchange, a_first_call_after_idling_that_fails_is_the_last)
{
	connects(0, 0);
	asks(1000, "GET /");
	cr_expect_eq(receive_fails(1000, 1001, ECONNRESET, false), OUTCOME_CANCELLED);
	cr_expect_not(will_send(1002, "GET /").starts_call, "it never had an answer");
}

Test(exchange, idle_for_less_than_a_second_goes_on_with_the_first_call)
{
	connects(0, 0);
	sends(999, "GET /");
	cr_expect_eq(sees_eof(999), OUTCOME_FAILURE);
}

Test(exchange, a_first_send_that_was_put_off_starts_a_call_again)
{
	connects(0, 0);
	cr_assert(will_send(1000, "GET /").starts_call);
	cr_assert(exchange_call(&exchange, AT(1000)));
	cr_expect_eq(sent(1000, "GET /", -1, EAGAIN), OUTCOME_UNUSED);
	asks(1001, "GET /");
	cr_expect_not(will_send(1002, "GET /").starts_call);
}

Test(exchange, only_a_connection_that_had_an_answer_starts_further_calls)
{
	connects(0, 0);
	sends(0, "GET /");
	cr_expect_eq(receive_fails(0, 1, ECONNRESET, false), OUTCOME_FAILURE);
	cr_expect_not(will_send(2, "GET /").starts_call);
	cr_expect(exchange_is_sending(&exchange));
}

Test(exchange, a_wait_in_progress_counts_from_its_beginning)
{
	connects(0, 0);
	exchange_wait_begins(&exchange, AT(100));
	cr_expect_eq(closes(1100), OUTCOME_TIMEOUT, "it counts though it never returned");
}

Test(exchange, waits_for_a_greeting_add_up)
{
	connects(0, 0);
	cr_expect_eq(waits(0, 400), OUTCOME_NONE);
	cr_expect_eq(receive_fails(500, 1099, EINTR, false), OUTCOME_NONE);
	cr_expect_eq(closes(5000), OUTCOME_UNUSED);
	setup();
	connects(0, 0);
	waits(0, 400);
	receive_fails(500, 1100, EINTR, false);
	cr_expect_eq(closes(5000), OUTCOME_TIMEOUT);
}

Test(exchange, a_wait_is_one_for_a_greeting_only_from_establishment_on)
{
	connects(0, EINPROGRESS);
	connects(700, 0);
	waits(0, 1600);
	cr_expect_eq(closes(1600), OUTCOME_UNUSED);
}

Test(exchange, a_late_greeting_is_success)
{
	connects(0, 0);
	waits(0, 1500);
	cr_expect_eq(receives(1500, "220 ready"), OUTCOME_SUCCESS);
}

Test(exchange, a_greeting_that_was_waited_for_in_vain_is_decided_at_the_first_send)
{
	struct exchange_step step;

	connects(0, 0);
	waits(0, 1500);
	step = will_send(1500, "HELO");
	cr_expect_eq(step.ended, OUTCOME_TIMEOUT);
	cr_expect(step.starts_call);
}

Test(exchange, eof_or_a_reset_before_anything_was_sent_is_a_failure)
{
	connects(0, 0);
	cr_expect_eq(sees_eof(500), OUTCOME_FAILURE);
	setup();
	connects(0, 0);
	cr_expect_eq(receive_fails(0, 500, ECONNRESET, false), OUTCOME_FAILURE);
	setup();
	connects(0, 0);
	cr_expect_eq(receive_fails(0, 1000, 0, false), OUTCOME_TIMEOUT);
}

Test(exchange, the_next_send_after_an_answer_starts_a_call)
{
	had_an_answer();
	asks(10, "GET /b");
	cr_expect_eq(atomic_load(&exchange.began_ns), AT(10));
	cr_expect_not(will_send(11, "body").starts_call, "never in the middle");
	cr_expect_eq(receives(20, "200"), OUTCOME_SUCCESS);
	cr_expect_eq(receives(21, "body"), OUTCOME_NONE);
}

Test(exchange, a_send_of_nothing_starts_no_call)
{
	had_an_answer();
	cr_expect_not(will_send(10, "").starts_call);
}

Test(exchange, a_send_out_of_sight_starts_a_call)
{
	had_an_answer();
	cr_expect(exchange_will_send(&exchange, &settings, (struct bytes){ 0 }, AT(2)).starts_call);
}

Test(exchange, of_two_threads_that_start_a_call_one_does)
{
	had_an_answer();
	cr_expect(will_send(10, "a").starts_call);
	cr_expect(will_send(10, "b").starts_call);
	cr_expect(exchange_call(&exchange, AT(10)));
	cr_expect_not(exchange_call(&exchange, AT(10)));
}

Test(exchange, a_cut_connection_is_dead_until_closed)
{
	had_an_answer();
	cr_assert(will_send(10, "GET /b").starts_call);
	exchange_cut(&exchange);
	cr_expect_not(will_send(11, "GET /b").starts_call);
	cr_expect_eq(sees_eof(11), OUTCOME_NONE, "the eof is ours");
	cr_expect_eq(closes(12), OUTCOME_NONE);
	cr_expect_not(exchange_has(&exchange, EXCHANGE_CUT));
}

Test(exchange, a_call_whose_first_send_sent_nothing_is_unused)
{
	static const int errors[] = { EAGAIN, EINTR };

	for (size_t i = 0; i < 2; i++) {
		setup();
		had_an_answer();
		cr_assert(will_send(10, "GET /b").starts_call);
		exchange_call(&exchange, AT(10));
		cr_expect_eq(sent(10, "GET /b", -1, errors[i]), OUTCOME_UNUSED);
		asks(11, "GET /b");
		cr_expect_eq(sent(12, "rest", -1, errors[i]), OUTCOME_NONE);
	}
}

Test(exchange, a_reused_connection_that_the_server_closed_is_harmless_for_a_second)
{
	had_an_answer();
	asks(10, "GET /b");
	cr_expect_eq(sees_eof(1009), OUTCOME_CANCELLED);
	setup();
	had_an_answer();
	asks(10, "GET /b");
	cr_expect_eq(receive_fails(10, 1010, ECONNRESET, false), OUTCOME_TIMEOUT);
	setup();
	had_an_answer();
	cr_assert(will_send(10, "GET /b").starts_call);
	exchange_call(&exchange, AT(10));
	cr_expect_eq(sent(10, "GET /b", -1, EPIPE), OUTCOME_CANCELLED);
}

Test(exchange, a_host_that_is_gone_is_a_failure_on_a_reused_connection_too)
{
	had_an_answer();
	asks(10, "GET /b");
	cr_expect_eq(receive_fails(10, 20, EHOSTUNREACH, false), OUTCOME_FAILURE);
	asks(30, "GET /c");
	cr_expect_eq(receive_fails(30, 40, ETIMEDOUT, false), OUTCOME_TIMEOUT);
}

Test(exchange, eof_in_place_of_an_answer_is_a_failure_and_a_timeout_after_abandon)
{
	connects(0, 0);
	sends(0, "GET /");
	cr_expect_eq(sees_eof(999), OUTCOME_FAILURE);
	setup();
	connects(0, 0);
	sends(0, "GET /");
	cr_expect_eq(sees_eof(1000), OUTCOME_TIMEOUT);
}

Test(exchange, eof_after_the_program_shut_its_own_side_is_unused)
{
	connects(0, 0);
	sends(0, "log line");
	cr_expect_eq(exchange_shutdown(&exchange, &settings, SHUT_WR, AT(1)).ended, OUTCOME_NONE);
	cr_expect_eq(sees_eof(2), OUTCOME_UNUSED);
	setup();
	connects(0, 0);
	sends(0, "log line");
	exchange_shutdown(&exchange, &settings, SHUT_WR, AT(1));
	cr_expect_eq(sees_eof(1001), OUTCOME_TIMEOUT);
	setup();
	connects(0, 0);
	sends(0, "log line");
	exchange_shutdown(&exchange, &settings, SHUT_WR, AT(1));
	cr_expect_eq(receive_fails(1, 2, ECONNRESET, false), OUTCOME_FAILURE);
}

Test(exchange, a_send_after_the_program_shut_its_own_side_tells_nothing)
{
	connects(0, 0);
	sends(0, "GET /");
	exchange_shutdown(&exchange, &settings, SHUT_WR, AT(1));
	cr_expect_eq(sent(2, "more", -1, EPIPE), OUTCOME_NONE);
	cr_expect_eq(receives(3, "200"), OUTCOME_SUCCESS);
}

Test(exchange, shutting_the_receiving_side_ends_a_call_like_close)
{
	static const int hows[] = { SHUT_RD, SHUT_RDWR };

	for (size_t i = 0; i < 2; i++) {
		setup();
		connects(0, 0);
		sends(0, "GET /");
		cr_expect_eq(exchange_shutdown(&exchange, &settings, hows[i], AT(999)).ended,
			OUTCOME_CANCELLED);
		setup();
		connects(0, 0);
		sends(0, "GET /");
		cr_expect_eq(exchange_shutdown(&exchange, &settings, hows[i], AT(1000)).ended,
			OUTCOME_TIMEOUT);
		cr_expect_not(will_send(1001, "GET /").starts_call);
		cr_expect_eq(closes(1002), OUTCOME_NONE);
	}
}

Test(exchange, close_of_an_open_call_is_a_timeout_from_abandon_on)
{
	settings.abandon_ns = 300000000;
	connects(0, 0);
	sends(0, "GET /");
	cr_expect_eq(closes(299), OUTCOME_CANCELLED);
	setup();
	settings.abandon_ns = 300000000;
	connects(0, 0);
	sends(0, "GET /");
	cr_expect_eq(closes(300), OUTCOME_TIMEOUT);
}

Test(exchange, a_farewell_on_a_reused_connection_is_unused)
{
	had_an_answer();
	asks(10, "QUIT");
	cr_expect_eq(closes(11), OUTCOME_UNUSED);
}

Test(exchange, a_stretch_of_silence_counts_wherever_it_lies_in_the_call)
{
	connects(0, 0);
	sends(0, "GET ");
	sends(1000, "/");
	cr_expect_eq(closes(1001), OUTCOME_TIMEOUT);
}

Test(exchange, each_call_has_its_own_silence)
{
	had_an_answer();
	asks(5000, "GET /b");
	cr_expect_eq(closes(5001), OUTCOME_UNUSED);
}

Test(exchange, eagain_and_eintr_are_nothing)
{
	connects(0, 0);
	sends(0, "GET /");
	cr_expect_eq(receive_fails(0, 900, EAGAIN, false), OUTCOME_NONE);
	cr_expect_eq(receive_fails(0, 901, EINTR, false), OUTCOME_NONE);
	cr_expect_eq(receives(902, "200"), OUTCOME_SUCCESS);
}

Test(exchange, a_recv_into_no_room_is_nothing)
{
	connects(0, 0);
	sends(0, "GET /");
	cr_expect_eq(exchange_received(&exchange, &settings, text_bytes(""), 0, 0, false, 0, AT(1))
					.ended,
			OUTCOME_NONE);
}

Test(exchange, a_peek_sees_answers_and_eof_but_its_eagain_is_nothing)
{
	connects(0, 0);
	exchange_set_receive_timeout(&exchange, 300000000);
	sends(0, "GET /");
	cr_expect_eq(receive_fails(0, 300, EAGAIN, true), OUTCOME_NONE);
	cr_expect_eq(receive_fails(300, 301, 0, true), OUTCOME_FAILURE);
	setup();
	connects(0, 0);
	sends(0, "GET /");
	cr_expect_eq(exchange_received(&exchange, &settings, text_bytes("2"), 1, 0, true, 0, AT(1))
					.ended,
			OUTCOME_SUCCESS);
	cr_expect_eq(receives(2, "200"), OUTCOME_NONE);
}

Test(exchange, a_blocking_recv_that_runs_into_its_own_timeout_is_a_timeout)
{
	connects(0, 0);
	exchange_set_receive_timeout(&exchange, 300000000);
	sends(0, "GET /");
	cr_expect(exchange_times_receive(&exchange));
	cr_expect_eq(receive_fails(10, 11, EAGAIN, false), OUTCOME_NONE, "it did not block");
	cr_expect_eq(receive_fails(20, 320, EAGAIN, false), OUTCOME_TIMEOUT);
}

Test(exchange, a_late_answer_makes_a_connection_reusable)
{
	connects(0, 0);
	exchange_set_receive_timeout(&exchange, 300000000);
	sends(0, "GET /");
	cr_expect_eq(receive_fails(0, 300, EAGAIN, false), OUTCOME_TIMEOUT);
	cr_expect_not(will_send(301, "x").starts_call);
	cr_expect(exchange_minds_receive(&exchange));
	cr_expect_eq(receives(400, "200"), OUTCOME_NONE);
	cr_expect(will_send(401, "GET /b").starts_call);
}

Test(exchange, a_receive_timeout_outlives_the_attempt_until_it_is_taken_back)
{
	exchange_set_receive_timeout(&exchange, 1);
	exchange_begin(&exchange, AT(1));
	cr_expect(exchange_times_receive(&exchange));
	exchange_set_receive_timeout(&exchange, 0);
	cr_expect_not(exchange_times_receive(&exchange));
}

Test(exchange, ssh_rsync_and_http2_are_not_metered_from_their_answer_on)
{
	static const char *const firsts[] = { "SSH-2.0-x\r\n", "@RSYNCD: 31.0\n",
		"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" };

	for (size_t i = 0; i < 3; i++) {
		setup();
		connects(0, 0);
		sends(0, firsts[i]);
		cr_expect_eq(receives(1, "x"), OUTCOME_SUCCESS);
		cr_expect_not(will_send(2, "more").starts_call);
		cr_expect(exchange_is_sending(&exchange));
		cr_expect_not(exchange_minds_receive(&exchange));
		setup();
		connects(0, 0);
		sends(0, firsts[i]);
		cr_expect_eq(closes(1000), OUTCOME_TIMEOUT,
				"the first exchange is judged as usual");
	}
}

Test(exchange, a_client_that_answers_the_greeting_of_ssh_is_not_metered)
{
	connects(0, 0);
	cr_expect_eq(receives(1, "SSH-2.0-server\r\n"), OUTCOME_SUCCESS);
	cr_expect_not(will_send(2, "SSH-2.0-client\r\n").starts_call);
	cr_expect(exchange_has(&exchange, EXCHANGE_UNMETERED));
}

Test(exchange, first_bytes_may_lie_in_many_vectors)
{
	struct iovec vectors[] = { { "S", 1 }, { NULL, 0 }, { "SH", 2 }, { "-2.0-x", 6 } };

	connects(0, 0);
	exchange_sent(&exchange, &settings, (struct bytes){ vectors, 4 }, 1, 0, AT(0));
	receives(1, "x");
	cr_expect(exchange_has(&exchange, EXCHANGE_UNMETERED));
}

Test(exchange, a_fork_with_a_call_open_takes_the_connection_out_of_the_model)
{
	had_an_answer();
	asks(2, "GET /b");
	cr_expect_eq(exchange_cancelled(&exchange).ended, OUTCOME_CANCELLED);
	cr_expect_eq(exchange_cancelled(&exchange).ended, OUTCOME_NONE);
	cr_expect_not(will_send(3, "GET /c").starts_call);
	cr_expect(exchange_minds_receive(&exchange), "it keeps its place until then");
	cr_expect_eq(receives(4, "200"), OUTCOME_NONE);
	cr_expect_eq(closes(3000), OUTCOME_NONE);
}

Test(exchange, a_fork_with_no_call_open_changes_nothing)
{
	had_an_answer();
	cr_expect_eq(exchange_cancelled(&exchange).ended, OUTCOME_NONE);
	asks(3, "GET /b");
	cr_expect_eq(receives(4, "200"), OUTCOME_SUCCESS);
}

Test(exchange, a_connection_given_to_stdio_is_settled_by_its_connect)
{
	connects(0, 0);
	cr_expect_eq(exchange_left_to_stdio(&exchange).ended, OUTCOME_SUCCESS);
	cr_expect_eq(closes(5000), OUTCOME_NONE);
	setup();
	connects(0, EINPROGRESS);
	cr_expect_eq(exchange_left_to_stdio(&exchange).ended, OUTCOME_NONE);
	cr_expect_eq(connects(2, ECONNREFUSED), OUTCOME_FAILURE);
}

Test(exchange, a_reset_that_is_read_by_so_error_ends_the_call)
{
	connects(0, 0);
	sends(0, "GET /");
	cr_expect_eq(exchange_so_error(&exchange, &settings, 0, AT(1)).ended, OUTCOME_NONE);
	cr_expect_eq(exchange_so_error(&exchange, &settings, ECONNRESET, AT(2)).ended,
			OUTCOME_FAILURE);
}

Test(exchange, the_rule_s_own_errors_come_first)
{
	char error[200];

	cr_assert(settings_apply(&settings, "fail", "ECONNRESET", error, sizeof(error)), "%s",
			error);
	cr_assert(settings_apply(&settings, "ignore", "EPIPE", error, sizeof(error)), "%s", error);
	had_an_answer();
	asks(10, "GET /b");
	cr_expect_eq(receive_fails(10, 11, ECONNRESET, false), OUTCOME_FAILURE);
	asks(12, "GET /c");
	cr_expect_eq(sent(13, "x", -1, EPIPE), OUTCOME_IGNORED);
}

Test(exchange, in_the_middle_of_an_answer_nothing_is_asked)
{
	had_an_answer();
	cr_expect_not(exchange_minds_receive(&exchange));
	cr_expect_not(exchange_is_sending(&exchange), "the next send starts a call");
	cr_expect_not(exchange_times_receive(&exchange));
	asks(2, "GET /b");
	cr_expect(exchange_is_sending(&exchange));
	cr_expect(exchange_minds_receive(&exchange));
}

Test(exchange, zeroed_memory_is_an_exchange_on_which_nothing_happened)
{
	exchange = (struct exchange){ 0 };
	cr_expect(exchange_is_new_attempt(&exchange));
	cr_expect(exchange_is_sending(&exchange));
	cr_expect_eq(connects(0, 0), OUTCOME_NONE);
	cr_expect_eq(receives(1, "x"), OUTCOME_NONE);
	cr_expect_not(will_send(1, "x").starts_call);
	cr_expect_eq(sees_eof(2), OUTCOME_NONE);
	cr_expect_eq(closes(3), OUTCOME_NONE);
}
