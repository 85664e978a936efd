/* SPDX-License-Identifier: MIT */
#include "cli/wrapper.h"

#include <string.h>

#include "cli/wrapper_env.h"
#include "cli/wrapper_list.h"
#include "cli/wrapper_option.h"

/* Is one of the listed options among the words, up to the command where it is known? */
static bool has_option(const struct arguments *arguments, size_t end, const char *list)
{
	if (!list)
		return false;
	for (size_t i = 1; i < end; i++) {
		if (strcmp(arguments->words[i], "--") == 0)
			return false;
		if (wrapper_option_is_listed(list, arguments->words[i]))
			return true;
	}
	return false;
}

/* Is the option there, with LD_PRELOAD behind it? */
static bool names_preload(const struct arguments *arguments, size_t end, const char *option)
{
	for (size_t i = 1; option && i + 1 < end; i++) {
		if (strcmp(arguments->words[i], option) == 0 &&
				strcmp(arguments->words[i + 1], "LD_PRELOAD") == 0)
			return true;
	}
	return false;
}

static enum effect effect_of(const struct wrapper *wrapper, const struct arguments *arguments,
		size_t end)
{
	if (has_option(arguments, end, wrapper->keep_options) ||
			names_preload(arguments, end, wrapper->set_option))
		return EFFECT_NONE;
	if (has_option(arguments, end, wrapper->drop_options) ||
			names_preload(arguments, end, wrapper->unset_option))
		return EFFECT_DROPS;
	return wrapper->effect;
}

static void take_effect(enum effect effect, struct environment *environment, struct wrapped *ret)
{
	ret->may_drop = effect == EFFECT_MAY_DROP;
	if (effect != EFFECT_DROPS)
		return;
	environment_unset_all(environment, "LD_");
	environment_unset_all(environment, "SHUNT_");
}

/* sudo takes NAME=VALUE before the command. */
static size_t take_assignments(const struct arguments *arguments, size_t at,
		struct environment *environment, struct wrapped *ret)
{
	const char *word;

	while ((word = arguments_at(arguments, at)) && wrapper_env_assign(environment, word)) {
		if (strncmp(word, "LD_PRELOAD=", strlen("LD_PRELOAD=")) == 0)
			ret->may_drop = false;
		at++;
	}
	return at;
}

static enum wrapper_answer hide(const struct wrapper *wrapper, const struct arguments *arguments,
		struct environment *environment, struct wrapped *ret)
{
	take_effect(effect_of(wrapper, arguments, arguments->count), environment, ret);
	ret->may_change_root = wrapper->may_change_root;
	return WRAPPER_HIDES;
}

/* A word before the options, where there may be one. */
static size_t skip_first_word(const struct wrapper *wrapper, const struct arguments *arguments)
{
	const char *word = arguments_at(arguments, 1);

	return wrapper->has_first_word && word && word[0] != '-' ? 2 : 1;
}

static enum wrapper_answer open_listed(const struct wrapper *wrapper, struct arguments *arguments,
		struct environment *environment, struct wrapped *ret)
{
	const char *verb = arguments_at(arguments, 1);
	size_t at = skip_first_word(wrapper, arguments);

	if (wrapper->verbs && !(verb && wrapper_option_is_listed(wrapper->verbs, verb)))
		return WRAPPER_NONE;
	if (wrapper->is_hiding || !wrapper_options_skip(&wrapper->options, arguments, &at))
		return hide(wrapper, arguments, environment, ret);
	take_effect(effect_of(wrapper, arguments, at), environment, ret);
	at += (size_t)wrapper->operands;
	if (wrapper->effect != EFFECT_NONE)
		at = take_assignments(arguments, at, environment, ret);
	if (at >= arguments->count)
		return wrapper->effect == EFFECT_NONE ? WRAPPER_NONE : WRAPPER_HIDES;
	/* Such as the -c of flock: words for a shell. */
	if (arguments->words[at][0] == '-')
		return hide(wrapper, arguments, environment, ret);
	arguments_drop(arguments, at);
	return WRAPPER_RUNS;
}

static enum wrapper_answer open_named(const char *name, struct arguments *arguments,
		struct environment *environment, struct wrapped *ret)
{
	const struct wrapper *wrapper = wrapper_find(name);

	if (strcmp(name, "env") == 0)
		return wrapper_env_open(arguments, environment, ret->directory);
	return wrapper ? open_listed(wrapper, arguments, environment, ret) : WRAPPER_NONE;
}

/* One program with the names of many behind it. */
static enum wrapper_answer open_busybox(struct arguments *arguments,
		struct environment *environment, struct wrapped *ret)
{
	struct arguments behind = { 0 };
	enum wrapper_answer answer;

	if (arguments->count < 2)
		return WRAPPER_NONE;
	arguments_copy(&behind, arguments->words + 1);
	answer = open_named(behind.words[0], &behind, environment, ret);
	if (answer != WRAPPER_RUNS) {
		arguments_finish(&behind);
		return answer;
	}
	arguments_finish(arguments);
	*arguments = behind;
	return WRAPPER_RUNS;
}

enum wrapper_answer wrapper_open(const char *name, struct arguments *arguments,
		struct environment *environment, struct wrapped *ret)
{
	*ret = (struct wrapped){ 0 };
	return strcmp(name, "busybox") == 0 ? open_busybox(arguments, environment, ret)
					     : open_named(name, arguments, environment, ret);
}

enum wrapper_answer wrapper_open_script(const char *name, struct wrapped *ret)
{
	const struct wrapper *wrapper = wrapper_find(name);

	if (!wrapper || !wrapper->is_hiding)
		return WRAPPER_NONE;
	*ret = (struct wrapped){ .may_change_root = wrapper->may_change_root };
	return WRAPPER_HIDES;
}

enum wrapper_answer wrapper_open_loader(struct arguments *arguments)
{
	static const struct wrapper_options options = { "", "",
		" --library-path --glibc-hwcaps-prepend --glibc-hwcaps-mask --inhibit-rpath "
		"--audit --preload --argv0 ",
		" --inhibit-cache " };
	size_t at = 1;

	if (!wrapper_options_skip(&options, arguments, &at))
		return WRAPPER_HIDES;
	if (at >= arguments->count)
		return WRAPPER_NONE;
	/* A name without a slash is looked for as a library is. */
	if (!strchr(arguments->words[at], '/'))
		return WRAPPER_HIDES;
	arguments_drop(arguments, at);
	return WRAPPER_RUNS;
}
