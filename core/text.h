/* SPDX-License-Identifier: MIT */
/*
 * Read a ratio, duration, size, count, port; or say what was expected. Every reader returns NULL
 * and sets *ret, or returns what it expected to read (static text for "expected %s, got '...'") and
 * leaves *ret alone. The whole text must fit the form. Pure, no locale, no errno, no allocation.
 */
#ifndef SHUNT_CORE_TEXT_H
#define SHUNT_CORE_TEXT_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/format.h"

/* "250ms", "5s", "1.5h": a number and one of ns us ms s m h. Nanoseconds; fractions of one are cut.
 */
const char *text_duration(const char *text, uint64_t *ret_ns);

/* "512B", "64KB" (1000 each), "64KiB" (1024), "1.5MB", "1MiB", "1GB", "1GiB". Bytes; fractions of
 * one are cut. */
const char *text_size(const char *text, uint64_t *ret_bytes);

/* Those a second, "64KB/s"; or "512kbit/s", "8Mbit/s", "1Gbit/s". Bytes a second. */
const char *text_rate(const char *text, uint64_t *ret_bytes);

/* "50%", "0.5%", "1/20": parts per million, 0..1000000. Rounded down, so that one in three reaches
 * "1/3"; what would come to 0 and is not is refused. */
const char *text_ratio(const char *text, uint32_t *ret_ratio);

/* Was the number that was refused beyond what can be kept? Who has limits says those instead. */
bool text_is_too_large(const char *expected);

/* A whole number from 0. */
const char *text_count(const char *text, uint64_t *ret);

/* "2", "1.5": thousandths, cut. */
const char *text_thousandths(const char *text, uint64_t *ret);

/* 1..65535, or a range of them. */
const char *text_ports(const char *text, uint16_t *ret_low, uint16_t *ret_high);

/* The index of the word in a list that ends with NULL, or -1. */
int text_word_index(const char *const words[], const char *word);

/* The nearest of `count` words for a misspelt one (case, a letter too many, two letters swapped),
 * or NULL where none is near. */
const char *text_nearest(const char *word, const char *const words[], size_t count);

/* Does the glob (*, ?) match the whole text? No recursion; time at most the product of the two
 * lengths, whatever the pattern. */
bool text_glob(const char *glob, const char *text);

/* Does one of the comma-separated globs, of at most 255 characters each? */
bool text_glob_any(const char *globs, const char *text);

/* FNV-1a style 64-bit hash, continued from `seed` (0 to begin). Stable: it is part of the segment.
 */
uint64_t text_hash(uint64_t seed, const void *bytes, size_t size);

#endif
