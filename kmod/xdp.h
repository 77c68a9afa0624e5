/* SPDX-License-Identifier: GPL-2.0-only */
/* Frames from XDP programs. */
#ifndef RGATE_XDP_H
#define RGATE_XDP_H

struct net_device;
struct xdp_md;

void rgate_xdp_init(void);
bool rgate_xdp_device(const struct net_device *dev);
int bpf_ringgate_push(struct xdp_md *ctx, u32 attachment, u64 cookie, u32 snap);

#endif
