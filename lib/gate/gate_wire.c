// SPDX-License-Identifier: MIT OR GPL-2.0
#include "gate_wire.h"

#include <endian.h>
#include <errno.h>
#include <string.h>

/* Address, if there is one, and as much of @data as there is room for: how much is @len then */
static size_t put_rest(void *to, const struct rgate_socket_addr *addr, const void *data,
		       uint32_t *len)
{
	const uint32_t first = addr ? GATE_ADDR : 0;

	*len = least(*len, GATE_PIECE - first);
	if (addr)
		memcpy(to, addr, first);
	if (*len)
		memcpy((char *)to + first, data, *len);
	return first + *len;
}

size_t gate_question_put(const struct gate_role *role, void *msg, struct gate_question *q)
{
	const struct gate_ask m = {
		.service = (uint8_t)role->service, .version = GATE_VERSION,
		.kind = (uint8_t)q->kind, .has_addr = !!q->addr, .uid = htole32(q->uid),
		.number = htole64(q->number), .guest = htole64(q->guest),
		.serial = htole64(q->serial), .ticket = htole16((uint16_t)q->ticket),
		.op = htole16((uint16_t)q->op), .handle = htole32(q->handle),
		.a0 = htole64(q->a0), .a1 = htole64(q->a1), .len = htole32(q->len),
		.off = htole32(q->off),
	};

	memcpy(msg, &m, sizeof(m));
	return sizeof(m) + put_rest((char *)msg + sizeof(m), q->addr, q->data, &q->data_len);
}

size_t gate_answer_put(const struct gate_role *role, void *msg, struct gate_result *r)
{
	const struct gate_answer m = {
		.service = (uint8_t)(role->service | RGATE_SERVICE_ASKER),
		.version = GATE_VERSION, .kind = (uint8_t)r->kind, .has_addr = !!r->addr,
		.result = htole32((uint32_t)r->result), .number = htole64(r->number),
		.guest = htole64(r->guest), .serial = htole64(r->serial),
		.ticket = htole16((uint16_t)r->ticket), .len = htole32(r->len),
		.value = htole64(r->value),
	};

	memcpy(msg, &m, sizeof(m));
	return sizeof(m) + put_rest((char *)msg + sizeof(m), r->addr, r->data, &r->data_len);
}

/* What follows; -EPROTO: more, or less, than there can be */
static int get_rest(const void *msg, size_t head, size_t len, uint8_t has_addr,
		    const struct rgate_socket_addr **addr, const void **data, uint32_t *data_len)
{
	const size_t first = has_addr ? GATE_ADDR : 0;

	if (has_addr > 1 || len < head + first || len - head > GATE_PIECE)
		return -EPROTO;
	*addr = has_addr ? (const void *)((const char *)msg + head) : NULL;
	*data = (const char *)msg + head + first;
	*data_len = (uint32_t)(len - head - first);
	return 0;
}

static bool is_part(const struct gate_role *role, uint32_t off, uint32_t len)
{
	return len && len <= GATE_PIECE && off < role->room && len <= role->room - off;
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
	if (moves && !is_part(role, q->off, q->len))
		return false;
	if (!moves && (q->off || q->len > (submits ? role->room : 0)))
		return false;
	return q->data_len <= (submits ? q->len : q->kind == GATE_PUT ? q->len : 0) &&
	       (q->kind != GATE_PUT || q->data_len == q->len);
}

int gate_question_get(const struct gate_role *role, struct gate_question *q, const void *msg,
		      size_t len)
{
	struct gate_ask m;

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
	    m.kind != GATE_HEARD)
		return -EOPNOTSUPP;
	if (get_rest(msg, sizeof(m), len, m.has_addr, &q->addr, &q->data, &q->data_len))
		return -EPROTO;
	return fits(role, q) ? 0 : -EPROTO;
}

int gate_answer_get(struct gate_result *r, const void *msg, size_t len)
{
	struct gate_answer m;

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
	if (m.zero || r->ticket >= GATE_TICKETS || r->len > GATE_ROOM ||
	    get_rest(msg, sizeof(m), len, m.has_addr, &r->addr, &r->data, &r->data_len))
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
	.nops = sizeof(socket_has) / sizeof(socket_has[0]), .has = socket_has,
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
