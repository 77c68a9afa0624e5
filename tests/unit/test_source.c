// SPDX-License-Identifier: MIT OR GPL-2.0
/* What every source does alike: its options, its rings, its socket, its end. */
#include "unit.h"
#include "ended.h"
#include "source.h"

#include <errno.h>
#include <netinet/in.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static int get(struct rgate_source_opts o)
{
	struct rgate_source_opts out;

	o.sz = sizeof(o);
	return rgate_source_opts_get(&out, &o);
}

static void options(void **state)
{
	static const struct rgate_source_opts good[] = {
		{ .batch = 1 }, { .batch = RGATE_SOURCE_BATCH_MAX }, { .promisc = 1 },
		{ .driven = 1 }, { .cpu_plus1 = 1 }, { .cpu_plus1 = CPU_SETSIZE },
		{ .rcvbuf = INT32_MAX }, { .busy_poll_us = INT32_MAX },
	};
	static const struct rgate_source_opts bad[] = {
		{ .batch = RGATE_SOURCE_BATCH_MAX + 1 }, { .promisc = 2 }, { .driven = 2 },
		{ .cpu_plus1 = -1 }, { .cpu_plus1 = CPU_SETSIZE + 1 },
		{ .driven = 1, .cpu_plus1 = 1 }, { .rcvbuf = (uint32_t)INT32_MAX + 1 },
		{ .busy_poll_us = (uint32_t)INT32_MAX + 1 },
	};
	struct rgate_source_opts o = { .batch = 7 };
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_LEN(good); i++)
		assert_int_equal(get(good[i]), 0);
	for (i = 0; i < ARRAY_LEN(bad); i++)
		assert_int_equal(get(bad[i]), -EINVAL);
	assert_int_equal(rgate_source_opts_get(&o, NULL), 0);
	assert_int_equal(o.batch, RGATE_SOURCE_BATCH);
	o.sz = 3;
	assert_int_equal(rgate_source_opts_get(&o, &o), -EINVAL);
}

static void rings(void **state)
{
	struct rgate_ring *all[RGATE_ATT_RINGS_MAX + 1];
	struct rgate_ring *drop = unit_ring(64, 256, 0, RGATE_POLICY_DROP);
	struct rgate_ring *pass = unit_ring(64, 256, 0, RGATE_POLICY_PASS), *far;
	unsigned int i;
	int sv[2];

	(void)state;
	for (i = 0; i <= RGATE_ATT_RINGS_MAX; i++)
		all[i] = drop;
	assert_int_equal(rgate_source_check_rings(all, 0, false), -EINVAL);
	assert_int_equal(rgate_source_check_rings(all, 1, true), 0);
	assert_int_equal(rgate_source_check_rings(all, RGATE_ATT_RINGS_MAX, true), 0);
	assert_int_equal(rgate_source_check_rings(all, RGATE_ATT_RINGS_MAX + 1, true), -EINVAL);
	for (i = 0; i < 3; i += 2) {
		all[i] = pass;
		assert_int_equal(rgate_source_check_rings(all, 3, true), -EOPNOTSUPP);
		assert_int_equal(rgate_source_check_rings(all, 3, false), 0);
		all[i] = drop;
	}
	/* one of another process */
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sv), 0);
	assert_int_equal(rgate_ring_send(drop, sv[0]), 0);
	assert_int_equal(rgate_ring_recv(&far, sv[1]), 0);
	all[2] = far;
	assert_int_equal(rgate_source_check_rings(all, 3, false), -EOPNOTSUPP);
	assert_int_equal(rgate_source_check_rings(all, 2, false), 0);
	close(sv[0]);
	close(sv[1]);
	rgate_ring_close(far);
	rgate_ring_close(pass);
	rgate_ring_close(drop);
}

static int option_of(int sock, int name)
{
	socklen_t len = sizeof(int);
	int v = -1;

	assert_int_equal(getsockopt(sock, SOL_SOCKET, name, &v, &len), 0);
	return v;
}

static void sockets(void **state)
{
	const int sock = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	struct rgate_source_opts o = { .rcvbuf = 0 };
	int buffer, err;

	(void)state;
	assert_true(sock >= 0);
	buffer = option_of(sock, SO_RCVBUF);
	/* nothing that is not asked for */
	assert_int_equal(rgate_source_set_sock(sock, &o), 0);
	assert_int_equal(option_of(sock, SO_RCVBUF), buffer);
	/* The kernel doubles it, for what it needs itself. */
	o.rcvbuf = 30000;
	assert_int_equal(rgate_source_set_sock(sock, &o), 0);
	assert_int_equal(option_of(sock, SO_RCVBUF), 60000);
	o.busy_poll_us = 5;
	/* Not everybody may have that, nor has every kernel it. */
	err = rgate_source_set_sock(sock, &o);
	if (err)
		assert_true(err == -EPERM || err == -ENOPROTOOPT);
	else
		assert_int_equal(option_of(sock, SO_BUSY_POLL), 5);
	close(sock);
	assert_int_equal(rgate_source_set_sock(-1, &o), -EBADF);
	o.rcvbuf = 0;
	assert_int_equal(rgate_source_set_sock(-1, &o), -EBADF);
	o.busy_poll_us = 0;
	assert_int_equal(rgate_source_set_sock(-1, &o), 0);
}

/* The address is cut where there is no room, and its length is told. */
static void addresses(void **state)
{
	struct sockaddr_in a = { .sin_family = AF_INET,
				 .sin_addr.s_addr = htonl(INADDR_LOOPBACK) }, is;
	const unsigned int fds = unit_entries("/proc/self/fd");
	struct rgate_ring *ring = unit_ring(64, 256, 0, RGATE_POLICY_DROP);
	const struct rgate_source_opts o = RGATE_OPTS(rgate_source_opts, .driven = 1);
	struct rgate_source_stats st;
	struct rgate_source *src;
	socklen_t len = 4;

	(void)state;
	assert_int_equal(rgate_source_start_udp(&src, &ring, 1, (struct sockaddr *)&a, sizeof(a),
						&o), 0);
	memset(&is, 0xff, sizeof(is));
	assert_int_equal(rgate_source_addr(src, (struct sockaddr *)&is, &len), 0);
	assert_int_equal(len, sizeof(a));
	assert_int_equal(is.sin_family, AF_INET);
	assert_int_equal(is.sin_addr.s_addr, 0xffffffff);
	assert_int_equal(rgate_source_addr(src, (struct sockaddr *)&is, &len), 0);
	assert_int_equal(is.sin_addr.s_addr, htonl(INADDR_LOOPBACK));
	assert_true(is.sin_port);
	assert_true(rgate_source_socket(src) >= 0);
	memset(&st, 0xff, sizeof(st));
	assert_int_equal(rgate_source_stats(src, &st), 0);
	assert_int_equal(st.received, 0);
	assert_int_equal(st.bytes, 0);
	assert_int_equal(st.syscalls, 0);
	assert_int_equal(st.ring_drops, 0);
	assert_int_equal(st.errors, 0);
	assert_int_equal(st.socket_drops, 0);
	assert_int_equal(source_ended(src), 0);
	rgate_source_stop(NULL);
	rgate_ring_close(ring);
	assert_int_equal(unit_entries("/proc/self/fd"), fds);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(options), cmocka_unit_test(rings), cmocka_unit_test(sockets),
	cmocka_unit_test(addresses),
};

UNIT_MAIN_ALONE(tests)
