// SPDX-License-Identifier: MIT OR GPL-2.0
#include "vt.h"

#define TALK_MS		5000
#define RECV_BUF	8192	/* small, so that long dumps take several messages */

struct family { uint16_t id; uint32_t group; };

struct nlmsghdr *vt_nl_req(struct vt_nl *nl, void *buf, uint8_t cmd, uint16_t flags)
{
	struct nlmsghdr *nlh = mnl_nlmsg_put_header(buf);
	struct genlmsghdr *g;

	nlh->nlmsg_type = nl->family;
	nlh->nlmsg_flags = NLM_F_REQUEST | flags;
	nlh->nlmsg_seq = ++nl->seq;
	g = mnl_nlmsg_put_extra_header(nlh, sizeof(*g));
	g->cmd = cmd;
	g->version = RGATE_GENL_VERSION;
	return nlh;
}

static int nl_error(struct vt_nl *nl, const struct nlmsghdr *nlh)
{
	const struct nlmsgerr *e = mnl_nlmsg_get_payload(nlh);
	const struct nlattr *attr;

	if (nlh->nlmsg_flags & NLM_F_ACK_TLVS)
		mnl_attr_for_each(attr, nlh, sizeof(*e))
			if (mnl_attr_get_type(attr) == NLMSGERR_ATTR_MSG)
				snprintf(nl->why, sizeof(nl->why), "%s",
					 mnl_attr_get_str(attr));
	return e->error;
}

int vt_nl_talk(struct vt_nl *nl, struct nlmsghdr *nlh, vt_nl_fn fn, void *arg)
{
	char *buf = malloc(RECV_BUF);
	uint32_t seq = nlh->nlmsg_seq;
	struct pollfd p = {
		.fd = mnl_socket_get_fd(nl->sock), .events = POLLIN
	};
	int ret = -ETIMEDOUT;

	REQUIRE(buf);
	nl->dump_msgs = 0;
	nl->intr = false;
	nl->why[0] = 0;
	if (!(nlh->nlmsg_flags & NLM_F_DUMP))
		nlh->nlmsg_flags |= NLM_F_ACK;
	if (mnl_socket_sendto(nl->sock, nlh, nlh->nlmsg_len) < 0) {
		free(buf);
		return -errno;
	}
	while (poll(&p, 1, TALK_MS) > 0) {
		ssize_t got = mnl_socket_recvfrom(nl->sock, buf, RECV_BUF);
		struct nlmsghdr *m = (void *)buf;
		int len = (int)got;

		if (got < 0) {
			ret = -errno;
			break;
		}
		nl->dump_msgs++;
		for (; mnl_nlmsg_ok(m, len); m = mnl_nlmsg_next(m, &len)) {
			if (m->nlmsg_seq != seq)
				continue;
			if (m->nlmsg_flags & NLM_F_DUMP_INTR)
				nl->intr = true;
			if (m->nlmsg_type == NLMSG_ERROR) {
				ret = nl_error(nl, m);
				goto out;
			}
			if (m->nlmsg_type == NLMSG_DONE) {
				int err = 0;

				if (mnl_nlmsg_get_payload_len(m) >= sizeof(int))
					memcpy(&err, mnl_nlmsg_get_payload(m),
					       sizeof(err));
				ret = err;
				goto out;
			}
			if (fn)
				fn(m, arg);
		}
	}
out:
	free(buf);
	return ret;
}

void vt_nl_parse(const void *attrs, size_t len, const struct nlattr **tb, int max)
{
	const struct nlattr *attr;

	memset(tb, 0, sizeof(*tb) * (size_t)(max + 1));
	for (attr = attrs;
	     mnl_attr_ok(attr, (int)((const char *)attrs + len - (const char *)attr));
	     attr = mnl_attr_next(attr))
		if (mnl_attr_get_type(attr) <= max)
			tb[mnl_attr_get_type(attr)] = attr;
}

void vt_nl_parse_msg(const struct nlmsghdr *nlh, const struct nlattr **tb, int max)
{
	vt_nl_parse(mnl_nlmsg_get_payload_offset(nlh, sizeof(struct genlmsghdr)),
		    mnl_nlmsg_get_payload_len(nlh) - sizeof(struct genlmsghdr),
		    tb, max);
}

static void family_cb(const struct nlmsghdr *nlh, void *arg)
{
	const struct nlattr *tb[CTRL_ATTR_MAX + 1], *g[CTRL_ATTR_MCAST_GRP_MAX + 1];
	struct family *f = arg;
	struct nlattr *a;

	vt_nl_parse_msg(nlh, tb, CTRL_ATTR_MAX);
	if (tb[CTRL_ATTR_FAMILY_ID])
		f->id = mnl_attr_get_u16(tb[CTRL_ATTR_FAMILY_ID]);
	if (!tb[CTRL_ATTR_MCAST_GROUPS])
		return;
	mnl_attr_for_each_nested(a, tb[CTRL_ATTR_MCAST_GROUPS]) {
		vt_nl_parse(mnl_attr_get_payload(a), mnl_attr_get_payload_len(a),
			    g, CTRL_ATTR_MCAST_GRP_MAX);
		if (g[CTRL_ATTR_MCAST_GRP_NAME] && g[CTRL_ATTR_MCAST_GRP_ID] &&
		    !strcmp(mnl_attr_get_str(g[CTRL_ATTR_MCAST_GRP_NAME]),
			    RGATE_GENL_MCGRP))
			f->group = mnl_attr_get_u32(g[CTRL_ATTR_MCAST_GRP_ID]);
	}
}

int vt_nl_try_open(struct vt_nl *nl)
{
	struct family f = { 0 };
	char buf[256];
	struct nlmsghdr *nlh;
	int err, one = 1;

	memset(nl, 0, sizeof(*nl));
	nl->sock = mnl_socket_open2(NETLINK_GENERIC, SOCK_CLOEXEC);
	if (!nl->sock)
		return -errno;
	if (mnl_socket_bind(nl->sock, 0, MNL_SOCKET_AUTOPID) < 0) {
		err = -errno;
		goto fail;
	}
	/* errors come without the request, which may be long */
	mnl_socket_setsockopt(nl->sock, NETLINK_CAP_ACK, &one, sizeof(one));
	mnl_socket_setsockopt(nl->sock, NETLINK_EXT_ACK, &one, sizeof(one));
	nl->seq = (uint32_t)vt_now();
	nl->family = GENL_ID_CTRL;
	nlh = vt_nl_req(nl, buf, CTRL_CMD_GETFAMILY, 0);
	mnl_attr_put_strz(nlh, CTRL_ATTR_FAMILY_NAME, RGATE_GENL_NAME);
	err = vt_nl_talk(nl, nlh, family_cb, &f);
	if (err)
		goto fail;
	nl->family = f.id;
	nl->group = f.group;
	return 0;
fail:
	mnl_socket_close(nl->sock);
	nl->sock = NULL;
	return err;
}

void vt_nl_open(struct vt_nl *nl)
{
	int err = vt_nl_try_open(nl);

	if (err)
		DIE("generic netlink family: %s", strerror(-err));
}

void vt_nl_close(struct vt_nl *nl)
{
	if (nl->sock)
		mnl_socket_close(nl->sock);
	nl->sock = NULL;
}

int vt_nl_subscribe(struct vt_nl *nl)
{
	int g = (int)nl->group;

	if (!g)
		return -ENOENT;
	return mnl_socket_setsockopt(nl->sock, NETLINK_ADD_MEMBERSHIP, &g,
				     sizeof(g)) ? -errno : 0;
}

int vt_nl_event(struct vt_nl *nl, struct vt_event *ev, int ms)
{
	const struct nlattr *tb[RGATE_A_EVENT_MAX + 1];
	struct pollfd p = {
		.fd = mnl_socket_get_fd(nl->sock), .events = POLLIN
	};
	char buf[8192];
	ssize_t n;

	if (poll(&p, 1, ms) <= 0)
		return 0;
	n = mnl_socket_recvfrom(nl->sock, buf, sizeof(buf));
	if (n < 0)
		return -errno;
	vt_nl_parse_msg((void *)buf, tb, RGATE_A_EVENT_MAX);
	memset(ev, 0, sizeof(*ev));
	if (tb[RGATE_A_EVENT_TYPE])
		ev->type = mnl_attr_get_u32(tb[RGATE_A_EVENT_TYPE]);
	if (tb[RGATE_A_EVENT_RING_ID])
		ev->ring_id = mnl_attr_get_u32(tb[RGATE_A_EVENT_RING_ID]);
	if (tb[RGATE_A_EVENT_ATT_ID])
		ev->att_id = mnl_attr_get_u32(tb[RGATE_A_EVENT_ATT_ID]);
	if (tb[RGATE_A_EVENT_IFINDEX])
		ev->ifindex = mnl_attr_get_u32(tb[RGATE_A_EVENT_IFINDEX]);
	if (tb[RGATE_A_EVENT_FULL_EVENTS])
		ev->full_events = mnl_attr_get_u64(tb[RGATE_A_EVENT_FULL_EVENTS]);
	if (tb[RGATE_A_EVENT_DROPPED])
		ev->dropped = mnl_attr_get_u64(tb[RGATE_A_EVENT_DROPPED]);
	return 1;
}

int vt_nl_event_of(struct vt_nl *nl, uint32_t type, uint32_t att,
		   struct vt_event *ev, int ms)
{
	uint64_t end = vt_now() + (uint64_t)ms * 1000000;

	do {
		if (vt_nl_event(nl, ev, 100) == 1 && ev->type == type &&
		    (!att || ev->att_id == att))
			return 1;
	} while (vt_now() < end);
	return 0;
}
