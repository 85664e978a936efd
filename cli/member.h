/* SPDX-License-Identifier: MIT */
/* What JSON is built of. All end the command without memory. */
#ifndef SHUNT_CLI_MEMBER_H
#define SHUNT_CLI_MEMBER_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

/* `value`, which is not NULL. */
json_t *member_checked(json_t *value);

/* A string; bytes that are no UTF-8 become '?'. The caller owns it. */
json_t *member_text(const char *text);

/* Members of an object; `value` is the object's from then on. */
void member_set(json_t *object, const char *key, json_t *value);
void member_set_text(json_t *object, const char *key, const char *text);
void member_set_number(json_t *object, const char *key, uint64_t number);
void member_set_real(json_t *object, const char *key, double number);
void member_set_null(json_t *object, const char *key);
void member_set_truth(json_t *object, const char *key, bool truth);

/* `value` is the array's from then on. */
void member_append(json_t *array, json_t *value);

#endif
