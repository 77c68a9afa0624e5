/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * Control groups (v2), one for each process that is run and all that comes of it. They
 * have numbers. To make one and to take it away takes the kernel as long as some wake-ups:
 * both is done while there is nothing else to do, by rgate_cgroups_chore().
 */
#ifndef RGATE_SPAWN_CGROUP_H
#define RGATE_SPAWN_CGROUP_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define RGATE_CGROUPS_EMPTY	64	/* that wait to be taken away */

struct rgate_cgroups {
	int parent_fd;
	int fd;			/* ringgate-spawn.PID; -1: there are none */
	bool memory, pids;	/* controllers */
	char name[48];
	uint64_t last;		/* number that was given */
	uint64_t spare;		/* one that is ready; 0: none */
	int spare_fd;
	bool failed;		/* to make one */
	uint64_t empty[RGATE_CGROUPS_EMPTY];
	unsigned int nempty;
};

/*
 * Makes the directory for them in @dir (NULL: the one this process is in; "": none), and
 * kills what is in those of spawners that are gone. A group of this process that was
 * delegated is left for a leaf of it, together with its parent. Where there can be none @cg->fd is
 * -1.
 */
void rgate_cgroups_open(struct rgate_cgroups *cg, const char *dir);
void rgate_cgroups_close(struct rgate_cgroups *cg);
/* Is there nothing that could be done? */
bool rgate_cgroups_idle(const struct rgate_cgroups *cg);
/* Does one thing of it */
void rgate_cgroups_chore(struct rgate_cgroups *cg);

/* A group of its own, its number in @n. Limits: 0: none. A descriptor of its directory, or
 * -errno: there is none for this process */
int rgate_cgroup_create(struct rgate_cgroups *cg, uint64_t memory, uint32_t processes,
			uint64_t *n);
/* Other limits for the group whose directory is @fd, which has none yet */
int rgate_cgroup_limit(const struct rgate_cgroups *cg, int fd, uint64_t memory,
		       uint32_t processes);
/* A descriptor: who writes "0" there is in the group whose directory is @fd */
int rgate_cgroup_procs(int fd);
/* 0; -EBUSY: something lives in it */
int rgate_cgroup_remove(const struct rgate_cgroups *cg, uint64_t n);
/* The same, after its process has ended, by and by; waits for those that are about to leave */
int rgate_cgroup_end(struct rgate_cgroups *cg, uint64_t n);
bool rgate_cgroup_oom(const struct rgate_cgroups *cg, uint64_t n);
/* One that is in it; 0: nothing is, or nobody can say */
pid_t rgate_cgroup_member(const struct rgate_cgroups *cg, uint64_t n);
/* To each process in it; how many */
int rgate_cgroup_signal(const struct rgate_cgroups *cg, uint64_t n, int sig);
/* What lives in it goes on outside of it: in the group above all of ours, or, where that has
 * controllers and so can have no process, in ringgate-left below it */
void rgate_cgroup_let_go(const struct rgate_cgroups *cg, uint64_t n);

#endif
