// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * What an agent asks the system for when it is opened is refused, each call in turn: the error
 * comes through, nothing is left behind, and the next try works.
 */
#include "unit.h"
#include "refuse.h"

#include <stdio.h>

#include "agent.h"
#include "agent_wire.h"

#define LEAST	20U		/* so many calls can fail */

static char parent[64];
static bool mine;		/* calls of all threads fail; atomic */

static bool refuse_mine(void)
{
	return __atomic_load_n(&mine, __ATOMIC_ACQUIRE);
}

/* It was made: what ends it may not fail. */
static void no_more(void)
{
	__atomic_store_n(&mine, false, __ATOMIC_RELEASE);
}

/* One that could be asked, or why there is none */
static int whole(void)
{
	const struct agent_opts o = RGATE_OPTS(agent_opts, .where = RGATE_SESSION_PROCESS,
		.loopback = AGENT_LOOPBACK_SERVED, .parent = parent);
	struct agent_member *member = NULL;
	struct agent *a = NULL;
	int err = agent_open(&a, &o);

	if (!err)
		err = agent_join(a, &member);
	no_more();
	if (!err)
		assert_int_equal(access(agent_member_path(member), F_OK), 0);
	agent_close(a);
	return err;
}

/* Other threads close, too: what they have is gone in a while. */
static void settles(const char *what, unsigned int n)
{
	const uint64_t end = unit_now_ns() + 20000000000ULL * unit_patience();

	while (unit_entries(what) > n && unit_now_ns() < end)
		usleep(1000);
	assert_int_equal(unit_entries(what), n);
}

static void each_call(void **state)
{
	unsigned int fds, threads, within, n, failed = 0;
	int err, injected;

	(void)state;
	/* what is kept of a first time is there */
	assert_int_equal(whole(), 0);
	fds = unit_entries("/proc/self/fd");
	threads = unit_entries("/proc/self/task");
	within = unit_entries(parent);
	for (n = 1;; n++) {
		refuse(n);
		__atomic_store_n(&mine, true, __ATOMIC_RELEASE);
		err = whole();
		injected = __atomic_load_n(&refusal->injected, __ATOMIC_ACQUIRE);
		if (!injected)
			break;
		if (err != -injected)
			fail_msg("%d of %s (%u) came out as %d", injected, refusal->where, n, err);
		failed++;
		settles("/proc/self/fd", fds);
		settles("/proc/self/task", threads);
		assert_int_equal(unit_entries(parent), within);
	}
	assert_int_equal(err, 0);
	print_message("# %u calls\n", failed);
	assert_true(failed >= LEAST);
}

static int setup(void **state)
{
	(void)state;
	refuse_setup();
	(void)snprintf(parent, sizeof(parent), "/tmp/ringgate-refused.XXXXXX");
	return mkdtemp(parent) ? 0 : -1;
}

static int teardown(void **state)
{
	(void)state;
	return rmdir(parent);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test_setup_teardown(each_call, setup, teardown),
};

UNIT_MAIN(tests)
