/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * What all handles of a memfd ring share in the process that made it: the present
 * memory, its producer, and who to wake. Each handle has one end of a socket pair
 * as its descriptor; the other end is here. A closed end tells either side that
 * the other is gone, and new memory travels through it after a resize.
 *
 * Who fills the ring from another process may wake those that sleep by the ring's bell, an
 * eventfd that nobody reads. A handle's descriptor is an epoll instance over its end and
 * the bell then, edge-triggered: each ringing makes it readable once. Consumers get that
 * instance and never the bell, so that none can keep who rings it waiting.
 */
#ifndef RGATE_LIB_MEMFD_CORE_H
#define RGATE_LIB_MEMFD_CORE_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include <ringgate/rgate_ring.h>

#include "memfd_mem.h"

struct rgate_producer;

struct rgate_memfd_handle {
	int sock;		/* our end, -1: free */
	bool external;		/* the other end went to another process */
	uint64_t woken;		/* the want it was last woken for */
};

struct rgate_memfd {
	pthread_mutex_t lock;	/* all below but refs and the atomics */
	unsigned int refs;	/* atomic: handles of this process, producer */
	uint32_t used;		/* atomic: bit per handle given */
	uint32_t life[RGATE_HANDLES_MAX]; /* rgate_prod.life, in whatever memory */
	uint64_t closed;	/* rgate_prod.closed */
	int life_file;		/* see life.h; -1: no owner words */
	int bell;		/* -1: none */
	struct rgate_memfd_mem *mem;
	struct rgate_memfd_mem *next; /* atomic: wanted by a resize, or NULL */
	struct rgate_producer *producer;
	int kick_fd;		/* eventfd that makes the producer flush, -1: none */
	uint32_t flags;
	uint32_t policy;
	uint32_t clock;
	bool filled;		/* by another process or machine */
	char name[RGATE_NAME_LEN];
	struct rgate_memfd_handle handle[RGATE_HANDLES_MAX];
};

/* @filled: see rgate_memfd_mem_new(); such a ring has one size. @bell: whether it has one,
 * which needs owner words */
int rgate_memfd_new(struct rgate_memfd **core, const struct rgate_ring_opts *o, bool filled,
		    bool bell);
struct rgate_memfd *rgate_memfd_get(struct rgate_memfd *core);
void rgate_memfd_put(struct rgate_memfd *core);

/* epoll_event.data of a handle's end of the pair, in its epoll instance; the bell's is 0 */
#define RGATE_MEMFD_SOCK	1U

struct rgate_memfd_ends {	/* of a handle; -1: there is none */
	int sock;
	int life;		/* what keeps it alive, see life.h */
	int epoll;		/* over sock and the bell */
};

/*
 * A new handle: its number, with what is its holder's in @ends. @external: it is for another
 * process; then life and epoll travel through the pair, and only sock is set.
 * -EMFILE: all are given
 */
int rgate_memfd_handle_new(struct rgate_memfd *core, struct rgate_memfd_ends *ends,
			   bool external);
void rgate_memfd_handle_free(struct rgate_memfd *core, uint32_t handle);

/* The present memory, with a reference */
struct rgate_memfd_mem *rgate_memfd_mem_now(struct rgate_memfd *core);

/*
 * The producer's thread only, or while there is none: handles whose wait word is
 * set; waking those whose position lies below @head (all that sleep with @all).
 * Returns how many were woken.
 */
bool rgate_memfd_sleepers(const struct rgate_memfd *core);
unsigned int rgate_memfd_wake(struct rgate_memfd *core, uint64_t head, bool all);

int rgate_memfd_resize(struct rgate_memfd *core, uint32_t slots,
		       uint32_t slot_size);

/* Changes over to the memory a resize asked for; the producer's thread only.
 * @head: final head of the old memory, whose counters are stored. */
void rgate_memfd_switch(struct rgate_memfd *core, uint64_t head);

static inline bool rgate_memfd_resize_wanted(const struct rgate_memfd *core)
{
	return __atomic_load_n(&core->next, __ATOMIC_RELAXED) != NULL;
}

static inline struct rgate_prod *rgate_memfd_prod(const struct rgate_memfd_mem *m)
{
	return (struct rgate_prod *)m->base;
}

static inline struct rgate_cons *rgate_memfd_cons(const struct rgate_memfd_mem *m)
{
	return (struct rgate_cons *)(m->base + m->geo.cons_off);
}

#endif
