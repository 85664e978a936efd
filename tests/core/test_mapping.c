/* SPDX-License-Identifier: MIT */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/mapping.h"

#define SIZE 950000 /* no whole number of pages */
#define MAKERS 16

static char directory[64];
static char path[128];

static void fill(void *memory)
{
	memcpy(memory, "right", 6);
}

static const char *check(const void *memory)
{
	return memcmp(memory, "right", 6) ? "its format is another" : NULL;
}

static const struct mapping_format format = { SIZE, fill, check };

static void setup(void)
{
	strcpy(directory, "/dev/shm/test-mapping-XXXXXX");
	cr_assert(mkdtemp(directory));
	snprintf(path, sizeof(path), "%s/file", directory);
}

static void teardown(void)
{
	char command[128];

	/* Where the test mounted something. */
	umount2(directory, MNT_DETACH);
	snprintf(command, sizeof(command), "rm -rf %s", directory);
	cr_assert_eq(system(command), 0);
}

TestSuite(mapping, .init = setup, .fini = teardown, .timeout = 60);

static void file_write(const char *name, size_t size, const char *begin, mode_t mode)
{
	int fd = open(name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

	cr_assert_geq(fd, 0);
	cr_assert_eq(posix_fallocate(fd, 0, (off_t)size), 0);
	cr_assert_eq(pwrite(fd, begin, strlen(begin) + 1, 0), (ssize_t)strlen(begin) + 1);
	cr_assert_eq(fchmod(fd, mode), 0);
	close(fd);
}

/* Refused for that reason, and not a byte or a time of it changed. */
static void expect_refusal(const char *reason)
{
	struct stat before, after;
	const char *why = NULL;

	cr_assert_eq(lstat(path, &before), 0);
	cr_assert_null(mapping_open(path, &format, true, &why));
	cr_assert_str_eq(why, reason);
	cr_assert_eq(lstat(path, &after), 0);
	cr_assert_eq(before.st_ino, after.st_ino);
	cr_assert_eq(before.st_size, after.st_size);
	cr_assert_eq(before.st_mtim.tv_nsec, after.st_mtim.tv_nsec);
	cr_assert_eq(before.st_ctim.tv_nsec, after.st_ctim.tv_nsec);
}

static int descriptors_open(void)
{
	int count = 0;

	for (int fd = 0; fd < 256; fd++)
		count += fcntl(fd, F_GETFD) >= 0;
	return count;
}

Test(mapping, is_made_where_it_is_missing_and_attached_afterwards)
{
	const char *why = NULL;
	int descriptors = descriptors_open();
	char *first, *second;
	struct stat status;

	errno = 77;
	first = mapping_open(path, &format, true, &why);
	cr_assert(first, "%s", why);
	cr_assert_eq(errno, 77);
	second = mapping_open(path, &format, false, &why);
	cr_assert(second, "%s", why);
	cr_assert_eq(descriptors_open(), descriptors);
	first[SIZE - 1] = 'x';
	cr_assert_eq(second[SIZE - 1], 'x');
	cr_assert_eq(stat(path, &status), 0);
	cr_assert_eq(status.st_mode, S_IFREG | 0600);
	cr_assert_eq(status.st_size, SIZE);
	cr_assert_geq(status.st_blocks * 512, SIZE);
	mapping_close(first, SIZE);
	mapping_close(second, SIZE);
}

Test(mapping, is_not_made_unless_asked)
{
	const char *why = NULL;

	cr_assert_null(mapping_open(path, &format, false, &why));
	cr_assert_str_eq(why, "the file does not exist");
	cr_assert_neq(access(path, F_OK), 0);
}

Test(mapping, has_its_mode_whatever_the_umask)
{
	const char *why = NULL;
	struct stat status;

	umask(0777);
	cr_assert(mapping_open(path, &format, true, &why), "%s", why);
	cr_assert_eq(stat(path, &status), 0);
	cr_assert_eq(status.st_mode & 07777, 0600);
}

Test(mapping, attaching_changes_nothing)
{
	const char *why = NULL;
	struct stat before, after;

	cr_assert(mapping_open(path, &format, true, &why), "%s", why);
	cr_assert_eq(stat(path, &before), 0);
	cr_assert(mapping_open(path, &format, true, &why), "%s", why);
	cr_assert_eq(stat(path, &after), 0);
	cr_assert_eq(memcmp(&before.st_mtim, &after.st_mtim, sizeof(before.st_mtim)), 0);
	cr_assert_eq(memcmp(&before.st_ctim, &after.st_ctim, sizeof(before.st_ctim)), 0);
}

Test(mapping, a_file_of_another_size_is_refused)
{
	file_write(path, SIZE - 1, "right", 0600);
	expect_refusal("its size is not that of this version");
	unlink(path);
	file_write(path, SIZE + 1, "right", 0600);
	expect_refusal("its size is not that of this version");
	cr_assert_eq(truncate(path, 0), 0);
	expect_refusal("its size is not that of this version");
}

Test(mapping, a_file_of_another_format_is_refused)
{
	file_write(path, SIZE, "wrong", 0600);
	expect_refusal("its format is another");
}

Test(mapping, a_file_of_another_mode_is_refused)
{
	static const mode_t modes[] = { 0400, 0640, 0606, 0700, 04600, 0 };

	for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]); i++) {
		file_write(path, SIZE, "right", modes[i]);
		expect_refusal("its mode is not 0600");
		unlink(path);
	}
}

Test(mapping, a_symbolic_link_is_refused_dangling_or_not)
{
	char target[160];

	snprintf(target, sizeof(target), "%s.target", path);
	cr_assert_eq(symlink(target, path), 0);
	expect_refusal("the file is a symbolic link");
	cr_assert_neq(access(target, F_OK), 0);
	file_write(target, SIZE, "right", 0600);
	expect_refusal("the file is a symbolic link");
}

Test(mapping, a_file_with_two_names_is_refused)
{
	char other[160];

	snprintf(other, sizeof(other), "%s.other", path);
	file_write(path, SIZE, "right", 0600);
	cr_assert_eq(link(path, other), 0);
	expect_refusal("it has more than one link");
}

Test(mapping, what_is_no_file_is_refused_and_not_waited_for)
{
	cr_assert_eq(mkdir(path, 0600), 0);
	expect_refusal("it is not a regular file");
	rmdir(path);
	cr_assert_eq(mkfifo(path, 0600), 0);
	expect_refusal("it is not a regular file");
}

Test(mapping, a_file_with_holes_is_refused)
{
	int fd;

	file_write(path, SIZE, "right", 0600);
	fd = open(path, O_RDWR);
	cr_assert_eq(fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 8192, 4096), 0);
	close(fd);
	expect_refusal("its space is not allocated in full");
}

Test(mapping, another_users_file_is_refused)
{
	if (geteuid() != 0)
		cr_skip_test("only root can give a file away");
	file_write(path, SIZE, "right", 0600);
	cr_assert_eq(chown(path, 12345, (gid_t)-1), 0);
	expect_refusal("its owner is another user");
}

Test(mapping, says_what_is_wrong_with_the_directory)
{
	const char *why = NULL;
	char nowhere[160], too_long[1024];

	snprintf(nowhere, sizeof(nowhere), "%s/no/file", directory);
	cr_assert_null(mapping_open(nowhere, &format, true, &why));
	cr_assert_str_eq(why, "its directory does not exist");
	memset(too_long, 'x', sizeof(too_long) - 1);
	too_long[sizeof(too_long) - 1] = '\0';
	cr_assert_null(mapping_open(too_long, &format, true, &why));
	cr_assert_str_eq(why, "its path is too long");
}

Test(mapping, a_relative_path_works)
{
	const char *why = NULL;

	cr_assert_eq(chdir(directory), 0);
	cr_assert(mapping_open("file", &format, true, &why), "%s", why);
	cr_assert_eq(access(path, F_OK), 0);
}

Test(mapping, a_limit_on_file_sizes_kills_nobody)
{
	const struct rlimit limit = { SIZE - 1, SIZE - 1 };
	const char *why = NULL;

	cr_assert_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
	cr_assert_null(mapping_open(path, &format, true, &why));
	cr_assert_str_eq(why, "the limit on file sizes is too low for it");
	cr_assert_neq(access(path, F_OK), 0);
}

Test(mapping, without_memory_nothing_is_left_behind)
{
	const struct rlimit limit = { SIZE, SIZE };
	const char *why = NULL;
	pid_t child = fork();
	int status;

	if (!child) {
		setrlimit(RLIMIT_AS, &limit);
		_exit(mapping_open(path, &format, true, &why) || mapping_open_private(&format) ||
			strcmp(why, "no memory to map it") || access(path, F_OK) == 0);
	}
	cr_assert_eq(waitpid(child, &status, 0), child);
	cr_assert_eq(status, 0);
}

Test(mapping, without_descriptors_it_gives_up)
{
	struct rlimit before, limit;
	const char *why = NULL;

	cr_assert_eq(getrlimit(RLIMIT_NOFILE, &before), 0);
	limit = before;
	limit.rlim_cur = 3;
	cr_assert_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
	cr_assert_null(mapping_open(path, &format, true, &why));
	setrlimit(RLIMIT_NOFILE, &before);
	cr_assert_str_eq(why, "no descriptor is left to make it");
}

Test(mapping, leaves_closed_standard_descriptors_closed)
{
	pid_t child = fork();
	int status;

	if (!child) {
		const char *why;
		bool opened;

		for (int fd = 0; fd < 3; fd++)
			close(fd);
		opened = mapping_open(path, &format, true, &why) &&
			mapping_open(path, &format, true, &why);
		_exit(!opened || open("/dev/null", O_RDWR) != 0 || open("/dev/null", O_RDWR) != 1 ||
			open("/dev/null", O_RDWR) != 2);
	}
	cr_assert_eq(waitpid(child, &status, 0), child);
	cr_assert_eq(status, 0);
}

/* True in a mount namespace of our own with a tmpfs of that size over the directory. */
static bool tmpfs_mount(const char *options)
{
	if (unshare(CLONE_NEWNS) || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL))
		return false;
	return !mount("tmpfs", directory, "tmpfs", 0, options);
}

Test(mapping, a_full_file_system_gets_no_file_and_no_sigbus)
{
	const char *why = NULL;

	if (!tmpfs_mount("size=256k"))
		cr_skip_test("no right to mount a tmpfs");
	cr_assert_null(mapping_open(path, &format, true, &why));
	cr_assert_str_eq(why, "no space is left in its directory");
	cr_assert_neq(access(path, F_OK), 0);
	cr_assert_eq(umount(directory), 0, "nothing holds it");
}

Test(mapping, a_full_file_system_still_serves_the_file_it_has)
{
	const char *why = NULL;
	char filler[160], *memory;
	int fd;

	if (!tmpfs_mount("size=1m"))
		cr_skip_test("no right to mount a tmpfs");
	memory = mapping_open(path, &format, true, &why);
	cr_assert(memory, "%s", why);
	snprintf(filler, sizeof(filler), "%s/filler", directory);
	fd = open(filler, O_RDWR | O_CREAT, 0600);
	while (write(fd, filler, sizeof(filler)) > 0)
		;
	cr_assert_eq(errno, ENOSPC);
	memset(memory + 64, 1, SIZE - 64);
	cr_assert(mapping_open(path, &format, true, &why), "%s", why);
}

Test(mapping, a_read_only_file_system_is_no_place_for_it)
{
	const char *why = NULL;

	if (!tmpfs_mount("ro"))
		cr_skip_test("no right to mount a tmpfs");
	cr_assert_null(mapping_open(path, &format, true, &why));
	cr_assert_str_eq(why, "its file system is read-only");
}

/* From now on system call `number` fails with `error` where its argument has these bits. */
static bool filter_install(unsigned int number, int argument, uint32_t bits, int error)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 4),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
			offsetof(struct seccomp_data, args) + 8 * (unsigned int)argument),
		BPF_STMT(BPF_ALU | BPF_AND | BPF_K, bits),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, bits, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (uint32_t)error),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { sizeof(code) / sizeof(code[0]), code };

	return !prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) &&
		!prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

static void expect_one_file(void)
{
	char command[128];

	snprintf(command, sizeof(command), "test $(ls %s | wc -l) = 1", directory);
	cr_assert_eq(system(command), 0);
}

Test(mapping, is_made_where_files_must_have_names)
{
	const char *why = NULL;
	char *first, *second;

	cr_assert(filter_install(SYS_openat, 2, O_TMPFILE, EOPNOTSUPP));
	first = mapping_open(path, &format, true, &why);
	cr_assert(first, "%s", why);
	second = mapping_open(path, &format, false, &why);
	cr_assert(second, "%s", why);
	first[99] = 'x';
	cr_assert_eq(second[99], 'x');
	expect_one_file();
}

Test(mapping, is_made_where_a_rename_always_replaces)
{
	const char *why = NULL;

	cr_assert(filter_install(SYS_openat, 2, O_TMPFILE, EOPNOTSUPP));
	cr_assert(filter_install(SYS_renameat2, 4, RENAME_NOREPLACE, EINVAL));
	cr_assert(mapping_open(path, &format, true, &why), "%s", why);
	cr_assert(mapping_open(path, &format, false, &why), "%s", why);
	expect_one_file();
}

Test(mapping, needs_no_capability_to_link)
{
	const char *why = NULL;

	cr_assert(filter_install(SYS_linkat, 4, AT_EMPTY_PATH, ENOENT));
	cr_assert(mapping_open(path, &format, true, &why), "%s", why);
	expect_one_file();
}

Test(mapping, no_space_to_reserve_means_no_file)
{
	const char *why = NULL;

	cr_assert(filter_install(SYS_fallocate, 0, 0, EOPNOTSUPP));
	cr_assert_null(mapping_open(path, &format, true, &why));
	cr_assert_str_eq(why, "its file system can't reserve space");
	cr_assert_neq(access(path, F_OK), 0);
}

struct start {
	_Atomic uint32_t waiting;
	_Atomic uint32_t joined;
};

static int make_at_once(struct start *start)
{
	const char *why;
	struct start *shared;

	atomic_fetch_add(&start->waiting, 1);
	while (atomic_load(&start->waiting) < MAKERS)
		sched_yield();
	shared = mapping_open(path, &format, true, &why);
	if (!shared)
		return 1;
	/* Eight bytes in, behind the format's own. */
	atomic_fetch_add(&shared[1].joined, 1);
	return 0;
}

static void race_to_make(void)
{
	struct start *start = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
			-1, 0);
	const char *why = NULL;
	struct start *shared;
	int status;

	for (int round = 0; round < 40; round++) {
		unlink(path);
		atomic_store(&start->waiting, 0);
		for (int i = 0; i < MAKERS; i++) {
			if (!fork())
				_exit(make_at_once(start));
		}
		for (int i = 0; i < MAKERS; i++) {
			cr_assert_gt(wait(&status), 0);
			cr_assert_eq(status, 0);
		}
		shared = mapping_open(path, &format, false, &why);
		cr_assert(shared, "%s", why);
		cr_assert_eq(atomic_load(&shared[1].joined), MAKERS, "all have the same file");
		mapping_close(shared, SIZE);
	}
	expect_one_file();
}

Test(mapping, many_that_start_at_once_share_one_file)
{
	race_to_make();
}

Test(mapping, many_that_start_at_once_share_one_file_that_needs_a_name)
{
	cr_assert(filter_install(SYS_openat, 2, O_TMPFILE, EOPNOTSUPP));
	race_to_make();
}

Test(mapping, a_private_one_is_shared_with_children)
{
	char *memory = mapping_open_private(&format);
	pid_t child;

	cr_assert(memory);
	cr_assert_null(check(memory));
	child = fork();
	if (!child) {
		memory[100] = 'c';
		_exit(0);
	}
	cr_assert_eq(waitpid(child, NULL, 0), child);
	cr_assert_eq(memory[100], 'c');
	mapping_close(memory, SIZE);
}
