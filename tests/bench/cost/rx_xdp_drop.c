// SPDX-License-Identifier: MIT OR GPL-2.0
/* The zero line of receivers by XDP: a program in the driver that drops every frame. */
#include "rx.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <linux/if_link.h>
#include <net/if.h>
#include <stdlib.h>
#include <unistd.h>

#include "bench.h"

static void *drop_open(const char *ifname)
{
	const struct bpf_insn prog[] = {
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .imm = XDP_DROP },
		{ .code = BPF_JMP | BPF_EXIT },
	};
	const struct bpf_link_create_opts opts = {
		.sz = sizeof(opts), .flags = XDP_FLAGS_DRV_MODE,
	};
	int *link = malloc(sizeof(*link)), fd;

	if (!link)
		bench_die(ENOMEM, "XDP_DROP");
	fd = bpf_prog_load(BPF_PROG_TYPE_XDP, "drop", "Dual MIT/GPL", prog,
			   sizeof(prog) / sizeof(prog[0]), NULL);
	if (fd < 0)
		bench_die(-fd, "loading the program that drops");
	*link = bpf_link_create(fd, (int)if_nametoindex(ifname), BPF_XDP, &opts);
	if (*link < 0)
		bench_die(-*link, "attaching the program that drops");
	close(fd);
	return link;
}

static void drop_close(void *ctx)
{
	int *link = ctx;

	close(*link);
	free(link);
}

const struct rx_ops rx_xdp_drop = {
	.name = "xdp_drop",
	.open = drop_open,
	.close = drop_close,
};
