// SPDX-License-Identifier: MIT OR GPL-2.0
/* Operations on a peer's memory, and messages. */
#include <errno.h>
#include <poll.h>
#include <string.h>

#include "clock.h"
#include "node.h"

#define EAGER		64	/* looks before the clock is asked for the first time */
#define LOOKS		256	/* from one time to the next: it may cost more than many looks */
#define NAP_MS		10	/* another thread may have taken the sign that woke it */

/* Of one call. The clock is asked only where it takes longer than a device needs. */
struct wait {
	int timeout_ms;
	unsigned int looks;
	bool sleeps;		/* between looks, by now */
	uint64_t begun;		/* this waiting; 0: not yet */
	uint64_t end;		/* of all of the call's; 0: not known yet */
};

/* With the lock; the node's thread takes it away and makes a new one. */
static void noticed(struct rgate_peer *peer)
{
	if (peer->link && peer->link->state == RGATE_LINK_DEAD)
		rgate_node_wake(peer->node);
}

static struct rgate_link *up(struct rgate_peer *peer)
{
	struct rgate_link *link = peer->link;

	return link && link->state == RGATE_LINK_UP ? link : NULL;
}

/* For another purpose than receiving: who waits to receive is told of what came. */
static int progress(struct rgate_peer *peer, struct rgate_link *link)
{
	const uint64_t in = link->in;
	int ret = rgate_link_progress(link);

	if (link->in != in)
		rgate_peer_ring(peer);
	return ret;
}

/*
 * Callers who take turns can keep the node's thread, which does not wait, from the lock
 * for so long that the peer misses its heartbeats: then they send them in its place.
 */
static void lock(struct rgate_peer *peer)
{
	struct rgate_link *link;
	int err;

	pthread_mutex_lock(&peer->lock);
	if (!__atomic_load_n(&peer->wanted, __ATOMIC_RELAXED))
		return;
	__atomic_store_n(&peer->wanted, false, __ATOMIC_RELAXED);
	link = up(peer);
	err = link ? rgate_node_beat(peer->node, link, rgate_clock_now(CLOCK_MONOTONIC)) : 0;
	if (err)
		rgate_link_fail(link, err);
	noticed(peer);
}

static int post_locked(struct rgate_peer *peer, const struct rgate_op *ops, unsigned int n,
		       uint64_t *ticket)
{
	struct rgate_link *link = up(peer);
	uint64_t seq;
	int err;

	if (!link)
		return -ENOTCONN;
	err = rgate_link_post(link, ops, n, false, ticket ? &seq : NULL);
	if (err == -EAGAIN) {
		/* Completions that wait to be taken make room. */
		if (progress(peer, link) > 0)
			err = rgate_link_post(link, ops, n, false, ticket ? &seq : NULL);
	}
	if (err)
		noticed(peer);
	else if (ticket)
		*ticket = rgate_ticket(link, seq);
	return err;
}

int rgate_peer_post(struct rgate_peer *peer, const struct rgate_op *ops, unsigned int n,
		    uint64_t *ticket)
{
	int err;

	if (!ops)
		return -EINVAL;
	lock(peer);
	err = post_locked(peer, ops, n, ticket);
	pthread_mutex_unlock(&peer->lock);
	return err;
}

static int of_past(const struct rgate_past *past, uint64_t seq)
{
	if (seq <= past->done)
		return 1;
	return seq == past->failed && past->err ? past->err : -ECANCELED;
}

/* 1, 0 or the error of @ticket, with the lock */
static int look(struct rgate_peer *peer, uint64_t ticket)
{
	const uint32_t epoch = (uint32_t)(ticket >> RGATE_EPOCH_SHIFT);
	const uint64_t seq = ticket & RGATE_SEQ_MASK;
	struct rgate_link *link = peer->link;
	const struct rgate_past *past;
	unsigned int i;

	if (link && (link->epoch & 0xffff) == epoch) {
		if (seq <= link->done)
			return 1;
		if (link->state == RGATE_LINK_UP)
			(void)progress(peer, link);
		if (seq <= link->done)
			return 1;
		if (seq > link->posted)
			return -EINVAL;
		/*
		 * It has failed, but as long as there is a queue pair the device may still
		 * read its source or write its destination: it is over when the node's
		 * thread has taken the connection away.
		 */
		noticed(peer);
		return 0;
	}
	for (i = 0; i < RGATE_PAST; i++) {
		past = &peer->past[i];
		if (past->epoch && (past->epoch & 0xffff) == epoch)
			return of_past(past, seq);
	}
	/* So long ago that nobody knows; never taken for done */
	return -ESTALE;
}

int rgate_peer_done(struct rgate_peer *peer, uint64_t ticket)
{
	int ret;

	lock(peer);
	ret = look(peer, ticket);
	pthread_mutex_unlock(&peer->lock);
	return ret;
}

static void arm_locked(struct rgate_peer *peer, bool messages_only)
{
	struct rgate_link *link = up(peer);
	int ret = 0;

	if (peer->rung)
		events_woken(&peer->ev);
	peer->rung = false;
	if (!link)
		return;
	/* What came before it was armed need not be told by the connection's fd. */
	if (!messages_only) {
		(void)link->o.prov->arm(link->conn);
		ret = rgate_link_progress(link);
	} else if (link->o.prov->arm_recv(link->conn) <= 0) {
		ret = rgate_link_progress(link);
	}
	if (ret < 0 || (ret && !messages_only) || link->in != link->out)
		rgate_peer_ring(peer);
	noticed(peer);
}

int rgate_peer_fd(const struct rgate_peer *peer)
{
	return peer->ev.fd;
}

int rgate_peer_arm(struct rgate_peer *peer)
{
	pthread_mutex_lock(&peer->lock);
	arm_locked(peer, false);
	pthread_mutex_unlock(&peer->lock);
	return 0;
}

int rgate_peer_arm_recv(struct rgate_peer *peer)
{
	pthread_mutex_lock(&peer->lock);
	arm_locked(peer, true);
	pthread_mutex_unlock(&peer->lock);
	return 0;
}

/* Without the lock. False: the time is over */
static bool wait_more(struct rgate_peer *peer, struct wait *w)
{
	struct pollfd p = { .fd = peer->ev.fd, .events = POLLIN };
	uint64_t now;
	int ms;

	if (w->timeout_ms <= 0)
		return false;
	if (w->looks++ < EAGER)
		return true;
	if (!w->sleeps && w->looks % LOOKS) {
		rgate_cpu_relax();
		return true;
	}
	now = rgate_clock_now(CLOCK_MONOTONIC);
	if (!w->begun)
		w->begun = now;
	if (!w->end)
		w->end = now + (uint64_t)w->timeout_ms * 1000000;
	if (now >= w->end)
		return false;
	if (now - w->begun < peer->node->spin_ns) {
		rgate_cpu_relax();
		return true;
	}
	w->sleeps = true;
	pthread_mutex_lock(&peer->lock);
	arm_locked(peer, false);
	pthread_mutex_unlock(&peer->lock);
	ms = (int)((w->end - now) / 1000000) + 1;
	(void)poll(&p, 1, ms < NAP_MS ? ms : NAP_MS);
	return true;
}

static int finish(struct rgate_peer *peer, uint64_t ticket, struct wait *w)
{
	int ret;

	*w = (struct wait){ .timeout_ms = w->timeout_ms, .end = w->end };
	for (;;) {
		ret = rgate_peer_done(peer, ticket);
		if (ret)
			return ret > 0 ? 0 : ret;
		if (!wait_more(peer, w))
			return -ETIMEDOUT;
	}
}

int rgate_peer_finish(struct rgate_peer *peer, uint64_t ticket, int timeout_ms)
{
	struct wait w = { .timeout_ms = timeout_ms };

	return finish(peer, ticket, &w);
}

/* Posts operations as soon as there is room for them */
static int post_in_time(struct rgate_peer *peer, const struct rgate_op *ops, unsigned int n,
			struct wait *w, uint64_t *ticket)
{
	int err;

	for (;;) {
		err = rgate_peer_post(peer, ops, n, ticket);
		if (err != -EAGAIN || !wait_more(peer, w))
			return err;
	}
}

int rgate_peer_post_in_time(struct rgate_peer *peer, const struct rgate_op *ops, unsigned int n,
			    int timeout_ms, uint64_t *ticket)
{
	struct wait w = { .timeout_ms = timeout_ms };

	return post_in_time(peer, ops, n, &w, ticket);
}

/*
 * With both locks: what became of an operation whose time is over. It is late, and ends
 * its connection; or that has failed already and only needs to be taken away.
 */
static int end_late(struct rgate_peer *peer, uint64_t ticket)
{
	struct rgate_link *link = peer->link;
	int ret = look(peer, ticket);
	bool late;

	if (ret)
		return ret > 0 ? 0 : ret;
	late = link->state != RGATE_LINK_DEAD;
	rgate_link_fail(link, -ETIMEDOUT);
	rgate_peer_reap(peer);
	rgate_node_wake(peer->node);
	return late ? -ETIMEDOUT : look(peer, ticket);
}

/*
 * The caller's memory is his again when this returns, which is why a late operation ends
 * the connection: only then the device lets go of it.
 */
static int finish_for_good(struct rgate_peer *peer, uint64_t ticket, struct wait *w)
{
	int err = finish(peer, ticket, w);

	if (err != -ETIMEDOUT)
		return err;
	/* The node's lock, too: connections are its thread's. */
	pthread_mutex_lock(&peer->node->lock);
	pthread_mutex_lock(&peer->lock);
	err = end_late(peer, ticket);
	pthread_mutex_unlock(&peer->lock);
	pthread_mutex_unlock(&peer->node->lock);
	return err;
}

int rgate_peer_settle(struct rgate_peer *peer, uint64_t ticket, int timeout_ms)
{
	struct wait w = { .timeout_ms = timeout_ms };

	return finish_for_good(peer, ticket, &w);
}

void rgate_peer_cut(struct rgate_peer *peer)
{
	/* The node's lock, too: connections are its thread's. */
	pthread_mutex_lock(&peer->node->lock);
	pthread_mutex_lock(&peer->lock);
	if (peer->link) {
		rgate_link_fail(peer->link, -ETIMEDOUT);
		rgate_peer_reap(peer);
		rgate_node_wake(peer->node);
	}
	pthread_mutex_unlock(&peer->lock);
	pthread_mutex_unlock(&peer->node->lock);
}

static int one(struct rgate_peer *peer, const struct rgate_op *op, int timeout_ms)
{
	struct wait w = { .timeout_ms = timeout_ms };
	uint64_t ticket;
	int err;

	/* Without any time it would be begun, and the connection ended at once. */
	if (timeout_ms < 1)
		return -EINVAL;
	err = post_in_time(peer, op, 1, &w, &ticket);
	return err ? err : finish_for_good(peer, ticket, &w);
}

static int inside(const struct rgate_remote *at, uint64_t offset, uint64_t len, uint32_t access)
{
	if (offset > at->length || len > at->length - offset)
		return -ERANGE;
	return (at->access & access) == access ? 0 : -EACCES;
}

static int transfer(struct rgate_peer *peer, enum rgate_op_kind kind,
		    const struct rgate_remote *at, uint64_t offset, const struct rgate_sge *sge,
		    uint32_t imm, int timeout_ms)
{
	const struct rgate_op op = {
		.kind = (uint8_t)kind, .nsge = sge && sge->length ? 1 : 0, .sge = sge, .imm = imm,
		.remote = at->addr + offset, .rkey = at->rkey,
	};
	int err;

	err = inside(at, offset, sge ? sge->length : 0,
		     kind == RGATE_OP_READ ? RGATE_ACCESS_REMOTE_READ : RGATE_ACCESS_REMOTE_WRITE);
	return err ? err : one(peer, &op, timeout_ms);
}

int rgate_peer_write(struct rgate_peer *peer, const struct rgate_remote *at, uint64_t offset,
		     const struct rgate_sge *from, int timeout_ms)
{
	return transfer(peer, RGATE_OP_WRITE, at, offset, from, 0, timeout_ms);
}

int rgate_peer_write_imm(struct rgate_peer *peer, const struct rgate_remote *at, uint64_t offset,
			 const struct rgate_sge *from, uint32_t imm, int timeout_ms)
{
	return transfer(peer, RGATE_OP_WRITE_IMM, at, offset, from, imm, timeout_ms);
}

int rgate_peer_read(struct rgate_peer *peer, const struct rgate_remote *at, uint64_t offset,
		    const struct rgate_sge *to, int timeout_ms)
{
	return transfer(peer, RGATE_OP_READ, at, offset, to, 0, timeout_ms);
}

int rgate_peer_flush(struct rgate_peer *peer, int timeout_ms)
{
	const struct rgate_op op = { .kind = RGATE_OP_FLUSH };

	return one(peer, &op, timeout_ms);
}

/* One word is kept for the next, as a buffer of the pool costs more than the rest. */
static int take_word(struct rgate_peer *peer, const struct rgate_buf **word)
{
	*word = __atomic_exchange_n(&peer->word, NULL, __ATOMIC_ACQUIRE);
	return *word ? 0 : rgate_pool_alloc(peer->node->pool, sizeof(uint64_t), word);
}

static void give_word(struct rgate_peer *peer, const struct rgate_buf *word)
{
	/* Pairs with take_word(): who has it next sees nothing of this one's. */
	word = __atomic_exchange_n(&peer->word, word, __ATOMIC_ACQ_REL);
	if (word)
		rgate_pool_free(peer->node->pool, word);
}

static int atomic(struct rgate_peer *peer, const struct rgate_op *what,
		  const struct rgate_remote *at, uint64_t offset, uint64_t *old, int timeout_ms)
{
	struct rgate_op op = *what;
	const struct rgate_buf *word;
	struct rgate_sge sge;
	int err;

	err = inside(at, offset, 8, RGATE_ACCESS_REMOTE_ATOMIC);
	if (err)
		return err;
	err = take_word(peer, &word);
	if (err)
		return err;
	sge = (struct rgate_sge){ word->addr, 8, word->lkey };
	op.nsge = 1;
	op.sge = &sge;
	op.remote = at->addr + offset;
	op.rkey = at->rkey;
	err = one(peer, &op, timeout_ms);
	if (!err && old)
		memcpy(old, word->addr, sizeof(*old));
	give_word(peer, word);
	return err;
}

int rgate_peer_fetch_add(struct rgate_peer *peer, const struct rgate_remote *at, uint64_t offset,
			 uint64_t add, uint64_t *old, int timeout_ms)
{
	const struct rgate_op op = { .kind = RGATE_OP_FETCH_ADD, .operand = add };

	return atomic(peer, &op, at, offset, old, timeout_ms);
}

int rgate_peer_compare_swap(struct rgate_peer *peer, const struct rgate_remote *at,
			    uint64_t offset, uint64_t expect, uint64_t swap, uint64_t *old,
			    int timeout_ms)
{
	const struct rgate_op op = {
		.kind = RGATE_OP_COMPARE_SWAP, .operand = expect, .swap = swap,
	};

	return atomic(peer, &op, at, offset, old, timeout_ms);
}

int rgate_peer_send(struct rgate_peer *peer, const void *data, size_t len, int timeout_ms)
{
	struct rgate_pool *pool = peer->node->pool;
	struct rgate_op op = { .kind = RGATE_OP_SEND };
	const struct rgate_buf *copy = NULL;
	struct rgate_sge sge;
	int err;

	if (len > UINT16_MAX + 1)
		return -EMSGSIZE;
	if (len && len + RGATE_MSG_HEADER <=
		   __atomic_load_n(&peer->inline_size, __ATOMIC_RELAXED)) {
		/* Copied when it is posted; not written, though there is no const for it */
		sge = (struct rgate_sge){ (void *)data, (uint32_t)len, 0 };
		op.nsge = 1;
		op.sge = &sge;
	} else if (len) {
		err = rgate_pool_alloc(pool, len, &copy);
		if (err)
			return err;
		memcpy(copy->addr, data, len);
		sge = (struct rgate_sge){ copy->addr, (uint32_t)len, copy->lkey };
		op.nsge = 1;
		op.sge = &sge;
	}
	err = one(peer, &op, timeout_ms);
	rgate_pool_free(pool, copy);
	return err;
}

/* 1: one was taken; 0: there is none; -EMSGSIZE; -EPROTO: not a user's message */
static int take(struct rgate_link *link, struct rgate_msg *msg, void *buf, size_t cap)
{
	const struct rgate_inbox *at;
	const void *data;
	uint32_t type;

	data = rgate_link_message(link, &type, &at);
	if (!data)
		return 0;
	*msg = (struct rgate_msg){
		.imm = at->imm, .has_imm = at->has_imm, .epoch = link->epoch, .len = at->len,
	};
	if (!at->has_imm && type != RGATE_MSG_USER) {
		rgate_link_drop_message(link);
		rgate_link_fail(link, -EPROTO);
		return -EPROTO;
	}
	if (at->len > cap)
		return -EMSGSIZE;
	if (at->len)
		memcpy(buf, data, at->len);
	rgate_link_drop_message(link);
	return 1;
}

static int recv_locked(struct rgate_peer *peer, struct rgate_msg *msg, void *buf, size_t cap)
{
	struct rgate_link *link = peer->link;
	int ret;

	/* What an ended connection left comes first. */
	if (peer->husk) {
		ret = take(peer->husk, msg, buf, cap);
		if (ret == -EMSGSIZE)
			return ret;
		if (peer->husk->in == peer->husk->out) {
			rgate_link_destroy(peer->husk);
			peer->husk = NULL;
		}
		if (ret > 0)
			return ret;
	}
	if (!link)
		return -ENOTCONN;
	if (link->in == link->out && link->state == RGATE_LINK_UP)
		(void)rgate_link_progress(link);
	ret = take(link, msg, buf, cap);
	noticed(peer);
	return ret || link->state == RGATE_LINK_UP ? ret : -ENOTCONN;
}

int rgate_peer_recv(struct rgate_peer *peer, struct rgate_msg *msg, void *buf, size_t cap,
		    int timeout_ms)
{
	struct wait w = { .timeout_ms = timeout_ms };
	int ret;

	if (!msg || (cap && !buf))
		return -EINVAL;
	for (;;) {
		lock(peer);
		ret = recv_locked(peer, msg, buf, cap);
		pthread_mutex_unlock(&peer->lock);
		if (ret)
			return ret > 0 ? 0 : ret;
		if (!wait_more(peer, &w))
			return -EAGAIN;
	}
}
