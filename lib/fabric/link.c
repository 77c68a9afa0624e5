// SPDX-License-Identifier: MIT OR GPL-2.0
#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "link.h"
#include "log.h"

#define LINE		64
#define POLL_MAX	32
#define MEASURE_ALL	1024	/* first ones of a kind; later one in */
#define MEASURE_ONE_IN	8

static size_t message_room(const struct rgate_link_opts *o)
{
	return ((size_t)o->msg_size + RGATE_MSG_HEADER + LINE - 1) / LINE * LINE;
}

/* A division for each operation would cost as much as the rest of its record. */
static uint64_t round_up(uint32_t depth)
{
	uint64_t n = 1;

	while (n < depth)
		n *= 2;
	return n;
}

int rgate_link_create(struct rgate_link **out, const struct rgate_link_opts *opts)
{
	const size_t room = message_room(opts);
	struct rgate_link *link = calloc(1, sizeof(*link));
	int err;

	if (!link)
		return -ENOMEM;
	link->o = *opts;
	link->failed_kind = RGATE_OP_KINDS;
	err = -ENOMEM;
	link->mask = round_up(opts->send_depth) - 1;
	link->records = calloc(link->mask + 1, sizeof(*link->records));
	link->inbox = calloc(opts->msg_depth, sizeof(*link->inbox));
	if (!link->records || !link->inbox)
		goto free_link;
	err = rgate_pool_alloc(opts->pool, sizeof(*link->line), &link->mem);
	if (err)
		goto free_link;
	err = rgate_pool_alloc(opts->stage, room * opts->msg_depth, &link->box);
	if (err)
		goto free_mem;
	link->line = link->mem->addr;
	memset(link->line, 0, sizeof(*link->line));
	link->line->header = htole64(RGATE_MSG_USER);
	link->slots = link->box->addr;
	*out = link;
	return 0;

free_mem:
	rgate_pool_free(opts->pool, link->mem);
free_link:
	free(link->inbox);
	free(link->records);
	free(link);
	return err;
}

void rgate_link_disconnect(struct rgate_link *link)
{
	if (link->conn)
		link->o.prov->destroy(link->conn);
	link->conn = NULL;
}

void rgate_link_destroy(struct rgate_link *link)
{
	if (!link)
		return;
	rgate_link_disconnect(link);
	rgate_hs_end(&link->hs);
	rgate_pool_free(link->o.stage, link->box);
	rgate_pool_free(link->o.pool, link->mem);
	free(link->inbox);
	free(link->records);
	free(link);
}

static uint8_t *slot_addr(const struct rgate_link *link, uint32_t slot)
{
	return link->slots + slot * message_room(&link->o);
}

static int post_receive(struct rgate_link *link, uint32_t slot)
{
	return link->o.prov->recv(link->conn, slot, slot_addr(link, slot),
				  link->o.msg_size + RGATE_MSG_HEADER, link->box->lkey);
}

int rgate_link_prepare(struct rgate_link *link)
{
	uint32_t i;
	int err;

	err = link->o.prov->prepare(link->conn);
	for (i = 0; i < link->o.msg_depth && !err; i++)
		err = post_receive(link, i);
	link->heard_ns = rgate_clock_now(CLOCK_MONOTONIC);
	return err;
}

int rgate_link_my_line(const struct rgate_link *link, struct rgate_desc *desc)
{
	/* Beat and credit, and what a flush of the peer reads: the first of its lines */
	return rgate_buf_desc(link->o.pool, link->mem, 0, LINE, desc);
}

int rgate_link_set_peer(struct rgate_link *link, uint32_t size, uint32_t depth,
			uint64_t incarnation)
{
	if (!size || !depth)
		return -EPROTO;
	link->peer_size = size;
	link->peer_depth = depth;
	link->incarnation = incarnation;
	return 0;
}

uint32_t rgate_link_credits(const struct rgate_link *link)
{
	/* Pairs with the peer's write: receives were posted before it. */
	uint64_t given = __atomic_load_n(&link->line->credit, __ATOMIC_ACQUIRE);
	uint64_t used;

	/* A peer that says more than it was sent costs itself the connection at most. */
	if (given > link->sent)
		given = link->sent;
	used = link->sent - given;
	return used < link->peer_depth ? link->peer_depth - (uint32_t)used : 0;
}

static bool takes_credit(uint8_t kind)
{
	return kind == RGATE_OP_SEND || kind == RGATE_OP_WRITE_IMM;
}

static bool is_write(uint8_t kind)
{
	return kind == RGATE_OP_WRITE || kind == RGATE_OP_WRITE_IMM;
}

/* @sum: out, bytes of @op */
static int check_op(const struct rgate_link *link, const struct rgate_op *op, bool internal,
		    uint64_t *sum)
{
	uint64_t bytes;

	if (op->kind >= RGATE_OP_KINDS || op->flags & ~(uint32_t)RGATE_OP_FLAGS ||
	    op->nsge > RGATE_SGE_MAX || (op->nsge && !op->sge) || op->reserved[0] ||
	    op->reserved[1] || (op->flags & RGATE_OP_BELL && !is_write(op->kind)))
		return -EINVAL;
	if (op->epoch && op->epoch != link->epoch)
		return -ENOTCONN;
	bytes = rgate_op_bytes(op);
	*sum = bytes;
	switch (op->kind) {
	case RGATE_OP_FETCH_ADD:
	case RGATE_OP_COMPARE_SWAP:
		return op->nsge == 1 && bytes == 8 && op->remote % 8 == 0 ? 0 : -EINVAL;
	case RGATE_OP_FLUSH:
		return op->nsge ? -EINVAL : 0;
	case RGATE_OP_SEND:
		return internal || bytes <= link->peer_size ? 0 : -EMSGSIZE;
	case RGATE_OP_READ:
	case RGATE_OP_WRITE:
		return bytes && bytes <= INT32_MAX ? 0 : -EINVAL;
	default:
		return bytes <= INT32_MAX ? 0 : -EINVAL;
	}
}

static int check(struct rgate_link *link, const struct rgate_op *ops, unsigned int n,
		 bool internal, uint64_t *bytes)
{
	const uint64_t kept = internal ? 0 : RGATE_LINK_KEPT_BACK;
	unsigned int i, messages = 0;
	int err;

	if (link->state == RGATE_LINK_DEAD || !link->conn)
		return -ENOTCONN;
	if (n - 1 >= RGATE_POST_MAX || n + RGATE_LINK_KEPT_BACK > link->o.send_depth)
		return -EINVAL;
	for (i = 0; i < n; i++) {
		err = check_op(link, &ops[i], internal, &bytes[i]);
		if (err)
			return err;
		messages += takes_credit(ops[i].kind);
	}
	if (messages > link->peer_depth)
		return -EINVAL;
	if (link->held || link->posted - link->done + n + kept > link->o.send_depth ||
	    (messages && messages > rgate_link_credits(link)))
		return -EAGAIN;
	return 0;
}

/* What goes to the provider for @op: a flush is a read, a message has a header. */
static const struct rgate_op *translate(const struct rgate_link *link, const struct rgate_op *op,
					bool internal, struct rgate_op *mine,
					struct rgate_sge *sge)
{
	if (op->kind == RGATE_OP_FLUSH) {
		*sge = (struct rgate_sge){ &link->line->junk, 8, link->mem->lkey };
		*mine = (struct rgate_op){
			.kind = RGATE_OP_READ, .flags = op->flags, .nsge = 1, .sge = sge,
			.remote = link->peer_line.addr, .rkey = link->peer_line.rkey,
		};
		return mine;
	}
	if (op->kind == RGATE_OP_SEND && !internal) {
		sge[0] = (struct rgate_sge){ &link->line->header, RGATE_MSG_HEADER,
					     link->mem->lkey };
		if (op->nsge)
			memcpy(sge + 1, op->sge, op->nsge * sizeof(*sge));
		*mine = *op;
		mine->sge = sge;
		mine->nsge++;
		return mine;
	}
	return op;
}

static void record(struct rgate_link *link, const struct rgate_op *op, bool internal,
		   uint64_t bytes, uint64_t now)
{
	struct rgate_record *r = &link->records[++link->posted & link->mask];

	*r = (struct rgate_record){
		.begun_ns = now, .kind = op->kind, .internal = internal,
	};
	if (takes_credit(op->kind))
		link->sent++;
	if (!internal) {
		link->o.counts[op->kind].posted++;
		link->o.counts[op->kind].bytes += bytes;
	}
}

/* The clock is a good part of what an operation costs here: it is asked now and then. */
static bool to_measure(struct rgate_op_count *count)
{
	return count->waited++ < MEASURE_ALL || !(count->waited % MEASURE_ONE_IN);
}

int rgate_link_post(struct rgate_link *link, const struct rgate_op *ops, unsigned int n,
		    bool internal, uint64_t *seq)
{
	struct rgate_sge sge[RGATE_POST_MAX][RGATE_SGE_MAX + 1];
	struct rgate_prov_work work[RGATE_POST_MAX];
	struct rgate_op mine[RGATE_POST_MAX];
	uint64_t now, signalled = link->signalled;
	uint64_t bytes[RGATE_POST_MAX];
	unsigned int i;
	int err;

	err = check(link, ops, n, internal, bytes);
	if (err) {
		if (err == -EAGAIN && !internal)
			link->o.counts[ops[0].kind].stalled++;
		return err;
	}
	for (i = 0; i < n; i++) {
		const uint64_t id = link->posted + 1 + i;

		/* Some signals, so that the queue empties; and what is waited for */
		work[i] = (struct rgate_prov_work){
			.op = translate(link, &ops[i], internal, &mine[i], sge[i]), .id = id,
			.signal = (i + 1 == n && seq) ||
				  id - signalled >= link->o.send_depth / 4,
		};
		if (work[i].signal)
			signalled = id;
	}
	now = seq && !internal && to_measure(&link->o.counts[ops[n - 1].kind]) ?
	      rgate_clock_now(CLOCK_MONOTONIC) : 0;
	err = link->o.prov->post(link->conn, work, n);
	if (err == -EAGAIN)
		return err;
	if (err == -ENOTCONN) {
		/* Not begun; what is done tells why there is no connection. */
		(void)rgate_link_progress(link);
		rgate_link_fail(link, -ECONNRESET);
		return err;
	}
	for (i = 0; i < n; i++)
		record(link, &ops[i], internal, bytes[i], i + 1 == n ? now : 0);
	link->signalled = signalled;
	if (seq)
		*seq = link->posted;
	/* Some may have been begun: all of them end as those of a failed connection do. */
	if (err)
		rgate_link_fail(link, err);
	return 0;
}

static void completed(struct rgate_link *link, uint64_t last)
{
	const struct rgate_record *r;
	uint64_t now;

	/* What failed is known by now, and stays: what comes later was among what is lost. */
	if (link->state == RGATE_LINK_DEAD)
		return;
	/* A number that was never given, or again: a provider that is mistaken. */
	if (last <= link->done || last > link->posted)
		return;
	link->done = last;
	link->held = false;
	r = &link->records[last & link->mask];
	if (!r->begun_ns || r->internal)
		return;
	now = rgate_clock_now(CLOCK_MONOTONIC);
	rgate_hist_add(&link->o.counts[r->kind].hist, now - r->begun_ns);
}

void rgate_link_fail(struct rgate_link *link, int err)
{
	const struct rgate_record *r;
	uint64_t i;

	if (link->state == RGATE_LINK_DEAD)
		return;
	link->state = RGATE_LINK_DEAD;
	link->err = err;
	link->op_err = err;
	link->outcome = RGATE_OUTCOME_UNKNOWN;
	/* The first that is the user's: what is before it is nothing to him. */
	for (i = link->done + 1; i <= link->posted; i++) {
		r = &link->records[i & link->mask];
		if (r->internal)
			continue;
		if (!link->failed_seq) {
			link->failed_seq = i;
			link->failed_kind = r->kind;
		}
		link->o.counts[r->kind].failed++;
	}
}

/* The operation with number @id ended in @status; those before it are well. */
static void op_failed(struct rgate_link *link, uint64_t id, int status)
{
	if (link->state == RGATE_LINK_DEAD)
		return;
	if (id > link->done + 1 && id <= link->posted)
		completed(link, id - 1);
	/* Flushed, and nothing failed before it: the other end has closed the connection,
	 * which the provider has not told yet. */
	if (status == -ECANCELED)
		status = -ECONNRESET;
	rgate_link_fail(link, status);
	/* Refused here or there: that one did nothing. */
	if (status == -EREMOTEIO || status == -EPERM)
		link->outcome = RGATE_OUTCOME_NOT_DONE;
}

static void arrived(struct rgate_link *link, const struct rgate_prov_done *done)
{
	const bool imm = done->kind == RGATE_PROV_RECV_IMM;

	if (done->id >= link->o.msg_depth || link->in - link->out == link->o.msg_depth ||
	    (!imm && (done->len < RGATE_MSG_HEADER ||
		      done->len > link->o.msg_size + RGATE_MSG_HEADER))) {
		rgate_link_fail(link, -EPROTO);
		return;
	}
	link->inbox[link->in++ % link->o.msg_depth] = (struct rgate_inbox){
		.slot = (uint32_t)done->id, .len = imm ? 0 : done->len - RGATE_MSG_HEADER,
		.imm = done->imm, .has_imm = imm,
	};
	link->arrived++;
}

int rgate_link_progress(struct rgate_link *link)
{
	struct rgate_prov_done done[POLL_MAX];
	bool closed = false;
	int n, i, all = 0;

	if (!link->conn)
		return link->err ? link->err : -ENOTCONN;
	do {
		n = link->o.prov->poll(link->conn, done, POLL_MAX);
		if (n < 0) {
			rgate_link_fail(link, n);
			return link->err;
		}
		for (i = 0; i < n; i++) {
			if (done[i].kind != RGATE_PROV_SENT && !done[i].status)
				arrived(link, &done[i]);
			else if (done[i].kind != RGATE_PROV_SENT)
				closed = true;
			else if (done[i].status)
				op_failed(link, done[i].id, done[i].status);
			else
				completed(link, done[i].id);
		}
		all += n;
	} while (n == POLL_MAX && all < (int)(link->o.send_depth + link->o.msg_depth));
	/* Receives are flushed beside operations that are done, before or after them: only when
	 * all were seen is it known which of them are lost. */
	if (closed)
		rgate_link_fail(link, -ECONNRESET);
	return link->state == RGATE_LINK_DEAD ? link->err : all;
}

static int repost(struct rgate_link *link, uint32_t slot)
{
	int err;

	if (!link->conn || link->state == RGATE_LINK_DEAD)
		return 0;
	err = post_receive(link, slot);
	if (err) {
		rgate_link_fail(link, err);
		return err;
	}
	link->reposted++;
	/* As much as an operation of the user: rarely, then; but when the peer has few left,
	 * or none, each one counts. What was given back came before, so this covers both. */
	return link->arrived - link->told < link->o.msg_depth - link->o.msg_depth / 4 ? 0 :
	       rgate_link_tell_credit(link);
}

int rgate_link_send_handshake(struct rgate_link *link, enum rgate_msg_type type,
			      const void *data, size_t len)
{
	struct rgate_line *line = link->line;
	struct rgate_sge sge = { &line->hs_header, (uint32_t)(len + RGATE_MSG_HEADER),
				 link->mem->lkey };
	const struct rgate_op op = { .kind = RGATE_OP_SEND, .nsge = 1, .sge = &sge };

	if (len > sizeof(line->hs))
		return -EMSGSIZE;
	if (link->spoke)
		return -EALREADY;
	link->spoke = true;
	line->hs_header = htole64(type);
	memcpy(line->hs, data, len);
	return rgate_link_post(link, &op, 1, true, NULL);
}

const void *rgate_link_message(struct rgate_link *link, uint32_t *type,
			       const struct rgate_inbox **at)
{
	uint64_t header = 0;

	if (link->in == link->out)
		return NULL;
	*at = &link->inbox[link->out % link->o.msg_depth];
	if (!(*at)->has_imm) {
		memcpy(&header, slot_addr(link, (*at)->slot), sizeof(header));
		header = le64toh(header);
	}
	*type = header > UINT32_MAX ? 0 : (uint32_t)header;
	return slot_addr(link, (*at)->slot) + RGATE_MSG_HEADER;
}

void rgate_link_drop_message(struct rgate_link *link)
{
	const uint32_t slot = link->inbox[link->out++ % link->o.msg_depth].slot;

	(void)repost(link, slot);
}
