// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * A program of one node accepts and receives at another one, by requests that have many
 * completions, while the connection between the nodes comes and goes with what is under way on it,
 * requests are cancelled, and there is no room for messages: whoever connects is accepted once,
 * nobody is forgotten, and what each has sent is there, once and in order.
 */
#include "two_bed.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#define AT_ONCE		24U	/* who has connected and was not heard of yet */
#define SAID		700U	/* bytes that each says: who he is, first */
#define SLOTS		6U	/* of a receive, SAID each */
#define WHO		1000U	/* cookies: of a receive: who it is, from here on; */
#define IGNORED		UINT64_MAX

static uint16_t port;
static uint32_t listens;

static int setup(void **state)
{
	const struct rgate_seat_opts so = RGATE_OPTS(rgate_seat_opts, .uid = ME, .requests = 256,
						     .completions = 1024,
						     .memory = 128U << 10);

	(void)state;
	two_make(&so);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	two_free();
	return 0;
}

/* ---- The program ---- */

static void start_listening(void)
{
	struct rgate_socket_addr a;

	TWO_SUBMIT(OPEN, 1, .a0 = RGATE_SOCKET_A0(2, RGATE_SOCKET_STREAM));
	listens = (uint32_t)two_wait_for(1).value;
	TWO_SUBMIT(LISTEN, 1, .handle = listens, .a0 = 128);
	(void)two_wait_for(1);
	TWO_SUBMIT(NAME, 1, .handle = listens, .len = GATE_ADDR);
	(void)two_wait_for(1);
	memcpy(&a, two_prog.mem, sizeof(a));
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
	now.most = 1 + (uint32_t)unit_random(&two_rnd) % 40;
	TWO_SUBMIT(ACCEPT, ++now.cookie, .handle = listens, .a1 = now.most + 1,
		   .flags = RGATE_REQ_MULTI);
}

static void receive(uint32_t handle)
{
	uint32_t i;

	for (i = 0; now.handle[i]; i++)
		assert_true(i < AT_ONCE - 1);
	now.handle[i] = handle;
	now.slot[i] = now.got[i] = 0;
	TWO_SUBMIT(RECV, WHO + i, .handle = handle, .off = i * SLOTS * SAID, .len = SLOTS * SAID,
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
	TWO_SUBMIT(CLOSE, IGNORED, .handle = now.handle[i], .flags = RGATE_REQ_NO_COMPLETION);
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
	memcpy(now.said[i] + now.got[i], two_prog.mem + (i * SLOTS + now.slot[i]++) * SAID,
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

	while (client_poll(&two_prog, &done))
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
	if (two_chance(30) && two_peer[0].up)
		two_link_is(false);
	else if (two_chance(4) && !two_peer[0].up)
		two_link_is(true);
	if (two_chance(10))
		peer_say_full(&two_peer[TWO_SERVES], two_chance(2));
	if (two_chance(10))
		peer_say_most(&two_peer[TWO_SERVES], (unsigned int)unit_random(&two_rnd) % 6);
	if (two_chance(10))
		two_peer[TWO_ASKS].full = two_chance(2);
	if (two_chance(25) && now.accepting && !now.cancelled) {
		now.cancelled = true;
		client_submit(&two_prog, (struct rgate_request){
			.op = RGATE_REQ_CANCEL, .a0 = now.cookie, .cookie = IGNORED });
	}
}

static void storm(void **state)
{
	const uint32_t all = unit_rounds(1500);
	const uint64_t until = unit_now_ns() + 100 * 1000000000ULL;

	(void)state;
	two_rnd = 4711;
	memset(&now, 0, sizeof(now));
	now.cookie = WHO * 10;
	start_listening();
	while (now.known < all || now.under_way) {
		assert_true(unit_now_ns() < until);
		if (now.connected < all && now.under_way + now.connected - now.known < AT_ONCE &&
		    two_chance(2))
			connect_one();
		disturb();
		two_turn();
		two_carry((unsigned int)unit_random(&two_rnd) % 8);
		take();
	}
	peer_say_full(&two_peer[TWO_SERVES], false);
	peer_say_most(&two_peer[TWO_SERVES], 0);
	two_peer[TWO_ASKS].full = false;
	if (!two_peer[0].up)
		two_link_is(true);
	rgate_seat_remove(two_prog.seat);
	while (serves_sockets()) {
		assert_true(unit_now_ns() < until);
		two_turn();
		two_carry(8);
	}
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test_setup_teardown(storm, setup, teardown),
};

UNIT_MAIN(tests)
