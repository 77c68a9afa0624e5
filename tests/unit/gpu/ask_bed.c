// SPDX-License-Identifier: MIT OR GPL-2.0
#include "unit.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "ask_bed.h"

struct rgate_session_loan ask_loan_of(const struct ask_bed *b, const struct rgate_area *a)
{
	return (struct rgate_session_loan){
		.sz = sizeof(b->loan), .requests = a->requests, .completions = a->completions,
		.request_credits = a->req_credits, .completion_credits = a->comp_credits,
		.server = a->server, .area = a->base, .area_len = a->len,
		.places = (uint32_t)a->req_mask + 1, .room = a->req_mask + 1,
		.completion_places = (uint32_t)a->comp_mask + 1, .owner = a->head->owner,
		.kick_fd = b->fds[RGATE_FD_KICK], .gone_fd = b->daemon[0],
		.want = (uint64_t *)&a->client->want, .wait_fd = b->fds[RGATE_FD_WAIT],
	};
}

void ask_seat_open(struct ask_bed *b)
{
	const struct rgate_seat_opts o = RGATE_OPTS(rgate_seat_opts, .requests = ASK_PLACES,
						    .completions = ASK_PLACES);
	const struct rgate_engine_opts eo = RGATE_OPTS(rgate_engine_opts,
						       .spin_us = RGATE_SPIN_NONE);
	struct rgate_welcome w;

	sleepy_start();
	assert_int_equal(rgate_engine_create(&b->engine, &eo), 0);
	assert_int_equal(rgate_engine_add(b->engine, &sleepy_service, NULL), 0);
	assert_int_equal(rgate_seat_add(b->engine, &o, &b->seat, &w, b->fds), 0);
	assert_int_equal(rgate_area_map(&b->area, b->fds[RGATE_FD_AREA], ASK_PLACES, ASK_PLACES,
					0), 0);
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, b->daemon), 0);
	b->loan = ask_loan_of(b, &b->area);
}

void ask_view(struct ask_bed *b)
{
	assert_int_equal(rgate_gpu_session_view(b->r.gpu, b->index, &b->dask, sizeof(b->dask)), 0);
}

void ask_bed_open(struct ask_bed *b, enum ask_mapping mapping, uint32_t tickets)
{
	struct rgate_gpu_session_opts o = RGATE_OPTS(rgate_gpu_session_opts, .tickets = tickets);

	memset(b, 0, sizeof(*b));
	runtime_open(&b->r, 0, 0, 64);
	ask_seat_open(b);
	if (mapping == ASK_ENGINES)
		b->loan = ask_loan_of(b, &b->seat->area);
	assert_int_equal(rgate_gpu_bind_session(b->r.gpu, &b->loan, &o, &b->index), 0);
	ask_view(b);
}

void ask_end_engine(struct ask_bed *b)
{
	if (!b->engine)
		return;
	rgate_seat_remove(b->seat);
	rgate_engine_destroy(b->engine);
	b->engine = NULL;
	sleepy_stop();
}

void ask_seat_close(struct ask_bed *b)
{
	ask_end_engine(b);
	rgate_area_unmap(&b->area);
	close(b->fds[RGATE_FD_AREA]);
	close(b->fds[RGATE_FD_KICK]);
	close(b->fds[RGATE_FD_WAIT]);
	close(b->daemon[0]);
	if (b->daemon[1] >= 0)
		close(b->daemon[1]);
}

void ask_bed_close(struct ask_bed *b)
{
	runtime_close(&b->r);
	ask_seat_close(b);
}

struct rgate_gpu_session_stats ask_stats(struct ask_bed *b)
{
	struct rgate_gpu_session_stats st = { .sz = sizeof(st) };

	assert_int_equal(rgate_gpu_session_stats(b->r.gpu, b->index, &st), 0);
	return st;
}

uint64_t ask_accepted(struct ask_bed *b)
{
	struct rgate_engine_stats st = { .sz = sizeof(st) };

	assert_int_equal(rgate_engine_stats(b->engine, &st), 0);
	return st.accepted;
}

void ask_all_free(const struct ask_bed *b)
{
	uint32_t i;

	for (i = 0; i < b->dask.ncells / 32; i++)
		assert_int_equal(b->dask.free[i], ~0U);
}

uint64_t ask_submit(struct rgate_dasker *me, struct rgate_request q)
{
	uint64_t ticket;
	int err;

	while ((err = rgate_dask_submit(me, &q, &ticket)) == -EAGAIN)
		rgate_dpause(0);
	unit_require(!err);
	return ticket;
}

struct rgate_danswer ask_wait(struct rgate_dasker *me, uint64_t ticket)
{
	struct rgate_danswer a = { 0 };

	unit_require(rgate_dask_wait(me, ticket, &a, ASK_LONG) == 1);
	return a;
}

void ask_run_threads(struct ask_bed *b, void *(*fn)(void *), unsigned int rounds)
{
	struct ask_thread t[ASK_THREADS];
	unsigned int i;

	for (i = 0; i < ASK_THREADS; i++) {
		t[i] = (struct ask_thread){ .b = b, .number = i, .rounds = unit_rounds(rounds) };
		assert_int_equal(pthread_create(&t[i].thread, NULL, fn, &t[i]), 0);
	}
	for (i = 0; i < ASK_THREADS; i++)
		pthread_join(t[i].thread, NULL);
}

void *ask_in_turn(void *arg)
{
	struct ask_thread *t = arg;
	struct rgate_danswer a;
	struct rgate_dasker me;
	uint64_t i, seed = t->number;

	rgate_dasker_init(&me, &t->b->dask, t->number % 2);
	for (i = 0; i < t->rounds; i++) {
		uint64_t v = unit_random(&seed);

		a = ask_wait(&me, ask_submit(&me, (struct rgate_request){
			.op = RGATE_REQ_NOP, .a0 = v }));
		unit_require(a.result == 0 && a.flags == 0 && a.value == v);
	}
	rgate_dasker_fini(&me);
	return NULL;
}
