// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * Sending frames through a ring.
 *
 *	send eth0 COUNT [PERCENT]
 *
 * The pattern: fill slots while there are some, flush when there are none or nothing more
 * is at hand. With PERCENT a thread of the kernel's looks for frames, and takes at most so
 * much of a CPU; then flushing is a system call only if that thread sleeps.
 */
#include <errno.h>
#include <ringgate/ringgate.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* To all, of a type for local experiments; returns its length */
static uint32_t build(char *frame, unsigned long number)
{
	memset(frame, 0xff, 6);
	memcpy(frame + 6, "\x02\0\0\0\0\1\x88\xb5", 8);
	return 14 + (uint32_t)snprintf(frame + 14, 50, "frame %lu", number) + 1;
}

/* Until the module has taken a frame, or all of them if a thread does; 0 or an error */
static int flush(const struct rgate_sender *s)
{
	int n = rgate_sender_flush(s);

	if (n == -EAGAIN)	/* as many are under way as may be */
		n = rgate_sender_wait(s, 1000);
	return n < 0 ? n : 0;
}

static int send_all(struct rgate_ring *ring, unsigned long count)
{
	struct rgate_tx_slot *slot;
	struct rgate_stats st;
	struct rgate_sender s;
	unsigned long i = 0;
	int err;

	err = rgate_sender_init(&s, ring);
	while (!err && i < count) {
		slot = rgate_sender_reserve(&s);
		if (slot)
			rgate_sender_publish(&s, slot, build(rgate_sender_data(slot), i++), 0);
		else
			err = flush(&s);
	}
	/* What became of them is told in the ring, without a system call. */
	do {
		if (!err)
			err = flush(&s);
		rgate_ring_stats(ring, &st);
	} while (!err && st.delivered + st.dropped_full + st.dropped_fault < count);
	printf("%llu frames sent\n", (unsigned long long)st.delivered);
	return err;
}

int main(int argc, char **argv)
{
	struct rgate_ring_opts ring_opts = RGATE_OPTS(rgate_ring_opts,
		.slots = 512, .flags = RGATE_RING_TRANSMIT | RGATE_RING_RW_SLOTS);
	struct rgate_attach_opts opts = RGATE_OPTS(rgate_attach_opts,
						   .kind = RGATE_KIND_TRANSMIT);
	struct rgate_ring *ring;
	int err;

	if (argc < 3) {
		fprintf(stderr, "usage: send DEVICE COUNT [PERCENT]\n");
		return 2;
	}
	if (argc > 3)
		opts.thread = (uint32_t)strtoul(argv[3], NULL, 10);
	err = rgate_ring_open(&ring, &ring_opts);
	if (!err) {
		err = rgate_ring_attach(ring, argv[1], &opts, NULL);
		if (!err)
			err = send_all(ring, strtoul(argv[2], NULL, 10));
		rgate_ring_close(ring);
	}
	if (err)
		fprintf(stderr, "send: %s\n", rgate_strerror("rgate_ring_", err));
	return err ? 1 : 0;
}
