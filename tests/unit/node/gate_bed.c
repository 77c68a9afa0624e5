// SPDX-License-Identifier: MIT OR GPL-2.0
#include "gate_bed.h"

#include <unistd.h>

uint64_t number, serial, guest;
struct msg heard;
unsigned char other_newer;

static const struct gate_role *role;
static void (*turn)(void);

bool gate_bed_may(void *ctx, uint32_t node, uid_t uid)
{
	(void)ctx;
	return o.may && node == OTHER && uid != 13;
}

void gate_bed_init(const struct gate_role *of, void (*fn)(void))
{
	role = of;
	turn = fn;
	other_init(role->service);
	/* Bytes go in pieces. */
	o.hub.node.no_share = true;
	number = 16;
	serial = guest = 1;
	other_newer = 0;
}

struct gate_result hear(void)
{
	const uint64_t until = unit_now_ns() + PATIENCE_MS * 1000000ULL;
	struct gate_result r;

	while (!other_heard(&heard)) {
		turn();
		assert_true(unit_now_ns() < until);
		usleep(200);
	}
	assert_int_equal(heard.data[0], role->service | RGATE_SERVICE_ASKER);
	assert_int_equal(gate_answer_get(&r, heard.data, heard.len), 0);
	return r;
}

/* Its version is behind the service */
static size_t of_build(void *msg, size_t len)
{
	((unsigned char *)msg)[1] += other_newer;
	return len;
}

void ask_only(struct gate_question q)
{
	uint64_t msg[RGATE_HUB_MSG_MAX / sizeof(uint64_t)];

	q.number = number++;
	hub_says(HUB, OTHER, msg, of_build(msg, gate_question_put(role, msg, &q)));
}

struct gate_result ask(struct gate_question q)
{
	struct gate_result r;

	q.number = number;
	ask_only(q);
	do
		r = hear();
	while (r.kind == GATE_DONE);
	assert_int_equal(r.number, q.number);
	assert_int_equal(r.kind, q.kind);
	return r;
}

struct gate_result done_of(struct gate_question q)
{
	struct gate_result r;

	q.serial = ++serial;
	assert_int_equal(ask(q).result, 0);
	r = hear();
	assert_int_equal(r.kind, GATE_DONE);
	assert_int_equal(r.serial, q.serial);
	assert_int_equal(r.guest, q.guest);
	return r;
}

struct gate_question question(unsigned int i)
{
	const struct msg *m = &o.peer.asked.m[i];
	struct gate_question q;

	assert_true(i < o.peer.asked.n);
	assert_int_equal(m->data[0], role->service);
	assert_int_equal(gate_question_get(role, &q, m->data, m->len), 0);
	assert_int_equal(q.uid, ME);
	return q;
}

void say(struct gate_result r)
{
	unsigned char msg[RGATE_HUB_MSG_MAX] __attribute__((aligned(8)));

	hub_says(HUB, OTHER, msg, of_build(msg, gate_answer_put(role, msg, &r)));
	turn();
}

void answer(unsigned int i, int result)
{
	const struct gate_question q = question(i);

	say((struct gate_result){ .kind = q.kind, .number = q.number, .result = result });
}

struct gate_result end_of(unsigned int i, int result, uint64_t value)
{
	const struct gate_question q = question(i);

	return (struct gate_result){ .kind = GATE_DONE, .guest = q.guest, .serial = q.serial,
				     .ticket = q.ticket, .result = result, .value = value };
}
