// SPDX-License-Identifier: MIT OR GPL-2.0
#include <errno.h>
#include <net/if_arp.h>
#include <sched.h>
#include <string.h>

#include "clock.h"
#include "memfd_core.h"
#include "producer.h"
#include "ring.h"

/* Credit words read in one go at most: eight cache lines */
#define SCAN_MAX 64

static uint64_t batches(const struct rgate_producer *p)
{
	return (p->mask + 1) >> RGATE_BATCH_SHIFT;
}

/* Has the batch been returned for the lap it is about to enter? */
static bool batch_free(const struct rgate_producer *p, uint64_t b)
{
	uint64_t lap = b >> (p->lap_shift - RGATE_BATCH_SHIFT);

	/* acquire: the consumers' reads of its slots come before our writes */
	return __atomic_load_n(&p->credits[b & (batches(p) - 1)],
			       __ATOMIC_ACQUIRE) == lap;
}

static void store_state(struct rgate_producer *p)
{
	const uint64_t *from = (const uint64_t *)&p->stats;
	uint64_t *to = (uint64_t *)&p->prod->stats;
	size_t i;

	p->stats.delivered = p->head - p->no_frames;
	for (i = 0; i < offsetof(struct rgate_stats, reserved) / sizeof(*to); i++)
		__atomic_store_n(&to[i], from[i], __ATOMIC_RELAXED);
	__atomic_store_n(&p->prod->head, p->head, __ATOMIC_RELEASE);
}

/* The words of the header that seldom change */
static void set_origin(struct rgate_producer *p)
{
	int cpu = sched_getcpu();
	struct rgate_slot s;

	memset(&s, 0, sizeof(s));
	s.cpu = cpu < 0 ? 0 : (uint16_t)cpu;
	s.clock = (uint8_t)p->core->clock;
	memcpy(&p->origin, &s.hash, sizeof(p->origin));
	memcpy(&p->clock, &s.clock, sizeof(p->clock));
}

static void bind_mem(struct rgate_producer *p)
{
	const struct rgate_memfd_mem *mem = p->core->mem;

	p->slots = mem->base + mem->geo.slots_off;
	p->mask = mem->geo.slots - 1;
	p->lap_shift = (uint32_t)__builtin_ctz(mem->geo.slots);
	p->size_shift = (uint32_t)__builtin_ctz(mem->geo.slot_size);
	p->credits = (const uint64_t *)(mem->base + mem->geo.credits_off);
	p->prod = rgate_memfd_prod(mem);
	p->head = p->limit = p->free_end = p->flushed = p->prod->head;
	p->generation = mem->geo.generation;
	memcpy(&p->stats, &p->prod->stats, sizeof(p->stats));
	/* wraps where counters went on over a resize and head began anew */
	p->no_frames = p->head - p->stats.delivered;
}

int rgate_producer_init(struct rgate_producer *p, struct rgate_ring *ring)
{
	struct rgate_memfd *core = ring->core;

	if (!core)
		return -EOPNOTSUPP;
	memset(p, 0, sizeof(*p));
	pthread_mutex_lock(&core->lock);
	if (core->producer) {
		pthread_mutex_unlock(&core->lock);
		return -EBUSY;
	}
	core->producer = p;
	p->core = rgate_memfd_get(core);
	p->policy = core->policy;
	p->chain = !!(core->flags & RGATE_RING_CHAIN);
	bind_mem(p);
	set_origin(p);
	__atomic_store_n(&p->prod->state, RGATE_STATE_ACTIVE, __ATOMIC_RELEASE);
	pthread_mutex_unlock(&core->lock);
	return 0;
}

void rgate_producer_fini(struct rgate_producer *p)
{
	struct rgate_memfd *core = p->core;

	p->pinned = 0;
	rgate_producer_flush(p);
	store_state(p);
	__atomic_store_n(&p->prod->state, RGATE_STATE_CLOSED, __ATOMIC_RELEASE);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	rgate_memfd_wake(core, p->head, true);
	pthread_mutex_lock(&core->lock);
	core->producer = NULL;
	core->kick_fd = -1;
	pthread_mutex_unlock(&core->lock);
	memset(p, 0, sizeof(*p));
	rgate_memfd_put(core);
}

void rgate_producer_stamp(struct rgate_producer *p)
{
	p->tstamp = rgate_clock_now(rgate_clock_id(p->core->clock));
}

bool rgate_producer_sleepers(const struct rgate_producer *p)
{
	return rgate_memfd_sleepers(p->core);
}

void rgate_producer_wake(struct rgate_producer *p)
{
	unsigned int n = rgate_memfd_wake(p->core, p->head, false);

	if (n) {
		p->stats.wakeups += n;
		__atomic_store_n(&p->prod->stats.wakeups, p->stats.wakeups,
				 __ATOMIC_RELAXED);
	}
}

static void follow_resize(struct rgate_producer *p)
{
	if (!rgate_memfd_resize_wanted(p->core) || p->pinned)
		return;
	rgate_memfd_switch(p->core, p->head);
	bind_mem(p);
}

void rgate_producer_flush(struct rgate_producer *p)
{
	if (p->head != p->flushed) {
		store_state(p);
		/* slots and head are visible before the wait words are read */
		__atomic_thread_fence(__ATOMIC_SEQ_CST);
		p->flushed = p->head;
		if (rgate_memfd_sleepers(p->core))
			rgate_producer_wake(p);
	}
	follow_resize(p);
}

/*
 * Once a batch. Without a fence: a sleeper missed here is seen at the next batch
 * or by the flush that every producer owes when it has nothing more.
 */
static void batch_end(struct rgate_producer *p)
{
	if (p->prod->head == p->head)
		return;
	store_state(p);
	if (rgate_memfd_sleepers(p->core))
		rgate_producer_wake(p);
	set_origin(p);
}

/* Reads credits ahead, so that their cache lines are fetched seldom. */
static void scan_credits(struct rgate_producer *p)
{
	uint64_t from = p->free_end > p->head ? p->free_end : p->head;
	uint64_t b = from >> RGATE_BATCH_SHIFT;
	uint64_t end = (p->head >> RGATE_BATCH_SHIFT) + batches(p);
	unsigned int n;

	for (n = 0; n < SCAN_MAX && b < end && batch_free(p, b); n++)
		b++;
	if (n)
		p->free_end = b << RGATE_BATCH_SHIFT;
}

static bool full(struct rgate_producer *p)
{
	if (!p->full) {
		p->full = 1;
		p->stats.full_events++;
		__atomic_store_n(&p->prod->stats.full_events, p->stats.full_events,
				 __ATOMIC_RELAXED);
		/* the consumer may sleep, and this one may wait for it */
		rgate_producer_flush(p);
	}
	return false;
}

bool rgate_producer_refill(struct rgate_producer *p)
{
	batch_end(p);
	follow_resize(p);
	if (p->policy == RGATE_POLICY_OVERWRITE) {
		if (!batch_free(p, p->head >> RGATE_BATCH_SHIFT))
			p->stats.overwritten += RGATE_BATCH -
						(p->head & (RGATE_BATCH - 1));
	} else {
		if (p->free_end <= p->head)
			scan_credits(p);
		if (p->free_end <= p->head)
			return full(p);
	}
	p->full = 0;
	p->cur = (unsigned char *)rgate_producer_slot(p, p->head);
	p->lap = (p->head >> p->lap_shift) + 1;
	p->limit = (p->head | (RGATE_BATCH - 1)) + 1;
	return true;
}

unsigned int rgate_producer_run(struct rgate_producer *p, unsigned int max)
{
	if (p->free_end < p->head + max)
		scan_credits(p);
	if (p->free_end <= p->head)
		return 0;
	return p->free_end - p->head < max ? (unsigned int)(p->free_end - p->head) :
	       max;
}

uint64_t rgate_producer_free(struct rgate_producer *p)
{
	uint64_t was;

	do {
		was = p->free_end;
		scan_credits(p);
	} while (p->free_end != was);
	return p->free_end > p->head ? p->free_end : p->head;
}

int rgate_producer_landed(struct rgate_producer *p, uint64_t head,
			  const struct rgate_stats *stats)
{
	const uint64_t wakeups = p->stats.wakeups;

	if (head < p->head || head > rgate_producer_free(p))
		return -EPROTO;
	p->stats = *stats;
	p->stats.wakeups = wakeups;
	p->head = head;
	p->no_frames = head - stats->delivered;
	rgate_producer_flush(p);
	return 0;
}

uint64_t rgate_producer_find(struct rgate_producer *p)
{
	const uint64_t end = rgate_producer_free(p), from = p->head;
	uint64_t pos;

	for (; p->head < end; p->head++) {
		const struct rgate_slot *s = rgate_producer_slot(p, p->head);
		const uint32_t len = s->len, room = (uint32_t)rgate_producer_room(p);

		if (__atomic_load_n(&s->seq, __ATOMIC_ACQUIRE) != (p->head >> p->lap_shift) + 1)
			break;
		p->stats.bytes += len < room ? len : room;
		if (s->flags & (RGATE_SLOT_PAD | RGATE_SLOT_CONT))
			p->no_frames++;
	}
	for (pos = p->head; pos < end; pos++) {
		struct rgate_slot *s = rgate_producer_slot(p, pos);

		if (__atomic_load_n(&s->seq, __ATOMIC_RELAXED) == (pos >> p->lap_shift) + 1)
			__atomic_store_n(&s->seq, RGATE_SEQ_BUSY, __ATOMIC_RELEASE);
	}
	pos = p->head - from;
	rgate_producer_flush(p);
	return pos;
}

void rgate_producer_pin(struct rgate_producer *p)
{
	p->pinned = 1;
}

void rgate_producer_unpin(struct rgate_producer *p)
{
	p->pinned = 0;
}

void rgate_producer_set_kick(struct rgate_producer *p, int fd)
{
	pthread_mutex_lock(&p->core->lock);
	p->core->kick_fd = fd;
	pthread_mutex_unlock(&p->core->lock);
}

static void count(uint64_t *local, uint64_t *shared)
{
	__atomic_store_n(shared, ++*local, __ATOMIC_RELAXED);
}

void rgate_producer_drop(struct rgate_producer *p)
{
	p->gap++;
	if (p->policy == RGATE_POLICY_PASS)
		count((uint64_t *)&p->stats.passed,
		      (uint64_t *)&p->prod->stats.passed);
	else
		count((uint64_t *)&p->stats.dropped_full,
		      (uint64_t *)&p->prod->stats.dropped_full);
}

void rgate_producer_spilled(struct rgate_producer *p)
{
	p->gap++;
	count((uint64_t *)&p->stats.spilled, (uint64_t *)&p->prod->stats.spilled);
}

/* What rgate_producer_publish() does without counting */
static void publish_slot(struct rgate_producer *p)
{
	__atomic_store_n(&((struct rgate_slot *)p->cur)->seq, p->lap, __ATOMIC_RELEASE);
	p->cur += (size_t)1 << p->size_shift;
	p->head++;
}

void rgate_producer_publish_filler(struct rgate_producer *p)
{
	struct rgate_slot *s = rgate_producer_slot(p, p->head);

	rgate_producer_fill(p, s, 0, 0);
	s->flags = RGATE_SLOT_PAD;
	s->gap = 0;
	publish_slot(p);
	p->no_frames++;
	p->stats.padded++;
}

/* Filler up to the end of the batch in hand */
static void pad(struct rgate_producer *p)
{
	while (p->head != p->limit) {
		rgate_producer_reserve(p);
		rgate_producer_publish_filler(p);
	}
}

struct rgate_slot *rgate_producer_reserve_chain(struct rgate_producer *p,
						unsigned int n)
{
	unsigned int i;

	if (!n || n > RGATE_CHAIN_MAX || (n > 1 && !p->chain))
		return NULL;
	if (p->head == p->limit && !rgate_producer_refill(p))
		return NULL;
	if (p->limit - p->head < n) {
		pad(p);
		if (!rgate_producer_refill(p))
			return NULL;
	}
	if (p->policy == RGATE_POLICY_OVERWRITE) {
		for (i = 0; i < n; i++)
			__atomic_store_n(&rgate_producer_slot(p, p->head + i)->seq,
					 RGATE_SEQ_BUSY, __ATOMIC_RELAXED);
		/* as in rgate_producer_reserve() */
		__atomic_thread_fence(__ATOMIC_RELEASE);
	}
	return rgate_producer_slot(p, p->head);
}

void rgate_producer_publish_chain(struct rgate_producer *p, unsigned int n)
{
	unsigned int i;

	p->no_frames += n - 1;
	if (n > 1)
		p->stats.chained++;
	if (rgate_producer_slot(p, p->head)->flags & RGATE_SLOT_TRUNC)
		p->stats.truncated++;
	for (i = 0; i < n; i++) {
		p->stats.bytes += rgate_producer_slot(p, p->head)->len;
		publish_slot(p);
	}
	p->gap = 0;
}

#define HDR_FLAGS (RGATE_SLOT_VLAN | RGATE_SLOT_HASH | RGATE_SLOT_CSUM_OK | \
		   RGATE_SLOT_CSUM_PARTIAL | RGATE_SLOT_GRO | RGATE_SLOT_QUEUE)

void rgate_producer_describe(struct rgate_slot *s, const struct rgate_slot *hdr)
{
	s->flags |= hdr->flags & HDR_FLAGS;
	s->ifindex = hdr->ifindex;
	s->hash = hdr->hash;
	s->queue = hdr->queue;
	s->vlan_tci = hdr->vlan_tci;
	s->vlan_proto = hdr->vlan_proto;
	s->protocol = hdr->protocol;
	s->dev_type = hdr->dev_type;
	s->l3_off = hdr->l3_off;
	s->l4_off = hdr->l4_off;
	s->payload_off = hdr->payload_off;
	s->ip_proto = hdr->ip_proto;
	s->pkt_type = hdr->pkt_type;
}

/* NOLINTNEXTLINE(misc-no-recursion): once for every resize that came between */
int rgate_producer_write(struct rgate_producer *p, const struct rgate_slot *hdr,
			 const void *data, size_t len, size_t wire_len)
{
	size_t room = rgate_producer_room(p), most, at = 0;
	unsigned int i, n;

	most = p->chain ? room * RGATE_CHAIN_MAX : room;
	if (len > most)
		len = most;
	n = len > room ? (unsigned int)((len + room - 1) / room) : 1;
	if (!(n > 1 ? rgate_producer_reserve_chain(p, n) : rgate_producer_reserve(p)))
		return -ENOBUFS;
	/* a resize may have changed the room of a slot on the way */
	if (rgate_producer_room(p) != room)
		return rgate_producer_write(p, hdr, data, len, wire_len);
	for (i = 0; i < n; i++) {
		struct rgate_slot *s = rgate_producer_slot(p, p->head + i);
		size_t part = len - at < room ? len - at : room;

		memcpy(rgate_producer_data(s), (const unsigned char *)data + at, part);
		rgate_producer_fill_part(p, s, i, n, (uint32_t)part, (uint32_t)len,
					 (uint32_t)wire_len);
		if (hdr)
			rgate_producer_describe(s, hdr);
		at += part;
	}
	rgate_producer_publish_chain(p, n);
	return 0;
}
