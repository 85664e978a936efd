/* SPDX-License-Identifier: MIT */
#include "cli/endpoints.h"

#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "core/clock.h"
#include "core/text.h"

#define LOOKUP_PREFIX "dns:"

static const char expect_operand[] =
		"HOST:PORT, such as pay.internal:443 or [2001:db8::1]:443, or dns:NAME";

struct endpoint endpoints_ask(const struct known_endpoint *known)
{
	return (struct endpoint){
		.host = known->host[0] ? known->host : NULL,
		.address = known->address.family ? &known->address : NULL,
		.port = known->port,
		.is_lookup = known->is_lookup,
	};
}

static void add(struct endpoints *endpoints, const char *host, const struct address *address,
		uint16_t port)
{
	struct known_endpoint *known = &endpoints->known[endpoints->count];

	if (endpoints->count == ENDPOINTS_MAX)
		return;
	*known = (struct known_endpoint){ .port = port };
	if (address)
		known->address = *address;
	text_copy(known->host, sizeof(known->host), host);
	for (size_t i = 0; i < endpoints->count; i++) {
		const struct known_endpoint *other = &endpoints->known[i];

		if (address && strcmp(other->host, known->host) == 0 &&
				address_equals(&other->address, &known->address))
			return;
	}
	endpoints->count++;
}

static void add_lookup(struct endpoints *endpoints, const char *host)
{
	add(endpoints, host, NULL, 0);
	endpoints->known[endpoints->count - 1].is_lookup = true;
}

static bool read_address(const struct addrinfo *found, struct address *ret)
{
	if (found->ai_family == AF_INET)
		*ret = address_from_v4(&((struct sockaddr_in *)(void *)found->ai_addr)->sin_addr);
	else if (found->ai_family == AF_INET6)
		*ret = address_from_v6(&((struct sockaddr_in6 *)(void *)found->ai_addr)->sin6_addr);
	else
		return false;
	return true;
}

static void add_name(struct endpoints *endpoints, const struct target *target)
{
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM }, *found = NULL;
	int error = getaddrinfo(target->host, NULL, &hints, &found);
	struct address address;

	if (error) {
		snprintf(endpoints->note, sizeof(endpoints->note),
				"%s does not resolve here (%s), so what rules by address would say "
				"is not known", target->host, gai_strerror(error));
		add(endpoints, target->host, NULL, target->port_low);
		return;
	}
	for (const struct addrinfo *one = found; one; one = one->ai_next) {
		/* One place is the lookup's. */
		if (endpoints->count + 1 < ENDPOINTS_MAX && read_address(one, &address))
			add(endpoints, target->host, &address, target->port_low);
	}
	freeaddrinfo(found);
}

/* The names under which circuits know the address. */
static void add_address(struct endpoints *endpoints, const struct target *target,
		const struct state *state)
{
	static struct cell_snapshot cells[SEGMENT_CELLS];
	size_t count = state_cells(state, clock_now_ns(), cells);
	struct address address;

	for (size_t i = 0; i < count; i++) {
		const struct cell_key *key = &cells[i].key;

		if (address_equals(&key->address, &target->address) && key->host[0] &&
				!address_parse(key->host, &address))
			add(endpoints, key->host, &target->address, target->port_low);
	}
	if (endpoints->count == 0)
		snprintf(endpoints->note, sizeof(endpoints->note),
				"rules by name apply too where the program resolves a name to this "
				"address; ask with the name");
	add(endpoints, "", &target->address, target->port_low);
}

const char *endpoints_find(const char *operand, const struct state *state, struct endpoints *ret)
{
	bool is_lookup = strncmp(operand, LOOKUP_PREFIX, strlen(LOOKUP_PREFIX)) == 0;
	struct target target;

	*ret = (struct endpoints){ 0 };
	if (target_parse(operand + (is_lookup ? strlen(LOOKUP_PREFIX) : 0), &target) ||
			target.kind != TARGET_EXACT || target.is_excluded)
		return expect_operand;
	if (is_lookup ? target.is_address || target.port_high != UINT16_MAX
		      : target.port_low != target.port_high)
		return expect_operand;
	if (is_lookup) {
		add_lookup(ret, target.host);
	} else if (target.is_address) {
		add_address(ret, &target, state);
	} else {
		add_name(ret, &target);
		add_lookup(ret, target.host);
	}
	return NULL;
}
