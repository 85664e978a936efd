/* SPDX-License-Identifier: MIT */
/*
 * For each line on stdin, looks NAME up in every way, and prints every field of every answer; at
 * the end of it a line "done".
 *
 *	answers NAME
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static void say_address(const struct sockaddr *address)
{
	const struct sockaddr_in *v4 = (const void *)address;
	const struct sockaddr_in6 *v6 = (const void *)address;
	char text[INET6_ADDRSTRLEN] = "";

	if (address->sa_family == AF_INET6)
		inet_ntop(AF_INET6, &v6->sin6_addr, text, sizeof(text));
	else
		inet_ntop(AF_INET, &v4->sin_addr, text, sizeof(text));
	printf(" %s port %u", text, ntohs(v4->sin_port));
	if (address->sa_family == AF_INET6)
		printf(" scope %u flow %u", v6->sin6_scope_id, v6->sin6_flowinfo);
	printf("\n");
}

static void ask(const char *name, const char *service, const struct addrinfo *hints)
{
	struct addrinfo *list = NULL;
	int error = getaddrinfo(name, service, hints, &list);

	if (error)
		printf("  error %d, errno %d\n", error, error == EAI_SYSTEM ? errno : 0);
	for (const struct addrinfo *item = list; item; item = item->ai_next) {
		printf("  flags %#x family %d type %d protocol %d length %u name %s",
				(unsigned int)item->ai_flags, item->ai_family, item->ai_socktype,
				item->ai_protocol, item->ai_addrlen,
				item->ai_canonname ? item->ai_canonname : "none");
		say_address(item->ai_addr);
	}
	if (!error)
		freeaddrinfo(list);
}

static void ask_lists(const char *name)
{
	static const struct addrinfo hints[] = {
			{0},
			{.ai_socktype = SOCK_STREAM},
			{.ai_socktype = SOCK_DGRAM},
			{.ai_socktype = SOCK_RAW},
			{.ai_protocol = IPPROTO_TCP},
			{.ai_protocol = IPPROTO_SCTP},
			{.ai_family = AF_INET},
			{.ai_family = AF_INET6},
			{.ai_family = AF_INET6, .ai_socktype = SOCK_STREAM},
			{.ai_flags = AI_CANONNAME},
			{.ai_flags = AI_CANONNAME,
					.ai_family = AF_INET,
					.ai_socktype = SOCK_STREAM},
			{.ai_flags = AI_CANONNAME, .ai_family = AF_INET6},
			{.ai_flags = AI_ADDRCONFIG, .ai_socktype = SOCK_STREAM},
			{.ai_flags = AI_V4MAPPED, .ai_family = AF_INET6},
			{.ai_flags = AI_V4MAPPED | AI_ALL, .ai_family = AF_INET6},
			{.ai_flags = AI_CANONNAME | AI_ADDRCONFIG | AI_V4MAPPED},
			{.ai_flags = AI_PASSIVE, .ai_socktype = SOCK_STREAM},
			{.ai_flags = AI_NUMERICSERV, .ai_socktype = SOCK_STREAM},
			{.ai_flags = AI_IDN | AI_CANONNAME | AI_CANONIDN},
			{.ai_flags = AI_V4MAPPED, .ai_family = AF_INET},
			/* Wrong ones. */
			{.ai_family = 99},
			{.ai_flags = 1 << 20},
			{.ai_flags = AI_CANONIDN, .ai_socktype = 77},
	};

	ask(name, NULL, NULL);
	ask(name, "80", NULL);
	for (size_t i = 0; i < COUNT(hints); i++) {
		printf("hints %zu:\n", i);
		ask(name, NULL, &hints[i]);
		ask(name, "80", &hints[i]);
	}
	ask(name, "no such service", &hints[1]);
}

static void say_entry(const char *what, const struct hostent *entry, int error, int h_error)
{
	char text[INET6_ADDRSTRLEN];

	printf("%s: %d", what, error);
	if (!entry) {
		printf(", none, %d\n", h_error);
		return;
	}
	printf(", %s type %d length %d:", entry->h_name, entry->h_addrtype, entry->h_length);
	for (char **at = entry->h_addr_list; *at; at++)
		printf(" %s", inet_ntop(entry->h_addrtype, *at, text, sizeof(text)));
	for (char **at = entry->h_aliases; *at; at++)
		printf(" alias %s", *at);
	printf("\n");
}

/* As programs do: with a buffer that grows until it is enough. */
static void ask_host_into(const char *name, int family)
{
	struct hostent entry, *result = &entry;
	size_t size = 8;
	int error, h_error;
	char *buffer = NULL;

	do {
		size *= 2;
		buffer = realloc(buffer, size);
		h_error = 99;
		result = &entry;
		error = family ? gethostbyname2_r(name, family, &entry, buffer, size, &result,
						 &h_error)
			       : gethostbyname_r(name, &entry, buffer, size, &result, &h_error);
		if (error == ERANGE && (result || h_error != NETDB_INTERNAL || errno != ERANGE))
			printf("not the contract of a buffer that is too small\n");
	} while (error == ERANGE);
	say_entry("into a buffer", result, error, h_error);
	free(buffer);
}

static void ask_hosts(const char *name)
{
	static const int families[] = {AF_INET, AF_INET6, 99};
	struct hostent *entry = gethostbyname(name);

	say_entry("host", entry, 0, h_errno);
	ask_host_into(name, 0);
	for (size_t i = 0; i < COUNT(families); i++) {
		entry = gethostbyname2(name, families[i]);
		say_entry("host of family", entry, 0, h_errno);
		ask_host_into(name, families[i]);
	}
}

int main(int argc, char *argv[])
{
	char line[64];

	setvbuf(stdout, NULL, _IOFBF, 65536);
	while (argc == 2 && fgets(line, sizeof(line), stdin)) {
		ask_lists(argv[1]);
		ask_hosts(argv[1]);
		printf("done\n");
		fflush(stdout);
	}
	return 0;
}
