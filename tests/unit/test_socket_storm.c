// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * Clients that do anything with sockets, in any order, against each other, while sockets are listed
 * and killed and policies change: each request has one end, and nothing is left.
 */
#include "socket_bed.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>

#define CLIENTS		3U
#define SOCKS		24U
#define UNDER_WAY	128U
#define COOKIES		65536U
#define NAMES	16384U		/* parts of memory that they have in turn */
#define ADDR		sizeof(struct rgate_socket_addr)

struct storm {
	struct net_client c;
	pthread_t thread;
	uint64_t seed, until;
	uint32_t sock[SOCKS];		/* 0: none */
	uint16_t *port;			/* at which somebody may listen */
	unsigned int under_way, ended, good, names;
	uint8_t state[COOKIES];		/* 1: under way, 2: whose value is a handle */
};

static struct storm storms[CLIENTS];
static uint16_t ports[CLIENTS];

static uint32_t draw(struct storm *s, uint32_t n)
{
	return (uint32_t)(unit_random(&s->seed) >> 33) % n;
}

static void submit(struct storm *s, struct rgate_request q, uint8_t state)
{
	/* Some wait for long. */
	while (s->state[++s->c.last % COOKIES])
		;
	q.cookie = s->c.last;
	if (q.op >> RGATE_REQ_OP_SHIFT && !draw(s, 3))
		q.deadline_us = 1 + draw(s, 3000);
	s->state[q.cookie % COOKIES] = state;
	s->under_way++;
	client_submit(&s->c.c, q);
}

static void keep(struct storm *s, uint32_t handle)
{
	unsigned int i = draw(s, SOCKS);

	if (!s->sock[i]) {
		s->sock[i] = handle;
		return;
	}
	submit(s, (struct rgate_request){ .op = RGATE_REQ_SOCKET_CLOSE, .handle = handle }, 1);
}

static bool take(struct storm *s)
{
	struct rgate_completion done;
	uint8_t was;

	if (!client_poll(&s->c.c, &done))
		return false;
	was = s->state[done.cookie % COOKIES];
	unit_require(was);
	s->state[done.cookie % COOKIES] = 0;
	s->under_way--;
	s->ended++;
	s->good += done.result >= 0;
	if (was == 2 && done.result >= 0)
		keep(s, (uint32_t)done.value);
	return true;
}

/* An address in the client's memory: somebody's port, or any */
static uint64_t address(struct storm *s, uint16_t port)
{
	struct rgate_socket_addr a = { .family = RGATE_SOCKET_INET, .addr = { 127, 0, 0, 1 } };
	uint64_t off = NET_ADDR + 64 * draw(s, 32);

	a.port = port;
	memcpy(s->c.c.mem + off, &a, sizeof(a));
	return off;
}

static uint16_t any_port(struct storm *s)
{
	return ports[draw(s, CLIENTS)];
}

#define SUBMIT(s, o, state, ...) \
	submit(s, (struct rgate_request){ .op = RGATE_REQ_SOCKET_##o, ##__VA_ARGS__ }, state)
#define CANCEL(s, most) \
	submit(s, (struct rgate_request){ .op = RGATE_REQ_CANCEL, \
		.a0 = (s)->c.last - draw(s, (most)) }, 1)

static void data(struct storm *s, uint32_t handle, bool send)
{
	const uint32_t flags = draw(s, 8), off = draw(s, 1U << 20);
	const uint32_t len = draw(s, 4) ? draw(s, 5000) : draw(s, 1U << 20);

	if (send)
		SUBMIT(s, SEND, 1, .handle = handle, .a0 = flags & 1, .off = off, .len = len);
	else
		SUBMIT(s, RECV, 1, .handle = handle, .a0 = flags, .off = off, .len = len);
}

static void option(struct storm *s, uint32_t handle)
{
	const struct rgate_socket_linger l = { 1, (int32_t)draw(s, 2) };

	memcpy(s->c.c.mem + NET_ADDR + 2048, &l, sizeof(l));
	SUBMIT(s, SETOPT, 1, .handle = handle, .a0 = RGATE_SOCKET_LINGER, .off = NET_ADDR + 2048,
	       .len = sizeof(l));
}

/* One that nobody is asked for, and one that is none; each where no other is */
static void name(struct storm *s)
{
	const uint32_t off = NET_MEM / 2 + 128 * (s->names++ % NAMES);
	const char *text = draw(s, 4) ? "127.0.0.1" : "127/0.0.1";

	memcpy(s->c.c.mem + off, text, 9);
	SUBMIT(s, RESOLVE, 1, .off = off, .len = 96, .a1 = RGATE_SOCKET_RESOLVE_A1(9, 0),
	       .a0 = RGATE_SOCKET_RESOLVE_A0(0, 0, RGATE_SOCKET_RESOLVE_NUMERIC));
}

static void step(struct storm *s)
{
	const unsigned int i = draw(s, SOCKS);
	const uint32_t h = s->sock[i];

	if (!h) {
		SUBMIT(s, OPEN, 2, .a0 = RGATE_SOCKET_A0(RGATE_SOCKET_INET, draw(s, 8) ? 1 : 2));
		return;
	}
	switch (draw(s, 17)) {
	case 0:
		s->sock[i] = 0;
		SUBMIT(s, CLOSE, 1, .handle = h);
		break;
	case 1:
		SUBMIT(s, BIND, 1, .handle = h, .off = address(s, *s->port), .len = ADDR);
		SUBMIT(s, LISTEN, 1, .handle = h, .a0 = 4);
		break;
	case 2:
	case 3:
		SUBMIT(s, ACCEPT, 2, .handle = h);
		break;
	case 4:
	case 5:
		SUBMIT(s, CONNECT, 1, .handle = h, .off = address(s, any_port(s)), .len = ADDR);
		break;
	case 6:
		CANCEL(s, 20);
		break;
	case 7:
		SUBMIT(s, SHUTDOWN, 1, .handle = h, .a0 = 1 + draw(s, 3));
		break;
	case 8:
		SUBMIT(s, POLL, 1, .handle = h, .a0 = draw(s, 32), .a1 = draw(s, 2));
		break;
	case 9:
		option(s, h);
		break;
	case 10:
		name(s);
		break;
	default:
		data(s, h, draw(s, 2));
		break;
	}
}

/* All sockets are closed, which ends what they have under way. */
static void clear(struct storm *s)
{
	const uint64_t until = unit_now_ns() + 20000000000ULL * unit_patience();
	const uint32_t none[SOCKS] = { 0 };
	unsigned int i;

	while (s->under_way || memcmp(s->sock, none, sizeof(none))) {
		unit_require(unit_now_ns() < until);
		for (i = 0; i < SOCKS && s->under_way < UNDER_WAY; i++) {
			if (s->sock[i])
				SUBMIT(s, CLOSE, 1, .handle = s->sock[i]);
			s->sock[i] = 0;
		}
		if (!take(s))
			usleep(100);
	}
}

static void *run(void *arg)
{
	struct storm *s = arg;

	while (unit_now_ns() < s->until) {
		if (s->under_way < UNDER_WAY)
			step(s);
		while (take(s))
			;
		if (s->under_way >= UNDER_WAY) {
			/* What waits for nothing that will come is ended; an engine without a CPU
			 * is waited for before its places are full. */
			if (s->under_way < NET_PLACES / 2)
				CANCEL(s, 300);
			usleep(50);
		}
	}
	clear(s);
	return NULL;
}

/* Who looks after them meanwhile */
static void meddle(uint64_t until)
{
	struct socket_info in[64];
	uint64_t seed = 77;
	unsigned int n;

	while (unit_now_ns() < until) {
		n = socket_service_list(net_sv, 0, in, ARRAY_LEN(in));
		if (n && unit_random(&seed) % 8 == 0)
			(void)socket_service_kill(net_sv, in[unit_random(&seed) % n].id);
		if (unit_random(&seed) % 64 == 0)
			net_new_policy(unit_random(&seed) % 2 ?
				"allow any connect any 127.0.0.0/8 any\n"
				"allow any listen any 127.0.0.0/8 any\n" :
				"allow user:11 connect any 127.0.0.0/8 any\n"
				"allow any listen any 127.0.0.0/8 any\n");
		usleep(500);
	}
}

static void storm(void **state)
{
	const uint64_t until = unit_now_ns() + (unit_slow() ? 500000000ULL : 3000000000ULL);
	struct rgate_engine_stats es = { .sz = sizeof(es) };
	unsigned int i;
	int fd;

	(void)state;
	net_up("allow any connect any 127.0.0.0/8 any\nallow any listen any 127.0.0.0/8 any", 0);
	for (i = 0; i < CLIENTS; i++) {
		fd = raw_listen(1, &ports[i]);
		close(fd);
	}
	for (i = 0; i < CLIENTS; i++) {
		net_join(&storms[i].c, 10 + i);
		storms[i].port = &ports[i];
		storms[i].seed = i + 1;
		storms[i].until = until;
		assert_int_equal(pthread_create(&storms[i].thread, NULL, run, &storms[i]), 0);
	}
	meddle(until);
	for (i = 0; i < CLIENTS; i++) {
		pthread_join(storms[i].thread, NULL);
		print_message("# client %u: %u requests, %u of them good\n", i, storms[i].ended,
			      storms[i].good);
		assert_true(storms[i].good > 100);
	}
	assert_int_equal(rgate_engine_stats(net_eng, &es), 0);
	assert_int_equal(es.under_way, 0);
	for (i = 0; i < CLIENTS; i++)
		net_part(&storms[i].c);
	net_down();
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(storm),
};

UNIT_MAIN(tests)
