// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * The module's ring: frames are taken off the stack (action steal) by the receive hook,
 * or by an XDP program in the driver.
 */
#include "rx.h"

#include <bpf/bpf.h>
#include <linux/if_link.h>
#include <net/if.h>
#include <stdlib.h>
#include <unistd.h>

#include <ringgate/ringgate.h>

#include "bench.h"
#include "xdp.h"
#include "xdp_prog.h"

struct ring_rx {
	struct rgate_ring *ring;
	struct rgate_consumer c;
	int link_fd;		/* of the XDP program; -1: the hook receives */
};

static struct ring_rx *ring_start(const char *ifname, uint32_t kind, uint32_t flags,
				  struct rgate_ident *att)
{
	struct rgate_ring_opts o = RGATE_OPTS(rgate_ring_opts,
					      .slots = RX_SLOTS,
					      .slot_size = RX_BUF,
					      .flags = flags,
					      .name = "bench");
	struct rgate_attach_opts ao = RGATE_OPTS(rgate_attach_opts,
						 .action = RGATE_ACTION_STEAL,
						 .kind = kind);
	struct ring_rx *r = calloc(1, sizeof(*r));
	int err;

	if (!r)
		bench_die(-1, "ring");
	r->link_fd = -1;
	err = rgate_ring_open(&r->ring, &o);
	if (err)
		bench_die(0, "rgate_ring_open: %s", rgate_strerror("rgate_ring_open", err));
	err = rgate_consumer_init(&r->c, r->ring, NULL);
	if (!err)
		err = rgate_ring_attach(r->ring, ifname, &ao, att);
	if (err)
		bench_die(0, "rgate_ring_attach: %s", rgate_strerror("rgate_ring_attach", err));
	return r;
}

static void *ring_open(const char *ifname)
{
	return ring_start(ifname, RGATE_KIND_HOOK, 0, NULL);
}

static void *ring_coarse_open(const char *ifname)
{
	return ring_start(ifname, RGATE_KIND_HOOK, RGATE_RING_COARSE, NULL);
}

/* The program is the one of `ringgate attach --xdp` without a filter. */
static int prog_load(const struct rgate_ident *att)
{
	struct sock_fprog all = { 0 };
	struct bpf_insn *insns;
	int btf_fd, fd, err;
	uint32_t func;
	size_t n;

	err = xdp_func(&btf_fd, &func);
	if (err)
		bench_die(-err, "the module's function for XDP");
	err = xdp_prog(&all, xdp_call(func), att, &insns, &n);
	if (err)
		bench_die(-err, "the XDP program");
	fd = xdp_load(btf_fd, insns, n, NULL, 0);
	if (fd < 0)
		bench_die(-fd, "loading the XDP program");
	free(insns);
	close(btf_fd);
	return fd;
}

static void *xdp_start(const char *ifname, uint32_t flags)
{
	const struct bpf_link_create_opts opts = {
		.sz = sizeof(opts), .flags = XDP_FLAGS_DRV_MODE,
	};
	struct rgate_ident att;
	struct ring_rx *r = ring_start(ifname, RGATE_KIND_XDP, flags, &att);
	int prog = prog_load(&att);

	r->link_fd = bpf_link_create(prog, (int)if_nametoindex(ifname), BPF_XDP, &opts);
	if (r->link_fd < 0)
		bench_die(-r->link_fd, "attaching the XDP program");
	close(prog);
	return r;
}

static void *ring_xdp_open(const char *ifname)
{
	return xdp_start(ifname, 0);
}

static void *ring_xdp_coarse_open(const char *ifname)
{
	return xdp_start(ifname, RGATE_RING_COARSE);
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

	if (r->link_fd >= 0)
		close(r->link_fd);
	rgate_ring_close(r->ring);
	free(r);
}

const struct rx_ops rx_ring = {
	.name = "ring",
	.open = ring_open,
	.drain = ring_drain,
	.close = ring_close,
};

const struct rx_ops rx_ring_coarse = {
	.name = "ring_coarse",
	.open = ring_coarse_open,
	.drain = ring_drain,
	.close = ring_close,
};

const struct rx_ops rx_ring_xdp_coarse = {
	.name = "ring_xdp_coarse",
	.open = ring_xdp_coarse_open,
	.drain = ring_drain,
	.close = ring_close,
};

const struct rx_ops rx_ring_xdp = {
	.name = "ring_xdp",
	.open = ring_xdp_open,
	.drain = ring_drain,
	.close = ring_close,
};
