/* SPDX-License-Identifier: MIT */
/* A program with a neighbour (neighbour.h). */
#include <stdio.h>
#include <unistd.h>

#include "tests/programs/neighbour.h"

int main(void)
{
	neighbour_talks();
	printf("main returns\n");
	return 7;
}
