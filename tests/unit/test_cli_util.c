// SPDX-License-Identifier: MIT OR GPL-2.0
/* What the commands share: time, signals, files of one line. */
#include "unit.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli.h"
#undef fail	/* cmocka's */
#include "util.h"

uint64_t __real_util_now(void);
void __real_util_sleep(uint64_t until_ns);

static void sleeps(void **state)
{
	const uint64_t begun = __real_util_now();

	(void)state;
	/* what is over is not waited for */
	__real_util_sleep(0);
	__real_util_sleep(begun);
	__real_util_sleep(begun + 20 * NSEC / 1000);
	assert_true(__real_util_now() >= begun + 20 * NSEC / 1000);
}

/* A signal that came before, or comes while it sleeps, ends it; until then it is blocked. */
static int stopped(int sock, void *arg)
{
	const uint64_t hours = 10000 * NSEC;
	sigset_t before, after;

	(void)sock;
	(void)arg;
	alarm(60 * unit_patience());
	util_catch_signals();
	sigprocmask(SIG_SETMASK, NULL, &before);
	util_block_signals(NULL);
	unit_require(!kill(getpid(), SIGTERM));
	unit_require(!util_stop);
	__real_util_sleep(0);
	unit_require(!util_stop);
	sigprocmask(SIG_SETMASK, &before, NULL);
	unit_require(util_stop == SIGTERM);
	__real_util_sleep(__real_util_now() + hours);
	sigprocmask(SIG_SETMASK, NULL, &after);
	unit_require(!sigismember(&after, SIGTERM) && !sigismember(&after, SIGINT));
	/* the same once more is not meant as another, and the first stays */
	unit_require(!kill(getpid(), SIGINT));
	unit_require(util_stop == SIGTERM);
	return 0;
}

static void signals(void **state)
{
	int sock, pid;

	(void)state;
	fflush(stdout);
	pid = unit_fork(stopped, NULL, &sock);
	unit_reap(pid, 0);
	close(sock);
}

static void lines(void **state)
{
	char buf[8] = "before";

	(void)state;
	cli_file("/line", "abc\ndef\n");
	assert_int_equal(util_read_line(cli_path("/line"), buf, sizeof(buf)), 0);
	assert_string_equal(buf, "abc");
	cli_file("/line", "no end");
	assert_int_equal(util_read_line(cli_path("/line"), buf, sizeof(buf)), 0);
	assert_string_equal(buf, "no end");
	cli_file("/line", "longer than it");
	assert_int_equal(util_read_line(cli_path("/line"), buf, sizeof(buf)), 0);
	assert_string_equal(buf, "longer ");
	cli_file("/line", "\n");
	assert_int_equal(util_read_line(cli_path("/line"), buf, sizeof(buf)), 0);
	assert_string_equal(buf, "");
	cli_file("/line", "");
	assert_int_equal(util_read_line(cli_path("/line"), buf, sizeof(buf)), -ENODATA);
	assert_int_equal(util_read_line(cli_path("/none"), buf, sizeof(buf)), -ENOENT);
	assert_int_equal(util_read_line("/", buf, sizeof(buf)), -EIO);
}

/* Nothing of it is left open */
static void no_leaks(void **state)
{
	const unsigned int fds = unit_entries("/proc/self/fd");

	lines(state);
	assert_int_equal(unit_entries("/proc/self/fd"), fds);
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, cli_begin, cli_end)
static const struct CMUnitTest tests[] = {
	TEST(sleeps),
	TEST(signals),
	TEST(lines),
	TEST(no_leaks),
};

UNIT_MAIN_ALONE(tests)
