/* SPDX-License-Identifier: MIT */
/* What HOST:PORT or dns:NAME stands for: the endpoints that rules may be about. */
#ifndef SHUNT_CLI_ENDPOINTS_H
#define SHUNT_CLI_ENDPOINTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cli/state.h"
#include "core/target.h"

#define ENDPOINTS_MAX 32
#define ENDPOINTS_NOTE_SIZE 640

struct known_endpoint {
	char host[HOST_SIZE];   /* "" for an address whose name nobody knows */
	struct address address; /* family 0: of lookups, and of names that could not be resolved */
	uint16_t port;
	bool is_lookup;
};

struct endpoints {
	struct known_endpoint known[ENDPOINTS_MAX]; /* connections, then the lookup */
	size_t count;
	char note[ENDPOINTS_NOTE_SIZE]; /* what people should know, or "" */
};

/*
 * A name is resolved, as the program would; an address is also what the circuits in the segment
 * know it as. NULL; or what was expected, static text.
 */
const char *endpoints_find(const char *operand, const struct state *state, struct endpoints *ret);

/* As rules are asked; points into `known`. */
struct endpoint endpoints_ask(const struct known_endpoint *known);

#endif
