/* SPDX-License-Identifier: MIT */
/*
 *	zones PORT
 *
 * Threads that are in localtime() and tzset(), which lock, while the first one is refused at
 * 127.0.0.1 again and again. Prints how often.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define THREADS  4
#define CONNECTS 400

static _Atomic bool is_over;

static void *tell_time(void *nothing)
{
	time_t now = 0;
	struct tm local;

	while (!atomic_load(&is_over)) {
		tzset();
		localtime_r(&now, &local);
		now += 3600;
	}
	return nothing;
}

int main(int argc, char *argv[])
{
	struct sockaddr_in target = {
		.sin_family = AF_INET,
		.sin_port = htons((in_port_t)(argc > 1 ? atoi(argv[1]) : 0)),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
	struct timespec pause = { .tv_nsec = 1500000 };
	pthread_t threads[THREADS];
	int refused = 0;

	alarm(60);
	for (int i = 0; i < THREADS; i++)
		pthread_create(&threads[i], NULL, tell_time, NULL);
	for (int i = 0; i < CONNECTS; i++) {
		int fd = socket(AF_INET, SOCK_STREAM, 0);

		if (connect(fd, (struct sockaddr *)&target, sizeof(target)) == -1 &&
				errno == ECONNREFUSED)
			refused++;
		close(fd);
		/* The sleep window of the test's rule passes. */
		nanosleep(&pause, NULL);
	}
	atomic_store(&is_over, true);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	printf("refused %d of %d\n", refused, CONNECTS);
	return 0;
}
