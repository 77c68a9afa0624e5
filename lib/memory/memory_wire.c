// SPDX-License-Identifier: MIT OR GPL-2.0
#include "memory_wire.h"

#include <endian.h>
#include <errno.h>
#include <string.h>

#include "call.h"

/* The bytes that follow a question */
static uint32_t follows(enum memory_op op, uint32_t len)
{
	return op == MEMORY_OPEN || op == MEMORY_WRITE ? len : 0;
}

size_t memory_question_put(void *msg, const struct memory_question *q)
{
	const bool open = q->a.op == MEMORY_OPEN;
	const uint32_t len = open ? (uint32_t)strlen(q->name) : q->a.len;
	const uint64_t region = open ? (uint64_t)q->rights << 32 | q->owner : q->a.region;
	const struct memory_ask m = {
		.service = RGATE_SERVICE_MEMORY, .version = MEMORY_VERSION,
		.op = (uint8_t)q->a.op, .uid = htole32(q->a.uid), .number = htole64(q->number),
		.region = htole64(region), .off = htole64(q->a.off), .len = htole32(len),
		.operand = htole64(q->a.operand), .swap = htole64(q->a.swap),
	};
	const uint32_t more = follows(q->a.op, len);

	memcpy(msg, &m, sizeof(m));
	if (more)
		memcpy((char *)msg + sizeof(m), open ? q->name : q->a.data, more);
	return sizeof(m) + more;
}

size_t memory_answer_put(void *msg, const struct memory_result *r)
{
	const struct memory_answer m = {
		.service = RGATE_SERVICE_MEMORY | RGATE_SERVICE_ASKER,
		.version = MEMORY_VERSION, .op = (uint8_t)r->op,
		.error = htole32((uint32_t)-r->err), .number = htole64(r->number),
		.value = htole64(r->value), .region = htole64(r->region), .len = htole32(r->len),
	};

	memcpy(msg, &m, sizeof(m));
	if (r->len)
		memcpy((char *)msg + sizeof(m), r->data, r->len);
	return sizeof(m) + r->len;
}

static int get_name(struct memory_question *q, const void *from, uint64_t region)
{
	q->owner = (uint32_t)region;
	q->rights = (uint32_t)(region >> 32);
	q->a.region = 0;
	if (!regions_name_ok(from, q->a.len))
		return -EINVAL;
	memcpy(q->name, from, q->a.len);
	q->name[q->a.len] = '\0';
	return 0;
}

int memory_question_get(struct memory_question *q, const void *msg, size_t len)
{
	const void *rest = (const char *)msg + sizeof(struct memory_ask);
	struct memory_ask m;

	if (len < sizeof(m))
		return -EPROTO;
	memcpy(&m, msg, sizeof(m));
	*q = (struct memory_question){
		.number = le64toh(m.number),
		.a = { .op = m.op, .uid = le32toh(m.uid), .region = le64toh(m.region),
		       .off = le64toh(m.off), .len = le32toh(m.len),
		       .operand = le64toh(m.operand), .swap = le64toh(m.swap), },
	};
	if (m.version != MEMORY_VERSION)
		return -EPROTONOSUPPORT;
	if (m.op < MEMORY_OPEN || m.op > MEMORY_FLUSH)
		return -EOPNOTSUPP;
	if (m.zero || m.zero2 || m.zero3 || q->a.len > MEMORY_PIECE ||
	    len != sizeof(m) + follows(q->a.op, q->a.len))
		return -EPROTO;
	if (q->a.op == MEMORY_OPEN)
		return get_name(q, rest, q->a.region);
	if (q->a.op == MEMORY_WRITE)
		q->a.data = (void *)(uintptr_t)rest;
	return 0;
}

int memory_answer_get(struct memory_result *r, const void *msg, size_t len)
{
	struct memory_answer m;

	if (len < sizeof(m))
		return -EPROTO;
	memcpy(&m, msg, sizeof(m));
	*r = (struct memory_result){
		.number = le64toh(m.number), .op = m.op,
		.err = call_error(le32toh(m.error)), .value = le64toh(m.value),
		.region = le64toh(m.region), .len = le32toh(m.len),
		.data = (const char *)msg + sizeof(m),
	};
	/* All versions say what they are, and whom they answer. */
	if (m.version != MEMORY_VERSION) {
		r->err = -EPROTONOSUPPORT;
		r->len = 0;
		return 0;
	}
	if (m.zero || m.zero2 || r->len > MEMORY_PIECE || len != sizeof(m) + r->len)
		return -EPROTO;
	return 0;
}
