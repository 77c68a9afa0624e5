/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * How two nodes meet: one asks for a connection, both prove which node they are, and a
 * link is there that can be installed. All of the node's thread, with the node's lock.
 *
 * For who asks nothing is made before the hello was checked: no queue, no memory, no
 * place. A genuine hello may be a replay. So what it gets is a place among the few of its
 * node, where a later one takes the oldest's, for a limited time; and the link that the
 * peer has stays until a proof has come.
 */
#ifndef RGATE_FABRIC_MEET_H
#define RGATE_FABRIC_MEET_H

#include "node.h"

/* Half-open connections of one node at most */
#define RGATE_MEET_PLACES	4

/* Asks @peer for a connection, which is peer->attempt then; -errno: it is not */
int rgate_meet_ask(struct rgate_node *node, struct rgate_peer *peer);
/* The answer to that one; -errno: it is of no use */
int rgate_meet_reply(struct rgate_node *node, struct rgate_link *link,
		     const struct rgate_prov_event *ev);
/* Somebody asks us: answered and among node->incoming, or refused */
void rgate_meet_request(struct rgate_node *node, const struct rgate_prov_event *ev);
/* 1: both have proved who they are; 0: not yet; -errno: it came to nothing */
int rgate_meet_step(struct rgate_node *node, struct rgate_link *link);

/* Takes @link out of node->incoming, and nothing else */
void rgate_meet_forget(struct rgate_node *node, struct rgate_link *link);
/* An incoming one came to nothing, for @err: counts it, and the log may hear of it */
void rgate_meet_failed(struct rgate_node *node, const struct rgate_link *link, int err);

#endif
