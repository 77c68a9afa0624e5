// SPDX-License-Identifier: MIT OR GPL-2.0
/* The engine's seats: what users may have, whose turn it is, and what is left when they go. */
#include "req_pair.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* The client goes while its requests are under way. */
static void gone(void **state)
{
	static struct client c;
	void *mem;

	(void)state;
	client_new(&c, e, 1);
	client_submit(&c, ASK(LATE_WAIT, .cookie = 1));
	client_submit(&c, ASK(LATE_SURE, .cookie = 2, .flags = RGATE_REQ_LINK));
	client_submit(&c, ASK(LATE_WAIT, .cookie = 3));
	client_submit(&c, ASK(LATE_MEM, .cookie = 4, .len = 64));
	client_submit(&c, ASK(LATE_OPEN, .cookie = 5));
	bed_run(e);
	assert_int_equal(late.n, 3);
	mem = rgate_req_mem(late.held[2]);
	late.slow = true;
	rgate_seat_remove(c.seat);
	client_close(&c);
	bed_run(e);
	assert_int_equal(late.asked, 2);
	assert_int_equal(c.over, 0);
	assert_int_equal(stats().seats, 3);
	/* what is still under way may use its memory */
	memset(mem, 1, 64);
	late_end(4, 0, 0);
	late_end(1, 0, 0);
	bed_run(e);
	assert_int_equal(c.over, 0);
	assert_int_equal(late.dropped, 0);
	late_end(2, 0, 0);
	bed_run(e);
	assert_int_equal(c.over, 1);
	assert_int_equal(late.dropped, 1);
	assert_int_equal(stats().seats, 2);
	assert_int_equal(stats().under_way, 0);
	assert_int_equal(stats().handles, 0);
}

static void handles(void **state)
{
	uint64_t h, g, i;

	(void)state;
	value_of(&a, ASK(LATE_CLOSE), -EBADF);
	value_of(&a, ASK(LATE_CLOSE, .handle = 77), -EBADF);
	h = value_of(&a, ASK(LATE_OPEN), 0);
	assert_int_not_equal(h, 0);
	value_of(&b, ASK(LATE_CLOSE, .handle = (uint32_t)h), -EBADF);	/* not its own */
	value_of(&a, ASK(LATE_CLOSE, .handle = (uint32_t)h), 0);
	value_of(&a, ASK(LATE_CLOSE, .handle = (uint32_t)h), -EBADF);
	g = value_of(&a, ASK(LATE_OPEN), 0);
	assert_int_not_equal(g, h);
	value_of(&a, ASK(LATE_CLOSE, .handle = (uint32_t)h), -EBADF);	/* an old one */
	for (i = 0; i < 20; i++)
		value_of(&a, ASK(LATE_OPEN), 0);
	assert_int_equal(stats().handles, 21);
	value_of(&a, ASK(LATE_CLOSE, .handle = (uint32_t)g), 0);
	assert_int_equal(stats().handles, 20);
}

static struct rgate_seat_opts limited(uid_t uid, struct rgate_limits *lim)
{
	return RGATE_OPTS(rgate_seat_opts, .uid = uid, .requests = 64, .completions = 64,
			  .limits = lim);
}

static void limits(void **state)
{
	struct rgate_limits lim;
	struct rgate_seat_opts o;
	static struct client c, d, none;
	uint64_t area = rgate_area_len(64, 64);

	(void)state;
	rgate_limits_init(&lim);
	lim.sessions = 2;
	lim.memory = 2 * area + (uint64_t)getpagesize();
	lim.requests = 3;
	lim.handles = 1;
	lim.classes = 1U << RGATE_CLASS_NORMAL;
	lim.ops[RGATE_REQ_LOG] = 0;
	lim.ops[LATE] &= ~2ULL;
	o = limited(5, &lim);
	o.memory = 2 * (uint64_t)getpagesize();
	assert_int_equal(client_open(&c, e, &o), 0);
	o.memory = 0;
	assert_int_equal(client_open(&d, e, &o), -EDQUOT);	/* memory */
	rgate_seat_remove(c.seat);
	client_close(&c);
	bed_run(e);
	o.memory = (uint64_t)getpagesize();
	assert_int_equal(client_open(&c, e, &o), 0);
	o.memory = 0;
	assert_int_equal(client_open(&d, e, &o), 0);
	lim.memory = 0;
	assert_int_equal(client_open(&none, e, &o), -EDQUOT);	/* sessions */
	assert_int_equal(c.w.services, 1ULL << RGATE_REQ_CORE | 1ULL << LATE);
	assert_int_equal(c.w.max_requests, 3);

	value_of(&c, ASK(RGATE_REQ_LOG_WRITE, .len = 1), -EACCES);
	value_of(&c, ASK(LATE_SURE), -EACCES);
	value_of(&c, ASK(RGATE_REQ_NOP, .cls = RGATE_CLASS_URGENT), -EACCES);
	assert_int_equal(value_of(&c, ASK(RGATE_REQ_PROBE, .a0 = LATE), 0), 61);
	value_of(&c, ASK(LATE_OPEN), 0);
	value_of(&d, ASK(LATE_OPEN), -EDQUOT);

	/* Three under way of both; others wait, but for what the engine does itself. */
	client_submit(&c, ASK(LATE_WAIT, .cookie = 1));
	client_submit(&c, ASK(LATE_WAIT, .cookie = 2));
	client_submit(&d, ASK(LATE_WAIT, .cookie = 3));
	bed_run(e);
	client_submit(&d, ASK(LATE_WAIT, .cookie = 4));
	client_submit(&c, ASK(RGATE_REQ_NOP, .cookie = 5));
	client_submit(&c, ASK(LATE_WAIT, .cookie = 6));
	client_submit(&a, ASK(LATE_WAIT, .cookie = 7));
	expect(&c, 5, 0);
	assert_int_equal(late.n, 4);
	assert_false(late_has(4) || late_has(6));
	late_end(1, 0, 0);
	expect(&c, 1, 0);
	assert_int_equal(late.n, 4);
	late_end(2, 0, 0);
	expect(&c, 2, 0);
	assert_true(late_has(4) && late_has(6));
	/* the first of those that wait goes away: the other one's turn comes all the same */
	client_submit(&c, ASK(LATE_WAIT, .cookie = 8));
	bed_run(e);
	client_submit(&d, ASK(LATE_WAIT, .cookie = 9));
	bed_run(e);
	rgate_seat_remove(c.seat);
	bed_run(e);
	assert_true(late_has(9));
	client_close(&c);
	rgate_seat_remove(d.seat);
	bed_run(e);
	client_close(&d);
	assert_int_equal(stats().users, 2);
	late_end(7, 0, 0);
	expect(&a, 7, 0);
}

/* Another node's guest has no say about the limits of a user who is here, but where nobody has. */
static void modest(void **state)
{
	struct rgate_limits all, less;
	struct rgate_seat_opts here, guest;
	static struct client c, d;

	(void)state;
	rgate_limits_init(&all);
	rgate_limits_init(&less);
	less.classes = 1U << RGATE_CLASS_NORMAL;
	here = limited(6, &all);
	guest = limited(6, &less);
	guest.modest = true;
	assert_int_equal(client_open(&c, e, &here), 0);
	assert_int_equal(client_open(&d, e, &guest), 0);
	value_of(&c, ASK(RGATE_REQ_NOP, .cls = RGATE_CLASS_URGENT), 0);
	/* limits that are set later hold, although a guest comes right then */
	rgate_seat_remove(d.seat);
	client_close(&d);
	bed_run(e);
	assert_int_equal(rgate_engine_limits(e, 6, &less), 0);
	assert_int_equal(client_open(&d, e, &guest), 0);
	value_of(&c, ASK(RGATE_REQ_NOP, .cls = RGATE_CLASS_URGENT), -EACCES);
	rgate_seat_remove(c.seat);
	rgate_seat_remove(d.seat);
	client_close(&c);
	client_close(&d);
	bed_run(e);
	/* Guests alone have theirs, until the user himself comes. */
	assert_int_equal(client_open(&d, e, &guest), 0);
	value_of(&d, ASK(RGATE_REQ_NOP, .cls = RGATE_CLASS_URGENT), -EACCES);
	assert_int_equal(client_open(&c, e, &here), 0);
	value_of(&d, ASK(RGATE_REQ_NOP, .cls = RGATE_CLASS_URGENT), 0);
	rgate_seat_remove(c.seat);
	rgate_seat_remove(d.seat);
	client_close(&c);
	client_close(&d);
	bed_run(e);
}

/* Whose session came first goes on first, also when another one's request made the room. */
static void in_order(void **state)
{
	struct rgate_limits lim;
	struct rgate_seat_opts o;
	static struct client c, d;

	(void)state;
	rgate_limits_init(&lim);
	lim.requests = 1;
	o = limited(5, &lim);
	assert_int_equal(client_open(&c, e, &o), 0);
	assert_int_equal(client_open(&d, e, &o), 0);
	client_submit(&c, ASK(LATE_WAIT, .cookie = 1));
	bed_run(e);
	client_submit(&d, ASK(LATE_WAIT, .cookie = 2));
	bed_run(e);
	client_submit(&c, ASK(LATE_WAIT, .cookie = 3));
	bed_run(e);
	late_end(1, 0, 0);
	expect(&c, 1, 0);
	assert_true(late_has(2) && !late_has(3));
	late_end(2, 0, 0);
	expect(&d, 2, 0);
	assert_true(late_has(3));
	late_end(3, 0, 0);
	expect(&c, 3, 0);
	rgate_seat_remove(c.seat);
	rgate_seat_remove(d.seat);
	bed_run(e);
	client_close(&c);
	client_close(&d);
}

/* Where things are in an area is what clients of all versions reckon by themselves. */
static void layout(void **state)
{
	static const struct {
		uint32_t requests, completions;
		uint64_t req_credits, completed, client, comp_credits, requested, len;
	} areas[] = {
		{ 64, 64, 192, 256, 4096, 4160, 4224, 12288 },
		{ 64, 128, 192, 256, 8192, 8256, 8320, 16384 },
		{ 4096, 64, 192, 1216, 4096, 4160, 4224, 270336 },
		{ 65536, 65536, 192, 16576, 2117632, 2117696, 2134080, 6332416 },
	};
	struct rgate_area area;
	unsigned int i;
	int fd;

	(void)state;
	if (getpagesize() != 4096)
		unit_skip("areas begin at pages, which are larger here");
	for (i = 0; i < ARRAY_LEN(areas); i++) {
		assert_int_equal(rgate_area_create(&area, areas[i].requests, areas[i].completions,
						   0, 1, &fd), 0);
		assert_int_equal(area.head->server_off, 128);
		assert_int_equal(area.head->req_credits_off, areas[i].req_credits);
		assert_int_equal(area.head->completions_off, areas[i].completed);
		assert_int_equal(area.head->client_off, areas[i].client);
		assert_int_equal(area.head->comp_credits_off, areas[i].comp_credits);
		assert_int_equal(area.head->requests_off, areas[i].requested);
		assert_int_equal(area.head->area_len, areas[i].len);
		assert_int_equal(area.len, areas[i].len);
		rgate_area_unmap(&area);
		close(fd);
	}
}

/* The head of an area is the engine's word: one that does not fit what was asked for is none. */
static void heads(void **state)
{
	static const struct {
		size_t at, len;
		int err;
	} fields[] = {
#define FIELD(f, err) { offsetof(struct rgate_req_head, f), \
			sizeof(((struct rgate_req_head *)NULL)->f), err }
		FIELD(magic, -EPROTO), FIELD(version, -EPROTONOSUPPORT),
		FIELD(features, -EPROTONOSUPPORT), FIELD(requests, -EPROTO),
		FIELD(completions, -EPROTO), FIELD(batch, -EPROTO), FIELD(area_len, -EPROTO),
		FIELD(mem_len, -EPROTO), FIELD(server_off, -EPROTO), FIELD(client_off, -EPROTO),
		FIELD(req_credits_off, -EPROTO), FIELD(comp_credits_off, -EPROTO),
		FIELD(requests_off, -EPROTO), FIELD(completions_off, -EPROTO),
	};
	struct rgate_area own, other;
	struct rgate_req_head was;
	unsigned int i, maps;
	int fd;

	(void)state;
	assert_int_equal(rgate_area_create(&own, 64, 128, 4096, 1, &fd), 0);
	was = *own.head;
	maps = unit_mappings("memfd:ringgate-requests");
	for (i = 0; i < ARRAY_LEN(fields); i++) {
		((unsigned char *)own.head)[fields[i].at] ^= 1;
		assert_int_equal(rgate_area_map(&other, fd, 64, 128, 4096), fields[i].err);
		*own.head = was;
	}
	/* A longer head has more at its end, a shorter one less than there must be. */
	own.head->head_size = sizeof(was) + 8;
	assert_int_equal(rgate_area_map(&other, fd, 64, 128, 4096), 0);
	rgate_area_unmap(&other);
	own.head->head_size = sizeof(was) - 8;
	assert_int_equal(rgate_area_map(&other, fd, 64, 128, 4096), -EPROTO);
	*own.head = was;
	assert_int_equal(rgate_area_map(&other, fd, 64, 128, 0), -EPROTO);
	assert_int_equal(rgate_area_map(&other, fd, 128, 64, 4096), -EPROTO);
	assert_int_equal(rgate_area_map(&other, fd, 64, 1024, 4096), -EPROTO);
	assert_int_equal(rgate_area_map(&other, fd, 63, 128, 4096), -EPROTO);
	assert_int_equal(rgate_area_map(&other, fd, 64, 0, 4096), -EPROTO);
	assert_int_equal(unit_mappings("memfd:ringgate-requests"), maps);
	assert_int_equal(rgate_area_map(&other, fd, 64, 128, 4096), 0);
	rgate_area_unmap(&other);
	rgate_area_unmap(&own);
	close(fd);
	assert_int_equal(rgate_area_map(&other, fd, 64, 128, 4096), -EBADF);
}

/* A client with more places than one turn takes, and always with more requests than that */
static void big(struct client *c, uid_t uid)
{
	const struct rgate_seat_opts o = RGATE_OPTS(rgate_seat_opts, .uid = uid, .requests = 256,
						    .completions = 256);

	assert_int_equal(client_open(c, e, &o), 0);
}

static void fill(struct client *c, unsigned int cls)
{
	while (c->submitted - c->completed < 200)
		client_submit(c, ASK(RGATE_REQ_NOP, .cls = (uint8_t)cls));
}

static uint64_t collect(struct client *c)
{
	struct rgate_completion done;
	uint64_t n = 0;

	while (client_poll(c, &done))
		n++;
	return n;
}

static void leaves(struct client *c)
{
	rgate_seat_remove(c->seat);
	client_close(c);
}

/* Users have the same, whatever the number of their sessions. */
static void fair(void **state)
{
	static struct client many[8], alone;
	uint64_t one = 0, other = 0;
	unsigned int i, turn;

	(void)state;
	big(&alone, 4);
	for (i = 0; i < ARRAY_LEN(many); i++)
		big(&many[i], 3);
	for (turn = 0; turn < 200; turn++) {
		for (i = 0; i < ARRAY_LEN(many); i++)
			fill(&many[i], RGATE_CLASS_NORMAL);
		fill(&alone, RGATE_CLASS_NORMAL);
		rgate_engine_turn(e);
		for (i = 0; i < ARRAY_LEN(many); i++)
			other += collect(&many[i]);
		one += collect(&alone);
	}
	assert_true(one > 200 * 32);
	assert_in_range(other * 100, one * 90, one * 110);
	for (i = 0; i < ARRAY_LEN(many); i++) {
		/* none starves */
		assert_true(many[i].completed * ARRAY_LEN(many) * 2 > other);
		leaves(&many[i]);
	}
	leaves(&alone);
}

/* Of one user: urgent ones first, and others all the same */
static void classes(void **state)
{
	static struct client bulk, normal, urgent;
	uint64_t n[3] = { 0, 0, 0 };
	unsigned int turn;

	(void)state;
	big(&bulk, 3);
	big(&normal, 3);
	big(&urgent, 3);
	for (turn = 0; turn < 100; turn++) {
		fill(&bulk, RGATE_CLASS_BULK);
		fill(&normal, RGATE_CLASS_NORMAL);
		fill(&urgent, RGATE_CLASS_URGENT);
		rgate_engine_turn(e);
		n[0] += collect(&bulk);
		n[1] += collect(&normal);
		n[2] += collect(&urgent);
	}
	assert_true(n[2] > n[1] && n[1] > n[0] * 2);
	assert_true(n[0] >= 100);
	leaves(&bulk);
	leaves(&normal);
	leaves(&urgent);
}

/* Once for each sleep, and not before what is wanted is there */
static void woken(void **state)
{
	struct epoll_event ev;

	(void)state;
	client_submit(&a, ASK(RGATE_REQ_NOP, .cookie = 1));
	expect(&a, 1, 0);
	assert_int_equal(epoll_wait(a.wait, &ev, 1, 0), 0);
	__atomic_store_n(&a.area.client->want, 3, __ATOMIC_SEQ_CST);
	client_submit(&a, ASK(RGATE_REQ_NOP, .cookie = 2));
	expect(&a, 2, 0);
	assert_int_equal(epoll_wait(a.wait, &ev, 1, 0), 0);
	client_submit(&a, ASK(RGATE_REQ_NOP, .cookie = 3));
	expect(&a, 3, 0);
	assert_int_equal(epoll_wait(a.wait, &ev, 1, 0), 1);
	assert_int_equal(epoll_wait(a.wait, &ev, 1, 0), 0);	/* an edge is taken by that */
	client_submit(&a, ASK(RGATE_REQ_NOP, .cookie = 4));
	expect(&a, 4, 0);
	assert_int_equal(epoll_wait(a.wait, &ev, 1, 0), 0);
	assert_int_equal(stats().wakeups, 1);
}

static void options(void **state)
{
	struct rgate_engine_opts eo = RGATE_OPTS(rgate_engine_opts, .flags = 2);
	struct rgate_req_service s = late_service;
	struct rgate_seat_opts o = RGATE_OPTS(rgate_seat_opts, .requests = 64,
					      .completions = 64);
	struct rgate_engine *other;
	struct client none;

	(void)state;
	assert_int_equal(rgate_engine_create(&other, &eo), -EINVAL);
	eo = RGATE_OPTS(rgate_engine_opts, .flags = RGATE_ENGINE_LOOP,
			.spin_us = RGATE_SPIN_MOST + 1);
	assert_int_equal(rgate_engine_create(&other, &eo), -EINVAL);
	eo.spin_us = 0;
	assert_int_equal(rgate_engine_create(&other, &eo), 0);
	assert_int_equal(rgate_engine_add(other, &s, NULL), 0);
	assert_int_equal(rgate_engine_add(other, &s, NULL), -EEXIST);
	s.number = RGATE_REQ_SERVICES;
	assert_int_equal(rgate_engine_add(other, &s, NULL), -EINVAL);
	s.number = 17;
	s.nops = RGATE_REQ_OPS + 1;
	assert_int_equal(rgate_engine_add(other, &s, NULL), -EINVAL);
	s.nops = 0;
	assert_int_equal(rgate_engine_add(other, &s, NULL), -EINVAL);
	rgate_engine_destroy(other);
	rgate_engine_destroy(NULL);
	s.nops = 1;
	assert_int_equal(rgate_engine_add(e, &s, NULL), -EBUSY);

	o.requests = 32;
	assert_int_equal(client_open(&none, e, &o), -EINVAL);
	o.requests = 65;
	assert_int_equal(client_open(&none, e, &o), -EINVAL);
	o.requests = 64;
	o.completions = RGATE_REQ_PLACES_MAX * 2;
	assert_int_equal(client_open(&none, e, &o), -EINVAL);
	o.completions = 64;
	o.memory = 1;
	assert_int_equal(client_open(&none, e, &o), -EINVAL);
}

/* Memory that the owner of the engine brings */
static void own_memory(void **state)
{
	const size_t page = (size_t)getpagesize();
	int fd = rgate_area_memfd("test", 2 * page);
	unsigned char *at;
	struct rgate_seat_opts o;
	static struct client c;

	(void)state;
	assert_true(fd >= 0);
	at = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	assert_ptr_not_equal(at, MAP_FAILED);
	o = RGATE_OPTS(rgate_seat_opts, .uid = 9, .requests = 64, .completions = 64,
		       .memory = page, .mem_addr = at + page, .mem_fd = fd, .mem_off = page);
	assert_int_equal(client_open(&c, e, &o), 0);
	c.mem[3] = 0x77;
	assert_int_equal(at[page + 3], 0x77);
	client_submit(&c, ASK(LATE_MEM, .cookie = 1, .off = 3, .len = 1));
	bed_run(e);
	assert_ptr_equal(rgate_req_mem(late.held[0]), at + page + 3);
	late_end(1, 0, 0);
	expect(&c, 1, 0);
	rgate_seat_remove(c.seat);
	bed_run(e);
	client_close(&c);
	assert_int_equal(at[page + 3], 0x77);	/* not unmapped */
	munmap(at, 2 * page);
	close(fd);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(gone), TEST(handles), TEST(limits), TEST(modest), TEST(in_order),
		TEST(layout), TEST(heads), TEST(fair), TEST(classes), TEST(woken), TEST(options),
		TEST(own_memory),
	};

	return unit_run(__FILE__, tests, ARRAY_LEN(tests));
}
