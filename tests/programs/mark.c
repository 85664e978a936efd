/* SPDX-License-Identifier: MIT */
/*
 * For programs that mark no scenes: preloaded before all other libraries, and so the last to start,
 * it marks that the program's own main() begins (scene_marks() in scene.h).
 */
#include <errno.h>
#include <unistd.h>

__attribute__((constructor)) static void mark_main(void)
{
	int kept = errno;

	/* Nobody has that file: the call is its own purpose. */
	(void)!access("/scene/begins/main", F_OK);
	errno = kept;
}
