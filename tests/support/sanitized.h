/* SPDX-License-Identifier: MIT */
/* Some tests ask for what AddressSanitizer's own runtime cannot bear. */
#ifndef SHUNT_TESTS_SUPPORT_SANITIZED_H
#define SHUNT_TESTS_SUPPORT_SANITIZED_H

#if defined(__SANITIZE_ADDRESS__)
#define IS_SANITIZED 1
#elif defined(__has_feature)
#define IS_SANITIZED __has_feature(address_sanitizer)
#else
#define IS_SANITIZED 0
#endif

/* Skips the running test, and says why. */
#define SKIP_IF_SANITIZED(why) \
	do { \
		if (IS_SANITIZED) \
			cr_skip_test("under AddressSanitizer: " why); \
	} while (0)

#endif
