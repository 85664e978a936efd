/* SPDX-License-Identifier: MIT */
#include "core/draw.h"

#define STEPS 64
#define GOLDEN 0x9e3779b97f4a7c15u

/* The finalizer of splitmix64: every bit of the input changes about half of the output. */
static uint64_t mix(uint64_t value)
{
	value += GOLDEN;
	value = (value ^ value >> 30) * 0xbf58476d1ce4e5b9u;
	value = (value ^ value >> 27) * 0x94d049bb133111ebu;
	return value ^ value >> 31;
}

/* One round a number, so that no sum of two of them stands for another pair. */
uint64_t draw_number(const struct draw *draw, uint32_t index)
{
	uint64_t value = mix(draw->seed);

	value = mix(value ^ draw->rule);
	value = mix(value ^ ((uint64_t)draw->connection << 32 | draw->call));
	return mix(value ^ index);
}

uint64_t draw_below(uint64_t number, uint64_t limit)
{
	__extension__ typedef unsigned __int128 wide;

	return (uint64_t)((wide)number * limit >> 64);
}

/* Where 0/64 to 64/64 of the positive half of the curve, cut at 3 sigma, end. */
static const int32_t quantiles[STEPS + 1] = { 0, 1280, 2561, 3842, 5125, 6410, 7697, 8988, 10281,
	11579, 12882, 14189, 15503, 16822, 18148, 19482, 20824, 22175, 23535, 24905, 26287, 27680,
	29086, 30505, 31939, 33388, 34854, 36337, 37839, 39362, 40906, 42473, 44064, 45682, 47329,
	49006, 50715, 52460, 54243, 56067, 57935, 59852, 61821, 63848, 65937, 68096, 70332, 72652,
	75068, 77590, 80232, 83012, 85950, 89071, 92408, 96004, 99915, 104218, 109024, 114500,
	120917, 128759, 139046, 154655, 196608 };

int32_t draw_normal(uint64_t number)
{
	uint32_t step = (uint32_t)(number >> 57) % STEPS;
	int64_t fraction = (int64_t)(number >> 25 & 0xffffffff);
	int64_t from = quantiles[step], to = quantiles[step + 1];
	int32_t deviate = (int32_t)(from + ((to - from) * fraction >> 32));

	return number >> 63 ? -deviate : deviate;
}
