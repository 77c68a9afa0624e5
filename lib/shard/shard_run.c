// SPDX-License-Identifier: MIT OR GPL-2.0
#include <errno.h>
#include <string.h>

#include "shard.h"

static struct rgate_op *add(struct rgate_shard *s, struct shard_ops *ops, enum rgate_op_kind kind,
			    uint64_t offset, void *local, uint32_t len)
{
	struct rgate_op *op = &ops->op[ops->n];

	ops->sge[ops->n] = (struct rgate_sge){ local, len, s->stage->lkey };
	*op = (struct rgate_op){
		.kind = (uint8_t)kind, .nsge = 1, .sge = &ops->sge[ops->n],
		.remote = s->at.addr + offset, .rkey = s->at.rkey,
	};
	ops->n++;
	return op;
}

void shard_move(struct rgate_shard *s, struct shard_ops *ops, enum rgate_op_kind kind,
		uint64_t offset, void *local, uint32_t len)
{
	(void)add(s, ops, kind, offset, local, len);
}

void shard_cas(struct rgate_shard *s, struct shard_ops *ops, uint32_t index, uint64_t expect,
	       uint64_t swap)
{
	struct rgate_op *op = add(s, ops, RGATE_OP_COMPARE_SWAP, shard_at_word(s, index),
				  &s->old[ops->cas], 8);

	/* One that was never done is not taken for one that was. */
	s->old[ops->cas++] = ~expect;
	op->operand = expect;
	op->swap = swap;
}

/* Others use the peer, too: waits until there is room */
static int post(struct rgate_shard *s, const struct rgate_op *op, unsigned int n, uint64_t *ticket)
{
	return rgate_peer_post_in_time(s->peer, op, n, (int)s->timeout_ms, ticket);
}

/* Without room for the rest of it in time nobody could say what was done: the connection ends. */
static int post_rest(struct rgate_shard *s, const struct rgate_op *op, unsigned int n,
		     uint64_t *ticket)
{
	const int err = post(s, op, n, ticket);

	if (err != -EAGAIN)
		return err;
	rgate_peer_cut(s->peer);
	return -ETIMEDOUT;
}

int shard_run(struct rgate_shard *s, struct shard_ops *ops, uint32_t epoch, bool *begun)
{
	unsigned int i, n;
	uint64_t ticket;
	int err = 0;

	*begun = false;
	for (i = 0; i < ops->n; i++)
		ops->op[i].epoch = epoch;
	for (i = 0; i < ops->n && !err; i += n) {
		n = ops->n - i < s->post_max ? ops->n - i : s->post_max;
		err = i ? post_rest(s, &ops->op[i], n, &ticket) :
			  post(s, &ops->op[i], n, &ticket);
		if (err)
			break;
		*begun = true;
		err = rgate_peer_settle(s->peer, ticket, (int)s->timeout_ms);
	}
	return err;
}

int shard_epoch(struct rgate_shard *s, uint32_t *epoch)
{
	struct rgate_peer_info info = { .sz = sizeof(info) };
	const int err = rgate_peer_info(s->peer, &info);

	*epoch = info.epoch;
	return err ? err : info.state == RGATE_PEER_UP ? 0 : -ENOTCONN;
}

int shard_read_words(struct rgate_shard *s, uint32_t first, uint32_t n, uint32_t epoch)
{
	const uint64_t *at = (const uint64_t *)(s->memory + s->l.words);
	struct shard_ops ops = { .n = 0 };
	bool begun;
	uint32_t i;

	if (!s->memory) {
		shard_move(s, &ops, RGATE_OP_READ, shard_at_word(s, first), s->words, 8 * n);
		return shard_run(s, &ops, epoch, &begun);
	}
	/* At home they are looked at in place. Pairs with the operation that changed a word: what
	 * was written before it is visible. */
	for (i = 0; i < n; i++)
		s->words[i] = __atomic_load_n(&at[first + i], __ATOMIC_ACQUIRE);
	return 0;
}
