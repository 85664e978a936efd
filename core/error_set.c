/* SPDX-License-Identifier: MIT */
#include "core/error_set.h"

#include <errno.h>
#include <netdb.h>
#include <string.h>

#include "core/text.h"

#define ERRORS(ERROR) \
	ERROR(ECONNREFUSED) \
	ERROR(ECONNRESET) \
	ERROR(ECONNABORTED) \
	ERROR(ETIMEDOUT) \
	ERROR(EHOSTUNREACH) \
	ERROR(EHOSTDOWN) \
	ERROR(ENETUNREACH) \
	ERROR(ENETDOWN) \
	ERROR(ENETRESET) \
	ERROR(ENONET) \
	ERROR(ENOPROTOOPT) \
	ERROR(EPROTO) \
	ERROR(EPROTONOSUPPORT) \
	ERROR(EPROTOTYPE) \
	ERROR(EPIPE) \
	ERROR(ENOTCONN) \
	ERROR(ESHUTDOWN) \
	ERROR(EIO) \
	ERROR(EADDRNOTAVAIL) \
	ERROR(EADDRINUSE) \
	ERROR(EAFNOSUPPORT) \
	ERROR(EOPNOTSUPP) \
	ERROR(EMSGSIZE) \
	ERROR(EMFILE) \
	ERROR(ENFILE) \
	ERROR(ENOBUFS) \
	ERROR(ENOMEM) \
	ERROR(EACCES) \
	ERROR(EPERM) \
	ERROR(EBADF) \
	ERROR(EFAULT) \
	ERROR(EINVAL) \
	ERROR(ECANCELED) \
	ERROR(EAI_AGAIN) \
	ERROR(EAI_FAIL) \
	ERROR(EAI_NONAME) \
	ERROR(EAI_NODATA) \
	ERROR(EAI_ADDRFAMILY) \
	ERROR(EAI_FAMILY) \
	ERROR(EAI_SOCKTYPE) \
	ERROR(EAI_SERVICE) \
	ERROR(EAI_BADFLAGS) \
	ERROR(EAI_MEMORY) \
	ERROR(EAI_SYSTEM) \
	ERROR(EAI_OVERFLOW)

#define NAME(name) #name,
static const char *const names[] = { ERRORS(NAME) };
#undef NAME

#define VALUE(name) name,
static const int values[] = { ERRORS(VALUE) };
#undef VALUE

#define COUNT (sizeof(values) / sizeof(values[0]))

int error_from_name(const char *name)
{
	for (size_t i = 0; i < COUNT; i++) {
		if (strcmp(name, names[i]) == 0)
			return values[i];
	}
	return 0;
}

const char *error_name(int error)
{
	for (size_t i = 0; i < COUNT; i++) {
		if (values[i] == error)
			return names[i];
	}
	return NULL;
}

const char *error_nearest_name(const char *name)
{
	return text_nearest(name, names, COUNT);
}

static bool has_bit(const uint64_t *words, size_t count, int bit)
{
	return bit >= 0 && (size_t)bit < 64 * count && (words[bit / 64] >> bit % 64 & 1);
}

void error_set_add(struct error_set *set, int error)
{
	int bit = error < 0 ? -error : error;
	uint64_t *words = error < 0 ? set->eais : set->errnos;

	if (bit < (error < 0 ? 128 : 192))
		words[bit / 64] |= 1ull << bit % 64;
}

bool error_set_has_errno(const struct error_set *set, int error)
{
	return has_bit(set->errnos, 3, error);
}

bool error_set_has_eai(const struct error_set *set, int eai)
{
	return eai < 0 && eai > -128 && has_bit(set->eais, 2, -eai);
}

int error_set_common(const struct error_set *a, const struct error_set *b)
{
	for (int error = 1; error < 192; error++) {
		if (error_set_has_errno(a, error) && error_set_has_errno(b, error))
			return error;
	}
	for (int eai = -1; eai > -128; eai--) {
		if (error_set_has_eai(a, eai) && error_set_has_eai(b, eai))
			return eai;
	}
	return 0;
}
