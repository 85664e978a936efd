/* SPDX-License-Identifier: MIT */
#include "cli/privileges.h"

#include <endian.h>
#include <linux/capability.h>
#include <pwd.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/xattr.h>
#include <unistd.h>

/* What an owner looks like who has no number in our user namespace; outside of such, a number as
 * any other. */
#define ID_UNMAPPED 65534
#define ALL_IDS UINT32_MAX

static bool has_no_new_privileges(void)
{
	return prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1;
}

/* Has every number of users, or groups, one of its own in our user namespace? */
static bool map_is_whole(const char *path)
{
	FILE *map = fopen(path, "re");
	unsigned long long count, sum = 0;

	if (!map)
		return true;
	while (fscanf(map, "%*u %*u %llu", &count) == 1)
		sum += count;
	fclose(map);
	return sum >= ALL_IDS;
}

/* The kernel then ignores both bits. */
static bool has_unmapped_owner(const struct stat *file)
{
	return (file->st_uid == ID_UNMAPPED && !map_is_whole("/proc/self/uid_map")) ||
			(file->st_gid == ID_UNMAPPED && !map_is_whole("/proc/self/gid_map"));
}

static bool is_set_user_id(const struct stat *file, char *ret, size_t size)
{
	const struct passwd *owner;

	if (!(file->st_mode & S_ISUID) || file->st_uid == getuid())
		return false;
	owner = getpwuid(file->st_uid);
	if (owner)
		snprintf(ret, size, "set-user-ID %s", owner->pw_name);
	else
		snprintf(ret, size, "set-user-ID %u", (unsigned int)file->st_uid);
	return true;
}

static bool is_set_group_id(const struct stat *file, char *ret, size_t size)
{
	/* Without the right to execute the bit means locking. */
	if ((file->st_mode & (S_ISGID | S_IXGRP)) != (S_ISGID | S_IXGRP) ||
			file->st_gid == getgid())
		return false;
	snprintf(ret, size, "set-group-ID %u", (unsigned int)file->st_gid);
	return true;
}

/* Root's own programs are not secured by the capabilities of their files. */
static bool has_capabilities(const char *path, char *ret, size_t size)
{
	struct vfs_ns_cap_data data = { 0 };
	ssize_t length = getxattr(path, "security.capability", &data, sizeof(data));
	bool is_effective, is_permitted;

	if (getuid() == 0 || length < (ssize_t)XATTR_CAPS_SZ_1)
		return false;
	is_effective = le32toh(data.magic_etc) & VFS_CAP_FLAGS_EFFECTIVE;
	is_permitted = data.data[0].permitted || data.data[1].permitted;
	if (!is_effective && (!is_permitted || has_no_new_privileges()))
		return false;
	snprintf(ret, size, "it has file capabilities");
	return true;
}

bool privileges_are_raised(const char *path, char *ret, size_t size)
{
	struct statvfs mount;
	struct stat file;

	if (stat(path, &file) || statvfs(path, &mount))
		return false;
	if (getuid() != geteuid() || getgid() != getegid()) {
		snprintf(ret, size, "this process has the rights of another user already");
		return true;
	}
	if (mount.f_flag & ST_NOSUID)
		return false;
	if (!has_no_new_privileges() && !has_unmapped_owner(&file) &&
			(is_set_user_id(&file, ret, size) || is_set_group_id(&file, ret, size)))
		return true;
	return has_capabilities(path, ret, size);
}
