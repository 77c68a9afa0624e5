// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * The program of net.rst as it stands there (BLOCK_1), until it has seen as many frames as
 * its argument says; prints how each payload begins, and at the end how it ended.
 */
#include <ringgate/ringgate.h>
#include <stdio.h>
#include <stdlib.h>

static long frames;

static void use(const void *data, uint32_t len)
{
	const unsigned char *at = data;
	const int off = (at[0] & 15) * 4 + 8;	/* IP and UDP headers */

	printf("%.*s\n", (int)len - off, (const char *)at + off);
	fflush(stdout);
	if (!--frames)
		exit(0);
}

int main(int argc, char **argv)
{
	const struct rgate_slot *s;
	struct rgate_consumer c;
	struct rgate_ring *ring;
	int err;

	frames = argc > 1 ? atol(argv[1]) : 0;
#include BLOCK_1
	printf("%s\n", rgate_strerror("rgate_gateway_", err));
	return 1;
}
