// SPDX-License-Identifier: MIT OR GPL-2.0
/* Who has copies of the tasks of a queue of another node, which says whatever it likes */
#include "queue_home.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "gate_service.h"

/* Who waits does so for no more than a moment: the clock goes faster. */
static uint64_t ahead;
static bool slow;			/* for who is to be silent no longer than he may */

int __real_clock_gettime(clockid_t id, struct timespec *ts);
int __wrap_clock_gettime(clockid_t id, struct timespec *ts);
int __real_usleep(useconds_t us);
int __wrap_usleep(useconds_t us);

int __wrap_clock_gettime(clockid_t id, struct timespec *ts)
{
	const int err = __real_clock_gettime(id, ts);
	const uint64_t ns = (uint64_t)ts->tv_nsec + ahead;

	ts->tv_sec += (time_t)(ns / (1000 * MS));
	ts->tv_nsec = (long)(ns % (1000 * MS));
	return err;
}

int __wrap_usleep(useconds_t us)
{
	if (slow)
		return __real_usleep(us);
	ahead += us * 10000ULL;
	return __real_usleep(us / 10);
}

static int mirror_setup(void **state)
{
	(void)home_setup(state);
	home.info.flags = RGATE_QUEUE_KEEP | RGATE_QUEUE_MIRROR | RGATE_QUEUE_NO_JOURNAL;
	home.there = true;
	return 0;
}

static int mirror_teardown(void **state)
{
	keep_bytes = 0;
	slow = false;
	return teardown(state);
}

/* The home asks for a mirror */
static int wants_as(const char *name, uid_t owner, uint32_t flags)
{
	static struct rgate_queue_place place;

	memset(&place, 0, sizeof(place));
	strcpy(place.name, name);
	return done_of(QUESTION(GATE_SUBMIT, .op = RGATE_REQ_QUEUE_MIRROR, .a0 = RGATE_QUEUE_HERE,
				.a1 = RGATE_QUEUE_OPEN_A1(owner, flags), .len = sizeof(place),
				.data = &place, .data_len = sizeof(place))).result;
}

static void wants(void)
{
	assert_int_equal(wants_as("far", ME, 0), 0);
	until(home.copied);
}

/* It tells of tasks from @id on, and of none that has ended */
static void tells(uint64_t id, const char *letters)
{
	until(home.copied);
	home_copies(&(struct rgate_queue_copies){ .after = id + strlen(letters) - 1 }, NULL, id,
		    letters);
	run();
}

static void ended(uint64_t id)
{
	until(home.copied);
	home_copies(&(struct rgate_queue_copies){ .after = home.has.after, .ends = 1 }, &id, 0, "");
	run();
}

static void has_copies(void **state)
{
	(void)state;
	wants();
	assert_true(home.has.after == 0 && home.has.next == 1);
	tells(1, "ab");
	until(home.copied);
	/* and says so, having asked for the next */
	assert_int_equal(home.has.after, 2);
	assert_int_equal(kept().copies, 2);
	assert_int_equal(kept().tasks, 0);
	tells(3, "c");
	ended(2);
	assert_int_equal(kept().copies, 2);
	/* those of others have ended, too */
	ended(9);
	until(home.copied);
	assert_int_equal(kept().copies, 2);
	/* all once more, as the home does not know how far he is */
	tells(1, "a");
	assert_int_equal(kept().copies, 2);
	ended(1);
	ended(3);
	assert_int_equal(kept().copies + kept().bytes + kept().refused, 0);
	/* it is there as long as the queue is */
	until(home.copied);
	assert_int_equal(home.closes, 0);
	home.there = false;
	home.copied = false;
	home_ends(&home.copying, -ESTALE, 0, NULL, 0);
	until(home.closes);
	until(home.leaves);
}

/* The home is another process: all come again, as what they were first. */
static void home_is_lost(void **state)
{
	(void)state;
	wants();
	tells(1, "ab");
	tells(3, "c");
	ended(2);
	until(home.copied);
	home_dies(8, 0);
	until(home.ngot == 2);
	assert_string_equal(home.got, "ac");
	assert_int_equal(home.makes, 1);
	assert_int_equal(home.again[1].origin.word, 5ULL << 40 | 3);
	assert_int_equal(home.again[1].origin.process, 1);
	assert_int_equal(home.again[1].tag, 3);
	assert_int_equal(home.again[1].id, 0);
	assert_int_equal(kept().again, 2);
	until(home.copied);
	/* in this one they have other numbers; it does not tell of them as copies */
	ended(1);
	assert_int_equal(kept().copies, 1);
	/* and in the next one they are what they were */
	home_dies(9, 0);
	until(home.ngot == 1);
	assert_string_equal(home.got, "c");
	assert_int_equal(home.again[0].origin.word, 5ULL << 40 | 3);
	assert_int_equal(home.again[0].origin.process, 1);
	until(home.copied);
	ended(1);
	assert_int_equal(kept().copies, 0);
}

/* Who has submitted it has done so again before: the home has told of it by then, or has done it. */
static void came_before(void **state)
{
	(void)state;
	wants();
	tells(1, "ab");
	until(home.copied);
	home_dies(8, 6);
	/* he is not in a hurry: it is told of both meanwhile */
	until(home.copied_now);
	home.was = 4;
	home.over = 1ULL << 3;
	until(home.ngot == 2);
	/* the first one has ended since */
	until(kept().copies == 1);
	until(home.copied);
	assert_true(home.overs > 0);
	/* a copy of the other one is one that is there */
	tells(5, "b");
	assert_int_equal(kept().copies, 1);
	ended(5);
	assert_int_equal(kept().copies + kept().refused, 0);
}

/* It has copies of one and is told of it as another, before it comes again itself. */
static void told_before(void **state)
{
	(void)state;
	wants();
	tells(1, "a");
	until(home.copied);
	home_dies(8, 6);
	home.was = 4;
	until(home.ngot == 1);
	until(home.copied);
	assert_int_equal(kept().copies, 1);
	tells(4, "a");
	until(home.copied);
	assert_int_equal(kept().copies, 1);
	ended(4);
	assert_int_equal(kept().copies, 0);
}

/* A home that stood still has what it had: nothing comes again. */
static void stood_still(void **state)
{
	(void)state;
	wants();
	tells(1, "ab");
	until(home.copied);
	home.over = 1;
	home_stands_still();
	until(home.copied);
	assert_int_equal(home.ngot, 0);
	assert_int_equal(kept().copies, 1);
	assert_int_equal(home.has.after, 0);
}

/* It is not there: it is not made, as there is nothing of it. */
static void not_there(void **state)
{
	(void)state;
	home.there = false;
	assert_int_equal(wants_as("far", ME, 0), 0);
	until(home.leaves);
	assert_int_equal(home.makes, 0);
	home.there = true;
	wants();
	home_dies(8, 0);
	until(home.leaves == 1);
	assert_int_equal(home.makes, 0);
	/* it asks anew */
	home.there = true;
	wants();
}

static void is_refused(void **state)
{
	struct rgate_request q;
	char name[16];
	int err = 0, i;

	(void)state;
	/* of its owner alone, and as OPEN has it */
	assert_int_equal(wants_as("far", ME + 1, 0), -EACCES);
	assert_int_equal(wants_as("far", ME, RGATE_QUEUE_MIRROR), -EINVAL);
	assert_int_equal(wants_as("f r", ME, 0), -EINVAL);
	/* nor of a program of this node, of which others would keep nothing */
	for (i = 0; i < 2; i++) {
		q = open_of("far", i ? OTHER : RGATE_QUEUE_HERE, 0);
		q.op = RGATE_REQ_QUEUE_MIRROR;
		assert_int_equal(result_of(submit(q), NULL), -EINVAL);
	}
	assert_int_equal(o.peer.asked.n, 0);
	/* many */
	home.there = false;
	home.hidden = true;
	for (i = 0; i < 40 && !err; i++) {
		(void)snprintf(name, sizeof(name), "far%d", i);
		err = wants_as(name, ME, 0);
	}
	assert_int_equal(err, -EDQUOT);
}

static void no_room(void **state)
{
	(void)state;
	(void)mirror_teardown(state);
	keep_bytes = 500;
	(void)mirror_setup(state);
	wants();
	tells(1, "ab");
	until(home.copied_now || kept().copies == 2);
	assert_int_equal(kept().copies, 1);
	/* it has said so, and that it knows of both */
	assert_int_equal(home.has.flags, RGATE_COPIES_FULL);
	assert_int_equal(home.has.after, 2);
}

static void lies(void **state)
{
	uint64_t refused = 0;
	unsigned int i;

	(void)state;
	wants();
	tells(1, "a");
	for (i = 0; i < 5; i++) {
		struct rgate_queue_copies head = { .after = 1 };

		until(home.copied);
		switch (i) {
		case 0:
			head.copies = 1;
			break;
		case 1:
			head.ends = 0xffffffff;
			break;
		case 2:
			head.queue = 77;
			break;
		case 3:
			head.ends = 3;
			head.copies = 0xfffffff0;
			break;
		default:
			break;
		}
		if (i == 4) {
			home.copied = false;
			home_ends(&home.copying, 8, 1, "liesliar", 8);
		} else {
			home_copies(&head, NULL, 1ULL << (i ? 1 : 40), i ? "" : "b");
		}
		until(kept().refused > refused);
		refused = kept().refused;
		until(home.copied);
	}
	assert_int_equal(kept().copies, 1);
}

#define COPIES(name) \
	cmocka_unit_test_setup_teardown(name, mirror_setup, mirror_teardown)

static int mirror_setup_silent(void **state)
{
	slow = true;
	(void)home_setup_silent(state);
	home.info.flags = RGATE_QUEUE_KEEP | RGATE_QUEUE_MIRROR | RGATE_QUEUE_NO_JOURNAL;
	home.there = true;
	return 0;
}

static const struct CMUnitTest tests[] = {
	COPIES(has_copies), COPIES(home_is_lost), COPIES(came_before), COPIES(told_before),
	cmocka_unit_test_setup_teardown(stood_still, mirror_setup_silent, mirror_teardown),
	COPIES(not_there), COPIES(is_refused), COPIES(no_room), COPIES(lies),
};

UNIT_MAIN(tests)
