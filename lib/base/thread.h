/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/* Threads of the library, which take no signals: those are for the application's. */
#ifndef RGATE_THREAD_H
#define RGATE_THREAD_H

#include <pthread.h>

/* @attr: NULL: as usual. 0 or -errno as pthread_create() */
int rgate_thread_start(pthread_t *thread, const pthread_attr_t *attr, void *(*run)(void *),
		       void *arg);

/* Whose pthread_cond_timedwait() has a time of CLOCK_MONOTONIC: nobody sets that */
void rgate_cond_init(pthread_cond_t *c);

/*
 * A mutex that is had for a few microseconds, less than it takes to sleep and to be woken: who
 * waits for it looks for about as long before it sleeps.
 */
void rgate_mutex_init_brief(pthread_mutex_t *m);

#endif
