/* SPDX-License-Identifier: MIT */
/* A plug-in that connects: what it calls depends on how it was opened (loads.c). */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

int plugin_connect(int port);

/* 0 or an errno. */
__attribute__((visibility("default"))) int plugin_connect(int port)
{
	struct sockaddr_in target = {
		.sin_family = AF_INET,
		.sin_port = htons((in_port_t)port),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
	char answer[16];
	int fd = socket(AF_INET, SOCK_STREAM, 0), error = 0;

	if (connect(fd, (struct sockaddr *)&target, sizeof(target)) ||
			send(fd, "GET / HTTP/1.0\r\n\r\n", 18, MSG_NOSIGNAL) < 0 ||
			recv(fd, answer, sizeof(answer), 0) < 0)
		error = errno;
	close(fd);
	return error;
}
