/* SPDX-License-Identifier: MIT */
/* replay [--traces] FILE.jsonl...: event scripts against core, or traces against the exchange
 * model. Exit 0 if everything passed, 1 on a failure or when nothing ran, 2 on a bad file. */
#include "tests/replay.h"

#include <stdio.h>
#include <string.h>

int main(int argc, char **argv)
{
	bool (*replay)(const char *path, struct replay_tally *tally) = replay_scenarios;
	struct replay_tally tally = { 0 };
	int first = 1;
	bool is_read = true;

	if (argc > 1 && strcmp(argv[1], "--traces") == 0) {
		replay = replay_traces;
		first = 2;
	}
	if (first >= argc) {
		fprintf(stderr, "usage: replay [--traces] FILE.jsonl...\n");
		return 2;
	}
	for (int i = first; i < argc && is_read; i++)
		is_read = replay(argv[i], &tally);
	printf("%u passed, %u failed, %u skipped\n", tally.passed, tally.failed, tally.skipped);
	if (!is_read)
		return 2;
	return tally.failed > 0 || tally.passed == 0;
}
