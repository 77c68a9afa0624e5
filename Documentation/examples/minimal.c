/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/* Prints what arrives at a device: minimal eth0 "udp port 53" */
#include <ringgate/ringgate.h>
#include <stdio.h>

int main(int argc, char **argv)
{
	struct rgate_attach_opts opts = RGATE_OPTS(rgate_attach_opts,
						   .action = RGATE_ACTION_MIRROR);
	const struct rgate_slot *s;
	struct rgate_consumer c;
	struct rgate_ring *ring;
	int err;

	if (argc < 2)
		return 2;
	opts.filter = argc > 2 ? argv[2] : NULL;
	err = rgate_ring_open(&ring, NULL);
	if (!err)
		err = rgate_ring_attach(ring, argv[1], &opts, NULL);
	if (!err)
		err = rgate_consumer_init(&c, ring, NULL);
	while (!err || err == 1) {
		while ((s = rgate_consumer_next(&c))) {	/* no system call */
			printf("%u bytes, ethertype %04x\n", s->wire_len, s->protocol);
			rgate_consumer_release(&c);
		}
		err = rgate_consumer_wait(&c, 1000);
	}
	fprintf(stderr, "%s\n", rgate_strerror("rgate_ring_", err));
	return 1;
}
