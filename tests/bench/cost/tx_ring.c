// SPDX-License-Identifier: MIT OR GPL-2.0
/* The module's transmit ring. */
#include "tx.h"

#include <ringgate/ringgate.h>

#include "bench.h"
#include "rx.h"
#include "tx_frame.h"

static struct rgate_ring *ring;
static struct rgate_sender sender;

/* Each slot has its frame from here on. */
static void ring_setup(const struct tx_flow *f)
{
	struct rgate_ring_opts o = RGATE_OPTS(rgate_ring_opts,
		.slots = RX_SLOTS, .slot_size = RX_BUF, .name = "bench-send",
		.flags = RGATE_RING_TRANSMIT | RGATE_RING_RW_SLOTS);
	struct rgate_attach_opts ao = RGATE_OPTS(rgate_attach_opts,
						 .kind = RGATE_KIND_TRANSMIT);
	int err = rgate_ring_open(&ring, &o);
	unsigned int i;

	if (!err)
		err = rgate_ring_attach(ring, f->dev, &ao, NULL);
	if (!err)
		err = rgate_sender_init(&sender, ring);
	if (err)
		bench_die(0, "transmit ring: %s", rgate_strerror("rgate_ring_", err));
	for (i = 0; i < RX_SLOTS; i++)
		tx_frame_build(rgate_ring_slots_rw(ring) + (size_t)i * RX_BUF + RGATE_SLOT_HDR, f);
}

static void kick(unsigned int n)
{
	int taken = rgate_sender_kick(&sender, 0);

	if (taken != (int)n)
		bench_die(0, "transmit ring: %d of %u frames taken", taken, n);
}

static uint64_t ring_run(const struct tx_flow *f)
{
	uint64_t t = bench_now_ns();
	uint32_t i, k, n, number = 1;

	for (i = 0; i < f->count; i += n) {
		n = f->count - i < TX_BATCH ? f->count - i : TX_BATCH;
		for (k = 0; k < n; k++) {
			struct rgate_tx_slot *slot = rgate_sender_reserve(&sender);

			if (!slot)
				bench_die(0, "transmit ring: full");
			tx_frame_number(rgate_sender_data(slot), number++);
			rgate_sender_publish(&sender, slot, f->len, 0);
		}
		kick(n);
	}
	return bench_now_ns() - t;
}

const struct tx_ops tx_ring = {
	.name = "ring",
	.setup = ring_setup,
	.run = ring_run,
};
