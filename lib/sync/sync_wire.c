// SPDX-License-Identifier: MIT OR GPL-2.0
#include "sync_wire.h"

#include <endian.h>
#include <errno.h>
#include <string.h>

#include "call.h"

size_t sync_question_put(void *msg, const struct sync_question *q)
{
	const bool open = q->op == SYNC_OPEN;
	struct sync_ask m = {
		.service = RGATE_SERVICE_SYNC, .version = SYNC_VERSION, .op = (uint8_t)q->op,
		.kind = open ? (uint8_t)q->as.kind : 0, .uid = htole32(q->uid),
		.number = htole64(q->number), .life = htole64(q->life),
		.claim = htole64(q->claim), .seq = htole64(q->seq),
		.flags = htole32(open ? q->as.flags : q->flags),
	};

	if (open) {
		m.owner = htole32(q->as.owner);
		m.members = htole32(q->as.members);
		memcpy(m.name, q->as.name, strnlen(q->as.name, sizeof(m.name)));
	}
	memcpy(msg, &m, sizeof(m));
	return sizeof(m);
}

int sync_question_get(struct sync_question *q, const void *msg, size_t len)
{
	static const char none[RGATE_SYNC_NAME_ROOM];
	struct sync_ask m;
	bool open;

	if (len < sizeof(m))
		return -EPROTO;
	memcpy(&m, msg, sizeof(m));
	open = m.op == SYNC_OPEN;
	*q = (struct sync_question){
		.number = le64toh(m.number), .life = le64toh(m.life), .claim = le64toh(m.claim),
		.seq = le64toh(m.seq), .op = m.op, .uid = le32toh(m.uid),
		.flags = open ? 0 : le32toh(m.flags),
	};
	if (m.version != SYNC_VERSION)
		return -EPROTONOSUPPORT;
	if (m.op < SYNC_OPEN || m.op == SYNC_NEWS || m.op > SYNC_FENCE)
		return -EOPNOTSUPP;
	if (len != sizeof(m) || m.zero)
		return -EPROTO;
	if (!open)
		return m.kind || m.owner || m.members || memcmp(m.name, none, sizeof(none)) ?
		       -EPROTO : 0;
	q->as = (struct sync_open){ .kind = m.kind, .owner = le32toh(m.owner),
				    .flags = le32toh(m.flags), .members = le32toh(m.members) };
	memcpy(q->as.name, m.name, sizeof(m.name));
	return 0;
}

/* ---- What follows an answer; the same in both directions ---- */

static void lock_order(struct rgate_lock_info *to, const struct rgate_lock_info *from)
{
	*to = *from;
	to->token = htole64(from->token);
	to->owner = htole32(from->owner);
	to->flags = htole32(from->flags);
	to->holders = htole32(from->holders);
	to->waiters = htole32(from->waiters);
	to->holder_uid = htole32(from->holder_uid);
	to->holder_node = htole32(from->holder_node);
	to->shared = htole32(from->shared);
}

static void barrier_order(struct rgate_barrier_info *to, const struct rgate_barrier_info *from)
{
	*to = *from;
	to->generation = htole64(from->generation);
	to->arrived = htole64(from->arrived);
	to->dead = htole64(from->dead);
	to->members = htole32(from->members);
	to->joined = htole32(from->joined);
}

static size_t follows(enum sync_kind kind)
{
	return kind == SYNC_LOCK ? sizeof(struct rgate_lock_info) :
	       kind == SYNC_BARRIER ? sizeof(struct rgate_barrier_info) : 0;
}

size_t sync_answer_put(void *msg, const struct sync_result *r)
{
	const struct sync_answer m = {
		.service = RGATE_SERVICE_SYNC | RGATE_SERVICE_ASKER, .version = SYNC_VERSION,
		.op = (uint8_t)r->op, .kind = (uint8_t)r->kind,
		.error = htole32((uint32_t)-r->err), .number = htole64(r->number),
		.claim = htole64(r->claim), .value = htole64(r->value),
		.lease_ms = htole32(r->lease_ms),
	};
	struct sync_result le;

	memcpy(msg, &m, sizeof(m));
	if (r->kind == SYNC_LOCK)
		lock_order(&le.info.lock, &r->info.lock);
	else if (r->kind == SYNC_BARRIER)
		barrier_order(&le.info.barrier, &r->info.barrier);
	memcpy((char *)msg + sizeof(m), &le.info, follows(r->kind));
	return sizeof(m) + follows(r->kind);
}

int sync_answer_get(struct sync_result *r, const void *msg, size_t len)
{
	struct sync_answer m;
	struct sync_result le;

	if (len < sizeof(m))
		return -EPROTO;
	memcpy(&m, msg, sizeof(m));
	*r = (struct sync_result){
		.number = le64toh(m.number), .claim = le64toh(m.claim),
		.value = le64toh(m.value), .op = m.op, .lease_ms = le32toh(m.lease_ms),
		.err = call_error(le32toh(m.error)),
	};
	/* All versions say what they are, and whom they answer. */
	if (m.version != SYNC_VERSION) {
		r->err = -EPROTONOSUPPORT;
		return 0;
	}
	if (m.zero || m.kind > SYNC_BARRIER || len != sizeof(m) + follows(m.kind))
		return -EPROTO;
	r->kind = m.kind;
	memcpy(&le.info, (const char *)msg + sizeof(m), follows(m.kind));
	if (m.kind == SYNC_LOCK) {
		lock_order(&r->info.lock, &le.info.lock);
		r->info.lock.reserved = 0;
		r->info.lock.name[RGATE_SYNC_NAME_MAX] = '\0';
	} else if (m.kind == SYNC_BARRIER) {
		barrier_order(&r->info.barrier, &le.info.barrier);
	}
	return 0;
}
