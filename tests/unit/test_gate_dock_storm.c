// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * A program of one node has a connection at another one, with many requests under way that send and
 * receive more than a message has room for, while the connection between the nodes comes and goes
 * with what is under way on it, writes are late, and there is no room for messages or writes: what
 * comes out of each end is what went in at the other, once and in order.
 */
#include "two_bed.h"

#include <errno.h>
#include <sys/socket.h>
#include <string.h>
#include <unistd.h>

#define AT_ONCE	6U	/* requests each way */
#define MOST	30000U	/* bytes of one */
#define SENDS	100U	/* cookies */
#define GETS	200U

static uint8_t byte_at(uint64_t off)
{
	return (uint8_t)((off * 0x9e3779b97f4a7c15ULL) >> 56);
}

static int setup(void **state)
{
	const struct rgate_seat_opts so = RGATE_OPTS(rgate_seat_opts, .uid = ME, .requests = 256,
						     .completions = 256,
						     .memory = 2 * AT_ONCE * 32768U);

	(void)state;
	two_make(&so);
	return 0;
}

static int teardown(void **state)
{
	unsigned int i;

	(void)state;
	two_free();
	for (i = 0; i < 2; i++) {
		assert_int_equal(two_hub[i].node.stage.lent, 0);
		assert_int_equal(node_shares(&two_hub[i].node), 0);
		assert_int_equal(two_peer[i].misplaced, 0);
	}
	return 0;
}

/* ---- The program ---- */

static uint32_t connected(int *fd)
{
	struct rgate_socket_addr to;
	uint16_t port;
	int l = raw_listen(4, &port);
	uint32_t h;

	TWO_SUBMIT(OPEN, 1, .a0 = RGATE_SOCKET_A0(2, RGATE_SOCKET_STREAM));
	h = (uint32_t)two_wait_for(1).value;
	to = serves_loopback(port);
	memcpy(two_prog.mem, &to, sizeof(to));
	TWO_SUBMIT(CONNECT, 1, .handle = h, .len = GATE_ADDR);
	(void)two_wait_for(1);
	*fd = raw_accept(l);
	close(l);
	return h;
}

/* Each way: what was asked for, and what came of it, in that order */
static struct way {
	uint32_t begun, over;		/* requests; those that are under way end in order */
	uint64_t asked, done;		/* bytes: of a send that it names */
	uint32_t len[AT_ONCE];
} out, in;

static unsigned char *memory_of(const struct way *w, uint32_t i)
{
	return two_prog.mem + (size_t)((w == &in ? AT_ONCE : 0) + i % AT_ONCE) * 32768;
}

static void begin_some(uint32_t h, uint64_t all)
{
	uint32_t len = 1 + (uint32_t)unit_random(&two_rnd) % MOST, b;
	unsigned char *mem = memory_of(&out, out.begun);

	/* One send at a time: if it sends less, the next one has other bytes. */
	if (out.asked < all && out.begun == out.over) {
		len = out.asked + len > all ? (uint32_t)(all - out.asked) : len;
		for (b = 0; b < len; b++)
			mem[b] = byte_at(out.asked + b);
		out.len[out.begun % AT_ONCE] = len;
		TWO_SUBMIT(SEND, SENDS + out.begun++ % AT_ONCE, .handle = h,
			   .off = (uint64_t)(mem - two_prog.mem), .len = len);
	}
	if (in.begun - in.over < AT_ONCE && in.done < all) {
		mem = memory_of(&in, in.begun);
		memset(mem, 0, MOST);
		len = 1 + (uint32_t)unit_random(&two_rnd) % MOST;
		TWO_SUBMIT(RECV, GETS + in.begun++ % AT_ONCE, .handle = h,
			   .off = (uint64_t)(mem - two_prog.mem), .len = len);
	}
}

/* Receives of a stream end at the node in the order in which they began, and may be heard of in
 * another one: their bytes are looked at in theirs.
 */
static int came[AT_ONCE];

static void look(uint64_t all)
{
	const unsigned char *mem;
	int b;

	while (in.over < in.begun && came[in.over % AT_ONCE] >= 0) {
		mem = memory_of(&in, in.over);
		for (b = 0; b < came[in.over % AT_ONCE]; b++)
			assert_int_equal(mem[b], byte_at(in.done + (uint64_t)b));
		in.done += (uint64_t)came[in.over % AT_ONCE];
		came[in.over++ % AT_ONCE] = -1;
	}
	assert_true(in.done <= all);
}

static void take(uint64_t all)
{
	struct rgate_completion done;

	while (client_poll(&two_prog, &done)) {
		assert_true(done.result >= 0);
		if (done.cookie >= GETS) {
			came[done.cookie - GETS] = done.result;
			continue;
		}
		assert_in_range(done.result, 1, out.len[out.over % AT_ONCE]);
		out.over++;
		out.asked += (uint64_t)done.result;
	}
	look(all);
}

/* The other end of the connection: what it has got, and what it has said */
static void other_end(int fd, uint64_t all)
{
	static unsigned char bytes[MOST];
	static uint64_t said;
	ssize_t n;
	ssize_t b;

	if (!in.begun)
		said = 0;
	n = recv(fd, bytes, 1 + unit_random(&two_rnd) % MOST, MSG_DONTWAIT);
	for (b = 0; b < n; b++)
		assert_int_equal(bytes[b], byte_at(out.done + (uint64_t)b));
	if (n > 0)
		out.done += (uint64_t)n;
	n = (ssize_t)(1 + unit_random(&two_rnd) % MOST);
	if (said + (uint64_t)n > all)
		n = (ssize_t)(all - said);
	for (b = 0; b < n; b++)
		bytes[b] = byte_at(said + (uint64_t)b);
	n = n ? send(fd, bytes, (size_t)n, MSG_DONTWAIT | MSG_NOSIGNAL) : 0;
	if (n > 0)
		said += (uint64_t)n;
	if (said == all)
		(void)shutdown(fd, SHUT_WR);
}

static void disturb(void)
{
	unsigned int i;

	if (two_chance(60) && two_peer[0].up)
		two_link_is(false);
	else if (two_chance(4) && !two_peer[0].up)
		two_link_is(true);
	if (two_chance(10))
		peer_say_full(&two_peer[TWO_SERVES], two_chance(3));
	if (two_chance(10))
		peer_say_most(&two_peer[TWO_SERVES], (unsigned int)unit_random(&two_rnd) % 6);
	for (i = 0; i < 2; i++) {
		if (two_chance(20))
			__atomic_store_n(&two_peer[i].full, two_chance(3), __ATOMIC_RELAXED);
		if (two_chance(10))
			__atomic_store_n(&two_peer[i].held, two_chance(2), __ATOMIC_RELAXED);
		if (two_chance(40))
			two_hub[i].node.no_share = two_chance(3);
	}
}

static void storm(void **state)
{
	const uint64_t all = unit_rounds(400) * 20000ULL;
	const uint64_t until = unit_now_ns() + 100 * 1000000000ULL;
	unsigned int i;
	uint32_t h;
	int fd;

	(void)state;
	two_rnd = 4711;
	memset(&out, 0, sizeof(out));
	memset(&in, 0, sizeof(in));
	memset(came, 0xff, sizeof(came));
	h = connected(&fd);
	while (out.done < all || in.done < all) {
		assert_true(unit_now_ns() < until);
		begin_some(h, all);
		disturb();
		two_turn();
		two_carry((unsigned int)unit_random(&two_rnd) % 8);
		other_end(fd, all);
		take(all);
	}
	for (i = 0; i < 2; i++) {
		assert_true(two_peer[i].placed > unit_rounds(400) / 16);
		two_peer[i].full = two_peer[i].held = false;
	}
	peer_say_full(&two_peer[TWO_SERVES], false);
	peer_say_most(&two_peer[TWO_SERVES], 0);
	if (!two_peer[0].up)
		two_link_is(true);
	rgate_seat_remove(two_prog.seat);
	while (serves_sockets()) {
		assert_true(unit_now_ns() < until);
		two_turn();
		two_carry(8);
	}
	close(fd);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test_setup_teardown(storm, setup, teardown),
};

UNIT_MAIN(tests)
