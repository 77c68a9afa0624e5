/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/* An engine that the test turns by itself, with clients of two users; of one program each. */
#ifndef REQ_PAIR_H
#define REQ_PAIR_H

#include "req_bed.h"

#include <sys/epoll.h>

static struct rgate_engine *e;
static struct client a, b;

/* A turn looks for what is there, and leaves it to the caller to wait. */
int __real_epoll_wait(int ep, struct epoll_event *ev, int n, int ms);
int __wrap_epoll_wait(int ep, struct epoll_event *ev, int n, int ms);

int __wrap_epoll_wait(int ep, struct epoll_event *ev, int n, int ms)
{
	unit_require(!ms);
	return __real_epoll_wait(ep, ev, n, ms);
}

static inline int setup(void **state)
{
	(void)state;
	e = bed_engine();
	client_new(&a, e, 1);
	client_new(&b, e, 2);
	return 0;
}

static inline int teardown(void **state)
{
	(void)state;
	/* what a test that failed has left */
	while (late.n)
		late_end(rgate_req_get(late.held[0])->cookie, 0, 0);
	rgate_engine_destroy(e);
	client_close(&a);
	client_close(&b);
	return 0;
}

static inline struct rgate_engine_stats stats(void)
{
	struct rgate_engine_stats st = { .sz = sizeof(st) };

	assert_int_equal(rgate_engine_stats(e, &st), 0);
	return st;
}

/* The next completion is this one's */
static inline void expect(struct client *c, uint64_t cookie, int result)
{
	struct rgate_completion done;

	bed_run(e);
	assert_true(client_poll(c, &done));
	assert_int_equal(done.cookie, cookie);
	assert_int_equal(done.result, result);
	assert_int_equal(done.flags, 0);
}

static inline void expect_none(struct client *c)
{
	struct rgate_completion done;

	bed_run(e);
	assert_false(client_poll(c, &done));
}

static inline uint64_t value_of(struct client *c, struct rgate_request q, int result)
{
	struct rgate_completion done;

	q.cookie = 4711;
	client_submit(c, q);
	bed_run(e);
	assert_true(client_poll(c, &done));
	assert_int_equal(done.cookie, 4711);
	assert_int_equal(done.result, result);
	return done.value;
}

#define ASK(o, ...) ((struct rgate_request){ .op = (o), ##__VA_ARGS__ })

#endif
