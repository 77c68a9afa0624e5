// SPDX-License-Identifier: MIT OR GPL-2.0
/* What threads wait for */
#include "unit.h"

#include <errno.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "events.h"

#define N	4
#define MS	1000000LL

static struct events e;
static int refuse;		/* makes eventfd(2) fail with it */

int __real_eventfd(unsigned int count, int flags);
int __wrap_eventfd(unsigned int count, int flags);

int __wrap_eventfd(unsigned int count, int flags)
{
	if (!refuse)
		return __real_eventfd(count, flags);
	errno = refuse;
	return -1;
}

static int look(struct epoll_event *ev)
{
	return events_wait(&e, ev, N, 0);
}

/* Any number of times, and it is one event, until it is taken */
static void woken(void **state)
{
	struct epoll_event ev[N];
	unsigned int i;

	(void)state;
	assert_int_equal(events_open(&e), 0);
	assert_int_equal(look(ev), 0);
	for (i = 0; i < 3; i++)
		events_wake(&e);
	for (i = 0; i < 2; i++) {
		assert_int_equal(events_wait(&e, ev, N, -1), 1);
		assert_true(ev[0].data.u64 == EVENTS_WAKE);
	}
	events_woken(&e);
	assert_int_equal(look(ev), 0);
	/* nothing to take is no reason to wait */
	events_woken(&e);
	events_close(&e);
	assert_int_equal(e.fd, -1);
	assert_int_equal(e.wake_fd, -1);
	events_close(&e);
}

static void words(void **state)
{
	struct epoll_event ev[N];
	int a[2], b[2], i;

	(void)state;
	assert_int_equal(events_open_plain(&e), 0);
	assert_int_equal(e.wake_fd, -1);
	assert_int_equal(pipe(a), 0);
	assert_int_equal(pipe(b), 0);
	assert_int_equal(events_add(&e, a[0], EPOLLIN, 5), 0);
	assert_int_equal(events_add(&e, a[0], EPOLLIN, 5), -EEXIST);
	assert_int_equal(events_add(&e, b[0], EPOLLIN, events_word(&e)), 0);
	assert_int_equal(events_add(&e, -1, EPOLLIN, 5), -EBADF);
	assert_int_equal(write(a[1], "", 1), 1);
	assert_int_equal(look(ev), 1);
	assert_int_equal(ev[0].data.u64, 5);
	assert_int_equal(ev[0].events, EPOLLIN);
	assert_int_equal(write(b[1], "", 1), 1);
	assert_int_equal(look(ev), 2);
	i = ev[0].data.u64 == 5;
	assert_ptr_equal(ev[i].data.ptr, &e);
	/* no more than there is room for */
	assert_int_equal(events_wait(&e, ev, 1, -1), 1);
	events_remove(&e, a[0]);
	events_remove(&e, a[0]);
	assert_int_equal(look(ev), 1);
	assert_ptr_equal(ev[0].data.ptr, &e);
	assert_int_equal(events_change(&e, a[0], EPOLLIN, 6), -ENOENT);
	assert_int_equal(events_change(&e, b[0], 0, 7), 0);
	assert_int_equal(look(ev), 0);
	assert_int_equal(events_change(&e, b[0], EPOLLIN, 7), 0);
	assert_int_equal(look(ev), 1);
	assert_int_equal(ev[0].data.u64, 7);
	for (i = 0; i < 2; i++) {
		close(a[i]);
		close(b[i]);
	}
	events_close(&e);
}

static void times(void **state)
{
	struct epoll_event ev[N];
	uint64_t t = unit_now_ns();

	(void)state;
	assert_int_equal(events_ms(-1), -1);
	assert_int_equal(events_ms(0), 0);
	assert_int_equal(events_ms(3000000), 3000000 * MS);
	assert_int_equal(events_open(&e), 0);
	assert_int_equal(events_wait(&e, ev, N, 20 * MS + 1), 0);
	t = unit_now_ns() - t;
	assert_true(t > 20 * MS);
	assert_true(t < 2000 * MS * unit_patience());
	events_close(&e);
	/* of what is closed */
	assert_int_equal(look(ev), -EBADF);
}

static void refused(void **state)
{
	const unsigned int fds = unit_entries("/proc/self/fd");

	(void)state;
	refuse = ENFILE;
	assert_int_equal(events_open(&e), -ENFILE);
	refuse = 0;
	assert_int_equal(e.fd, -1);
	assert_int_equal(e.wake_fd, -1);
	assert_int_equal(unit_entries("/proc/self/fd"), fds);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(woken),
	cmocka_unit_test(words),
	cmocka_unit_test(times),
	cmocka_unit_test(refused),
};

UNIT_MAIN_ALONE(tests)
