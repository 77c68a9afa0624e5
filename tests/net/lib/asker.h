/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/* A program that asks a daemon: one session in a child of the test's, one request at a time */
#ifndef ASKER_H
#define ASKER_H

#include "unit.h"

#include <stdio.h>
#include <sys/types.h>

#include <ringgate/rgate_session.h>

/* For children, where an assertion of cmocka's would run the parent's tests */
#define need(cond)							\
	do {								\
		if (!(cond)) {						\
			fprintf(stderr, "# %s:%d: %s\n", __FILE__, __LINE__, #cond); \
			return 1;					\
		}							\
	} while (0)

extern struct rgate_session *session;
extern uint8_t *mem;		/* of the session */

/* With @memory bytes; as rgate_session_open() */
int asker_open(const char *path, uint64_t memory);
/* The next completion; 0, or why there is none */
int next_completion(struct rgate_completion *c);
/* One request and its completion, with nothing else under way; its result. @value: out, or NULL */
int ask(struct rgate_request q, uint64_t *value);

/* @fn in a child, of user @uid where that can be; it returns 0: all was as wanted */
pid_t begin_as(int (*fn)(void), uid_t uid);
void ends_well(pid_t pid);

#endif
