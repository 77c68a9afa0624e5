/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * The process that starts processes: a program of its own, which has nothing of the
 * server's but a socket and a few slots, in which orders lie. The server faces the network, so
 * it is not trusted: what it orders is copied first, and the policy, which the spawner
 * reads itself, decides who runs what, when its turn has come.
 */
#ifndef RGATE_SPAWN_SPAWNER_H
#define RGATE_SPAWN_SPAWNER_H

#include <limits.h>
#include <sys/resource.h>

#include "policy.h"

/* Its descriptors when it begins; others it closes */
#define RGATE_SPAWNER_SOCK	3
#define RGATE_SPAWNER_MEM	4

#define RGATE_ORDERS	32	/* slots: what the spawner has not taken yet */

/* What is to be started; written by the server, then copied by the spawner */
struct rgate_order {
	uint32_t taken;			/* by the spawner: the slot is free */
	uint32_t node;			/* that asked */
	uint64_t id;
	uint64_t mark;			/* with id: different from all others on this machine */
	uint32_t record_len;
	uint8_t record[RGATE_SPAWN_RECORD_MAX];
} __attribute__((aligned(4096)));	/* its pages are given back when it was large */

/* The policy's text as the spawner read it last; written by the spawner */
struct rgate_spawner_policy {
	uint32_t len;
	char text[RGATE_POLICY_MAX];
};

struct rgate_spawner_shared {
	struct rgate_order orders[RGATE_ORDERS];
	struct rgate_spawner_policy policy;
};

/*
 * The first that both say. Library and program may have been installed at different times: they
 * work together only if they are of one version and mean the same by what they share. This
 * struct stays as it is, for those to understand each other that do not.
 */
struct rgate_spawner_hello {
	uint32_t magic;
	uint32_t birth, packet, shared;	/* bytes of each */
	char version[16];
};

#define RGATE_SPAWNER_MAGIC	0x72677370U

/* What the server tells it then */
struct rgate_spawner_birth {
	struct rgate_spawner_hello hello;
	uint32_t start_ms;		/* from its order to execve(2) */
	uint32_t provider, nodes;	/* of the cluster, */
	struct rgate_cluster_node node[RGATE_NODES_MAX]; /* as the policy names them */
	struct rlimit files;		/* for what runs, unless a request says less */
	bool with_cgroup;		/* as it is given here, not the process's own */
	char cgroup[PATH_MAX];
	char policy_path[PATH_MAX];
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
	RGATE_SPAWNER_RELOADED,		/* a: -errno: the old one holds; also the first of all */
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
	struct rgate_spawner_shared *shared;
	uint32_t used;			/* bits */
	bool dead;
	bool ending;			/* as it was told to */
};

struct rgate_spawner_opts {
	const char *cgroup;		/* as in struct rgate_spawnd_opts */
	struct rlimit files;
	uint32_t start_ms;
	const struct rgate_cluster *cluster;
	const char *policy_path;
};

/* 0: the program is there, and may be executed; else -errno, which the log has with its path */
int rgate_spawner_check(void);

/*
 * Runs it: the program that environment RGATE_SPAWNER names, else the one of `make install`.
 * @spawner: zeroed. -ENOENT, ...: no such program; -EPROTONOSUPPORT: it is of another version;
 * -EPIPE: it has ended; -ETIMEDOUT: it says nothing; -EINVAL, -EPERM, ...: of the policy
 */
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

/* What this version says */
void rgate_spawner_hello(struct rgate_spawner_hello *hello);
/* The program itself (spawner_main.c); returns its exit status */
int rgate_spawner_main(void);

#endif
