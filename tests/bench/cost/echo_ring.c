// SPDX-License-Identifier: MIT OR GPL-2.0
/* From a ring of the module into its transmit ring: frames are copied once between them. */
#include "rx.h"

#include <stdlib.h>

#include <ringgate/ringgate.h>

#include "bench.h"
#include "echo.h"
#include "tx.h"

struct echo_ring {
	struct rgate_ring *in, *out;
	struct rgate_consumer c;
	struct rgate_sender s;
	unsigned int pending;
};

static struct rgate_ring *open_one(const char *ifname, uint32_t flags, uint32_t kind,
				   uint32_t action)
{
	struct rgate_ring_opts o = RGATE_OPTS(rgate_ring_opts,
		.slots = RX_SLOTS, .slot_size = RX_BUF, .name = "bench", .flags = flags);
	struct rgate_attach_opts ao = RGATE_OPTS(rgate_attach_opts,
						 .action = action, .kind = kind);
	struct rgate_ring *ring;
	int err = rgate_ring_open(&ring, &o);

	if (!err)
		err = rgate_ring_attach(ring, ifname, &ao, NULL);
	if (err)
		bench_die(0, "ring on %s: %s", ifname, rgate_strerror("rgate_ring_", err));
	return ring;
}

static void *echo_open(const char *ifname)
{
	struct echo_ring *e = calloc(1, sizeof(*e));
	int err;

	if (!e)
		bench_die(-1, "echo");
	e->in = open_one(ifname, 0, RGATE_KIND_HOOK, RGATE_ACTION_STEAL);
	e->out = open_one(ifname, RGATE_RING_TRANSMIT | RGATE_RING_RW_SLOTS, RGATE_KIND_TRANSMIT,
			  0);
	err = rgate_consumer_init(&e->c, e->in, NULL);
	if (!err)
		err = rgate_sender_init(&e->s, e->out);
	if (err)
		bench_die(0, "echo: %s", rgate_strerror("rgate_ring_", err));
	return e;
}

static void send_back(struct echo_ring *e)
{
	int taken = rgate_sender_kick(&e->s, 0);

	if (taken != (int)e->pending)
		bench_die(0, "echo: %d of %u frames taken", taken, e->pending);
	e->pending = 0;
}

static void one(struct echo_ring *e, const struct rgate_slot *from, struct rx_seen *seen)
{
	struct rgate_tx_slot *to = rgate_sender_reserve(&e->s);
	unsigned char *frame;

	if (!to)
		bench_die(0, "echo: the transmit ring is full");
	frame = rgate_sender_data(to);
	memcpy(frame, rgate_slot_data(from), from->len);
	echo_turn(frame);
	rx_look(seen, frame + RX_PAYLOAD);
	rgate_sender_publish(&e->s, to, from->len, 0);
	if (++e->pending == TX_BATCH)
		send_back(e);
}

static unsigned int echo_drain(void *ctx, struct rx_seen *seen)
{
	const struct rgate_slot *v[RGATE_BATCH];
	struct echo_ring *e = ctx;
	unsigned int i, n, all = 0;

	while ((n = rgate_consumer_peek(&e->c, v, RGATE_BATCH))) {
		for (i = 0; i < n; i++)
			one(e, v[i], seen);
		rgate_consumer_release_n(&e->c, n);
		all += n;
	}
	if (e->pending)
		send_back(e);
	return all;
}

static void echo_close(void *ctx)
{
	struct echo_ring *e = ctx;

	rgate_ring_close(e->in);
	rgate_ring_close(e->out);
	free(e);
}

const struct rx_ops rx_echo_ring = {
	.name = "echo_ring",
	.open = echo_open,
	.drain = echo_drain,
	.close = echo_close,
};
