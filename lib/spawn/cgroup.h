/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/* Control groups (v2), one for each process that is run and all that comes of it. */
#ifndef RGATE_SPAWN_CGROUP_H
#define RGATE_SPAWN_CGROUP_H

#include <stdbool.h>
#include <stdint.h>

struct rgate_cgroups {
	int parent_fd;
	int fd;			/* ringgate-spawn.PID; -1: there are none */
	bool memory, pids;	/* controllers */
	char name[48];
};

/*
 * Makes the directory for them in @dir (NULL: the one this process is in; "": none), and
 * kills what is in those of spawners that are gone. 0 also if there can be none: @cg->fd
 * is -1 then.
 */
void rgate_cgroups_open(struct rgate_cgroups *cg, const char *dir);
void rgate_cgroups_close(struct rgate_cgroups *cg);

/* Limits: 0: none. -errno: there is none for this process */
int rgate_cgroup_create(const struct rgate_cgroups *cg, uint64_t id, uint64_t memory,
			uint32_t processes);
/* A descriptor: who writes "0" there is in it */
int rgate_cgroup_procs(const struct rgate_cgroups *cg, uint64_t id);
/* 0; -EBUSY: something lives in it */
int rgate_cgroup_remove(const struct rgate_cgroups *cg, uint64_t id);
/* The same, after its process has ended: waits for those that are about to leave */
int rgate_cgroup_end(const struct rgate_cgroups *cg, uint64_t id);
bool rgate_cgroup_oom(const struct rgate_cgroups *cg, uint64_t id);
/* To each process in it; how many */
int rgate_cgroup_signal(const struct rgate_cgroups *cg, uint64_t id, int sig);
/* What lives in it goes on outside of it */
void rgate_cgroup_let_go(const struct rgate_cgroups *cg, uint64_t id);

#endif
