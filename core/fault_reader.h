/* SPDX-License-Identifier: MIT */
/*
 * How the value of a term is read: the functions that rows of the table name. Each returns NULL and
 * has changed the row's fields, or what was expected.
 */
#ifndef SHUNT_CORE_FAULT_READER_H
#define SHUNT_CORE_FAULT_READER_H

#include "core/fault_term.h"

#define FAULT_READERS(READER) \
	READER(address) \
	READER(calls) \
	READER(count) \
	READER(duration) \
	READER(error) \
	READER(flap) \
	READER(latency) \
	READER(proc) \
	READER(range) \
	READER(rate) \
	READER(ratio) \
	READER(size) \
	READER(uid) \
	READER(word)

#define READER(name) \
	const char *fault_reader_##name( \
			const struct fault_term *term, struct fault *fault, const char *value);
FAULT_READERS(READER)
#undef READER

#endif
