// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * Rings of a runtime, on a CUDA of the test's own: unbound, resized, and of producers that are
 * not to be relied on. Whatever one of them does, the other goes on.
 */
#include "unit.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "fake_cuda.h"
#include "handover.h"
#include "ring_memfd.h"
#include "runtime.h"

#define GOOD	0U	/* numbers of the rings */
#define BAD	1U

static uint32_t count(const struct rgate_dpkt *pkt, void *result, void *arg)
{
	(void)result;
	__atomic_fetch_add((uint64_t *)arg + pkt->ring, 1, __ATOMIC_RELAXED);
	return 0;
}

FAKE_LANES(lanes, count, 64, 0);
FAKE_BATCH(batch, count, 64, 0);

/* A runtime with a good ring, and a handle on another one as another process would have it */
struct two {
	struct runtime r;
	struct rgate_ring *near, *far;
	struct rgate_producer p;
	int sock;		/* of the far handle's producer; -1: closed */
	uint64_t n[2];		/* packets taken, by ring */
};

/* Descriptors of the ring's memory, as its handles are sent them */
static void memory_of(struct two *t, int fds[2])
{
	int sv[2], got[RGATE_HANDOVER_FDS];
	struct rgate_handover msg;

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sv), 0);
	assert_int_equal(rgate_ring_send(t->near, sv[0]), 0);
	assert_int_equal(rgate_handover_recv(sv[1], &msg, got, 0), 0);
	fds[0] = got[0];
	fds[1] = got[1];
	close(got[2]);
	close(sv[0]);
	close(sv[1]);
}

/* The far handle's socket is the test's, instead of the producer's */
static void give_handle(struct two *t)
{
	int sv[2], wake[2], fds[RGATE_HANDOVER_FDS], life[RGATE_HANDOVER_FDS];
	struct rgate_handover msg, first;

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sv), 0);
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, wake), 0);
	assert_int_equal(rgate_ring_send(t->near, sv[0]), 0);
	assert_int_equal(rgate_handover_recv(sv[1], &msg, fds, 0), 0);
	assert_int_equal(rgate_handover_recv(fds[2], &first, life, 0), 0);
	assert_int_equal(first.kind, RGATE_HANDOVER_LIFE);
	assert_int_equal(rgate_handover_send(wake[0], first.kind, first.handle, life, first.nfds,
					     0), 0);
	close(life[0]);
	close(fds[2]);
	fds[2] = wake[1];
	assert_int_equal(rgate_memfd_adopt(&t->far, fds, msg.handle), 0);
	t->sock = wake[0];
	close(sv[0]);
	close(sv[1]);
}

/* @near: the ring that the far handle is of */
static void two_open_of(struct two *t, struct rgate_ring *near, uint32_t stall_ms)
{
	unsigned int i;

	memset(t, 0, sizeof(*t));
	runtime_prepare(&t->r, 0);
	if (stall_ms)
		t->r.opts.stall_ms = stall_ms;
	runtime_begin(&t->r, 1, 64);
	t->r.start.arg = t->n;
	t->near = near;
	assert_int_equal(rgate_producer_init(&t->p, t->near), 0);
	give_handle(t);
	assert_int_equal(rgate_gpu_bind(t->r.gpu, t->far, &i), 0);
	assert_int_equal(i, BAD);
}

static void two_open(struct two *t, uint32_t stall_ms)
{
	two_open_of(t, unit_ring(64, 256, 0, RGATE_POLICY_DROP), stall_ms);
}

static void two_close(struct two *t)
{
	runtime_close(&t->r);
	rgate_ring_close(t->far);
	rgate_producer_fini(&t->p);
	rgate_ring_close(t->near);
	if (t->sock >= 0)
		close(t->sock);
}

static struct rgate_prod *prod_of(struct rgate_ring *ring)
{
	struct rgate_view v;

	rgate_ring_view(ring, &v);
	return (struct rgate_prod *)(uintptr_t)v.prod;
}

static uint64_t taken(const struct two *t, unsigned int ring)
{
	return __atomic_load_n(&t->n[ring], __ATOMIC_RELAXED);
}

/* The good ring takes what comes, now */
static void goes_on(struct two *t)
{
	uint64_t was = taken(t, GOOD);

	runtime_put(&t->r, GOOD, 100);
	runtime_until(taken(t, GOOD) == was + 100);
}

static void put_far(struct two *t, unsigned int n)
{
	uint64_t i;

	for (i = 0; i < n; i++)
		runtime_until(!unit_put(&t->p, i, 60));
	rgate_producer_flush(&t->p);
}

static void retire(struct two *t)
{
	__atomic_store_n(&prod_of(t->near)->state, RGATE_STATE_RETIRED, __ATOMIC_RELEASE);
}

static bool readable(int fd)
{
	struct pollfd pfd = { .fd = fd, .events = POLLIN };

	return poll(&pfd, 1, 0) == 1 && pfd.revents & POLLIN;
}

/* The bad ring is unbound, with this error, and it is told once */
static void lost(struct two *t, int error)
{
	struct rgate_gpu_event e = { .sz = sizeof(e) };
	struct rgate_gpu_status st = { .sz = sizeof(st) };

	runtime_until(readable(rgate_gpu_event_fd(t->r.gpu)));
	assert_int_equal(rgate_gpu_event(t->r.gpu, &e), 1);
	assert_int_equal(e.ring, BAD);
	assert_int_equal(e.error, error);
	assert_int_equal(rgate_gpu_event(t->r.gpu, &e), 0);
	assert_false(readable(rgate_gpu_event_fd(t->r.gpu)));
	assert_int_equal(rgate_gpu_query(t->r.gpu, &st), 0);
	assert_int_equal(st.rings, 1);
}

static void start(struct two *t)
{
	assert_int_equal(rgate_gpu_start(t->r.gpu, &lanes, &t->r.start), 0);
}

/* Runs with what is left, then stops; nothing of the bad ring's is the device's any longer */
static void and_ends(struct two *t)
{
	struct rgate_dring d;

	goes_on(t);
	assert_int_equal(rgate_gpu_ring_view(t->r.gpu, BAD, &d, sizeof(d), NULL), -ESTALE);
	assert_int_equal(rgate_gpu_drain(t->r.gpu, runtime_ms()), 0);
	assert_int_equal(rgate_gpu_stop(t->r.gpu, runtime_ms()), 0);
	assert_int_equal(__atomic_load_n(&fake.registered, __ATOMIC_ACQUIRE), 3);
	two_close(t);
}

/* The user's own: only while no kernel runs; the number goes to the next ring */
static void unbinds(void **state)
{
	struct rgate_gpu_event e = { .sz = sizeof(e) };
	struct rgate_ring *third;
	struct rgate_producer p;
	struct two t;
	unsigned int i;

	(void)state;
	two_open(&t, 0);
	start(&t);
	assert_int_equal(rgate_gpu_unbind(t.r.gpu, BAD), -EBUSY);
	assert_int_equal(rgate_gpu_stop(t.r.gpu, runtime_ms()), 0);
	assert_int_equal(rgate_gpu_unbind(t.r.gpu, 2), -EINVAL);
	assert_int_equal(rgate_gpu_unbind(t.r.gpu, BAD), 0);
	assert_int_equal(rgate_gpu_unbind(t.r.gpu, BAD), -EINVAL);
	assert_int_equal(rgate_gpu_event(t.r.gpu, &e), 0);
	start(&t);
	put_far(&t, 10);
	goes_on(&t);
	assert_int_equal(rgate_gpu_stop(t.r.gpu, runtime_ms()), 0);
	assert_int_equal(taken(&t, BAD), 0);
	third = unit_ring(64, 256, 0, RGATE_POLICY_DROP);
	assert_int_equal(rgate_gpu_bind(t.r.gpu, third, &i), 0);
	assert_int_equal(i, BAD);
	assert_int_equal(rgate_producer_init(&p, third), 0);
	assert_int_equal(unit_put(&p, 0, 60), 0);
	assert_int_equal(rgate_gpu_launch(t.r.gpu, &batch, &t.r.start), 1);
	assert_int_equal(rgate_gpu_wait(t.r.gpu, runtime_ms()), 0);
	assert_int_equal(taken(&t, BAD), 1);
	two_close(&t);
	rgate_producer_fini(&p);
	rgate_ring_close(third);
}

/* Retired, and the new memory comes late: it is awaited alone, and then goes on */
static void late_memory(void **state)
{
	struct two t;
	uint64_t n;
	int fds[2];

	(void)state;
	two_open(&t, 0);
	start(&t);
	put_far(&t, 10);
	runtime_until(taken(&t, BAD) == 10);
	retire(&t);
	runtime_until(runtime_launches(&t.r) > 1);
	goes_on(&t);
	assert_int_equal(rgate_gpu_drain(t.r.gpu, runtime_ms()), 0);
	/* a ring of the same layout stands for what the producer would send */
	rgate_producer_fini(&t.p);
	rgate_ring_close(t.near);
	t.near = unit_ring(128, 256, 0, RGATE_POLICY_DROP);
	assert_int_equal(rgate_producer_init(&t.p, t.near), 0);
	memory_of(&t, fds);
	n = runtime_launches(&t.r);
	assert_int_equal(rgate_handover_send(t.sock, RGATE_HANDOVER_MEMORY, 0, fds, 2, 0), 0);
	close(fds[0]);
	close(fds[1]);
	runtime_until(runtime_launches(&t.r) > n);
	put_far(&t, 20);
	runtime_until(taken(&t, BAD) == 30);
	goes_on(&t);
	assert_int_equal(rgate_gpu_stop(t.r.gpu, runtime_ms()), 0);
	two_close(&t);
}

/* Retired, and nothing comes */
static void no_memory(void **state)
{
	struct two t;

	(void)state;
	two_open(&t, 100);
	start(&t);
	goes_on(&t);
	retire(&t);
	lost(&t, -ETIMEDOUT);
	and_ends(&t);
}

/* Retired, and what comes is something else */
static void other_memory(void **state)
{
	struct two t;
	int fds[2];

	(void)state;
	two_open(&t, 0);
	start(&t);
	goes_on(&t);
	fds[0] = memfd_create("a", MFD_CLOEXEC);
	fds[1] = memfd_create("b", MFD_CLOEXEC);
	assert_int_equal(rgate_handover_send(t.sock, RGATE_HANDOVER_MEMORY, 0, fds, 2, 0), 0);
	close(fds[0]);
	close(fds[1]);
	retire(&t);
	lost(&t, -EPROTO);
	and_ends(&t);
}

/* The producer dies between the two */
static void dies_resizing(void **state)
{
	struct two t;

	(void)state;
	two_open(&t, 0);
	start(&t);
	goes_on(&t);
	retire(&t);
	runtime_until(runtime_launches(&t.r) > 1);
	goes_on(&t);
	close(t.sock);
	t.sock = -1;
	lost(&t, -EPIPE);
	and_ends(&t);
}

/* One that died says nothing: that nobody is there any more has to be seen, also of a ring that
 * its consumers are woken for by a bell
 */
static void dies(void **state)
{
	const struct rgate_ring_opts o = RGATE_OPTS(rgate_ring_opts, .slots = 64, .slot_size = 256);
	struct rgate_ring *ring;
	unsigned int bell;
	struct two t;

	(void)state;
	for (bell = 0; bell < 2; bell++) {
		assert_int_equal(rgate_ring_open_filled(&ring, &o, bell), 0);
		two_open_of(&t, ring, 0);
		start(&t);
		goes_on(&t);
		put_far(&t, 3);
		__atomic_store_n(&prod_of(t.r.ring[GOOD])->state, RGATE_STATE_CLOSED,
				 __ATOMIC_RELEASE);
		runtime_until(taken(&t, BAD) == 3);
		assert_int_equal(rgate_gpu_wait(t.r.gpu, 10), -ETIMEDOUT);
		close(t.sock);
		t.sock = -1;
		runtime_until(runtime_state(&t.r) == RGATE_GPU_ENDED);
		two_close(&t);
	}
}

/* All others have ended: nothing runs while it is awaited, and all is drained */
static void awaited_alone(void **state)
{
	struct two t;

	(void)state;
	two_open(&t, 0);
	start(&t);
	goes_on(&t);
	retire(&t);
	__atomic_store_n(&prod_of(t.r.ring[GOOD])->state, RGATE_STATE_CLOSED, __ATOMIC_RELEASE);
	runtime_until(runtime_state(&t.r) == RGATE_GPU_RUNNING &&
		      !rgate_gpu_drain(t.r.gpu, 100));
	assert_int_equal(rgate_gpu_wait(t.r.gpu, 10), -ETIMEDOUT);
	assert_int_equal(rgate_gpu_drain(t.r.gpu, runtime_ms()), 0);
	close(t.sock);
	t.sock = -1;
	lost(&t, -EPIPE);
	runtime_until(runtime_state(&t.r) == RGATE_GPU_ENDED);
	two_close(&t);
}

/* The new memory is right, and cannot be bound */
static void not_bound(void **state)
{
	struct rgate_gpu_event e = { .sz = sizeof(e) };
	struct two t;

	(void)state;
	two_open(&t, 0);
	start(&t);
	goes_on(&t);
	__atomic_store_n(&fake.fail_register, 2, __ATOMIC_RELEASE);
	assert_int_equal(rgate_ring_resize(t.r.ring[GOOD], 128, 256), 0);
	rgate_producer_flush(&t.r.p[GOOD]);
	runtime_until(rgate_gpu_event(t.r.gpu, &e));
	assert_int_equal(e.ring, GOOD);
	assert_int_equal(e.error, -EIO);
	put_far(&t, 10);
	runtime_until(taken(&t, BAD) == 10);
	assert_int_equal(rgate_gpu_stop(t.r.gpu, runtime_ms()), 0);
	two_close(&t);
}

/* A head that nothing can have come to: no slots are taken for it, by either kind of kernel */
static void head_lies(void **state)
{
	struct two t;

	(void)state;
	two_open(&t, 0);
	put_far(&t, 10);
	runtime_put(&t.r, GOOD, 10);
	__atomic_store_n(&prod_of(t.near)->head, UINT32_MAX, __ATOMIC_RELEASE);
	assert_int_equal(rgate_gpu_launch(t.r.gpu, &batch, &t.r.start), 10);
	assert_int_equal(rgate_gpu_wait(t.r.gpu, runtime_ms()), 0);
	assert_int_equal(taken(&t, BAD), 0);
	lost(&t, -EPROTO);
	start(&t);
	and_ends(&t);
}

/* One within bounds is not believed either: slots tell */
static void head_exaggerates(void **state)
{
	struct two t;

	(void)state;
	two_open(&t, 0);
	put_far(&t, 10);
	__atomic_store_n(&prod_of(t.near)->head, 50, __ATOMIC_RELEASE);
	assert_int_equal(rgate_gpu_launch(t.r.gpu, &batch, &t.r.start), 10);
	assert_int_equal(rgate_gpu_wait(t.r.gpu, runtime_ms()), 0);
	assert_int_equal(taken(&t, BAD), 10);
	start(&t);
	assert_int_equal(rgate_gpu_drain(t.r.gpu, runtime_ms()), 0);
	goes_on(&t);
	assert_int_equal(rgate_gpu_stop(t.r.gpu, runtime_ms()), 0);
	two_close(&t);
}

/* Batch kernels follow a resize, once what was there before it is taken */
static void batch_follows(void **state)
{
	struct runtime r;
	uint64_t n[2] = { 0 };
	int i;

	(void)state;
	runtime_open(&r, 0, 1, 64);
	r.start.arg = n;
	for (i = 0; i < 10; i++) {
		runtime_put(&r, 0, 20);
		assert_int_equal(rgate_ring_resize(r.ring[0], i & 1 ? 64 : 128, 256), 0);
		rgate_producer_flush(&r.p[0]);
		runtime_put(&r, 0, 15);
		assert_int_equal(rgate_gpu_launch(r.gpu, &batch, &r.start), 20);
		assert_int_equal(rgate_gpu_wait(r.gpu, runtime_ms()), 0);
		assert_int_equal(rgate_gpu_launch(r.gpu, &batch, &r.start), 15);
		assert_int_equal(rgate_gpu_wait(r.gpu, runtime_ms()), 0);
		assert_int_equal(n[0], 35 * (i + 1));
	}
	runtime_close(&r);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test_setup_teardown(unbinds, fake_setup, fake_teardown),
	cmocka_unit_test_setup_teardown(late_memory, fake_setup, fake_teardown),
	cmocka_unit_test_setup_teardown(no_memory, fake_setup, fake_teardown),
	cmocka_unit_test_setup_teardown(other_memory, fake_setup, fake_teardown),
	cmocka_unit_test_setup_teardown(dies_resizing, fake_setup, fake_teardown),
	cmocka_unit_test_setup_teardown(dies, fake_setup, fake_teardown),
	cmocka_unit_test_setup_teardown(awaited_alone, fake_setup, fake_teardown),
	cmocka_unit_test_setup_teardown(not_bound, fake_setup, fake_teardown),
	cmocka_unit_test_setup_teardown(head_lies, fake_setup, fake_teardown),
	cmocka_unit_test_setup_teardown(head_exaggerates, fake_setup, fake_teardown),
	cmocka_unit_test_setup_teardown(batch_follows, fake_setup, fake_teardown),
};

UNIT_MAIN(tests)
