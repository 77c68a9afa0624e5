// SPDX-License-Identifier: MIT OR GPL-2.0
#include "vt_keys.h"
#include "vt.h"

#include <arpa/inet.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netfilter/nf_tables.h>

static struct nlmsghdr *put(char *at, uint16_t type, uint16_t flags, uint8_t family,
			    uint16_t res_id)
{
	struct nlmsghdr *nlh = mnl_nlmsg_put_header(at);
	struct nfgenmsg *nfg;

	nlh->nlmsg_type = type;
	nlh->nlmsg_flags = NLM_F_REQUEST | flags;
	nfg = mnl_nlmsg_put_extra_header(nlh, sizeof(*nfg));
	nfg->nfgen_family = family;
	nfg->version = NFNETLINK_V0;
	nfg->res_id = htons(res_id);
	return nlh;
}

#define NFT(cmd)	((NFNL_SUBSYS_NFTABLES << 8) | (cmd))

/* One transaction: table "vt", chain "hold" at lo's ingress */
static size_t transaction(char *buf)
{
	struct nlattr *hook;
	struct nlmsghdr *nlh;
	char *at = buf;

	nlh = put(at, NFNL_MSG_BATCH_BEGIN, 0, AF_UNSPEC, NFNL_SUBSYS_NFTABLES);
	at += NLMSG_ALIGN(nlh->nlmsg_len);
	nlh = put(at, NFT(NFT_MSG_NEWTABLE), NLM_F_CREATE, NFPROTO_NETDEV, 0);
	mnl_attr_put_strz(nlh, NFTA_TABLE_NAME, "vt");
	at += NLMSG_ALIGN(nlh->nlmsg_len);
	nlh = put(at, NFT(NFT_MSG_NEWCHAIN), NLM_F_CREATE | NLM_F_ACK, NFPROTO_NETDEV, 0);
	mnl_attr_put_strz(nlh, NFTA_CHAIN_TABLE, "vt");
	mnl_attr_put_strz(nlh, NFTA_CHAIN_NAME, "hold");
	mnl_attr_put_strz(nlh, NFTA_CHAIN_TYPE, "filter");
	hook = mnl_attr_nest_start(nlh, NFTA_CHAIN_HOOK);
	mnl_attr_put_u32(nlh, NFTA_HOOK_HOOKNUM, htonl(NF_NETDEV_INGRESS));
	mnl_attr_put_u32(nlh, NFTA_HOOK_PRIORITY, htonl(0));
	mnl_attr_put_strz(nlh, NFTA_HOOK_DEV, "lo");
	mnl_attr_nest_end(nlh, hook);
	at += NLMSG_ALIGN(nlh->nlmsg_len);
	nlh = put(at, NFNL_MSG_BATCH_END, 0, AF_UNSPEC, NFNL_SUBSYS_NFTABLES);
	return (size_t)(at - buf) + nlh->nlmsg_len;
}

int vt_keys_hold(void)
{
	char buf[4096] = { 0 };
	struct mnl_socket *s = mnl_socket_open2(NETLINK_NETFILTER, SOCK_CLOEXEC);
	struct pollfd p = { .events = POLLIN };
	int err = -ETIMEDOUT;

	if (!s)
		return -errno;
	p.fd = mnl_socket_get_fd(s);
	if (mnl_socket_sendto(s, buf, transaction(buf)) < 0) {
		err = -errno;
	} else if (poll(&p, 1, 5000) == 1) {
		ssize_t n = mnl_socket_recvfrom(s, buf, sizeof(buf));
		const struct nlmsghdr *nlh = (void *)buf;

		if (n >= (ssize_t)sizeof(*nlh) && nlh->nlmsg_type == NLMSG_ERROR)
			err = ((struct nlmsgerr *)mnl_nlmsg_get_payload(nlh))->error;
	}
	mnl_socket_close(s);
	return err;
}
