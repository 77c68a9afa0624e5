// SPDX-License-Identifier: MIT OR GPL-2.0
/* Requests of a GPU on this CPU: how a session begins and ends, and enemies on both sides */
#include "unit.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include "ask_bed.h"

/* The daemon is gone: who waits hears of it, after what was answered before */
static void daemon_dies(void **state)
{
	struct rgate_dasker me;
	struct rgate_danswer a;
	uint64_t hold, nop;
	struct ask_bed b;

	(void)state;
	ask_bed_open(&b, ASK_OWN, 64);
	rgate_dasker_init(&me, &b.dask, 0);
	hold = ask_submit(&me, (struct rgate_request){ .op = SLEEPY_HOLD });
	nop = ask_submit(&me, (struct rgate_request){ .op = RGATE_REQ_NOP, .a0 = 5 });
	runtime_until(__atomic_load_n(&b.area.completions[0].seq, __ATOMIC_ACQUIRE) == 1);
	close(b.daemon[1]);
	b.daemon[1] = -1;
	runtime_until(ask_stats(&b).over);
	assert_int_equal(rgate_dask_poll(&me, nop, &a), 1);
	assert_int_equal(a.value, 5);
	assert_int_equal(rgate_dask_wait(&me, hold, &a, ASK_LONG), -EPIPE);
	assert_int_equal(rgate_dask_wait_warp(&me, hold, &a, ASK_LONG), -EPIPE);
	assert_int_equal(rgate_dask_poll(&me, hold, &a), -EPIPE);
	ask_bed_close(&b);
}

static void *end_it(void *arg)
{
	struct ask_bed *b = arg;

	usleep(20000);
	ask_end_engine(b);
	return NULL;
}

/* The engine ends, while somebody waits */
static void engine_ends(void **state)
{
	struct rgate_dasker me;
	struct rgate_danswer a;
	pthread_t thread;
	struct ask_bed b;
	uint64_t hold;
	int err;

	(void)state;
	ask_bed_open(&b, ASK_OWN, 64);
	rgate_dasker_init(&me, &b.dask, 0);
	hold = ask_submit(&me, (struct rgate_request){ .op = SLEEPY_HOLD });
	assert_int_equal(pthread_create(&thread, NULL, end_it, &b), 0);
	assert_int_equal(rgate_dask_wait(&me, hold, &a, ASK_LONG), -EPIPE);
	pthread_join(thread, NULL);
	do
		err = rgate_dask_submit(&me, &(struct rgate_request){ .op = RGATE_REQ_NOP }, &hold);
	while (!err);
	assert_int_equal(err, -EPIPE);
	ask_bed_close(&b);
}

/*
 * Enemies
 */

/* Completions that cannot be: nothing outside of the cells is touched, and they are counted */
static void garbage_completions(void **state)
{
	struct rgate_dasker me;
	struct rgate_danswer a;
	uint64_t seed = 3, pos, hold, n = unit_rounds(20000);
	struct ask_bed b;

	(void)state;
	ask_bed_open(&b, ASK_OWN, 64);
	rgate_dasker_init(&me, &b.dask, 0);
	hold = ask_submit(&me, (struct rgate_request){ .op = SLEEPY_HOLD });
	runtime_until(ask_accepted(&b) == 1);
	for (pos = 0; pos < n; pos++) {
		struct rgate_completion *c = &b.area.completions[pos % 64];

		c->cookie = unit_random(&seed) >> unit_random(&seed) % 64;
		c->cookie += c->cookie == 0 || c->cookie == hold;
		c->result = (int32_t)unit_random(&seed);
		c->value = unit_random(&seed);
		__atomic_store_n(&c->seq, pos / 64 + 1, __ATOMIC_RELEASE);
		assert_int_equal(rgate_dask_poll(&me, hold, &a), 0);
	}
	assert_int_equal(b.dask.state->lock / 2, n);
	assert_int_equal(ask_stats(&b).strays, n);
	/* the right one, and once more */
	for (; pos < n + 2; pos++) {
		struct rgate_completion *const c = &b.area.completions[pos % 64];

		/* Its seq is looked at meanwhile. */
		c->cookie = hold;
		c->result = 0;
		c->flags = 0;
		c->value = 9;
		__atomic_store_n(&c->seq, pos / 64 + 1, __ATOMIC_RELEASE);
	}
	assert_int_equal(rgate_dask_poll(&me, hold, &a), 1);
	assert_int_equal(a.value, 9);
	ask_submit(&me, (struct rgate_request){ .op = SLEEPY_HOLD });
	runtime_until(rgate_dask_full(&me) == -EAGAIN && ask_stats(&b).strays == n + 1);
	ask_bed_close(&b);
}

struct vandal {
	struct ask_bed *b;
	bool stop;		/* atomic */
	pthread_t thread;
};

/* A kernel gone wild: each word of the client's half, and at full speed */
static void *vandalize(void *arg)
{
	struct vandal *v = arg;
	uint64_t *from = (uint64_t *)(void *)v->b->area.client, seed = 11;
	uint64_t *to = (uint64_t *)(void *)(v->b->area.base + v->b->area.len);

	while (!__atomic_load_n(&v->stop, __ATOMIC_RELAXED)) {
		uint64_t r = unit_random(&seed);

		__atomic_store_n(from + r % (uint64_t)(to - from),
				 r % 3 ? r >> 40 & 3 : unit_random(&seed), __ATOMIC_RELAXED);
	}
	return NULL;
}

/* It harms its own session: another one of the same engine goes on, and both can be closed */
static void garbage_requests(void **state)
{
	struct vandal v = { .stop = false };
	struct ask_bed b, wild;

	(void)state;
	ask_bed_open(&b, ASK_ENGINES, 64);
	wild = b;
	assert_int_equal(rgate_seat_add(b.engine, &RGATE_OPTS(rgate_seat_opts, .requests = 64,
							      .completions = 64, .uid = 1),
					&wild.seat, &(struct rgate_welcome){ 0 }, wild.fds), 0);
	assert_int_equal(rgate_area_map(&wild.area, wild.fds[RGATE_FD_AREA], 64, 64, 0), 0);
	wild.loan = ask_loan_of(&wild, &wild.area);
	wild.loan.gone_fd = -1;
	assert_int_equal(rgate_gpu_bind_session(b.r.gpu, &wild.loan, NULL, &wild.index), 0);
	v.b = &wild;
	assert_int_equal(pthread_create(&v.thread, NULL, vandalize, &v), 0);
	ask_run_threads(&b, ask_in_turn, 100);
	__atomic_store_n(&v.stop, true, __ATOMIC_RELAXED);
	pthread_join(v.thread, NULL);
	ask_all_free(&b);
	assert_int_equal(rgate_gpu_unbind_session(b.r.gpu, wild.index), 0);
	rgate_seat_remove(wild.seat);
	rgate_area_unmap(&wild.area);
	close(wild.fds[RGATE_FD_AREA]);
	close(wild.fds[RGATE_FD_KICK]);
	close(wild.fds[RGATE_FD_WAIT]);
	ask_bed_close(&b);
}

/*
 * The runtime's side
 */

/* A session that is on loan is the GPU's; what it opened before, the GPU uses */
static void lent(void **state)
{
	const struct rgate_session_opts so = RGATE_OPTS(rgate_session_opts, .memory = 8192,
							.where = RGATE_SESSION_PROCESS,
							.spin_us = RGATE_SPIN_NONE);
	struct rgate_session_loan loan = { .sz = sizeof(loan) };
	struct rgate_request q = { .op = RGATE_REQ_MEMORY_EXPORT, .off = 4096, .len = 8,
				   .a1 = RGATE_MEMORY_EXPORT_A1(RGATE_MEMORY_RIGHTS, 1) };
	struct rgate_completion c;
	struct rgate_session *s;
	struct rgate_dasker me;
	uint64_t *word, i;
	struct ask_bed b = { 0 };

	(void)state;
	assert_int_equal(rgate_session_open(&s, &so), 0);
	word = rgate_session_memory(s, NULL);
	*(char *)word = 'w';
	assert_int_equal(rgate_session_submit(s, &q), 0);
	assert_int_equal(rgate_session_wait(s, runtime_ms()), 1);
	assert_int_equal(rgate_session_poll(s, &c, 1), 1);
	assert_int_equal(c.result, 0);
	loan.sz = 1;
	assert_int_equal(rgate_session_lend(s, &loan), -EINVAL);
	loan.sz = sizeof(loan);
	assert_int_equal(rgate_session_lend(s, &loan), 0);
	assert_int_equal(rgate_session_lend(s, &loan), -EBUSY);
	assert_int_equal(rgate_session_submit(s, &q), -EBUSY);
	assert_int_equal(rgate_session_poll(s, &c, 1), -EBUSY);
	assert_int_equal(rgate_session_wait(s, 0), -EBUSY);
	assert_int_equal(rgate_session_arm(s), -EBUSY);
	runtime_open(&b.r, 0, 0, 64);
	assert_int_equal(rgate_gpu_bind_session(b.r.gpu, &loan, NULL, &b.index), 0);
	ask_view(&b);
	assert_ptr_equal(b.dask.memory, word);
	rgate_dasker_init(&me, &b.dask, 0);
	q = (struct rgate_request){ .op = RGATE_REQ_MEMORY_OPEN, .a0 = RGATE_MEMORY_HERE, .len = 1,
				    .a1 = RGATE_MEMORY_OPEN_A1(geteuid(), RGATE_MEMORY_ATOMIC) };
	q.handle = RGATE_MEMORY_HANDLE(ask_wait(&me, ask_submit(&me, q)).value);
	q = (struct rgate_request){ .op = RGATE_REQ_MEMORY_FETCH_ADD, .handle = q.handle,
				    .a1 = 3 };
	for (i = 0; i < 300; i++)
		assert_int_equal(ask_wait(&me, ask_submit(&me, q)).value, i * 3);
	assert_int_equal(__atomic_load_n(word + 512, __ATOMIC_ACQUIRE), 900);
	rgate_dasker_fini(&me);
	ask_all_free(&b);
	runtime_close(&b.r);
	rgate_session_close(s);
}

/* What cannot be bound, and what fails on the way leaves nothing behind (fake_teardown) */
static void refused(void **state)
{
	struct rgate_session_loan bad;
	unsigned int i, index[RGATE_GPU_SESSIONS_MAX], none = 99;
	struct rgate_dask d;
	struct ask_bed b;

	(void)state;
	ask_bed_open(&b, ASK_OWN, 64);
	bad = b.loan;
	bad.sz = 8;
	assert_int_equal(rgate_gpu_bind_session(b.r.gpu, &bad, NULL, &none), -EINVAL);
	bad = b.loan;
	bad.places = 63;
	assert_int_equal(rgate_gpu_bind_session(b.r.gpu, &bad, NULL, &none), -EINVAL);
	assert_int_equal(rgate_gpu_bind_session(b.r.gpu, &b.loan,
						&RGATE_OPTS(rgate_gpu_session_opts,
							    .spin_us = 10001), &none), -EINVAL);
	assert_int_equal(rgate_gpu_session_view(b.r.gpu, b.index, &d, sizeof(d) - 8), -EINVAL);
	assert_int_equal(rgate_gpu_session_view(b.r.gpu, 5, &d, sizeof(d)), -EINVAL);
	assert_int_equal(rgate_gpu_unbind_session(b.r.gpu, 99), -EINVAL);
	assert_int_equal(rgate_gpu_unbind_session(b.r.gpu, b.index), 0);
	fake.fail_register = 1;
	assert_int_equal(rgate_gpu_bind_session(b.r.gpu, &b.loan, NULL, &none), -EIO);
	for (i = 1; i <= 3; i++) {
		fake.fail_malloc = i;
		assert_int_equal(rgate_gpu_bind_session(b.r.gpu, &b.loan, NULL, &none), -ENOMEM);
	}
	for (i = 0; i < RGATE_GPU_SESSIONS_MAX; i++)
		assert_int_equal(rgate_gpu_bind_session(b.r.gpu, &b.loan, NULL, &index[i]), 0);
	assert_int_equal(rgate_gpu_bind_session(b.r.gpu, &b.loan, NULL, &none), -ENOSPC);
	assert_int_equal(none, 99);
	ask_bed_close(&b);
}

struct stuck {
	struct rgate_dask dask;
	int got;		/* atomic */
};

/* A kernel's function that asks for what is never answered, and waits */
static uint32_t wait_for_ever(const struct rgate_dpkt *pkt, void *result, void *arg)
{
	struct stuck *s = arg;
	struct rgate_dasker me;
	struct rgate_danswer a;
	uint64_t ticket;
	int got;

	(void)pkt;
	(void)result;
	rgate_dasker_init(&me, &s->dask, 0);
	ticket = ask_submit(&me, (struct rgate_request){ .op = SLEEPY_HOLD });
	got = rgate_dask_wait(&me, ticket, &a, ~0ULL);
	__atomic_store_n(&s->got, got, __ATOMIC_RELEASE);
	return 0;
}

FAKE_LANES(stuck_kernel, wait_for_ever, 64, 0);

/* While a kernel runs nothing is unbound; one that waits for ever is let go by closing */
static void closed_waiting(void **state)
{
	static struct stuck s;
	static struct ask_bed b;	/* the runtime is never freed */
	unsigned int n;

	(void)state;
	memset(&b, 0, sizeof(b));
	runtime_prepare(&b.r, 0);
	b.r.opts.close_ms = 20;
	runtime_begin(&b.r, 1, 64);
	ask_seat_open(&b);
	assert_int_equal(rgate_gpu_bind_session(b.r.gpu, &b.loan, NULL, &b.index), 0);
	ask_view(&b);
	s.dask = b.dask;
	b.r.start.arg = &s;
	assert_int_equal(rgate_gpu_start(b.r.gpu, &stuck_kernel, &b.r.start), 0);
	assert_int_equal(rgate_gpu_unbind_session(b.r.gpu, b.index), -EBUSY);
	assert_int_equal(rgate_gpu_bind_session(b.r.gpu, &b.loan, NULL, &n), -EBUSY);
	runtime_put(&b.r, 0, 1);
	runtime_until(__atomic_load_n(&b.area.requests[0].seq, __ATOMIC_ACQUIRE));
	rgate_gpu_close(b.r.gpu);
	runtime_until(__atomic_load_n(&s.got, __ATOMIC_ACQUIRE));
	assert_int_equal(s.got, -EPIPE);
	/* A GPU has the rings' memory after their end, but warps that are threads have not. */
	fake_join();
	runtime_end(&b.r);
	ask_seat_close(&b);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test_setup_teardown(daemon_dies, fake_setup, fake_teardown),
	cmocka_unit_test_setup_teardown(engine_ends, fake_setup, fake_teardown),
	cmocka_unit_test_setup_teardown(garbage_completions, fake_setup, fake_teardown),
	cmocka_unit_test_setup_teardown(garbage_requests, fake_setup, fake_teardown),
	cmocka_unit_test_setup_teardown(lent, fake_setup, fake_teardown),
	cmocka_unit_test_setup_teardown(refused, fake_setup, fake_teardown),
	/* leaves its kernel's memory behind */
	cmocka_unit_test_setup(closed_waiting, fake_setup),
};

UNIT_MAIN(tests)
