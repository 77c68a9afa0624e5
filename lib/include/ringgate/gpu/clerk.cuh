/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * The polling warp's clerks: the warps beside it, which do what need not be waited for. The
 * one that looks leaves messages in the block's shared memory and looks again; one of them
 * hands runs out and does what is left of pieces that the polling warp has done itself, the
 * other one tells the host. Each of these takes rounds to the device's memory and fences, a
 * look's time and more; to tell the host takes several, for which runs would have to wait.
 *
 * Each has messages of its own, done in the order in which they came. A clerk never waits for
 * who waits for it: a cell of the queue has been emptied or is about to be (there are as many as
 * there can be pieces), and answers before its own are shown by warps that need no turn for that.
 *
 * The chain of what makes a packet visible has one link more: the polling warp's
 * acquire.sys -> its release.cta of a message -> the clerk's acquire.cta -> its release.gpu of
 * the cell.
 */
#ifndef RINGGATE_GPU_CLERK_CUH
#define RINGGATE_GPU_CLERK_CUH

#include <ringgate/gpu/stage.cuh>

#define RGATE_DMAIL	8U	/* messages at a time, a power of two */

enum rgate_dmsg_kind {
	RGATE_DMSG_HAND,	/* hand left.run out */
	RGATE_DMSG_LEFT,	/* do what is left of a piece */
	RGATE_DMSG_TELL,	/* report told[poll] */
	RGATE_DMSG_END,
};

struct rgate_dmsg {
	struct rgate_dleft left;
	uint32_t kind;
	uint32_t poll;
};

/* Of a polling warp */
enum rgate_dclerks {
	RGATE_DCLERK,		/* hands out */
	RGATE_DTELLER,		/* tells the host */
	RGATE_DCLERKS,
};

/* In shared memory, one a clerk; all 0 at first */
struct rgate_dmail {
	uint32_t put;		/* messages, by the polling warp */
	uint32_t got;		/* ... done with, by the clerk */
	struct rgate_dmsg msg[RGATE_DMAIL];
	/* what is to be told of each ring: the clerk's while such a message is under way */
	struct rgate_dpoll told[RGATE_DPOLL_RINGS];
};

/*
 * The polling warp's hands: more warps beside it, who wait for its runs alone. One that comes
 * alone and is not the polling warp's own is there by one store to shared memory; by the queue,
 * which is for who has many, or whose hands are full, it would go through the device's memory.
 */

#define RGATE_DHANDS	2U

enum rgate_dhand_is {
	RGATE_DHAND_FREE,
	RGATE_DHAND_FULL,	/* by the polling warp; free again by the hand */
	RGATE_DHAND_END,	/* no more comes */
};

/* In shared memory, one a hand; all 0 at first */
struct rgate_dhand {
	uint32_t is;
	uint32_t pad;
	struct rgate_drun run;
};

/*
 * The polling warp's first thread
 */

/* @run, if it is one piece of work and a hand is free; 0: it is the clerk's */
RGATE_DEV int rgate_dhands_give(const struct rgate_dctx *ctx, struct rgate_dhand *hands,
				const struct rgate_drun *run)
{
	uint32_t i;

	if ((run->pos & (ctx->grain - 1)) + run->count > ctx->grain)
		return 0;
	RGATE_DROLL
	for (i = 0; i < RGATE_DHANDS; i++) {
		if (rgate_dblock_acquire(&hands[i].is) != RGATE_DHAND_FREE)
			continue;
		hands[i].run = *run;
		rgate_dblock_release(&hands[i].is, RGATE_DHAND_FULL);
		return 1;
	}
	return 0;
}

/* Returns when what they had is done with */
RGATE_DEV void rgate_dhands_end(struct rgate_dhand *hands)
{
	uint32_t i;

	RGATE_DROLL
	for (i = 0; i < RGATE_DHANDS; i++) {
		while (rgate_dblock_acquire(&hands[i].is) != RGATE_DHAND_FREE)
			rgate_dpause(32);
		rgate_dblock_release(&hands[i].is, RGATE_DHAND_END);
	}
}

/* A place for the next message; waits for one while the clerk is that far behind */
RGATE_DEV struct rgate_dmsg *rgate_dmail_next(struct rgate_dmail *m)
{
	while (m->put - rgate_dblock_acquire(&m->got) == RGATE_DMAIL)
		rgate_dpause(32);
	return &m->msg[m->put % RGATE_DMAIL];
}

RGATE_DEV void rgate_dmail_send(struct rgate_dmail *m)
{
	rgate_dblock_release(&m->put, m->put + 1);
}

RGATE_DEV void rgate_dmail_hand(struct rgate_dmail *m, const struct rgate_drun *run)
{
	struct rgate_dmsg *msg = rgate_dmail_next(m);

	msg->left.run = *run;
	msg->kind = RGATE_DMSG_HAND;
	rgate_dmail_send(m);
}

RGATE_DEV void rgate_dmail_left(struct rgate_dmail *m, const struct rgate_dleft *left)
{
	struct rgate_dmsg *msg = rgate_dmail_next(m);

	msg->left = *left;
	msg->kind = RGATE_DMSG_LEFT;
	rgate_dmail_send(m);
}

/*
 * Reports ring @i of the warp, as it is now. Not while the last report is under way: the host
 * relies on each having begun after the one before was told.
 */
RGATE_DEV void rgate_dmail_tell(struct rgate_dmail *m, struct rgate_dpoll *p, uint32_t i)
{
	struct rgate_dpoll *to = &m->told[i];
	struct rgate_dmsg *msg;

	if ((int32_t)(rgate_dblock_acquire(&m->got) - p->told) < 0)
		return;
	msg = rgate_dmail_next(m);
	to->next = p->next;
	to->looks = p->looks;
	to->empty = p->empty;
	to->direct = p->direct;
	to->ended = p->ended;
	msg->poll = i;
	msg->kind = RGATE_DMSG_TELL;
	rgate_dmail_send(m);
	p->told = m->put;
	p->due = 0;
}

/* The last one; returns when the clerk has done them all */
RGATE_DEV void rgate_dmail_end(struct rgate_dmail *m)
{
	struct rgate_dmsg *msg = rgate_dmail_next(m);

	msg->kind = RGATE_DMSG_END;
	rgate_dmail_send(m);
	while (rgate_dblock_acquire(&m->got) != m->put)
		rgate_dpause(32);
}

/*
 * A hand
 */

RGATE_DEV void rgate_dhand(const struct rgate_dctx *ctx, const struct rgate_dshape *sh,
			   struct rgate_dnear *near, struct rgate_dhand *hand)
{
	struct rgate_drun run;
	uint32_t is;

	for (;;) {
		while ((is = rgate_dblock_acquire(&hand->is)) == RGATE_DHAND_FREE)
			rgate_dpause(1);
		if (is == RGATE_DHAND_END)
			return;
		run = hand->run;
		rgate_drun_work(ctx, sh, &run, near);
		/* all lanes have read it: the work ends in a barrier */
		if (rgate_dlane() == 0)
			rgate_dblock_release(&hand->is, RGATE_DHAND_FREE);
	}
}

/*
 * The clerk
 */

/* The whole warp: tells the host how far this ring is; with the first, the output ring, too */
RGATE_DEV void rgate_dpoll_tell(const struct rgate_dctx *ctx, struct rgate_dpoll *p)
{
	rgate_dpoll_report(ctx, p);
	if (rgate_dlane() == 0 && p->ring == 0 && ctx->out.state)
		rgate_dout_report(&ctx->out);
	rgate_dwarp_sync();
}

RGATE_DEV void rgate_dclerk(const struct rgate_dctx *ctx, struct rgate_dmail *m)
{
	uint32_t got, kind = RGATE_DMSG_HAND;

	for (got = 0; kind != RGATE_DMSG_END; got++) {
		const struct rgate_dmsg *msg = &m->msg[got % RGATE_DMAIL];

		while (rgate_dblock_acquire(&m->put) == got)
			rgate_dpause(1);
		kind = msg->kind;
		if (kind == RGATE_DMSG_HAND)
			rgate_dqueue_hand(ctx, msg->left.run.ring, msg->left.run.pos,
					  msg->left.run.count);
		else if (kind == RGATE_DMSG_LEFT && rgate_dlane() == 0)
			rgate_dleft_do(ctx, &msg->left);
		else if (kind == RGATE_DMSG_TELL)
			rgate_dpoll_tell(ctx, &m->told[msg->poll]);
		/* all lanes have read the message */
		rgate_dwarp_sync();
		if (rgate_dlane() == 0)
			rgate_dblock_release(&m->got, got + 1);
	}
}

#endif
