/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/* The two halves of the verbs provider: transfers (verbs.c), connections (verbs_cm.c) */
#ifndef RGATE_FABRIC_VERBS_H
#define RGATE_FABRIC_VERBS_H

#include <rdma/rdma_cma.h>

#include "provider.h"
#include "rc.h"

#define POST_MAX	RGATE_POST_MAX	/* operations or completions handed over at once */
#define RECV_BIT	(1ULL << 63)	/* of a number: a receive, not an operation */
#define RGATE_VERBS_SGE	(RGATE_SGE_MAX + 1)	/* a message has a header */

struct rgate_ep {
	struct rgate_cluster_node self;
	struct rgate_ep_opts opts;
	struct rgate_device *dev;
	struct rdma_event_channel *channel;
	struct rdma_cm_id *listener;
};

struct rgate_conn {
	struct rgate_ep *ep;
	struct rdma_cm_id *id;		/* NULL: loopback */
	struct rgate_rc *rc;		/* NULL: not prepared */
	void *owner;
	uint32_t inline_size;
	uint8_t rd_atomic;		/* reads and atomics: what we serve */
	uint8_t peer_rd_atomic;		/* and what the peer serves */
	uint8_t hello_len;
	uint8_t hello[RGATE_PROV_HELLO];
	bool down;			/* was told */
};

int rgate_verbs_sockaddr(struct sockaddr_storage *sa, const struct rgate_cluster_node *node,
			 bool with_port);

/* As in struct rgate_prov_ops */
int rgate_verbs_event(struct rgate_ep *ep, struct rgate_prov_event *event);
int rgate_verbs_connect(struct rgate_ep *ep, const struct rgate_cluster_node *to,
			const void *hello, size_t len, void *owner, struct rgate_conn **conn);
int rgate_verbs_loopback(struct rgate_ep *ep, void *owner, struct rgate_conn **conn);
int rgate_verbs_accept(struct rgate_conn *conn, const void *welcome, size_t len, void *owner);
void rgate_verbs_reject(struct rgate_conn *conn, int err);
int rgate_verbs_establish(struct rgate_conn *conn);
int rgate_verbs_prepare(struct rgate_conn *conn);
int rgate_verbs_allow(struct rgate_conn *conn, uint32_t access);
bool rgate_verbs_is_from(const struct rgate_conn *conn, const struct rgate_cluster_node *node);
void *rgate_verbs_owner(const struct rgate_conn *conn);
void rgate_verbs_destroy(struct rgate_conn *conn);

#endif
