// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * Requests of a GPU, whose threads are this CPU's: the device's code, the runtime's part on a CUDA
 * of the test's own, and a real engine, which sleeps whenever it can.
 */
#include "unit.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "fake_cuda.h"
#include "runtime.h"

#include <ringgate/gpu/ask.cuh>

#include "area.h"
#include "engine_priv.h"
#include "sleepy.h"

#define THREADS	6U
#define LONG	(10000000000ULL * unit_patience())

/* A seat at an engine with the sleepy service, bound to a runtime */
struct bed {
	struct runtime r;
	struct rgate_engine *engine;
	struct rgate_seat *seat;
	struct rgate_area area;
	struct rgate_session_loan loan;
	int fds[RGATE_FDS], daemon[2];
	unsigned int index;
	struct rgate_dask dask;
};

/* A loan of what lies in @a */
static struct rgate_session_loan loan_of(const struct bed *b, const struct rgate_area *a)
{
	return (struct rgate_session_loan){
		.sz = sizeof(b->loan), .requests = a->requests, .completions = a->completions,
		.request_credits = a->req_credits, .completion_credits = a->comp_credits,
		.server = a->server, .area = a->base, .area_len = a->len,
		.places = (uint32_t)a->req_mask + 1, .room = a->req_mask + 1,
		.completion_places = (uint32_t)a->comp_mask + 1, .owner = a->head->owner,
		.kick_fd = b->fds[RGATE_FD_KICK], .gone_fd = b->daemon[0],
	};
}

static void seat_open(struct bed *b, uint32_t places)
{
	const struct rgate_seat_opts o = RGATE_OPTS(rgate_seat_opts, .requests = places,
						    .completions = places);
	const struct rgate_engine_opts eo = RGATE_OPTS(rgate_engine_opts,
						       .spin_us = RGATE_SPIN_NONE);
	struct rgate_welcome w;

	sleepy_start();
	assert_int_equal(rgate_engine_create(&b->engine, &eo), 0);
	assert_int_equal(rgate_engine_add(b->engine, &sleepy_service, NULL), 0);
	assert_int_equal(rgate_seat_add(b->engine, &o, &b->seat, &w, b->fds), 0);
	assert_int_equal(rgate_area_map(&b->area, b->fds[RGATE_FD_AREA], places, places, 0), 0);
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, b->daemon), 0);
	b->loan = loan_of(b, &b->area);
}

static void view(struct bed *b)
{
	assert_int_equal(rgate_gpu_session_view(b->r.gpu, b->index, &b->dask, sizeof(b->dask)), 0);
}

enum mapping {
	OWN,		/* as a client has it */
	ENGINES,	/* the engine's: ThreadSanitizer knows what both do by its address */
};

static void bed_open(struct bed *b, enum mapping mapping, uint32_t tickets)
{
	struct rgate_gpu_session_opts o = RGATE_OPTS(rgate_gpu_session_opts, .tickets = tickets);

	memset(b, 0, sizeof(*b));
	runtime_open(&b->r, 0, 0, 64);
	seat_open(b, 64);
	if (mapping == ENGINES)
		b->loan = loan_of(b, &b->seat->area);
	assert_int_equal(rgate_gpu_bind_session(b->r.gpu, &b->loan, &o, &b->index), 0);
	view(b);
}

static void end_engine(struct bed *b)
{
	if (!b->engine)
		return;
	rgate_seat_remove(b->seat);
	rgate_engine_destroy(b->engine);
	b->engine = NULL;
	sleepy_stop();
}

static void seat_close(struct bed *b)
{
	end_engine(b);
	rgate_area_unmap(&b->area);
	close(b->fds[RGATE_FD_AREA]);
	close(b->fds[RGATE_FD_KICK]);
	close(b->fds[RGATE_FD_WAIT]);
	close(b->daemon[0]);
	if (b->daemon[1] >= 0)
		close(b->daemon[1]);
}

static void bed_close(struct bed *b)
{
	runtime_close(&b->r);
	seat_close(b);
}

static struct rgate_gpu_session_stats stats(struct bed *b)
{
	struct rgate_gpu_session_stats st = { .sz = sizeof(st) };

	assert_int_equal(rgate_gpu_session_stats(b->r.gpu, b->index, &st), 0);
	return st;
}

static uint64_t accepted(struct bed *b)
{
	struct rgate_engine_stats st = { .sz = sizeof(st) };

	assert_int_equal(rgate_engine_stats(b->engine, &st), 0);
	return st.accepted;
}

/* Every cell is free again: nobody has lost one */
static void all_free(const struct bed *b)
{
	uint32_t i;

	for (i = 0; i < b->dask.ncells / 32; i++)
		assert_int_equal(b->dask.free[i], ~0U);
}

static uint64_t must_submit(struct rgate_dasker *me, struct rgate_request q)
{
	uint64_t ticket;
	int err;

	while ((err = rgate_dask_submit(me, &q, &ticket)) == -EAGAIN)
		rgate_dpause(0);
	unit_require(!err);
	return ticket;
}

static struct rgate_danswer must_wait(struct rgate_dasker *me, uint64_t ticket)
{
	struct rgate_danswer a = { 0 };

	unit_require(rgate_dask_wait(me, ticket, &a, LONG) == 1);
	return a;
}

/*
 * Many threads
 */

struct asker {
	struct bed *b;
	unsigned int number, rounds;
	uint64_t full;		/* times that there was no place */
	pthread_t thread;
};

static void run_threads(struct bed *b, void *(*fn)(void *), unsigned int rounds, uint64_t *full)
{
	struct asker t[THREADS];
	unsigned int i;

	for (i = 0; i < THREADS; i++) {
		t[i] = (struct asker){ .b = b, .number = i, .rounds = unit_rounds(rounds) };
		assert_int_equal(pthread_create(&t[i].thread, NULL, fn, &t[i]), 0);
	}
	for (i = 0; i < THREADS; i++) {
		pthread_join(t[i].thread, NULL);
		*full += t[i].full;
	}
}

static void *ask_in_turn(void *arg)
{
	struct asker *t = arg;
	struct rgate_danswer a;
	struct rgate_dasker me;
	uint64_t i, seed = t->number;

	rgate_dasker_init(&me, &t->b->dask, t->number % 2);
	for (i = 0; i < t->rounds; i++) {
		uint64_t v = unit_random(&seed);

		a = must_wait(&me, must_submit(&me, (struct rgate_request){ .op = RGATE_REQ_NOP,
									   .a0 = v }));
		unit_require(a.result == 0 && a.flags == 0 && a.value == v);
	}
	rgate_dasker_fini(&me);
	return NULL;
}

/* One after the other by each thread: the engine falls asleep between, and is woken */
static void in_turn(void **state)
{
	uint64_t full = 0;
	struct bed b;

	(void)state;
	bed_open(&b, ENGINES, 64);
	run_threads(&b, ask_in_turn, 300, &full);
	all_free(&b);
	assert_int_equal(b.dask.state->taken, THREADS * unit_rounds(300));
	assert_int_equal(stats(&b).strays, 0);
	assert_true(stats(&b).kicks > 0);
	bed_close(&b);
}

#define UNDER_WAY 16U

/* Submits by any of the ways; 0 or -EAGAIN */
static int submit_some(struct rgate_dasker *me, uint64_t how, const struct rgate_request *q,
		       uint32_t n, uint64_t *tickets)
{
	if (n > 1)
		return rgate_dask_submit_many(me, q, n, tickets);
	if (how % 2)
		return rgate_dask_submit_warp(me, q, 1, tickets);
	return rgate_dask_submit(me, q, tickets);
}

static struct rgate_danswer take_one(struct rgate_dasker *me, uint64_t how, uint64_t ticket)
{
	struct rgate_danswer a = { 0 };
	int got = 0;

	if (how % 3 == 0)
		return must_wait(me, ticket);
	if (how % 3 == 1)
		got = rgate_dask_wait_warp(me, ticket, &a, LONG);
	else
		while (!(got = rgate_dask_poll(me, ticket, &a)))
			rgate_dpause(0);
	unit_require(got == 1);
	return a;
}

static void *ask_at_once(void *arg)
{
	struct asker *t = arg;
	struct rgate_request q[UNDER_WAY];
	uint64_t ticket[UNDER_WAY], value[UNDER_WAY], seed = t->number + 7;
	unsigned int left = t->rounds, have = 0, n, i;
	struct rgate_dasker me;
	struct rgate_danswer a;

	rgate_dasker_init(&me, &t->b->dask, t->number % 2);
	while (left || have) {
		n = 1 + (unsigned int)(unit_random(&seed) % 4);
		if (n > left)
			n = left;
		if (n && have + n <= UNDER_WAY) {
			for (i = 0; i < n; i++) {
				value[have + i] = unit_random(&seed);
				q[i] = (struct rgate_request){ .op = SLEEPY_ECHO,
							       .a0 = value[have + i] };
			}
			if (!submit_some(&me, unit_random(&seed), q, n, ticket + have)) {
				have += n;
				left -= n;
				continue;
			}
			t->full++;
		}
		if (!have)
			continue;
		i = (unsigned int)(unit_random(&seed) % have);
		a = take_one(&me, unit_random(&seed), ticket[i]);
		unit_require(a.result == 0 && a.value == value[i]);
		unit_require(rgate_dask_poll(&me, ticket[i], &a) == -EINVAL);
		ticket[i] = ticket[--have];
		value[i] = value[have];
	}
	rgate_dasker_fini(&me);
	return NULL;
}

/* Answers that come late and in any order, through rings that are full most of the time */
static void out_of_order(void **state)
{
	uint64_t full = 0;
	struct bed b;

	(void)state;
	bed_open(&b, ENGINES, 64);
	run_threads(&b, ask_at_once, 1500, &full);
	all_free(&b);
	assert_true(full > 0);
	assert_int_equal(b.dask.state->taken, THREADS * unit_rounds(1500));
	assert_int_equal(stats(&b).strays, 0);
	assert_int_equal(stats(&b).failed, 0);
	bed_close(&b);
}

/*
 * One thread
 */

/* A full ring is refused, and goes on when answers are taken; so are tickets */
static void full(void **state)
{
	const struct rgate_request q = { .op = RGATE_REQ_NOP }, hold = { .op = SLEEPY_HOLD };
	uint64_t ticket[64], more, cancel[64];
	struct rgate_dasker me;
	struct rgate_danswer a;
	unsigned int i;
	struct bed b;

	(void)state;
	bed_open(&b, OWN, 32);
	rgate_dasker_init(&me, &b.dask, 0);
	assert_int_equal(rgate_dask_submit_many(&me, &q, 0, ticket), -EINVAL);
	assert_int_equal(rgate_dask_submit_many(&me, &q, 33, ticket), -EINVAL);
	assert_int_equal(rgate_dask_submit_warp(&me, &q, 0, ticket), -EINVAL);
	for (i = 0; i < 30; i++)
		assert_int_equal(rgate_dask_submit(&me, &hold, &ticket[i]), 0);
	/* two tickets are left: all of three or none */
	assert_int_equal(rgate_dask_submit_many(&me, (struct rgate_request[]){ q, q, q }, 3,
						ticket + 30), -EAGAIN);
	more = must_submit(&me, q);
	must_wait(&me, more);
	for (i = 0; i < 30; i++) {
		assert_int_equal(rgate_dask_cancel(&me, ticket[i], &cancel[i]), 0);
		assert_int_equal(must_wait(&me, cancel[i]).result, 0);
		assert_int_equal(must_wait(&me, ticket[i]).result, -ECANCELED);
	}
	assert_int_equal(rgate_dask_poll(&me, ticket[0], &a), -EINVAL);
	assert_int_equal(rgate_dask_poll(&me, 0, &a), -EINVAL);
	assert_int_equal(rgate_dask_poll(&me, ~0ULL, &a), -EINVAL);
	rgate_dasker_fini(&me);
	all_free(&b);
	bed_close(&b);
}

/* Credits come in order, and are believed as far as they have come */
static void credits(void **state)
{
	uint64_t credit[8] = { 1, 1, 1 };
	struct rgate_daskstate st = { .limit = 256 };
	const struct rgate_dask d = { .state = &st, .request_credits = credit, .req_shift = 8 };

	(void)state;
	rgate_dask_refill(&d);
	assert_int_equal(st.limit, 256 + 96);
	rgate_dask_refill(&d);
	assert_int_equal(st.limit, 256 + 96);
	credit[3] = credit[4] = credit[5] = credit[6] = credit[7] = 1;
	rgate_dask_refill(&d);
	assert_int_equal(st.limit, 512);
	credit[0] = 2;
	st.room_lock = 1;
	rgate_dask_refill(&d);
	assert_int_equal(st.limit, 512);
	st.room_lock = 0;
	rgate_dask_refill(&d);
	assert_int_equal(st.limit, 512 + 32);
	assert_int_equal(st.room_lock, 0);
}

/* An engine that sleeps as it has no place for completions is woken when some were taken */
static void no_place(void **state)
{
	struct rgate_dasker me;
	uint64_t ticket[65];
	unsigned int i;
	struct bed b;

	(void)state;
	bed_open(&b, OWN, 128);
	rgate_dasker_init(&me, &b.dask, 0);
	for (i = 0; i < 64; i++)
		ticket[i] = must_submit(&me, (struct rgate_request){ .op = RGATE_REQ_NOP, .a0 = i });
	runtime_until(accepted(&b) == 64);
	/* not rgate_dask_full(), which would take some */
	while (rgate_dask_refill(&b.dask), b.dask.state->limit == 64)
		rgate_dpause(0);
	ticket[64] = must_submit(&me, (struct rgate_request){ .op = RGATE_REQ_NOP, .a0 = 64 });
	runtime_until(__atomic_load_n(&b.area.server->need, __ATOMIC_ACQUIRE) ==
		      RGATE_REQ_NEED_CREDIT);
	assert_int_equal(accepted(&b), 64);
	for (i = 65; i--;)
		assert_int_equal(must_wait(&me, ticket[i]).value, i);
	rgate_dasker_fini(&me);
	all_free(&b);
	bed_close(&b);
}

/* Waiting ends when it is told to; the ticket goes on, and can be cancelled */
static void limits_and_cancel(void **state)
{
	struct rgate_dasker me, other;
	struct rgate_danswer a = { 0 };
	uint64_t hold, again, cancel;
	struct bed b;

	(void)state;
	bed_open(&b, OWN, 64);
	rgate_dasker_init(&me, &b.dask, 0);
	rgate_dasker_init(&other, &b.dask, 0);
	hold = must_submit(&me, (struct rgate_request){ .op = SLEEPY_HOLD });
	assert_int_equal(rgate_dask_wait(&me, hold, &a, 1000000), 0);
	assert_int_equal(rgate_dask_wait_warp(&me, hold, &a, 1000000), 0);
	assert_int_equal(rgate_dask_poll(&me, hold, &a), 0);
	assert_int_equal(rgate_dask_cancel(&me, hold, &cancel), 0);
	assert_int_equal(must_wait(&me, cancel).result, 0);
	/* by another thread than has asked */
	assert_int_equal(must_wait(&other, hold).result, -ECANCELED);
	assert_int_equal(rgate_dask_cancel(&me, hold, &cancel), 0);
	assert_int_equal(must_wait(&me, cancel).result, -ENOENT);
	again = must_submit(&me, (struct rgate_request){ .op = SLEEPY_HOLD, .deadline_us = 1000 });
	assert_int_equal(must_wait(&me, again).result, -ETIMEDOUT);
	assert_int_not_equal(again, hold);
	rgate_dasker_fini(&me);
	rgate_dasker_fini(&other);
	all_free(&b);
	bed_close(&b);
}

/* One after the other, as they were submitted; and those that tell of a failure only */
static void chains(void **state)
{
	const struct rgate_request q[] = {
		{ .op = RGATE_REQ_NOP, .flags = RGATE_REQ_LINK, .a0 = 1 },
		{ .op = RGATE_REQ_OP(SLEEPY, 60), .flags = RGATE_REQ_LINK },
		{ .op = RGATE_REQ_NOP, .a0 = 3 },
		{ .op = RGATE_REQ_NOP, .a0 = 4 },
	};
	struct rgate_dasker me;
	uint64_t t[4], i;
	struct bed b;

	(void)state;
	bed_open(&b, OWN, 64);
	rgate_dasker_init(&me, &b.dask, 0);
	assert_int_equal(rgate_dask_submit_many(&me, q, 4, t), 0);
	assert_int_equal(must_wait(&me, t[3]).value, 4);
	assert_int_equal(must_wait(&me, t[2]).result, -ECANCELED);
	assert_int_equal(must_wait(&me, t[1]).result, -EOPNOTSUPP);
	assert_int_equal(must_wait(&me, t[0]).value, 1);
	for (i = 0; i < 100; i++) {
		t[0] = must_submit(&me, (struct rgate_request){
			.op = i % 2 ? RGATE_REQ_NOP : RGATE_REQ_OP(SLEEPY, 61),
			.flags = RGATE_REQ_NO_COMPLETION });
		assert_int_equal(t[0], 0);
	}
	must_wait(&me, must_submit(&me, (struct rgate_request){ .op = RGATE_REQ_NOP,
								.flags = RGATE_REQ_DRAIN }));
	assert_int_equal(stats(&b).failed, 50);
	assert_int_equal(stats(&b).strays, 0);
	rgate_dasker_fini(&me);
	all_free(&b);
	bed_close(&b);
}

/* The daemon is gone: who waits hears of it, after what was answered before */
static void daemon_dies(void **state)
{
	struct rgate_dasker me;
	struct rgate_danswer a;
	uint64_t hold, nop;
	struct bed b;

	(void)state;
	bed_open(&b, OWN, 64);
	rgate_dasker_init(&me, &b.dask, 0);
	hold = must_submit(&me, (struct rgate_request){ .op = SLEEPY_HOLD });
	nop = must_submit(&me, (struct rgate_request){ .op = RGATE_REQ_NOP, .a0 = 5 });
	runtime_until(__atomic_load_n(&b.area.completions[0].seq, __ATOMIC_ACQUIRE) == 1);
	close(b.daemon[1]);
	b.daemon[1] = -1;
	runtime_until(stats(&b).over);
	assert_int_equal(rgate_dask_poll(&me, nop, &a), 1);
	assert_int_equal(a.value, 5);
	assert_int_equal(rgate_dask_wait(&me, hold, &a, LONG), -EPIPE);
	assert_int_equal(rgate_dask_wait_warp(&me, hold, &a, LONG), -EPIPE);
	assert_int_equal(rgate_dask_poll(&me, hold, &a), -EPIPE);
	bed_close(&b);
}

static void *end_it(void *arg)
{
	struct bed *b = arg;

	usleep(20000);
	end_engine(b);
	return NULL;
}

/* The engine ends, while somebody waits */
static void engine_ends(void **state)
{
	struct rgate_dasker me;
	struct rgate_danswer a;
	pthread_t thread;
	struct bed b;
	uint64_t hold;
	int err;

	(void)state;
	bed_open(&b, OWN, 64);
	rgate_dasker_init(&me, &b.dask, 0);
	hold = must_submit(&me, (struct rgate_request){ .op = SLEEPY_HOLD });
	assert_int_equal(pthread_create(&thread, NULL, end_it, &b), 0);
	assert_int_equal(rgate_dask_wait(&me, hold, &a, LONG), -EPIPE);
	pthread_join(thread, NULL);
	do
		err = rgate_dask_submit(&me, &(struct rgate_request){ .op = RGATE_REQ_NOP }, &hold);
	while (!err);
	assert_int_equal(err, -EPIPE);
	bed_close(&b);
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
	struct bed b;

	(void)state;
	bed_open(&b, OWN, 64);
	rgate_dasker_init(&me, &b.dask, 0);
	hold = must_submit(&me, (struct rgate_request){ .op = SLEEPY_HOLD });
	runtime_until(accepted(&b) == 1);
	for (pos = 0; pos < n; pos++) {
		struct rgate_completion *c = &b.area.completions[pos % 64];

		c->cookie = unit_random(&seed) >> unit_random(&seed) % 64;
		c->cookie += c->cookie == 0 || c->cookie == hold;
		c->result = (int32_t)unit_random(&seed);
		c->value = unit_random(&seed);
		__atomic_store_n(&c->seq, pos / 64 + 1, __ATOMIC_RELEASE);
		assert_int_equal(rgate_dask_poll(&me, hold, &a), 0);
	}
	assert_int_equal(b.dask.state->taken, n);
	assert_int_equal(stats(&b).strays, n);
	/* the right one, and once more */
	for (; pos < n + 2; pos++) {
		b.area.completions[pos % 64] = (struct rgate_completion){ .cookie = hold,
									  .value = 9 };
		__atomic_store_n(&b.area.completions[pos % 64].seq, pos / 64 + 1,
				 __ATOMIC_RELEASE);
	}
	assert_int_equal(rgate_dask_poll(&me, hold, &a), 1);
	assert_int_equal(a.value, 9);
	must_submit(&me, (struct rgate_request){ .op = SLEEPY_HOLD });
	runtime_until(rgate_dask_full(&me) == -EAGAIN && stats(&b).strays == n + 1);
	bed_close(&b);
}

struct vandal {
	struct bed *b;
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
	uint64_t full = 0;
	struct bed b, wild;

	(void)state;
	bed_open(&b, ENGINES, 64);
	wild = b;
	assert_int_equal(rgate_seat_add(b.engine, &RGATE_OPTS(rgate_seat_opts, .requests = 64,
							      .completions = 64, .uid = 1),
					&wild.seat, &(struct rgate_welcome){ 0 }, wild.fds), 0);
	assert_int_equal(rgate_area_map(&wild.area, wild.fds[RGATE_FD_AREA], 64, 64, 0), 0);
	wild.loan = loan_of(&wild, &wild.area);
	wild.loan.gone_fd = -1;
	assert_int_equal(rgate_gpu_bind_session(b.r.gpu, &wild.loan, NULL, &wild.index), 0);
	v.b = &wild;
	assert_int_equal(pthread_create(&v.thread, NULL, vandalize, &v), 0);
	run_threads(&b, ask_in_turn, 100, &full);
	__atomic_store_n(&v.stop, true, __ATOMIC_RELAXED);
	pthread_join(v.thread, NULL);
	all_free(&b);
	assert_int_equal(rgate_gpu_unbind_session(b.r.gpu, wild.index), 0);
	rgate_seat_remove(wild.seat);
	rgate_area_unmap(&wild.area);
	close(wild.fds[RGATE_FD_AREA]);
	close(wild.fds[RGATE_FD_KICK]);
	close(wild.fds[RGATE_FD_WAIT]);
	bed_close(&b);
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
	struct bed b = { 0 };

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
	view(&b);
	assert_ptr_equal(b.dask.memory, word);
	rgate_dasker_init(&me, &b.dask, 0);
	q = (struct rgate_request){ .op = RGATE_REQ_MEMORY_OPEN, .a0 = RGATE_MEMORY_HERE, .len = 1,
				    .a1 = RGATE_MEMORY_OPEN_A1(geteuid(), RGATE_MEMORY_ATOMIC) };
	q.handle = RGATE_MEMORY_HANDLE(must_wait(&me, must_submit(&me, q)).value);
	q = (struct rgate_request){ .op = RGATE_REQ_MEMORY_FETCH_ADD, .handle = q.handle,
				    .a1 = 3 };
	for (i = 0; i < 300; i++)
		assert_int_equal(must_wait(&me, must_submit(&me, q)).value, i * 3);
	assert_int_equal(__atomic_load_n(word + 512, __ATOMIC_ACQUIRE), 900);
	rgate_dasker_fini(&me);
	all_free(&b);
	runtime_close(&b.r);
	rgate_session_close(s);
}

/* What cannot be bound, and what fails on the way leaves nothing behind (fake_teardown) */
static void refused(void **state)
{
	struct rgate_session_loan bad;
	unsigned int i, index[RGATE_GPU_SESSIONS_MAX], none = 99;
	struct rgate_dask d;
	struct bed b;

	(void)state;
	bed_open(&b, OWN, 64);
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
	bed_close(&b);
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
	ticket = must_submit(&me, (struct rgate_request){ .op = SLEEPY_HOLD });
	got = rgate_dask_wait(&me, ticket, &a, ~0ULL);
	__atomic_store_n(&s->got, got, __ATOMIC_RELEASE);
	return 0;
}

FAKE_LANES(stuck_kernel, wait_for_ever, 64, 0);

/* While a kernel runs nothing is unbound; one that waits for ever is let go by closing */
static void closed_waiting(void **state)
{
	static struct stuck s;
	static struct bed b;	/* the runtime is never freed */
	unsigned int n;

	(void)state;
	memset(&b, 0, sizeof(b));
	runtime_prepare(&b.r, 0);
	b.r.opts.close_ms = 20;
	runtime_begin(&b.r, 1, 64);
	seat_open(&b, 64);
	assert_int_equal(rgate_gpu_bind_session(b.r.gpu, &b.loan, NULL, &b.index), 0);
	view(&b);
	s.dask = b.dask;
	b.r.start.arg = &s;
	assert_int_equal(rgate_gpu_start(b.r.gpu, &stuck_kernel, &b.r.start), 0);
	assert_int_equal(rgate_gpu_unbind_session(b.r.gpu, b.index), -EBUSY);
	assert_int_equal(rgate_gpu_bind_session(b.r.gpu, &b.loan, NULL, &n), -EBUSY);
	runtime_put(&b.r, 0, 1);
	runtime_until(__atomic_load_n(&b.area.requests[0].seq, __ATOMIC_ACQUIRE));
	runtime_close(&b.r);
	runtime_until(__atomic_load_n(&s.got, __ATOMIC_ACQUIRE));
	assert_int_equal(s.got, -EPIPE);
	fake_join();
	seat_close(&b);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test_setup_teardown(in_turn, fake_setup, fake_teardown),
	cmocka_unit_test_setup_teardown(out_of_order, fake_setup, fake_teardown),
	cmocka_unit_test_setup_teardown(full, fake_setup, fake_teardown),
	cmocka_unit_test(credits),
	cmocka_unit_test_setup_teardown(no_place, fake_setup, fake_teardown),
	cmocka_unit_test_setup_teardown(limits_and_cancel, fake_setup, fake_teardown),
	cmocka_unit_test_setup_teardown(chains, fake_setup, fake_teardown),
	cmocka_unit_test_setup_teardown(daemon_dies, fake_setup, fake_teardown),
	cmocka_unit_test_setup_teardown(engine_ends, fake_setup, fake_teardown),
	cmocka_unit_test_setup_teardown(garbage_completions, fake_setup, fake_teardown),
	cmocka_unit_test_setup_teardown(garbage_requests, fake_setup, fake_teardown),
	cmocka_unit_test_setup_teardown(lent, fake_setup, fake_teardown),
	cmocka_unit_test_setup_teardown(refused, fake_setup, fake_teardown),
	/* leaves its kernel's memory behind */
	cmocka_unit_test(closed_waiting),
};

UNIT_MAIN(tests)
