// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * AF_XDP in copy mode, with the program in the driver: generic XDP under pktgen
 * is a BUG() of the kernel (6.1), as pktgen keeps a reference on what it sends.
 * The program is six instructions that redirect to the socket, so it is put
 * together here and nothing needs a BPF compiler.
 */
#include "rx.h"

#include <errno.h>
#include <linux/bpf.h>
#include <linux/if_link.h>
#include <linux/if_xdp.h>
#include <net/if.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "bench.h"

struct xdp_queue {
	uint32_t *producer;
	uint32_t *consumer;
	void *desc;
	void *map;
	size_t len;
};

struct xdp_rx {
	int sock, map_fd, prog_fd, link_fd;
	unsigned char *umem;
	struct xdp_queue fill;
	struct xdp_queue rx;
};

static int sys_bpf(int cmd, union bpf_attr *attr)
{
	return (int)syscall(SYS_bpf, cmd, attr, sizeof(*attr));
}

static void umem_open(struct xdp_rx *x)
{
	struct xdp_umem_reg reg = {
		.len = (uint64_t)RX_SLOTS * RX_BUF,
		.chunk_size = RX_BUF,
	};
	int n = RX_SLOTS;

	x->umem = mmap(NULL, reg.len, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	if (x->umem == MAP_FAILED)
		bench_die(errno, "mmap");
	reg.addr = (uintptr_t)x->umem;
	x->sock = socket(AF_XDP, SOCK_RAW | SOCK_CLOEXEC, 0);
	if (x->sock < 0 ||
	    setsockopt(x->sock, SOL_XDP, XDP_UMEM_REG, &reg, sizeof(reg)) ||
	    setsockopt(x->sock, SOL_XDP, XDP_UMEM_FILL_RING, &n, sizeof(n)) ||
	    setsockopt(x->sock, SOL_XDP, XDP_UMEM_COMPLETION_RING, &n, sizeof(n)) ||
	    setsockopt(x->sock, SOL_XDP, XDP_RX_RING, &n, sizeof(n)))
		bench_die(errno, "AF_XDP socket");
}

static void queue_map(struct xdp_queue *q, int sock, off_t at,
		      const struct xdp_ring_offset *off, size_t desc_size)
{
	q->len = off->desc + RX_SLOTS * desc_size;
	q->map = mmap(NULL, q->len, PROT_READ | PROT_WRITE,
		      MAP_SHARED | MAP_POPULATE, sock, at);
	if (q->map == MAP_FAILED)
		bench_die(errno, "mmap of an AF_XDP queue");
	q->producer = (void *)((unsigned char *)q->map + off->producer);
	q->consumer = (void *)((unsigned char *)q->map + off->consumer);
	q->desc = (unsigned char *)q->map + off->desc;
}

static void queues_open(struct xdp_rx *x)
{
	struct xdp_mmap_offsets off;
	socklen_t len = sizeof(off);
	uint64_t *fill;
	uint32_t i;

	if (getsockopt(x->sock, SOL_XDP, XDP_MMAP_OFFSETS, &off, &len))
		bench_die(errno, "XDP_MMAP_OFFSETS");
	queue_map(&x->fill, x->sock, XDP_UMEM_PGOFF_FILL_RING, &off.fr,
		  sizeof(uint64_t));
	queue_map(&x->rx, x->sock, XDP_PGOFF_RX_RING, &off.rx,
		  sizeof(struct xdp_desc));
	fill = x->fill.desc;
	for (i = 0; i < RX_SLOTS; i++)
		fill[i] = (uint64_t)i * RX_BUF;
	__atomic_store_n(x->fill.producer, RX_SLOTS, __ATOMIC_RELEASE);
}

static void map_open(struct xdp_rx *x)
{
	union bpf_attr attr;

	memset(&attr, 0, sizeof(attr));
	attr.map_type = BPF_MAP_TYPE_XSKMAP;
	attr.key_size = sizeof(uint32_t);
	attr.value_size = sizeof(uint32_t);
	attr.max_entries = 1;
	x->map_fd = sys_bpf(BPF_MAP_CREATE, &attr);
	if (x->map_fd < 0)
		bench_die(errno, "XSKMAP");
}

/* return bpf_redirect_map(&map, ctx->rx_queue_index, XDP_PASS); */
static void prog_open(struct xdp_rx *x)
{
	struct bpf_insn prog[] = {
		{ .code = BPF_LDX | BPF_MEM | BPF_W, .dst_reg = BPF_REG_2,
		  .src_reg = BPF_REG_1,
		  .off = offsetof(struct xdp_md, rx_queue_index) },
		{ .code = BPF_LD | BPF_DW | BPF_IMM, .dst_reg = BPF_REG_1,
		  .src_reg = BPF_PSEUDO_MAP_FD, .imm = x->map_fd },
		{ .code = 0 },
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_3,
		  .imm = XDP_PASS },
		{ .code = BPF_JMP | BPF_CALL, .imm = BPF_FUNC_redirect_map },
		{ .code = BPF_JMP | BPF_EXIT },
	};
	union bpf_attr attr;

	memset(&attr, 0, sizeof(attr));
	attr.prog_type = BPF_PROG_TYPE_XDP;
	attr.insns = (uintptr_t)prog;
	attr.insn_cnt = sizeof(prog) / sizeof(prog[0]);
	attr.license = (uintptr_t)"Dual MIT/GPL";
	x->prog_fd = sys_bpf(BPF_PROG_LOAD, &attr);
	if (x->prog_fd < 0)
		bench_die(errno, "loading the XDP program");
}

static void link_open(struct xdp_rx *x, int ifindex)
{
	struct sockaddr_xdp at = {
		.sxdp_family = AF_XDP,
		.sxdp_flags = XDP_COPY,
		.sxdp_ifindex = (uint32_t)ifindex,
	};
	union bpf_attr attr;
	uint32_t key = 0;

	memset(&attr, 0, sizeof(attr));
	attr.link_create.prog_fd = (uint32_t)x->prog_fd;
	attr.link_create.target_ifindex = (uint32_t)ifindex;
	attr.link_create.attach_type = BPF_XDP;
	attr.link_create.flags = XDP_FLAGS_DRV_MODE;
	x->link_fd = sys_bpf(BPF_LINK_CREATE, &attr);
	if (x->link_fd < 0)
		bench_die(errno, "attaching the XDP program");
	if (bind(x->sock, (struct sockaddr *)&at, sizeof(at)))
		bench_die(errno, "bind of the AF_XDP socket");
	memset(&attr, 0, sizeof(attr));
	attr.map_fd = (uint32_t)x->map_fd;
	attr.key = (uintptr_t)&key;
	attr.value = (uintptr_t)&x->sock;
	if (sys_bpf(BPF_MAP_UPDATE_ELEM, &attr))
		bench_die(errno, "XSKMAP entry");
}

static void *xdp_open(const char *ifname)
{
	struct rlimit all = { RLIM_INFINITY, RLIM_INFINITY };
	struct xdp_rx *x = calloc(1, sizeof(*x));

	if (!x)
		bench_die(ENOMEM, "AF_XDP");
	setrlimit(RLIMIT_MEMLOCK, &all);
	umem_open(x);
	queues_open(x);
	map_open(x);
	prog_open(x);
	link_open(x, (int)if_nametoindex(ifname));
	return x;
}

static unsigned int xdp_drain(void *ctx, struct rx_seen *seen)
{
	struct xdp_rx *x = ctx;
	const struct xdp_desc *desc = x->rx.desc;
	uint64_t *fill = x->fill.desc;
	uint32_t at = *x->rx.consumer, end, put = *x->fill.producer;
	unsigned int all = 0;

	for (;;) {
		end = __atomic_load_n(x->rx.producer, __ATOMIC_ACQUIRE);
		if (at == end)
			return all;
		if (end - at > 64)
			end = at + 64;
		for (; at != end; at++, put++, all++) {
			const struct xdp_desc *d = &desc[at % RX_SLOTS];

			rx_look(seen, x->umem + d->addr + RX_PAYLOAD);
			/* the chunk, without the headroom */
			fill[put % RX_SLOTS] = d->addr & ~(uint64_t)(RX_BUF - 1);
		}
		__atomic_store_n(x->rx.consumer, at, __ATOMIC_RELEASE);
		__atomic_store_n(x->fill.producer, put, __ATOMIC_RELEASE);
	}
}

static void xdp_close(void *ctx)
{
	struct xdp_rx *x = ctx;

	close(x->link_fd);
	munmap(x->rx.map, x->rx.len);
	munmap(x->fill.map, x->fill.len);
	close(x->sock);
	close(x->prog_fd);
	close(x->map_fd);
	munmap(x->umem, (size_t)RX_SLOTS * RX_BUF);
	free(x);
}

const struct rx_ops rx_xdp = {
	.name = "af_xdp",
	.open = xdp_open,
	.drain = xdp_drain,
	.close = xdp_close,
};
