// SPDX-License-Identifier: MIT OR GPL-2.0
#include "asks_bed.h"

#include <string.h>

struct rgate_engine *asks_engine;
struct client prog;
uint64_t asks_guest;

static struct gate_service *sv;

struct gate_stats asks_stats(void)
{
	struct gate_stats st = { .sz = sizeof(st) };

	assert_int_equal(gate_service_stats(sv, &st), 0);
	return st;
}

void asks_turn(void)
{
	bed_run(asks_engine);
	(void)o.hub.asks.tick(o.hub.ctx);
	bed_run(asks_engine);
}

void asks_make(uint32_t silence_ms)
{
	const struct gate_opts opts = RGATE_OPTS(gate_opts, .role = &gate_sockets, .hub = HUB,
						 .gateway = OTHER, .silence_ms = silence_ms);
	const struct rgate_seat_opts so = RGATE_OPTS(rgate_seat_opts, .uid = ME, .requests = 128,
						     .completions = 128, .memory = ASKS_MEMORY);

	gate_bed_init(&gate_sockets, asks_turn);
	asks_engine = bed_engine();
	assert_int_equal(gate_service_create(&sv, &opts), 0);
	assert_int_equal(gate_service_add(sv, asks_engine), 0);
	memset(&prog, 0, sizeof(prog));
	assert_int_equal(client_open(&prog, asks_engine, &so), 0);
	other_comes_up(7);
}

int asks_teardown(void **state)
{
	(void)state;
	gate_service_quit(sv);
	rgate_engine_destroy(asks_engine);
	gate_service_destroy(sv);
	client_close(&prog);
	assert_int_equal(o.hub.node.stage.lent, 0);
	return 0;
}

struct rgate_completion asks_next(void)
{
	struct rgate_completion done;

	asks_turn();
	assert_true(client_poll(&prog, &done));
	return done;
}

int asks_result(uint64_t cookie, uint64_t *value)
{
	const struct rgate_completion done = asks_next();

	assert_int_equal(done.cookie, cookie);
	assert_int_equal(done.flags, 0);
	if (value)
		*value = done.value;
	return done.result;
}

bool asks_quiet(void)
{
	struct rgate_completion done;

	asks_turn();
	return !client_poll(&prog, &done);
}

struct gate_result last_of(unsigned int i, uint64_t n, int result)
{
	struct gate_result r = end_of(i, result, 0);

	r.number = n;
	return r;
}

struct gate_result more_of(unsigned int i, uint64_t n, uint64_t value)
{
	static struct rgate_socket_addr from;
	struct gate_result r = end_of(i, 0, value);

	from = (struct rgate_socket_addr){ .family = 2, .port = (uint16_t)value };
	r.kind = GATE_MORE;
	r.number = n;
	r.len = r.data_len = question(i).len / (uint32_t)(question(i).a1 - 1);
	r.data = &from;
	return r;
}

void came(uint64_t cookie, uint64_t value)
{
	const struct rgate_completion done = asks_next();

	assert_int_equal(done.cookie, cookie);
	assert_int_equal(done.result, 0);
	assert_int_equal(done.flags, GOES_ON);
	assert_int_equal(done.value, value);
}

void asks_hears(unsigned int i, uint64_t n)
{
	struct gate_question q;

	asks_turn();
	q = question(o.peer.asked.n - 1);
	assert_int_equal(q.kind, GATE_HEARD);
	assert_int_equal(q.guest, question(i).guest);
	assert_int_equal(q.serial, question(i).serial);
	assert_int_equal(q.ticket, question(i).ticket);
	assert_int_equal(q.a0, n);
	answer(o.peer.asked.n - 1, 0);
}

int asks_setup(void **state)
{
	struct gate_question q;
	uint64_t value;

	(void)state;
	asks_make(0);
	submit(OPEN, 1, .a0 = 99);
	assert_int_equal(o.peer.asked.n, 1);
	q = question(0);
	assert_int_equal(q.kind, GATE_SUBMIT);
	assert_int_equal(q.op, RGATE_REQ_SOCKET_OPEN);
	assert_int_equal(q.a0, 99);
	asks_guest = q.guest;
	answer(0, 0);
	assert_true(asks_quiet());
	say(end_of(0, 0, 77));
	assert_int_equal(asks_result(1, &value), 0);
	assert_int_equal(value, 77);
	/* once */
	say(end_of(0, 0, 78));
	assert_true(asks_quiet());
	o.peer.asked.n = 0;
	return 0;
}
