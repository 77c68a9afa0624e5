// SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note OR MIT
/* Do not edit directly, auto-generated from: */
/*	Documentation/netlink/specs/ringgate.yaml */
/* YNL-GEN kernel source */

#include <net/netlink.h>
#include <net/genetlink.h>

#include "netlink_gen.h"

#include <ringgate/netlink.h>
#include <ringgate/ring.h>

/* Common nested types */
const struct nla_policy rgate_ring_ident_nl_policy[RGATE_A_RING_COOKIE + 1] = {
	[RGATE_A_RING_ID] = NLA_POLICY_MIN(NLA_U32, 1),
	[RGATE_A_RING_COOKIE] = NLA_POLICY_MIN(NLA_U64, 1),
};

/* RGATE_CMD_RING_GET - do */
const struct nla_policy rgate_ring_get_nl_policy[RGATE_A_RING_ID + 1] = {
	[RGATE_A_RING_ID] = NLA_POLICY_MIN(NLA_U32, 1),
};

/* RGATE_CMD_ATT_NEW - do */
const struct nla_policy rgate_att_new_nl_policy[RGATE_A_ATT_THREAD + 1] = {
	[RGATE_A_ATT_IFINDEX] = NLA_POLICY_MIN(NLA_U32, 1),
	[RGATE_A_ATT_IFNAME] = { .type = NLA_NUL_STRING, .len = 15, },
	[RGATE_A_ATT_PRIORITY] = { .type = NLA_S32, },
	[RGATE_A_ATT_ACTION] = NLA_POLICY_RANGE(NLA_U32, 1, 2),
	[RGATE_A_ATT_FANOUT] = NLA_POLICY_MAX(NLA_U32, 3),
	[RGATE_A_ATT_SAMPLE] = { .type = NLA_U32, },
	[RGATE_A_ATT_FILTER] = { .type = NLA_BINARY, },
	[RGATE_A_ATT_RING] = NLA_POLICY_NESTED(rgate_ring_ident_nl_policy),
	[RGATE_A_ATT_KIND] = NLA_POLICY_MAX(NLA_U32, 2),
	[RGATE_A_ATT_THREAD] = NLA_POLICY_MAX(NLA_U32, 100),
};

/* RGATE_CMD_ATT_DEL - do */
const struct nla_policy rgate_att_del_nl_policy[RGATE_A_ATT_COOKIE + 1] = {
	[RGATE_A_ATT_ID] = NLA_POLICY_MIN(NLA_U32, 1),
	[RGATE_A_ATT_COOKIE] = NLA_POLICY_MIN(NLA_U64, 1),
};

/* RGATE_CMD_ATT_GET - do */
const struct nla_policy rgate_att_get_nl_policy[RGATE_A_ATT_ID + 1] = {
	[RGATE_A_ATT_ID] = NLA_POLICY_MIN(NLA_U32, 1),
};

/* RGATE_CMD_ATT_SET - do */
const struct nla_policy rgate_att_set_nl_policy[RGATE_A_ATT_COOKIE + 1] = {
	[RGATE_A_ATT_ID] = NLA_POLICY_MIN(NLA_U32, 1),
	[RGATE_A_ATT_COOKIE] = NLA_POLICY_MIN(NLA_U64, 1),
	[RGATE_A_ATT_ACTION] = NLA_POLICY_RANGE(NLA_U32, 1, 2),
	[RGATE_A_ATT_SAMPLE] = { .type = NLA_U32, },
	[RGATE_A_ATT_FILTER] = { .type = NLA_BINARY, },
};

/* RGATE_CMD_ATT_JOIN - do */
const struct nla_policy rgate_att_join_nl_policy[RGATE_A_ATT_COOKIE + 1] = {
	[RGATE_A_ATT_ID] = NLA_POLICY_MIN(NLA_U32, 1),
	[RGATE_A_ATT_COOKIE] = NLA_POLICY_MIN(NLA_U64, 1),
	[RGATE_A_ATT_RING] = NLA_POLICY_NESTED(rgate_ring_ident_nl_policy),
};

/* RGATE_CMD_ATT_LEAVE - do */
const struct nla_policy rgate_att_leave_nl_policy[RGATE_A_ATT_COOKIE + 1] = {
	[RGATE_A_ATT_ID] = NLA_POLICY_MIN(NLA_U32, 1),
	[RGATE_A_ATT_COOKIE] = NLA_POLICY_MIN(NLA_U64, 1),
	[RGATE_A_ATT_RING] = NLA_POLICY_NESTED(rgate_ring_ident_nl_policy),
};

/* Ops table for rgate */
const struct genl_ops rgate_nl_ops[7] = {
	{
		.cmd		= RGATE_CMD_RING_GET,
		.doit		= rgate_nl_ring_get_doit,
		.dumpit		= rgate_nl_ring_get_dumpit,
		.policy		= rgate_ring_get_nl_policy,
		.maxattr	= RGATE_A_RING_ID,
	},
	{
		.cmd		= RGATE_CMD_ATT_NEW,
		.doit		= rgate_nl_att_new_doit,
		.policy		= rgate_att_new_nl_policy,
		.maxattr	= RGATE_A_ATT_THREAD,
		.flags		= GENL_UNS_ADMIN_PERM,
	},
	{
		.cmd		= RGATE_CMD_ATT_DEL,
		.doit		= rgate_nl_att_del_doit,
		.policy		= rgate_att_del_nl_policy,
		.maxattr	= RGATE_A_ATT_COOKIE,
		.flags		= GENL_UNS_ADMIN_PERM,
	},
	{
		.cmd		= RGATE_CMD_ATT_GET,
		.doit		= rgate_nl_att_get_doit,
		.dumpit		= rgate_nl_att_get_dumpit,
		.policy		= rgate_att_get_nl_policy,
		.maxattr	= RGATE_A_ATT_ID,
	},
	{
		.cmd		= RGATE_CMD_ATT_SET,
		.doit		= rgate_nl_att_set_doit,
		.policy		= rgate_att_set_nl_policy,
		.maxattr	= RGATE_A_ATT_COOKIE,
		.flags		= GENL_UNS_ADMIN_PERM,
	},
	{
		.cmd		= RGATE_CMD_ATT_JOIN,
		.doit		= rgate_nl_att_join_doit,
		.policy		= rgate_att_join_nl_policy,
		.maxattr	= RGATE_A_ATT_COOKIE,
		.flags		= GENL_UNS_ADMIN_PERM,
	},
	{
		.cmd		= RGATE_CMD_ATT_LEAVE,
		.doit		= rgate_nl_att_leave_doit,
		.policy		= rgate_att_leave_nl_policy,
		.maxattr	= RGATE_A_ATT_COOKIE,
		.flags		= GENL_UNS_ADMIN_PERM,
	},
};
