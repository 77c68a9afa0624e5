// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * What ends a connection, what becomes of what was under way, and heartbeats, by a provider
 * that answers as it is told and a clock of numbers.
 */
#include "unit.h"

#include <errno.h>
#include <string.h>

#include "ended.h"
#include "link.h"

#define DEPTH	16U

static struct rgate_prov_done answer[DEPTH];
static unsigned int answers, posted, signals;
static struct rgate_prov_work last;	/* that was posted; its op is a copy */
static struct rgate_op last_op;
static uint64_t last_bytes;
static int post_err;

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
	unsigned int i;

	(void)conn;
	if (post_err)
		return post_err;
	posted += n;
	for (i = 0; i < n; i++)
		signals += work[i].signal;
	last = work[n - 1];
	last_op = *last.op;
	last_bytes = rgate_op_bytes(last.op);
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
	answers = posted = signals = 0;
	post_err = 0;
	assert_int_equal(rgate_pool_create(&f->pool, NULL, &po), 0);
	lo.pool = lo.stage = f->pool;
	assert_int_equal(rgate_link_create(&f->link, &lo), 0);
	f->link->conn = (struct rgate_conn *)f;
	assert_int_equal(rgate_link_prepare(f->link), 0);
	assert_int_equal(rgate_link_set_peer(f->link, 64, 4, 1), 0);
	f->link->state = RGATE_LINK_UP;
}

static void down(struct fixture *f)
{
	rgate_link_destroy(f->link);
	assert_int_equal(pool_ended(f->pool), 0);
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

/* A receive that is flushed hides nothing of what was done beside it */
static void flushed_receive(void **state)
{
	struct fixture f;
	uint64_t lost;

	(void)state;
	up(&f);
	answer[answers++] = (struct rgate_prov_done){ .kind = RGATE_PROV_RECV,
						      .status = -ECANCELED };
	post(&f, false);
	tell(post(&f, false), 0);
	lost = post(&f, false);
	(void)rgate_link_progress(f.link);
	assert_int_equal(f.link->state, RGATE_LINK_DEAD);
	assert_int_equal(f.link->op_err, -ECONNRESET);
	assert_int_equal(f.link->done, lost - 1);
	assert_int_equal(f.link->failed_seq, lost);
	assert_int_equal(f.counts[RGATE_OP_WRITE].failed, 1);
	/* It was said to be lost, and that is not taken back. */
	tell(lost, 0);
	(void)rgate_link_progress(f.link);
	assert_int_equal(f.link->done, lost - 1);
	down(&f);
}

#define EACH	100ULL		/* between heartbeats */
#define LIMIT	1000ULL		/* of silence */

static int beat(struct fixture *f, uint64_t now)
{
	return rgate_link_beat(f->link, now, EACH, LIMIT);
}

/* What was posted last, and was it to there in the peer's line? */
static bool was(uint8_t kind, size_t offset)
{
	return last_op.kind == kind && last_op.remote == offset && last_bytes == 8;
}

/* The device has done all that was posted */
static void answered(struct fixture *f)
{
	tell(last.id, 0);
	assert_int_equal(rgate_link_progress(f->link), 1);
	assert_int_equal(f->link->done, f->link->posted);
}

/* One each so often, and none behind one that waits */
static void beats(void **state)
{
	const size_t to = offsetof(struct rgate_line, beat);
	struct fixture f;
	uint64_t t;

	(void)state;
	up(&f);
	t = f.link->heard_ns;
	assert_int_equal(beat(&f, t), 0);
	assert_int_equal(posted, 1);
	assert_true(was(RGATE_OP_WRITE, to));
	assert_int_equal(f.link->line->my_beat, 1);
	answered(&f);
	assert_int_equal(beat(&f, t + EACH - 1), 0);
	assert_int_equal(posted, 1);
	assert_int_equal(beat(&f, t + EACH), 0);
	assert_int_equal(posted, 2);
	assert_int_equal(beat(&f, t + 2 * EACH), 0);
	assert_int_equal(posted, 2);
	assert_int_equal(f.link->line->my_beat, 3);
	assert_int_equal(f.link->line->pulse, 3);
	answered(&f);
	assert_int_equal(beat(&f, t + 3 * EACH), 0);
	assert_int_equal(posted, 3);
	down(&f);
}

/* A peer that is silent is asked, once, and then is lost. */
static void silent(void **state)
{
	const size_t at = offsetof(struct rgate_line, pulse);
	struct fixture f;
	uint64_t t;

	(void)state;
	up(&f);
	t = f.link->heard_ns;
	assert_int_equal(beat(&f, t), 0);
	answered(&f);
	f.link->beat_ns = t + LIMIT / 2;	/* none of its own now */
	assert_int_equal(beat(&f, t + LIMIT / 2), 0);
	assert_int_equal(posted, 1);
	assert_int_equal(beat(&f, t + LIMIT / 2 + 1), 0);
	assert_int_equal(posted, 2);
	assert_true(was(RGATE_OP_READ, at));
	assert_true(f.link->late);
	f.link->beat_ns = t + LIMIT;
	assert_int_equal(beat(&f, t + LIMIT), 0);
	assert_int_equal(posted, 2);
	assert_int_equal(beat(&f, t + LIMIT + 1), -ETIMEDOUT);
	down(&f);
}

/* Its beat, a message, or an answer that differs from the one before: it is there. */
static void heard(void **state)
{
	struct fixture f;
	uint64_t t;

	(void)state;
	up(&f);
	t = f.link->heard_ns;
	f.link->line->beat = 1;
	assert_int_equal(beat(&f, t + 10), 0);
	assert_int_equal(f.link->heard_ns, t + 10);
	assert_int_equal(beat(&f, t + 20), 0);
	assert_int_equal(f.link->heard_ns, t + 10);
	f.link->arrived++;
	assert_int_equal(beat(&f, t + 30), 0);
	assert_int_equal(f.link->heard_ns, t + 30);
	f.link->line->beat = 2;
	f.link->arrived = 0;
	assert_int_equal(beat(&f, t + 40), 0);
	answered(&f);
	/* asked: what it answers is its beat, which is known */
	f.link->beat_ns = t + 600;
	assert_int_equal(beat(&f, t + 600), 0);
	f.link->line->peer_pulse = 2;
	answered(&f);
	assert_int_equal(beat(&f, t + 601), 0);
	assert_int_equal(f.link->heard_ns, t + 40);
	/* ... and then another one, once */
	f.link->line->peer_pulse = 3;
	answered(&f);
	assert_int_equal(beat(&f, t + 602), 0);
	assert_int_equal(f.link->heard_ns, t + 602);
	assert_false(f.link->late);
	down(&f);
}

/* The question waits behind own operations, which are being answered. */
static void waits_in_line(void **state)
{
	struct fixture f;
	uint64_t t, first, second;

	(void)state;
	up(&f);
	t = f.link->heard_ns;
	f.link->beat_ns = t + LIMIT / 2 + 1;
	first = post(&f, false);
	second = post(&f, false);
	assert_int_equal(beat(&f, t + LIMIT / 2 + 1), 0);
	assert_true(f.link->late);
	tell(first, 0);
	assert_int_equal(rgate_link_progress(f.link), 1);
	f.link->beat_ns = t + LIMIT + 1;
	assert_int_equal(beat(&f, t + LIMIT + 1), 0);
	f.link->beat_ns = t + 2 * LIMIT + 1;
	assert_int_equal(beat(&f, t + 2 * LIMIT + 1), 0);
	f.link->beat_ns++;
	assert_int_equal(beat(&f, t + 2 * LIMIT + 2), -ETIMEDOUT);
	assert_true(second > f.link->done);
	down(&f);
}

/* A wire that answers nothing gets nothing more, until it does. */
static void holds(void **state)
{
	struct fixture f;
	uint64_t t;

	(void)state;
	up(&f);
	t = f.link->heard_ns;
	assert_int_equal(beat(&f, t), 0);
	answered(&f);
	assert_int_equal(beat(&f, t + EACH), 0);
	assert_false(f.link->held);
	assert_int_equal(beat(&f, t + 3 * EACH), 0);
	assert_false(f.link->held);
	assert_int_equal(beat(&f, t + 3 * EACH + 1), 0);
	assert_true(f.link->held);
	answered(&f);
	assert_int_equal(beat(&f, t + 3 * EACH + 2), 0);
	assert_false(f.link->held);
	down(&f);
}

/* Where there is no place just now, the next time will do; what fails is told. */
static void no_place(void **state)
{
	struct fixture f;
	unsigned int i;
	uint64_t t;

	(void)state;
	up(&f);
	t = f.link->heard_ns;
	for (i = 0; i < DEPTH; i++)
		post(&f, true);
	f.link->reposted++;
	assert_int_equal(beat(&f, t), 0);
	f.link->beat_ns = t + LIMIT / 2 + 1;
	assert_int_equal(beat(&f, t + LIMIT / 2 + 1), 0);
	assert_int_equal(posted, DEPTH);
	assert_int_not_equal(f.link->told, f.link->reposted);
	down(&f);
	up(&f);
	post_err = -ENOTCONN;
	assert_int_equal(beat(&f, f.link->heard_ns), -ENOTCONN);
	assert_int_equal(f.link->state, RGATE_LINK_DEAD);
	assert_int_equal(f.link->posted, 0);
	down(&f);
	/* Some may have been begun: they end with the connection. */
	up(&f);
	post_err = -EIO;
	assert_int_equal(beat(&f, f.link->heard_ns), 0);
	assert_int_equal(f.link->state, RGATE_LINK_DEAD);
	assert_int_equal(f.link->err, -EIO);
	assert_int_equal(f.link->posted, 1);
	down(&f);
}

/* What room there is for messages is told when it has changed, and once. */
static void credit_told(void **state)
{
	const size_t to = offsetof(struct rgate_line, credit);
	struct fixture f;
	uint64_t t;

	(void)state;
	up(&f);
	t = f.link->heard_ns;
	f.link->told = f.link->reposted;
	assert_int_equal(beat(&f, t), 0);
	assert_int_equal(posted, 1);
	f.link->reposted++;
	assert_int_equal(beat(&f, t + 1), 0);
	assert_int_equal(posted, 2);
	assert_true(was(RGATE_OP_WRITE, to));
	assert_int_equal(f.link->line->my_credit, f.link->reposted);
	assert_int_equal(f.link->told, f.link->reposted);
	assert_int_equal(beat(&f, t + 2), 0);
	assert_int_equal(posted, 2);
	down(&f);
}

/*
 * Each fourth part of the queue one is told, so that it empties, whether they come one by one or
 * together, and whether anybody waits for any: what was told counts for those before it.
 */
static void signalled(void **state)
{
	struct rgate_op ops[DEPTH / 2];
	struct rgate_sge sge;
	struct fixture f;
	unsigned int i;

	(void)state;
	up(&f);
	sge = (struct rgate_sge){ .addr = f.link->line, .length = 8 };
	for (i = 0; i < DEPTH / 2; i++)
		ops[i] = (struct rgate_op){ .kind = RGATE_OP_WRITE, .nsge = 1, .sge = &sge };
	for (i = 1; i <= DEPTH / 2; i++) {
		assert_int_equal(rgate_link_post(f.link, ops, 1, true, NULL), 0);
		assert_int_equal(signals, i / (DEPTH / 4));
	}
	tell(posted, 0);
	assert_int_equal(rgate_link_progress(f.link), 1);
	assert_int_equal(rgate_link_post(f.link, ops, DEPTH / 2, true, NULL), 0);
	assert_int_equal(posted, DEPTH);
	assert_int_equal(signals, 4);
	tell(posted, 0);
	assert_int_equal(rgate_link_progress(f.link), 1);
	/* somebody waits for this one, and for each fourth behind it the queue alone does */
	post(&f, true);
	assert_int_equal(signals, 5);
	assert_int_equal(rgate_link_post(f.link, ops, DEPTH / 4 - 1, true, NULL), 0);
	assert_int_equal(signals, 5);
	assert_int_equal(rgate_link_post(f.link, ops, 1, true, NULL), 0);
	assert_int_equal(signals, 6);
	assert_true(last.signal);
	down(&f);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(flushed),
	cmocka_unit_test(first_error),
	cmocka_unit_test(refused),
	cmocka_unit_test(flushed_receive),
	cmocka_unit_test(beats),
	cmocka_unit_test(silent),
	cmocka_unit_test(heard),
	cmocka_unit_test(waits_in_line),
	cmocka_unit_test(holds),
	cmocka_unit_test(no_place),
	cmocka_unit_test(credit_told),
	cmocka_unit_test(signalled),
};

UNIT_MAIN_ALONE(tests)
