/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * The peer: a second process with device, pool and queue pair of its own, which does what
 * it is told over a socket. Forked before any verbs call of this process.
 */
#ifndef POOL_PEER_H
#define POOL_PEER_H

#include <sys/types.h>

#include "pool_side.h"

struct verify_opts;

enum peer_cmd {
	PEER_OPEN,		/* device @name, pool; -> @count, @off of the first one,
				 * @piece.len of the region, @value of the MTU */
	PEER_CONNECT,		/* new queue pair, to @rc; -> its @rc */
	PEER_PREPARE,		/* fill @piece by @window (and @payload), receive;
				 * -> @desc, @value */
	PEER_CHECK,		/* received? @piece as by @how */
	PEER_INTACT,		/* -> @count of buffers damaged that were not touched */
	PEER_EXTRA,		/* register memory for @access; -> @desc */
	PEER_EXTRA_CHECK,	/* ... written: @value bytes by @payload */
	PEER_EXTRA_DROP,	/* ... deregister it; the memory stays */
	PEER_EXTRA_FREE,
	PEER_MAP,		/* the memfd that came with it, @count bytes */
	PEER_STORE,		/* @payload into @desc, by the CPU */
	PEER_LOAD,		/* ... is it there? */
	PEER_ADD,		/* @count times 1 to @desc */
	PEER_SWAP,		/* the same by compare-and-swap */
	PEER_CLOSE,		/* give everything back, end */
	PEER_CMDS
};

enum peer_how {
	HOW_PAYLOAD,		/* the piece was written by @payload */
	HOW_VALUE,		/* it is 8 bytes, and they are @value */
	HOW_UNTOUCHED,		/* nothing was written */
};

/* What takes a receive of the peer's */
enum peer_recv {
	RECV_NOTHING,
	RECV_SEND,
	RECV_SEND_IMM,
	RECV_WRITE_IMM,
};

/* Command and answer: the same record */
struct peer_msg {
	uint32_t cmd;		/* enum peer_cmd */
	int32_t err;		/* answer: 0 or -errno */
	struct piece piece;
	uint64_t window;	/* keys of patterns */
	uint64_t payload;	/* 0: none */
	uint64_t value;
	uint64_t count;
	uint64_t off;
	uint32_t how;		/* enum peer_how */
	uint32_t recv;		/* enum peer_recv */
	uint32_t imm;
	uint32_t access;
	struct rgate_rc_addr rc;
	struct rgate_desc desc;
	char name[64];
	char text[CARVE_TEXT];
};

struct peer {
	pid_t pid;		/* 0: none */
	int fd;
	uint64_t time_ns;	/* one answer takes no longer */
};

/* Each returns 0 or -errno. */
int peer_start(struct peer *p, const struct verify_opts *o);
/* @fd: goes with it; -1: none */
int peer_send(struct peer *p, const struct peer_msg *m, int fd);
/* The answer. Errors of the peer's are in @m->err; what is returned means that it is
 * gone or does not answer, which was said. -EINTR: util_stop */
int peer_wait(struct peer *p, struct peer_msg *m);
int peer_call(struct peer *p, struct peer_msg *m);
/* Ends it, by force if need be */
void peer_stop(struct peer *p);

/* The other process: serves @fd until its end */
void peer_serve(int fd, const struct verify_opts *o);

#endif
