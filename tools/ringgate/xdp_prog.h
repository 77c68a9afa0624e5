/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/* XDP programs out of classic BPF. */
#ifndef XDP_PROG_H
#define XDP_PROG_H

#include <stddef.h>
#include <linux/bpf.h>
#include <linux/filter.h>
#include <ringgate/rgate_ctl.h>

/*
 * xdp_prog - a program that filters frames and hands them to an attachment
 * @filter: as the receive hook would have it, for Ethernet; empty: all frames match
 * @call: from xdp_call()
 * @att: the attachment
 * @insns: out, free() it
 * @n: out, how many
 * 0; -EOPNOTSUPP: the filter asks for what is not known before there is an skb;
 * -E2BIG; -EINVAL: it is no program; -ENOMEM.
 */
int xdp_prog(const struct sock_fprog *filter, struct bpf_insn call,
	     const struct rgate_ident *att, struct bpf_insn **insns, size_t *n);

#endif
