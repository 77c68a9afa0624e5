/* SPDX-License-Identifier: MIT OR GPL-2.0 */
#ifndef RGATE_NET_INLET_H
#define RGATE_NET_INLET_H

#include <pthread.h>

#include <ringgate/rgate_inlet.h>
#include <ringgate/rgate_producer.h>

#include "wire.h"

#define INLET_SAMPLES	16	/* pings that the clock's offset is taken from */

struct inlet_ring {
	uint32_t number;
	struct rgate_ring *ring;	/* NULL: none */
	struct rgate_producer p;
	struct rgate_share *share;
	const struct rgate_buf *mail;
	struct rgate_stats base;	/* counters when this session began */
	bool offered;			/* to this gateway, on this connection */
	bool taken;
	bool closing;
	int error;
	struct rgate_remote credit;	/* of the gateway, while taken */
	uint32_t epoch;			/* and the connection it was lent over */
	uint64_t told;			/* position told as free */
	bool asked;			/* the gateway waits for more */
	int64_t nap_ns;			/* until it is looked for some again */
	uint64_t sessions, found, errors, credits;
};

struct inlet_sample {
	int64_t offset;
	uint64_t rtt;
};

/* How far the gateway's clock is from ours; one for each enum rgate_clock that is used */
struct inlet_clock {
	bool used;
	unsigned int pings;
	uint64_t due_ns;
	unsigned int n;
	struct inlet_sample sample[INLET_SAMPLES];
};

struct rgate_inlet {
	struct rgate_hub *hub;
	struct rgate_node *node;
	uint32_t gateway;
	struct rgate_peer *peer;

	pthread_mutex_t lock;
	pthread_cond_t left;
	bool up;
	uint64_t instance;		/* of the gateway; 0: it said nothing yet */
	struct inlet_ring rings[NET_RINGS_MAX];
	struct inlet_clock clocks[RGATE_CLOCK_COUNT];
	const struct rgate_buf *words;	/* credits on their way, one for each ring */
};

/* inlet_ring.c, with the inlet's lock. */
int inlet_ring_make(struct rgate_inlet *in, struct inlet_ring *r,
		    const struct rgate_ring_opts *opts);
void inlet_ring_free(struct rgate_inlet *in, struct inlet_ring *r);
void inlet_ring_offer(struct rgate_inlet *in, struct inlet_ring *r);
void inlet_ring_taken(struct rgate_inlet *in, struct inlet_ring *r, const struct net_taken *t);
void inlet_ring_notice(struct rgate_inlet *in, struct inlet_ring *r, bool ask);
/* Tells what came free, where that was asked for. In how many ns again; -1: no need */
int64_t inlet_ring_tick(struct rgate_inlet *in, struct inlet_ring *r);

/* inlet_clock.c */
void inlet_clock_start(struct rgate_inlet *in);
int64_t inlet_clock_tick(struct rgate_inlet *in);
void inlet_clock_pong(struct rgate_inlet *in, const struct net_ping *pong);

/* A message to the gateway; tells the log when it fails */
int inlet_send(struct rgate_inlet *in, const void *msg, size_t len);

#endif
