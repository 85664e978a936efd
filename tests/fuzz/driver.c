/* SPDX-License-Identifier: MIT */
/*
 * A main() for fuzzers where there is no libFuzzer: gives the files of a directory to the fuzzer,
 *and then mutations of them. The input of a run depends on the seed, the number of the run and the
 * directory only.
 *
 *	fuzz_NAME DIRECTORY [RUNS [SEED [FIRST]]]
 *
 * A crash prints how to repeat the run that did it.
 */
#include <dirent.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#include "core/text.h"
#include "tests/fuzz/fuzz.h"

#define FILES_MAX 256
#define INPUT_MAX 65536
#define RUNS 20000
#define SEED 1

struct input {
	uint8_t *bytes;
	size_t size;
};

static struct input files[FILES_MAX];
static size_t file_count;
static uint64_t seed = SEED, run;
static const char *program, *directory;

static void die(const char *what)
{
	perror(what);
	exit(2);
}

/* Only calls that a signal handler may make. */
static void report_crash(int signal)
{
	char line[512];
	size_t length = text_format(line, sizeof(line), "signal %d; again with: %s %s 1 %lu %lu\n",
			signal, program, directory, (unsigned long)seed, (unsigned long)run);

	if (write(STDERR_FILENO, line, length) < 0)
		_exit(2);
	raise(signal);
}

static void watch_for_crashes(void)
{
	static const int signals[] = { SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT };
	struct sigaction action = { .sa_handler = report_crash, .sa_flags = (int)SA_RESETHAND };

	for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++)
		sigaction(signals[i], &action, NULL);
}

static struct input read_file(const char *path)
{
	struct input input = { malloc(INPUT_MAX), 0 };
	FILE *file = fopen(path, "rb");

	if (!file || !input.bytes)
		die(path);
	input.size = fread(input.bytes, 1, INPUT_MAX, file);
	fclose(file);
	return input;
}

static int is_file(const struct dirent *entry)
{
	return entry->d_name[0] != '.';
}

/* In the order of their names: readdir's is the file system's own. */
static void read_files(void)
{
	struct dirent **entries;
	int count = scandir(directory, &entries, is_file, alphasort);
	char path[4096];

	if (count < 1)
		die(directory);
	for (int i = 0; i < count; i++) {
		snprintf(path, sizeof(path), "%s/%s", directory, entries[i]->d_name);
		if (file_count < FILES_MAX)
			files[file_count++] = read_file(path);
		free(entries[i]);
	}
	free(entries);
}

/* splitmix64 */
static uint64_t next_random(uint64_t *state)
{
	uint64_t value = *state += 0x9e3779b97f4a7c15u;

	value = (value ^ value >> 30) * 0xbf58476d1ce4e5b9u;
	value = (value ^ value >> 27) * 0x94d049bb133111ebu;
	return value ^ value >> 31;
}

static size_t below(uint64_t *state, size_t limit)
{
	return limit ? next_random(state) % limit : 0;
}

static void insert(struct input *input, size_t at, const uint8_t *bytes, size_t size)
{
	if (size > INPUT_MAX - input->size)
		return;
	memmove(input->bytes + at + size, input->bytes + at, input->size - at);
	memcpy(input->bytes + at, bytes, size);
	input->size += size;
}

static void erase(struct input *input, size_t at, size_t size)
{
	memmove(input->bytes + at, input->bytes + at + size, input->size - at - size);
	input->size -= size;
}

static void insert_piece_of_another(struct input *input, size_t at, uint64_t *state)
{
	const struct input *other = &files[below(state, file_count)];
	size_t from = below(state, other->size), size = below(state, other->size - from) % 64;

	insert(input, at, other->bytes + from, size);
}

static void insert_copies(struct input *input, size_t at, uint64_t *state)
{
	uint8_t piece[32];
	size_t size = below(state, sizeof(piece)) + 1;
	size_t times = below(state, 8) ? below(state, 4) : below(state, 600);

	if (size > input->size - at)
		size = input->size - at;
	memcpy(piece, input->bytes + at, size);
	while (times--)
		insert(input, at, piece, size);
}

static void mutate(struct input *input, uint64_t *state)
{
	static const uint8_t telling[] = {0, 1, 0x7f, 0x80, 0xff, '\n', ' ', ',', '=', ':', '/',
			'.', '%', '^', '*', '[', ']', '-', '0', '9'};
	size_t at = below(state, input->size);
	uint8_t byte = telling[below(state, sizeof(telling))];

	switch (below(state, 7)) {
	case 0:
		if (input->size)
			input->bytes[at] ^= (uint8_t)(1 << below(state, 8));
		break;
	case 1:
		if (input->size)
			input->bytes[at] = byte;
		break;
	case 2:
		insert(input, at, &byte, 1);
		break;
	case 3:
		erase(input, at, below(state, input->size - at) % 16);
		break;
	case 4:
		insert_copies(input, at, state);
		break;
	case 5:
		input->size = below(state, 16) ? input->size : at;
		break;
	default:
		insert_piece_of_another(input, at, state);
	}
}

/* In memory of its exact size, so that a sanitizer sees one byte too far. */
static void give(const struct input *input)
{
	uint8_t *exact = malloc(input->size ? input->size : 1);

	if (!exact)
		die("malloc");
	memcpy(exact, input->bytes, input->size);
	LLVMFuzzerTestOneInput(exact, input->size);
	free(exact);
}

/* The first runs are the files as they are. */
static void give_run(void)
{
	static uint8_t buffer[INPUT_MAX];
	uint64_t state = seed * 0x2545f4914f6cdd1du + run;
	const struct input *file = &files[run < file_count ? run : below(&state, file_count)];
	struct input input = { buffer, file->size };

	memcpy(buffer, file->bytes, file->size);
	if (run >= file_count) {
		for (size_t i = below(&state, 8) + 1; i > 0; i--)
			mutate(&input, &state);
	}
	give(&input);
}

static uint64_t argument(int argc, char *argv[], int index, uint64_t otherwise)
{
	return index < argc ? strtoull(argv[index], NULL, 10) : otherwise;
}

int main(int argc, char *argv[])
{
	if (argc < 2) {
		fprintf(stderr, "usage: %s DIRECTORY [RUNS [SEED [FIRST]]]\n", argv[0]);
		return 2;
	}
	program = argv[0];
	directory = argv[1];
	uint64_t runs = argument(argc, argv, 2, RUNS), first = argument(argc, argv, 4, 0);
	seed = argument(argc, argv, 3, SEED);
	read_files();
	watch_for_crashes();
	for (run = first; run - first < runs; run++)
		give_run();
	printf("%lu runs from %zu files, seed %lu\n", (unsigned long)runs, file_count,
			(unsigned long)seed);
	for (size_t i = 0; i < file_count; i++)
		free(files[i].bytes);
	return 0;
}
