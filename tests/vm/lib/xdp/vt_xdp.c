// SPDX-License-Identifier: MIT OR GPL-2.0
#include "../vt.h"
#include "vt_xdp.h"

#include <bpf/bpf.h>

#include "xdp.h"

static int btf_fd = -1;
static uint32_t func;

void vt_xdp_find(void)
{
	int err = xdp_func(&btf_fd, &func);

	if (err == -ENOENT)
		vt_skip("this kernel does not know the module's types");
	if (err)
		DIE("the module's function: %s", strerror(-err));
}

void vt_xdp_forget(void)
{
	close(btf_fd);
	btf_fd = -1;
}

int vt_xdp_prog(uint32_t att, uint64_t cookie, uint32_t snap, bool plain)
{
	const struct bpf_insn insns[] = {
		{ .code = BPF_ALU | BPF_MOV | BPF_K, .dst_reg = BPF_REG_2, .imm = (int)att },
		{ .code = BPF_LD | BPF_DW | BPF_IMM, .dst_reg = BPF_REG_3,
		  .imm = (int)(uint32_t)cookie },
		{ .imm = (int)(cookie >> 32) },
		{ .code = BPF_ALU | BPF_MOV | BPF_K, .dst_reg = BPF_REG_4, .imm = (int)snap },
		xdp_call(func),
		{ .code = BPF_JMP32 | BPF_JSGE | BPF_K, .dst_reg = BPF_REG_0, .off = 1,
		  .imm = plain ? INT32_MIN : 0 },
		{ .code = BPF_ALU | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0, .imm = XDP_PASS },
		{ .code = BPF_JMP | BPF_EXIT },
	};
	char log[4096] = "";
	int fd = xdp_load(btf_fd, insns, VT_COUNT(insns), log, sizeof(log));

	if (fd < 0)
		DIE("the program is refused: %s: %s", strerror(-fd), log);
	return fd;
}

int vt_xdp_run(int fd, void *frame, size_t len)
{
	struct bpf_test_run_opts opts = {
		.sz = sizeof(opts), .data_in = frame, .data_size_in = (uint32_t)len,
		.repeat = 1,
	};

	if (bpf_prog_test_run_opts(fd, &opts))
		DIE("running the program: %s", strerror(errno));
	return (int)opts.retval;
}

uint32_t vt_xdp_attach(struct vt_nl *nl, const char *ifname, uint32_t ring, uint32_t action)
{
	struct vt_att a = {
		.ifname = ifname, .rings = { ring }, .n = 1,
		.action = action, .kind = RGATE_KIND_XDP,
	};
	int id = vt_att_new(nl, &a);

	if (id < 0)
		DIE("attaching to %s: %s (%s)", ifname, strerror(-id), nl->why);
	return (uint32_t)id;
}
