// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * Rings whose consumers are woken past the process that made them: who fills the slots writes
 * them, rings the bell, and tells the producer's process later or not at all.
 */
#include "unit.h"
#include "consumer.h"
#include "handover.h"
#include "producer.h"
#include "ring_memfd.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#define SLOTS		64U
#define SLOT_SIZE	256U

struct filler {			/* as a gateway of this machine: slots and bell, no more */
	unsigned char *slots;
	int bell;
	uint64_t head;
};

static struct rgate_ring *filled(struct filler *f, bool bell)
{
	struct rgate_ring_opts o = RGATE_OPTS(rgate_ring_opts, .slots = SLOTS,
					      .slot_size = SLOT_SIZE, .name = "bell");
	struct rgate_ring *ring;

	assert_int_equal(rgate_ring_open_filled(&ring, &o, bell), 0);
	*f = (struct filler){ rgate_ring_slots_rw(ring), rgate_ring_bell(ring), 0 };
	return ring;
}

static void put(struct filler *f, bool ring)
{
	struct rgate_slot *s = (void *)(f->slots + f->head % SLOTS * SLOT_SIZE);

	s->len = s->wire_len = 8;
	s->flags = 0;
	s->chain_cnt = 1;
	memcpy(s + 1, &f->head, sizeof(f->head));
	__atomic_store_n(&s->seq, f->head / SLOTS + 1, __ATOMIC_RELEASE);
	f->head++;
	if (ring)
		unit_require(!eventfd_write(f->bell, 1));
}

/* The handle that another process would get */
static struct rgate_ring *given(struct rgate_ring *ring)
{
	struct rgate_ring *far;
	int sv[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sv), 0);
	assert_int_equal(rgate_ring_send(ring, sv[0]), 0);
	assert_int_equal(rgate_ring_recv(&far, sv[1]), 0);
	close(sv[0]);
	close(sv[1]);
	return far;
}

static bool readable(const struct rgate_ring *ring, int ms)
{
	struct pollfd pfd = { .fd = rgate_ring_fd(ring), .events = POLLIN };

	return poll(&pfd, 1, ms) == 1;
}

struct waiter {
	struct rgate_ring *ring;
	uint64_t n, slow;
	bool by_poll;
	uint64_t took;		/* atomic */
	pthread_t thread;
};

static int sleep_once(struct waiter *w, struct rgate_consumer *c)
{
	int r;

	if (!w->by_poll)
		return rgate_consumer_wait(c, 5000);
	r = rgate_consumer_arm(c);
	if (r)
		return r;
	r = readable(w->ring, 5000);
	rgate_consumer_disarm(c);
	return r;
}

static void *take_all(void *arg)
{
	struct waiter *w = arg;
	struct rgate_consumer c;
	uint64_t i = 0, got;

	unit_require(!rgate_consumer_init(&c, w->ring, NULL));
	while (i < w->n) {
		const struct rgate_slot *s = rgate_consumer_next(&c);

		if (!s) {
			if (!sleep_once(w, &c))
				w->slow++;
			continue;
		}
		memcpy(&got, rgate_slot_data(s), sizeof(got));
		unit_require(got == i++);
		rgate_consumer_release(&c);
		__atomic_store_n(&w->took, i, __ATOMIC_RELEASE);
	}
	return NULL;
}

static void begin(struct waiter *w, struct rgate_ring *ring, uint64_t n, bool by_poll)
{
	*w = (struct waiter){ .ring = ring, .n = n, .by_poll = by_poll };
	assert_int_equal(pthread_create(&w->thread, NULL, take_all, w), 0);
}

/*
 * One frame at a time, the next one once both have taken it: no later bell makes up for one
 * that is missed. One has the ring here, the other as a process that it was given to.
 */
static void each_frame(void **state)
{
	const uint64_t n = unit_rounds(20000);
	struct waiter w[2];
	struct rgate_ring *ring, *far;
	struct filler f;
	uint64_t i, k, spin, seed = 7;

	ring = filled(&f, true);
	far = given(ring);
	begin(&w[0], ring, n, *state != NULL);
	begin(&w[1], far, n, *state != NULL);
	for (i = 0; i < n; i++) {
		put(&f, true);
		for (k = 0; k < 2; k++)
			while (__atomic_load_n(&w[k].took, __ATOMIC_ACQUIRE) <= i &&
			       !__atomic_load_n(&w[k].slow, __ATOMIC_RELAXED))
				sched_yield();
		for (spin = unit_random(&seed) % 2000; spin; spin--)
			__atomic_signal_fence(__ATOMIC_SEQ_CST);
	}
	for (k = 0; k < 2; k++) {
		pthread_join(w[k].thread, NULL);
		assert_int_equal(w[k].slow, 0);
	}
	rgate_ring_close(far);
	rgate_ring_close(ring);
}

/* What was rung before it is asked for does not keep anybody awake; what comes then does */
static void edges(void **state)
{
	struct rgate_consumer c;
	struct rgate_ring *ring;
	struct filler f;
	unsigned int i;

	(void)state;
	ring = filled(&f, true);
	assert_int_equal(rgate_consumer_init(&c, ring, NULL), 0);
	for (i = 0; i < 3; i++) {
		put(&f, true);
		assert_non_null(rgate_consumer_next(&c));
		rgate_consumer_release(&c);
	}
	rgate_consumer_disarm(&c);
	assert_int_equal(rgate_consumer_arm(&c), 0);
	assert_false(readable(ring, 20));
	put(&f, true);
	assert_true(readable(ring, 5000));
	rgate_consumer_disarm(&c);
	assert_false(readable(ring, 0));
	assert_int_equal(rgate_consumer_arm(&c), 1);
	/* a frame is found without any bell, too, if late */
	assert_non_null(rgate_consumer_next(&c));
	rgate_consumer_release(&c);
	put(&f, false);
	assert_int_equal(rgate_consumer_wait(&c, 20), 1);
	rgate_ring_close(ring);
}

/* The producer's own wakeups, and its end, come the old way */
static void producer(void **state)
{
	struct rgate_stats stats = { .delivered = 1 };
	struct rgate_consumer c;
	struct rgate_producer p;
	struct rgate_ring *ring, *far;
	struct filler f;

	(void)state;
	ring = filled(&f, true);
	far = given(ring);
	assert_int_equal(rgate_producer_init(&p, ring), 0);
	assert_int_equal(rgate_consumer_init(&c, far, NULL), 0);
	assert_int_equal(rgate_consumer_arm(&c), 0);
	put(&f, false);
	assert_false(readable(far, 20));
	assert_int_equal(rgate_producer_landed(&p, 1, &stats), 0);
	assert_true(readable(far, 5000));
	rgate_consumer_disarm(&c);
	assert_false(readable(far, 0));
	assert_non_null(rgate_consumer_next(&c));
	rgate_consumer_release(&c);
	assert_int_equal(rgate_consumer_arm(&c), 0);
	rgate_producer_fini(&p);
	rgate_ring_close(ring);
	assert_true(readable(far, 5000));
	rgate_consumer_disarm(&c);
	assert_int_equal(rgate_consumer_wait(&c, 5000), -EPIPE);
	rgate_ring_close(far);
}

/* Who is given the ring cannot reach the bell: a descriptor that nobody else can block */
static void not_given(void **state)
{
	struct rgate_ring *ring, *far, *plain;
	struct epoll_event ev;
	struct filler f;

	(void)state;
	ring = filled(&f, true);
	far = given(ring);
	assert_true(f.bell >= 0);
	assert_int_equal(epoll_wait(rgate_ring_fd(far), &ev, 1, 0), 0);
	assert_int_equal(eventfd_write(rgate_ring_fd(far), 1), -1);
	rgate_ring_close(far);
	rgate_ring_close(ring);
	/* Others are as they were */
	plain = filled(&f, false);
	assert_int_equal(f.bell, -1);
	assert_int_equal(epoll_wait(rgate_ring_fd(plain), &ev, 1, 0), -1);
	rgate_ring_close(plain);
}

/* Whoever is given the ring, and whoever has it here: when they are gone, nothing is open. */
static void all_closed(void **state)
{
	const unsigned int before = unit_entries("/proc/self/fd");
	struct rgate_ring *ring, *far, *more;
	struct filler f;
	unsigned int one;
	int bell, sv[2];

	(void)state;
	for (bell = 0; bell < 2; bell++) {
		ring = filled(&f, bell);
		assert_int_equal(rgate_ring_dup(&more, ring), 0);
		far = given(ring);
		rgate_ring_close(far);
		far = given(ring);
		rgate_ring_close(more);
		rgate_ring_close(ring);
		rgate_ring_close(far);
		assert_int_equal(unit_entries("/proc/self/fd"), before);
		/* what was sent and never taken ends with the socket that it is in */
		ring = filled(&f, bell);
		one = unit_entries("/proc/self/fd");
		assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sv), 0);
		assert_int_equal(rgate_ring_send(ring, sv[0]), 0);
		close(sv[0]);
		close(sv[1]);
		/* but for the ring's own end of that handle */
		assert_int_equal(unit_entries("/proc/self/fd"), one + 1);
		rgate_ring_close(ring);
		assert_int_equal(unit_entries("/proc/self/fd"), before);
	}
}

/* Whatever else comes where what is polled should: refused, and nothing of it stays open */
static void wrong_files(void **state)
{
	struct rgate_ring *ring, *far;
	int sv[2], fds[RGATE_HANDOVER_FDS], more[RGATE_HANDOVER_FDS], pair[2];
	struct rgate_handover msg, first;
	unsigned int open_before;
	struct filler f;

	(void)state;
	ring = filled(&f, true);
	open_before = unit_entries("/proc/self/fd");
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sv), 0);
	assert_int_equal(rgate_ring_send(ring, sv[0]), 0);
	assert_int_equal(rgate_handover_recv(sv[1], &msg, fds, 0), 0);
	/* the same, with another wake socket: what is polled is no epoll instance */
	assert_int_equal(rgate_handover_recv(fds[2], &first, more, 0), 0);
	assert_int_equal(first.kind, RGATE_HANDOVER_LIFE);
	assert_int_equal(first.nfds, 2);
	close(more[1]);
	more[1] = sv[0];
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
	assert_int_equal(rgate_handover_send(pair[0], RGATE_HANDOVER_LIFE, msg.handle, more, 2,
					     0), 0);
	close(fds[2]);
	fds[2] = pair[1];
	assert_int_equal(rgate_handover_send(sv[0], RGATE_HANDOVER_MEMFD, msg.handle, fds, 3, 0),
			 0);
	close(fds[0]);
	close(fds[1]);
	close(fds[2]);
	close(more[0]);
	assert_int_equal(rgate_ring_recv(&far, sv[1]), -EPROTO);
	close(pair[0]);
	close(sv[0]);
	close(sv[1]);
	/* the ring's end of the pair of the handle that was given away */
	assert_int_equal(unit_entries("/proc/self/fd"), open_before + 1);
	rgate_ring_close(ring);
}

static const struct CMUnitTest tests[] = {
	{ "each_frame_waited_for", each_frame, NULL, NULL, NULL },
	{ "each_frame_polled_for", each_frame, NULL, NULL, (void *)1 },
	cmocka_unit_test(edges),
	cmocka_unit_test(producer),
	cmocka_unit_test(not_given),
	cmocka_unit_test(all_closed),
	cmocka_unit_test(wrong_files),
};

UNIT_MAIN(tests)
