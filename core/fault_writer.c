/* SPDX-License-Identifier: MIT */
#include "core/fault_writer.h"

#include <string.h>

#include "core/error_set.h"
#include "core/text.h"

struct unit {
	const char *name;
	uint64_t factor;
};

/* In the largest unit that leaves a whole number; the last one is 1. */
static size_t write_with_unit(uint64_t value, const struct unit units[], char *ret, size_t size)
{
	while (units->factor > 1 && (value == 0 || value % units->factor != 0))
		units++;
	return text_format(ret, size, "%llu%s", (unsigned long long)(value / units->factor),
			units->name);
}

static size_t write_duration(uint64_t ns, char *ret, size_t size)
{
	static const struct unit units[] = {
		{ "h", 3600000000000u },
		{ "m", 60000000000u },
		{ "s", 1000000000 },
		{ "ms", 1000000 },
		{ "us", 1000 },
		{ "ns", 1 },
	};

	if (ns == 0)
		return text_copy(ret, size, "0s");
	return write_with_unit(ns, units, ret, size);
}

static uint64_t number_of(const struct fault_term *term, const struct fault *fault)
{
	return *(const uint64_t *)fault_term_value(term, fault);
}

void fault_writer_duration(const struct fault_term *term, const struct fault *fault, char *ret,
		size_t size)
{
	write_duration(number_of(term, fault), ret, size);
}

static bool is_of_bits(const struct unit *unit)
{
	return strstr(unit->name, "bit") != NULL;
}

/* As the rule says it, if that is a whole number; else in the largest of its units, those of bits
 * or the others, that leaves one. */
static void write_bytes(uint64_t bytes, uint32_t factor, const struct unit units[], char *ret,
		size_t size)
{
	const struct unit *said = units, *unit = units;

	while (said->factor > 1 && said->factor != factor)
		said++;
	if (said->factor == factor && bytes % factor == 0)
		unit = said;
	while (unit->factor > 1 && (bytes == 0 || bytes % unit->factor != 0 ||
			is_of_bits(unit) != is_of_bits(said)))
		unit++;
	write_with_unit(bytes, unit, ret, size);
}

void fault_writer_size(const struct fault_term *term, const struct fault *fault, char *ret,
		size_t size)
{
	static const struct unit units[] = {
		{ "GiB", 1073741824 },
		{ "GB", 1000000000 },
		{ "MiB", 1048576 },
		{ "MB", 1000000 },
		{ "KiB", 1024 },
		{ "KB", 1000 },
		{ "B", 1 },
	};

	write_bytes(number_of(term, fault), fault->unit, units, ret, size);
}

void fault_writer_rate(const struct fault_term *term, const struct fault *fault, char *ret,
		size_t size)
{
	static const struct unit units[] = {
		{ "GiB/s", 1073741824 },
		{ "GB/s", 1000000000 },
		{ "Gbit/s", 125000000 },
		{ "MiB/s", 1048576 },
		{ "MB/s", 1000000 },
		{ "Mbit/s", 125000 },
		{ "KiB/s", 1024 },
		{ "KB/s", 1000 },
		{ "kbit/s", 125 },
		{ "B/s", 1 },
	};

	write_bytes(number_of(term, fault), fault->unit, units, ret, size);
}

void fault_writer_ratio(const struct fault_term *term, const struct fault *fault, char *ret,
		size_t size)
{
	(void)term;
	text_share(ret, size, fault->ratio);
}

void fault_writer_count(const struct fault_term *term, const struct fault *fault, char *ret,
		size_t size)
{
	text_format(ret, size, "%u", *(const uint32_t *)fault_term_value(term, fault));
}

void fault_writer_range(const struct fault_term *term, const struct fault *fault, char *ret,
		size_t size)
{
	(void)term;
	if (fault->low == fault->high)
		text_format(ret, size, "%u", fault->low);
	else
		text_format(ret, size, "%u..%u", fault->low, fault->high);
}

void fault_writer_calls(const struct fault_term *term, const struct fault *fault, char *ret,
		size_t size)
{
	size_t used = text_format(ret, size, "%u", fault->first);

	(void)term;
	if (fault->last != fault->first && fault->last != UINT32_MAX)
		used += text_format(ret + used, size - used, "..%u", fault->last);
	if (fault->step > 1)
		text_format(ret + used, size - used, "+%u", fault->step);
	else if (fault->last == UINT32_MAX)
		text_copy(ret + used, size - used, "+");
}

void fault_writer_flap(const struct fault_term *term, const struct fault *fault, char *ret,
		size_t size)
{
	size_t used = write_duration(fault->down_ns, ret, size);

	(void)term;
	used += text_copy(ret + used, size - used, "/");
	write_duration(fault->up_ns, ret + used, size - used);
}

void fault_writer_latency(const struct fault_term *term, const struct fault *fault, char *ret,
		size_t size)
{
	size_t used = write_duration(fault->delay_ns, ret, size);

	(void)term;
	if (!fault->jitter_ns)
		return;
	used += text_copy(ret + used, size - used, "~");
	used += write_duration(fault->jitter_ns, ret + used, size - used);
	if (fault->spread == FAULT_NORMAL)
		text_copy(ret + used, size - used, "/normal");
}

void fault_writer_error(const struct fault_term *term, const struct fault *fault, char *ret,
		size_t size)
{
	const char *name = error_name(fault->error);

	(void)term;
	text_copy(ret, size, name ? name : "");
}

void fault_writer_address(const struct fault_term *term, const struct fault *fault, char *ret,
		size_t size)
{
	char text[46];

	(void)term;
	text_copy(ret, size, address_format(&fault->address, text));
}

void fault_writer_word(const struct fault_term *term, const struct fault *fault, char *ret,
		size_t size)
{
	unsigned int index = *(const unsigned int *)fault_term_value(term, fault);

	text_copy(ret, size, term->words[index - (unsigned int)term->low]);
}

void fault_writer_proc(const struct fault_term *term, const struct fault *fault, char *ret,
		size_t size)
{
	(void)term;
	text_copy(ret, size, fault->proc);
}

void fault_writer_uid(const struct fault_term *term, const struct fault *fault, char *ret,
		size_t size)
{
	(void)term;
	text_format(ret, size, "%u", fault->uid);
}
