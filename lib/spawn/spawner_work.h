/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * Within the spawner's process:
 *
 *	spawner_main.c	what it is told, and how it begins and ends
 *	spawner_start.c	an order, until its program is executed
 *	spawner_work.c	and from there until nothing of it is left
 */
#ifndef RGATE_SPAWN_SPAWNER_WORK_H
#define RGATE_SPAWN_SPAWNER_WORK_H

#include "ahead.h"
#include "events.h"
#include "index.h"

enum work_step {
	WORK_STARTING,		/* it sets itself up */
	WORK_RUNNING,
	WORK_EXITED,		/* something of it may be left */
	WORK_ENDING,		/* that was killed, and is not gone yet */
	WORK_FAILED,		/* the server was told so: nobody asks for it any more */
};

struct work {			/* a process, from its start to the end of what it left */
	struct link all;
	struct index_node by_id, by_pid;
	struct work *next, **prev;	/* those that start, the oldest first */
	struct work *ending_next;	/* WORK_ENDING */
	uint64_t again_ns;		/* CLOCK_MONOTONIC: then it is looked at again */
	bool tell;			/* the server waits until it is over */
	enum work_step step;
	uint64_t id;
	uint32_t node;
	uint64_t wall_ms;
	uint64_t begun_ns;		/* CLOCK_REALTIME */
	uint64_t deadline_ns;		/* CLOCK_MONOTONIC: executed, or gone, by then */
	uint32_t flags;			/* RGATE_SPAWN_NO_CGROUP */
	pid_t pid;
	uint64_t group;			/* control group; 0: none */
	struct rgate_child child;
};

struct spawner {
	int sock;
	int signal_fd;
	struct events ev;
	struct rgate_spawner_shared *shared;
	struct rgate_spawner_birth birth;
	struct rgate_cluster *cluster;
	struct rgate_spawn_policy *policy;
	struct rgate_cgroups cg;
	struct rgate_child_env env;
	struct rgate_ahead ahead;
	struct link all;
	struct index by_id, by_pid;
	struct work *starting, **starting_last;
	struct work *ending;
	unsigned int live;		/* leaders that were not reaped */
	unsigned int busy;		/* that start or run, */
	unsigned int busy_of[RGATE_NODES_MAX]; /* of a node */
	bool started;			/* something, and nothing has ended since */
	bool end;
};

/* What is watched, besides works by their ids, which are larger */
enum spawner_watched { SPAWNER_SOCKET, SPAWNER_SIGNALS, SPAWNER_IDS };

/* spawner_main.c */
void spawner_finished(struct spawner *s, uint64_t id, bool leftovers);
void spawner_tell(struct spawner *s, const struct rgate_spawner_packet *p);

/* spawner_start.c */
/* @fds: NULL: they did not come along */
void spawner_order(struct spawner *s, uint32_t slot, const int fds[3]);
/* What became of a start. True: it is known, and told. @ended: the process was reaped */
bool spawner_started(struct spawner *s, struct work *w, bool ended);
/* Is somebody's start so young that nothing else is to take its time? */
#define SPAWNER_HURRY_MS	20U
bool spawner_hurries(const struct spawner *s);
/* Those whose time is over; when to look again, in ms, -1: never */
int spawner_overdue(struct spawner *s);

/* spawner_work.c */
struct work *spawner_find(struct spawner *s, uint64_t id);
void spawner_add(struct spawner *s, struct work *w);
void spawner_idle(struct spawner *s, struct work *w);	/* it does not run any more */
void spawner_forget(struct spawner *s, struct work *w);
void spawner_reap(struct spawner *s);
void spawner_signal(struct spawner *s, struct work *w, int sig, int scope);
int spawner_signal_tree(struct spawner *s, const struct work *w, int sig);
/* What it left is killed, or left alone; then it is forgotten, and the server hears of it if
 * @tell: at once, or from spawner_ending() */
void spawner_clear_up(struct spawner *s, struct work *w, bool leave, bool tell);
/* Those whose group does not die at once; when to look again, in ms, -1: never */
int spawner_ending(struct spawner *s);

#endif
