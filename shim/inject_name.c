/* SPDX-License-Identifier: MIT */
#include "shim/inject_name.h"

#include <errno.h>
#include <netdb.h>
#include <stdlib.h>
#include <string.h>

#include "core/clock.h"
#include "shim/below.h"
#include "shim/host_entry.h"
#include "shim/inject_unit.h"
#include "shim/lookup.h"
#include "shim/runtime.h"
#include "shim/socket_wait.h"


/* What a lookup comes to. */
struct verdict {
	enum fault_kind kind;   /* FAULT_KIND_COUNT: what libc says */
	struct address address; /* of FAULT_ADDR */
	uint64_t delay_ns;
};

/* The same failure, as each family of functions tells it: measured on glibc. */
static const struct failure {
	int eai, h_error;
	int error; /* errno, and the result of the reentrant ones; 0: as it was, and 0 */
} failures[] = {
	[FAULT_NXDOMAIN] = { EAI_NONAME, HOST_NOT_FOUND, 0 },
	[FAULT_SERVFAIL] = { EAI_FAIL, NO_RECOVERY, 0 },
	[FAULT_AGAIN] = { EAI_AGAIN, TRY_AGAIN, EAGAIN },
	[FAULT_NODATA] = { EAI_NODATA, NO_DATA, 0 },
};

static struct cell *cell_of(const struct endpoint *endpoint)
{
	const struct rule *rule = config_match(&runtime.config, endpoint);

	return rule ? runtime_cell(rule, CELL_LOOKUP, endpoint, clock_coarse_ns(), NULL) : NULL;
}

/* Each rule gives the lookup a number. All delays add up; of the others the first. */
static void strike(const struct endpoint *endpoint, uint32_t number, uint64_t now_ns,
		struct verdict *verdict)
{
	struct inject_unit unit = { .rule = fault_rule_at(number) };
	const struct fault *fault = &unit.rule->fault;
	struct fault_choice choice;

	unit.unit.connection = fault_rule_connection(unit.rule, now_ns);
	unit.unit.call = 1;
	choice = inject_unit_choose(&unit, now_ns);
	if (choice.reason != FAULT_STRIKES)
		return;
	unit.cell = cell_of(endpoint);
	if (fault->kind == FAULT_LATENCY) {
		verdict->delay_ns += inject_unit_strikes_delay(&unit, choice.value, now_ns);
	} else if (verdict->kind != FAULT_KIND_COUNT) {
		fault_record_suppressed(fault_rule_record(unit.rule), FAULT_IMPOSSIBLE);
	} else if (inject_unit_strikes(&unit, choice.value, now_ns)) {
		verdict->kind = fault->kind;
		verdict->address = fault->address;
	}
}

__attribute__((noinline)) static struct verdict judge(const char *host)
{
	struct verdict verdict = { .kind = FAULT_KIND_COUNT };
	char name[HOST_SIZE];
	struct endpoint endpoint = { .host = name, .is_lookup = true };
	uint32_t rules[FAULT_TOGETHER_MAX], count;
	uint64_t now_ns;
	int error = errno;

	if (!runtime_is_judging() || !host || lookup_is_numeric(host) ||
			!host_normalize(host, name))
		return verdict;
	now_ns = clock_now_ns();
	if (fault_rules_have_changed())
		fault_rules_refresh(now_ns);
	count = fault_rules_match(&endpoint, FAULT_TCP, now_ns, rules, FAULT_TOGETHER_MAX);
	for (uint32_t i = 0; i < count; i++)
		strike(&endpoint, rules[i], now_ns, &verdict);
	/* What interrupts it, libc would not tell either. */
	while (verdict.delay_ns && !socket_sleep(-1, now_ns + verdict.delay_ns, false))
		;
	errno = error;
	return verdict;
}

static bool is_failure(const struct verdict *verdict)
{
	return verdict->kind >= FAULT_NXDOMAIN && verdict->kind <= FAULT_NODATA;
}

/* libc makes the answer, for an address that it need not look up: freeaddrinfo() frees it. */
static int answer_list(const struct verdict *verdict, const char *node, const char *service,
		const struct addrinfo *hints, struct addrinfo **result)
{
	struct addrinfo numeric = hints ? *hints : (struct addrinfo){ 0 };
	char text[46];
	char *name;
	int error;

	numeric.ai_flags |= AI_NUMERICHOST;
	address_format(&verdict->address, text);
	error = below()->getaddrinfo(text, service, &numeric, result);
	if (error == EAI_ADDRFAMILY)
		return EAI_NODATA;
	if (error || !(*result)->ai_canonname)
		return error;
	name = strdup(node);
	if (name) {
		free((*result)->ai_canonname);
		(*result)->ai_canonname = name;
	}
	return 0;
}

static int inject_getaddrinfo(const char *node, const char *service, const struct addrinfo *hints,
		struct addrinfo **result)
{
	struct verdict verdict;

	if (hints && hints->ai_flags & AI_NUMERICHOST)
		return below()->getaddrinfo(node, service, hints, result);
	verdict = judge(node);
	if (verdict.kind == FAULT_ADDR)
		return answer_list(&verdict, node, service, hints, result);
	if (!is_failure(&verdict))
		return below()->getaddrinfo(node, service, hints, result);
	h_errno = failures[verdict.kind].h_error;
	if (failures[verdict.kind].error)
		errno = failures[verdict.kind].error;
	return failures[verdict.kind].eai;
}

static int fail_host(const struct failure *failure, const struct host_room *room)
{
	h_errno = failure->h_error;
	if (failure->error)
		errno = failure->error;
	if (room->h_error)
		*room->h_error = failure->h_error;
	*room->result = NULL;
	return failure->error;
}

/* As gethostbyname2_r(). `family` AF_UNSPEC: gethostbyname(), of IPv4. */
static int answer_host(const struct verdict *verdict, const char *name, int family,
		const struct host_room *room)
{
	static const struct failure too_small = { EAI_SYSTEM, NETDB_INTERNAL, ERANGE };
	int own_family = verdict->address.family == 6 ? AF_INET6 : AF_INET;
	char *aliases[] = { NULL };
	char *addresses[] = { (char *)(uintptr_t)verdict->address.bytes, NULL };
	struct hostent entry = {
		.h_name = (char *)(uintptr_t)name,
		.h_aliases = aliases,
		.h_addrtype = own_family,
		.h_length = own_family == AF_INET6 ? 16 : 4,
		.h_addr_list = addresses,
	};

	if (is_failure(verdict))
		return fail_host(&failures[verdict->kind], room);
	if (own_family != (family == AF_UNSPEC ? AF_INET : family))
		return fail_host(&failures[FAULT_NODATA], room);
	if (!host_entry_copy(&entry, room->entry, room->buffer, room->size))
		return fail_host(&too_small, room);
	*room->result = room->entry;
	return 0;
}

/* In static memory, as libc's is. */
static struct hostent *answer_static(const struct verdict *verdict, const char *name, int family)
{
	static char buffer[HOST_SIZE + 128];
	static struct hostent entry;
	struct hostent *result = NULL;
	struct host_room room = { &entry, buffer, sizeof(buffer), &result, NULL };

	answer_host(verdict, name, family, &room);
	return result;
}

static struct hostent *inject_gethostbyname(const char *name)
{
	struct verdict verdict = judge(name);

	if (verdict.kind == FAULT_KIND_COUNT)
		return below()->gethostbyname(name);
	return answer_static(&verdict, name, AF_UNSPEC);
}

static struct hostent *inject_gethostbyname2(const char *name, int family)
{
	struct verdict verdict = judge(name);

	if (verdict.kind == FAULT_KIND_COUNT)
		return below()->gethostbyname2(name, family);
	return answer_static(&verdict, name, family);
}

static int inject_gethostbyname_r(const char *name, struct hostent *entry, char *buffer,
		size_t size, struct hostent **result, int *h_error)
{
	struct host_room room = { entry, buffer, size, result, h_error };
	struct verdict verdict = judge(name);

	if (verdict.kind == FAULT_KIND_COUNT)
		return below()->gethostbyname_r(name, entry, buffer, size, result, h_error);
	return answer_host(&verdict, name, AF_UNSPEC, &room);
}

static int inject_gethostbyname2_r(const char *name, int family, struct hostent *entry,
		char *buffer, size_t size, struct hostent **result, int *h_error)
{
	struct host_room room = { entry, buffer, size, result, h_error };
	struct verdict verdict = judge(name);

	if (verdict.kind == FAULT_KIND_COUNT)
		return below()->gethostbyname2_r(
				name, family, entry, buffer, size, result, h_error);
	return answer_host(&verdict, name, family, &room);
}

void inject_name_start(void)
{
	REPLACE(getaddrinfo, inject_getaddrinfo);
	REPLACE(gethostbyname, inject_gethostbyname);
	REPLACE(gethostbyname2, inject_gethostbyname2);
	REPLACE(gethostbyname_r, inject_gethostbyname_r);
	REPLACE(gethostbyname2_r, inject_gethostbyname2_r);
}
