/* SPDX-License-Identifier: MIT */
#ifndef SHUNT_TESTS_FUZZ_H
#define SHUNT_TESTS_FUZZ_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

/* Of each fuzzer; always 0. libFuzzer finds it by its name. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Ends the run; not assert(), which a release build leaves out. */
#define FUZZ_EXPECT(condition) \
	do { \
		if (!(condition)) { \
			fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition); \
			abort(); \
		} \
	} while (0)

#endif
