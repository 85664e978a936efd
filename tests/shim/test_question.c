/* SPDX-License-Identifier: MIT */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "shim/question.h"

TestSuite(question, .timeout = 10);

static const struct addrinfo stream = {.ai_socktype = SOCK_STREAM};
static const struct addrinfo datagram = {.ai_socktype = SOCK_DGRAM};
static const struct addrinfo zero = {.ai_flags = 0};
static const struct addrinfo v6 = {.ai_family = AF_INET6};
static const struct addrinfo udp = {.ai_protocol = IPPROTO_UDP};
static const struct addrinfo named = {.ai_flags = AI_CANONNAME};

/* No two of them are one question. */
static const struct question questions[] = {
		{QUESTION_LIST, "a.test", NULL, NULL, 0},
		{QUESTION_LIST, "A.test", NULL, NULL, 0},
		{QUESTION_LIST, "b.test", NULL, NULL, 0},
		{QUESTION_LIST, "a.test", "80", NULL, 0},
		{QUESTION_LIST, "a.test", "", NULL, 0},
		{QUESTION_LIST, "a.test", NULL, &zero, 0},
		{QUESTION_LIST, "a.test", NULL, &stream, 0},
		{QUESTION_LIST, "a.test", NULL, &datagram, 0},
		{QUESTION_LIST, "a.test", NULL, &v6, 0},
		{QUESTION_LIST, "a.test", NULL, &udp, 0},
		{QUESTION_LIST, "a.test", NULL, &named, 0},
		{QUESTION_LIST, "a.test", "80", &named, 0},
		{QUESTION_HOST, "a.test", NULL, NULL, 0},
		{QUESTION_HOST_OF_FAMILY, "a.test", NULL, NULL, AF_INET},
		{QUESTION_HOST_OF_FAMILY, "a.test", NULL, NULL, AF_INET6},
};

#define QUESTIONS (sizeof(questions) / sizeof(questions[0]))

Test(question, each_is_another)
{
	for (size_t i = 0; i < QUESTIONS; i++) {
		for (size_t j = 0; j < QUESTIONS; j++) {
			cr_assert_eq(question_equals(&questions[i], &questions[j]), i == j,
					"%zu %zu", i, j);
			cr_assert_eq(question_hash(&questions[i]) == question_hash(&questions[j]),
					i == j);
		}
	}
}

/* What libc does not look at is no part of it. */
Test(question, other_fields_of_the_hints_are_nothing)
{
	struct addrinfo odd = stream;
	struct question one = questions[6], other = one;

	odd.ai_addrlen = 99;
	odd.ai_canonname = "what";
	other.hints = &odd;
	cr_assert(question_equals(&one, &other));
	cr_assert_eq(question_hash(&one), question_hash(&other));
}

Test(question, a_copy_needs_the_original_no_more)
{
	for (size_t i = 0; i < QUESTIONS; i++) {
		char host[16] = "", service[16] = "";
		struct addrinfo hints = zero;
		struct question original = questions[i], copy;
		void *memory = malloc(question_bytes(&original));

		strcpy(host, original.host);
		original.host = host;
		if (original.service)
			original.service = strcpy(service, original.service);
		if (original.hints) {
			hints = *original.hints;
			original.hints = &hints;
		}
		copy = question_copy(&original, memory);
		memset(host, 'x', sizeof(host));
		memset(service, 'x', sizeof(service));
		memset(&hints, 'x', sizeof(hints));
		cr_assert(question_equals(&copy, &questions[i]), "%zu", i);
		free(memory);
	}
}
