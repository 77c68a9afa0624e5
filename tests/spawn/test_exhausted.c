// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * A node that runs processes is refused what it asks its system for, each call of the
 * server and of the spawner in turn, while a job begins, runs and ends: the job fails with
 * an error or runs, and the next one runs.
 */
#include "serve.h"
#include "refuse.h"
#include "own_spawner.h"

#include <stdio.h>

static struct serve s;
static pid_t self;

/* Not the test, which is the client, and not the threads of the node's connections */
static bool refuse_mine(void)
{
	return getpid() != self && gettid() == getpid();
}

static void own_spawner_take(void *memory)
{
	refusal = memory;
}

static const char *const argv[] = { "/bin/cat", NULL };

/* A job with all its streams */
static struct done one(void)
{
	struct rgate_spawn_request req = RGATE_OPTS(rgate_spawn_request, .argv = argv,
		.stdin_mode = RGATE_SPAWN_IN_DATA, .input = "given", .input_len = 5,
		.stdout_mode = RGATE_SPAWN_OUT_STREAM, .stderr_mode = RGATE_SPAWN_OUT_STREAM);

	return run_request(&s, &req);
}

static void each_call(void **state)
{
	unsigned int n, failed = 0, ran = 0, fds;
	struct done d;

	self = getpid();
	s.cgroup = *state ? "" : NULL;
	serve_up(&s, NULL);
	if (!s.c.local) {
		serve_down(&s);
		unit_skip("what the device's library asks for is not ours to refuse");
	}
	d = one();
	assert_ran(&d, 0, "given");
	fds = serve_fds(&s);
	for (n = 1;; n++) {
		refuse(n);
		d = one();
		if (!refusal->injected) {
			refuse(0);
			assert_ran(&d, 0, "given");
			break;
		}
		if (d.r.state == RGATE_SPAWN_ERROR) {
			/* told as what it is, and nothing of it came */
			if (d.r.error != -refusal->injected)
				print_message("# %s: %d came out as %d: %s\n", refusal->where,
					      refusal->injected, d.r.error, d.r.reason);
			assert_true(d.r.error < 0);
			failed++;
			done_free(&d);
		} else {
			assert_ran(&d, 0, "given");
			ran++;
		}
		refuse(0);
		d = one();
		assert_ran(&d, 0, "given");
		wait_for(serve_fds(&s) == fds);
	}
	print_message("# of %u calls %u failed the job\n", n - 1, failed);
	assert_true(failed >= 3);
	serve_down(&s);
}

static const struct CMUnitTest tests[] = {
	{ "each_call", each_call, NULL, NULL, NULL },
	{ "each_call (no control groups)", each_call, NULL, NULL, (void *)1 },
};

OWN_SPAWNER_MAIN(tests)
