/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/* An XDP program of one's own: xdp_filter xdp_filter.bpf.o eth0 4711 */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <net/if.h>
#include <ringgate/ringgate.h>
#include <stdio.h>
#include <stdlib.h>

#include "xdp_filter.h"

/* Loads the program, tells it whom to serve, and puts it on the device. */
static int load(const char *object, const char *ifname, const struct xdp_filter *config)
{
	struct bpf_object *obj = bpf_object__open_file(object, NULL);
	struct bpf_program *prog;
	struct bpf_map *map;
	uint32_t zero = 0;

	if (!obj)
		return -errno;
	if (bpf_object__load(obj))
		return -errno;
	prog = bpf_object__find_program_by_name(obj, "xdp_filter");
	map = bpf_object__find_map_by_name(obj, "config");
	if (!prog || !map)
		return -ENOENT;
	if (bpf_map__update_elem(map, &zero, sizeof(zero), config, sizeof(*config), BPF_ANY))
		return -errno;
	/* The link, and with it the program, goes with this process. */
	return bpf_program__attach_xdp(prog, (int)if_nametoindex(ifname)) ? 0 : -errno;
}

int main(int argc, char **argv)
{
	struct rgate_attach_opts opts = RGATE_OPTS(rgate_attach_opts,
						   .kind = RGATE_KIND_XDP,
						   .action = RGATE_ACTION_STEAL);
	struct xdp_filter config = { 0 };
	const struct rgate_slot *s;
	struct rgate_consumer c;
	struct rgate_ident att;
	struct rgate_ring *ring;
	int err;

	if (argc != 4)
		return 2;
	config.port = (uint32_t)atoi(argv[3]);
	err = rgate_ring_open(&ring, NULL);
	if (!err)
		err = rgate_ring_attach(ring, argv[2], &opts, &att);
	if (!err) {
		config.attachment = att.id;
		config.cookie = att.cookie;
		err = load(argv[1], argv[2], &config);
	}
	if (!err)
		err = rgate_consumer_init(&c, ring, NULL);
	while (!err || err == 1) {
		while ((s = rgate_consumer_next(&c))) {
			printf("%u bytes, ip protocol %u\n", s->wire_len, s->ip_proto);
			fflush(stdout);
			rgate_consumer_release(&c);
		}
		err = rgate_consumer_wait(&c, 1000);
	}
	fprintf(stderr, "%s\n", rgate_strerror("rgate_ring_", err));
	return 1;
}
