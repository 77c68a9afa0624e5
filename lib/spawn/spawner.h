/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * The process that starts processes. It is forked before there is any registered
 * memory, and shares with the server a socket and a few slots, in which orders lie. It
 * trusts the server; what runs reaches neither.
 */
#ifndef RGATE_SPAWN_SPAWNER_H
#define RGATE_SPAWN_SPAWNER_H

#include <sys/resource.h>

#include "policy.h"

#define RGATE_ORDERS	32	/* slots: processes that are being started */

/* What is to be started; written by the server, then read by the spawner */
struct rgate_order {
	uint64_t id;
	uint64_t mark;			/* with id: different from all others on this machine */
	uid_t uid;
	gid_t gid;
	bool with_hash;
	uint32_t ngroups;
	gid_t groups[RGATE_POLICY_GROUPS];
	char user[33];
	char path[PATH_MAX];
	char home[PATH_MAX];
	char shell[PATH_MAX];
	char search[PATH_MAX];
	uint8_t sha256[32];
	/* limits as the policy left them */
	uint64_t memory;
	uint32_t cpu_s;
	uint32_t processes;
	uint32_t files;
	int32_t nice;
	uint32_t record_len;
	uint8_t record[RGATE_SPAWN_RECORD_MAX];
};

enum rgate_spawner_packet_type {
	/* to the spawner */
	RGATE_SPAWNER_START = 1,	/* slot; with stdin, stdout, stderr */
	RGATE_SPAWNER_SIGNAL,		/* id, a: signal, b: enum rgate_spawn_scope */
	RGATE_SPAWNER_FINISH,		/* id, a: let what is left live */
	/* to the server */
	RGATE_SPAWNER_STARTED,		/* id, slot, a: pid or -errno, b: stage */
	RGATE_SPAWNER_EXITED,		/* id, a: status, b: something is left; usage */
	RGATE_SPAWNER_FINISHED,		/* id; flags */
};

struct rgate_spawner_packet {
	uint32_t type;
	uint32_t slot;
	uint64_t id;
	int32_t a;
	int32_t b;
	uint32_t flags;			/* enum rgate_spawn_result_flags */
	uint64_t when_ns;		/* CLOCK_REALTIME of start or exit */
	struct rusage usage;
};

struct rgate_spawner {
	pid_t pid;
	int sock;
	int null_fd;
	struct rgate_order *orders;	/* RGATE_ORDERS of them, shared */
	uint32_t used;			/* bits */
	bool dead;
	bool ending;			/* as it was told to */
};

/* What the server tells its spawner at birth */
struct rgate_spawner_opts {
	const char *cgroup;		/* as in struct rgate_spawnd_opts */
	struct rlimit files;		/* for what runs, unless a request says less */
};

/* Forks it. @spawner: zeroed */
int rgate_spawner_create(struct rgate_spawner *spawner, const struct rgate_spawner_opts *opts);
/* Ends it and what it runs; waits some seconds at most */
void rgate_spawner_destroy(struct rgate_spawner *spawner);

/* A slot to be filled, or NULL: all are under way */
struct rgate_order *rgate_spawner_order(struct rgate_spawner *spawner);
/* The order goes out, or (-errno) its slot is free again. -EAGAIN: later; -EPIPE: dead */
int rgate_spawner_start(struct rgate_spawner *spawner, struct rgate_order *order,
			const int fds[3]);
void rgate_spawner_cancel(struct rgate_spawner *spawner, const struct rgate_order *order);
int rgate_spawner_tell(struct rgate_spawner *spawner, uint32_t type, uint64_t id, int32_t a,
		       int32_t b);
/* 1: a packet; 0: none; -EPIPE: dead */
int rgate_spawner_recv(struct rgate_spawner *spawner, struct rgate_spawner_packet *packet);

/* The process itself (spawner_main.c); returns its exit status */
int rgate_spawner_main(int sock, struct rgate_order *orders,
		       const struct rgate_spawner_opts *opts);

#endif
