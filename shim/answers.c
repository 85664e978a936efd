/* SPDX-License-Identifier: MIT */
#include "shim/answers.h"

#include <errno.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "core/clock.h"
#include "shim/host_entry.h"
#include "shim/real.h"
#include "shim/thread.h"

#define ANSWERS_MAX 256
#define BYTES_MAX   (256 * 1024)

/* One of a list's addresses, in the order of the list. */
struct node {
	int flags, family, socktype, protocol;
	socklen_t length;
	union {
		struct sockaddr_in v4;
		struct sockaddr_in6 v6;
	} address;
};

/* The question's copy and the answer follow in the same memory. */
struct answer {
	uint64_t hash;
	struct question question;
	uint64_t kept_ns;
	uint64_t used; /* tick of the last time it was asked for */
	size_t bytes;
	size_t node_count; /* of a list */
	struct node *nodes;
	char *canonname;      /* or NULL */
	struct hostent entry; /* of a host */
};

static struct {
	pthread_mutex_t mutex;
	struct answer *answers[ANSWERS_MAX];
	size_t bytes;
	uint64_t tick;
} table = {.mutex = PTHREAD_MUTEX_INITIALIZER};

static struct answer **table_find(const struct question *question, uint64_t hash)
{
	for (size_t i = 0; i < ANSWERS_MAX; i++) {
		struct answer *answer = table.answers[i];

		if (answer && answer->hash == hash && question_equals(&answer->question, question))
			return &table.answers[i];
	}
	return NULL;
}

static void table_drop(struct answer **slot)
{
	table.bytes -= (*slot)->bytes;
	free(*slot);
	*slot = NULL;
}

static struct answer **table_oldest(void)
{
	struct answer **oldest = NULL;

	for (size_t i = 0; i < ANSWERS_MAX; i++) {
		if (table.answers[i] && (!oldest || table.answers[i]->used < (*oldest)->used))
			oldest = &table.answers[i];
	}
	return oldest;
}

static struct answer **table_free_slot(void)
{
	for (size_t i = 0; i < ANSWERS_MAX; i++) {
		if (!table.answers[i])
			return &table.answers[i];
	}
	return NULL;
}

/* The table, which is locked, owns it from now on. */
static void table_put(struct answer *answer)
{
	struct answer **slot = table_find(&answer->question, answer->hash);

	if (slot)
		table_drop(slot);
	while (!(slot = table_free_slot()) || table.bytes + answer->bytes > BYTES_MAX)
		table_drop(table_oldest());
	*slot = answer;
	answer->used = ++table.tick;
	table.bytes += answer->bytes;
}

static void answer_keep(struct answer *answer)
{
	uint64_t signals;

	if (!thread_lock(&table.mutex, &signals)) {
		free(answer);
		return;
	}
	table_put(answer);
	thread_unlock(&table.mutex, signals);
}

/* The kept answer of a locked table, or NULL. */
static struct answer *table_get(
		const struct question *question, uint64_t max_age_ns, uint64_t now_ns)
{
	struct answer **slot = table_find(question, question_hash(question));

	if (!slot || clock_elapsed_ns((*slot)->kept_ns, now_ns) > max_age_ns)
		return NULL;
	(*slot)->used = ++table.tick;
	return *slot;
}

static size_t align(size_t size)
{
	return (size + _Alignof(max_align_t) - 1) & ~(_Alignof(max_align_t) - 1);
}

/* NULL without memory, or for what is too large. *ret_rest is where the answer itself goes. */
static struct answer *answer_make(
		const struct question *question, size_t size, uint64_t now_ns, void **ret_rest)
{
	size_t head = align(sizeof(struct answer)), asked = align(question_bytes(question));
	struct answer *answer;

	if (head + asked + size > ANSWERS_BYTES_EACH)
		return NULL;
	answer = malloc(head + asked + size);
	if (!answer)
		return NULL;
	*answer = (struct answer){
			.hash = question_hash(question),
			.question = question_copy(question, (char *)answer + head),
			.kept_ns = now_ns,
			.bytes = head + asked + size,
	};
	*ret_rest = (char *)answer + head + asked;
	return answer;
}

static bool node_read(const struct addrinfo *item, struct node *ret)
{
	*ret = (struct node){item->ai_flags, item->ai_family, item->ai_socktype, item->ai_protocol,
			item->ai_addrlen, {.v6 = {0}}};
	if (item->ai_addrlen > sizeof(ret->address))
		return false;
	memcpy(&ret->address, item->ai_addr, item->ai_addrlen);
	return true;
}

static size_t list_count(const struct addrinfo *list)
{
	size_t count = 0;

	for (; list && count <= ANSWERS_BYTES_EACH / sizeof(struct node); list = list->ai_next)
		count++;
	return count;
}

void answers_keep_list(
		const struct question *question, const struct addrinfo *list, uint64_t now_ns)
{
	int kept = errno;
	size_t count = list_count(list);
	const char *name = list->ai_canonname;
	size_t name_bytes = name ? strlen(name) + 1 : 0;
	void *rest;
	struct answer *answer = answer_make(
			question, count * sizeof(struct node) + name_bytes, now_ns, &rest);

	errno = kept;
	if (!answer)
		return;
	answer->nodes = rest;
	if (name)
		answer->canonname = memcpy(answer->nodes + count, name, name_bytes);
	for (; list; list = list->ai_next) {
		if (!node_read(list, &answer->nodes[answer->node_count++])) {
			free(answer);
			return;
		}
	}
	answer_keep(answer);
}

void answers_keep_entry(
		const struct question *question, const struct hostent *entry, uint64_t now_ns)
{
	int kept = errno;
	size_t size = host_entry_bytes(entry);
	void *rest;
	struct answer *answer = answer_make(question, size, now_ns, &rest);

	errno = kept;
	if (!answer)
		return;
	host_entry_copy(entry, &answer->entry, rest, size);
	answer_keep(answer);
}

/* An item as libc makes them, from an address that it need not look up: freeaddrinfo() frees what
 * getaddrinfo() allocated. NULL without memory. */
static struct addrinfo *item_make(const struct node *node)
{
	struct addrinfo hints = {
			.ai_flags = AI_NUMERICHOST,
			.ai_family = node->family,
			.ai_socktype = SOCK_STREAM,
	};
	struct addrinfo *item = NULL;

	if (real()->getaddrinfo(node->family == AF_INET6 ? "::" : "0.0.0.0", NULL, &hints, &item))
		return NULL;
	item->ai_flags = node->flags;
	item->ai_socktype = node->socktype;
	item->ai_protocol = node->protocol;
	if (item->ai_next || item->ai_addrlen != node->length) {
		freeaddrinfo(item);
		return NULL;
	}
	memcpy(item->ai_addr, &node->address, node->length);
	return item;
}

static struct addrinfo *list_make(const struct answer *answer)
{
	struct addrinfo *list = NULL, **end = &list;

	for (size_t i = 0; i < answer->node_count; i++) {
		*end = item_make(&answer->nodes[i]);
		if (!*end)
			goto fail;
		end = &(*end)->ai_next;
	}
	if (!answer->canonname)
		return list;
	list->ai_canonname = strdup(answer->canonname);
	if (list->ai_canonname)
		return list;
fail:
	if (list)
		freeaddrinfo(list);
	return NULL;
}

struct addrinfo *answers_list(const struct question *question, uint64_t max_age_ns, uint64_t now_ns)
{
	int kept = errno;
	const struct answer *answer;
	struct addrinfo *list = NULL;
	uint64_t signals;

	if (!thread_lock(&table.mutex, &signals))
		return NULL;
	answer = table_get(question, max_age_ns, now_ns);
	if (answer)
		list = list_make(answer);
	thread_unlock(&table.mutex, signals);
	errno = kept;
	return list;
}

enum answers_found answers_entry(const struct question *question, uint64_t max_age_ns,
		uint64_t now_ns, struct hostent *ret, char *buffer, size_t size)
{
	const struct answer *answer;
	enum answers_found found = ANSWERS_NONE;
	uint64_t signals;

	if (!thread_lock(&table.mutex, &signals))
		return found;
	answer = table_get(question, max_age_ns, now_ns);
	if (answer)
		found = host_entry_copy(&answer->entry, ret, buffer, size) ? ANSWERS_FOUND
									   : ANSWERS_TOO_LARGE;
	thread_unlock(&table.mutex, signals);
	return found;
}

void answers_forked(void)
{
	/* Somebody was at it, who does not exist here. */
	if (pthread_mutex_trylock(&table.mutex) == 0) {
		pthread_mutex_unlock(&table.mutex);
		return;
	}
	for (size_t i = 0; i < ANSWERS_MAX; i++)
		table.answers[i] = NULL;
	table.bytes = 0;
	table.mutex = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
}
