/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * What a thread waits for: descriptors, each with a word of its owner's that comes with its events,
 * and others that wake it. Any thread may add, remove and wake; descriptors are the caller's.
 */
#ifndef RGATE_EVENTS_H
#define RGATE_EVENTS_H

#include <stdint.h>
#include <sys/epoll.h>

struct events {
	int fd;			/* readable when there are some: may be waited for itself */
	int wake_fd;		/* -1: nobody wakes */
};

/* The word of events that are events_wake() */
#define EVENTS_WAKE	UINT64_MAX

/* -errno, and there is nothing to close */
int events_open(struct events *e);
/* Without events_wake(): for who waits for descriptors alone */
int events_open_plain(struct events *e);
/* Nothing, if it was not opened, and both are -1 */
void events_close(struct events *e);

/* @what: EPOLLIN, ...; -errno */
int events_add(const struct events *e, int fd, uint32_t what, uint64_t word);
int events_change(const struct events *e, int fd, uint32_t what, uint64_t word);
/* Also where another process has the descriptor, too; nothing, if it was not added */
void events_remove(const struct events *e, int fd);

static inline uint64_t events_word(const void *p)
{
	return (uintptr_t)p;
}

/* Whoever waits, or will next, has an event, once for any number of these. */
void events_wake(const struct events *e);
/* Takes it */
void events_woken(const struct events *e);

/* How many, 0: the time is over; -errno. @ns: -1: no limit */
int events_wait(const struct events *e, struct epoll_event *ev, int n, int64_t ns);

/* As a limit for it: of poll(2) */
static inline int64_t events_ms(int ms)
{
	return ms < 0 ? -1 : ms * 1000000LL;
}

#endif
