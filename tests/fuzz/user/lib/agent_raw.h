/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/* What a program of an agent may do without the library, for fuzz_agent.c */
#ifndef AGENT_RAW_H
#define AGENT_RAW_H

#include <stdint.h>
#include <sys/un.h>

#include "fuzz.h"

#define RAW_FDS_MAX	15U	/* descriptors of a message */

/* What it has put into the agent's directory stays there. */
extern bool raw_littered;

void raw_init(void);
/* Whatever a program may have open, and is no socket of the agent's */
int raw_fd(uint8_t number);
/* @n of any kind, which may be a program's sockets; returns @n */
unsigned int raw_fds(struct fuzz_in *in, int *fds, unsigned int n);
/* Connects, and does not wait */
void raw_connect(int fd, const struct sockaddr_un *un);
/* Does something to a socket of a program's that the library does not */
void raw_step(struct fuzz_in *in);

#endif
