/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * Two ends of a provider (lib/fabric/provider.h) in this process, without the nodes and
 * peers above it; or one of them, against a node.
 */
#ifndef ENDS_H
#define ENDS_H

#include "nodes.h"
#include "provider.h"

#define ENDS_SEND	32	/* depth of the queues */
#define ENDS_RECV	16
#define ENDS_BYTES	(1 << 20)
#define ENDS_SLOT	4096	/* bytes of a receive */

struct end {
	const struct rgate_prov_ops *prov;
	struct rgate_ep *ep;
	struct rgate_pool *pool;
	const struct rgate_buf *buf;	/* ENDS_BYTES, zeroed */
	const struct rgate_buf *slots;	/* ENDS_RECV receives */
	struct rgate_remote at;		/* buf, as peers name it */
	struct rgate_conn *conn;
	struct rgate_cluster_node self;
	struct rgate_prov_done last;	/* what end_wait() found */
	struct end *other;		/* or NULL */
	struct rgate_prov_event event[4];
	unsigned int events;		/* that nobody took yet */
};

/* Node @id's endpoint, with memory, without a connection; @timeout_ms of the device */
void end_open(struct end *e, const struct cluster *c, unsigned int id, uint32_t timeout_ms);
void end_close(struct end *e);
/* An event of this end, if there is one; both go on meanwhile */
bool end_any_event(struct end *e, struct rgate_prov_event *ev);
/* The next one within MS, which must be of @kind */
void end_event(struct end *e, enum rgate_prov_event_kind kind, struct rgate_prov_event *ev);
/* Queues and all the receives */
void end_prepare(struct end *e);

/* e[1] connects to e[0]; @access allowed on both sides */
void ends_connect(struct end e[2], uint32_t access);
/* As two end_open(); and connected, with all access */
void ends_open(struct cluster *c, struct end e[2], uint32_t timeout_ms);
void ends_up(struct cluster *c, struct end e[2]);
void ends_down(struct cluster *c, struct end e[2]);

struct rgate_sge end_sge(const struct end *e, size_t off, size_t len);
/* Operation @kind with @s against byte @off of @to's memory */
struct rgate_op end_op(enum rgate_op_kind kind, const struct rgate_sge *s, const struct end *to,
		       size_t off);
/* Posts one, with a signal */
int end_post(struct end *e, const struct rgate_op *op, uint64_t id);
/* The next completion within MS, in e->last; its status */
int end_wait(struct end *e);
/* Posts, waits, and it must be this one's; its status */
int end_do(struct end *e, const struct rgate_op *op);
/* A read behind it: what was written is visible */
void end_flush(struct end *e, const struct end *to);
/* The word at byte @off of this end's memory; acquires what was written before it */
uint64_t end_word(const struct end *e, size_t off);
/* No completion comes for a while */
void end_quiet(struct end *e);

#endif
