// SPDX-License-Identifier: MIT OR GPL-2.0
#include "gate_engine.h"
#include "other.h"

#define WISHES		32U
#define OWN		(80U << 10)	/* memory of a session of this node */
#define ADDR_AT		(OWN - 4096)

struct rgate_seat {
	uid_t uid;
	void *object;			/* of its handle */
	unsigned char mem[OWN], was[OWN];
};

struct rgate_req {
	struct rgate_seat *seat;	/* NULL: none */
	struct rgate_request q;
	void *data;
	uint32_t shots;
	bool ended;
};

static struct rgate_seat seats[2];
static struct rgate_req reqs[WISHES];

const struct rgate_request *__wrap_rgate_req_get(const struct rgate_req *r)
{
	return &r->q;
}

struct rgate_seat *__wrap_rgate_req_seat(const struct rgate_req *r)
{
	return r->seat;
}

void *__wrap_rgate_req_mem(const struct rgate_req *r)
{
	return r->seat->mem + r->q.off;
}

void *__wrap_rgate_req_data(const struct rgate_req *r)
{
	return r->data;
}

void __wrap_rgate_req_set_data(struct rgate_req *r, void *data)
{
	r->data = data;
}

void __wrap_rgate_req_end(struct rgate_req *r, int result, uint64_t value)
{
	FUZZ_CHECK(r->seat && !r->ended);
	FUZZ_CHECK(result <= (int)r->q.len && result >= -4095 && (result >= 0 || !value));
	FUZZ_CHECK(!r->q.flags || result <= 0);
	r->ended = true;
}

uint32_t __wrap_rgate_req_shots(const struct rgate_req *r)
{
	return r->q.flags ? (uint32_t)r->q.a1 - 1 : 0;
}

uint32_t __wrap_rgate_req_more(struct rgate_req *r, int result, uint64_t value)
{
	(void)value;
	FUZZ_CHECK(r->seat && !r->ended && r->shots);
	FUZZ_CHECK(result >= 0 && (uint64_t)result <= r->q.len / (r->q.a1 - 1));
	return --r->shots;
}

void *__wrap_rgate_seat_memory(const struct rgate_seat *seat, uint64_t off, uint64_t len)
{
	return off <= OWN && len <= OWN - off ? (void *)(uintptr_t)(seat->mem + off) : NULL;
}

uid_t __wrap_rgate_seat_uid(const struct rgate_seat *seat)
{
	return seat->uid;
}

int __wrap_rgate_seat_handle(struct rgate_seat *seat, uint32_t service, void *object,
			     uint32_t *handle)
{
	FUZZ_CHECK(gate.role == &gate_sockets && service == RGATE_REQ_SOCKET && !seat->object);
	seat->object = object;
	*handle = 1;
	return 0;
}

/* What no request under way may write is as it was. */
static void check_memory(struct rgate_seat *s)
{
	uint32_t at, i;
	bool own[OWN / 16] = { false };

	if (!memcmp(s->mem, s->was, OWN))
		return;
	for (i = 0; i < WISHES; i++) {
		const struct rgate_req *r = &reqs[i];
		const int has = gate_op_has(gate.role, r->q.op);

		if (r->seat != s)
			continue;
		if (has >= 0 && has & (GATE_HAS_OUT | GATE_HAS_WHOLE))
			for (at = (uint32_t)r->q.off / 16; at * 16 < r->q.off + r->q.len; at++)
				own[at] = true;
		if (has >= 0 && has & GATE_HAS_FROM)
			for (at = ADDR_AT / 16; at < (ADDR_AT + GATE_ADDR + 15) / 16; at++)
				own[at] = true;
	}
	for (i = 0; i < OWN / 16; i++)
		FUZZ_CHECK(own[i] || !memcmp(s->mem + i * 16, s->was + i * 16, 16));
	memcpy(s->was, s->mem, OWN);
}

void gate_askers_forget(void)
{
	unsigned int i;

	for (i = 0; i < 2; i++)
		check_memory(&seats[i]);
	for (i = 0; i < WISHES; i++)
		if (reqs[i].seat && reqs[i].ended)
			reqs[i].seat = NULL;
}

/* What a service does that has sessions' callers itself */
static int forward(struct rgate_req *r)
{
	const struct gate_as as = { .handle = r->q.handle, .a0 = r->q.a0 };
	struct gate_caller *c = r->seat->object;
	int err;

	if (c && gate_caller_is_lost(c)) {
		gate_caller_leave(c);
		c = r->seat->object = NULL;
	}
	if (!c) {
		err = gate_caller_new(gate.sv, r->seat, OTHER, &c);
		if (err)
			return err;
		r->seat->object = c;
	}
	return gate_forward(c, r, &as);
}

static int begin(struct rgate_req *r, uint32_t n)
{
	return gate.role == &gate_sockets ? gate_requests.ops[n].begin(r, gate.sv) : forward(r);
}

void gate_askers_wish(void)
{
	static const uint32_t most[] = { 200, 600, 70000 };
	struct rgate_req *r = &reqs[fuzz_u8(&gate.in) % WISHES];
	const uint32_t n = fuzz_u8(&gate.in) % gate.role->nops;
	int ret;

	if (r->seat) {
		if (!r->ended)
			(void)gate_forward_cancel(gate.sv, r);
		return;
	}
	*r = (struct rgate_req){ .seat = &seats[fuzz_u8(&gate.in) & 1] };
	r->q = (struct rgate_request){ .op = (uint16_t)RGATE_REQ_OP(gate.role->requests, n),
				       .a0 = fuzz_u8(&gate.in), .a1 = ADDR_AT,
				       .off = fuzz_u8(&gate.in) * 16U,
				       .handle = fuzz_u8(&gate.in) };
	/* of one message, of a few, of many */
	r->q.len = fuzz_u16(&gate.in) % most[fuzz_u8(&gate.in) % 3];
	if (gate_op_has(gate.role, r->q.op) & GATE_HAS_MANY && r->q.a0 & 1) {
		r->q.flags = RGATE_REQ_MULTI;
		r->q.a1 = 2 + r->q.handle % 8;
		r->shots = (uint32_t)r->q.a1 - 1;
		r->q.len -= r->q.len % r->shots;
	}
	ret = begin(r, n);
	if (ret != RGATE_REQ_LATER) {
		FUZZ_CHECK(ret < 0 && !r->ended);
		r->seat = NULL;
	}
}

void gate_askers_leave(uint8_t which)
{
	struct rgate_seat *s = &seats[which & 1];
	unsigned int i;

	for (i = 0; i < WISHES; i++)
		if (reqs[i].seat == s && !reqs[i].ended)
			return;
	if (s->object)
		gate_caller_leave(s->object);
	s->object = NULL;
}

void gate_askers_begin(void)
{
	memset(reqs, 0, sizeof(reqs));
	memset(seats, 0, sizeof(seats));
	seats[0].uid = 1;
	seats[1].uid = 2;
}

void gate_askers_check(void)
{
	unsigned int i;

	for (i = 0; i < WISHES; i++)
		FUZZ_CHECK(!reqs[i].seat || reqs[i].ended);
	for (i = 0; i < 2; i++)
		if (seats[i].object)
			gate_caller_leave(seats[i].object);
}
