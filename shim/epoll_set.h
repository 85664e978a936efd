/* SPDX-License-Identifier: MIT */
/* Epoll sets of the program: which of them are known, with what is registered in them
 * (shim/registration.h). Async-signal-safe. */
#ifndef SHUNT_SHIM_EPOLL_SET_H
#define SHUNT_SHIM_EPOLL_SET_H

#include <stdbool.h>

/*
 * The set's descriptor was seen. For the first time since it was opened: what its number named
 * before is forgotten, and what was registered unseen (before faults began, by another process, by
 * another descriptor of the same set) is read from the kernel. Of that, edges are reported anew:
 * one that told of what a call was turned back from may be spent. False: it is no set. Where the
 * kernel could not be asked, what is registered from now on is recorded all the same.
 */
bool epoll_set_know(int set);

/* It was opened just now, and is empty. */
void epoll_set_born(int set);

/* It was seen while there was no need to know it; and now there is, of all that were, and of those
 * that could not be read. False: there is one of which something may be missing. */
void epoll_set_saw(int set);
bool epoll_sets_know_seen(void);

#endif
