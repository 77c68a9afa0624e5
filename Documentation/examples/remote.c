/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * Prints what the cluster's gateway sends to this node, and how long each frame took from
 * the gateway's ring to here: remote [SLOT_SIZE]. ringgated has to run on this node; the
 * slots have to be as large as those of the gateway's ring.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <ringgate/ringgate.h>

/* ns from the gateway's time stamp to now; 0: its clock is not known yet */
static int64_t one_way(const struct rgate_ring *ring, const struct rgate_slot *s)
{
	struct timespec now;
	uint64_t error;
	int64_t offset;

	if (rgate_ring_tstamp_offset(ring, &offset, &error))
		return 0;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000000000LL + now.tv_nsec + offset - (int64_t)s->tstamp;
}

int main(int argc, char **argv)
{
	struct rgate_ring_opts opts = RGATE_OPTS(rgate_ring_opts, .name = "example");
	struct rgate_consumer c;
	struct rgate_ring *ring;
	int err;

	if (argc > 1)
		opts.slot_size = (uint32_t)strtoul(argv[1], NULL, 0);
	err = rgate_ring_open_remote(&ring, &opts);
	if (!err)
		err = rgate_consumer_init(&c, ring, NULL);
	while (!err || err == 1) {
		const struct rgate_slot *s;

		while ((s = rgate_consumer_next(&c))) {
			printf("%u bytes, ethertype %04x, %" PRId64 " us\n", s->wire_len, s->protocol,
			       one_way(ring, s) / 1000);
			rgate_consumer_release(&c);
		}
		err = rgate_consumer_wait(&c, 1000);
	}
	fprintf(stderr, "%s\n", rgate_strerror("rgate_ring_open_remote", err));
	return 1;
}
