/* SPDX-License-Identifier: MIT OR GPL-2.0 */
#ifndef RGATE_NET_INLET_H
#define RGATE_NET_INLET_H

#include <pthread.h>

#include <ringgate/rgate_inlet.h>
#include <ringgate/rgate_producer.h>

#include "net_wire.h"

#define INLET_SAMPLES	16	/* pings that the clock's offset is taken from */
#define INLET_DEVICES	64	/* of the gateway, whose names are kept */

struct inlet_ring {
	uint32_t number;
	char name[RGATE_NAME_LEN];	/* while it is made; NULs: any */
	bool making;			/* by rgate_inlet_add(), without the lock; no ring yet */
	struct rgate_ring *ring;	/* NULL: none */
	struct rgate_producer p;
	struct rgate_share *share;
	bool bell;			/* the share has one, which wakes the ring's consumers */
	const struct rgate_buf *mail;
	const struct rgate_buf *inbox;	/* packed, see net_wire.h; NULL: not */
	uint32_t inbox_size;
	uint64_t read;			/* of the inbox, position */
	uint64_t read_told;
	struct rgate_stats base;	/* counters when this session began */
	bool offered;			/* to this gateway, on this connection */
	bool taken;
	bool closing;
	bool left;			/* the gateway has nothing to do with it any more */
	int error;
	uint32_t least_size;		/* bytes of a slot that the gateway wants; 0: not told */
	struct rgate_remote credit;	/* of the gateway, while taken */
	uint32_t epoch;			/* and the connection it was lent over */
	uint64_t told;			/* position told as free */
	bool asked;			/* the gateway waits for more */
	bool late;			/* what is worth telling could not be told */
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

struct inlet_device {
	uint32_t ifindex;		/* 0: none */
	uint64_t asked_ns;
	bool known;
	char name[RGATE_DEVICE_NAME];	/* empty: there is none */
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
	struct inlet_device devices[INLET_DEVICES];
	unsigned int next_device;
	uint64_t asked_ns;
	const struct rgate_buf *words;	/* credits on their way, two for each ring */
};

/* inlet_ring.c. These two register memory, which takes long for much of it: without the
 * inlet's lock, which the hub's thread needs, on a ring that is in no list */
int inlet_ring_make(struct rgate_inlet *in, struct inlet_ring *r,
		    const struct rgate_ring_opts *opts);
void inlet_ring_free(struct rgate_inlet *in, struct inlet_ring *r);
/* With the lock */
void inlet_ring_offer(struct rgate_inlet *in, struct inlet_ring *r);
void inlet_ring_taken(struct rgate_inlet *in, struct inlet_ring *r, const struct net_taken *t);
void inlet_ring_notice(struct rgate_inlet *in, struct inlet_ring *r, bool ask);
/* Tells what came free, where that was asked for or is late. In how many ns again; -1: no need */
int64_t inlet_ring_tick(struct rgate_inlet *in, struct inlet_ring *r);

/* The mail's counters are those of this session, which are added to what there was */
void inlet_ring_mail(const struct inlet_ring *r, const struct net_mail *mail, uint64_t *head,
		     struct rgate_stats *stats);

/* inlet_pack.c, with the lock. An inbox of @size bytes, which the gateway is told of */
void inlet_pack_begin(struct rgate_inlet *in, struct inlet_ring *r, uint32_t size);
void inlet_pack_end(struct rgate_inlet *in, struct inlet_ring *r);
/* A notice came: lays into the ring what it stands for. -EPROTO: that made no sense, and what
 * comes after it cannot be told */
int inlet_pack_take(struct inlet_ring *r);

/* inlet_clock.c */
void inlet_clock_start(struct rgate_inlet *in);
int64_t inlet_clock_tick(struct rgate_inlet *in);
void inlet_clock_pong(struct rgate_inlet *in, const struct net_ping *pong);

/* inlet_device.c, with the lock */
void inlet_devices_forget(struct rgate_inlet *in);
void inlet_device_named(struct rgate_inlet *in, const struct net_name *msg);

/* A message to the gateway; tells the log when it fails */
int inlet_send(struct rgate_inlet *in, const void *msg, size_t len);

#endif
