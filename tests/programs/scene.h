/* SPDX-License-Identifier: MIT */
/*
 * Small clients on loopback that call what the library hooks, and print what came back. A program
 * is a table of scenes; its output is the same bare and preloaded, unless a rule says otherwise.
 *
 *	PROGRAM SCENE|all [PORT]
 *
 * PORT is where the scenes' server listens (default: any free one), so that a rule can name it.
 * After each scene, and at the end, the process says what it is left with (report.h). What belongs
 * to scenes is marked for who traces the system calls (scene_marks()).
 */
#ifndef SHUNT_TESTS_PROGRAMS_SCENE_H
#define SHUNT_TESTS_PROGRAMS_SCENE_H

#include <errno.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>

struct scene {
	const char *name;
	void (*play)(void);
};

#define SCENE(name) { #name, name }
#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* The whole of main(). */
int scenes_play(const struct scene *scenes, size_t count, int argc, char *argv[]);

/*
 * A system call that nobody else makes: access("/scene/WHAT/NAME"). WHAT is begins, ends, or leaves
 * for all that follows; between `pauses` and `resumes` the calls of this thread are not compared,
 * as where it waits for another one to get somewhere. Keeps errno.
 */
void scene_marks(const char *what, const char *name);

/* Prints a call, what it returned and errno, which is EDOM where the call left it alone. */
#define SAY(call) said(#call, (errno = EDOM, (long)(call)))
long said(const char *call, long result);

/* Ends the program with a message where the scene itself cannot go on. */
int must(int result, const char *what);

/* 127.0.0.1 and a port on which nobody listens, for as long as the program lives. */
struct sockaddr_in address_refusing(void);

/* A listener, the same for the whole program, and its address. */
int listener(void);
struct sockaddr_in address_listening(void);

int stream_socket(int flags);

struct pair {
	int client, server;
};

/* A client connected to the listener, and the server's end. */
struct pair pair_open(void);
void pair_close(struct pair pair);

/* As pair_open(), by a connect() that the library does not see. */
struct pair pair_open_unseen(void);

/* A connection on which one request had its answer. */
struct pair pair_answered(void);

/* Resets the connection from the server's end, and returns when the client's end knows. */
void server_resets(struct pair pair);

/* The server answers "pong" after it has read what came, of `size` bytes. */
void server_answers(struct pair pair, size_t size);

/* Waits for a child and prints how it ended. */
void child_ended(const char *what, int pid);

/* Returns when another thread of this process sleeps in the kernel. Marked as a pause. */
void thread_sleeps(int tid);

/* libc's own function, which no preload stands before. */
void *unseen(const char *name);

/* close() out of the library's sight. */
void close_unseen(int fd);

#define as_sockaddr(address) ((struct sockaddr *)(address))

#endif
