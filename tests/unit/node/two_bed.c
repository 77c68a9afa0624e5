// SPDX-License-Identifier: MIT OR GPL-2.0
#include "two_bed.h"

#include <string.h>

struct rgate_hub two_hub[2];
struct rgate_peer two_peer[2];
struct client two_prog;
uint64_t two_rnd;

static struct rgate_engine *eng;	/* of who asks */
static struct gate_service *gate[2];

static bool may(void *ctx, uint32_t node, uid_t uid)
{
	(void)ctx;
	return node == TWO_ASKS && uid == ME;
}

void two_make(const struct rgate_seat_opts *so)
{
	struct gate_opts go[2] = {
		RGATE_OPTS(gate_opts, .role = &gate_sockets, .hub = &two_hub[TWO_ASKS],
			   .gateway = TWO_SERVES),
		RGATE_OPTS(gate_opts, .role = &gate_sockets, .hub = &two_hub[TWO_SERVES],
			   .gateway = TWO_SERVES, .may = may),
	};
	unsigned int i;

	memset(two_hub, 0, sizeof(two_hub));
	memset(two_peer, 0, sizeof(two_peer));
	net_up(NULL, 0);
	eng = bed_engine();
	go[TWO_SERVES].engine = net_eng;
	for (i = 0; i < 2; i++) {
		hub_init(&two_hub[i], i, gate_sockets.service);
		hub_connect(&two_hub[i], !i, &two_peer[i]);
		two_peer[i].far = &two_peer[!i];
		assert_int_equal(gate_service_create(&gate[i], &go[i]), 0);
	}
	assert_int_equal(gate_service_add(gate[TWO_ASKS], eng), 0);
	assert_int_equal(client_open(&two_prog, eng, so), 0);
	two_link_is(true);
}

void two_free(void)
{
	gate_service_quit(gate[TWO_ASKS]);
	gate_service_quit(gate[TWO_SERVES]);
	rgate_engine_destroy(eng);
	gate_service_destroy(gate[TWO_ASKS]);
	rgate_engine_destroy(net_eng);
	gate_service_destroy(gate[TWO_SERVES]);
	socket_service_destroy(net_sv);
	client_close(&net_a.c);
	client_close(&net_b.c);
	client_close(&two_prog);
}

bool two_chance(unsigned int in)
{
	return unit_random(&two_rnd) % in == 0;
}

void two_link_is(bool up)
{
	unsigned int i;

	if (!up)
		peer_down(&two_peer[0]);
	for (i = 0; up && i < 2; i++)
		peer_comes_up(&two_peer[i], 7 + i);
	for (i = 0; i < 2; i++)
		peer_is_seen(&two_peer[i]);
}

void two_carry(unsigned int n)
{
	struct msg m;

	while (n--) {
		if (msgs_take(&two_peer[TWO_ASKS].asked, &m)) {
			peer_places(&two_peer[TWO_ASKS]);
			hub_says(&two_hub[TWO_SERVES], TWO_ASKS, m.data, m.len);
		}
		if (msgs_take(&two_peer[TWO_SERVES].said, &m)) {
			peer_places(&two_peer[TWO_SERVES]);
			hub_says(&two_hub[TWO_ASKS], TWO_SERVES, m.data, m.len);
		}
	}
}

void two_turn(void)
{
	unsigned int i;

	bed_run(eng);
	for (i = 0; i < 2; i++)
		(void)two_hub[i].asks.tick(two_hub[i].ctx);
	bed_run(eng);
}

struct rgate_completion two_wait_for(uint64_t cookie)
{
	struct rgate_completion done;

	do {
		two_turn();
		two_carry(1);
	} while (!client_poll(&two_prog, &done));
	assert_int_equal(done.cookie, cookie);
	assert_int_equal(done.result, 0);
	return done;
}
