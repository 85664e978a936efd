/* SPDX-License-Identifier: MIT */
#include "core/mapping.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <sched.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "core/text.h"

#define PATH_SIZE 320
#define LOWEST_DESCRIPTOR 3
/* How often a file may vanish or appear between our looks at it. */
#define MAX_ROUNDS 8

/* Static texts are what `status` prints. */
static const char missing[] = "the file does not exist";
static const char exists[] = "the file exists";
static const char several_links[] = "it has more than one link";
static const char no_tmpfile[] = "its file system has no unnamed files";

/* Where the parent closed 0, 1 or 2, a file of ours must not sit there while the host's own open or
 * write looks for it. */
static int descriptor_raise(int fd)
{
	int high;

	if (fd < 0 || fd >= LOWEST_DESCRIPTOR)
		return fd;
	high = fcntl(fd, F_DUPFD_CLOEXEC, LOWEST_DESCRIPTOR);
	close(fd);
	return high;
}

static const char *why_not_opened(int error)
{
	switch (error) {
	case ENOENT:
		return missing;
	case ELOOP:
		return "the file is a symbolic link";
	case EACCES:
	case EPERM:
		return "no permission to open it";
	case EMFILE:
	case ENFILE:
	case EINVAL: /* F_DUPFD past RLIMIT_NOFILE */
		return "no descriptor is left to open it";
	default:
		return "it can't be opened";
	}
}

static const char *why_not_made(int error)
{
	switch (error) {
	case ENOENT:
	case ENOTDIR:
		return "its directory does not exist";
	case EACCES:
	case EPERM:
		return "no permission to write in its directory";
	case EROFS:
		return "its file system is read-only";
	case ENOSPC:
	case EDQUOT:
		return "no space is left in its directory";
	case EMFILE:
	case ENFILE:
	case EINVAL:
		return "no descriptor is left to make it";
	default:
		return "it can't be made";
	}
}

static const char *status_check(const struct stat *status, size_t size)
{
	if (S_ISLNK(status->st_mode))
		return "the file is a symbolic link";
	if (!S_ISREG(status->st_mode))
		return "it is not a regular file";
	if (status->st_uid != geteuid())
		return "its owner is another user";
	if ((status->st_mode & 07777) != 0600)
		return "its mode is not 0600";
	if (status->st_nlink == 0)
		return missing;
	if (status->st_nlink != 1)
		return several_links;
	if (status->st_size < 0 || (uint64_t)status->st_size != size)
		return "its size is not that of this version";
	if ((uint64_t)status->st_blocks * 512 < size)
		return "its space is not allocated in full";
	return NULL;
}

static void *memory_map(int fd, size_t size, const char **ret_why)
{
	void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	if (memory != MAP_FAILED)
		return memory;
	*ret_why = "no memory to map it";
	return NULL;
}

static void *file_attach(int fd, const struct mapping_format *format, const char **ret_why)
{
	struct stat status;
	void *memory;

	if (fstat(fd, &status)) {
		*ret_why = "it can't be opened";
		return NULL;
	}
	*ret_why = status_check(&status, format->size);
	if (*ret_why)
		return NULL;
	memory = memory_map(fd, format->size, ret_why);
	if (!memory)
		return NULL;
	*ret_why = format->check(memory);
	if (!*ret_why)
		return memory;
	munmap(memory, format->size);
	return NULL;
}

static void *path_attach(const char *path, const struct mapping_format *format,
		const char **ret_why)
{
	struct stat status;
	void *memory;
	int fd;

	/* Opening a device or a pipe can have effects: look before. */
	if (lstat(path, &status)) {
		*ret_why = why_not_opened(errno);
		return NULL;
	}
	*ret_why = status_check(&status, format->size);
	if (*ret_why)
		return NULL;
	fd = descriptor_raise(open(path, O_RDWR | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
	if (fd < 0) {
		*ret_why = why_not_opened(errno);
		return NULL;
	}
	memory = file_attach(fd, format, ret_why);
	close(fd);
	return memory;
}

/* Real space first: a write through the mapping of a sparse file on a full file system is SIGBUS
 * for the host. */
static const char *file_allocate(int fd, size_t size)
{
	int failed;

	if (fchmod(fd, 0600))
		return "its mode can't be set";
	do {
		failed = fallocate(fd, 0, 0, (off_t)size);
	} while (failed && errno == EINTR);
	if (!failed)
		return NULL;
	if (errno == EOPNOTSUPP || errno == ENOSYS)
		return "its file system can't reserve space";
	return errno == EFBIG ? "the limit on file sizes is too low for it" : why_not_made(errno);
}

static void *file_fill(int fd, const struct mapping_format *format, const char **ret_why)
{
	void *memory;

	*ret_why = file_allocate(fd, format->size);
	if (*ret_why)
		return NULL;
	memory = memory_map(fd, format->size, ret_why);
	if (memory)
		format->fill(memory);
	return memory;
}

/* 0 or an errno. */
static int unnamed_link(int fd, const char *path)
{
	char link[32];

	if (!linkat(fd, "", AT_FDCWD, path, AT_EMPTY_PATH))
		return 0;
	/* The way above takes a capability on older kernels, this one takes /proc. */
	if (errno != ENOENT && errno != EPERM && errno != EACCES)
		return errno;
	text_format(link, sizeof(link), "/proc/self/fd/%d", fd);
	return linkat(AT_FDCWD, link, AT_FDCWD, path, AT_SYMLINK_FOLLOW) ? errno : 0;
}

static void *unnamed_make(const char *directory, const char *path,
		const struct mapping_format *format, const char **ret_why)
{
	int fd = descriptor_raise(open(directory, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
	void *memory;
	int error;

	if (fd < 0) {
		/* EISDIR is how a kernel answers that does not know the flag. */
		*ret_why = errno == EOPNOTSUPP || errno == EISDIR ? no_tmpfile :
								       why_not_made(errno);
		return NULL;
	}
	memory = file_fill(fd, format, ret_why);
	error = memory ? unnamed_link(fd, path) : 0;
	close(fd);
	if (!error)
		return memory;
	munmap(memory, format->size);
	/* ENOENT: there is no /proc to link from. */
	*ret_why = error == EEXIST ? exists : error == ENOENT ? no_tmpfile : why_not_made(error);
	return NULL;
}

/* 0 or an errno. The temporary name is gone either way. */
static int named_move(const char *temporary, const char *path)
{
	int error = 0;

	/* libc declares it in stdio.h only. */
	if (!syscall(SYS_renameat2, AT_FDCWD, temporary, AT_FDCWD, path, RENAME_NOREPLACE))
		return 0;
	/* Not every file system can refuse to replace. For a moment the file has two links. */
	if (linkat(AT_FDCWD, temporary, AT_FDCWD, path, 0))
		error = errno;
	unlink(temporary);
	return error;
}

static void *named_make(const char *path, const struct mapping_format *format,
		const char **ret_why)
{
	char temporary[PATH_SIZE];
	struct timespec now;
	void *memory;
	int fd, error;

	clock_gettime(CLOCK_MONOTONIC, &now);
	text_format(temporary, sizeof(temporary), "%s.%d-%lu", path, (int)getpid(),
			(unsigned long)now.tv_sec * 1000000000 + (unsigned long)now.tv_nsec);
	fd = descriptor_raise(open(temporary, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
	if (fd < 0) {
		*ret_why = why_not_made(errno);
		return NULL;
	}
	memory = file_fill(fd, format, ret_why);
	close(fd);
	if (!memory) {
		unlink(temporary);
		return NULL;
	}
	error = named_move(temporary, path);
	if (!error)
		return memory;
	munmap(memory, format->size);
	*ret_why = error == EEXIST ? exists : why_not_made(error);
	return NULL;
}

static void directory_of(const char *path, char *ret, size_t size)
{
	const char *slash = strrchr(path, '/');
	size_t length = slash ? (size_t)(slash - path) : 0;

	if (!slash)
		text_copy(ret, size, ".");
	else if (!length)
		text_copy(ret, size, "/");
	else
		text_copy(ret, length + 1 < size ? length + 1 : size, path);
}

static void *path_make(const char *path, const struct mapping_format *format,
		const char **ret_why)
{
	char directory[PATH_SIZE];
	struct rlimit limit;
	void *memory;

	/* Growing a file past the limit is SIGXFSZ for the host. */
	if (getrlimit(RLIMIT_FSIZE, &limit) || limit.rlim_cur < format->size) {
		*ret_why = "the limit on file sizes is too low for it";
		return NULL;
	}
	directory_of(path, directory, sizeof(directory));
	memory = unnamed_make(directory, path, format, ret_why);
	if (!memory && *ret_why == no_tmpfile)
		memory = named_make(path, format, ret_why);
	return memory;
}

void *mapping_open(const char *path, const struct mapping_format *format, bool make,
		const char **ret_why)
{
	int error = errno;
	void *memory = NULL;

	if (strlen(path) + 64 > PATH_SIZE) {
		*ret_why = "its path is too long";
		return NULL;
	}
	for (int round = 0; round < MAX_ROUNDS && !memory; round++) {
		memory = path_attach(path, format, ret_why);
		/* It may be somebody's named_move() half way. */
		if (!memory && *ret_why == several_links && !sched_yield())
			continue;
		if (memory || *ret_why != missing || !make)
			break;
		memory = path_make(path, format, ret_why);
		if (memory || *ret_why != exists)
			break;
	}
	if (memory)
		errno = error;
	return memory;
}

void *mapping_open_private(const struct mapping_format *format)
{
	void *memory = mmap(NULL, format->size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
			-1, 0);

	if (memory == MAP_FAILED)
		return NULL;
	format->fill(memory);
	return memory;
}

void mapping_close(void *memory, size_t size)
{
	munmap(memory, size);
}
