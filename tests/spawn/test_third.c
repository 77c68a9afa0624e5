// SPDX-License-Identifier: MIT OR GPL-2.0
/* A third node, which wants what the first asks of the second to be something else. */
#include "ended.h"
#include "raw.h"

#include <endian.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

static struct serve s;			/* node 0 runs what node 1 asks for */
static struct rgate_node *third;	/* node 2 */
static struct rgate_peer *to_first, *to_third;

/* What the client's messages say of its memory; the server is another process. */
static struct rgate_spawn_start told;
static unsigned int exposed;		/* messages that lie where peers may write */

static bool is_lent(const void *addr)
{
	struct rgate_pool_region r = { .sz = sizeof(r) };
	unsigned int i;

	for (i = 0; !rgate_pool_region(rgate_node_pool(s.node), i, &r); i++)
		if ((const char *)addr >= (const char *)r.addr &&
		    (const char *)addr < (const char *)r.addr + r.length)
			return true;
	return false;
}

int __real_rgate_peer_post(struct rgate_peer *peer, const struct rgate_op *ops, unsigned int n,
			   uint64_t *ticket);
int __wrap_rgate_peer_post(struct rgate_peer *peer, const struct rgate_op *ops, unsigned int n,
			   uint64_t *ticket);

int __wrap_rgate_peer_post(struct rgate_peer *peer, const struct rgate_op *ops, unsigned int n,
			   uint64_t *ticket)
{
	if (peer == s.peer && ops->kind == RGATE_OP_SEND) {
		exposed += is_lent(ops->sge->addr);
		if (ops->sge->length == sizeof(told))
			memcpy(&told, ops->sge->addr, sizeof(told));
	}
	return __real_rgate_peer_post(peer, ops, n, ticket);
}

/* One operation of the third node on the first one's memory: 0, or how it ended */
static int reach(uint8_t kind, const struct rgate_desc *desc, const struct rgate_buf *buf,
		 uint32_t len)
{
	struct rgate_sge sge = { buf->addr, len, buf->lkey };
	struct rgate_op op = { .kind = kind, .nsge = 1, .sge = &sge };
	struct rgate_remote at;
	uint64_t ticket;

	wait_for(peer_state(to_first) == RGATE_PEER_UP);
	assert_int_equal(rgate_desc_parse(&at, desc, sizeof(*desc)), 0);
	op.remote = at.addr;
	op.rkey = at.rkey;
	assert_int_equal(rgate_peer_post(to_first, &op, 1, &ticket), 0);
	return rgate_peer_finish(to_first, ticket, (int)MS);
}

static void assert_refused(uint8_t kind, const struct rgate_desc *desc,
			   const struct rgate_buf *buf, uint32_t len)
{
	assert_int_equal(reach(kind, desc, buf, len), -EREMOTEIO);
}

/* It says that it is to run another program: what was read is what was asked for. */
static void other_program(void **state)
{
	const struct rgate_alloc_opts zero = RGATE_OPTS(rgate_alloc_opts,
							.flags = RGATE_ALLOC_ZERO);
	struct rgate_spawn_result r = { .sz = sizeof(r) };
	struct rgate_spawn_output_buf out[2] = { { 0 } };
	struct rgate_spawn_job *job;
	const struct rgate_buf *buf;
	uint32_t len;

	(void)state;
	assert_int_equal(rgate_pool_alloc_opts(rgate_node_pool(third), 4096, &zero, &buf), 0);
	/* Nothing is read while the server stands still. */
	kill(s.server, SIGSTOP);
	job = start(&s, 0, "/bin/echo", "first");
	wait_for((rgate_spawn_process(s.spawn), told.h.type == RGATE_SPAWN_START));
	/* What the server is to write, others can, too: that is how they reach it at all. */
	assert_int_equal(reach(RGATE_OP_WRITE, &told.memory, buf, 8), 0);
	len = raw_record(buf->addr, "/bin/echo\0/bin/echo\0third", 26, 10, 2,
			 RGATE_SPAWN_IN_STREAM);
	assert_refused(RGATE_OP_WRITE, &told.lent, buf, len);
	assert_refused(RGATE_OP_COMPARE_SWAP, &told.lent, buf, 8);
	assert_refused(RGATE_OP_FETCH_ADD, &told.lent, buf, 8);
	kill(s.server, SIGCONT);
	assert_int_equal(rgate_spawn_job_close_stdin(job), 0);
	assert_int_equal(rgate_spawn_job_collect(job, out, 100, &r, MS), 0);
	assert_int_equal(r.error, 0);
	assert_string_equal(out[0].data, "first\n");
	free(out[0].data);
	free(out[1].data);
	rgate_spawn_job_close(job);
	assert_int_equal(rgate_pool_free(rgate_node_pool(third), buf), 0);
	assert_int_equal(exposed, 0);
}

static int up(void **state)
{
	(void)state;
	s.nodes = 3;
	serve_up(&s, NULL);
	third = cluster_node(&s.c, 2);
	assert_int_equal(rgate_peer_open(&to_third, s.node, 2), 0);
	assert_int_equal(rgate_peer_open(&to_first, third, 1), 0);
	return 0;
}

static int down(void **state)
{
	(void)state;
	kill(s.server, SIGCONT);
	rgate_peer_close(to_first);
	rgate_peer_close(to_third);
	assert_int_equal(node_ended(third), 0);
	serve_down(&s);
	return 0;
}

/*
 * Programs that never read what they are given keep what the server has fetched of it, as long as
 * they live: another node's go on.
 */
static void full_stage(void **state)
{
	static const char policy[] = "node 1 user %1$s\nnode 2 user %1$s\nallow * any\n";
	static const char *const hello[] = { "/bin/echo", "hello", NULL };
	const struct rgate_spawn_request req = RGATE_OPTS(rgate_spawn_request, .argv = hello,
		.stdout_mode = RGATE_SPAWN_OUT_STREAM);
	static const char *const argv[] = { "/bin/sleep", "100", NULL };
	const struct rgate_spawn_request deaf = RGATE_OPTS(rgate_spawn_request, .argv = argv,
		.stdin_mode = RGATE_SPAWN_IN_STREAM);
	static char some[64 << 10];
	struct rgate_spawn_job *jobs[2], *job;
	struct rgate_spawn *spawn;
	struct rgate_peer *peer;
	unsigned int i;
	char buf[16];

	(void)state;
	/* Nothing of the last one, which the server's posts would be looked for in */
	s = (struct serve){ .nodes = 3, .stage_bytes = 134000 };
	serve_up(&s, policy);
	third = cluster_node(&s.c, 2);
	assert_int_equal(rgate_peer_open(&peer, third, 0), 0);
	assert_int_equal(rgate_peer_wait_up(peer, MS), 0);
	assert_int_equal(rgate_spawn_open(&spawn, third, peer, NULL), 0);
	/* Two chunks and the statuses are nearly all there is. */
	for (i = 0; i < 2; i++) {
		assert_int_equal(rgate_spawn_start(s.spawn, &deaf, &jobs[i]), 0);
		while (rgate_spawn_job_write(jobs[i], some, sizeof(some), 300) > 0)
			;
	}
	assert_int_equal(rgate_spawn_start(spawn, &req, &job), 0);
	assert_int_equal(rgate_spawn_job_read(job, 1, buf, sizeof(buf), 1000), 6);
	assert_int_equal(rgate_spawn_job_wait(job, NULL, MS), 0);
	rgate_spawn_job_close(job);
	for (i = 0; i < 2; i++)
		rgate_spawn_job_close(jobs[i]);
	rgate_spawn_close(spawn);
	rgate_peer_close(peer);
	assert_int_equal(node_ended(third), 0);
	serve_down(&s);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test_setup_teardown(other_program, up, down),
	cmocka_unit_test(full_stage),
};

UNIT_MAIN(tests)
