/* SPDX-License-Identifier: MIT */
/*
 *	loads WAY PLUGIN PORT
 *
 * Connects to 127.0.0.1 by a function found in one of the ways that programs have, and by its own
 * connect() after each, and prints what came of it.
 */
#include <arpa/inet.h>
#include <dlfcn.h>
#include <errno.h>
#include <gnu/lib-names.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define ROUNDS 3

static int (*found_connect)(int fd, const struct sockaddr *address, socklen_t length);

static int connect_by(__typeof__(connect) *function, int port)
{
	struct sockaddr_in target = {
		.sin_family = AF_INET,
		.sin_port = htons((in_port_t)port),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	int error = function(fd, (struct sockaddr *)&target, sizeof(target)) ? errno : 0;

	close(fd);
	return error;
}

static int connect_found(int port)
{
	return connect_by(found_connect, port);
}

static void *symbol_of(void *object, const char *name)
{
	void *symbol = dlsym(object, name);

	if (symbol)
		return symbol;
	fprintf(stderr, "%s\n", dlerror());
	exit(99);
}

static void *object_of(void *object)
{
	if (object)
		return object;
	fprintf(stderr, "%s\n", dlerror());
	exit(99);
}

/* A function that connects to a port, by the way of that name. */
static int (*function_of(const char *way, const char *plugin))(int)
{
	int (*function)(int) = connect_found;

	if (!strcmp(way, "plain"))
		*(void **)&function = symbol_of(
				object_of(dlopen(plugin, RTLD_NOW)), "plugin_connect");
	else if (!strcmp(way, "deepbind"))
		*(void **)&function = symbol_of(
				object_of(dlopen(plugin, RTLD_NOW | RTLD_DEEPBIND)),
				"plugin_connect");
	else if (!strcmp(way, "dlmopen"))
		*(void **)&function = symbol_of(
				object_of(dlmopen(LM_ID_NEWLM, plugin, RTLD_NOW)),
				"plugin_connect");
	else if (!strcmp(way, "handle"))
		*(void **)&found_connect = symbol_of(
				object_of(dlopen(LIBC_SO, RTLD_NOW)), "connect");
	else if (!strcmp(way, "default"))
		*(void **)&found_connect = symbol_of(RTLD_DEFAULT, "connect");
	else /* program */
		*(void **)&found_connect = symbol_of(
				object_of(dlopen(NULL, RTLD_NOW)), "connect");
	return function;
}

int main(int argc, char *argv[])
{
	int (*function)(int);
	int port;

	if (argc < 4)
		return 2;
	port = atoi(argv[3]);
	function = function_of(argv[1], argv[2]);
	for (int i = 0; i < ROUNDS; i++) {
		printf("%s: %s\n", argv[1], strerrorname_np(function(port)));
		printf("own: %s\n", strerrorname_np(connect_by(connect, port)));
	}
	return 0;
}
