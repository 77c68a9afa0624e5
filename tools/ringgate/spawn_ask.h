/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * Processes on other nodes through the daemon of this machine. spawn_ask.c has the session with
 * it and the nodes that it knows, spawn_ask_job.c what is done with a process.
 */
#ifndef SPAWN_ASK_H
#define SPAWN_ASK_H

#include <ringgate/rgate_session.h>

#include "spawn_node.h"

#define ASK_PIECE	65536U		/* of a stream, as the daemon's rings have it */

enum ask_what {			/* of a request, in its cookie, behind the job's number */
	ASK_ALONE,		/* it is waited for, */
	ASK_UNHEARD,		/* or nobody wants to know */
	ASK_WAIT,
	ASK_OUT,
	ASK_ERR,
	ASK_WRITE,
	ASK_WHATS
};

struct ask_stream {		/* an output */
	uint8_t *mem;		/* in the session's memory, ASK_PIECE bytes */
	uint32_t len, at;	/* of these, taken so far */
	bool asked;
	bool ended;
	int err;		/* how */
};

struct ask_job {
	struct spawn_ask *ask;
	uint32_t number;	/* of the target */
	uint32_t handle;
	struct rgate_spawn_status *status; /* as ask_stream.mem */
	bool waits, over;
	bool news;
	int err;		/* why it is not known what became of it */
	struct ask_stream out[2];
	uint32_t in_len, in_at;	/* of the input that was handed over: taken so far */
	bool writes;
	bool in_ended;		/* nobody reads it */
	bool in_close;		/* when all of it is taken */
};

struct spawn_ask {
	struct rgate_session *session;
	uint8_t *mem;
	size_t record;		/* bytes at its begin, for the request */
	uint8_t *in;		/* ASK_PIECE bytes: input of the first job; lists */
	bool broken;		/* the daemon is gone */
	uint64_t number;	/* of requests that are waited for */
	struct rgate_completion alone;
	bool has_alone;
	struct spawn_target *target;
	struct ask_job job[RGATE_NODES_MAX]; /* by target */
	struct rgate_spawn_node node[RGATE_NODES_MAX];
	unsigned int nodes;
};

/* As spawn_node_open() and spawn_node_close() */
int spawn_ask_open(struct spawn_node *sn, const struct spawn_opts *o);
void spawn_ask_close(struct spawn_node *sn);
/* Left as it is where there is no such node */
void spawn_ask_name(const struct spawn_ask *ask, uint32_t id, char name[32]);

/* Without waiting for its end; -errno: the daemon is gone, or has no place for it */
int ask_submit(struct spawn_ask *ask, struct rgate_request q);
/* And its end, within @timeout_ms, and what is told of jobs meanwhile; @value may be NULL */
int ask_alone(struct spawn_ask *ask, struct rgate_request q, int timeout_ms, uint64_t *value);
/* Takes what came. -EPIPE: the daemon is gone */
int ask_take(struct spawn_ask *ask);
/* Until there is something to take, or the time is over, @timeout_ms at most */
void ask_sleep(struct spawn_ask *ask, int timeout_ms);
/* What a request of a job has come to */
void ask_job_told(struct ask_job *job, enum ask_what what, int result);
/* Nobody will tell any more. */
void ask_job_lost(struct ask_job *job);

#endif
