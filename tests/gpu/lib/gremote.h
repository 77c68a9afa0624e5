/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * Rings that a gateway fills: node 0 in a process of its own, which is forked before CUDA
 * is used; node 1 with the ring there, too (as a daemon's), or in this process.
 */
#ifndef GREMOTE_H
#define GREMOTE_H

#include <sys/types.h>

#include <ringgate/rgate_hub.h>
#include <ringgate/rgate_inlet.h>

#include "gtest.h"

#ifdef __cplusplus
extern "C" {
#endif

struct g_remote {
	struct g_feed feed;	/* what the gateway's source gets; ring: far ring of this process */
	uint32_t slots, slot_size;
	bool here;		/* node 1 is this process */
	char dir[48];
	int sock;		/* to the other process */
	pid_t pid;
	struct rgate_cluster *conf;
	uint8_t key[2][RGATE_KEY_LEN];	/* private, by id */
	struct rgate_node *node;
	struct rgate_hub *hub;
	struct rgate_inlet *inlet;
	uint32_t number;
};

/* Forks; the gateway starts with g_remote_open(). @r->feed's numbers and sizes, slots,
 * slot_size and here are set by the caller. */
void g_remote_fork(struct g_remote *r);
/* The ring is there, frames will come: they have to be consumed */
void g_remote_open(struct g_remote *r);
/* Waits until all have been written to it; r->feed.digest has what they were */
void g_remote_join(struct g_remote *r);
/* The ring gets no more, as its consumers see */
void g_remote_end(struct g_remote *r);
/* After that, and rgate_gpu_close() */
void g_remote_free(struct g_remote *r);

#ifdef __cplusplus
}
#endif
#endif
