// SPDX-License-Identifier: MIT OR GPL-2.0
/* Processes that share a ring which the gateway fills, and one of them is killed. */
#include "plane.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

static const struct rgate_consumer_opts shared = {
	.sz = sizeof(shared), .take = RGATE_TAKE_SHARED,
};

/* Takes 40 frames, says so, and stays until it is killed. */
static int child_hold(int sock, void *arg)
{
	struct rgate_consumer c;
	struct rgate_ring *ring;
	unsigned int n;

	(void)arg;
	unit_require(!rgate_ring_recv(&ring, sock));
	unit_require(!rgate_consumer_init(&c, ring, &shared));
	for (n = 0; n < 40; n++) {
		unit_require(rgate_consumer_next(&c));
		rgate_consumer_release(&c);
	}
	unit_require(write(sock, "x", 1) == 1);
	pause();
	return 1;
}

static void send_some(struct plane *p, uint64_t from, uint64_t to)
{
	for (; from < to; from++)
		assert_true(plane_send(p, 1, from, 200, true));
}

static void expect(struct compute *at, uint64_t from, uint64_t to)
{
	unsigned int flow;
	uint64_t i;

	for (; from < to; from++) {
		assert_true(plane_take(at, &flow, &i, NULL, MS));
		assert_int_equal(i, from);
	}
}

static void read_again(void **state)
{
	uint64_t batches, skipped;
	struct compute *at;
	struct plane p;
	int pid, sock;
	char x;

	(void)state;
	plane_up(&p, &(struct plane_opts){ .computes = 1, .slots = 256 });
	at = &p.at[1];
	assert_int_equal(rgate_consumer_init(&at->c, at->ring, &shared), 0);
	send_some(&p, 0, 96);
	wait_for(plane_inlet(at).stats.delivered == 96);
	pid = unit_fork(child_hold, NULL, &sock);
	assert_int_equal(rgate_ring_send(at->ring, sock), 0);
	assert_int_equal(read(sock, &x, 1), 1);
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	close(sock);
	/* the second batch again, all of it, and the ring goes round */
	expect(at, 32, 96);
	rgate_ring_orphans(at->ring, &batches, &skipped);
	assert_int_equal(batches, 1);
	assert_int_equal(skipped, 0);
	send_some(&p, 96, 480);
	expect(at, 96, 480);
	plane_down(&p);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(read_again),
};

UNIT_MAIN(tests)
