/* SPDX-License-Identifier: GPL-2.0-only */
/* Classic BPF over received frames. */
#ifndef RGATE_FILTER_H
#define RGATE_FILTER_H

#include <linux/types.h>

struct bpf_prog;
struct nlattr;
struct sk_buff;

struct bpf_prog *rgate_filter_new(const struct nlattr *attr);
void rgate_filter_free(struct bpf_prog *prog);
u32 rgate_filter_run(const struct bpf_prog *prog, struct sk_buff *skb,
		     u32 mac_len);

#endif
