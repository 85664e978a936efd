/* SPDX-License-Identifier: MIT */
#include "core/rule.h"

#include <string.h>

#include "core/order.h"
#include "core/rule_word.h"
#include "core/setting_table.h"
#include "core/text.h"

/* `list`: the list that the word before belongs to, or NULL; updated. */
static bool parse_setting(const struct rule_word *word, char copy[RULE_WORD_SIZE],
		const struct setting **list, struct settings *settings, char *error, size_t size)
{
	if (!rule_word_copy(word, copy))
		return rule_word_say("setting=value", word, error, size);
	char *equals = strchr(copy, '=');
	if (!equals) {
		if (!*list || !word->behind_comma)
			return rule_word_say("setting=value", word, error, size);
		return settings_apply(settings, (*list)->name, copy, error, size);
	}
	*equals = '\0';
	uint64_t given = settings->given;
	if (!settings_apply(settings, copy, equals + 1, error, size))
		return false;
	const struct setting *row = setting_find(copy);
	*list = row->is_list ? row : NULL;
	if (settings->given == given && !row->is_list) {
		char quoted[TEXT_QUOTE_SIZE];

		text_format(error, size, "%s: expected it once, got '%s' as well", row->name,
				text_quote(quoted, sizeof(quoted), equals + 1, strlen(equals + 1)));
		return false;
	}
	return true;
}

static bool parse_settings(struct rule_words *words, char copy[RULE_WORD_SIZE], struct rule *rule,
		char *error, size_t size)
{
	const struct setting *list = NULL;
	struct rule_word word;

	while (rule_word_next(words, &word)) {
		if (rule->target.is_excluded)
			return rule_word_say("no settings behind ^target", &word, error, size);
		if (!parse_setting(&word, copy, &list, &rule->settings, error, size))
			return false;
	}
	return settings_finish(&rule->settings, error, size);
}

static uint64_t rule_hash(const struct rule *rule)
{
	const struct window_shape *window = &rule->settings.window;
	uint64_t hash = text_hash(0, rule->name, strlen(rule->name));

	hash = text_hash(hash, &window->span_ns, sizeof(window->span_ns));
	hash = text_hash(hash, &window->buckets, sizeof(window->buckets));
	return text_hash(hash, &window->calls, sizeof(window->calls));
}

bool rule_name_is_good(const char *name, size_t length)
{
	static const char good[] =
			"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-";

	if (length < 1 || length >= RULE_NAME_SIZE)
		return false;
	for (size_t i = 0; i < length; i++) {
		if (!memchr(good, name[i], sizeof(good) - 1))
			return false;
	}
	return true;
}

/* Out of line, or its words and those of who asks are one frame. */
__attribute__((noinline)) bool rule_parse(const char *name, const char *text, size_t length,
		struct rule *ret, char *error, size_t size)
{
	struct rule_words words = { text, text + length };
	struct rule_word word;
	char copy[RULE_WORD_SIZE];

	if (!rule_word_next(&words, &word)) {
		text_format(error, size, "expected a target such as pay.internal:443, got nothing");
		return false;
	}
	if (!rule_word_target(&word, copy, &ret->target, error, size))
		return false;
	ret->settings = settings_default;
	ret->is_from_file = false;
	text_copy(ret->name, sizeof(ret->name), name);
	if (!parse_settings(&words, copy, ret, error, size))
		return false;
	ret->hash = rule_hash(ret);
	return true;
}

int rule_compare(const struct rule *a, const struct rule *b)
{
	if (a->target.is_excluded != b->target.is_excluded)
		return a->target.is_excluded ? -1 : 1;
	int order = target_compare(&a->target, &b->target);
	return order ? order : strcmp(a->name, b->name);
}

const struct rule *rule_find(const struct rule rules[], size_t count, const char *name)
{
	for (size_t i = 0; i < count; i++) {
		if (strcmp(rules[i].name, name) == 0)
			return &rules[i];
	}
	return NULL;
}

static int compare_rules(const void *a, const void *b)
{
	return rule_compare(a, b);
}

void rule_place(struct rule rules[], size_t last)
{
	order_place(rules, sizeof(rules[0]), last, compare_rules);
}
