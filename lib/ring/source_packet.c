// SPDX-License-Identifier: MIT OR GPL-2.0
/* Frames of a device, by a packet socket */
#include <arpa/inet.h>
#include <errno.h>
#include <linux/filter.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <ringgate/rgate_ctl.h>

#include "parse.h"
#include "source.h"

#ifndef PACKET_IGNORE_OUTGOING
#define PACKET_IGNORE_OUTGOING 23
#endif

_Static_assert(sizeof(struct sockaddr_ll) <= RGATE_SOURCE_NAME, "room for names");
_Static_assert(CMSG_SPACE(sizeof(struct tpacket_auxdata)) <= RGATE_SOURCE_CTL,
	       "room for auxiliary data");

static const struct tpacket_auxdata *find_aux(const struct msghdr *m)
{
	struct cmsghdr *c;

	for (c = CMSG_FIRSTHDR(m); c; c = CMSG_NXTHDR((struct msghdr *)m, c))
		if (c->cmsg_level == SOL_PACKET && c->cmsg_type == PACKET_AUXDATA &&
		    c->cmsg_len >= CMSG_LEN(sizeof(struct tpacket_auxdata)))
			return (const struct tpacket_auxdata *)CMSG_DATA(c);
	return NULL;
}

static void take_aux(struct rgate_slot *hdr, const struct tpacket_auxdata *aux)
{
	hdr->wire_len = aux->tp_len;
	if (aux->tp_status & TP_STATUS_CSUM_VALID)
		hdr->flags |= RGATE_SLOT_CSUM_OK;
	if (aux->tp_status & TP_STATUS_CSUMNOTREADY)
		hdr->flags |= RGATE_SLOT_CSUM_PARTIAL;
	if (aux->tp_status & TP_STATUS_VLAN_VALID) {
		hdr->flags |= RGATE_SLOT_VLAN;
		hdr->vlan_tci = aux->tp_vlan_tci;
		hdr->vlan_proto = aux->tp_status & TP_STATUS_VLAN_TPID_VALID ?
				  aux->tp_vlan_tpid : ETH_P_8021Q;
	}
}

static bool describe(struct rgate_source *src, const struct msghdr *m,
		     size_t msg_len, unsigned char *frame, size_t have,
		     struct rgate_slot *hdr)
{
	const struct sockaddr_ll *ll = m->msg_name;
	const struct tpacket_auxdata *aux = find_aux(m);

	(void)src;
	/* kernels without PACKET_IGNORE_OUTGOING hand out what is sent, too */
	if (ll->sll_pkttype == PACKET_OUTGOING)
		return false;
	hdr->wire_len = (uint32_t)msg_len;
	if (aux)
		take_aux(hdr, aux);
	hdr->ifindex = (uint32_t)ll->sll_ifindex;
	hdr->protocol = ntohs(ll->sll_protocol);
	hdr->dev_type = ll->sll_hatype;
	hdr->pkt_type = ll->sll_pkttype;
	rgate_parse_frame(hdr, frame, have);
	return true;
}

/* The kernel binds the socket of a device that it removes, or moves to another namespace, to
 * the number -1. */
static bool is_gone(const struct rgate_source *src)
{
	struct sockaddr_ll ll = { .sll_ifindex = src->ifindex };
	socklen_t len = sizeof(ll);

	return src->ifindex && !getsockname(src->sock, (struct sockaddr *)&ll, &len) &&
	       ll.sll_ifindex != src->ifindex;
}

/* In the socket's namespace, by the number: a device that is down may get another name. */
static bool is_up(const struct rgate_source *src)
{
	struct ifreq ifr = { .ifr_ifindex = src->ifindex };

	return !ioctl(src->sock, SIOCGIFNAME, &ifr) && !ioctl(src->sock, SIOCGIFFLAGS, &ifr) &&
	       ifr.ifr_flags & IFF_UP;
}

static int look(struct rgate_source *src)
{
	if (is_gone(src))
		return -ENODEV;
	src->away = !is_up(src);
	return 0;
}

/*
 * A device that goes down may come up again; one that is gone does not. One that is removed
 * goes down first, and of what comes then its socket is told nothing: it has to look.
 */
static int survive(struct rgate_source *src, int err)
{
	if (err == -ENODEV || err == -ENXIO)
		return -ENODEV;
	if (err == -ENETDOWN) {
		src->away = true;
		return look(src);
	}
	return err == -ENOBUFS || err == -ENOMEM ? 0 : err;
}

static const struct rgate_source_ops packet_ops = {
	.describe = describe,
	.survive = survive,
	.look = look,
};

static int set_filter(int sock, const char *ifname, const char *text)
{
	struct sock_fprog prog;
	int err;

	err = rgate_filter_compile(ifname, text, &prog, NULL, 0);
	if (err)
		return err;
	if (setsockopt(sock, SOL_SOCKET, SO_ATTACH_FILTER, &prog, sizeof(prog)) < 0)
		err = -errno;
	rgate_filter_free(&prog);
	return err;
}

static int set_promisc(int sock, int ifindex)
{
	struct packet_mreq req = {
		.mr_ifindex = ifindex,
		.mr_type = PACKET_MR_PROMISC,
	};

	return setsockopt(sock, SOL_PACKET, PACKET_ADD_MEMBERSHIP, &req,
			  sizeof(req)) < 0 ? -errno : 0;
}

/* Bound last, so that nothing comes that the filter would have kept out */
static int set_up(const struct rgate_source *src, int sock, const char *ifname,
		  const struct rgate_source_opts *o)
{
	struct sockaddr_ll ll = {
		.sll_family = AF_PACKET,
		.sll_protocol = htons(ETH_P_ALL),
		.sll_ifindex = src->ifindex,
	};
	int one = 1, err;

	if (setsockopt(sock, SOL_PACKET, PACKET_AUXDATA, &one, sizeof(one)) < 0)
		return -errno;
	/* where it is missing, describe() leaves those frames out */
	setsockopt(sock, SOL_PACKET, PACKET_IGNORE_OUTGOING, &one, sizeof(one));
	err = rgate_source_set_sock(sock, o);
	if (!err && o->filter)
		err = set_filter(sock, ifname, o->filter);
	if (!err && o->promisc)
		err = set_promisc(sock, src->ifindex);
	if (!err && bind(sock, (struct sockaddr *)&ll, sizeof(ll)) < 0)
		err = -errno;
	return err;
}

static int find_device(struct rgate_source *src, const char *ifname)
{
	if (!ifname)
		return 0;
	src->ifindex = (int)if_nametoindex(ifname);
	return src->ifindex ? 0 : -ENODEV;
}

int rgate_source_start_packet(struct rgate_source **out, struct rgate_ring *const *rings,
			      unsigned int nrings, const char *ifname,
			      const struct rgate_source_opts *opts)
{
	struct rgate_source_opts o;
	struct rgate_source *src;
	int err, sock;

	err = rgate_source_opts_get(&o, opts);
	if (err)
		return err;
	if (o.promisc && !ifname)
		return -EINVAL;
	err = rgate_source_check_rings(rings, nrings, false);
	if (err)
		return err;
	src = rgate_source_new(&packet_ops);
	if (!src)
		return -ENOMEM;
	src->ctl_len = RGATE_SOURCE_CTL;
	err = find_device(src, ifname);
	if (err) {
		rgate_source_free(src);
		return err;
	}
	sock = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (sock < 0) {
		err = -errno;
		rgate_source_free(src);
		return err;
	}
	err = set_up(src, sock, ifname, &o);
	if (err) {
		close(sock);
		rgate_source_free(src);
		return err;
	}
	err = rgate_source_start(src, sock, rings, nrings, &o);
	if (!err)
		*out = src;
	return err;
}
