/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * A mutex that two threads have in turn. A mutex alone may be had again and again by who lets
 * it go: a client that asks without end would keep the hub's thread, and with it all that the
 * node is told, waiting for many milliseconds.
 */
#ifndef RGATE_BASE_FAIR_H
#define RGATE_BASE_FAIR_H

#include <pthread.h>
#include <stdbool.h>

#include "thread.h"

struct fair {
	pthread_mutex_t door;		/* whose turn is next waits with it */
	pthread_mutex_t lock;
};

static inline void fair_init(struct fair *f)
{
	rgate_mutex_init_brief(&f->door);
	rgate_mutex_init_brief(&f->lock);
}

static inline void fair_destroy(struct fair *f)
{
	pthread_mutex_destroy(&f->lock);
	pthread_mutex_destroy(&f->door);
}

static inline void fair_lock(struct fair *f)
{
	pthread_mutex_lock(&f->door);
	pthread_mutex_lock(&f->lock);
	pthread_mutex_unlock(&f->door);
}

/* False: somebody has it, or waits for it */
static inline bool fair_trylock(struct fair *f)
{
	bool got;

	if (pthread_mutex_trylock(&f->door))
		return false;
	got = !pthread_mutex_trylock(&f->lock);
	pthread_mutex_unlock(&f->door);
	return got;
}

static inline void fair_unlock(struct fair *f)
{
	pthread_mutex_unlock(&f->lock);
}

#endif
