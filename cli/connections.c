/* SPDX-License-Identifier: MIT */
#include "cli/connections.h"

#include <dirent.h>
#include <inttypes.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/terminal.h"

/* What the kernel lists of a network namespace, and what a process has of it. */
struct list {
	struct connection *entries;
	size_t count;
};

static struct connection *list_add(struct list *list)
{
	/* Capacity is the next power of two. */
	if ((list->count & (list->count - 1)) == 0) {
		size_t capacity = list->count ? list->count * 2 : 1;
		struct connection *larger =
				realloc(list->entries, capacity * sizeof(*list->entries));

		if (!larger)
			terminal_die_without_memory();
		list->entries = larger;
	}
	list->entries[list->count] = (struct connection){ .fd = -1 };
	return &list->entries[list->count++];
}

static int compare_inodes(const void *a, const void *b)
{
	const struct connection *first = a, *second = b;

	return (first->inode > second->inode) - (first->inode < second->inode);
}

static int compare_descriptors(const void *a, const void *b)
{
	const struct connection *first = a, *second = b;

	return (first->fd > second->fd) - (first->fd < second->fd);
}

/* The kernel prints an address as the words that it holds in memory. */
static bool read_address(const char *text, struct address *ret)
{
	uint32_t words[4];
	size_t length = strlen(text);

	if (length != 8 && length != 32)
		return false;
	for (size_t i = 0; i < length / 8; i++) {
		if (sscanf(text + i * 8, "%8" SCNx32, &words[i]) != 1)
			return false;
	}
	*ret = length == 8 ? address_from_v4(words) : address_from_v6(words);
	return true;
}

static bool read_line(const char *line, struct connection *ret)
{
	unsigned int local_port, port, state;
	char address[40];

	if (sscanf(line, " %*u: %*[0-9A-Fa-f]:%x %39[0-9A-Fa-f]:%x %x %*s %*s %*s %*u %*u %" SCNu64,
			&local_port, address, &port, &state, &ret->inode) != 5)
		return false;
	ret->local_port = (uint16_t)local_port;
	ret->port = (uint16_t)port;
	ret->state = (uint8_t)state;
	return read_address(address, &ret->address);
}

static bool list_read(struct list *list, pid_t pid, const char *table)
{
	char path[64], *line = NULL;
	size_t capacity = 0;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/net/%s", (int)pid, table);
	file = fopen(path, "re");
	if (!file)
		return false;
	while (getline(&line, &capacity, file) > 0) {
		struct connection connection = { .fd = -1 };

		if (read_line(line, &connection))
			*list_add(list) = connection;
	}
	free(line);
	fclose(file);
	return true;
}

/* 0 for what is no socket. */
static uint64_t socket_inode(int directory, const char *name)
{
	char target[64];
	ssize_t length = readlinkat(directory, name, target, sizeof(target) - 1);
	uint64_t inode = 0;

	if (length > 0) {
		target[length] = '\0';
		if (sscanf(target, "socket:[%" SCNu64 "]", &inode) != 1)
			return 0;
	}
	return inode;
}

/* Gives those of the list that the process has their descriptors. */
static bool list_claim(struct list *list, pid_t pid)
{
	char path[64];
	struct dirent *entry;
	DIR *directory;

	snprintf(path, sizeof(path), "/proc/%d/fd", (int)pid);
	directory = opendir(path);
	if (!directory)
		return false;
	while ((entry = readdir(directory))) {
		struct connection wanted = { .inode = 0 };
		struct connection *found = NULL;
		int fd = (int)strtol(entry->d_name, NULL, 10);

		wanted.inode = socket_inode(dirfd(directory), entry->d_name);
		if (wanted.inode && list->count)
			found = bsearch(&wanted, list->entries, list->count, sizeof(wanted),
					compare_inodes);
		if (found && (found->fd < 0 || fd < found->fd))
			found->fd = fd;
	}
	closedir(directory);
	return true;
}

/* A port that somebody listens on is not one that connect() was given. */
static void mark_incoming(struct list *list)
{
	static bool listens[65536];

	memset(listens, 0, sizeof(listens));
	for (size_t i = 0; i < list->count; i++) {
		if (list->entries[i].state == TCP_LISTEN)
			listens[list->entries[i].local_port] = true;
	}
	for (size_t i = 0; i < list->count; i++)
		list->entries[i].is_incoming = listens[list->entries[i].local_port];
}

bool connections_read(pid_t pid, struct connection **ret, size_t *ret_count)
{
	struct list list = { 0 };
	size_t count = 0;
	bool has_v4 = list_read(&list, pid, "tcp"), has_v6 = list_read(&list, pid, "tcp6");

	if (list.count)
		qsort(list.entries, list.count, sizeof(*list.entries), compare_inodes);
	if ((!has_v4 && !has_v6) || !list_claim(&list, pid)) {
		free(list.entries);
		return false;
	}
	mark_incoming(&list);
	for (size_t i = 0; i < list.count; i++) {
		const struct connection *entry = &list.entries[i];

		if (entry->fd >= 0 && entry->state != TCP_LISTEN && entry->port != 0)
			list.entries[count++] = *entry;
	}
	if (count)
		qsort(list.entries, count, sizeof(*list.entries), compare_descriptors);
	*ret = list.entries;
	*ret_count = count;
	return true;
}

const char *connection_state_name(const struct connection *connection)
{
	static const char *const names[] = {
		[TCP_ESTABLISHED] = "established",
		[TCP_SYN_SENT] = "connecting",
		[TCP_SYN_RECV] = "connecting",
		[TCP_FIN_WAIT1] = "closing",
		[TCP_FIN_WAIT2] = "closing",
		[TCP_TIME_WAIT] = "closed",
		[TCP_CLOSE] = "closed",
		[TCP_CLOSE_WAIT] = "closed by the peer",
		[TCP_LAST_ACK] = "closing",
		[TCP_LISTEN] = "listening",
		[TCP_CLOSING] = "closing",
	};

	return connection->state && connection->state < sizeof(names) / sizeof(names[0])
			? names[connection->state]
			: "unknown";
}
