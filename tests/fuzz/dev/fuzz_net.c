// SPDX-License-Identifier: MIT OR GPL-2.0
/* Random generic netlink messages, frames, and devices that come and go. */
#include "fuzz.h"

#include <linux/filter.h>
#include <linux/genetlink.h>
#include <linux/if_ether.h>
#include <libmnl/libmnl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <ringgate/netlink.h>

static __thread struct mnl_socket *sock;
static __thread uint16_t family;

static int on_family(const struct nlmsghdr *nlh, void *data)
{
	const struct nlattr *attr;

	(void)data;
	mnl_attr_for_each(attr, nlh, sizeof(struct genlmsghdr))
		if (mnl_attr_get_type(attr) == CTRL_ATTR_FAMILY_ID)
			family = mnl_attr_get_u16(attr);
	return MNL_CB_OK;
}

static bool connect_netlink(void)
{
	char buf[8192];
	struct nlmsghdr *nlh = mnl_nlmsg_put_header(buf);
	struct genlmsghdr *g;
	struct timeval tv = { .tv_usec = 100000 };
	ssize_t n;

	if (sock)
		return true;
	sock = mnl_socket_open2(NETLINK_GENERIC, SOCK_CLOEXEC);
	if (!sock)
		return false;
	setsockopt(mnl_socket_get_fd(sock), SOL_SOCKET, SO_RCVTIMEO, &tv, sizeof(tv));
	if (mnl_socket_bind(sock, 0, MNL_SOCKET_AUTOPID))
		goto close;
	nlh->nlmsg_type = GENL_ID_CTRL;
	nlh->nlmsg_flags = NLM_F_REQUEST;
	g = mnl_nlmsg_put_extra_header(nlh, sizeof(*g));
	g->cmd = CTRL_CMD_GETFAMILY;
	g->version = 1;
	mnl_attr_put_strz(nlh, CTRL_ATTR_FAMILY_NAME, RGATE_GENL_NAME);
	if (mnl_socket_sendto(sock, nlh, nlh->nlmsg_len) < 0)
		goto close;
	n = mnl_socket_recvfrom(sock, buf, sizeof(buf));
	if (n > 0 && mnl_cb_run(buf, (size_t)n, 0, mnl_socket_get_portid(sock), on_family,
				NULL) >= 0 && family)
		return true;
close:
	mnl_socket_close(sock);
	sock = NULL;
	return false;
}

static void put_filter(struct fuzz *f, struct nlmsghdr *nlh)
{
	struct sock_filter code[12];
	uint32_t n = 1 + fuzz_below(f, 12), i;

	for (i = 0; i < n; i++) {
		/* instructions that classic BPF has, and any */
		code[i].code = fuzz_one_in(f, 4) ? (uint16_t)fuzz_number(f) :
			(uint16_t)(fuzz_below(f, 8) | fuzz_below(f, 16) << 3);
		code[i].jt = (uint8_t)fuzz_below(f, 4);
		code[i].jf = (uint8_t)fuzz_below(f, 4);
		code[i].k = fuzz_one_in(f, 4) ? (uint32_t)fuzz_number(f) : fuzz_below(f, 64);
	}
	code[n - 1] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, fuzz_below(f, 2) * 65535);
	mnl_attr_put(nlh, RGATE_A_ATT_FILTER, n * sizeof(*code) - fuzz_one_in(f, 16), code);
}

/* Numbers and cookies that the last answers spoke of, of rings or attachments */
static __thread struct { uint32_t id; uint64_t cookie; } met[16];
static __thread unsigned int nmet;

static void meet(const struct nlattr *id, const struct nlattr *cookie)
{
	unsigned int i = nmet++ % 16;

	met[i].id = mnl_attr_get_u32(id);
	met[i].cookie = mnl_attr_get_u64(cookie);
}

/* RING_GET and ATT_GET number them alike, as far as the id goes. */
static void learn(const struct nlmsghdr *nlh)
{
	const struct genlmsghdr *g = mnl_nlmsg_get_payload(nlh);
	uint16_t cookie = g->cmd == RGATE_CMD_RING_GET ? (uint16_t)RGATE_A_RING_COOKIE :
			  (uint16_t)RGATE_A_ATT_COOKIE;
	const struct nlattr *attr, *id = NULL, *is = NULL;

	_Static_assert((int)RGATE_A_RING_ID == (int)RGATE_A_ATT_ID, "one number for both");
	mnl_attr_for_each(attr, nlh, sizeof(*g)) {
		if (mnl_attr_get_type(attr) == RGATE_A_RING_ID)
			id = attr;
		else if (mnl_attr_get_type(attr) == cookie)
			is = attr;
	}
	if (id && is)
		meet(id, is);
}

/* Mostly one that was met, so that its cookie fits if the next call picks it too */
static uint32_t any_number(struct fuzz *f)
{
	f->pick = fuzz_below(f, 16);
	if (met[f->pick].id && !fuzz_one_in(f, 4))
		return met[f->pick].id;
	return 1 + fuzz_below(f, FUZZ_IDS);
}

static uint64_t any_cookie(struct fuzz *f)
{
	return fuzz_one_in(f, 8) ? fuzz_number(f) : met[f->pick].cookie;
}

static void put_ring(struct fuzz *f, struct nlmsghdr *nlh)
{
	struct nlattr *nest = mnl_attr_nest_start(nlh, RGATE_A_ATT_RING);

	if (!fuzz_one_in(f, 16))
		mnl_attr_put_u32(nlh, RGATE_A_RING_ID, any_number(f));
	if (!fuzz_one_in(f, 16))
		mnl_attr_put_u64(nlh, RGATE_A_RING_COOKIE, any_cookie(f));
	mnl_attr_nest_end(nlh, nest);
}

static void put_attr(struct fuzz *f, struct nlmsghdr *nlh, uint16_t type)
{
	uint8_t junk[40];
	char name[16];

	switch (type) {
	case RGATE_A_ATT_IFNAME:
		snprintf(name, sizeof(name), "fz%u", fuzz_below(f, 4));
		mnl_attr_put_strz(nlh, type, name);
		break;
	case RGATE_A_ATT_FILTER:
		put_filter(f, nlh);
		break;
	case RGATE_A_ATT_ID:
		mnl_attr_put_u32(nlh, type, any_number(f));
		break;
	case RGATE_A_ATT_COOKIE:
		mnl_attr_put_u64(nlh, type, any_cookie(f));
		break;
	case RGATE_A_ATT_RING:
		put_ring(f, nlh);
		break;
	case RGATE_A_ATT_ACTION:
	case RGATE_A_ATT_FANOUT:
	case RGATE_A_ATT_SAMPLE:
	case RGATE_A_ATT_IFINDEX:
	case RGATE_A_ATT_KIND:
		mnl_attr_put_u32(nlh, type, fuzz_below(f, 5));
		break;
	case RGATE_A_ATT_THREAD:
		mnl_attr_put_u32(nlh, type, fuzz_below(f, 102));
		break;
	case RGATE_A_ATT_PRIORITY:
		mnl_attr_put_u32(nlh, type, (uint32_t)fuzz_number(f));
		break;
	default:
		memset(junk, (int)fuzz_rand(f), sizeof(junk));
		mnl_attr_put(nlh, type, fuzz_below(f, sizeof(junk)), junk);
	}
}

/* What a correct ATT_NEW has, most of the time */
static void put_new(struct fuzz *f, struct nlmsghdr *nlh)
{
	uint32_t n = 1 + fuzz_below(f, 3);

	put_attr(f, nlh, RGATE_A_ATT_IFNAME);
	while (n--)
		put_attr(f, nlh, RGATE_A_ATT_RING);
	/* rings that are sent from have a kind, and no rule */
	if (fuzz_one_in(f, 3)) {
		mnl_attr_put_u32(nlh, RGATE_A_ATT_KIND, RGATE_KIND_TRANSMIT);
		if (fuzz_one_in(f, 2))
			put_attr(f, nlh, RGATE_A_ATT_THREAD);
	} else if (fuzz_one_in(f, 2)) {
		put_attr(f, nlh, RGATE_A_ATT_FANOUT);
	}
	if (fuzz_one_in(f, 2))
		put_attr(f, nlh, RGATE_A_ATT_FILTER);
}

void fuzz_netlink_op(struct fuzz *f)
{
	char buf[4096], reply[8192];
	struct nlmsghdr *nlh = mnl_nlmsg_put_header(buf);
	struct genlmsghdr *g;
	uint32_t n;
	ssize_t got;

	if (!connect_netlink())
		return;
	nlh->nlmsg_type = family;
	nlh->nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK;
	if (fuzz_one_in(f, 4))
		nlh->nlmsg_flags |= NLM_F_DUMP;
	g = mnl_nlmsg_put_extra_header(nlh, sizeof(*g));
	g->version = RGATE_GENL_VERSION;
	g->cmd = (uint8_t)(1 + fuzz_below(f, RGATE_CMD_MAX + 1));
	if (g->cmd == RGATE_CMD_ATT_NEW) {
		put_new(f, nlh);
	} else if (fuzz_one_in(f, 2)) {
		put_attr(f, nlh, RGATE_A_ATT_ID);
		put_attr(f, nlh, RGATE_A_ATT_COOKIE);
	}
	for (n = fuzz_below(f, 4); n; n--)
		put_attr(f, nlh, (uint16_t)fuzz_below(f, RGATE_A_ATT_MAX + 3));
	if (fuzz_one_in(f, 4))
		fuzz_mutate(f, (char *)buf + NLMSG_HDRLEN, nlh->nlmsg_len - NLMSG_HDRLEN);
	if (mnl_socket_sendto(sock, nlh, nlh->nlmsg_len) < 0)
		return;
	/* Whatever comes; what is left unread costs this socket its answers only. */
	got = recv(mnl_socket_get_fd(sock), reply, sizeof(reply), MSG_DONTWAIT);
	if (got >= (ssize_t)sizeof(*nlh)) {
		const struct nlmsghdr *r = (const void *)reply;

		fuzz_note(f, r->nlmsg_type == NLMSG_ERROR &&
			  ((const struct nlmsgerr *)mnl_nlmsg_get_payload(r))->error ? -1 : 0);
		if (r->nlmsg_type == family && mnl_nlmsg_ok(r, (int)got))
			learn(r);
	}
	if (fuzz_one_in(f, 64)) {
		mnl_socket_close(sock);
		sock = NULL;
	}
}

static void device(struct fuzz *f)
{
	unsigned int i = fuzz_below(f, 2) * 2;
	char cmd[256];

	snprintf(cmd, sizeof(cmd), fuzz_one_in(f, 2) ?
		 "ip link del fz%u 2>/dev/null" :
		 "ip link add fz%u type veth peer name fz%u 2>/dev/null && "
		 "ip link set fz%u up && ip link set fz%u up", i, i + 1, i, i + 1);
	fuzz_note(f, system(cmd) ? -1 : 0);
}

void fuzz_traffic_op(struct fuzz *f)
{
	static const uint16_t types[] = { ETH_P_IP, ETH_P_IPV6, ETH_P_8021Q, ETH_P_ARP, 0x88b5 };
	uint8_t frame[1514];
	struct {
		uint16_t family, proto;
		int32_t ifindex;
		uint16_t type;
		uint8_t pkt, alen, addr[8];
	} to = { .family = AF_PACKET };
	uint32_t len, i, n = 1 + fuzz_below(f, 64);

	if (f->p->tx < 0)
		return;
	if (fuzz_one_in(f, 400)) {
		device(f);
		return;
	}
	len = 14 + fuzz_below(f, sizeof(frame) - 13);
	memset(frame, 0, 14);
	memset(frame, 0xff, 6);
	frame[12] = (uint8_t)(types[fuzz_below(f, 5)] >> 8);
	frame[13] = (uint8_t)fuzz_rand(f);
	for (i = 14; i < len; i++)
		frame[i] = (uint8_t)(i < 80 ? fuzz_number(f) : i);
	to.ifindex = (int32_t)fuzz_below(f, 24);
	while (n--)
		fuzz_note(f, sendto(f->p->tx, frame, len, MSG_DONTWAIT, (void *)&to, 20));
}
