/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * Calls about sockets of programs into which no library can be loaded: the kernel stops a program
 * at each of them (seccomp user notification), and this process makes the call in its place, by
 * what the library has for that (lib/shim/shim.h), with a descriptor of the program's that it takes
 * for as long. What a call points to is copied once. Sockets come to the program as descriptors.
 *
 *	super.c		its threads
 *	super_calls.c	the calls
 *	super_data.c	... that receive bytes of a stream with an address
 *	super_datagram.c ... about datagrams
 *	super_enter.c	the filter, and how a program gets it
 *	super_task.c	whose call it is: memory, descriptors, signals
 *
 * Calls that only move bytes, and have no place for an address, are never seen here. One that waits
 * has a thread here for as long; others go on.
 */
#ifndef SUPER_H
#define SUPER_H

#include <linux/seccomp.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/*
 * super_enter - of a process that is to become the program; @sock: the other end of super_begin()'s
 * All that it starts is bound to it, too, and can have no more rights than it has. 0 when who
 * answers its calls is there; -errno: -EBUSY: there is such a one already; -ENOSYS, -EINVAL: not on
 * this kernel; -EPIPE: he could not, and has said so.
 */
int super_enter(int sock);

/*
 * super_begin - answers the calls of @child, and of all that it starts, until this process ends
 * @agent: where to ask it, as in AGENT_ENV
 * Once in a process. -ECHILD: there is none, and it has said why; -errno
 */
int super_begin(pid_t child, int sock, const char *agent);

/* ---- super_task.c: a thread that has made a call, and waits for what comes of it ---- */

struct task {
	int listener;
	uint64_t id;		/* of the call */
	pid_t tid;
	int pidfd, mem;
};

enum task_signal {
	TASK_QUIET,
	TASK_SIGNALLED,		/* it has a signal to take, or is to stop */
	TASK_SIGNALLED_MAYBE,	/* ... or another thread of its process has */
};

/* -ESRCH: it has gone; -errno. To be closed either way */
int task_open(struct task *t, int listener, const struct seccomp_notif *n);
void task_close(struct task *t);
/* Does it still wait? */
bool task_waits(const struct task *t);
/* A descriptor of its own, as one of this process; -errno */
int task_fd(const struct task *t, int number);
/* -EFAULT; -errno: no access to it; -ESRCH */
int task_read(struct task *t, uint64_t from, void *buf, size_t len);
int task_write(struct task *t, uint64_t to, const void *buf, size_t len);
/* Is there a number for one more descriptor? True also if that is not known */
bool task_has_room(const struct task *t);
enum task_signal task_signal(const struct task *t);

/* ---- super.c ---- */

struct super_call {
	struct task task;
	const struct seccomp_data *data;
	struct super_call *next, **link;	/* of those that are made now */
};

/* What a call may come to beside its result */
#define SUPER_GOES_ON	INT64_MIN		/* the kernel makes it */
#define SUPER_SENT	(INT64_MIN + 1)		/* it has its answer, or waits no more */

/*
 * super_wait - until @fd has one of those events; -EAGAIN: @until_ns is over (CLOCK_MONOTONIC, 0:
 * never); what else the call comes to: there is a signal, who made it has gone, or as many wait as
 * may
 */
int super_wait(struct super_call *c, int fd, short events, uint64_t until_ns);
/* The same, but for @fd: there is no need to look at it again; @ms: how long, at most */
int super_nap(struct super_call *c, int ms);
/*
 * super_settle - until the calls of who has been killed have let go of their descriptors: nobody
 * else's end may be told before. A second at most, and not longer than who made @c waits
 */
void super_settle(struct super_call *c);
/*
 * The descriptor is the program's, and the result its number. @fd is the caller's, who closes it
 * before the program goes on: as long as it is open epoll tells of what the program has closed
 */
int64_t super_give(struct super_call *c, int fd, bool cloexec);

/* ---- super_calls.c, super_data.c, super_datagram.c ---- */

/* 0 or more, -errno, SUPER_* */
int64_t super_do(struct super_call *c);
/* recvfrom(2) of a stream, with an address, which is empty then */
int64_t super_recvfrom(struct super_call *c, int fd);
/* Calls of datagrams that name an address, or may */
int64_t super_datagram(struct super_call *c, int fd);
/* Its SO_ERROR, which is told once */
int super_datagram_error(int fd);
/* When a call's time is over, by SO_RCVTIMEO or SO_SNDTIMEO; 0: never */
uint64_t super_until(int fd, int option);

#endif
