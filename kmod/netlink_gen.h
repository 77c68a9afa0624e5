/* SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note OR MIT */
/* Do not edit directly, auto-generated from: */
/*	Documentation/netlink/specs/ringgate.yaml */
/* YNL-GEN kernel header */

#ifndef _LINUX_RGATE_GEN_H
#define _LINUX_RGATE_GEN_H

#include <net/netlink.h>
#include <net/genetlink.h>

#include <ringgate/netlink.h>
#include <ringgate/ring.h>

/* Common nested types */
extern const struct nla_policy rgate_ring_ident_nl_policy[RGATE_A_RING_COOKIE + 1];

extern const struct nla_policy rgate_ring_get_nl_policy[RGATE_A_RING_ID + 1];

extern const struct nla_policy rgate_att_new_nl_policy[RGATE_A_ATT_THREAD + 1];

extern const struct nla_policy rgate_att_del_nl_policy[RGATE_A_ATT_COOKIE + 1];

extern const struct nla_policy rgate_att_get_nl_policy[RGATE_A_ATT_ID + 1];

extern const struct nla_policy rgate_att_set_nl_policy[RGATE_A_ATT_COOKIE + 1];

extern const struct nla_policy rgate_att_join_nl_policy[RGATE_A_ATT_COOKIE + 1];

extern const struct nla_policy rgate_att_leave_nl_policy[RGATE_A_ATT_COOKIE + 1];

/* Ops table for rgate */
extern const struct genl_ops rgate_nl_ops[7];

int rgate_nl_ring_get_doit(struct sk_buff *skb, struct genl_info *info);
int rgate_nl_ring_get_dumpit(struct sk_buff *skb, struct netlink_callback *cb);
int rgate_nl_att_new_doit(struct sk_buff *skb, struct genl_info *info);
int rgate_nl_att_del_doit(struct sk_buff *skb, struct genl_info *info);
int rgate_nl_att_get_doit(struct sk_buff *skb, struct genl_info *info);
int rgate_nl_att_get_dumpit(struct sk_buff *skb, struct netlink_callback *cb);
int rgate_nl_att_set_doit(struct sk_buff *skb, struct genl_info *info);
int rgate_nl_att_join_doit(struct sk_buff *skb, struct genl_info *info);
int rgate_nl_att_leave_doit(struct sk_buff *skb, struct genl_info *info);

enum {
	RGATE_NLGRP_EVENTS,
};

#endif /* _LINUX_RGATE_GEN_H */
