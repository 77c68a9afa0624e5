// SPDX-License-Identifier: MIT OR GPL-2.0
#include "events.h"

#include <errno.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "clock.h"

/*
 * What a thread did before it added or changed a descriptor, or woke, is seen by who has an event
 * after: the kernel's lock of the epoll orders them. ThreadSanitizer does not know epoll_pwait2(2).
 */
#ifdef __SANITIZE_THREAD__
#include <sanitizer/tsan_interface.h>
#define BEFORE(e)	__tsan_release((void *)(uintptr_t)(e))
#define AFTER(e)	__tsan_acquire((void *)(uintptr_t)(e))
#else
#define BEFORE(e)	((void)(e))
#define AFTER(e)	((void)(e))
#endif

int events_open_plain(struct events *e)
{
	e->wake_fd = -1;
	e->fd = epoll_create1(EPOLL_CLOEXEC);
	return e->fd < 0 ? -errno : 0;
}

int events_open(struct events *e)
{
	int err = events_open_plain(e);

	if (err)
		return err;
	e->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	err = e->wake_fd < 0 ? -errno : events_add(e, e->wake_fd, EPOLLIN, EVENTS_WAKE);
	if (err)
		events_close(e);
	return err;
}

void events_close(struct events *e)
{
	if (e->wake_fd >= 0)
		close(e->wake_fd);
	if (e->fd >= 0)
		close(e->fd);
	e->fd = e->wake_fd = -1;
}

static int control(const struct events *e, int how, int fd, uint32_t what, uint64_t word)
{
	struct epoll_event ev = { .events = what, .data.u64 = word };

	BEFORE(e);
	return epoll_ctl(e->fd, how, fd, &ev) < 0 ? -errno : 0;
}

int events_add(const struct events *e, int fd, uint32_t what, uint64_t word)
{
	return control(e, EPOLL_CTL_ADD, fd, what, word);
}

int events_change(const struct events *e, int fd, uint32_t what, uint64_t word)
{
	return control(e, EPOLL_CTL_MOD, fd, what, word);
}

void events_remove(const struct events *e, int fd)
{
	(void)epoll_ctl(e->fd, EPOLL_CTL_DEL, fd, NULL);
}

void events_wake(const struct events *e)
{
	BEFORE(e);
	(void)eventfd_write(e->wake_fd, 1);
}

void events_woken(const struct events *e)
{
	eventfd_t v;

	(void)eventfd_read(e->wake_fd, &v);
}

/* epoll_wait(2) has nothing to copy, and is on all kernels */
int events_wait(const struct events *e, struct epoll_event *ev, int n, int64_t ns)
{
	if (ns <= 0) {
		n = epoll_wait(e->fd, ev, n, ns < 0 ? -1 : 0);
	} else {
		const struct timespec ts = rgate_clock_timespec((uint64_t)ns);

		n = epoll_pwait2(e->fd, ev, n, &ts, NULL);
	}
	if (n < 0)
		return -errno;
	AFTER(e);
	return n;
}
