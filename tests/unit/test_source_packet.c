// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * Frames of a device through the userspace source, between the two ends of a veth
 * pair in a network namespace of the test's own.
 */
#include "unit.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <net/if_arp.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "ended.h"

#define SKIPPED 77

static void write_file(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);

	/* a kernel without IPv6 has nothing to switch off */
	if (fd >= 0 && write(fd, text, strlen(text)) < 0)
		fprintf(stderr, "# %s: %s\n", path, strerror(errno));
	if (fd >= 0)
		close(fd);
}

/* Links come up in the background; before, what is sent is lost. */
static bool is_running(const char *ifname)
{
	struct timespec ts = { 0, 1000000 };
	struct ifreq ifr;
	int i, fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	memset(&ifr, 0, sizeof(ifr));
	strcpy(ifr.ifr_name, ifname);
	for (i = 0; i < 5000; i++) {
		if (!ioctl(fd, SIOCGIFFLAGS, &ifr) && ifr.ifr_flags & IFF_RUNNING)
			break;
		nanosleep(&ts, NULL);
	}
	close(fd);
	return i < 5000;
}

/* A namespace with va and vb; false: not possible here */
static bool own_net(void)
{
	if (unshare(CLONE_NEWNET) && unshare(CLONE_NEWUSER | CLONE_NEWNET))
		return false;
	write_file("/proc/sys/net/ipv6/conf/all/disable_ipv6", "1");
	write_file("/proc/sys/net/ipv6/conf/default/disable_ipv6", "1");
	return !system("ip link add va type veth peer name vb >/dev/null 2>&1 && "
		       "ip link set va mtu 9000 up && ip link set vb mtu 9000 up") &&
	       is_running("va") && is_running("vb");
}

static int open_tx(const char *ifname)
{
	struct sockaddr_ll ll = {
		.sll_family = AF_PACKET,
		.sll_ifindex = (int)if_nametoindex(ifname),
	};
	int fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0);

	unit_require(fd >= 0);
	unit_require(!bind(fd, (struct sockaddr *)&ll, sizeof(ll)));
	return fd;
}

/* An Ethernet frame with up to two tags, IPv4, UDP and a pattern; its length */
static size_t build(unsigned char *f, unsigned int tags, uint64_t i, size_t payload)
{
	static const unsigned char eth[12] = { 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
					       2, 0, 0, 0, 0, 9 };
	size_t n = sizeof(eth), ip;

	memcpy(f, eth, n);
	for (; tags; tags--) {
		f[n++] = tags == 2 ? 0x88 : 0x81;
		f[n++] = tags == 2 ? 0xa8 : 0x00;
		f[n++] = 0x20;
		f[n++] = (unsigned char)(tags + 40);
	}
	f[n++] = 0x08;
	f[n++] = 0x00;
	ip = n;
	memset(f + ip, 0, 28);
	f[ip] = 0x45;
	f[ip + 2] = (unsigned char)((28 + payload) >> 8);
	f[ip + 3] = (unsigned char)(28 + payload);
	f[ip + 8] = 64;
	f[ip + 9] = 17;
	f[ip + 22] = 0x12;	/* destination port 0x1200 */
	f[ip + 24] = (unsigned char)((8 + payload) >> 8);
	f[ip + 25] = (unsigned char)(8 + payload);
	unit_pattern(f + ip + 28, i, payload);
	return ip + 28 + payload;
}

static void transmit(int tx, unsigned int tags, uint64_t i, size_t payload)
{
	static unsigned char f[10000];
	size_t n = build(f, tags, i, payload);

	/* ENETDOWN: the other end has just been switched off */
	while (send(tx, f, n, 0) < 0)
		unit_require(errno == ENOBUFS || errno == EINTR || errno == ENETDOWN);
}

struct rx {
	struct rgate_ring *ring;
	struct rgate_source *src;
	struct rgate_consumer c;
};

static void rx_open(struct rx *r, uint32_t slot_size, uint32_t flags,
		    uint32_t policy, const char *ifname,
		    const struct rgate_source_opts *so)
{
	struct rgate_ring_opts o = RGATE_OPTS(rgate_ring_opts, .slots = 64,
		.slot_size = slot_size, .flags = flags, .policy = policy);

	unit_require(!rgate_ring_open_memfd(&r->ring, &o));
	unit_require(!rgate_source_start_packet(&r->src, &r->ring, 1, ifname, so));
	unit_require(!rgate_consumer_init(&r->c, r->ring, NULL));
}

static void rx_close(struct rx *r)
{
	unit_require(!source_ended(r->src));
	rgate_ring_close(r->ring);
}

/* The next frame is that one; headers of it in @hdr */
static void expect(struct rx *r, unsigned int tags, uint64_t i, size_t payload,
		   struct rgate_slot *hdr)
{
	static unsigned char got[10000], want[10000];
	size_t n = build(want, tags, i, payload);
	long len;

	while ((len = rgate_consumer_copy(&r->c, hdr, got, sizeof(got))) == -EAGAIN)
		unit_require(rgate_consumer_wait(&r->c, 10000) == 1);
	/* the outermost tag is in the header */
	if (tags) {
		memmove(want + 12, want + 16, n - 16);
		n -= 4;
	}
	unit_require(hdr->wire_len == n);
	unit_require((size_t)len <= n && !memcmp(got, want, (size_t)len));
	unit_require(hdr->dev_type == ARPHRD_ETHER);
	unit_require(hdr->pkt_type == PACKET_BROADCAST);
	unit_require(!!(hdr->flags & RGATE_SLOT_VLAN) == !!tags);
	unit_require(hdr->ip_proto == 17);
	unit_require(hdr->l3_off == 14 + (tags > 1 ? 4 : 0));
	unit_require(hdr->l4_off == hdr->l3_off + 20);
	unit_require(hdr->payload_off == hdr->l3_off + 28);
	/* which nobody has looked at, or left to the device */
	unit_require(!(hdr->flags & (RGATE_SLOT_CSUM_OK | RGATE_SLOT_CSUM_PARTIAL)));
	if (!!(hdr->flags & RGATE_SLOT_TRUNC) != ((size_t)len < n))
		unit_die(__FILE__, __LINE__, "TRUNC");
}

static void frames(void)
{
	int tx = open_tx("vb");
	struct rgate_slot hdr;
	struct rx r;
	uint64_t i;

	rx_open(&r, 2048, 0, RGATE_POLICY_DROP, "va", NULL);
	for (i = 0; i < 600; i++) {
		unsigned int tags = (unsigned int)(i % 3);

		transmit(tx, tags, i, 18 + i * 5 % 4000);
		expect(&r, tags, i, 18 + i * 5 % 4000, &hdr);
		unit_require(hdr.ifindex == if_nametoindex("va"));
		unit_require(hdr.protocol == (tags > 1 ? 0x8100 : 0x0800));
		if (tags) {
			unit_require(hdr.vlan_tci == (0x2000 | (tags + 40)));
			unit_require(hdr.vlan_proto == (tags == 2 ? 0x88a8 : 0x8100));
		}
	}
	rx_close(&r);
	close(tx);
}

static void chains(void)
{
	int tx = open_tx("vb");
	struct rgate_slot hdr;
	struct rx r;
	uint64_t i;

	rx_open(&r, 512, RGATE_RING_CHAIN, RGATE_POLICY_DROP, "va", NULL);
	for (i = 0; i < 200; i++) {
		transmit(tx, 1, i, 18 + i * 41 % 8000);
		expect(&r, 1, i, 18 + i * 41 % 8000, &hdr);
		unit_require(!(hdr.flags & RGATE_SLOT_TRUNC));
	}
	rx_close(&r);
	close(tx);
}

/* On its way through the machine itself a checksum is not reckoned, and the header says so. */
static void checksums(void)
{
	struct sockaddr_in to = {
		.sin_family = AF_INET, .sin_port = htons(9),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
	int tx = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	struct rgate_slot hdr;
	unsigned char got[256];
	struct rx r;

	unit_require(!system("ip link set lo up"));
	rx_open(&r, 2048, 0, RGATE_POLICY_DROP, "lo", NULL);
	unit_require(sendto(tx, "hello", 5, 0, (struct sockaddr *)&to, sizeof(to)) == 5);
	do {
		unit_require(rgate_consumer_wait(&r.c, 10000) == 1);
	} while (rgate_consumer_copy(&r.c, &hdr, got, sizeof(got)) < 0 || hdr.ip_proto != 17);
	unit_require(hdr.wire_len == 14 + 28 + 5 && !memcmp(got + 42, "hello", 5));
	unit_require(hdr.flags & RGATE_SLOT_CSUM_PARTIAL);
	unit_require(!(hdr.flags & RGATE_SLOT_CSUM_OK));
	rx_close(&r);
	close(tx);
}

/* What is sent by this machine on the device is not received. */
static void incoming_only(void)
{
	int tx = open_tx("vb"), out = open_tx("va");
	struct rgate_slot hdr;
	struct rx r, all;

	rx_open(&r, 2048, 0, RGATE_POLICY_DROP, "va", NULL);
	rx_open(&all, 2048, 0, RGATE_POLICY_DROP, NULL, NULL);
	transmit(out, 0, 1, 100);
	transmit(tx, 0, 2, 100);
	expect(&r, 0, 2, 100, &hdr);
	expect(&all, 0, 1, 100, &hdr);
	unit_require(hdr.ifindex == if_nametoindex("vb"));
	expect(&all, 0, 2, 100, &hdr);
	unit_require(hdr.ifindex == if_nametoindex("va"));
	rx_close(&r);
	rx_close(&all);
	close(tx);
	close(out);
}

static void filtered(void)
{
	struct rgate_source_opts o = RGATE_OPTS(rgate_source_opts,
						.filter = "vlan 41 and udp",
						.promisc = 1, .rcvbuf = 1 << 20);
	int tx = open_tx("vb");
	struct rgate_source *src;
	struct rgate_slot hdr;
	struct rx r;

	rx_open(&r, 2048, 0, RGATE_POLICY_DROP, "va", &o);
	transmit(tx, 0, 1, 100);
	transmit(tx, 1, 2, 100);
	transmit(tx, 0, 3, 100);
	transmit(tx, 1, 4, 100);
	expect(&r, 1, 2, 100, &hdr);
	expect(&r, 1, 4, 100, &hdr);
	o.filter = "no such filter";
	unit_require(rgate_source_start_packet(&src, &r.ring, 1, "va", &o) == -EINVAL);
	unit_require(rgate_source_start_packet(&src, &r.ring, 1, "vx", NULL) == -ENODEV);
	unit_require(rgate_source_start_packet(&src, &r.ring, 1, NULL, &o) == -EINVAL);
	o.filter = NULL;
	unit_require(rgate_source_start_packet(&src, &r.ring, 1, "va", &o) == -EBUSY);
	rx_close(&r);
	close(tx);
}

static void wait_received(struct rx *r, uint64_t n)
{
	struct timespec ts = { 0, 1000000 };
	struct rgate_source_stats st;
	int i;

	for (i = 0; i < 10000; i++) {
		rgate_source_stats(r->src, &st);
		if (st.received >= n)
			return;
		nanosleep(&ts, NULL);
	}
	unit_die(__FILE__, __LINE__, "received");
}

/* The stack has its own copy: what finds no room was passed to it. */
static void pass(void)
{
	int tx = open_tx("vb");
	struct rgate_source_stats ss;
	struct rgate_slot hdr;
	struct rgate_stats st;
	struct rx r;
	uint64_t i;

	rx_open(&r, 2048, 0, RGATE_POLICY_PASS, "va", NULL);
	for (i = 0; i < 100; i++)
		transmit(tx, 0, i, 100);
	wait_received(&r, 100);
	for (i = 0; i < 64; i++)
		expect(&r, 0, i, 100, &hdr);
	rgate_ring_stats(r.ring, &st);
	unit_require(st.passed == 36 && st.dropped_full == 0);
	rgate_source_stats(r.src, &ss);
	unit_require(ss.ring_drops == 0 && ss.socket_drops == 0);
	rx_close(&r);
	close(tx);
}

/* A device that goes down is waited for; one that is removed ends the source. */
static void device_gone(void)
{
	int tx = open_tx("vb"), tries = 0, w;
	struct rgate_slot hdr;
	struct rx r;

	rx_open(&r, 2048, 0, RGATE_POLICY_DROP, "va", NULL);
	unit_require(!system("ip link set va down && sleep 0.1 && ip link set va up"));
	/* the link takes its time to come up */
	do {
		transmit(tx, 0, 1, 100);
		w = rgate_consumer_wait(&r.c, 100);
	} while (!w && ++tries < 100);
	expect(&r, 0, 1, 100, &hdr);
	unit_require(!system("ip link del va"));
	while ((w = rgate_consumer_wait(&r.c, 10000)) == 1)
		rgate_consumer_copy(&r.c, NULL, NULL, 0);
	unit_require(w == -EPIPE);
	unit_require(source_ended(r.src) == -ENODEV);
	rgate_ring_close(r.ring);
	close(tx);
}

static void wait_errors(const struct rgate_source *src)
{
	struct rgate_source_stats ss = { 0 };
	struct timespec ts = { 0, 1000000 };
	int i;

	for (i = 0; i < 10000 && !ss.errors; i++) {
		nanosleep(&ts, NULL);
		unit_require(!rgate_source_stats(src, &ss));
	}
	unit_require(ss.errors == 1);
}

/* Of one that is down already the socket is told nothing more; nor of one that moves away. */
static void gone_while_down(void)
{
	struct rx r;

	rx_open(&r, 2048, 0, RGATE_POLICY_DROP, "va", NULL);
	unit_require(!system("ip link set va down && ip link set va name vc"));
	wait_errors(r.src);
	unit_require(rgate_consumer_wait(&r.c, 300) == 0);
	unit_require(!system("ip link del vc"));
	unit_require(rgate_consumer_wait(&r.c, 10000) == -EPIPE);
	unit_require(source_ended(r.src) == -ENODEV);
	rgate_ring_close(r.ring);
}

/* The same of one without a thread, whose owner asks now and then */
static void driven_gone(void)
{
	struct rgate_source_opts so = RGATE_OPTS(rgate_source_opts, .driven = 1);
	struct rx r;
	int i, ret;

	rx_open(&r, 2048, 0, RGATE_POLICY_DROP, "va", &so);
	unit_require(!rgate_source_turn(r.src));
	unit_require(!system("ip link set va down"));
	unit_require(!rgate_source_turn(r.src));
	unit_require(!rgate_source_turn(r.src));
	unit_require(!system("ip link del va"));
	for (i = 0; (ret = rgate_source_turn(r.src)) >= 0; i++)
		unit_require(i < 3);
	unit_require(ret == -ENODEV);
	unit_require(source_ended(r.src) == -ENODEV);
	rgate_ring_close(r.ring);
}

/* What cannot be is said, and nothing stays open; and only who asks has it all. */
static void refused(void)
{
	struct rgate_source_opts so = RGATE_OPTS(rgate_source_opts, .driven = 1);
	struct rgate_ring *ring = unit_ring(64, 256, 0, RGATE_POLICY_DROP);
	const unsigned int fds = unit_entries("/proc/self/fd");
	struct rgate_source *src, *second;
	unsigned int one;

	unit_require(rgate_source_start_packet(&src, &ring, 0, "va", &so) == -EINVAL);
	unit_require(rgate_source_start_packet(&src, &ring, 1, "nosuch", &so) == -ENODEV);
	so.filter = "udp and";
	unit_require(rgate_source_start_packet(&src, &ring, 1, "va", &so) == -EINVAL);
	so.filter = NULL;
	so.promisc = 1;
	unit_require(rgate_source_start_packet(&src, &ring, 1, NULL, &so) == -EINVAL);
	so.promisc = 2;
	unit_require(rgate_source_start_packet(&src, &ring, 1, "va", &so) == -EINVAL);
	unit_require(unit_entries("/proc/self/fd") == fds);
	so.promisc = 0;
	unit_require(!rgate_source_start_packet(&src, &ring, 1, "va", &so));
	unit_require(system("ip -d link show va | grep -q 'promiscuity 1'"));
	unit_require(!source_ended(src));
	so.promisc = 1;
	unit_require(!rgate_source_start_packet(&src, &ring, 1, "va", &so));
	unit_require(!system("ip -d link show va | grep -q 'promiscuity 1'"));
	unit_require(!source_ended(src));
	unit_require(system("ip -d link show va | grep -q 'promiscuity 1'"));
	/* One ring is not two sources': the second leaves nothing. */
	so.promisc = 0;
	unit_require(!rgate_source_start_packet(&src, &ring, 1, "va", &so));
	one = unit_entries("/proc/self/fd");
	unit_require(rgate_source_start_packet(&second, &ring, 1, "va", &so) == -EBUSY);
	unit_require(unit_entries("/proc/self/fd") == one);
	unit_require(!source_ended(src));
	unit_require(unit_entries("/proc/self/fd") == fds);
	rgate_ring_close(ring);
}

static void (*const parts[])(void) = {
	frames, chains, incoming_only, filtered, pass, device_gone, gone_while_down, driven_gone,
	refused, checksums,
};

static int child_part(int sock, void *arg)
{
	(void)sock;
	if (!own_net())
		return SKIPPED;
	parts[(uintptr_t)arg]();
	return 0;
}

static void part(void **state)
{
	int sock, st, pid = unit_fork(child_part, *state, &sock);

	assert_int_equal(waitpid(pid, &st, 0), pid);
	close(sock);
	if (WIFEXITED(st) && WEXITSTATUS(st) == SKIPPED)
		unit_skip("no network namespace of its own");
	assert_true(WIFEXITED(st));
	assert_int_equal(WEXITSTATUS(st), 0);
}

static const struct CMUnitTest tests[] = {
	{ "frames", part, NULL, NULL, (void *)0 },
	{ "chains", part, NULL, NULL, (void *)1 },
	{ "incoming_only", part, NULL, NULL, (void *)2 },
	{ "filtered", part, NULL, NULL, (void *)3 },
	{ "pass", part, NULL, NULL, (void *)4 },
	{ "device_gone", part, NULL, NULL, (void *)5 },
	{ "gone_while_down", part, NULL, NULL, (void *)6 },
	{ "driven_gone", part, NULL, NULL, (void *)7 },
	{ "refused", part, NULL, NULL, (void *)8 },
	{ "checksums", part, NULL, NULL, (void *)9 },
};

UNIT_MAIN(tests)
