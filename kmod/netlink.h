/* SPDX-License-Identifier: GPL-2.0-only */
/* The generic netlink family. */
#ifndef RGATE_NETLINK_H
#define RGATE_NETLINK_H

#include <net/genetlink.h>
#include <ringgate/netlink.h>

extern struct genl_family rgate_genl_family;

/* netlink_get.c */
int rgate_nl_ring_get(struct sk_buff *skb, struct genl_info *info);
int rgate_nl_ring_dump(struct sk_buff *skb, struct netlink_callback *cb);
int rgate_nl_att_get(struct sk_buff *skb, struct genl_info *info);
int rgate_nl_att_dump(struct sk_buff *skb, struct netlink_callback *cb);

/* netlink_policy.c */
extern const struct nla_policy rgate_ring_policy[RGATE_A_RING_ID + 1];
extern const struct nla_policy rgate_ring_ident_policy[RGATE_A_RING_COOKIE + 1];
extern const struct nla_policy rgate_att_policy[RGATE_A_ATT_ID + 1];
extern const struct nla_policy rgate_att_new_policy[RGATE_A_ATT_THREAD + 1];
extern const struct nla_policy rgate_att_del_policy[RGATE_A_ATT_COOKIE + 1];
extern const struct nla_policy rgate_att_set_policy[RGATE_A_ATT_COOKIE + 1];
extern const struct nla_policy rgate_att_member_policy[RGATE_A_ATT_COOKIE + 1];

#endif
