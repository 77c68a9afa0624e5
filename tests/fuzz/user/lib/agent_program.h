/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * Programs of an agent, for fuzz_agent.c: what they have open, what they ask and hear. What they
 * read is looked at: it is their own, in its order, and does not end before its end.
 */
#ifndef AGENT_PROGRAM_H
#define AGENT_PROGRAM_H

#include "agent_priv.h"
#include "agent_served.h"

#define PROGRAM_FDS	24U
#define PROGRAM_ASKERS	320U

/* A socket of a program */
struct program_fd {
	int fd;				/* -1: none */
	struct rgate_socket *s;		/* at who serves; NULL: none, or not known */
	uint64_t id;			/* of the agent */
	bool accepted, datagram;
	bool bare;			/* its datagrams have no head in front */
	uint32_t greeted;		/* bytes of the hello */
	bool deaf;			/* it wants to hear no more, or has heard the end */
	uint64_t got;
};

extern struct program_fd program_fds[PROGRAM_FDS];
extern struct agent *program_agent;

void program_begin(struct agent *agent);
/* Closes what they have */
void program_end(void);
/* ... of questions */
void program_hush(void);

/* NULL: it has no such one now */
struct program_fd *program_fd(uint8_t number);
/* For one more: one that is closed, or the oldest, which is closed for it */
struct program_fd *program_new(int fd);

/* ---- Questions ---- */

/* Connects to @name in the agent's directory; -1: there is no room */
int program_call(const char *name, int type);
/* The number of one that asks: @fd, which is closed with it */
unsigned int program_asker(int fd);
/* -1: there is none of that number */
int program_asker_fd(unsigned int number);
void program_asker_close(unsigned int number);
/* It asks to connect @p, which does so by itself if it is told to */
void program_asker_connects(unsigned int number, struct program_fd *p);
/* One message with any descriptors */
void program_say(int sock, const void *msg, size_t len, const int *fds, unsigned int nfds);
/* Hears what the agent has answered, and keeps what came with it */
void program_hear(void);

/* ---- Streams ---- */

void program_write(struct program_fd *p, uint32_t len);
void program_read(struct program_fd *p, uint32_t len);
void program_shutdown(struct program_fd *p, int how);
void program_close(struct program_fd *p);
/* Accepts one, who says @len bytes of the hello */
void program_accept(struct program_fd *p, uint32_t len);
/* Of the hello: @right, or not */
void program_greet(struct program_fd *p, uint32_t len, bool right);

#endif
