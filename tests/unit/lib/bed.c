// SPDX-License-Identifier: MIT OR GPL-2.0
#include "bed.h"

#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

const struct rgate_consumer_opts bed_shared = {
	.sz = sizeof(bed_shared), .take = RGATE_TAKE_SHARED,
};

const struct rgate_consumer_opts bed_skipping = {
	.sz = sizeof(bed_skipping), .take = RGATE_TAKE_SHARED, .orphans = RGATE_ORPHAN_SKIP,
};

void bed_put(struct bed *b, unsigned int n)
{
	while (n--)
		assert_int_equal(unit_put(&b->p, b->in++, 64), 0);
	rgate_producer_flush(&b->p);
}

void bed_up(struct bed *b, uint32_t slots, unsigned int n,
	    const struct rgate_consumer_opts *o)
{
	memset(b, 0, sizeof(*b));
	b->ring = unit_ring(slots, 256, 0, RGATE_POLICY_DROP);
	assert_int_equal(rgate_producer_init(&b->p, b->ring), 0);
	assert_int_equal(rgate_consumer_init(&b->c, b->ring, o), 0);
	bed_put(b, n);
}

void bed_down(struct bed *b)
{
	rgate_producer_fini(&b->p);
	rgate_ring_close(b->ring);
}

uint64_t bed_take(struct rgate_consumer *c)
{
	const struct rgate_slot *s = rgate_consumer_next(c);
	uint64_t i;

	if (!s)
		return UINT64_MAX;
	memcpy(&i, rgate_slot_data(s), sizeof(i));
	unit_require(!unit_pattern_check(rgate_slot_data(s), i, s->len));
	rgate_consumer_release(c);
	return i;
}

void bed_expect(struct bed *b, uint64_t from, uint64_t to)
{
	for (; from < to; from++)
		assert_int_equal(bed_take(&b->c), from);
}

void bed_round(struct bed *b)
{
	struct rgate_view v;
	uint64_t from = b->in;

	rgate_ring_view(b->ring, &v);
	bed_put(b, v.nslots);
	bed_expect(b, from, b->in);
	assert_int_equal(bed_take(&b->c), UINT64_MAX);
}

/* Takes @arg frames, says so, and stays until it is killed. */
static int child_hold(int sock, void *arg)
{
	struct rgate_consumer c;
	struct rgate_ring *ring;
	uintptr_t n;

	unit_require(!rgate_ring_recv(&ring, sock));
	unit_require(!rgate_consumer_init(&c, ring, &bed_shared));
	for (n = 0; n < (uintptr_t)arg; n++)
		unit_require(bed_take(&c) != UINT64_MAX);
	unit_require(write(sock, "x", 1) == 1);
	unit_require(read(sock, &n, 1) == 1);
	while (bed_take(&c) != UINT64_MAX)
		;
	unit_require(write(sock, "x", 1) == 1);
	pause();
	return 1;
}

int bed_hold(struct bed *b, unsigned int n, int *sock)
{
	int pid = unit_fork(child_hold, (void *)(uintptr_t)n, sock);
	char x;

	assert_int_equal(rgate_ring_send(b->ring, *sock), 0);
	assert_int_equal(read(*sock, &x, 1), 1);
	return pid;
}

void bed_kill(int pid, int sock)
{
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	close(sock);
}

void bed_hold_and_kill(struct bed *b, unsigned int n)
{
	int sock, pid = bed_hold(b, n, &sock);

	bed_kill(pid, sock);
}
