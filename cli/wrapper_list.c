/* SPDX-License-Identifier: MIT */
#include "cli/wrapper_list.h"

#include <string.h>

#define SETARCH_OPTIONS \
	{ "", "BFILRSTXZ3v", "", \
		" --32bit --fdpic-funcptrs --short-inode --addr-compat-layout " \
		"--addr-no-randomize --whole-seconds --sticky-timeouts " \
		"--read-implies-exec --mmap-page-zero --3gb --4gb --uname-2.6 --verbose " }

#define CONTAINER_VERBS " compose container exec run start "

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
	/* Their options that are for a running process are left out: they start nothing. */
	{ .name = "chrt",
		.options = { "TPD", "abdfiomRrv",
			" --sched-runtime --sched-period --sched-deadline ",
			" --all-tasks --batch --deadline --fifo --idle --other --rr "
			"--reset-on-fork --verbose " },
		.operands = 1 },
	{ .name = "taskset",
		.options = { "", "ac", "", " --all-tasks --cpu-list " },
		.operands = 1 },
	{ .name = "ionice",
		.options = { "cn", "t", " --class --classdata ", " --ignore " } },
	{ .name = "flock",
		.options = { "Ew", "eFnosux", " --conflict-exit-code --timeout --wait ",
			" --close --exclusive --nb --no-fork --nonblock --shared --unlock "
			"--verbose " },
		.operands = 1 },
	{ .name = "setarch", .options = SETARCH_OPTIONS, .has_first_word = true },
	{ .name = "linux32", .options = SETARCH_OPTIONS },
	{ .name = "linux64", .options = SETARCH_OPTIONS },
	{ .name = "i386", .options = SETARCH_OPTIONS },
	{ .name = "i686", .options = SETARCH_OPTIONS },
	{ .name = "x86_64", .options = SETARCH_OPTIONS },
	{ .name = "uname26", .options = SETARCH_OPTIONS },
	{ .name = "xargs",
		.options = { "adEILnPs", "0eiloprtx",
			" --arg-file --delimiter --max-args --max-procs --max-chars "
			"--process-slot-var ",
			" --null --eof --replace --max-lines --open-tty --interactive "
			"--no-run-if-empty --verbose --exit --show-limits " } },
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
	/* What gives it another root, or may. */
	{ .name = "bwrap", .drop_options = " --clearenv ", .unset_option = "--unsetenv",
		.set_option = "--setenv", .is_hiding = true, .may_change_root = true },
	{ .name = "chroot", .is_hiding = true, .may_change_root = true },
	{ .name = "unshare", .is_hiding = true, .may_change_root = true },
	{ .name = "nsenter", .is_hiding = true, .may_change_root = true },
	{ .name = "firejail", .is_hiding = true, .may_change_root = true },
	{ .name = "docker", .verbs = CONTAINER_VERBS, .effect = EFFECT_MAY_DROP,
		.is_hiding = true, .may_change_root = true },
	{ .name = "podman", .verbs = CONTAINER_VERBS, .effect = EFFECT_MAY_DROP,
		.is_hiding = true, .may_change_root = true },
	/* What has a language of its own for what it starts. */
	{ .name = "strace", .is_hiding = true },
	{ .name = "ltrace", .is_hiding = true },
	{ .name = "gdb", .is_hiding = true },
	{ .name = "valgrind", .is_hiding = true },
	{ .name = "parallel", .is_hiding = true },
	{ .name = "watch", .is_hiding = true },
	{ .name = "ssh-agent", .is_hiding = true },
	{ .name = "dbus-run-session", .is_hiding = true },
	{ .name = "prlimit", .is_hiding = true },
	{ .name = "numactl", .is_hiding = true },
};

#undef SETARCH_OPTIONS
#undef CONTAINER_VERBS

#define WRAPPER_COUNT (sizeof(wrappers) / sizeof(wrappers[0]))

const struct wrapper *wrapper_find(const char *name)
{
	for (size_t i = 0; i < WRAPPER_COUNT; i++) {
		if (strcmp(wrappers[i].name, name) == 0)
			return &wrappers[i];
	}
	return NULL;
}
