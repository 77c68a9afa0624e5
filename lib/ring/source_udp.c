// SPDX-License-Identifier: MIT OR GPL-2.0
/* Datagrams of a UDP socket, with the headers they came with made anew */
#include <errno.h>
#include <net/if_arp.h>
#include <netinet/in.h>
#include <netinet/ip.h>
#include <netinet/ip6.h>
#include <netinet/udp.h>
#include <string.h>
#include <unistd.h>

#include "csum.h"
#include "source.h"

#define TTL		64	/* the sender's is not known */
#define PKT_HOST	0
#define ETH_IPV4	0x0800
#define ETH_IPV6	0x86dd

struct headers4 {
	struct iphdr ip;
	struct udphdr udp;
};

struct headers6 {
	struct ip6_hdr ip;
	struct udphdr udp;
};

_Static_assert(sizeof(struct headers4) == 28, "IPv4 and UDP");
_Static_assert(sizeof(struct headers6) == 48, "IPv6 and UDP");

static const void *find_cmsg(const struct msghdr *m, int level, int type, size_t len)
{
	struct cmsghdr *c;

	for (c = CMSG_FIRSTHDR(m); c; c = CMSG_NXTHDR((struct msghdr *)m, c))
		if (c->cmsg_level == level && c->cmsg_type == type &&
		    c->cmsg_len >= CMSG_LEN(len))
			return CMSG_DATA(c);
	return NULL;
}

static void common(struct rgate_slot *hdr, size_t l4_off, size_t wire_len)
{
	hdr->wire_len = (uint32_t)wire_len;
	hdr->flags = RGATE_SLOT_CSUM_OK;	/* the stack has checked it */
	hdr->dev_type = ARPHRD_NONE;
	hdr->l3_off = 0;
	hdr->l4_off = (uint16_t)l4_off;
	hdr->payload_off = (uint16_t)(l4_off + sizeof(struct udphdr));
	hdr->ip_proto = IPPROTO_UDP;
	hdr->pkt_type = PKT_HOST;
}

static bool describe4(struct rgate_source *src, const struct msghdr *m,
		      size_t msg_len, unsigned char *frame, size_t have,
		      struct rgate_slot *hdr)
{
	const struct sockaddr_in *from = m->msg_name;
	const struct sockaddr_in *to = (const struct sockaddr_in *)&src->bound;
	size_t wire = sizeof(struct headers4) + msg_len;
	struct headers4 h;

	(void)have;
	memset(&h, 0, sizeof(h));
	h.ip.version = 4;
	h.ip.ihl = 5;
	h.ip.ttl = TTL;
	h.ip.protocol = IPPROTO_UDP;
	h.ip.tot_len = htons((uint16_t)wire);
	h.ip.saddr = from->sin_addr.s_addr;
	h.ip.daddr = to->sin_addr.s_addr;
	h.udp.source = from->sin_port;
	h.udp.dest = to->sin_port;
	h.udp.len = htons((uint16_t)(wire - sizeof(h.ip)));
	if (src->any) {
		const struct in_pktinfo *pi = find_cmsg(m, IPPROTO_IP, IP_PKTINFO,
							sizeof(*pi));

		if (pi) {
			h.ip.daddr = pi->ipi_addr.s_addr;
			hdr->ifindex = (uint32_t)pi->ipi_ifindex;
		}
	}
	h.ip.check = rgate_csum_fold(rgate_csum_add(0, &h.ip, sizeof(h.ip)));
	memcpy(frame, &h, sizeof(h));
	hdr->protocol = ETH_IPV4;
	common(hdr, sizeof(h.ip), wire);
	return true;
}

/* IPv6 has no datagrams without a checksum; that of a cut one cannot be known. */
static uint16_t csum6(const struct headers6 *h, const unsigned char *payload,
		      size_t len)
{
	uint64_t sum;
	uint16_t c;

	sum = rgate_csum_add(0, &h->ip.ip6_src, 32);
	sum += h->udp.len;
	sum += htons(IPPROTO_UDP);
	sum = rgate_csum_add(sum, &h->udp, sizeof(h->udp));
	c = rgate_csum_fold(rgate_csum_add(sum, payload, len));
	return c ? c : 0xffff;
}

static bool describe6(struct rgate_source *src, const struct msghdr *m,
		      size_t msg_len, unsigned char *frame, size_t have,
		      struct rgate_slot *hdr)
{
	const struct sockaddr_in6 *from = m->msg_name;
	const struct sockaddr_in6 *to = (const struct sockaddr_in6 *)&src->bound;
	size_t wire = sizeof(struct headers6) + msg_len;
	struct headers6 h;

	memset(&h, 0, sizeof(h));
	h.ip.ip6_flow = htonl(6U << 28);
	h.ip.ip6_plen = htons((uint16_t)(wire - sizeof(h.ip)));
	h.ip.ip6_nxt = IPPROTO_UDP;
	h.ip.ip6_hlim = TTL;
	h.ip.ip6_src = from->sin6_addr;
	h.ip.ip6_dst = to->sin6_addr;
	h.udp.source = from->sin6_port;
	h.udp.dest = to->sin6_port;
	h.udp.len = h.ip.ip6_plen;
	if (src->any) {
		const struct in6_pktinfo *pi = find_cmsg(m, IPPROTO_IPV6, IPV6_PKTINFO,
							 sizeof(*pi));

		if (pi) {
			h.ip.ip6_dst = pi->ipi6_addr;
			hdr->ifindex = pi->ipi6_ifindex;
		}
	}
	if (have == wire)
		h.udp.check = csum6(&h, frame + sizeof(h), msg_len);
	memcpy(frame, &h, sizeof(h));
	hdr->protocol = ETH_IPV6;
	common(hdr, sizeof(h.ip), wire);
	return true;
}

/* Errors of a UDP socket are about single messages or a lack of memory. */
static int survive(struct rgate_source *src, int err)
{
	(void)src;
	return err == -EBADF || err == -EFAULT || err == -EINVAL ||
	       err == -ENOTSOCK || err == -ENOSYS ? err : 0;
}

static const struct rgate_source_ops udp4_ops = {
	.describe = describe4,
	.survive = survive,
};

static const struct rgate_source_ops udp6_ops = {
	.describe = describe6,
	.survive = survive,
};

static bool is_any(const struct sockaddr *addr)
{
	if (addr->sa_family == AF_INET)
		return ((const struct sockaddr_in *)addr)->sin_addr.s_addr ==
		       htonl(INADDR_ANY);
	return IN6_IS_ADDR_UNSPECIFIED(&((const struct sockaddr_in6 *)addr)->sin6_addr);
}

static int set_family(int sock, int family, bool any)
{
	int one = 1;

	if (family == AF_INET6 &&
	    setsockopt(sock, IPPROTO_IPV6, IPV6_V6ONLY, &one, sizeof(one)) < 0)
		return -errno;
	if (!any)
		return 0;
	if (family == AF_INET6 ?
	    setsockopt(sock, IPPROTO_IPV6, IPV6_RECVPKTINFO, &one, sizeof(one)) :
	    setsockopt(sock, IPPROTO_IP, IP_PKTINFO, &one, sizeof(one)))
		return -errno;
	return 0;
}

static int open_socket(struct rgate_source *src, const struct sockaddr *addr,
		       socklen_t addrlen, const struct rgate_source_opts *o)
{
	int err, sock;

	sock = socket(addr->sa_family, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (sock < 0)
		return -errno;
	src->any = is_any(addr);
	src->bound_len = sizeof(src->bound);
	err = set_family(sock, addr->sa_family, src->any);
	if (!err)
		err = rgate_source_set_sock(sock, o);
	if (!err && (bind(sock, addr, addrlen) < 0 ||
		     getsockname(sock, (struct sockaddr *)&src->bound,
				 &src->bound_len) < 0))
		err = -errno;
	if (err) {
		close(sock);
		return err;
	}
	return sock;
}

int rgate_source_start_udp(struct rgate_source **out, struct rgate_ring *const *rings,
			   unsigned int nrings, const struct sockaddr *addr,
			   socklen_t addrlen, const struct rgate_source_opts *opts)
{
	struct rgate_source_opts o;
	struct rgate_source *src;
	bool v6;
	int err, sock;

	err = rgate_source_opts_get(&o, opts);
	if (err)
		return err;
	if (addrlen < sizeof(addr->sa_family))
		return -EINVAL;
	v6 = addr->sa_family == AF_INET6;
	if (!v6 && addr->sa_family != AF_INET)
		return -EAFNOSUPPORT;
	if (addrlen < (v6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in)) ||
	    o.filter || o.promisc)
		return -EINVAL;
	err = rgate_source_check_rings(rings, nrings, true);
	if (err)
		return err;
	src = rgate_source_new(v6 ? &udp6_ops : &udp4_ops);
	if (!src)
		return -ENOMEM;
	src->front = v6 ? sizeof(struct headers6) : sizeof(struct headers4);
	sock = open_socket(src, addr, addrlen, &o);
	if (sock < 0) {
		rgate_source_free(src);
		return sock;
	}
	src->ctl_len = src->any ? RGATE_SOURCE_CTL : 0;
	err = rgate_source_start(src, sock, rings, nrings, &o);
	if (!err)
		*out = src;
	return err;
}
