/* SPDX-License-Identifier: MIT */
/* Two threads that send and two that receive on one TLS connection: every call that begins ends,
 * and ends once. (No program would do this; the exchange must survive it.) */
#include <pthread.h>
#include <stdio.h>

#include "shim/exchange.h"

#define EVENTS 200000u
#define EPOCH_NS 1000000000000ull
#define RECORD_SIZE 100

static uint8_t hello[RECORD_SIZE] = { 22, 3, 3, 0, RECORD_SIZE - 5 };
static uint8_t data[RECORD_SIZE] = { 23, 3, 3, 0, RECORD_SIZE - 5 };
static struct exchange exchange;
static _Atomic uint64_t begun, ended;

static uint64_t event_time_ns(unsigned int i)
{
	return EPOCH_NS + i * 1000ull;
}

static void count_end(struct exchange_step step)
{
	if (step.ended != OUTCOME_NONE)
		atomic_fetch_add_explicit(&ended, 1, memory_order_relaxed);
}

static void begin_call(struct bytes bytes, uint64_t now_ns)
{
	struct exchange_step step = exchange_will_send(&exchange, &settings_default, bytes, now_ns);

	count_end(step);
	if (step.starts_call && exchange_call(&exchange, now_ns))
		atomic_fetch_add_explicit(&begun, 1, memory_order_relaxed);
}

static void *send_all(void *unused)
{
	struct iovec vector = { data, sizeof(data) };
	struct bytes bytes = { &vector, 1 };

	for (unsigned int i = 0; i < EVENTS; i++) {
		if (!exchange_is_sending(&exchange))
			begin_call(bytes, event_time_ns(i));
		count_end(exchange_sent(&exchange, &settings_default, bytes,
				(ssize_t)(i % RECORD_SIZE + 1), 0, event_time_ns(i)));
	}
	return unused;
}

static void *receive_all(void *unused)
{
	struct iovec vector = { data, sizeof(data) };
	struct bytes bytes = { &vector, 1 };

	for (unsigned int i = 0; i < EVENTS; i++) {
		if (exchange_minds_receive(&exchange))
			count_end(exchange_received(&exchange, &settings_default, bytes,
					(ssize_t)(i % RECORD_SIZE + 1), 0, i & 1, 0,
					event_time_ns(i)));
	}
	return unused;
}

int main(void)
{
	struct iovec vector = { hello, sizeof(hello) };
	pthread_t threads[4];

	exchange_begin(&exchange, EPOCH_NS);
	begun = 1;
	exchange_connected(&exchange, &settings_default, 0, EPOCH_NS);
	exchange_sent(&exchange, &settings_default, (struct bytes){ &vector, 1 }, sizeof(hello), 0,
			EPOCH_NS);
	for (int i = 0; i < 4; i++) {
		if (pthread_create(&threads[i], NULL, i & 1 ? send_all : receive_all, NULL))
			return 2;
	}
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	count_end(exchange_closed(&exchange, &settings_default, EPOCH_NS));
	printf("%llu calls begun, %llu ended\n", (unsigned long long)begun,
			(unsigned long long)ended);
	return begun != ended;
}
