// SPDX-License-Identifier: MIT OR GPL-2.0
/* Who keeps tasks that were submitted to another node, when its home does not go along */
#include "queue_home.h"

#include <string.h>

/* What the process there had is removed, while what a former one had waits for a queue. */
static void one_was_removed(void **state)
{
	(void)state;
	put_far(open_far(), "ab");
	home_dies(8, 0);
	put_far(open_far(), "c");
	home.there = false;
	home.serial++;
	until(kept().again == 2);
	assert_string_equal(home.got, "cab");
	assert_int_equal(home.makes, 1);
	assert_int_equal(kept().tasks, 2);
	has_ended(2, 3);
	assert_int_equal(kept().tasks, 0);
	until(home.leaves == 1);
	assert_int_equal(home.removes + kept().refused, 0);
	assert_true(home.there);
}

#define KEPT(fn)	cmocka_unit_test_setup_teardown(fn, home_setup, teardown)

static const struct CMUnitTest tests[] = {
	KEPT(one_was_removed),
};

UNIT_MAIN(tests)
