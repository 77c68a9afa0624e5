// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * A daemon under clients that come, ask for anything, write whatever they like into all that
 * they can reach, stop with credits in hand, and are killed at any moment; beside one that
 * behaves, and has to be served. In the end nothing of them is left.
 *
 * RGATE_SOAK_SECONDS=N: a hundred of them for so long (default: some, for 4)
 */
#include "asked.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "nodes.h"

#define CLIENTS_MOST	100U
#define GOOD		65533U	/* the user of the one that behaves */
#define TOUCHED		(64U << 10)	/* words that are written in a row */
#define NAP		"97531"	/* seconds: how processes of this test are known */
#define SERVED		MS		/* ms within which the good one has each answer */

static const char policy[] =
	"allow any all\n"
	"limit any sessions 200\n"
	"limit user:65533 sessions 8\n";

static uint64_t rnd;

/* ---- One that does not behave; in a child ---- */

/* What may be a lap, a position, a handle; or anything */
static uint64_t some_word(void)
{
	const uint64_t v = unit_random(&rnd);

	switch (v % 4) {
	case 0:
		return v >> 32;
	case 1:
		return (v >> 8) % 64;
	case 2:
		return UINT64_MAX - (v >> 8) % 64;
	default:
		return v;
	}
}

static struct rgate_request some_request(void)
{
	const uint64_t v = unit_random(&rnd);
	struct rgate_request q = {
		.op = RGATE_REQ_OP((v >> 8) % 8, (v >> 16) % 20),
		.flags = (uint8_t)(v >> 24) & RGATE_REQ_FLAGS,
		.cookie = v % 8, .a0 = some_word(), .a1 = some_word(), .off = some_word() % MEMORY,
		.len = (uint32_t)(some_word() % MEMORY), .handle = (uint32_t)(v >> 32) % 8,
	};

	/* What it lets go stays, as it should. */
	if (q.op == RGATE_REQ_SPAWN_DETACH)
		q.op = RGATE_REQ_SPAWN_STATUS;
	if (v >> 40 & 1)
		q.deadline_us = (uint32_t)(v >> 48);
	/* half of them as they should be: of one field or none, and of its own memory */
	if (v >> 41 & 1)
		q.flags = 0, q.a1 = 0, q.len %= 4096, q.off %= MEMORY / 2;
	return q;
}

static void ask_anything(void)
{
	struct rgate_completion c[32];
	unsigned int i, n = (unsigned int)(unit_random(&rnd) % 64);

	for (i = 0; i < n; i++) {
		const struct rgate_request q = some_request();

		if (rgate_session_submit(session, &q))
			(void)rgate_session_poll(session, c, 32);
	}
	(void)rgate_session_wait(session, 2);
	(void)rgate_session_poll(session, c, 32);
}

/* Processes and exported memory, which it leaves to whoever clears up after it */
static void have_something(void)
{
	uint32_t handle, i;
	char name[24];
	int err;

	for (i = 0; i < 3; i++)
		if (START(&handle, "/bin/sleep", NAP))
			break;
	for (i = 0; i < 3; i++) {
		const int len = snprintf(name, sizeof(name), "storm-%d-%u", getpid(), i);

		memcpy(mem, name, (size_t)len);
		err = ASK(.op = RGATE_REQ_MEMORY_EXPORT, .off = 4096 * (i + 1), .len = 4096,
			  .a1 = RGATE_MEMORY_EXPORT_A1(0666, (uint64_t)len));
		if (err)
			break;
	}
}

/* Into whatever is shared and may be written: session's areas and memory, with what wakes */
static void write_anything(void)
{
	unsigned long from, to;
	char line[512], perms[5];
	FILE *f = fopen("/proc/self/maps", "re");
	uint64_t *words;
	unsigned int i;

	while (f && fgets(line, sizeof(line), f)) {
		if (sscanf(line, "%lx-%lx %4s", &from, &to, perms) != 3 ||
		    strcmp(perms, "rw-s"))
			continue;
		/* NOLINTNEXTLINE(performance-no-int-to-ptr): where it is mapped */
		words = (uint64_t *)from;
		for (i = 0; i < TOUCHED; i++)
			__atomic_store_n(&words[unit_random(&rnd) % ((to - from) / 8)],
					 some_word(), __ATOMIC_RELAXED);
		(void)rgate_session_submit(session, &(struct rgate_request){ 0 });
	}
	if (f)
		fclose(f);
}

static int misbehave(void)
{
	rnd = unit_now_ns() ^ (uint64_t)getpid() << 32;
	/* What it writes may harm itself, too: that is no news. */
	(void)!freopen("/dev/null", "w", stderr);
	for (;;) {
		if (session_open())
			return 0;
		switch (unit_random(&rnd) % 8) {
		case 0:
		case 1:
			have_something();
			break;
		case 2:
			write_anything();
			break;
		case 3:
			have_something();
			ask_anything();
			(void)raise(SIGSTOP);
			break;
		case 4:
			have_something();
			_exit(0);
		default:
			break;
		}
		ask_anything();
		if (unit_random(&rnd) & 1)
			write_anything();
		rgate_session_close(session);
	}
}

/* ---- The one that behaves, until it is told to end ---- */

static int served(struct rgate_request q)
{
	const uint64_t began = unit_now_ns();
	const int ret = ask(q, NULL);

	if (unit_now_ns() - began > SERVED * 1000000ULL)
		return -ETIME;
	return ret;
}

#define SERVE(...) served((struct rgate_request){ __VA_ARGS__ })

static int end_of[2];		/* a pipe: it may end */

static bool told(void)
{
	struct pollfd p = { .fd = end_of[0], .events = POLLIN };

	return poll(&p, 1, 0) > 0;
}

static int behave(void)
{
	static const char words[] = "still here";
	unsigned int n = 0;
	uint32_t h;
	int err;

	need(!session_open());
	while (!told()) {
		need(!SERVE(.op = RGATE_REQ_NOP));
		memcpy(mem + RECORD, words, sizeof(words) - 1);
		err = SERVE(.op = RGATE_REQ_LOG_WRITE, .off = RECORD, .len = sizeof(words) - 1);
		need(!err || err == -EAGAIN);	/* so many lines a second */
		need(!START(&h, "/bin/sh", "-c", "exit 7"));
		need(!wait_end(h));
		need(status_at(STATUS)->exit_code == 7);
		need(!SERVE(.op = RGATE_REQ_SPAWN_CLOSE, .handle = h));
		n++;
	}
	printf("# %u processes for the one that behaves\n", n);
	fflush(stdout);
	need(n > 0);
	rgate_session_close(session);
	return 0;
}

/* ---- The test ---- */

static bool any_nap(void)
{
	return !system("pgrep -f '^/bin/sleep " NAP "$' >/dev/null");
}

static void storm(void **state)
{
	const char *secs = getenv("RGATE_SOAK_SECONDS");
	const bool longer = secs;
	const unsigned int clients = longer ? CLIENTS_MOST : 12;
	const unsigned int s = longer ? (unsigned int)atoi(secs) : 4;
	const uint64_t end = unit_now_ns() + s * 1000000000ULL;
	unsigned int i, killed = 0, fds;
	pid_t pid[CLIENTS_MOST], good;

	(void)state;
	unit_not_for_tsan(UNIT_TSAN_CHILD);
	alarm(120 * unit_patience() + s);
	assert_int_equal(pipe(end_of), 0);
	daemons_up(policy);
	rnd = unit_now_ns();
	print_message("# seed %llu\n", (unsigned long long)rnd);
	fds = ringgated_fds(&r);
	good = begin_as(behave, GOOD);
	for (i = 0; i < clients; i++)
		pid[i] = begin_client(misbehave);
	while (unit_now_ns() < end) {
		i = (unsigned int)(unit_random(&rnd) % clients);
		kill(pid[i], SIGKILL);
		assert_int_equal(waitpid(pid[i], NULL, 0), pid[i]);
		pid[i] = begin_client(misbehave);
		killed++;
		usleep((useconds_t)(unit_random(&rnd) % (longer ? 5000 : 20000)));
		assert_int_equal(waitpid(good, NULL, WNOHANG), 0);
		assert_int_equal(waitpid(r.pid, NULL, WNOHANG), 0);
	}
	for (i = 0; i < clients; i++) {
		kill(pid[i], SIGKILL);
		assert_int_equal(waitpid(pid[i], NULL, 0), pid[i]);
	}
	print_message("# %u killed, of %u at once\n", killed, clients);
	assert_int_equal(write(end_of[1], "", 1), 1);
	ends_well(good);
	wait_for(!ringgated_count(&r, "sessions"));
	wait_for(!ringgated_count(&r, "handles"));
	assert_int_equal(ringgated_count(&r, "under_way"), 0);
	assert_int_equal(ringgated_count(&r, "memory"), 0);
	wait_for(ringgated_fds(&r) <= fds);
	wait_for(!any_nap());
	daemons_down();
	close(end_of[0]);
	close(end_of[1]);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test_setup_teardown(storm, asked_up, asked_down),
};

UNIT_MAIN(tests)
