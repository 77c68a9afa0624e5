// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * How far the gateway's clock is from ours, as NTP reckons it (RFC 5905, 8): half the
 * round trip bounds the error, so of the last pings the shortest counts.
 */
#include <endian.h>
#include <string.h>

#include "clock.h"
#include "inlet.h"
#include "ring.h"

#define QUICK		8		/* pings at first, in quick succession */
#define QUICK_NS	10000000ULL
#define SLOW_NS		1000000000ULL

void inlet_clock_start(struct rgate_inlet *in)
{
	unsigned int i;

	for (i = 0; i < RGATE_CLOCK_COUNT; i++)
		in->clocks[i] = (struct inlet_clock){ .used = in->clocks[i].used };
}

static void ping(struct rgate_inlet *in, uint32_t clock)
{
	struct net_ping p = {
		.hdr = { .service = RGATE_SERVICE_NET, .type = NET_PING,
			 .value = htole32(clock) },
	};

	p.sent = htole64(rgate_clock_now(rgate_clock_id(clock)));
	(void)inlet_send(in, &p, sizeof(p));
}

int64_t inlet_clock_tick(struct rgate_inlet *in)
{
	const uint64_t now = rgate_clock_now(CLOCK_MONOTONIC);
	int64_t least = -1;
	uint32_t i;

	for (i = 0; i < RGATE_CLOCK_COUNT; i++) {
		struct inlet_clock *c = &in->clocks[i];

		if (!c->used)
			continue;
		if (now >= c->due_ns) {
			ping(in, i);
			c->due_ns = now + (++c->pings < QUICK ? QUICK_NS : SLOW_NS);
		}
		if (least < 0 || (int64_t)(c->due_ns - now) < least)
			least = (int64_t)(c->due_ns - now);
	}
	return least;
}

static void publish(struct rgate_inlet *in, uint32_t clock, const struct inlet_sample *best)
{
	unsigned int i;

	for (i = 0; i < NET_RINGS_MAX; i++) {
		struct inlet_ring *r = &in->rings[i];

		if (!r->ring || r->ring->clock != clock)
			continue;
		__atomic_store_n(&r->p.prod->tstamp_offset, best->offset, __ATOMIC_RELAXED);
		/* release: pairs with rgate_ring_tstamp_offset() */
		__atomic_store_n(&r->p.prod->tstamp_error, best->rtt / 2 + 1, __ATOMIC_RELEASE);
	}
}

void inlet_clock_pong(struct rgate_inlet *in, const struct net_ping *pong)
{
	const uint32_t clock = le32toh(pong->hdr.value);
	const struct inlet_sample *best;
	uint64_t sent, seen, answered, now;
	struct inlet_clock *c;
	unsigned int i;

	if (clock >= RGATE_CLOCK_COUNT || !in->clocks[clock].used)
		return;
	c = &in->clocks[clock];
	now = rgate_clock_now(rgate_clock_id(clock));
	sent = le64toh(pong->sent);
	seen = le64toh(pong->seen);
	answered = le64toh(pong->answered);
	if (sent > now || answered < seen || answered - seen > now - sent)
		return;
	c->sample[c->n++ % INLET_SAMPLES] = (struct inlet_sample){
		.offset = ((int64_t)(seen - sent) + (int64_t)(answered - now)) / 2,
		.rtt = (now - sent) - (answered - seen),
	};
	best = &c->sample[0];
	for (i = 1; i < INLET_SAMPLES && i < c->n; i++)
		if (c->sample[i].rtt < best->rtt)
			best = &c->sample[i];
	publish(in, clock, best);
}
