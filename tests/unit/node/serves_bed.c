// SPDX-License-Identifier: MIT OR GPL-2.0
#include "serves_bed.h"

#include <errno.h>
#include <unistd.h>

struct gate_service *serves_sv;
uid_t serves_banned;
uint32_t serves_handles, serves_sessions;

static bool rights(void *ctx, uid_t uid, struct rgate_limits *limits)
{
	(void)ctx;
	rgate_limits_init(limits);
	limits->handles = serves_handles;
	limits->sessions = serves_sessions;
	return uid != 14 && uid != serves_banned;
}

void serves_turn(void)
{
	(void)o.hub.asks.tick(o.hub.ctx);
}

void serves_make(uint32_t silence_ms)
{
	const struct gate_opts opts = RGATE_OPTS(gate_opts, .role = &gate_sockets, .hub = HUB,
						 .gateway = SELF, .may = gate_bed_may,
						 .rights = rights, .silence_ms = silence_ms);
	struct gate_opts all = opts;

	gate_bed_init(&gate_sockets, serves_turn);
	net_up(NULL, 0);
	all.engine = net_eng;
	assert_int_equal(gate_service_create(&serves_sv, &all), 0);
	assert_int_equal(gate_service_add(serves_sv, net_eng), -ENXIO);
	other_comes_up(7);
	serves_banned = 14;
	serves_handles = 8;
	serves_sessions = 0;
}

int serves_setup(void **state)
{
	(void)state;
	serves_make(0);
	return 0;
}

int serves_teardown(void **state)
{
	(void)state;
	gate_service_quit(serves_sv);
	rgate_engine_destroy(net_eng);
	gate_service_destroy(serves_sv);
	net_eng = NULL;
	/* what net_down() does behind the engine's end */
	socket_service_destroy(net_sv);
	client_close(&net_a.c);
	client_close(&net_b.c);
	return 0;
}

struct gate_stats serves_stats(void)
{
	struct gate_stats st = { .sz = sizeof(st) };

	assert_int_equal(gate_service_stats(serves_sv, &st), 0);
	return st;
}

uint64_t serves_sockets(void)
{
	struct socket_stats st = { .sz = sizeof(st) };

	assert_int_equal(socket_service_stats(net_sv, &st), 0);
	return st.sockets;
}

void serves_become(uint64_t n)
{
	const uint64_t until = unit_now_ns() + PATIENCE_MS * 1000000ULL;

	while (serves_sockets() != n) {
		serves_turn();
		assert_true(unit_now_ns() < until);
		usleep(1000);
	}
}

uint32_t serves_socket(uint32_t type)
{
	const struct gate_result r = done_of(SUBMIT(OPEN, .a0 = RGATE_SOCKET_A0(2, type)));

	assert_int_equal(r.result, 0);
	assert_int_equal(r.len, 0);
	return (uint32_t)r.value;
}

struct rgate_socket_addr serves_loopback(uint16_t port)
{
	return (struct rgate_socket_addr){ .family = 2, .port = port, .addr = { 127, 0, 0, 1 } };
}

uint32_t serves_connected(int *fd)
{
	const uint32_t h = serves_socket(RGATE_SOCKET_STREAM);
	struct rgate_socket_addr to;
	uint16_t port;
	int l = raw_listen(4, &port);

	to = serves_loopback(port);
	assert_int_equal(done_of(SUBMIT(CONNECT, .handle = h, .len = GATE_ADDR, .data = &to,
					.data_len = GATE_ADDR)).result, 0);
	*fd = raw_accept(l);
	close(l);
	return h;
}

uint64_t begin(struct gate_question q, uint32_t ticket)
{
	q.serial = ++serial;
	q.ticket = ticket;
	assert_int_equal(ask(q).result, 0);
	return q.serial;
}

int asks_of(uint64_t of, struct gate_question q)
{
	q.serial = of;
	return ask(q).result;
}

struct gate_result hear_of(uint64_t of)
{
	struct gate_result r;

	do
		r = hear();
	while (r.kind == GATE_DONE && r.serial != of);
	return r;
}

void hear_end(uint64_t of, uint64_t n, int result)
{
	const struct gate_result r = hear_of(of);

	assert_int_equal(r.kind, GATE_DONE);
	assert_int_equal(r.serial, of);
	assert_int_equal(r.number, n);
	assert_int_equal(r.result, result);
	assert_int_equal(r.len, 0);
	assert_int_equal(r.value, 0);
	assert_null(r.addr);
}
