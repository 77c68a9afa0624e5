/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/* A node that runs processes, in a process of its own, and a client of it in this one. */
#ifndef SERVE_H
#define SERVE_H

#include "nodes.h"

#include <ringgate/rgate_spawn.h>

/* RGATE_TEST_LONG is set: full sizes, which take many minutes */
bool serve_long(void);

struct serve {
	struct cluster c;
	char policy[96];		/* file */
	/* of both sides, set before serve_up(); 0: as usual */
	uint32_t reconnect_ms;
	uint32_t silent_ms;		/* for so long: a peer is dead */
	uint32_t start_ms;
	uint32_t stage_bytes;
	unsigned int nodes;		/* of the cluster; 0: 2, the server's and the client's */
	bool hub;			/* the server shares its peers with other services, */
	bool early;			/* and ends its hub and its node before the service */
	const char *cgroup;		/* as struct rgate_spawnd_opts */
	struct rgate_node *node;	/* 1: the client's */
	struct rgate_peer *peer;
	struct rgate_spawn *spawn;
	pid_t server;
	int sock;
};

/* @policy: NULL: node 1 may run anything as the test's own user, with any environment;
 * %s in it is that user */
void serve_up(struct serve *s, const char *policy);
void serve_down(struct serve *s);
/* The server alone: another one in the place of the last */
void serve_start(struct serve *s);
void serve_stop(struct serve *s, int signal);	/* 0: as usual */
/* The client alone: another incarnation of it */
void serve_client_up(struct serve *s);
void serve_client_down(struct serve *s);
/* With a buffer of its pool that the other side may still know of */
void serve_client_down_raw(struct serve *s, const struct rgate_buf *buf);

/* Another policy, which the server is told to read: its error */
int serve_reload(struct serve *s, const char *policy);
struct rgate_spawnd_stats serve_stats(struct serve *s);	/* of the server */
unsigned int serve_fds(struct serve *s);		/* that the server has open */

/* argv, to its end: everything about it; output is in out */
struct done {
	struct rgate_spawn_result r;
	struct rgate_spawn_output_buf out[2];
};

struct done run_request(struct serve *s, struct rgate_spawn_request *req);
#define run(s, ...)							\
	run_request(s, &(struct rgate_spawn_request){			\
		.sz = sizeof(struct rgate_spawn_request),		\
		.argv = (const char *const[]){ __VA_ARGS__, NULL },	\
		.stdout_mode = RGATE_SPAWN_OUT_STREAM,			\
		.stderr_mode = RGATE_SPAWN_OUT_STREAM })
void done_free(struct done *d);
/* It ran, with this exit code and this output */
void assert_ran(struct done *d, int code, const char *out);
/* It did not */
void assert_failed(struct done *d, uint32_t stage, int err);

struct rgate_spawn_job *start_argv(struct serve *s, uint32_t flags, const char *const *argv);
#define start(s, flags, ...) start_argv(s, flags, (const char *const[]){ __VA_ARGS__, NULL })

#endif
