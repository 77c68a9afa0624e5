/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * The board of a service: its lines to all other nodes, and its two roles at the hub, which serve
 * these lines. It hands each message on over the connection that it came over, looks at the clock,
 * and calls again when a line has room; what is asked and answered is for the service.
 *
 * One lock, the service's: held whenever one of its functions here is called, all of which are
 * called by the hub's thread. The hub's own lock of the service comes before it. Whoever else
 * calls functions of a line or of its errands holds it; so nothing else orders their memory.
 */
#ifndef RGATE_CLUSTER_BOARD_H
#define RGATE_CLUSTER_BOARD_H

#include <sys/types.h>

#include "fair.h"
#include "line.h"

struct board;

/* What the service does; @ctx: as given to board_create(). None waits for a node. */
struct board_ops {
	uint32_t service;	/* RGATE_SERVICE_*, without RGATE_SERVICE_ASKER */
	/* Comes before all else that the clock or a message brings. May be NULL */
	void (*clock)(void *ctx, uint32_t node);
	line_news_fn news;	/* may be NULL */
	/* A message to the role that serves, over the connection that there is */
	void (*question)(void *ctx, uint32_t node, const void *msg, size_t len);
	/* Likewise to the one that asks */
	void (*answer)(void *ctx, uint32_t node, const void *msg, size_t len);
	/* Asks, and says, what can be by now */
	void (*pump)(void *ctx, uint32_t node);
	/* Gives up who waits too long; in how many ns to look again, UINT64_MAX: no need */
	uint64_t (*expire)(void *ctx, uint32_t node);
	/* The clock of the service itself: comes first; as expire(). May be NULL */
	uint64_t (*tick)(void *ctx);
};

/* Does @node speak for @uid? With the service's lock, in the hub's thread; should not wait */
typedef bool (*board_may_fn)(void *ctx, uint32_t node, uid_t uid);

struct board_opts {
	struct rgate_hub *hub;
	struct fair *lock;
	board_may_fn may;	/* NULL: none does */
	void *may_ctx;
};

/*
 * Makes the lines; nothing is called before board_join(). @ops and the lock have to stay, and
 * the hub does until board_destroy().
 * -ENOMEM, or as rgate_pool_alloc()
 */
int board_create(struct board **board, const struct board_opts *opts, const struct board_ops *ops,
		 void *ctx);

/* From now on the hub's thread calls. -EEXIST: the hub has such a service */
int board_join(struct board *b);

/*
 * Without the lock, once no other thread uses the lines: the hub's calls no more, and no message
 * is being sent any more, for which it waits 2 s each at most. NULL is allowed, and a board that
 * has not joined
 */
void board_leave(struct board *b);

/* Leaves, too. Who waits at a line is told -ECANCELED. NULL is allowed */
void board_destroy(struct board *b);

/* NULL: that node can not be asked */
struct line *board_line(const struct board *b, uint32_t node);

#define BOARD_HERE	UINT32_MAX

/*
 * board_find - what a client calls a node: its number, or @here
 * @b: NULL: there is none but this one
 * @node: out: BOARD_HERE, or one with a line; -ENXIO: there is no such node
 */
int board_find(const struct board *b, uint64_t number, uint64_t here, uint32_t *node);

/* May @node want something as @uid? */
bool board_may(const struct board *b, uint32_t node, uid_t uid);

#endif
