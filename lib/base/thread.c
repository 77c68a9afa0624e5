// SPDX-License-Identifier: MIT OR GPL-2.0
#include <signal.h>
#include <time.h>

#include "thread.h"

int rgate_thread_start(pthread_t *thread, const pthread_attr_t *attr, void *(*run)(void *),
		       void *arg)
{
	sigset_t all, was;
	int err;

	/* A thread begins with the mask of who makes it. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &was);
	err = -pthread_create(thread, attr, run, arg);
	pthread_sigmask(SIG_SETMASK, &was, NULL);
	return err;
}

void rgate_cond_init(pthread_cond_t *c)
{
	pthread_condattr_t attr;

	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(c, &attr);
	pthread_condattr_destroy(&attr);
}

void rgate_mutex_init_brief(pthread_mutex_t *m)
{
	pthread_mutexattr_t spins;

	pthread_mutexattr_init(&spins);
	pthread_mutexattr_settype(&spins, PTHREAD_MUTEX_ADAPTIVE_NP);
	pthread_mutex_init(m, &spins);
	pthread_mutexattr_destroy(&spins);
}
