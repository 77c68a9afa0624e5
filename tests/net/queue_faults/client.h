/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * Clients of queues, locks and barriers while faults go on. What each asks, and what came of it,
 * is a line of its history (standard output), in a file of its own, with the time before and
 * after: history.py reads them. A client that is killed leaves what it wrote.
 */
#ifndef FAULTS_CLIENT_H
#define FAULTS_CLIENT_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct client {
	const char *path;	/* the daemon's socket */
	uint32_t home;		/* node of what it asks for */
	const char *name;
	uint64_t number;	/* of this client among all of the run */
};

extern volatile sig_atomic_t told;	/* to end */

uint64_t now_ns(void);
/* Below @n, by the client's seed */
uint64_t some(uint64_t n);
void nap_ms(uint64_t ms);
/* A line: the time, what it is, and more */
__attribute__((format(printf, 2, 3))) void note(char what, const char *fmt, ...);
/* 0, or it is told to end: it was tried for so long */
int again(int err);

int submitter(const struct client *c);
int worker(const struct client *c);
int locker(const struct client *c);
int member(const struct client *c);
int scribbler(const struct client *c);
/* @name is the cluster's file, @home the node that is lied to; it is node 3. */
int liar(const struct client *c);

#endif
