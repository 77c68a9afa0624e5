/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * Filling a memfd ring from this process: inline, one thread a producer.
 *
 *	struct rgate_slot *s = rgate_producer_reserve(&p);
 *	if (s) {
 *		memcpy(rgate_producer_data(s), frame, n);
 *		rgate_producer_fill(&p, s, n, n);
 *		...other header fields...
 *		rgate_producer_publish(&p);
 *	}
 */
#ifndef RINGGATE_RGATE_PRODUCER_H
#define RINGGATE_RGATE_PRODUCER_H

#include <ringgate/rgate_ring.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Fields are private; they are here for the inline functions only. */
struct rgate_producer {
	unsigned char *slots;
	uint64_t head;		/* next position to fill */
	uint64_t limit;		/* first position not known to be free */
	uint64_t mask;
	uint32_t lap_shift;
	uint32_t size_shift;
	const uint64_t *credits;
	struct rgate_prod *prod;
	const struct rgate_cons *cons;
	struct rgate_ring *ring;
	uint32_t policy;
	uint32_t gap;		/* frames lost since the last publish */
	uint32_t full;		/* the last reserve found no room */
	uint32_t generation;
};

/*
 * rgate_producer_init - the producer of a memfd ring made by this process
 * -EBUSY: the ring has one; -EOPNOTSUPP: not a memfd ring of this process
 */
RGATE_API int rgate_producer_init(struct rgate_producer *p,
				  struct rgate_ring *ring);

/* rgate_producer_fini - marks the ring closed and wakes who sleeps */
RGATE_API void rgate_producer_fini(struct rgate_producer *p);

/* Slow paths of the inline functions */
RGATE_API bool rgate_producer_refill(struct rgate_producer *p);
RGATE_API void rgate_producer_wake(struct rgate_producer *p);

static inline struct rgate_slot *
rgate_producer_slot(const struct rgate_producer *p, uint64_t pos)
{
	return (struct rgate_slot *)
		(p->slots + ((pos & p->mask) << p->size_shift));
}

static inline void *rgate_producer_data(struct rgate_slot *s)
{
	return (unsigned char *)s + RGATE_SLOT_HDR;
}

/*
 * rgate_producer_reserve - the next free slot, or NULL: the ring is full
 * Credits are looked at once a batch. Under RGATE_POLICY_OVERWRITE there always
 * is one: its seq becomes RGATE_SEQ_BUSY before it is given out.
 */
static inline struct rgate_slot *
rgate_producer_reserve(struct rgate_producer *p)
{
	struct rgate_slot *s;

	if (__builtin_expect(p->head == p->limit, 0) &&
	    !rgate_producer_refill(p))
		return NULL;
	s = rgate_producer_slot(p, p->head);
	if (p->policy == RGATE_POLICY_OVERWRITE) {
		__atomic_store_n(&s->seq, RGATE_SEQ_BUSY, __ATOMIC_RELAXED);
		/* busy is visible before any byte of the new frame */
		__atomic_thread_fence(__ATOMIC_RELEASE);
	}
	return s;
}

/* Is anyone asleep? One load for the usual single handle. */
static inline bool rgate_producer_sleepers(const struct rgate_producer *p)
{
	return __atomic_load_n(&p->cons->waiter[0].want, __ATOMIC_RELAXED) != 0;
}

#ifdef __cplusplus
}
#endif
#endif
