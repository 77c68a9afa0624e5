// SPDX-License-Identifier: MIT OR GPL-2.0
/* The lines of guide.rst that register a ring's slots (BLOCK_1), as they stand there */
#include <ringgate/ringgate.h>
#include <stdio.h>

int main(void)
{
	struct rgate_ring_opts ring_opts = RGATE_OPTS(rgate_ring_opts, .slots = 256,
						      .flags = RGATE_RING_RW_SLOTS);
	struct rgate_mem_opts opts = RGATE_OPTS(rgate_mem_opts, .access = RGATE_ACCESS_REMOTE);
	struct rgate_device *device;
	struct rgate_ring *ring;
	struct rgate_view view;
	struct rgate_mem *mem;
	int err;

	err = rgate_ring_open(&ring, &ring_opts);
	if (!err)
		err = rgate_device_open(&device, NULL);
	if (err)
		goto out;
#include BLOCK_1
out:
	if (err)
		fprintf(stderr, "%s\n", rgate_strerror("rgate_mem_", err));
	else
		printf("registered %u slots\n", view.nslots);
	return !!err;
}
