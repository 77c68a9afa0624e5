// SPDX-License-Identifier: MIT OR GPL-2.0
#define _GNU_SOURCE
#include "super.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "clock.h"
#include "shim.h"
#include "util.h"

#define THREADS_MAX	1024U	/* calls at once, but for the last one's those that wait */
#define IDLE_MAX	4U	/* threads that wait for calls, one of them at the listener */
#define STACK		(256U << 10)
#define TICK_MS		20	/* between looks for signals while a call waits */
#define TICKS_MAYBE	5U	/* that a signal of the process stays, until it is one's own */
#define SETTLE_NS	NSEC	/* for calls of who has been killed, at most */
#define ERESTARTSYS	512	/* the kernel's: once more, or EINTR, as the handler has it */

/* It stays until the process ends: its threads know nothing but this. */
static struct super {
	int listener;
	uint16_t room;			/* bytes that the kernel writes of a call */
	pthread_mutex_t turn;		/* whose it is to take the next call */
	pthread_mutex_t lock;		/* of what follows */
	unsigned int threads, idle;
	struct super_call *calls;	/* each is there until all of it is closed */
	pthread_cond_t ended;		/* one of them */
} super = {
	.listener = -1, .turn = PTHREAD_MUTEX_INITIALIZER, .lock = PTHREAD_MUTEX_INITIALIZER,
	.ended = PTHREAD_COND_INITIALIZER,
};

/* ---- Its answers ---- */

static void answer(const struct task *t, int64_t result)
{
	struct seccomp_notif_resp r = { .id = t->id };

	if (result == SUPER_SENT)
		return;
	if (result == SUPER_GOES_ON)
		r.flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE;
	else if (result < 0)
		r.error = (int32_t)result;
	else
		r.val = result;
	/* Who does not wait any more gets none. */
	(void)ioctl(t->listener, SECCOMP_IOCTL_NOTIF_SEND, &r);
}

int64_t super_give(struct super_call *c, int fd, bool cloexec)
{
	struct seccomp_notif_addfd add = {
		.id = c->task.id, .srcfd = (uint32_t)fd, .newfd_flags = cloexec ? O_CLOEXEC : 0,
	};
	/* Not with the answer: its caller closes the other one first. */
	const int number = ioctl(c->task.listener, SECCOMP_IOCTL_NOTIF_ADDFD, &add);

	if (number >= 0)
		return number;
	return errno == ENOENT ? SUPER_SENT : -errno;
}

/* ---- Waiting ---- */

/* Another thread takes the next call. */
static bool may_wait(void)
{
	bool may;

	pthread_mutex_lock(&super.lock);
	may = super.idle > 0;
	pthread_mutex_unlock(&super.lock);
	return may;
}

/* What the call comes to if it waits no more; 0 */
static int look(struct super_call *c, unsigned int *ticks)
{
	if (!task_waits(&c->task))
		return -ESRCH;
	if (!may_wait())
		return -ENOBUFS;
	switch (task_signal(&c->task)) {
	case TASK_SIGNALLED:
		return -ERESTARTSYS;
	case TASK_SIGNALLED_MAYBE:
		return ++*ticks >= TICKS_MAYBE ? -EINTR : 0;
	case TASK_QUIET:
		break;
	}
	*ticks = 0;
	return 0;
}

static int ms_until(uint64_t until_ns)
{
	const uint64_t now = util_now();

	if (!until_ns || until_ns > now + TICK_MS * 1000000ULL)
		return TICK_MS;
	return until_ns <= now ? 0 : (int)((until_ns - now + 999999) / 1000000);
}

int super_wait(struct super_call *c, int fd, short events, uint64_t until_ns)
{
	struct pollfd p[2] = {
		{ .fd = fd, .events = events }, { .fd = c->task.pidfd, .events = POLLIN },
	};
	unsigned int ticks = 0;
	int ms, err;

	for (;;) {
		ms = ms_until(until_ns);
		if (poll(p, 2, ms) < 0 && errno != EINTR)
			return -errno;
		if (p[1].revents)
			return -ESRCH;
		if (p[0].revents)
			return 0;
		if (!ms)
			return -EAGAIN;
		err = look(c, &ticks);
		if (err)
			return err;
	}
}

int super_nap(struct super_call *c, int ms)
{
	unsigned int ticks = TICKS_MAYBE;
	struct pollfd p = { .fd = c->task.pidfd, .events = POLLIN };

	return poll(&p, 1, ms) == 1 ? -ESRCH : look(c, &ticks);
}

/* ---- The calls that are made now ---- */

static void call_begins(struct super_call *c)
{
	pthread_mutex_lock(&super.lock);
	c->next = super.calls;
	c->link = &super.calls;
	if (c->next)
		c->next->link = &c->next;
	super.calls = c;
	pthread_mutex_unlock(&super.lock);
}

static void call_ends(struct super_call *c)
{
	pthread_mutex_lock(&super.lock);
	*c->link = c->next;
	if (c->next)
		c->next->link = c->link;
	pthread_cond_broadcast(&super.ended);
	pthread_mutex_unlock(&super.lock);
}

/* With the lock, by which each task is open as long as its call is in the list */
static bool any_of_the_dead(const struct super_call *but)
{
	const struct super_call *c;

	for (c = super.calls; c; c = c->next)
		if (c != but && !task_waits(&c->task))
			return true;
	return false;
}

static void tick(void)
{
	const struct timespec until = rgate_clock_timespec(util_now() + TICK_MS * 1000000ULL);

	(void)pthread_cond_clockwait(&super.ended, &super.lock, CLOCK_MONOTONIC, &until);
}

void super_settle(struct super_call *c)
{
	const uint64_t until = util_now() + SETTLE_NS;

	pthread_mutex_lock(&super.lock);
	/* Each call that ends wakes it, also those of the living. */
	while (any_of_the_dead(c) && task_waits(&c->task) && util_now() < until)
		tick();
	pthread_mutex_unlock(&super.lock);
}

/* ---- Threads ---- */

static void *serve(void *arg);

/* With the lock. One that cannot be made is missed when a call has to wait. */
static void start_one(void)
{
	pthread_attr_t attr;
	pthread_t thread;

	if (super.threads >= THREADS_MAX || pthread_attr_init(&attr))
		return;
	(void)pthread_attr_setstacksize(&attr, STACK > (size_t)PTHREAD_STACK_MIN ? STACK :
					(size_t)PTHREAD_STACK_MIN);
	(void)pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	if (!pthread_create(&thread, &attr, serve, NULL)) {
		super.threads++;
		super.idle++;
	}
	pthread_attr_destroy(&attr);
}

/* This thread has a call. */
static void be_busy(void)
{
	pthread_mutex_lock(&super.lock);
	super.idle--;
	if (!super.idle)
		start_one();
	pthread_mutex_unlock(&super.lock);
}

/* False: there are enough without it */
static bool be_idle(void)
{
	bool stays;

	pthread_mutex_lock(&super.lock);
	stays = super.idle < IDLE_MAX;
	super.idle += stays;
	super.threads -= !stays;
	pthread_mutex_unlock(&super.lock);
	return stays;
}

/* There is nothing for it to do. */
static bool leave(void)
{
	pthread_mutex_lock(&super.lock);
	super.idle--;
	super.threads--;
	pthread_mutex_unlock(&super.lock);
	return false;
}

/* The next call, of which the kernel may write more than is known here; false: there is none */
static bool take(struct seccomp_notif *n)
{
	struct pollfd p = { .fd = super.listener, .events = POLLIN };
	int ret;

	do {
		ret = poll(&p, 1, -1);
		if (ret < 0 && errno != EINTR)
			return false;
		/* Nobody is left who could make one. */
		if (ret > 0 && !(p.revents & POLLIN))
			return false;
		memset(n, 0, super.room);
		/* Who made it may have been killed meanwhile. */
	} while (ret < 0 || ioctl(super.listener, SECCOMP_IOCTL_NOTIF_RECV, n) < 0);
	return true;
}

static void handle(const struct seccomp_notif *n)
{
	struct super_call c = { .data = &n->data };
	int64_t result = task_open(&c.task, super.listener, n);

	call_begins(&c);
	if (!result)
		result = super_do(&c);
	answer(&c.task, result);
	call_ends(&c);
	task_close(&c.task);
}

static void *serve(void *arg)
{
	struct seccomp_notif *n = malloc(super.room);
	bool stays = true, more;

	(void)arg;
	while (stays) {
		pthread_mutex_lock(&super.turn);
		more = n && take(n);
		if (more)
			be_busy();
		pthread_mutex_unlock(&super.turn);
		if (more)
			handle(n);
		stays = more ? be_idle() : leave();
	}
	free(n);
	return NULL;
}

/* ---- Its begin ---- */

static int get_listener(pid_t child, int number)
{
	long pidfd = syscall(SYS_pidfd_open, child, 0), fd;
	int err;

	if (pidfd < 0)
		return -errno;
	fd = syscall(SYS_pidfd_getfd, pidfd, number, 0);
	err = -errno;
	close((int)pidfd);
	return fd < 0 ? err : (int)fd;
}

static int get_room(void)
{
	struct seccomp_notif_sizes sizes;

	if (syscall(SYS_seccomp, SECCOMP_GET_NOTIF_SIZES, 0, &sizes))
		return -errno;
	super.room = sizes.seccomp_notif > sizeof(struct seccomp_notif) ? sizes.seccomp_notif :
		     (uint16_t)sizeof(struct seccomp_notif);
	return 0;
}

/* Signals are the first thread's. */
static int start(void)
{
	sigset_t all, before;
	unsigned int n;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	pthread_mutex_lock(&super.lock);
	start_one();
	n = super.threads;
	pthread_mutex_unlock(&super.lock);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return n ? 0 : -EAGAIN;
}

int super_begin(pid_t child, int sock, const char *agent)
{
	int number, err;

	if (read(sock, &number, sizeof(number)) != sizeof(number))
		return -ECHILD;
	err = get_listener(child, number);
	if (err < 0)
		return err;
	super.listener = err;
	err = get_room();
	if (err)
		return err;
	shim_begin(agent);
	err = start();
	if (!err && write(sock, "", 1) != 1)
		err = -ECHILD;
	return err;
}
