// SPDX-License-Identifier: MIT OR GPL-2.0
/* Errands at a line: their turns, answers out of step, silence, and ends of all kinds. */
#include "unit.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "clock.h"
#include "errand.h"
#include "other.h"

#define JOBS	40U
#define LONG	20U		/* questions: more than are under way */
#define MS	1000000ULL

struct job {
	struct errand errand;
	unsigned int number, total, asked, answered;
	unsigned int over;	/* times */
	int err;
	int fails;		/* what answer() says of the next one, ... */
	unsigned int brings;	/* ... how often it brings up one more question, ... */
	bool ends_all;		/* ... or ends all errands, ... */
	int with;		/* ... with that, ... */
	struct job *ends;	/* and over() ends that one */
};

struct question {
	uint64_t number;
	uint32_t job, part;
};

static struct line *l;
static struct errands *es;
static struct job jobs[JOBS];

static size_t job_ask(struct errand *e, struct ask *a)
{
	struct job *j = container_of(e, struct job, errand);
	const struct question q = { .number = a->number, .job = j->number, .part = j->asked };

	assert_true(e->more);
	assert_int_equal(j->over, 0);
	a->word = j->asked++;
	e->more = j->asked < j->total;
	memcpy(a->msg, &q, sizeof(q));
	return sizeof(q);
}

static int job_answer(struct errand *e, struct ask *a, int err, const void *answer, size_t len)
{
	struct job *j = container_of(e, struct job, errand);
	uint64_t part;

	assert_int_equal(j->over, 0);
	j->answered++;
	if (err)
		return err;
	assert_int_equal(len, sizeof(part));
	memcpy(&part, answer, sizeof(part));
	assert_int_equal(part, a->word);
	if (j->ends_all)
		errands_end(es, j->with);
	if (j->brings) {
		j->brings--;
		j->total++;
		e->more = true;
	}
	return j->fails;
}

static void job_over(struct errand *e, int err)
{
	struct job *j = container_of(e, struct job, errand);

	/* once: an end that came twice might go on for ever */
	assert_int_equal(j->over, 0);
	j->over++;
	j->err = err;
	if (j->ends)
		errand_end(&j->ends->errand, -EPIPE);
}

static const struct errand_ops ops = { .ask = job_ask, .answer = job_answer, .over = job_over };

static void pump(void)
{
	line_reap(l);
	errands_pump(es);
	line_send(l, !errands_idle(es));
}

static struct job *begin(unsigned int i, unsigned int total, uid_t uid)
{
	struct job *j = &jobs[i];

	memset(j, 0, sizeof(*j));
	j->number = i;
	j->total = total;
	assert_int_equal(errand_begin(es, &j->errand, &ops, uid), 0);
	return j;
}

static struct question question(unsigned int i)
{
	struct question q;

	assert_true(i < o.peer.asked.n);
	assert_int_equal(o.peer.asked.m[i].len, sizeof(q));
	memcpy(&q, o.peer.asked.m[i].data, sizeof(q));
	return q;
}

static bool answer(unsigned int i)
{
	const struct question q = question(i);
	const uint64_t part = q.part;

	return line_answered(l, q.number, &part, sizeof(part));
}

static void make(uint64_t silence_ns)
{
	other_init(RGATE_SERVICE_MEMORY);
	assert_int_equal(line_create(&l, HUB, OTHER), 0);
	assert_int_equal(errands_create(&es, l, CLOCK_MONOTONIC, silence_ns), 0);
	other_comes_up(7);
	line_look(l, NULL, NULL);
}

static int setup(void **state)
{
	(void)state;
	make(60000 * MS);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	errands_destroy(es);
	line_destroy(l);
	return 0;
}

static void down(void)
{
	other_goes_down();
	line_look(l, NULL, NULL);
	pump();
}

static void up(uint64_t incarnation)
{
	other_comes_up(incarnation);
	line_look(l, NULL, NULL);
	pump();
}

static void out_of_step(void **state)
{
	struct job *j = begin(0, 5, 1);
	unsigned int i;

	(void)state;
	assert_int_equal(o.peer.asked.n, 0);
	pump();
	assert_int_equal(o.peer.asked.n, 5);
	assert_false(errands_idle(es));
	for (i = 5; i--;) {
		assert_int_equal(j->over, 0);
		assert_true(answer(i));
	}
	assert_int_equal(j->over, 1);
	assert_int_equal(j->err, 0);
	assert_int_equal(j->answered, 5);
	assert_true(errands_idle(es));
	assert_false(answer(0));
}

/* More than there are places for: the rest follows the answers, each part once */
static void longer(void **state)
{
	struct job *j = begin(0, LONG, 1);
	unsigned int i;

	(void)state;
	pump();
	assert_int_equal(o.peer.asked.n, CALL_PLACES);
	pump();
	assert_int_equal(o.peer.asked.n, CALL_PLACES);
	for (i = 0; i < LONG; i++) {
		assert_int_equal(j->over, 0);
		assert_int_equal(question(i).part, i);
		assert_true(answer(i));
		pump();
	}
	assert_int_equal(o.peer.asked.n, LONG);
	assert_int_equal(j->over, 1);
}

/* Each answer brings up the next question, as those of a list do. */
static void brought_up(void **state)
{
	struct job *j = begin(0, 1, 1), *k = begin(1, LONG, 1);
	unsigned int i, n = 0;

	(void)state;
	j->brings = 2;
	pump();
	assert_int_equal(question(0).job, 0);
	errand_end(&k->errand, -ECANCELED);
	for (i = 1; i < CALL_PLACES; i++)
		assert_true(answer(i));
	o.peer.asked.n = 1;
	for (i = 0; i < 3; i++) {
		assert_int_equal(o.peer.asked.n, i + 1);
		assert_int_equal(question(i).part, i);
		assert_int_equal(j->over, 0);
		assert_true(answer(i));
		pump();
	}
	assert_int_equal(o.peer.asked.n, 3);
	assert_int_equal(j->over, 1);
	assert_int_equal(j->err, 0);
	assert_true(errands_idle(es));
	/* more than there was, of one that has more to ask already */
	o.peer.asked.n = 0;
	j = begin(0, LONG, 1);
	j->brings = 2;
	for (i = 0; i < LONG + 2; i++) {
		pump();
		n += question(i).job == 0;
		assert_int_equal(question(i).part, i);
		assert_true(answer(i));
	}
	assert_int_equal(n, LONG + 2);
	assert_int_equal(j->over, 1);
	/* and none of one that failed, however much it has in mind */
	o.peer.asked.n = 0;
	j = begin(0, 2, 1);
	pump();
	j->brings = 2;
	j->fails = -EIO;
	assert_true(answer(0));
	pump();
	assert_true(answer(1));
	pump();
	assert_int_equal(o.peer.asked.n, 2);
	assert_int_equal(j->over, 1);
	assert_int_equal(j->err, -EIO);
}

/* One user's many long errands against one short one of another's, and a third's two */
static void turns(void **state)
{
	unsigned int i, at = 0, short_at = 0;

	(void)state;
	for (i = 0; i < 20; i++)
		begin(i, LONG, 1);
	pump();
	assert_int_equal(o.peer.asked.n, CALL_PLACES);
	/* A question each of his errands */
	for (i = 0; i < CALL_PLACES; i++)
		assert_int_equal(question(i).job, i);
	begin(20, 1, 2);
	begin(21, 2, 3);
	begin(22, 2, 3);
	for (i = 0; i < 9; i++) {
		assert_true(answer(i));
		pump();
	}
	assert_int_equal(o.peer.asked.n, CALL_PLACES + 9);
	for (i = CALL_PLACES; i < o.peer.asked.n; i++) {
		at += question(i).job >= 21;
		if (question(i).job == 20)
			short_at = i;
	}
	/* his turn, as there were two more users, and then the others' by turns */
	assert_true(short_at && short_at < CALL_PLACES + 3);
	assert_int_equal(at, 4);
}

/* The first failure is the end, when the last of what is under way has ended. */
static void fails(void **state)
{
	struct job *j = begin(0, LONG, 1), *k = begin(1, 1, 1);
	unsigned int i, of_other = 0;

	(void)state;
	pump();
	j->fails = -EACCES;
	assert_true(answer(3));
	j->fails = -EIO;
	for (i = 0; i < CALL_PLACES; i++) {
		of_other += question(i).job;
		assert_int_equal(j->over, 0);
		if (i != 3)
			assert_true(answer(i));
	}
	assert_int_equal(of_other, 1);
	assert_int_equal(j->over, 1);
	assert_int_equal(j->err, -EACCES);
	assert_int_equal(k->over, 1);
	assert_int_equal(k->err, 0);
	pump();
	assert_int_equal(o.peer.asked.n, CALL_PLACES);
	assert_true(errands_idle(es));
}

/* A user whose errand has failed has no turn, and is in nobody's way. */
static void failed_turn(void **state)
{
	struct job *j = begin(0, LONG, 1), *k = begin(1, 1, 2);
	unsigned int i;

	(void)state;
	/* a question of the other one's is answered, so that he has nothing under way */
	pump();
	assert_int_equal(question(1).job, 1);
	assert_true(answer(1));
	assert_int_equal(k->over, 1);
	pump();
	assert_int_equal(o.peer.asked.n, CALL_PLACES + 1);
	begin(2, 1, 2);
	j->fails = -EIO;
	assert_true(answer(0));
	assert_int_equal(j->over, 0);
	pump();
	assert_int_equal(o.peer.asked.n, CALL_PLACES + 2);
	assert_int_equal(question(CALL_PLACES + 1).job, 2);
	for (i = 2; i < CALL_PLACES + 2; i++)
		assert_true(answer(i));
	assert_int_equal(j->over, 1);
	assert_true(errands_idle(es));
}

static void ended(void **state)
{
	struct job *j = begin(0, LONG, 1), *k;
	unsigned int i;

	(void)state;
	pump();
	errand_end(&j->errand, -ECANCELED);
	assert_int_equal(j->over, 1);
	assert_int_equal(j->err, -ECANCELED);
	assert_true(j->errand.touched);
	k = begin(1, 1, 1);
	pump();
	/* the places of what was asked are taken until then */
	assert_int_equal(o.peer.asked.n, CALL_PLACES);
	for (i = 0; i < CALL_PLACES; i++)
		assert_true(answer(i));
	assert_int_equal(j->answered, 0);
	assert_int_equal(j->over, 1);
	pump();
	assert_int_equal(o.peer.asked.n, CALL_PLACES + 1);
	assert_true(answer(CALL_PLACES));
	assert_int_equal(k->over, 1);
	/* of what was not asked nothing is left */
	j = begin(0, 1, 9);
	errand_end(&j->errand, -ECANCELED);
	assert_false(j->errand.touched);
	pump();
	assert_int_equal(o.peer.asked.n, CALL_PLACES + 1);
}

/* One of a user's two: the places are the other one's, and nobody asks it any more. */
static void one_of_two(void **state)
{
	struct job *j = begin(0, LONG, 1);
	unsigned int i;

	(void)state;
	begin(1, LONG, 1);
	pump();
	assert_int_equal(o.peer.asked.n, CALL_PLACES);
	errand_end(&j->errand, -ECANCELED);
	assert_int_equal(j->over, 1);
	for (i = 0; i < CALL_PLACES; i++)
		assert_true(answer(i));
	pump();
	assert_int_equal(o.peer.asked.n, LONG + CALL_PLACES / 2);
	for (i = CALL_PLACES; i < o.peer.asked.n; i++) {
		assert_int_equal(question(i).job, 1);
		assert_true(answer(i));
	}
	assert_int_equal(j->asked, CALL_PLACES / 2);
	assert_int_equal(j->over, 1);
	assert_int_equal(jobs[1].over, 1);
	assert_true(errands_idle(es));
}

/* All end in what one is told: that one when it has been. */
static void all_end(void **state)
{
	struct job *j = begin(1, LONG, 1), *k = begin(2, 1, 2);

	(void)state;
	begin(3, 1, 2);
	begin(0, 1, 1);
	pump();
	j->ends_all = true;
	j->with = -ESTALE;
	/* an end may bring that of the next one */
	jobs[2].ends = &jobs[3];
	assert_int_equal(question(0).job, 1);
	assert_true(answer(0));
	assert_int_equal(j->over, 1);
	assert_int_equal(j->err, -ESTALE);
	assert_int_equal(k->err, -ESTALE);
	assert_int_equal(jobs[0].err, -ESTALE);
	assert_int_equal(jobs[3].over, 1);
	assert_int_equal(jobs[3].err, -EPIPE);
	assert_true(errands_idle(es));
	/* and that was before its own failure */
	o.peer.asked.n = 0;
	j = begin(1, 1, 1);
	pump();
	j->ends_all = true;
	j->with = -ESTALE;
	j->fails = -EACCES;
	assert_true(answer(0));
	assert_int_equal(j->over, 1);
	assert_int_equal(j->err, -ESTALE);
}

/* It ends in its own answer, and what it came to before or had still to ask is no matter. */
static void ends_itself(void **state)
{
	struct job *j = begin(0, 2, 1);
	unsigned int i;

	(void)state;
	pump();
	j->fails = -EACCES;
	assert_true(answer(0));
	assert_int_equal(j->over, 0);
	j->fails = 0;
	j->ends_all = true;
	j->with = -ESTALE;
	assert_true(answer(1));
	assert_int_equal(j->over, 1);
	/* the first one */
	assert_int_equal(j->err, -EACCES);
	/* well, and before all was asked */
	o.peer.asked.n = 0;
	j = begin(0, LONG, 1);
	pump();
	assert_int_equal(o.peer.asked.n, CALL_PLACES);
	j->ends_all = true;
	assert_true(answer(0));
	assert_int_equal(j->over, 1);
	assert_int_equal(j->err, 0);
	assert_true(errands_idle(es));
	for (i = 1; i < CALL_PLACES; i++)
		assert_true(answer(i));
	pump();
	assert_int_equal(o.peer.asked.n, CALL_PLACES);
	assert_int_equal(j->answered, 1);
}

static void other_process(void **state)
{
	struct job *once = begin(0, 2, 1), *twice = begin(1, 2, 2), *later;

	(void)state;
	twice->errand.repeat = true;
	pump();
	assert_int_equal(o.peer.asked.n, 4);
	down();
	later = begin(2, 1, 3);
	pump();
	o.peer.asked.n = 0;
	up(8);
	assert_int_equal(once->over, 1);
	assert_int_equal(once->answered, 2);
	assert_int_equal(once->err, -ECONNRESET);
	assert_int_equal(o.peer.asked.n, 3);
	assert_true(answer(0));
	assert_true(answer(1));
	assert_true(answer(2));
	assert_int_equal(twice->err, 0);
	assert_int_equal(twice->over + later->over, 2);
}

/* ---- A node that says nothing ---- */

static uint64_t now(void)
{
	return rgate_clock_now(CLOCK_MONOTONIC);
}

static void silent(void **state)
{
	struct job *asked, *waits;
	uint64_t ns;

	(void)state;
	make(60000 * MS);
	assert_int_equal(errands_expire(es, now()), UINT64_MAX);
	asked = begin(0, 2, 1);
	pump();
	down();
	waits = begin(1, 1, 1);
	ns = errands_expire(es, now());
	assert_true(ns > 50000 * MS && ns <= 60000 * MS);
	assert_int_equal(asked->over + waits->over, 0);
	/* what was heard of is the last to be given up */
	up(7);
	assert_int_equal(question(o.peer.asked.n - 3).job, 0);
	assert_true(answer(o.peer.asked.n - 3));
	assert_int_equal(asked->over, 0);
	ns = now();
	assert_int_equal(errands_expire(es, waits->errand.due), asked->errand.due -
			 waits->errand.due);
	assert_int_equal(waits->over, 1);
	assert_int_equal(errands_expire(es, ns + 61000 * MS), UINT64_MAX);
	assert_int_equal(asked->err, -ETIMEDOUT);
	assert_true(errands_idle(es));
}

static void never_asked(void **state)
{
	struct job *j;

	(void)state;
	make(1);
	down();
	j = begin(0, 3, 1);
	pump();
	usleep(1);
	assert_int_equal(errands_expire(es, now()), UINT64_MAX);
	assert_int_equal(j->over, 1);
	assert_int_equal(j->err, -ENOTCONN);
	up(7);
	assert_int_equal(o.peer.asked.n, 0);
	j = begin(0, 3, 1);
	pump();
	assert_int_equal(errands_expire(es, now() + MS), UINT64_MAX);
	assert_int_equal(j->err, -ETIMEDOUT);
	/* too late */
	assert_int_equal(o.peer.asked.n, 3);
	assert_true(answer(0));
	assert_int_equal(j->answered, 0);
}

/* All that was asked is answered: a part of it is done, whatever is under way. */
static void done_in_part(void **state)
{
	struct job *j = begin(0, LONG, 1);
	unsigned int i;

	(void)state;
	o.peer.held = true;
	pump();
	for (i = 0; i < CALL_PLACES; i++)
		assert_true(answer(i));
	/* no place is free before its message has left */
	pump();
	assert_int_equal(o.peer.asked.n, CALL_PLACES);
	assert_int_equal(j->answered, CALL_PLACES);
	assert_int_equal(j->over, 0);
	assert_int_equal(errands_expire(es, now() + 61000 * MS), UINT64_MAX);
	assert_int_equal(j->over, 1);
	assert_int_equal(j->err, -ETIMEDOUT);
}

static void destroyed(void **state)
{
	(void)state;
	begin(0, LONG, 1);
	begin(1, LONG, 2);
	pump();
	errands_destroy(es);
	es = NULL;
	assert_int_equal(jobs[0].over + jobs[1].over, 2);
	assert_int_equal(jobs[0].err, -ECANCELED);
}

#define BED(name)	cmocka_unit_test_setup_teardown(name, setup, teardown)

static const struct CMUnitTest tests[] = {
	BED(out_of_step), BED(longer), BED(brought_up), BED(turns), BED(fails), BED(failed_turn),
	BED(ended), BED(one_of_two), BED(all_end), BED(ends_itself), BED(done_in_part),
	BED(other_process), cmocka_unit_test_teardown(silent, teardown),
	cmocka_unit_test_teardown(never_asked, teardown), BED(destroyed),
};

UNIT_MAIN_ALONE(tests)
