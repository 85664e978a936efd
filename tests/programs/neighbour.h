/* SPDX-License-Identifier: MIT */
/*
 * A library that connects from its constructor, and from its destructor, which for one that a
 * program is linked with are before the constructor of any preloaded one and after its destructor.
 */
#ifndef SHUNT_TESTS_PROGRAMS_NEIGHBOUR_H
#define SHUNT_TESTS_PROGRAMS_NEIGHBOUR_H

/* One exchange on each of two connections: the one made by the constructor, and one made now. */
__attribute__((visibility("default"))) void neighbour_talks(void);

#endif
