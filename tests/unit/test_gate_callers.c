// SPDX-License-Identifier: MIT OR GPL-2.0
/* Many sessions with sockets at one gateway: what it says finds the right one, and only that. */
#include "req_bed.h"

#include <errno.h>
#include <string.h>

#include "gate_bed.h"
#include "gate_service.h"

#define AT	4096U		/* where bytes are, in a client's memory */
#define SHORT	100U
#define CALLERS	200U

static struct client others[CALLERS];
static uint64_t guests[CALLERS];	/* their ids at the gateway */
static struct rgate_engine *e;
static struct gate_service *sv;

static void turn(void)
{
	bed_run(e);
	(void)o.hub.asks.tick(o.hub.ctx);
	bed_run(e);
}

static int setup(void **state)
{
	const struct gate_opts opts = RGATE_OPTS(gate_opts, .role = &gate_sockets, .hub = HUB,
						 .gateway = OTHER);

	(void)state;
	gate_bed_init(&gate_sockets, turn);
	e = bed_engine();
	assert_int_equal(gate_service_create(&sv, &opts), 0);
	assert_int_equal(gate_service_add(sv, e), 0);
	other_comes_up(7);
	return 0;
}

static int unmake(void **state)
{
	(void)state;
	gate_service_quit(sv);
	rgate_engine_destroy(e);
	gate_service_destroy(sv);
	assert_int_equal(o.hub.node.stage.lent, 0);
	return 0;
}

static int end_of_other(unsigned int i, uint64_t cookie, uint64_t *value)
{
	struct rgate_completion done;

	turn();
	assert_true(client_poll(&others[i], &done));
	assert_int_equal(done.cookie, cookie);
	if (value)
		*value = done.value;
	return done.result;
}

static void ask_as(unsigned int i, struct rgate_request q)
{
	client_submit(&others[i], q);
	turn();
}

/* It opens a socket, its own at the gateway */
static void comes(unsigned int i)
{
	const struct rgate_seat_opts so = RGATE_OPTS(rgate_seat_opts, .uid = ME, .requests = 64,
						     .completions = 64, .memory = 8192);
	uint64_t value;

	memset(&others[i], 0, sizeof(others[i]));
	assert_int_equal(client_open(&others[i], e, &so), 0);
	ask_as(i, (struct rgate_request){ .op = RGATE_REQ_SOCKET_OPEN, .cookie = 1 });
	assert_int_equal(o.peer.asked.n, 1);
	guests[i] = question(0).guest;
	answer(0, 0);
	say(end_of(0, 0, 100 + i));
	assert_int_equal(end_of_other(i, 1, &value), 0);
	assert_int_equal(value, 100 + i);
	o.peer.asked.n = 0;
}

/* One request comes to its end, another one is cancelled */
static void works(unsigned int i)
{
	const struct rgate_request recv = { .op = RGATE_REQ_SOCKET_RECV, .cookie = 2,
					    .handle = 100 + i, .off = AT, .len = SHORT };

	ask_as(i, recv);
	assert_int_equal(question(0).guest, guests[i]);
	assert_int_equal(question(0).handle, 100 + i);
	answer(0, 0);
	say(end_of(0, -ECONNREFUSED, 0));
	assert_int_equal(end_of_other(i, 2, NULL), -ECONNREFUSED);
	o.peer.asked.n = 0;
	ask_as(i, recv);
	answer(0, 0);
	ask_as(i, (struct rgate_request){ .op = RGATE_REQ_CANCEL, .cookie = 3, .a0 = 2 });
	assert_int_equal(o.peer.asked.n, 2);
	assert_int_equal(question(1).kind, GATE_CANCEL);
	assert_int_equal(question(1).guest, guests[i]);
	answer(1, 0);
	assert_int_equal(end_of_other(i, 3, NULL), -EALREADY);
	say(end_of(0, -ECANCELED, 0));
	assert_int_equal(end_of_other(i, 2, NULL), -ECANCELED);
	o.peer.asked.n = 0;
}

static void goes(unsigned int i)
{
	rgate_seat_remove(others[i].seat);
	turn();
	assert_int_equal(o.peer.asked.n, 1);
	assert_int_equal(question(0).kind, GATE_LEAVE);
	assert_int_equal(question(0).guest, guests[i]);
	answer(0, 0);
	turn();
	client_close(&others[i]);
	o.peer.asked.n = 0;
}

/* Each of many is told what it has asked, in whatever order, and those that stay when others go */
static void many(void **state)
{
	unsigned int i;

	(void)state;
	for (i = 0; i < CALLERS; i++)
		comes(i);
	for (i = 0; i < CALLERS; i++)
		works(i * 77 % CALLERS);
	for (i = 0; i < CALLERS; i += 2)
		goes(i);
	for (i = 1; i < CALLERS; i += 2)
		works(i);
	for (i = 0; i < CALLERS; i += 2)
		comes(i);
	for (i = 0; i < CALLERS; i++)
		works(i);
	for (i = 0; i < CALLERS; i++)
		goes(CALLERS - 1 - i);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test_setup_teardown(many, setup, unmake),
};

UNIT_MAIN_ALONE(tests)
