/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * Clusters for tests: of the provider that RGATE_FABRIC_PROVIDER names (local without
 * it), with RGATE_FABRIC_ADDRS, addresses separated by commas; local needs none.
 */
#ifndef NODES_H
#define NODES_H

#include "unit.h"

#include <ringgate/rgate_peer.h>

/* Nothing takes longer, even under emulation. */
#define MS	(20000 * unit_patience())
/* Silent for so long: dead. No machine lets its own threads wait for as long. */
#define SILENT_MS	(1500 * unit_patience())

struct cluster {
	struct rgate_cluster *conf;
	unsigned int n;
	bool local;
	char dir[64];
	struct rgate_node_opts opts;
	uint8_t keys[RGATE_NODES_MAX][RGATE_KEY_LEN];	/* private, by id */
};

/* @timeout_ms: of a silent peer; 0: long enough for anything but a dead one */
void cluster_make(struct cluster *c, unsigned int n, uint32_t timeout_ms);
void cluster_free(struct cluster *c);
/* The cluster's file, with room for @len; its private keys are said to be in @key_path */
size_t cluster_text(const struct cluster *c, const char *key_path, char *text, size_t len);
struct rgate_node *cluster_node(struct cluster *c, unsigned int id);

/* Two nodes of this process, connected: peer[i] is how node i sees the other */
struct duo {
	struct cluster c;
	struct rgate_node *node[2];
	struct rgate_peer *peer[2];
	const struct rgate_buf *buf[2];	/* 64 KiB each, zeroed */
	struct rgate_remote at[2];	/* the same, as the other one names it */
};

#define DUO_BYTES	65536

void duo_up(struct duo *d, uint32_t timeout_ms);
void duo_meet(struct duo *d);	/* the same, of a cluster that was made with other options */
void duo_down(struct duo *d);
/* The duo's buffer of node @i from @off */
struct rgate_sge duo_sge(const struct duo *d, unsigned int i, size_t off, size_t len);
/* Waits until @cond holds; asserts that it does */
#define wait_for(cond)							\
	do {								\
		uint64_t end_ = unit_now_ns() + MS * 1000000ULL;	\
		bool ok_ = cond;					\
									\
		while (!ok_ && unit_now_ns() < end_) {			\
			nodes_nap();					\
			ok_ = cond;					\
		}							\
		assert_true(ok_);					\
	} while (0)
void nodes_nap(void);
uint32_t peer_state(struct rgate_peer *peer);
unsigned int open_files(void);
/* Objects of the kernel's RDMA, as rdma(8) tells them, of @device or of all; 0 without */
unsigned long rdma_objects(const struct cluster *c, const char *device);
/* A memfd that cannot shrink, mapped */
int nodes_memfd(size_t len, void **at);

#endif
