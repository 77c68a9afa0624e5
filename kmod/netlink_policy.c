// SPDX-License-Identifier: GPL-2.0-only
/*
 * What attributes a request may have. Validation is strict: attributes that are
 * unknown, or not listed for the command, are refused.
 */
#include <linux/filter.h>
#include <linux/if.h>
#include "netlink.h"

#define RGATE_FILTER_BYTES (RGATE_FILTER_LEN_MAX * sizeof(struct sock_filter))

const struct nla_policy rgate_ring_policy[RGATE_A_RING_ID + 1] = {
	[RGATE_A_RING_ID] = NLA_POLICY_MIN(NLA_U32, 1),
};

const struct nla_policy rgate_ring_ident_policy[RGATE_A_RING_COOKIE + 1] = {
	[RGATE_A_RING_ID] = NLA_POLICY_MIN(NLA_U32, 1),
	[RGATE_A_RING_COOKIE] = NLA_POLICY_MIN(NLA_U64, 1),
};

const struct nla_policy rgate_att_policy[RGATE_A_ATT_ID + 1] = {
	[RGATE_A_ATT_ID] = NLA_POLICY_MIN(NLA_U32, 1),
};

const struct nla_policy rgate_att_del_policy[RGATE_A_ATT_COOKIE + 1] = {
	[RGATE_A_ATT_ID] = NLA_POLICY_MIN(NLA_U32, 1),
	[RGATE_A_ATT_COOKIE] = NLA_POLICY_MIN(NLA_U64, 1),
};

const struct nla_policy rgate_att_new_policy[RGATE_A_ATT_THREAD + 1] = {
	[RGATE_A_ATT_IFINDEX] = NLA_POLICY_MIN(NLA_U32, 1),
	[RGATE_A_ATT_IFNAME] = { .type = NLA_NUL_STRING, .len = IFNAMSIZ - 1 },
	[RGATE_A_ATT_PRIORITY] = { .type = NLA_S32 },
	[RGATE_A_ATT_ACTION] = NLA_POLICY_RANGE(NLA_U32, RGATE_ACTION_MIRROR,
						  RGATE_ACTION_STEAL),
	[RGATE_A_ATT_FANOUT] = NLA_POLICY_MAX(NLA_U32, RGATE_FANOUT_COUNT - 1),
	[RGATE_A_ATT_SAMPLE] = { .type = NLA_U32 },
	[RGATE_A_ATT_FILTER] = { .type = NLA_BINARY, .len = RGATE_FILTER_BYTES },
	[RGATE_A_ATT_RING] = NLA_POLICY_NESTED(rgate_ring_ident_policy),
	[RGATE_A_ATT_KIND] = NLA_POLICY_MAX(NLA_U32, RGATE_KIND_COUNT - 1),
	[RGATE_A_ATT_THREAD] = NLA_POLICY_MAX(NLA_U32, 100),
};

const struct nla_policy rgate_att_set_policy[RGATE_A_ATT_COOKIE + 1] = {
	[RGATE_A_ATT_ID] = NLA_POLICY_MIN(NLA_U32, 1),
	[RGATE_A_ATT_COOKIE] = NLA_POLICY_MIN(NLA_U64, 1),
	[RGATE_A_ATT_ACTION] = NLA_POLICY_RANGE(NLA_U32, RGATE_ACTION_MIRROR,
						  RGATE_ACTION_STEAL),
	[RGATE_A_ATT_SAMPLE] = { .type = NLA_U32 },
	[RGATE_A_ATT_FILTER] = { .type = NLA_BINARY, .len = RGATE_FILTER_BYTES },
};

const struct nla_policy rgate_att_member_policy[RGATE_A_ATT_COOKIE + 1] = {
	[RGATE_A_ATT_ID] = NLA_POLICY_MIN(NLA_U32, 1),
	[RGATE_A_ATT_COOKIE] = NLA_POLICY_MIN(NLA_U64, 1),
	[RGATE_A_ATT_RING] = NLA_POLICY_NESTED(rgate_ring_ident_policy),
};
