/* SPDX-License-Identifier: MIT */
/* Name lookups, with what cannot be, and what every field of an answer says. */
#include <arpa/inet.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/programs/scene.h"

/* In /etc/hosts while the scenes play: two names of one address, and one with two addresses. */
#define ONE "one.parity.test"
#define OTHER "other.parity.test"
#define BOTH "both.parity.test"
/* In no file, and the resolver does not answer. */
#define UNKNOWN "unknown.parity.test"

static void say_address(const struct sockaddr *address)
{
	const struct sockaddr_in *v4 = (const void *)address;
	const struct sockaddr_in6 *v6 = (const void *)address;
	char text[INET6_ADDRSTRLEN] = "";

	if (address->sa_family == AF_INET6)
		inet_ntop(AF_INET6, &v6->sin6_addr, text, sizeof(text));
	else
		inet_ntop(AF_INET, &v4->sin_addr, text, sizeof(text));
	printf(" %s port %u scope %u", text, ntohs(v4->sin_port),
			address->sa_family == AF_INET6 ? v6->sin6_scope_id : 0);
}

static void say_list(const struct addrinfo *list)
{
	for (; list; list = list->ai_next) {
		printf("  flags %#x family %d type %d protocol %d length %u name %s",
				(unsigned int)list->ai_flags, list->ai_family, list->ai_socktype,
				list->ai_protocol, list->ai_addrlen,
				list->ai_canonname ? list->ai_canonname : "none");
		say_address(list->ai_addr);
		printf("\n");
	}
}

static void look_up(const char *node, const char *service, const struct addrinfo *hints)
{
	struct addrinfo *list = NULL;

	printf("%s, %s: ", node ? node : "NULL", service ? service : "NULL");
	if (SAY(getaddrinfo(node, service, hints, &list)) == 0) {
		say_list(list);
		freeaddrinfo(list);
	}
}

static void nothing_to_ask(void)
{
	struct addrinfo hints = { 0 }, passive = { .ai_flags = AI_PASSIVE, .ai_family = AF_INET };

	look_up(NULL, NULL, NULL);
	look_up(NULL, NULL, &hints);
	look_up(NULL, "80", NULL);
	look_up(NULL, "80", &hints);
	look_up(NULL, "80", &passive);
	look_up(NULL, "no such service", &hints);
}

static void something_to_ask(void)
{
	struct addrinfo hints = { 0 };

	look_up(ONE, NULL, NULL);
	look_up(ONE, NULL, &hints);
	look_up(ONE, "80", NULL);
	look_up(ONE, "80", &hints);
}

static void every_field(void)
{
	static const int flags[] = {
		0, AI_CANONNAME, AI_ADDRCONFIG, AI_V4MAPPED, AI_V4MAPPED | AI_ALL,
		AI_CANONNAME | AI_ADDRCONFIG | AI_V4MAPPED, AI_NUMERICSERV, AI_PASSIVE,
		AI_IDN | AI_CANONIDN, 1 << 20,
	};
	static const int families[] = { AF_UNSPEC, AF_INET, AF_INET6, 99 };

	for (size_t i = 0; i < COUNT(flags); i++) {
		for (size_t j = 0; j < COUNT(families); j++) {
			struct addrinfo hints = { .ai_flags = flags[i], .ai_family = families[j],
				.ai_socktype = j % 2 ? SOCK_STREAM : 0 };

			printf("%#x %d ", (unsigned int)flags[i], families[j]);
			look_up(j % 2 ? BOTH : OTHER, "80", &hints);
		}
	}
}

static void numeric(void)
{
	static const char *const hosts[] = {
		"127.0.0.1", "::1", "::ffff:127.0.0.1", "127.1", "0x7f000001", "017700000001",
		"2130706433", "::1%lo", "1.2.3.4.5", "256.1.1.1", "1..2",
	};
	struct addrinfo hints = { .ai_flags = AI_NUMERICHOST, .ai_socktype = SOCK_STREAM };
	struct addrinfo stream = { .ai_socktype = SOCK_STREAM };

	for (size_t i = 0; i < COUNT(hosts); i++) {
		look_up(hosts[i], "80", &hints);
		if (i < 8)
			look_up(hosts[i], "80", &stream);
	}
	look_up(ONE, "80", &hints);
	SAY(gethostbyname("127.0.0.1") != NULL);
	SAY(gethostbyname2("::1", AF_INET6) != NULL);
}

static void say_entry(const struct hostent *entry)
{
	char text[INET6_ADDRSTRLEN];

	if (!entry) {
		printf("  none, h_errno %d\n", h_errno);
		return;
	}
	printf("  %s type %d length %d:", entry->h_name, entry->h_addrtype, entry->h_length);
	for (char **at = entry->h_addr_list; *at; at++)
		printf(" %s", inet_ntop(entry->h_addrtype, *at, text, sizeof(text)));
	for (char **at = entry->h_aliases; *at; at++)
		printf(" alias %s", *at);
	printf("\n");
}

static void hosts(void)
{
	static const char *const names[] = { ONE, OTHER, BOTH, "ONE.Parity.Test" };

	for (size_t i = 0; i < COUNT(names); i++) {
		struct hostent *entry;

		h_errno = 0;
		SAY((entry = gethostbyname(names[i])) != NULL);
		say_entry(entry);
		SAY((entry = gethostbyname2(names[i], AF_INET6)) != NULL);
		say_entry(entry);
		SAY((entry = gethostbyname2(names[i], 99)) != NULL);
		say_entry(entry);
	}
}

/* The caller's buffer grows until the answer fits: what comes back on the way is a contract. */
static void small_buffers(void)
{
	struct hostent entry, *result;
	char buffer[1024];
	int h_error;

	for (size_t size = 0; size <= sizeof(buffer); size += 64) {
		result = &entry;
		h_error = 99;
		printf("%zu: ", size);
		SAY(gethostbyname_r(BOTH, &entry, buffer, size, &result, &h_error));
		printf("  %s, %d\n", result ? "an entry" : "none", h_error);
		result = &entry;
		h_error = 99;
		SAY(gethostbyname2_r(BOTH, AF_INET6, &entry, buffer, size, &result, &h_error));
		printf("  %s, %d\n", result ? "an entry" : "none", h_error);
	}
}

/* What is no name. */
static void odd_names(void)
{
	static const char *const names[] = { "", ".", "..", "a b", "-", "*", "a\tb", "\xff\xfe" };
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM };
	char label[80], name[400];

	memset(label, 'a', sizeof(label) - 1);
	label[sizeof(label) - 1] = '\0';
	memset(name, 'b', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	for (size_t i = 1; i < 8; i++)
		name[i * 50] = '.';
	for (size_t i = 0; i < COUNT(names); i++)
		look_up(names[i], "80", &hints);
	look_up(label, "80", &hints);
	look_up(name, "80", &hints);
	for (size_t i = 0; i < COUNT(names); i++)
		say_entry(gethostbyname(names[i]));
	say_entry(gethostbyname(label));
	say_entry(gethostbyname(name));
}

/* No word of errno: what it says after a lookup that failed is not for the program. */
static void resolver_is_dead(void)
{
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM }, *list;
	struct hostent entry, *result = &entry;
	char buffer[1024];
	int h_error = 99, error;

	printf("getaddrinfo: %s\n", gai_strerror(getaddrinfo(UNKNOWN, "80", NULL, &list)));
	printf("getaddrinfo: %s\n", gai_strerror(getaddrinfo(UNKNOWN, NULL, &hints, &list)));
	SAY(gethostbyname(UNKNOWN) != NULL);
	printf("h_errno: %d\n", h_errno);
	SAY(gethostbyname2(UNKNOWN, AF_INET6) != NULL);
	printf("h_errno: %d\n", h_errno);
	error = (int)SAY(gethostbyname_r(UNKNOWN, &entry, buffer, sizeof(buffer), &result,
			&h_error));
	printf("%s, %s, %d\n", strerrorname_np(error), result ? "an entry" : "none", h_error);
	h_error = 99;
	error = (int)SAY(gethostbyname2_r(
			UNKNOWN, AF_INET6, &entry, buffer, sizeof(buffer), &result, &h_error));
	printf("%s, %s, %d\n", strerrorname_np(error), result ? "an entry" : "none", h_error);
}

static void connect_to(const char *name)
{
	struct addrinfo hints = { .ai_family = AF_INET, .ai_socktype = SOCK_STREAM }, *list;
	char port[16], text[8];
	struct pair pair = { .client = stream_socket(0) };

	snprintf(port, sizeof(port), "%u", ntohs(address_listening().sin_port));
	must(getaddrinfo(name, port, &hints, &list), "look up a name");
	SAY(connect(pair.client, list->ai_addr, list->ai_addrlen));
	pair.server = must(accept(listener(), NULL, NULL), "accept");
	SAY(send(pair.client, "ping", 4, MSG_NOSIGNAL));
	server_answers(pair, 4);
	SAY(recv(pair.client, text, sizeof(text), 0));
	pair_close(pair);
	freeaddrinfo(list);
}

static void two_names_of_one_address(void)
{
	connect_to(ONE);
	connect_to(OTHER);
	connect_to(ONE);
	connect_to("127.0.0.1");
}

static long memory_kib(void)
{
	char line[256];
	long kib = 0;
	FILE *status = fopen("/proc/self/status", "re");

	while (status && fgets(line, sizeof(line), status))
		sscanf(line, "RssAnon: %ld", &kib);
	if (status)
		fclose(status);
	return kib;
}

/* Not of `all`: prints by how much memory grows while COUNT names are looked up a second time. */
static void many_names(const char *count)
{
	int names = atoi(count);
	long before = 0;

	for (int round = 0; round < 2; round++) {
		before = memory_kib();
		for (int i = 0; i < names; i++) {
			char name[64];
			struct addrinfo *list;

			snprintf(name, sizeof(name), "name%d.parity.test", i + round * names);
			must(getaddrinfo(name, NULL, NULL, &list), "look up a name");
			freeaddrinfo(list);
		}
	}
	printf("%ld\n", memory_kib() - before);
}

int main(int argc, char *argv[])
{
	static const struct scene scenes[] = {
		SCENE(nothing_to_ask),
		SCENE(something_to_ask),
		SCENE(every_field),
		SCENE(numeric),
		SCENE(hosts),
		SCENE(small_buffers),
		SCENE(odd_names),
		SCENE(resolver_is_dead),
		SCENE(two_names_of_one_address),
	};

	if (argc == 3 && !strcmp(argv[1], "many_names")) {
		many_names(argv[2]);
		return 0;
	}
	return scenes_play(scenes, COUNT(scenes), argc, argv);
}
