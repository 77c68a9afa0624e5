// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * Devices without link-layer headers: a packet that comes out of a tunnel is a
 * frame that begins with its network header, whatever stood before it on its way
 * here. Contents, offsets and filters say so; and the one kind of tunnel that has
 * such headers keeps them.
 */
#include "lib/vt.h"

#include <linux/if_arp.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/udp.h>
#include <netinet/in.h>
#include <arpa/inet.h>
#include <sys/socket.h>

#ifndef ARPHRD_NONE
#define ARPHRD_NONE	0xfffe
#endif
#ifndef ARPHRD_IP6GRE
#define ARPHRD_IP6GRE	823
#endif

/*
 * $L, $R: addresses of this end and the other; $I: 1 for the sender, 2 for the
 * receiver; $O: the other's.
 */
struct kind {
	const char *make;
	const char *make_rx;	/* the receiver's, where it is another */
	bool v6_out;		/* the tunnel goes over IPv6 */
	bool v6_in;		/* and carries it */
	uint16_t type;
	uint16_t header;	/* bytes before the packet */
};

#define IPSEC(any, mark)							\
	"k=0x000102030405060708090a0b0c0d0e0f10111213; "			\
	"s='proto esp reqid 1 mode tunnel'; "					\
	"ip xfrm state add src $L dst $R spi $O $s " mark			\
	"   aead 'rfc4106(gcm(aes))' $k 128 && "				\
	"ip xfrm state add src $R dst $L spi $I $s " mark			\
	"   aead 'rfc4106(gcm(aes))' $k 128 && "				\
	"ip xfrm policy add src " any " dst " any " dir out " mark		\
	"   tmpl src $L dst $R $s && "						\
	"ip xfrm policy add src " any " dst " any " dir in " mark		\
	"   tmpl src $R dst $L $s"

static int run(const char *l, const char *r, int me, const char *what)
{
	return vt_sh("L=%s R=%s I=%d O=%d; %s && ip link set t0 up", l, r, me, 3 - me,
		     what);
}

static void link_v6(int ns)
{
	vt_must("echo 0 >/proc/sys/net/ipv6/conf/va/disable_ipv6 && "
		"ip addr add fd09::1/64 dev va nodad");
	vt_netns_must(ns, "echo 0 >/proc/sys/net/ipv6/conf/vb/disable_ipv6 && "
		      "ip addr add fd09::2/64 dev vb nodad");
}

/* t0 here and t0 there; returns the namespace there */
static int tunnel(const struct kind *k)
{
	const char *l = k->v6_out ? "fd09::1" : "10.9.0.1";
	const char *r = k->v6_out ? "fd09::2" : "10.9.0.2";
	int ns = vt_netns_new(), old = vt_netns_self();

	vt_veth_ns("va", "vb", ns, 0);
	if (k->v6_out)
		link_v6(ns);
	if (run(l, r, 1, k->make))
		DIE("no such device: %s", k->make);
	vt_netns_enter(ns);
	if (run(r, l, 2, k->make_rx ? k->make_rx : k->make))
		DIE("no such device there");
	vt_netns_enter(old);
	close(old);
	return ns;
}

/* A packet of @len bytes, network header first */
static void packet(const struct kind *k, uint8_t *p, size_t len, uint64_t seq)
{
	static uint8_t frame[2048];
	struct ipv6hdr ip6 = { .version = 6, .nexthdr = IPPROTO_UDP, .hop_limit = 64 };
	size_t udp = len - sizeof(ip6);

	if (!k->v6_in) {
		vt_pkt_udp(frame, ETH_HLEN + len, seq, 0);
		memcpy(p, frame + ETH_HLEN, len);
		return;
	}
	/* the UDP datagram of a frame over IPv4, its checksum aside */
	vt_pkt_udp(frame, ETH_HLEN + sizeof(struct iphdr) + udp, seq, 0);
	ip6.payload_len = htons((uint16_t)udp);
	inet_pton(AF_INET6, "fd09::1", &ip6.saddr);
	inet_pton(AF_INET6, "fd09::2", &ip6.daddr);
	memcpy(p, &ip6, sizeof(ip6));
	memcpy(p + sizeof(ip6), frame + ETH_HLEN + sizeof(struct iphdr), udp);
}

/* Takes what is UDP to our port, counted from where the frame has to begin */
static void attach(const struct kind *k, struct vt_nl *nl, uint32_t ring, uint32_t *id)
{
	const uint32_t port = k->header + (k->v6_in ? 40 : 20) + 2;
	const struct sock_filter prog[] = {
		BPF_STMT(BPF_LD | BPF_B | BPF_ABS, k->header),
		BPF_STMT(BPF_ALU | BPF_AND | BPF_K, 0xf0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, k->v6_in ? 0x60 : 0x40, 0, 3),
		BPF_STMT(BPF_LD | BPF_H | BPF_ABS, port),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, VT_PKT_DPORT, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, 0x40000),
		BPF_STMT(BPF_RET | BPF_K, 0),
	};
	struct vt_att a = {
		.ifname = "t0", .rings = { ring }, .n = 1,
		.filter = prog, .nfilter = VT_COUNT(prog),
	};
	int r = vt_att_new(nl, &a);

	if (r < 0)
		DIE("attach: %s", strerror(-r));
	*id = (uint32_t)r;
}

static void check(const struct kind *k, const struct rgate_slot *s, const uint8_t *p,
		  size_t len)
{
	const uint16_t l4 = k->header + (k->v6_in ? 40 : 20);
	const uint8_t *data = vt_slot_data(s);

	EXPECT_EQ(s->dev_type, k->type);
	EXPECT_EQ(s->protocol, k->v6_in ? ETH_P_IPV6 : ETH_P_IP);
	EXPECT_EQ(s->len, k->header + len);
	EXPECT_EQ(s->wire_len, k->header + len);
	EXPECT_EQ(s->l3_off, k->header);
	EXPECT_EQ(s->l4_off, l4);
	EXPECT_EQ(s->payload_off, l4 + 8);
	EXPECT_EQ(s->ip_proto, IPPROTO_UDP);
	if (s->len == k->header + len && memcmp(data + k->header, p, len))
		FAIL("contents of %zu bytes differ", len);
	/* what is before it, where something is: the outer packet's headers */
	if (k->header)
		EXPECT(data[0] == 0x45 && data[9] == IPPROTO_GRE);
}

static void through(const struct kind *k)
{
	/* a device's address may be as long as IPv6's; none is used here */
	struct {
		struct sockaddr_ll ll;
		uint8_t more[16];
	} to = { .ll = {
		.sll_family = AF_PACKET,
		.sll_protocol = htons(k->v6_in ? ETH_P_IPV6 : ETH_P_IP),
	} };
	int tx, ns = tunnel(k), old = vt_netns_self();
	struct vt_ring ring;
	uint8_t p[1400];
	struct vt_nl nl;
	unsigned int i;
	uint32_t att;

	vt_netns_enter(ns);
	vt_nl_open(&nl);
	vt_ring_open(&ring, 64, 2048, 0, 0);
	attach(k, &nl, ring.id, &att);
	vt_netns_enter(old);
	tx = socket(AF_PACKET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	REQUIRE(tx >= 0);
	to.ll.sll_ifindex = (int)vt_ifindex("t0");
	for (i = 0; i < 20; i++) {
		size_t len = 64 + i * 65;
		const struct rgate_slot *s;

		packet(k, p, len, i);
		REQUIRE(sendto(tx, p, len, 0, (void *)&to, sizeof(to)) == (ssize_t)len);
		s = vt_ring_wait(&ring, 5000);
		if (!s)
			DIE("packet %u did not come; of %llu seen the filter took %llu", i,
			    (unsigned long long)vt_att_stat(&nl, att, RGATE_A_ATT_STATS_SEEN),
			    (unsigned long long)vt_att_stat(&nl, att,
							    RGATE_A_ATT_STATS_FILTERED));
		check(k, s, p, len);
		vt_ring_done(&ring);
	}
	close(tx);
}

#define THROUGH(fn_, ...)							\
	static void fn_(void)							\
	{									\
		through(&(struct kind){ __VA_ARGS__ });				\
	}

THROUGH(gre, .type = ARPHRD_IPGRE,
	.make = "ip link add t0 type gre local $L remote $R ttl 64")
THROUGH(gre_headers, .type = ARPHRD_IPGRE, .header = 24,
	.make = "ip link add t0 type gre local $L remote $R ttl 64",
	.make_rx = "ip link add t0 type gre local $L ttl 64")
THROUGH(ip6gre, .type = ARPHRD_IP6GRE, .v6_out = true,
	.make = "ip link add t0 type ip6gre local $L remote $R")
THROUGH(ipip, .type = ARPHRD_TUNNEL,
	.make = "ip link add t0 type ipip local $L remote $R ttl 64")
THROUGH(sit, .type = ARPHRD_SIT, .v6_in = true,
	.make = "ip link add t0 type sit local $L remote $R ttl 64")
THROUGH(sit_ipip, .type = ARPHRD_SIT,
	.make = "ip link add t0 type sit mode any local $L remote $R ttl 64")
THROUGH(ip6tnl, .type = ARPHRD_TUNNEL6, .v6_out = true,
	.make = "ip link add t0 type ip6tnl mode any local $L remote $R")
THROUGH(vti, .type = ARPHRD_TUNNEL,
	.make = "ip link add t0 type vti local $L remote $R key 5 && "
		IPSEC("0.0.0.0/0", "mark 5"))
THROUGH(vti6, .type = ARPHRD_TUNNEL6, .v6_out = true, .v6_in = true,
	.make = "ip link add t0 type vti6 local $L remote $R key 5 && "
		IPSEC("::/0", "mark 5"))
THROUGH(xfrm, .type = ARPHRD_NONE,
	.make = "ip link add t0 type xfrm if_id 7 && " IPSEC("0.0.0.0/0", "if_id 7"))

static void wireguard(void)
{
	if (vt_sh("command -v wg >/dev/null"))
		vt_skip("wg(8) is not installed");
	vt_must("umask 077; cd /run && for i in 1 2; do "
		"wg genkey >vt-key$i && wg pubkey <vt-key$i >vt-pub$i || exit 1; done");
	through(&(struct kind){
		.type = ARPHRD_NONE,
		.make = "ip link add t0 type wireguard && "
			"wg set t0 listen-port 51820 private-key /run/vt-key$I "
			"peer $(cat /run/vt-pub$O) allowed-ips 0.0.0.0/0 endpoint $R:51820",
	});
}

static const struct vt_case cases[] = {
	{ .name = "GRE", .fn = gre },
	{ .name = "GRE to many, which has headers", .fn = gre_headers },
	{ .name = "GRE over IPv6", .fn = ip6gre },
	{ .name = "IP in IP", .fn = ipip },
	{ .name = "IPv6 in IPv4 (sit)", .fn = sit },
	{ .name = "IPv4 by sit", .fn = sit_ipip },
	{ .name = "IP in IPv6", .fn = ip6tnl },
	{ .name = "IPsec: vti", .fn = vti },
	{ .name = "IPsec over IPv6: vti6", .fn = vti6 },
	{ .name = "IPsec: xfrm", .fn = xfrm },
	{ .name = "WireGuard", .fn = wireguard },
};

VT_MAIN(cases)
