// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * The userspace source: no module, no privilege. A thread of the library receives
 * datagrams on a UDP port into a ring in memory; this program takes them out.
 *
 *	udp_source 9000 &
 *	echo hello >/dev/udp/127.0.0.1/9000
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <ringgate/ringgate.h>
#include <stdio.h>
#include <stdlib.h>

static void print(const struct rgate_slot *s)
{
	const char *frame = rgate_slot_data(s);

	/* an IP and a UDP header come first, as in a capture file */
	printf("%.*s", (int)(s->len - s->payload_off), frame + s->payload_off);
	fflush(stdout);
}

int main(int argc, char **argv)
{
	struct sockaddr_in at = { .sin_family = AF_INET };
	const struct rgate_slot *s;
	struct rgate_consumer c;
	struct rgate_source *src;
	struct rgate_ring *ring;
	int port, err;

	port = argc == 2 ? atoi(argv[1]) : 0;
	if (port < 1 || port > 65535) {
		fprintf(stderr, "usage: udp_source PORT\n");
		return 2;
	}
	at.sin_port = htons((uint16_t)port);
	err = rgate_ring_open_memfd(&ring, NULL);
	if (err)
		goto fail;
	err = rgate_source_start_udp(&src, &ring, 1, (struct sockaddr *)&at, sizeof(at),
				     NULL);
	if (err)
		goto fail_ring;
	err = rgate_consumer_init(&c, ring, NULL);
	while (err >= 0) {
		while ((s = rgate_consumer_next(&c))) {
			print(s);
			rgate_consumer_release(&c);
		}
		err = rgate_consumer_wait(&c, -1);
	}
	rgate_source_stop(src);
fail_ring:
	rgate_ring_close(ring);
fail:
	fprintf(stderr, "udp_source: %s\n", rgate_strerror("rgate_source_start_udp", err));
	return 1;
}
