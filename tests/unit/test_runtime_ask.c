// SPDX-License-Identifier: MIT OR GPL-2.0
/* Requests of a GPU on this CPU: submitting, waiting, what is full, late, linked or cancelled */
#include "unit.h"

#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "ask_bed.h"
#include "ask_proxy.h"

/* One after the other by each thread: the engine falls asleep between, and is woken */
static void in_turn(void **state)
{
	struct ask_bed b;

	(void)state;
	ask_bed_open(&b, ASK_ENGINES, 64);
	ask_run_threads(&b, ask_in_turn, 300);
	ask_all_free(&b);
	assert_int_equal(b.dask.state->lock / 2, ASK_THREADS * unit_rounds(300));
	assert_int_equal(ask_stats(&b).strays, 0);
	assert_true(ask_stats(&b).kicks > 0);
	ask_bed_close(&b);
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
		return ask_wait(me, ticket);
	if (how % 3 == 1)
		got = rgate_dask_wait_warp(me, ticket, &a, ASK_LONG);
	else
		while (!(got = rgate_dask_poll(me, ticket, &a)))
			rgate_dpause(0);
	unit_require(got == 1);
	return a;
}

static void *ask_at_once(void *arg)
{
	struct ask_thread *t = arg;
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
	struct ask_bed b;

	(void)state;
	ask_bed_open(&b, ASK_ENGINES, 64);
	ask_run_threads(&b, ask_at_once, 1500);
	ask_all_free(&b);
	assert_int_equal(b.dask.state->lock / 2, ASK_THREADS * unit_rounds(1500));
	assert_int_equal(ask_stats(&b).strays, 0);
	assert_int_equal(ask_stats(&b).failed, 0);
	ask_bed_close(&b);
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
	struct ask_bed b;

	(void)state;
	ask_bed_open(&b, ASK_OWN, 32);
	rgate_dasker_init(&me, &b.dask, 0);
	assert_int_equal(rgate_dask_submit_many(&me, &q, 0, ticket), -EINVAL);
	assert_int_equal(rgate_dask_submit_many(&me, &q, 33, ticket), -EINVAL);
	assert_int_equal(rgate_dask_submit_warp(&me, &q, 0, ticket), -EINVAL);
	for (i = 0; i < 30; i++)
		assert_int_equal(rgate_dask_submit(&me, &hold, &ticket[i]), 0);
	/* two tickets are left: all of three or none */
	assert_int_equal(rgate_dask_submit_many(&me, (struct rgate_request[]){ q, q, q }, 3,
						ticket + 30), -EAGAIN);
	more = ask_submit(&me, q);
	ask_wait(&me, more);
	for (i = 0; i < 30; i++) {
		assert_int_equal(rgate_dask_cancel(&me, ticket[i], &cancel[i]), 0);
		assert_int_equal(ask_wait(&me, cancel[i]).result, 0);
		assert_int_equal(ask_wait(&me, ticket[i]).result, -ECANCELED);
	}
	assert_int_equal(rgate_dask_poll(&me, ticket[0], &a), -EINVAL);
	assert_int_equal(rgate_dask_poll(&me, 0, &a), -EINVAL);
	assert_int_equal(rgate_dask_poll(&me, ~0ULL, &a), -EINVAL);
	rgate_dasker_fini(&me);
	ask_all_free(&b);
	ask_bed_close(&b);
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

static uint64_t word(const uint64_t *p)
{
	return __atomic_load_n(p, __ATOMIC_ACQUIRE);
}

/* Laps go by between two looks of the thread that wakes: it finds where the rings are, and wakes */
static void lapped(void **state)
{
	struct rgate_req_server server = { .state = RGATE_REQ_OPEN };
	struct rgate_request reqs[64] = { { 0 } };
	uint64_t credit[2] = { 5, 4 }, over = 0, n;
	struct rgate_session_loan loan = {
		.requests = reqs, .completion_credits = credit, .server = &server, .places = 64,
		.completion_places = 64, .gone_fd = -1, .kick_fd = eventfd(0, EFD_NONBLOCK),
	};
	struct rgate_ask_proxy p;
	unsigned int i;

	(void)state;
	for (i = 0; i < 64; i++)
		reqs[i].seq = i < 10 ? 3 : 2;
	assert_int_equal(rgate_ask_proxy_start(&p, &loan, &over, 0, 1000000), 0);
	runtime_until(word(&p.seen) == 2 * 64 + 10);
	__atomic_store_n(&server.need, RGATE_REQ_NEED_REQUEST, __ATOMIC_SEQ_CST);
	__atomic_store_n(&reqs[10].seq, 3, __ATOMIC_RELEASE);
	runtime_until(word(&p.kicks) == 1);
	assert_int_equal(read(loan.kick_fd, &n, sizeof(n)), sizeof(n));
	__atomic_store_n(&server.need, RGATE_REQ_NEED_CREDIT, __ATOMIC_SEQ_CST);
	__atomic_store_n(&credit[1], 5, __ATOMIC_RELEASE);
	runtime_until(word(&p.kicks) == 2);
	assert_int_equal(word(&over), 0);
	rgate_ask_proxy_stop(&p);
	assert_int_equal(p.published, 2 * 64 + 11);
	assert_int_equal(p.credited, 5 * 64);
	assert_int_equal(over, 1);
	close(loan.kick_fd);
}

/* A session's words without an engine, and the thread that looks at them */
struct words {
	struct rgate_req_server server;
	struct rgate_request reqs[64];
	struct rgate_completion comps[64];
	uint64_t credit[2], over, want;
	struct rgate_session_loan loan;
	struct rgate_ask_proxy p;
	int edge;
};

static void words_start(struct words *w, uint32_t need, uint64_t idle_ns)
{
	struct epoll_event ev = { .events = EPOLLIN | EPOLLET };

	memset(w, 0, sizeof(*w));
	w->server.state = RGATE_REQ_OPEN;
	w->server.need = need;
	w->edge = eventfd(0, EFD_NONBLOCK);
	w->loan = (struct rgate_session_loan){
		.requests = w->reqs, .completions = w->comps, .completion_credits = w->credit,
		.server = &w->server, .places = 64, .completion_places = 64, .gone_fd = -1,
		.kick_fd = eventfd(0, EFD_NONBLOCK), .want = &w->want,
		.wait_fd = epoll_create1(0),
	};
	assert_int_equal(epoll_ctl(w->loan.wait_fd, EPOLL_CTL_ADD, w->edge, &ev), 0);
	assert_int_equal(rgate_ask_proxy_start(&w->p, &w->loan, &w->over, 0, idle_ns), 0);
}

static void words_stop(struct words *w)
{
	rgate_ask_proxy_stop(&w->p);
	assert_int_equal(word(&w->want), 0);
	close(w->loan.kick_fd);
	close(w->loan.wait_fd);
	close(w->edge);
}

/* As the engine tells of it: the completion, a fence, and who sleeps until then */
static void tell(struct words *w, unsigned int number)
{
	const uint64_t one = 1;

	__atomic_store_n(&w->comps[number].seq, 1, __ATOMIC_SEQ_CST);
	if (word(&w->want) == number + 1)
		assert_int_equal(write(w->edge, &one, sizeof(one)), sizeof(one));
}

/*
 * An answer wakes the thread, which sleeps for an hour otherwise, and what is asked for then wakes
 * the engine: at once, and after the thread has slept again
 */
static void answer_wakes(void **state)
{
	struct words w;
	unsigned int i;
	uint64_t looks;

	(void)state;
	for (i = 0; i < 20; i++) {
		words_start(&w, RGATE_REQ_NEED_REQUEST, 3600 * 1000000000ULL);
		runtime_until(word(&w.want) == 1);
		tell(&w, 0);
		runtime_until(word(&w.want) == 2);
		/* one edge is one wakeup: then it looks less and less often */
		looks = word(&w.p.looks);
		usleep(5000);
		assert_in_range(word(&w.p.looks) - looks, 0, 50);
		tell(&w, 1);
		__atomic_store_n(&w.reqs[0].seq, 1, __ATOMIC_RELEASE);
		runtime_until(word(&w.p.kicks) == 1);
		words_stop(&w);
	}
}

/* While the engine is awake no answer wakes the thread, but that it falls asleep does */
static void awake(void **state)
{
	const uint64_t one = 1;
	struct words w;

	(void)state;
	words_start(&w, 0, 3600 * 1000000000ULL);
	runtime_until(word(&w.want) == RGATE_REQ_WANT_NEED);
	tell(&w, 0);
	__atomic_store_n(&w.reqs[0].seq, 1, __ATOMIC_RELEASE);
	usleep(5000);
	assert_int_equal(word(&w.want), RGATE_REQ_WANT_NEED);
	assert_int_equal(word(&w.p.kicks), 0);
	/* one that has not been taken before: it is kicked for, and the next answer waited for */
	__atomic_store_n(&w.server.need, RGATE_REQ_NEED_REQUEST, __ATOMIC_SEQ_CST);
	assert_int_equal(write(w.edge, &one, sizeof(one)), sizeof(one));
	runtime_until(word(&w.p.kicks) == 1);
	runtime_until(word(&w.want) == 2);
	words_stop(&w);
}

/* An engine that sleeps as it has no place for completions is woken when some were taken */
static void no_place(void **state)
{
	struct rgate_dasker me;
	uint64_t ticket[65];
	unsigned int i;
	struct ask_bed b;

	(void)state;
	ask_bed_open(&b, ASK_OWN, 128);
	rgate_dasker_init(&me, &b.dask, 0);
	for (i = 0; i < 64; i++)
		ticket[i] = ask_submit(&me, (struct rgate_request){ .op = RGATE_REQ_NOP, .a0 = i });
	runtime_until(ask_accepted(&b) == 64);
	/* not rgate_dask_full(), which would take some */
	while (rgate_dask_refill(&b.dask), b.dask.state->limit == 64)
		rgate_dpause(0);
	ticket[64] = ask_submit(&me, (struct rgate_request){ .op = RGATE_REQ_NOP, .a0 = 64 });
	runtime_until(__atomic_load_n(&b.area.server->need, __ATOMIC_ACQUIRE) ==
		      RGATE_REQ_NEED_CREDIT);
	assert_int_equal(ask_accepted(&b), 64);
	for (i = 65; i--;)
		assert_int_equal(ask_wait(&me, ticket[i]).value, i);
	rgate_dasker_fini(&me);
	ask_all_free(&b);
	ask_bed_close(&b);
}

/* Waiting ends when it is told to; the ticket goes on, and can be cancelled */
static void limits_and_cancel(void **state)
{
	struct rgate_dasker me, other;
	struct rgate_danswer a = { 0 };
	uint64_t hold, again, cancel;
	struct ask_bed b;

	(void)state;
	ask_bed_open(&b, ASK_OWN, 64);
	rgate_dasker_init(&me, &b.dask, 0);
	rgate_dasker_init(&other, &b.dask, 0);
	hold = ask_submit(&me, (struct rgate_request){ .op = SLEEPY_HOLD });
	assert_int_equal(rgate_dask_wait(&me, hold, &a, 1000000), 0);
	assert_int_equal(rgate_dask_wait_warp(&me, hold, &a, 1000000), 0);
	assert_int_equal(rgate_dask_poll(&me, hold, &a), 0);
	assert_int_equal(rgate_dask_cancel(&me, hold, &cancel), 0);
	assert_int_equal(ask_wait(&me, cancel).result, 0);
	/* by another thread than has asked */
	assert_int_equal(ask_wait(&other, hold).result, -ECANCELED);
	assert_int_equal(rgate_dask_cancel(&me, hold, &cancel), 0);
	assert_int_equal(ask_wait(&me, cancel).result, -ENOENT);
	again = ask_submit(&me, (struct rgate_request){ .op = SLEEPY_HOLD, .deadline_us = 1000 });
	assert_int_equal(ask_wait(&me, again).result, -ETIMEDOUT);
	assert_int_not_equal(again, hold);
	rgate_dasker_fini(&me);
	rgate_dasker_fini(&other);
	ask_all_free(&b);
	ask_bed_close(&b);
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
	struct ask_bed b;

	(void)state;
	ask_bed_open(&b, ASK_OWN, 64);
	rgate_dasker_init(&me, &b.dask, 0);
	assert_int_equal(rgate_dask_submit_many(&me, q, 4, t), 0);
	assert_int_equal(ask_wait(&me, t[3]).value, 4);
	assert_int_equal(ask_wait(&me, t[2]).result, -ECANCELED);
	assert_int_equal(ask_wait(&me, t[1]).result, -EOPNOTSUPP);
	assert_int_equal(ask_wait(&me, t[0]).value, 1);
	for (i = 0; i < 100; i++) {
		t[0] = ask_submit(&me, (struct rgate_request){
			.op = i % 2 ? RGATE_REQ_NOP : RGATE_REQ_OP(SLEEPY, 61),
			.flags = RGATE_REQ_NO_COMPLETION });
		assert_int_equal(t[0], 0);
	}
	ask_wait(&me, ask_submit(&me, (struct rgate_request){
		.op = RGATE_REQ_NOP, .flags = RGATE_REQ_DRAIN }));
	assert_int_equal(ask_stats(&b).failed, 50);
	assert_int_equal(ask_stats(&b).strays, 0);
	rgate_dasker_fini(&me);
	ask_all_free(&b);
	ask_bed_close(&b);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test_setup_teardown(in_turn, fake_setup, fake_teardown),
	cmocka_unit_test_setup_teardown(out_of_order, fake_setup, fake_teardown),
	cmocka_unit_test_setup_teardown(full, fake_setup, fake_teardown),
	cmocka_unit_test(credits),
	cmocka_unit_test(lapped),
	cmocka_unit_test(answer_wakes),
	cmocka_unit_test(awake),
	cmocka_unit_test_setup_teardown(no_place, fake_setup, fake_teardown),
	cmocka_unit_test_setup_teardown(limits_and_cancel, fake_setup, fake_teardown),
	cmocka_unit_test_setup_teardown(chains, fake_setup, fake_teardown),
};

UNIT_MAIN(tests)
