// SPDX-License-Identifier: MIT OR GPL-2.0
/* The module's ring: frames are taken off the stack (action steal). */
#include "rx.h"

#include <stdlib.h>

#include <ringgate/ringgate.h>

#include "bench.h"

struct ring_rx {
	struct rgate_ring *ring;
	struct rgate_consumer c;
};

static void *ring_open(const char *ifname)
{
	struct rgate_ring_opts o = RGATE_OPTS(rgate_ring_opts,
					      .slots = RX_SLOTS,
					      .slot_size = RX_BUF,
					      .name = "bench");
	struct rgate_attach_opts ao = RGATE_OPTS(rgate_attach_opts,
						 .action = RGATE_ACTION_STEAL);
	struct ring_rx *r = calloc(1, sizeof(*r));
	int err;

	if (!r)
		bench_die(-1, "ring");
	err = rgate_ring_open(&r->ring, &o);
	if (err)
		bench_die(0, "rgate_ring_open: %s", rgate_strerror(err));
	err = rgate_consumer_init(&r->c, r->ring, NULL);
	if (!err)
		err = rgate_ring_attach(r->ring, ifname, &ao, NULL);
	if (err)
		bench_die(0, "rgate_ring_attach: %s", rgate_strerror(err));
	return r;
}

static unsigned int ring_drain(void *ctx, struct rx_seen *seen)
{
	const struct rgate_slot *v[RGATE_BATCH];
	struct ring_rx *r = ctx;
	unsigned int i, n, all = 0;

	while ((n = rgate_consumer_peek(&r->c, v, RGATE_BATCH))) {
		for (i = 0; i < n; i++)
			rx_look(seen, (const unsigned char *)
				rgate_slot_data(v[i]) + RX_PAYLOAD);
		rgate_consumer_release_n(&r->c, n);
		all += n;
	}
	return all;
}

static void ring_close(void *ctx)
{
	struct ring_rx *r = ctx;

	rgate_ring_close(r->ring);
	free(r);
}

const struct rx_ops rx_ring = {
	.name = "ring",
	.open = ring_open,
	.drain = ring_drain,
	.close = ring_close,
};
