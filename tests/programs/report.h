/* SPDX-License-Identifier: MIT */
/*
 * What a process is left with, printed line by line: what a library in it may have left behind.
 * Makes system calls of its own, and leaves nothing open.
 */
#ifndef SHUNT_TESTS_PROGRAMS_REPORT_H
#define SHUNT_TESTS_PROGRAMS_REPORT_H

/* Open descriptors and what they are, the number of threads, signals blocked and pending. */
void report_state(void);

/* What is the whole process's: environment (but for the preload and its settings), signals handled
 * and ignored, random(), locale, umask, limits, directory. */
void report_process(void);

#endif
