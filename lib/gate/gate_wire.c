// SPDX-License-Identifier: MIT OR GPL-2.0
#include "gate_wire.h"

#include <endian.h>
#include <errno.h>
#include <string.h>

#define LENT	((uint32_t)sizeof(struct gate_berths))

static uint8_t follows(const struct rgate_socket_addr *addr, const struct gate_lent *lent)
{
	return (addr ? GATE_FOLLOWS_ADDR : 0) | (lent->dock ? GATE_FOLLOWS_LENT : 0);
}

/* What is in front, and as much of @data as there is room for: how much is @len then */
static size_t put_rest(void *to, const struct rgate_socket_addr *addr,
		       const struct gate_lent *lent, const void *data, uint32_t *len)
{
	const struct gate_berths b = {
		.dock = htole64(lent->dock), .in = htole16((uint16_t)lent->in),
		.out = htole16((uint16_t)lent->out),
	};
	uint32_t first = 0;

	if (addr) {
		memcpy(to, addr, GATE_ADDR);
		first = GATE_ADDR;
	}
	if (lent->dock) {
		memcpy((char *)to + first, &b, LENT);
		first += LENT;
	}
	*len = least(*len, GATE_PIECE - first);
	if (*len)
		memcpy((char *)to + first, data, *len);
	return first + *len;
}

size_t gate_question_put(const struct gate_role *role, void *msg, struct gate_question *q)
{
	const struct gate_ask m = {
		.service = (uint8_t)role->service, .version = GATE_VERSION,
		.kind = (uint8_t)q->kind, .follows = follows(q->addr, &q->lent),
		.uid = htole32(q->uid),
		.number = htole64(q->number), .guest = htole64(q->guest),
		.serial = htole64(q->serial), .ticket = htole16((uint16_t)q->ticket),
		.op = htole16((uint16_t)q->op), .handle = htole32(q->handle),
		.a0 = htole64(q->a0), .a1 = htole64(q->a1), .len = htole32(q->len),
		.off = htole32(q->off),
	};

	memcpy(msg, &m, sizeof(m));
	return sizeof(m) + put_rest((char *)msg + sizeof(m), q->addr, &q->lent, q->data,
				    &q->data_len);
}

size_t gate_answer_put(const struct gate_role *role, void *msg, struct gate_result *r)
{
	const struct gate_answer m = {
		.service = (uint8_t)(role->service | RGATE_SERVICE_ASKER),
		.version = GATE_VERSION, .kind = (uint8_t)r->kind,
		.follows = follows(r->addr, &r->lent),
		.result = htole32((uint32_t)r->result), .number = htole64(r->number),
		.guest = htole64(r->guest), .serial = htole64(r->serial),
		.ticket = htole16((uint16_t)r->ticket), .len = htole32(r->len),
		.value = htole64(r->value),
	};

	memcpy(msg, &m, sizeof(m));
	return sizeof(m) + put_rest((char *)msg + sizeof(m), r->addr, &r->lent, r->data,
				    &r->data_len);
}

/* Berths that can be; -EPROTO: they cannot */
static int get_lent(const void *at, struct gate_lent *lent)
{
	struct gate_berths b;

	memcpy(&b, at, sizeof(b));
	*lent = (struct gate_lent){ le64toh(b.dock), le16toh(b.in), le16toh(b.out) };
	if (!lent->dock || b.zero || lent->in > GATE_BERTHS + GATE_WIDE ||
	    lent->out > GATE_BERTHS + GATE_WIDE)
		return -EPROTO;
	return lent->in || lent->out ? 0 : -EPROTO;
}

/* What follows @head bytes of a message */
struct rest {
	const struct rgate_socket_addr *addr;
	struct gate_lent lent;
	const void *data;
	uint32_t len;
};

/* -EPROTO: more, or less, than there can be */
static int get_rest(struct rest *r, const void *msg, size_t head, size_t len, uint8_t what)
{
	const size_t addr = what & GATE_FOLLOWS_ADDR ? GATE_ADDR : 0;
	const size_t first = addr + (what & GATE_FOLLOWS_LENT ? LENT : 0);
	const char *at = (const char *)msg + head;

	*r = (struct rest){ .addr = addr ? (const void *)at : NULL };
	if (what & ~(GATE_FOLLOWS_ADDR | GATE_FOLLOWS_LENT) || len < head + first ||
	    len - head > GATE_PIECE)
		return -EPROTO;
	if (what & GATE_FOLLOWS_LENT && (len != head + first || get_lent(at + addr, &r->lent)))
		return -EPROTO;
	r->data = at + first;
	r->len = (uint32_t)(len - head - first);
	return 0;
}

static bool is_part(const struct gate_role *role, const struct gate_question *q)
{
	const uint32_t room = gate_ticket_room(role, q->ticket);

	return q->len && q->off < room && q->len <= room - q->off &&
	       (q->lent.dock || q->len <= GATE_PIECE);
}

/* Berths are lent to what has bytes to move there. What it comes to may be less than its part. */
static bool lends(const struct gate_role *role, const struct gate_question *q, bool submits)
{
	const struct gate_lent *l = &q->lent;

	if (!l->dock)
		return true;
	if (l->in > gate_berths(role) || l->out > gate_berths(role) ||
	    (l->in && q->len > gate_berth_room(role, l->in)))
		return false;
	return q->len && (submits || (q->kind == GATE_GET && !l->in &&
				      q->off + q->len <= gate_berth_room(role, l->out)));
}

/* Bytes behind it; of a dock what it is */
static bool has_bytes(const struct gate_question *q, bool submits)
{
	if (q->kind == GATE_DOCK)
		return q->data_len == sizeof(struct rgate_desc);
	if (q->kind == GATE_PUT)
		return q->data_len == q->len;
	return q->data_len <= (submits ? q->len : 0);
}

/* Does it have what its kind has, and nothing else? */
static bool fits(const struct gate_role *role, const struct gate_question *q)
{
	const bool submits = q->kind == GATE_SUBMIT || q->kind == GATE_SUBMIT_MANY;
	const bool moves = q->kind == GATE_PUT || q->kind == GATE_GET;

	if (!q->guest || q->ticket >= GATE_TICKETS || (q->kind != GATE_LEAVE && !q->serial))
		return false;
	if (!submits && (q->op || q->handle || q->a1 || q->addr))
		return false;
	if (!submits && q->kind != GATE_HEARD && q->a0)
		return false;
	if ((moves && !is_part(role, q)) || !lends(role, q, submits))
		return false;
	if (!moves && (q->off || q->len > (submits ? gate_ticket_room(role, q->ticket) : 0)))
		return false;
	return has_bytes(q, submits);
}

int gate_question_get(const struct gate_role *role, struct gate_question *q, const void *msg,
		      size_t len)
{
	struct gate_ask m;
	struct rest rest;

	if (len < sizeof(m))
		return -EPROTO;
	memcpy(&m, msg, sizeof(m));
	*q = (struct gate_question){
		.kind = m.kind, .uid = le32toh(m.uid), .number = le64toh(m.number),
		.guest = le64toh(m.guest), .serial = le64toh(m.serial),
		.ticket = le16toh(m.ticket), .op = le16toh(m.op), .handle = le32toh(m.handle),
		.a0 = le64toh(m.a0), .a1 = le64toh(m.a1), .len = le32toh(m.len),
		.off = le32toh(m.off),
	};
	if (m.version != GATE_VERSION)
		return -EPROTONOSUPPORT;
	if ((m.kind < GATE_PUT || m.kind > GATE_LEAVE) && m.kind != GATE_SUBMIT_MANY &&
	    m.kind != GATE_HEARD && m.kind != GATE_DOCK)
		return -EOPNOTSUPP;
	if (get_rest(&rest, msg, sizeof(m), len, m.follows))
		return -EPROTO;
	q->addr = rest.addr;
	q->lent = rest.lent;
	q->data = rest.data;
	q->data_len = rest.len;
	return fits(role, q) ? 0 : -EPROTO;
}

int gate_answer_get(struct gate_result *r, const void *msg, size_t len)
{
	struct gate_answer m;
	struct rest rest;

	if (len < sizeof(m))
		return -EPROTO;
	memcpy(&m, msg, sizeof(m));
	*r = (struct gate_result){
		.kind = m.kind, .result = (int)le32toh(m.result), .number = le64toh(m.number),
		.guest = le64toh(m.guest), .serial = le64toh(m.serial),
		.ticket = le16toh(m.ticket), .len = le32toh(m.len), .value = le64toh(m.value),
	};
	if (r->result < -4095)
		r->result = -EIO;
	/* All versions say what they are, and whom they answer; nothing else is known of others. */
	if (m.version != GATE_VERSION) {
		r->result = -EPROTONOSUPPORT;
		r->ticket = r->len = 0;
		return m.kind == GATE_DONE || m.kind == GATE_MORE ? -EPROTO : 0;
	}
	if (m.zero || r->ticket >= GATE_TICKETS || r->len > GATE_LONG ||
	    get_rest(&rest, msg, sizeof(m), len, m.follows))
		return -EPROTO;
	r->addr = rest.addr;
	r->lent = rest.lent;
	r->data = rest.data;
	r->data_len = rest.len;
	/* Who serves tells where it has written, and nothing else of berths. */
	if (r->lent.dock && (r->lent.in || !r->len))
		return -EPROTO;
	if (r->lent.dock && r->kind != GATE_DONE && r->kind != GATE_MORE)
		return -EPROTO;
	return r->data_len > r->len ? -EPROTO : 0;
}

/* ---- Roles ---- */

#define NUMBER(op)	((op) & ((1U << RGATE_REQ_OP_SHIFT) - 1))
#define OP(n) \
	[NUMBER(RGATE_REQ_SOCKET_##n)]

static const uint16_t socket_has[] = {
	OP(OPEN) = 0, OP(BIND) = GATE_HAS_IN, OP(LISTEN) = 0,
	OP(ACCEPT) = GATE_HAS_WHOLE | GATE_HAS_MANY,
	OP(CONNECT) = GATE_HAS_IN, OP(SEND) = GATE_HAS_IN | GATE_HAS_STREAM,
	OP(RECV) = GATE_HAS_OUT | GATE_HAS_STREAM | GATE_HAS_MANY,
	OP(SENDTO) = GATE_HAS_IN | GATE_HAS_TO | GATE_HAS_STREAM,
	OP(RECVFROM) = GATE_HAS_OUT | GATE_HAS_FROM | GATE_HAS_STREAM | GATE_HAS_MANY,
	OP(SHUTDOWN) = 0, OP(CLOSE) = 0, OP(NAME) = GATE_HAS_WHOLE, OP(PEER) = GATE_HAS_WHOLE,
	OP(SETOPT) = GATE_HAS_IN, OP(GETOPT) = GATE_HAS_OUT, OP(POLL) = 0,
	OP(RESOLVE) = GATE_HAS_IN | GATE_HAS_OUT,
};

/* No datagram is longer than that. */
const struct gate_role gate_sockets = {
	.service = RGATE_SERVICE_SOCKET, .requests = RGATE_REQ_SOCKET, .room = 65536,
	.wide = GATE_LONG, .nops = sizeof(socket_has) / sizeof(socket_has[0]), .has = socket_has,
};

#undef OP
#define OP(n) \
	[NUMBER(RGATE_REQ_QUEUE_##n)]

static const uint16_t queue_has[] = {
	OP(OPEN) = GATE_HAS_IN | GATE_HAS_NODE, OP(CLOSE) = GATE_HAS_TO_GO,
	OP(SUBMIT) = GATE_HAS_IN, OP(CLAIM) = GATE_HAS_OUT, OP(BEGIN) = 0, OP(TOUCH) = 0,
	OP(COMPLETE) = GATE_HAS_IN, OP(RELEASE) = 0, OP(BURY) = GATE_HAS_IN, OP(KICK) = 0,
	OP(WAIT) = GATE_HAS_OUT, OP(STATE) = GATE_HAS_WHOLE,
	OP(LIST) = GATE_HAS_WHOLE | GATE_HAS_NODE, OP(PEEK) = GATE_HAS_OUT | GATE_HAS_STREAM,
	OP(DISCARD) = 0, OP(REMOVE) = 0, OP(COMPLETE_MANY) = GATE_HAS_IN,
	OP(FOLLOW) = GATE_HAS_OUT, OP(OVER) = GATE_HAS_IN | GATE_HAS_OUT,
	OP(AGAIN) = GATE_HAS_IN, OP(COPIES) = GATE_HAS_IN | GATE_HAS_OUT,
	OP(MIRROR) = GATE_HAS_IN | GATE_HAS_NODE,
};

/* No task has more, with its result and what PEEK tells of it. */
const struct gate_role gate_queues = {
	.service = RGATE_SERVICE_QUEUE, .requests = RGATE_REQ_QUEUE, .room = GATE_ROOM,
	.nops = sizeof(queue_has) / sizeof(queue_has[0]), .has = queue_has,
	.here = RGATE_QUEUE_HERE,
};

RGATE_ASSERT(2 * RGATE_QUEUE_PADDED(RGATE_QUEUE_DATA_MAX) + sizeof(struct rgate_queue_task) <=
	     GATE_ROOM);

int gate_op_has(const struct gate_role *role, uint32_t op)
{
	const uint32_t n = NUMBER(op);

	if (op >> RGATE_REQ_OP_SHIFT != role->requests || n >= role->nops)
		return -EOPNOTSUPP;
	return role->has[n];
}
