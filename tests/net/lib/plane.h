/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/* A gateway and compute nodes, all of this process, over whichever provider. */
#ifndef PLANE_H
#define PLANE_H

#include "nodes.h"

#include <ringgate/rgate_consumer.h>
#include <ringgate/rgate_gateway.h>
#include <ringgate/rgate_inlet.h>
#include <ringgate/rgate_producer.h>

struct compute {
	struct rgate_node *node;
	struct rgate_hub *hub;
	struct rgate_inlet *inlet;
	struct rgate_ring *ring;	/* NULL: none is open */
	uint32_t number;
	struct rgate_consumer c;
};

struct plane {
	struct cluster c;
	struct rgate_node *node;
	struct rgate_hub *hub;
	struct rgate_gateway *gw;
	struct rgate_ring *source;
	struct rgate_producer p;
	unsigned int n;			/* compute nodes: ids 1 to n */
	struct compute at[RGATE_NODES_MAX];
};

struct plane_opts {
	unsigned int computes;
	uint32_t slots, slot_size;	/* of the source; 0: 1024 x 2048 */
	uint32_t far_slots, far_size;	/* of the computes' rings; 0: as the source */
	uint32_t timeout_ms;
	struct rgate_gateway_opts gw;
};

/* Everything up, one ring a compute node that the gateway fills already */
void plane_up(struct plane *p, const struct plane_opts *opts);
void plane_down(struct plane *p);

void compute_up(struct plane *p, unsigned int id);	/* node, hub, inlet */
void compute_ring(struct plane *p, unsigned int id, uint32_t slots, uint32_t slot_size);
void compute_close_ring(struct plane *p, unsigned int id);
void compute_down(struct plane *p, unsigned int id);
void gateway_up(struct plane *p, const struct rgate_gateway_opts *opts); /* no source */
void gateway_down(struct plane *p);

/* RGATE_PLANE_PACKED is set: gateways pack, else they never do, whatever an operation costs */
bool plane_packed(void);

/* How many rings the gateway fills */
unsigned int plane_rings(struct plane *p);
void plane_rules(struct plane *p, const char *text);

/*
 * An IPv4 UDP frame: flow @flow (source port 1000 + flow, or swapped), number @i of it,
 * @len bytes (70 or more) of which those after the headers are of the number.
 */
size_t plane_frame(unsigned char *buf, unsigned int flow, uint64_t i, size_t len, bool back);
/* Sends it; waits for room in the source ring, if @patient. False: none was there */
bool plane_send(struct plane *p, unsigned int flow, uint64_t i, size_t len, bool patient);
/* Takes one frame; false: none within @ms. Asserts that its contents are right. */
bool plane_take(struct compute *at, unsigned int *flow, uint64_t *i, struct rgate_slot *hdr,
		int ms);
/* Takes all that comes until there was nothing for @ms; how many */
uint64_t plane_drain(struct compute *at, int ms);

struct rgate_gateway_stats plane_stats(struct plane *p);
struct rgate_gateway_node plane_node(struct plane *p, unsigned int id);
struct rgate_inlet_ring plane_inlet(struct compute *at);

#endif
