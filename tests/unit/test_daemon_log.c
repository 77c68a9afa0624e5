// SPDX-License-Identifier: MIT OR GPL-2.0
/* Lines of users in ringgated's log: their bytes, each user's share, the queue's end */
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "../../tools/ringgated/requests_log.h"

#define SHARE	100U	/* lines of a user at once */
#define QUEUE	256U
#define EACH_NS	50000000ULL	/* one more of a user */

static struct request_log *log_;
static int pipe_[2];
static uint64_t now;	/* of the clock that shares are by */

uint64_t util_now(void);
/* The tools' own (tools/ringgate/util.h): time passes when a test says so. */
uint64_t util_now(void)
{
	return now;
}

static unsigned int without;	/* lines to be made for which there is no memory */

FILE *__real_open_memstream(char **text, size_t *len);
FILE *__wrap_open_memstream(char **text, size_t *len);
FILE *__wrap_open_memstream(char **text, size_t *len)
{
	if (!without)
		return __real_open_memstream(text, len);
	without--;
	errno = ENOMEM;
	return NULL;
}

static int up(void **state)
{
	(void)state;
	now = 1000000000;
	assert_int_equal(pipe2(pipe_, O_CLOEXEC), 0);
	return request_log_open(&log_, pipe_[1]);
}

/* All that is written, up to the end */
static size_t all(char *text, size_t room)
{
	size_t n = 0;
	ssize_t got;

	request_log_close(log_);
	close(pipe_[1]);
	while ((got = read(pipe_[0], text + n, room - n - 1)) > 0)
		n += (size_t)got;
	text[n] = '\0';
	close(pipe_[0]);
	return n;
}

static int line(unsigned int uid, const char *text)
{
	return request_log_line(log_, uid, text, strlen(text));
}

static void texts(void **state)
{
	static const char first[] = "ringgated: uid 7: one\n"
				    "ringgated: uid 4000000000: two\n"
				    "ringgated: uid 7: a\\x0a\n"
				    "ringgated: uid 7: \n"
				    "ringgated: uid 7: \n"
				    "ringgated: uid 7: \\x1b[2J\n"
				    "ringgated: uid 7: a\\x00b\\x00\n"
				    "ringgated: uid 7: \\x00\\x00\n"
				    "ringgated: uid 8: ";
	char got[16384], longest[REQUEST_LOG_TEXT + 2];
	struct request_log_stats st;

	(void)state;
	memset(longest, 'x', sizeof(longest));
	assert_int_equal(line(7, "one"), 0);
	/* its line end, one of them, is the line's */
	assert_int_equal(line(4000000000U, "two\n"), 0);
	assert_int_equal(line(7, "a\n\n"), 0);
	assert_int_equal(line(7, ""), 0);
	assert_int_equal(line(7, "\n"), 0);
	assert_int_equal(line(7, "\033[2J"), 0);
	assert_int_equal(request_log_line(log_, 7, "a\0b\0", 4), 0);
	assert_int_equal(request_log_line(log_, 7, "\0\0\n", 3), 0);
	assert_int_equal(request_log_line(log_, 8, longest, REQUEST_LOG_TEXT + 1), -EMSGSIZE);
	longest[REQUEST_LOG_TEXT] = '\n';
	longest[REQUEST_LOG_TEXT + 1] = '\0';
	assert_int_equal(request_log_line(log_, 8, longest, REQUEST_LOG_TEXT + 1), 0);
	request_log_stats(log_, &st);
	assert_int_equal(st.dropped, 0);
	(void)all(got, sizeof(got));
	assert_memory_equal(got, first, sizeof(first) - 1);
	assert_string_equal(got + sizeof(first) - 1, longest);
}

/* So many at once, one more in some time, and how many were not written is told then */
static void share(void **state)
{
	struct request_log_stats st;
	char got[16384];
	unsigned int i;

	(void)state;
	for (i = 0; i < SHARE; i++)
		assert_int_equal(line(7, "x"), 0);
	assert_int_equal(line(7, "no"), -EAGAIN);
	assert_int_equal(line(7, "no"), -EAGAIN);
	/* another one's is his own */
	assert_int_equal(line(8, "mine"), 0);
	now += EACH_NS - 1;
	assert_int_equal(line(7, "no"), -EAGAIN);
	now += 1;
	assert_int_equal(line(7, "again"), 0);
	assert_int_equal(line(7, "no"), -EAGAIN);
	now += EACH_NS * SHARE;
	assert_int_equal(line(7, "more"), 0);
	assert_int_equal(line(7, "last"), 0);
	request_log_stats(log_, &st);
	assert_int_equal(st.dropped, 4);
	(void)all(got, sizeof(got));
	assert_non_null(strstr(got, "uid 7: x\nringgated: uid 8: mine\n"
			       "ringgated: uid 7: again (3 lines were left out)\n"
			       "ringgated: uid 7: more (1 lines were left out)\n"
			       "ringgated: uid 7: last\n"));
	assert_null(strstr(got, "no"));
}

/* Until the log's thread has so many, or has written them */
static void written(uint64_t n)
{
	const struct timespec nap = { .tv_nsec = 1000000 };
	struct request_log_stats st;
	unsigned int i;

	for (i = 0; i < 20000; i++) {
		request_log_stats(log_, &st);
		if (st.written >= n)
			break;
		(void)nanosleep(&nap, NULL);
	}
	assert_int_equal(st.written, n);
}

/* Nobody reads: the queue ends, of whomever its lines are. What was left out is told later. */
static void full(void **state)
{
	static char got[1 << 20], big[65536];
	struct request_log_stats st;
	unsigned int i, taken = 0;
	int room;

	(void)state;
	room = fcntl(pipe_[1], F_SETPIPE_SZ, 4096);
	assert_true(room > 0 && room <= (int)sizeof(big));
	assert_int_equal(write(pipe_[1], big, (size_t)room), room);
	/* one, which its thread holds, and a whole queue */
	for (i = 0; i < QUEUE + 1 + 20; i++)
		taken += !line(1000 + i / 50, "kept");
	assert_true(taken == QUEUE || taken == QUEUE + 1);
	request_log_stats(log_, &st);
	assert_int_equal(st.written, 0);
	assert_int_equal(st.dropped, QUEUE + 21 - taken);
	while (line(5, "out") != -EAGAIN)
		taken++;
	assert_int_equal(line(5, "out"), -EAGAIN);
	for (i = 0; i < (unsigned int)room;)
		i += (unsigned int)read(pipe_[0], got, (size_t)room - i);
	for (i = 0; i < taken;) {
		ssize_t n = read(pipe_[0], got, sizeof(got));

		assert_true(n > 0);
		while (n--)
			i += got[n] == '\n';
	}
	written(taken);
	assert_int_equal(line(5, "in"), 0);
	(void)all(got, sizeof(got));
	assert_non_null(strstr(got, "uid 5: in (2 lines were left out)\n"));
}

/* No memory: it is one that was left out. */
static void no_memory(void **state)
{
	struct request_log_stats st;
	char got[256];

	(void)state;
	without = 2;
	assert_int_equal(line(7, "no"), -ENOMEM);
	assert_int_equal(line(7, "no"), -ENOMEM);
	assert_int_equal(line(7, "one"), 0);
	request_log_stats(log_, &st);
	assert_int_equal(st.dropped, 2);
	(void)all(got, sizeof(got));
	assert_string_equal(got, "ringgated: uid 7: one (2 lines were left out)\n");
}

/* Nobody ever reads: its end does not wait for ever, and frees what is queued. */
static void mute(void **state)
{
	static char big[65536];
	unsigned int i;
	int room;

	(void)state;
	room = fcntl(pipe_[1], F_SETPIPE_SZ, 4096);
	assert_true(room > 0 && room <= (int)sizeof(big));
	assert_int_equal(write(pipe_[1], big, (size_t)room), room);
	for (i = 0; i < 10; i++)
		assert_int_equal(line(i, "never"), 0);
	request_log_close(log_);
	close(pipe_[0]);
	close(pipe_[1]);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test_setup(texts, up),
	cmocka_unit_test_setup(share, up),
	cmocka_unit_test_setup(full, up),
	cmocka_unit_test_setup(no_memory, up),
	cmocka_unit_test_setup(mute, up),
};

UNIT_MAIN(tests)
