/* SPDX-License-Identifier: MIT */
#include "cli/wrapper.h"

#include <string.h>

#include "cli/wrapper_env.h"
#include "cli/wrapper_option.h"

enum effect {
	EFFECT_NONE,
	EFFECT_MAY_DROP, /* unless it is configured otherwise */
	EFFECT_DROPS,
};

struct wrapper {
	const char *name;
	struct wrapper_options options;
	int operands; /* words before the command */
	enum effect effect;
	const char *drop_options; /* " --login -l ": then EFFECT_DROPS */
	const char *keep_options; /* then EFFECT_NONE */
	bool is_hiding;           /* what it starts is not on its command line */
};

static const struct wrapper wrappers[] = {
	{ .name = "nice", .options = { "n", "0123456789", " --adjustment ", "" } },
	{ .name = "nohup", .options = { "", "", "", "" } },
	{ .name = "setsid", .options = { "", "cfw", "", " --ctty --fork --wait " } },
	{ .name = "stdbuf", .options = { "ioe", "", " --input --output --error ", "" } },
	{ .name = "time",
		.options = { "fo", "apqv", " --format --output ",
			" --append --portability --quiet --verbose " } },
	{ .name = "timeout",
		.options = { "ks", "v", " --kill-after --signal ",
			" --foreground --preserve-status --verbose " },
		.operands = 1 },
	/* What starts containers is often linked statically, and passes everything on. */
	{ .name = "tini", .options = { "pe", "sgvw", "", "" } },
	{ .name = "tini-static", .options = { "pe", "sgvw", "", "" } },
	{ .name = "docker-init", .options = { "pe", "sgvw", "", "" } },
	{ .name = "dumb-init",
		.options = { "r", "cv", " --rewrite ", " --single-child --verbose " } },
	{ .name = "catatonit", .options = { "", "Pg", "", "" } },
	{ .name = "gosu", .options = { "", "", "", "" }, .operands = 1 },
	{ .name = "su-exec", .options = { "", "", "", "" }, .operands = 1 },
	/* What changes the user. */
	{ .name = "sudo",
		.options = { "CDghpRrTtUu", "AbBEeHiKkNnPSs",
			" --chdir --chroot --close-from --group --host --prompt --role "
			"--command-timeout --type --other-user --user ",
			" --askpass --background --bell --edit --set-home --login "
			"--non-interactive --preserve-env --preserve-groups --shell "
			"--stdin --reset-timestamp --no-update " },
		.effect = EFFECT_MAY_DROP,
		.keep_options = " --preserve-env= " },
	{ .name = "doas", .options = { "Cu", "Lns", "", "" }, .effect = EFFECT_MAY_DROP },
	{ .name = "pkexec",
		.options = { "", "", " --user ", " --disable-internal-agent --keep-cwd " },
		.effect = EFFECT_DROPS },
	{ .name = "su", .drop_options = " - -l --login ",
		.keep_options = " -w --whitelist-environment --whitelist-environment= ",
		.is_hiding = true },
	{ .name = "runuser", .drop_options = " - -l --login ",
		.keep_options = " -w --whitelist-environment --whitelist-environment= ",
		.is_hiding = true },
	{ .name = "setpriv", .drop_options = " --reset-env ", .is_hiding = true },
	{ .name = "systemd-run",
		.effect = EFFECT_DROPS,
		.keep_options = " --scope -E --setenv --setenv= ",
		.is_hiding = true },
};

#define WRAPPER_COUNT (sizeof(wrappers) / sizeof(wrappers[0]))

static const struct wrapper *wrapper_find(const char *name)
{
	for (size_t i = 0; i < WRAPPER_COUNT; i++) {
		if (strcmp(wrappers[i].name, name) == 0)
			return &wrappers[i];
	}
	return NULL;
}

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

static enum effect effect_of(const struct wrapper *wrapper, const struct arguments *arguments,
		size_t end)
{
	if (has_option(arguments, end, wrapper->keep_options))
		return EFFECT_NONE;
	if (has_option(arguments, end, wrapper->drop_options))
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

enum wrapper_answer wrapper_open(const char *name, struct arguments *arguments,
		struct environment *environment, struct wrapped *ret)
{
	const struct wrapper *wrapper = wrapper_find(name);
	size_t at = 1;

	*ret = (struct wrapped){ 0 };
	if (strcmp(name, "env") == 0)
		return wrapper_env_open(arguments, environment, ret->directory);
	if (!wrapper)
		return WRAPPER_NONE;
	if (wrapper->is_hiding || !wrapper_options_skip(&wrapper->options, arguments, &at)) {
		take_effect(effect_of(wrapper, arguments, arguments->count), environment, ret);
		return WRAPPER_HIDES;
	}
	take_effect(effect_of(wrapper, arguments, at), environment, ret);
	at += (size_t)wrapper->operands;
	if (wrapper->effect != EFFECT_NONE)
		at = take_assignments(arguments, at, environment, ret);
	if (at >= arguments->count)
		return wrapper->effect == EFFECT_NONE ? WRAPPER_NONE : WRAPPER_HIDES;
	arguments_drop(arguments, at);
	return WRAPPER_RUNS;
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
