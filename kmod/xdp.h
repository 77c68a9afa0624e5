/* SPDX-License-Identifier: GPL-2.0-only */
/* Frames from XDP programs. */
#ifndef RGATE_XDP_H
#define RGATE_XDP_H

struct net_device;
struct rgate_att;
struct xdp_md;

void rgate_xdp_init(void);
bool rgate_xdp_device(const struct net_device *dev);
void rgate_xdp_enter(struct rgate_att *att);
void rgate_xdp_leave(struct rgate_att *att);
int bpf_ringgate_push(struct xdp_md *ctx, u32 attachment, u64 cookie, u32 snap);

#endif
