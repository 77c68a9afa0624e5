// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * What the library's sockets and their service ask the system for is refused, each call in turn,
 * in the thread that calls and in the engine's: the error comes through, nothing is left
 * behind, and the next try works.
 */
#include "req_bed.h"
#include "refuse.h"

#include <stdio.h>

#include <ringgate/rgate_socket.h>

static bool mine;		/* calls of all threads fail; atomic */

static bool refuse_mine(void)
{
	return __atomic_load_n(&mine, __ATOMIC_ACQUIRE);
}

/* It was made: what ends it may not fail. */
static void no_more(void)
{
	__atomic_store_n(&mine, false, __ATOMIC_RELEASE);
}

static struct rgate_sockets *kept;

static int make_set(struct rgate_sockets **set)
{
	const struct rgate_sockets_opts o = RGATE_OPTS(rgate_sockets_opts, .requests = 16,
		.where = RGATE_SESSION_PROCESS, .memory = 1U << 16);

	return rgate_sockets_open(set, &o);
}

/* The first of this process: its engine, its services, the session */
static int whole(void)
{
	struct rgate_sockets *set;
	int err = make_set(&set);

	no_more();
	if (!err)
		rgate_sockets_close(set);
	return err;
}

/* Likewise, and a first name, which makes a thread */
static int name(void)
{
	struct rgate_socket_query q = RGATE_OPTS(rgate_socket_query, .name = "::1",
		.flags = RGATE_SOCKET_RESOLVE_NUMERIC, .len = 64);
	struct rgate_sockets *set;
	int n, err = make_set(&set);

	if (err) {
		no_more();
		return err;
	}
	q.buf = rgate_sockets_memory(set, NULL);
	n = rgate_sockets_resolve(set, &q, NULL);
	no_more();
	rgate_sockets_close(set);
	return n == 1 ? 0 : n;
}

static int one(uint32_t family, uint32_t type)
{
	struct rgate_socket *s;
	int err = rgate_socket_open(kept, &s, family, type);

	no_more();
	if (!err)
		rgate_socket_close(s);
	return err;
}

static int stream(void)
{
	return one(RGATE_SOCKET_INET, RGATE_SOCKET_STREAM);
}

static int datagrams(void)
{
	return one(RGATE_SOCKET_INET6, RGATE_SOCKET_DGRAM);
}

/* A connection, accepted: each of its sockets may be the one that cannot be */
static int both_ends(void)
{
	struct rgate_socket_addr a = {
		.family = RGATE_SOCKET_INET, .addr = { 127, 0, 0, 1 },
	};
	struct rgate_socket *l, *c, *s;
	int err;

	err = rgate_socket_open(kept, &l, RGATE_SOCKET_INET, RGATE_SOCKET_STREAM);
	if (err)
		return err;
	err = rgate_socket_bind(l, &a);
	err = err ? err : rgate_socket_listen(l, 4);
	err = err ? err : rgate_socket_name(l, &a);
	err = err ? err : rgate_socket_open(kept, &c, RGATE_SOCKET_INET, RGATE_SOCKET_STREAM);
	if (err)
		goto close_listener;
	err = rgate_socket_connect(c, &a);
	err = err ? err : rgate_socket_accept(l, &s, NULL);
	no_more();
	if (!err)
		rgate_socket_close(s);
	rgate_socket_close(c);
close_listener:
	no_more();
	rgate_socket_close(l);
	return err;
}

static const struct {
	const char *name;
	int (*make)(void);
	unsigned int least;	/* so many calls can fail */
} makers[] = {
	{ "all of it", whole, 20 },
	{ "a stream", stream, 3 },
	{ "datagrams", datagrams, 3 },
	{ "both ends of a connection", both_ends, 10 },
	{ "a name", name, 22 },
};

/* Other threads close, too: what they have is gone in a while. */
static void settles(const char *what, unsigned int n)
{
	const uint64_t end = unit_now_ns() + 20000000000ULL * unit_patience();

	while (unit_entries(what) > n && unit_now_ns() < end)
		usleep(1000);
	assert_int_equal(unit_entries(what), n);
}

static void each_call(unsigned int i)
{
	unsigned int fds, threads, n, failed = 0;
	int err, injected;

	/* what is kept of a first time is there */
	assert_int_equal(makers[i].make(), 0);
	fds = unit_entries("/proc/self/fd");
	threads = unit_entries("/proc/self/task");
	for (n = 1;; n++) {
		refuse(n);
		__atomic_store_n(&mine, true, __ATOMIC_RELEASE);
		err = makers[i].make();
		no_more();
		injected = __atomic_load_n(&refusal->injected, __ATOMIC_ACQUIRE);
		if (!injected)
			break;
		if (err != -injected)
			fail_msg("%s: %d of %s came out as %d", makers[i].name, injected,
				 refusal->where, err);
		failed++;
		settles("/proc/self/fd", fds);
		settles("/proc/self/task", threads);
	}
	assert_int_equal(err, 0);
	print_message("# %s: %u of %u calls\n", makers[i].name, failed, n - 1);
	assert_true(failed >= makers[i].least);
}

static void beginning(void **state)
{
	(void)state;
	each_call(0);
	each_call(4);
}

static void sockets(void **state)
{
	unsigned int i;
	int in;

	(void)state;
	assert_int_equal(make_set(&kept), 0);
	for (i = 1; i < 4; i++)
		each_call(i);
	/* Where standard input is closed, 0 is a number as others are. */
	in = dup(STDIN_FILENO);
	assert_true(in >= 0 && !close(STDIN_FILENO));
	each_call(1);
	assert_int_equal(dup2(in, STDIN_FILENO), STDIN_FILENO);
	close(in);
	rgate_sockets_close(kept);
}

/* @polls: that wait for nothing, each of which has a request of the engine's; closed, they end */
static void close_with(struct rgate_sockets *set, unsigned int polls, unsigned int nth)
{
	struct rgate_socket_end end = { .sz = sizeof(end) };
	struct rgate_socket_addr a = { .family = RGATE_SOCKET_INET, .addr = { 127, 0, 0, 1 } };
	struct rgate_socket_io io = {
		.sz = sizeof(io), .what = RGATE_SOCKET_DO_POLL, .events = RGATE_SOCKET_IN,
	};
	struct rgate_socket *s, *other;

	assert_int_equal(rgate_socket_open(set, &other, RGATE_SOCKET_INET, RGATE_SOCKET_DGRAM), 0);
	assert_int_equal(rgate_socket_open(set, &s, RGATE_SOCKET_INET, RGATE_SOCKET_DGRAM), 0);
	assert_int_equal(rgate_socket_bind(s, &a), 0);
	for (; io.cookie < polls; io.cookie++)
		assert_int_equal(rgate_socket_begin(io.cookie ? other : s, &io), 0);
	refuse(nth);
	__atomic_store_n(&mine, true, __ATOMIC_RELEASE);
	assert_int_equal(rgate_socket_close(s), 0);
	no_more();
	assert_int_equal(rgate_socket_close(other), 0);
	assert_int_equal(rgate_sockets_next(set, &end, 0), 0);
}

/* Who closes is not refused for want of memory, and what waits at the socket ends. */
static void closing(void **state)
{
	const struct rgate_sockets_opts o = RGATE_OPTS(rgate_sockets_opts, .requests = 256,
		.where = RGATE_SESSION_PROCESS, .memory = 1U << 16);
	unsigned int fds, polls, nth, injected = 0;
	struct rgate_sockets *set;

	(void)state;
	assert_int_equal(rgate_sockets_open(&set, &o), 0);
	fds = unit_entries("/proc/self/fd");
	for (polls = 1; polls < 200; polls++)
		for (nth = 1; nth <= 2; nth++) {
			close_with(set, polls, nth);
			injected += __atomic_load_n(&refusal->injected, __ATOMIC_ACQUIRE) == ENOMEM;
		}
	settles("/proc/self/fd", fds);
	print_message("# %u of %u had no memory\n", injected, 2 * (polls - 1));
	assert_true(injected >= polls);
	rgate_sockets_close(set);
}

static int setup(void **state)
{
	(void)state;
	refuse_setup();
	return 0;
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test_setup(beginning, setup),
	cmocka_unit_test(sockets),
	cmocka_unit_test(closing),
};

UNIT_MAIN(tests)
