// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * What a program has passed may take its time to be closed: a file whose file system is the
 * program's, a socket that lingers, or one with such a thing unread. So threads close it, one, and
 * more where it does not come to an end; the agent's own never does.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "agent_priv.h"
#include "clock.h"
#include "fds.h"
#include "thread.h"
#include "wire.h"

#define THREADS		64U		/* who takes them all harms his own agent alone */
#define MOST		256U		/* that wait: then nothing more is taken from programs */
#define STUCK_NS	20000000ULL	/* none has ended for so long: a thread more */
#define NAP_NS		100000L
#define SETTLE_NAPS	500U	/* a busy machine does not run that thread at once */
#define CLOSE_NAPS	10000U
#define VAIN_NS		1000000000ULL	/* after a wait that was in vain there is none */
#define PASSED_MOST	253U		/* in one message, the kernel's SCM_MAX_FD */
#define SURE		(16U << 10)	/* bytes of an end that are looked at */

struct closing {
	struct link link;
	int fd;
	int asker;			/* who is answered behind that, and is closed; -1: nobody */
	struct agent_answer answer[];	/* one, for an asker */
};

struct closer {
	pthread_mutex_t lock;
	pthread_cond_t more;
	struct link all;		/* in the order in which they came */
	uint32_t n;
	uint32_t busy, idle, threads;
	uint32_t users;			/* the agent, and each thread */
	uint64_t closed;
	bool over;
	pthread_t thread[THREADS];
	/* The agent's alone */
	uint64_t seen, since_ns;	/* closed, and since when it is no more */
	uint64_t vain_ns;		/* 0: no wait was */
};

/* With the lock: it is its caller's */
static struct closing *first_of(struct closer *c)
{
	struct closing *it = container_of(c->all.next, struct closing, link);

	list_del(&it->link);
	c->n--;
	return it;
}

/* With the lock, which is gone then */
static void leave(struct closer *c)
{
	const bool last = !--c->users;

	pthread_mutex_unlock(&c->lock);
	if (!last)
		return;
	pthread_cond_destroy(&c->more);
	pthread_mutex_destroy(&c->lock);
	while (!list_empty(&c->all))
		free(first_of(c));
	free(c);
}

static void close_one(struct closing *it)
{
	close(it->fd);
	if (it->asker >= 0) {
		/* Who does not take it has gone. */
		(void)rgate_wire_send(it->asker, it->answer, sizeof(*it->answer), NULL, 0,
				      MSG_DONTWAIT);
		close(it->asker);
	}
	free(it);
}

static void *run(void *ctx)
{
	struct closer *c = ctx;
	struct closing *it;

	pthread_mutex_lock(&c->lock);
	for (;;) {
		c->idle++;
		while (!c->n && !c->over)
			pthread_cond_wait(&c->more, &c->lock);
		c->idle--;
		if (!c->n)
			break;
		it = first_of(c);
		c->busy++;
		pthread_mutex_unlock(&c->lock);
		close_one(it);
		pthread_mutex_lock(&c->lock);
		c->busy--;
		c->closed++;
	}
	leave(c);
	return NULL;
}

/* With the lock */
static int start(struct closer *c)
{
	int err = rgate_thread_start(&c->thread[c->threads], NULL, run, c);

	if (err)
		return err;
	c->threads++;
	c->users++;
	return 0;
}

int closer_open(struct agent *a)
{
	struct closer *c = calloc(1, sizeof(*c));
	int err;

	if (!c)
		return -ENOMEM;
	c->users = 1;
	list_init(&c->all);
	pthread_mutex_init(&c->lock, NULL);
	pthread_cond_init(&c->more, NULL);
	pthread_mutex_lock(&c->lock);
	err = start(c);
	if (err) {
		leave(c);
		return err;
	}
	pthread_mutex_unlock(&c->lock);
	a->closer = c;
	return 0;
}

static uint32_t left(struct closer *c)
{
	uint32_t n;

	pthread_mutex_lock(&c->lock);
	n = c->n + c->busy;
	pthread_mutex_unlock(&c->lock);
	return n;
}

/* True: all that there was is closed */
static bool wait_for_all(struct closer *c, unsigned int naps)
{
	const struct timespec nap = { .tv_nsec = NAP_NS };

	while (left(c) && naps) {
		(void)nanosleep(&nap, NULL);
		naps--;
	}
	return naps;
}

void closer_close(struct agent *a)
{
	struct closer *c = a->closer;
	bool all;
	uint32_t i;

	if (!c)
		return;
	pthread_mutex_lock(&c->lock);
	c->over = true;
	pthread_cond_broadcast(&c->more);
	pthread_mutex_unlock(&c->lock);
	/* Else they go on without the agent. */
	all = wait_for_all(c, CLOSE_NAPS);
	for (i = 0; i < c->threads; i++)
		if (all)
			pthread_join(c->thread[i], NULL);
		else
			pthread_detach(c->thread[i]);
	pthread_mutex_lock(&c->lock);
	leave(c);
	a->closer = NULL;
}

/* NULL: no memory */
static struct closing *make(int fd, int asker, const struct agent_answer *answer)
{
	struct closing *it = malloc(sizeof(*it) + (answer ? sizeof(*answer) : 0));

	if (!it)
		return NULL;
	it->fd = fd;
	it->asker = asker;
	if (answer)
		*it->answer = *answer;
	return it;
}

/* gcc 12's analyzer loses the last one of a list when another one comes behind it. */
#ifndef __clang__
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wanalyzer-malloc-leak"
#endif
static void put(struct closer *c, struct closing *it)
{
	pthread_mutex_lock(&c->lock);
	list_add_tail(&c->all, &it->link);
	c->n++;
	pthread_mutex_unlock(&c->lock);
}

#ifndef __clang__
#pragma GCC diagnostic pop
#endif

void closer_put(struct agent *a, int fd)
{
	struct closing *it = make(fd, -1, NULL);

	/* It is open for a while yet, and nobody is there whom its events are about. */
	events_remove(&a->ev, fd);
	if (it)
		put(a->closer, it);
	else
		close(fd);
}

int closer_put_answer(struct agent *a, int fd, int asker, const struct agent_answer *answer)
{
	struct closing *it = make(fd, asker, answer);

	if (!it)
		return -ENOMEM;
	events_remove(&a->ev, asker);
	events_remove(&a->ev, fd);
	put(a->closer, it);
	return 0;
}

/* All of what is unread, of which the kernel says how much it is, and nothing was passed with it */
static bool is_sure(int fd, uint32_t known)
{
	unsigned char trash[SURE];
	struct iovec v = { .iov_base = trash, .iov_len = sizeof(trash) };
	struct msghdr mh = { .msg_iov = &v, .msg_iovlen = 1 };
	int there = 0;

	if (ioctl(fd, FIONREAD, &there) < 0 || (uint32_t)there > known || known > sizeof(trash))
		return false;
	/* Nobody sends any more. */
	(void)shutdown(fd, SHUT_RD);
	if (ioctl(fd, FIONREAD, &there) < 0)
		return false;
	if (!there)
		return true;
	return recvmsg(fd, &mh, MSG_PEEK | MSG_DONTWAIT) == there && !(mh.msg_flags & MSG_CTRUNC);
}

void closer_put_end(struct agent *a, int fd, uint32_t known)
{
	if (is_sure(fd, known))
		close(fd);
	else
		closer_put(a, fd);
}

bool closer_full(struct agent *a)
{
	return left(a->closer) >= MOST;
}

/* Without the lock, which who is woken takes first */
static void wake(struct closer *c, bool idle)
{
	if (idle)
		pthread_cond_signal(&c->more);
}

bool closer_tend(struct agent *a, uint64_t now)
{
	struct closer *c = a->closer;
	bool waits, idle;

	pthread_mutex_lock(&c->lock);
	waits = c->n && !c->idle;
	idle = c->n && c->idle;
	if (!waits || c->closed != c->seen) {
		c->seen = c->closed;
		c->since_ns = now;
	} else if (now - c->since_ns >= STUCK_NS && c->threads < THREADS) {
		c->since_ns = now;
		(void)start(c);
	}
	pthread_mutex_unlock(&c->lock);
	wake(c, idle);
	return waits;
}

void closer_settle(struct agent *a)
{
	struct closer *c = a->closer;
	uint64_t now;

	if (!left(c))
		return;
	now = rgate_clock_now(CLOCK_MONOTONIC);
	if (c->vain_ns && now - c->vain_ns < VAIN_NS)
		return;
	wake(c, true);
	c->vain_ns = wait_for_all(c, SETTLE_NAPS) ? 0 : now;
}

ssize_t closer_recv(struct agent *a, int fd, struct iovec *v, size_t nv, int *one)
{
	union {
		struct cmsghdr align;
		char buf[CMSG_SPACE(PASSED_MOST * sizeof(int))];
	} room;
	struct msghdr mh = { .msg_iov = v, .msg_iovlen = nv, .msg_control = room.buf,
			     .msg_controllen = sizeof(room.buf) };
	int fds[PASSED_MOST + 1];
	unsigned int n, i;
	ssize_t len = recvmsg(fd, &mh, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);

	if (len < 0)
		return -errno;
	n = rgate_take_fds(&mh, fds, PASSED_MOST + 1);
	if (one)
		*one = n == 1 ? fds[0] : -1;
	if (!n || (one && n == 1))
		return len;
	for (i = 0; i < n; i++)
		closer_put(a, fds[i]);
	return -EPROTO;
}
