// SPDX-License-Identifier: MIT OR GPL-2.0
/* What ends a connection, and what becomes of what was under way, by a provider that
 * answers as it is told. */
#include "unit.h"

#include <errno.h>
#include <string.h>

#include "link.h"

#define DEPTH	16U

static struct rgate_prov_done answer[DEPTH];
static unsigned int answers, posted;

static int fake_prepare(struct rgate_conn *conn)
{
	(void)conn;
	return 0;
}

static int fake_recv(struct rgate_conn *conn, uint64_t id, void *addr, uint32_t len,
		     uint32_t lkey)
{
	(void)conn;
	(void)id;
	(void)addr;
	(void)len;
	(void)lkey;
	return 0;
}

static int fake_post(struct rgate_conn *conn, const struct rgate_prov_work *work,
		     unsigned int n)
{
	(void)conn;
	(void)work;
	posted += n;
	return 0;
}

static int fake_poll(struct rgate_conn *conn, struct rgate_prov_done *done, unsigned int n)
{
	const unsigned int some = answers < n ? answers : n;

	(void)conn;
	memcpy(done, answer, some * sizeof(*done));
	memmove(answer, answer + some, (answers - some) * sizeof(*answer));
	answers -= some;
	return (int)some;
}

static void fake_destroy(struct rgate_conn *conn)
{
	(void)conn;
}

static uint32_t fake_inline_size(const struct rgate_conn *conn)
{
	(void)conn;
	return 0;
}

static const struct rgate_prov_ops fake = {
	.name = "fake", .prepare = fake_prepare, .recv = fake_recv, .post = fake_post,
	.poll = fake_poll, .destroy = fake_destroy, .inline_size = fake_inline_size,
};

struct fixture {
	struct rgate_op_count counts[RGATE_OP_KINDS];
	struct rgate_pool *pool;
	struct rgate_link *link;
};

static void up(struct fixture *f)
{
	const struct rgate_pool_opts po = RGATE_OPTS(rgate_pool_opts, .region_size = 2 << 20,
						     .flags = RGATE_POOL_NO_HUGE);
	struct rgate_link_opts lo = { .prov = &fake, .counts = f->counts, .msg_size = 64,
				      .msg_depth = 4, .send_depth = DEPTH };

	memset(f, 0, sizeof(*f));
	answers = posted = 0;
	assert_int_equal(rgate_pool_create(&f->pool, NULL, &po), 0);
	lo.pool = f->pool;
	assert_int_equal(rgate_link_create(&f->link, &lo), 0);
	f->link->conn = (struct rgate_conn *)f;
	assert_int_equal(rgate_link_prepare(f->link), 0);
	assert_int_equal(rgate_link_set_peer(f->link, 64, 4, 1), 0);
	f->link->state = RGATE_LINK_UP;
}

static void down(struct fixture *f)
{
	rgate_link_destroy(f->link);
	assert_int_equal(rgate_pool_destroy(f->pool), 0);
}

/* One operation of the user's, or of the library's own */
static uint64_t post(struct fixture *f, bool internal)
{
	const struct rgate_sge s = { .addr = f->link->line, .length = 8 };
	const struct rgate_op op = { .kind = RGATE_OP_WRITE, .nsge = 1, .sge = &s };
	uint64_t seq;

	assert_int_equal(rgate_link_post(f->link, &op, 1, internal, &seq), 0);
	return seq;
}

static void tell(uint64_t id, int status)
{
	answer[answers++] = (struct rgate_prov_done){ .kind = RGATE_PROV_SENT, .id = id,
						      .status = status };
}

/* The other end has closed it: that is what the user is told, not that something failed
 * before, which nothing did. */
static void flushed(void **state)
{
	struct fixture f;
	uint64_t first;

	(void)state;
	up(&f);
	tell(post(&f, false), 0);
	assert_int_equal(rgate_link_progress(f.link), 1);
	first = post(&f, false);
	tell(first, -ECANCELED);
	tell(post(&f, false), -ECANCELED);
	assert_int_equal(posted, 3);
	(void)rgate_link_progress(f.link);
	assert_int_equal(f.link->state, RGATE_LINK_DEAD);
	assert_int_equal(f.link->op_err, -ECONNRESET);
	assert_int_equal(f.link->failed_seq, first);
	assert_int_equal(f.link->outcome, RGATE_OUTCOME_UNKNOWN);
	assert_int_equal(f.counts[RGATE_OP_WRITE].failed, 2);
	down(&f);
}

/* What came first counts, also where it was a heartbeat. */
static void first_error(void **state)
{
	struct fixture f;
	uint64_t mine;

	(void)state;
	up(&f);
	tell(post(&f, true), -ETIMEDOUT);
	mine = post(&f, false);
	tell(mine, -ECANCELED);
	(void)rgate_link_progress(f.link);
	assert_int_equal(f.link->op_err, -ETIMEDOUT);
	assert_int_equal(f.link->failed_seq, mine);
	assert_int_equal(f.counts[RGATE_OP_WRITE].failed, 1);
	down(&f);
}

/* Refused: that one did nothing, those before it are well. */
static void refused(void **state)
{
	struct fixture f;
	uint64_t bad;

	(void)state;
	up(&f);
	post(&f, false);
	bad = post(&f, false);
	post(&f, false);
	tell(bad, -EREMOTEIO);
	tell(bad + 1, -ECANCELED);
	(void)rgate_link_progress(f.link);
	assert_int_equal(f.link->done, bad - 1);
	assert_int_equal(f.link->op_err, -EREMOTEIO);
	assert_int_equal(f.link->failed_seq, bad);
	assert_int_equal(f.link->outcome, RGATE_OUTCOME_NOT_DONE);
	down(&f);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(flushed),
	cmocka_unit_test(first_error),
	cmocka_unit_test(refused),
};

UNIT_MAIN(tests)
