// SPDX-License-Identifier: GPL-2.0-only
#include <linux/filter.h>
#include <linux/skbuff.h>
#include <net/netlink.h>
#include "alloc.h"
#include "filter.h"

/**
 * rgate_filter_new - a filter from a netlink attribute
 * @attr: struct sock_filter[], length not yet checked; may be NULL
 *
 * Return: the program, NULL for none (no or empty attribute: all frames match),
 * or an error: -EINVAL for what the kernel's checker refuses, -ENOMEM.
 */
struct bpf_prog *rgate_filter_new(const struct nlattr *attr)
{
	struct sock_fprog_kern fprog;
	struct bpf_prog *prog;
	int err;

	if (!attr || !nla_len(attr))
		return NULL;
	if (nla_len(attr) % sizeof(struct sock_filter) ||
	    nla_len(attr) / sizeof(struct sock_filter) > BPF_MAXINSNS)
		return ERR_PTR(-EINVAL);
	if (rgate_alloc_fails())
		return ERR_PTR(-ENOMEM);
	fprog.len = nla_len(attr) / sizeof(struct sock_filter);
	fprog.filter = nla_data(attr);
	err = bpf_prog_create(&prog, &fprog);
	/* The JIT had no memory, and there is no interpreter: an errno for us only. */
	if (err == -ENOTSUPP)
		err = -ENOMEM;
	return err ? ERR_PTR(err) : prog;
}

/* No receive hook can be running it any more. */
void rgate_filter_free(struct bpf_prog *prog)
{
	if (prog)
		bpf_prog_destroy(prog);
}

/**
 * rgate_filter_run - does a frame match?
 * @prog: the program
 * @skb: data at the network header
 * @mac_len: bytes of link-layer header before that
 *
 * Offsets in the program count from the link-layer header, so the skb's data is
 * moved there meanwhile, as traffic control's classifiers do at ingress.
 *
 * Return: 0: no; otherwise how many of its bytes the program wants.
 */
u32 rgate_filter_run(const struct bpf_prog *prog, struct sk_buff *skb,
		     u32 mac_len)
{
	u32 res;

	__skb_push(skb, mac_len);
	res = bpf_prog_run_save_cb(prog, skb);
	__skb_pull(skb, mac_len);
	return res;
}
