// SPDX-License-Identifier: MIT OR GPL-2.0
/* What a session tells of a peer whose connections come and go. */
#include "unit.h"

#include <errno.h>

#include "session.h"

#define GRACE	1000U

static struct {
	uint32_t epoch;
	uint64_t incarnation;
	bool up;
} peer;

int __wrap_rgate_peer_info(struct rgate_peer *p, struct rgate_peer_info *info);

int __wrap_rgate_peer_info(struct rgate_peer *p, struct rgate_peer_info *info)
{
	(void)p;
	*info = (struct rgate_peer_info){
		.sz = sizeof(*info), .epoch = peer.epoch,
		.state = peer.up ? RGATE_PEER_UP : RGATE_PEER_CONNECTING,
		/* known only as long as there is a connection */
		.incarnation = peer.up ? peer.incarnation : 0,
	};
	return 0;
}

static int setup(void **state)
{
	(void)state;
	peer.epoch = 0;
	peer.incarnation = 77;
	peer.up = false;
	return 0;
}

static void come_up(void)
{
	peer.epoch++;
	peer.up = true;
}

/* It comes, goes, comes again: the same process */
static void same_process(void **state)
{
	struct session s;

	(void)state;
	session_init(&s, NULL, GRACE, 0);
	assert_int_equal(session_look(&s, 5), SESSION_SAME);
	/* nobody waits for the first connection */
	assert_true(session_due(&s) == UINT64_MAX);
	assert_int_equal(session_look(&s, 10 * GRACE), SESSION_SAME);
	assert_false(session_changed(&s));
	come_up();
	assert_true(session_changed(&s));
	assert_false(s.up);
	assert_int_equal(session_look(&s, 20000), SESSION_UP);
	assert_false(session_changed(&s));
	assert_true(s.up);
	assert_int_equal(s.epoch, 1);
	assert_int_equal(s.incarnation, 77);
	assert_int_equal(session_look(&s, 20000), SESSION_SAME);
	peer.up = false;
	assert_true(session_changed(&s));
	assert_int_equal(session_look(&s, 30000), SESSION_DOWN);
	assert_false(s.up);
	assert_int_equal(s.epoch, 1);
	assert_true(session_due(&s) == 30000 + GRACE);
	assert_int_equal(session_look(&s, 30000 + GRACE - 1), SESSION_SAME);
	come_up();
	assert_int_equal(session_look(&s, 30000 + GRACE - 1), SESSION_UP);
	assert_int_equal(s.epoch, 2);
	assert_true(session_due(&s) == UINT64_MAX);
}

/* Between two looks it went and came back: both are told, one after the other. */
static void unseen(void **state)
{
	struct session s;

	(void)state;
	session_init(&s, NULL, GRACE, 0);
	come_up();
	assert_int_equal(session_look(&s, 1), SESSION_UP);
	come_up();
	assert_true(session_changed(&s));
	assert_int_equal(session_look(&s, 2), SESSION_DOWN);
	assert_false(s.up);
	assert_int_equal(s.epoch, 1);
	assert_int_equal(session_look(&s, 2), SESSION_UP);
	assert_int_equal(s.epoch, 2);
	assert_int_equal(session_look(&s, 2), SESSION_SAME);
}

static void lost(void **state)
{
	struct session s;

	(void)state;
	session_init(&s, NULL, GRACE, 0);
	come_up();
	assert_int_equal(session_look(&s, 1), SESSION_UP);
	peer.up = false;
	assert_int_equal(session_look(&s, 10), SESSION_DOWN);
	assert_int_equal(session_look(&s, 10 + GRACE), SESSION_LOST);
	/* once */
	assert_true(session_due(&s) == UINT64_MAX);
	assert_int_equal(session_look(&s, 10 + 5 * GRACE), SESSION_SAME);
	session_wait_again(&s, 9000);
	assert_int_equal(session_look(&s, 9000 + GRACE - 1), SESSION_SAME);
	assert_int_equal(session_look(&s, 9000 + GRACE), SESSION_LOST);
	come_up();
	assert_int_equal(session_look(&s, 20000), SESSION_UP);
	/* not while it is up */
	session_wait_again(&s, 20000);
	assert_int_equal(session_look(&s, 90000), SESSION_SAME);
}

/* A peer that never comes up is lost, too, for who waits for it. */
static void never_up(void **state)
{
	struct session s;

	(void)state;
	session_init(&s, NULL, GRACE, 50);
	assert_int_equal(session_look(&s, 50 + GRACE - 1), SESSION_SAME);
	assert_int_equal(session_look(&s, 50 + GRACE), SESSION_LOST);
	session_init(&s, NULL, 0, 50);
	assert_int_equal(session_look(&s, UINT64_MAX - 1), SESSION_SAME);
}

static void another_process(void **state)
{
	struct session s;

	(void)state;
	session_init(&s, NULL, GRACE, 0);
	come_up();
	assert_int_equal(session_look(&s, 1), SESSION_UP);
	come_up();
	peer.incarnation = 78;
	assert_int_equal(session_look(&s, 2), SESSION_DOWN);
	assert_int_equal(session_look(&s, 2), SESSION_OTHER);
	/* nothing can be posted before that was dealt with */
	assert_false(s.up);
	assert_int_equal(session_look(&s, 2), SESSION_UP);
	assert_int_equal(s.incarnation, 78);
	/* Also after it was given up */
	peer.up = false;
	assert_int_equal(session_look(&s, 3), SESSION_DOWN);
	assert_int_equal(session_look(&s, 3 + GRACE), SESSION_LOST);
	peer.incarnation = 79;
	come_up();
	assert_int_equal(session_look(&s, 9000), SESSION_OTHER);
	/* and where that one is gone again at once, it is told of the next all the same */
	peer.up = false;
	assert_int_equal(session_look(&s, 9000), SESSION_SAME);
	come_up();
	assert_int_equal(session_look(&s, 9001), SESSION_UP);
	assert_int_equal(s.incarnation, 79);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test_setup(same_process, setup),
	cmocka_unit_test_setup(unseen, setup),
	cmocka_unit_test_setup(lost, setup),
	cmocka_unit_test_setup(never_up, setup),
	cmocka_unit_test_setup(another_process, setup),
};

UNIT_MAIN_ALONE(tests)
