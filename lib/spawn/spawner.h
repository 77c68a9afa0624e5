/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * The process that starts processes. It is forked before there is any registered
 * memory, and shares with the server a socket and a few slots, in which orders lie. The
 * server faces the network, so it is not trusted: what it orders is copied first, and the
 * policy, which the spawner reads itself, decides who runs what, when its turn has come.
 */
#ifndef RGATE_SPAWN_SPAWNER_H
#define RGATE_SPAWN_SPAWNER_H

#include <sys/resource.h>

#include "policy.h"

#define RGATE_ORDERS	32	/* slots: what the spawner has not taken yet */

/* What is to be started; written by the server, then copied by the spawner */
struct rgate_order {
	uint32_t taken;			/* by the spawner: the slot is free */
	uint32_t node;			/* that asked */
	uint64_t id;
	uint64_t mark;			/* with id: different from all others on this machine */
	uint32_t record_len;
	uint8_t record[RGATE_SPAWN_RECORD_MAX];
};

/* The policy's text as the spawner read it last; written by the spawner */
struct rgate_spawner_policy {
	uint32_t len;
	char text[RGATE_POLICY_MAX];
};

enum rgate_spawner_packet_type {
	/* to the spawner */
	RGATE_SPAWNER_START = 1,	/* slot; with stdin, stdout, stderr */
	RGATE_SPAWNER_SIGNAL,		/* id, a: signal, b: enum rgate_spawn_scope */
	RGATE_SPAWNER_FINISH,		/* id, a: let what is left live */
	RGATE_SPAWNER_RELOAD,		/* the policy */
	/* to the server */
	RGATE_SPAWNER_STARTED,		/* id, a: pid or -errno, b: stage; wall_ms, why */
	RGATE_SPAWNER_EXITED,		/* id, a: status, b: something is left; usage */
	RGATE_SPAWNER_FINISHED,		/* id; flags */
	RGATE_SPAWNER_RELOADED,		/* a: -errno: the old one holds */
};

struct rgate_spawner_packet {
	uint32_t type;
	uint32_t slot;
	uint64_t id;
	int32_t a;
	int32_t b;
	uint32_t flags;			/* enum rgate_spawn_result_flags */
	uint64_t when_ns;		/* CLOCK_REALTIME of start or exit */
	uint64_t wall_ms;		/* as the policy allows; 0: any */
	struct rusage usage;
	char why[RGATE_POLICY_WHY];
};

struct rgate_spawner {
	pid_t pid;
	int sock;
	int null_fd;
	struct rgate_order *orders;	/* RGATE_ORDERS of them, shared */
	struct rgate_spawner_policy *policy; /* shared */
	uint32_t used;			/* bits */
	bool dead;
	bool ending;			/* as it was told to */
};

/* What the server tells its spawner at birth */
struct rgate_spawner_opts {
	const char *cgroup;		/* as in struct rgate_spawnd_opts */
	struct rlimit files;		/* for what runs, unless a request says less */
	uint32_t start_ms;		/* from its order to execve(2) */
	const struct rgate_cluster *cluster;
	const char *policy_path;
	struct rgate_spawn_policy *policy; /* what holds at first; the spawner has a copy */
};

/* Forks it. @spawner: zeroed */
int rgate_spawner_create(struct rgate_spawner *spawner, const struct rgate_spawner_opts *opts);
/* Ends it and what it runs; waits some seconds at most */
void rgate_spawner_destroy(struct rgate_spawner *spawner);

/* A slot to be filled, or NULL: the spawner has taken none of those that are full */
struct rgate_order *rgate_spawner_order(struct rgate_spawner *spawner);
/* The order goes out, or (-errno) its slot is free again. -EAGAIN: later; -EPIPE: dead */
int rgate_spawner_start(struct rgate_spawner *spawner, struct rgate_order *order,
			const int fds[3]);
void rgate_spawner_cancel(struct rgate_spawner *spawner, const struct rgate_order *order);
int rgate_spawner_tell(struct rgate_spawner *spawner, uint32_t type, uint64_t id, int32_t a,
		       int32_t b);
/* 1: a packet; 0: none; -EPIPE: dead */
int rgate_spawner_recv(struct rgate_spawner *spawner, struct rgate_spawner_packet *packet);

/* The process itself (spawner_main.c); returns its exit status. @shared: what it shares */
int rgate_spawner_main(int sock, const struct rgate_spawner *shared,
		       const struct rgate_spawner_opts *opts);

#endif
