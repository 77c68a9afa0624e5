/* SPDX-License-Identifier: GPL-2.0-only */
/* The receive hook. */
#ifndef RGATE_HOOK_H
#define RGATE_HOOK_H

struct nf_hook_state;
struct sk_buff;

unsigned int rgate_hook(void *priv, struct sk_buff *skb,
			const struct nf_hook_state *state);

#endif
