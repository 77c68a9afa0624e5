// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * A program of one node accepts and receives at another one, by requests that have many
 * completions, while the connection between the nodes comes and goes with what is under way on it,
 * requests are cancelled, and there is no room for messages: whoever connects is accepted once,
 * nobody is forgotten, and what each has sent is there, once and in order.
 */
#include "serves_bed.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#define ASKS		0U	/* nodes */
#define SERVES		1U
#define AT_ONCE		24U	/* who has connected and was not heard of yet */
#define SAID		700U	/* bytes that each says: who he is, first */
#define SLOTS		6U	/* of a receive, SAID each */
#define WHO		1000U	/* cookies: of a receive: who it is, from here on; */
#define IGNORED		UINT64_MAX

static struct rgate_hub hub[2];
static struct rgate_peer peer[2];	/* each node's end */
static struct rgate_engine *eng;
static struct gate_service *gate[2];
static struct client prog;
static uint64_t rnd;
static uint16_t port;
static uint32_t listens;

static bool chance(unsigned int in)
{
	return unit_random(&rnd) % in == 0;
}

static bool may(void *ctx, uint32_t node, uid_t uid)
{
	(void)ctx;
	return node == ASKS && uid == ME;
}

/* ---- Two nodes ---- */

static void link_up(void)
{
	unsigned int i;

	for (i = 0; i < 2; i++)
		peer_comes_up(&peer[i], 7 + i);
	for (i = 0; i < 2; i++)
		peer_is_seen(&peer[i]);
}

static void link_down(void)
{
	unsigned int i;

	peer_down(&peer[0]);
	for (i = 0; i < 2; i++)
		peer_is_seen(&peer[i]);
}

/* Some of what is under way arrives. */
static void carry(unsigned int n)
{
	struct msg m;

	while (n--) {
		/* What was written before is there. */
		if (msgs_take(&peer[ASKS].asked, &m)) {
			peer_places(&peer[ASKS]);
			hub_says(&hub[SERVES], ASKS, m.data, m.len);
		}
		if (msgs_take(&peer[SERVES].said, &m)) {
			peer_places(&peer[SERVES]);
			hub_says(&hub[ASKS], SERVES, m.data, m.len);
		}
	}
}

static void turn(void)
{
	unsigned int i;

	bed_run(eng);
	for (i = 0; i < 2; i++)
		(void)hub[i].asks.tick(hub[i].ctx);
	bed_run(eng);
}

static int setup(void **state)
{
	const struct rgate_seat_opts so = RGATE_OPTS(rgate_seat_opts, .uid = ME, .requests = 256,
						     .completions = 1024,
						     .memory = 128U << 10);
	struct gate_opts go[2] = {
		RGATE_OPTS(gate_opts, .role = &gate_sockets, .hub = &hub[ASKS], .gateway = SERVES),
		RGATE_OPTS(gate_opts, .role = &gate_sockets, .hub = &hub[SERVES],
			   .gateway = SERVES, .may = may),
	};
	unsigned int i;

	(void)state;
	memset(hub, 0, sizeof(hub));
	memset(peer, 0, sizeof(peer));
	net_up(NULL, 0);
	eng = bed_engine();
	go[SERVES].engine = net_eng;
	for (i = 0; i < 2; i++) {
		hub_init(&hub[i], i, gate_sockets.service);
		hub_connect(&hub[i], !i, &peer[i]);
		peer[i].far = &peer[!i];
		assert_int_equal(gate_service_create(&gate[i], &go[i]), 0);
	}
	assert_int_equal(gate_service_add(gate[ASKS], eng), 0);
	assert_int_equal(client_open(&prog, eng, &so), 0);
	link_up();
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	gate_service_quit(gate[ASKS]);
	gate_service_quit(gate[SERVES]);
	rgate_engine_destroy(eng);
	gate_service_destroy(gate[ASKS]);
	rgate_engine_destroy(net_eng);
	gate_service_destroy(gate[SERVES]);
	socket_service_destroy(net_sv);
	client_close(&net_a.c);
	client_close(&net_b.c);
	client_close(&prog);
	return 0;
}

/* ---- The program ---- */

#define submit(op_, cookie_, ...) \
	client_submit(&prog, (struct rgate_request){ .op = RGATE_REQ_SOCKET_##op_, \
						     .cookie = (cookie_), ##__VA_ARGS__ })

/* Waits for that one, over a good connection */
static struct rgate_completion wait_for(uint64_t cookie)
{
	struct rgate_completion done;

	do {
		turn();
		carry(1);
	} while (!client_poll(&prog, &done));
	assert_int_equal(done.cookie, cookie);
	assert_int_equal(done.result, 0);
	return done;
}

static void start_listening(void)
{
	struct rgate_socket_addr a;

	submit(OPEN, 1, .a0 = RGATE_SOCKET_A0(2, RGATE_SOCKET_STREAM));
	listens = (uint32_t)wait_for(1).value;
	submit(LISTEN, 1, .handle = listens, .a0 = 128);
	(void)wait_for(1);
	submit(NAME, 1, .handle = listens, .len = GATE_ADDR);
	(void)wait_for(1);
	memcpy(&a, prog.mem, sizeof(a));
	port = a.port;
}

/* What is asked for now, and what came of it */
static struct {
	bool accepting, cancelled;
	uint64_t cookie;
	uint32_t most, came;		/* connections */
	uint32_t connected, known;	/* in all */
	uint32_t under_way;		/* receives */
	uint32_t handle[AT_ONCE];	/* of whom one receives; 0: the place is free */
	uint32_t slot[AT_ONCE], got[AT_ONCE];
	uint8_t said[AT_ONCE][SAID];
	int fd[4096];			/* theirs; -1: was heard of */
} now;

static void accept_some(void)
{
	now.accepting = true;
	now.cancelled = false;
	now.came = 0;
	now.most = 1 + (uint32_t)unit_random(&rnd) % 40;
	submit(ACCEPT, ++now.cookie, .handle = listens, .a1 = now.most + 1,
	       .flags = RGATE_REQ_MULTI);
}

static void receive(uint32_t handle)
{
	uint32_t i;

	for (i = 0; now.handle[i]; i++)
		assert_true(i < AT_ONCE - 1);
	now.handle[i] = handle;
	now.slot[i] = now.got[i] = 0;
	submit(RECV, WHO + i, .handle = handle, .off = i * SLOTS * SAID, .len = SLOTS * SAID,
	       .a1 = SLOTS + 1, .flags = RGATE_REQ_MULTI);
	now.under_way++;
}

static void what_is_said(uint32_t who, uint8_t *said)
{
	uint32_t i;

	memcpy(said, &who, sizeof(who));
	for (i = sizeof(who); i < SAID; i++)
		said[i] = (uint8_t)(who + i * 7);
}

/* All of it is there. */
static void know(uint32_t i)
{
	uint8_t want[SAID];
	uint32_t who;

	memcpy(&who, now.said[i], sizeof(who));
	assert_true(who < now.connected);
	what_is_said(who, want);
	assert_memory_equal(now.said[i], want, SAID);
	/* once */
	assert_true(now.fd[who] >= 0);
	close(now.fd[who]);
	now.fd[who] = -1;
	now.known++;
	submit(CLOSE, IGNORED, .handle = now.handle[i], .flags = RGATE_REQ_NO_COMPLETION);
}

static void hear_one(uint32_t i, const struct rgate_completion *done)
{
	if (!done->flags) {
		assert_int_equal(now.got[i], SAID);
		assert_true(!done->result || done->result == -ECANCELED);
		now.handle[i] = 0;
		now.under_way--;
		return;
	}
	assert_in_range(done->result, 1, SAID - now.got[i]);
	memcpy(now.said[i] + now.got[i], prog.mem + (i * SLOTS + now.slot[i]++) * SAID,
	       (size_t)done->result);
	now.got[i] += (uint32_t)done->result;
	if (now.got[i] == SAID)
		know(i);
}

static void take_one(const struct rgate_completion *done)
{
	if (done->cookie == IGNORED)
		return;
	if (done->cookie >= WHO && done->cookie < WHO + AT_ONCE) {
		hear_one((uint32_t)(done->cookie - WHO), done);
		return;
	}
	assert_int_equal(done->cookie, now.cookie);
	assert_true(now.accepting);
	if (done->flags) {
		assert_int_equal(done->result, 0);
		assert_true(now.came++ < now.most);
		receive((uint32_t)done->value);
		return;
	}
	now.accepting = false;
	if (done->result != -ECANCELED || !now.cancelled) {
		assert_int_equal(done->result, -ENOBUFS);
		assert_int_equal(now.came, now.most);
	}
}

static void take(void)
{
	struct rgate_completion done;

	while (client_poll(&prog, &done))
		take_one(&done);
	if (!now.accepting)
		accept_some();
}

static void connect_one(void)
{
	const uint32_t who = now.connected++;
	uint8_t said[SAID];

	what_is_said(who, said);
	now.fd[who] = raw_connect(port);
	raw_write(now.fd[who], said, SAID / 3);
	raw_write(now.fd[who], said + SAID / 3, SAID - SAID / 3);
}

static void disturb(void)
{
	if (chance(30) && peer[0].up)
		link_down();
	else if (chance(4) && !peer[0].up)
		link_up();
	if (chance(10))
		peer_say_full(&peer[SERVES], chance(2));
	if (chance(10))
		peer_say_most(&peer[SERVES], (unsigned int)unit_random(&rnd) % 6);
	if (chance(10))
		peer[ASKS].full = chance(2);
	if (chance(25) && now.accepting && !now.cancelled) {
		now.cancelled = true;
		client_submit(&prog, (struct rgate_request){
			.op = RGATE_REQ_CANCEL, .a0 = now.cookie, .cookie = IGNORED });
	}
}

static void storm(void **state)
{
	const uint32_t all = unit_rounds(1500);
	const uint64_t until = unit_now_ns() + 100 * 1000000000ULL;

	(void)state;
	rnd = 4711;
	memset(&now, 0, sizeof(now));
	now.cookie = WHO * 10;
	start_listening();
	while (now.known < all || now.under_way) {
		assert_true(unit_now_ns() < until);
		if (now.connected < all && now.under_way + now.connected - now.known < AT_ONCE &&
		    chance(2))
			connect_one();
		disturb();
		turn();
		carry((unsigned int)unit_random(&rnd) % 8);
		take();
	}
	peer_say_full(&peer[SERVES], false);
	peer_say_most(&peer[SERVES], 0);
	peer[ASKS].full = false;
	if (!peer[0].up)
		link_up();
	rgate_seat_remove(prog.seat);
	while (serves_sockets()) {
		assert_true(unit_now_ns() < until);
		turn();
		carry(8);
	}
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test_setup_teardown(storm, setup, teardown),
};

UNIT_MAIN(tests)
