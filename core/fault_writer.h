/* SPDX-License-Identifier: MIT */
/* The twins of fault_reader.h: the value of a term as text that reads as the same. Buffers of
 * FAULT_VALUE_SIZE. */
#ifndef SHUNT_CORE_FAULT_WRITER_H
#define SHUNT_CORE_FAULT_WRITER_H

#include "core/fault_reader.h"
#include "core/fault_term.h"

#define FAULT_VALUE_SIZE FAULT_PROC_SIZE

#define WRITER(name) \
	void fault_writer_##name(const struct fault_term *term, const struct fault *fault, \
			char *ret, size_t size);
FAULT_READERS(WRITER)
#undef WRITER

#endif
