// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * Writes a pcapng file with the frames that receivers tend to get wrong: VLAN and
 * double VLAN tags, IPv4 and IPv6 fragments, IPv6 with an extension header, jumbo
 * frames, and the shortest.
 */
#include <errno.h>
#include <linux/if_ether.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "demo.h"

#define FRAME_MAX 9216U

struct frame {
	unsigned char data[FRAME_MAX];
	size_t len;
};

static FILE *out;
static uint32_t made;

static void put(struct frame *f, const void *p, size_t n)
{
	memcpy(f->data + f->len, p, n);
	f->len += n;
}

static void put8(struct frame *f, unsigned int v)
{
	f->data[f->len++] = (unsigned char)v;
}

static void put16(struct frame *f, unsigned int v)
{
	put8(f, v >> 8);
	put8(f, v & 0xff);
}

static void put32(struct frame *f, uint32_t v)
{
	put16(f, v >> 16);
	put16(f, v & 0xffff);
}

/* Bytes that depend on the frame's number and their place */
static void put_data(struct frame *f, size_t n)
{
	uint32_t x = 2654435761U * (made + 1);

	while (n--) {
		x = x * 1664525U + 1013904223U;
		put8(f, x >> 24);
	}
}

static void ethernet(struct frame *f)
{
	static const unsigned char src[ETH_ALEN] = DEMO_SRC_MAC;
	static const unsigned char dst[ETH_ALEN] = { 0x02, 0x72, 0x67, 0, 0, 2 };

	f->len = 0;
	put(f, dst, ETH_ALEN);
	put(f, src, ETH_ALEN);
}

/* @sum: what was summed up before */
static unsigned int ip_sum(const unsigned char *p, size_t n, uint32_t sum)
{
	size_t i;

	for (i = 0; i + 1 < n; i += 2)
		sum += (uint32_t)(p[i] << 8 | p[i + 1]);
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return ~sum & 0xffff;
}

/* @frag: the fragment word: flags and offset / 8 */
static void ipv4(struct frame *f, size_t payload, uint32_t id, unsigned int frag)
{
	unsigned char *h;
	unsigned int sum;

	put16(f, ETH_P_IP);
	h = f->data + f->len;
	put16(f, 0x4500);
	put16(f, (unsigned int)(20 + payload));
	put16(f, id & 0xffff);
	put16(f, frag);
	put16(f, 64 << 8 | 17);
	put16(f, 0);
	put32(f, 0xc6336401);	/* 198.51.100.1, a documentation address */
	put32(f, 0xc6336402);
	sum = ip_sum(h, 20, 0);
	h[10] = (unsigned char)(sum >> 8);
	h[11] = (unsigned char)sum;
}

/* UDP without a checksum */
static void udp(struct frame *f, size_t data)
{
	put16(f, 4000);
	put16(f, 4001);
	put16(f, (unsigned int)(8 + data));
	put16(f, 0);
}

static void ipv6(struct frame *f, size_t payload, unsigned int next)
{
	static const unsigned char doc[15] = { 0x20, 0x01, 0x0d, 0xb8 };

	put16(f, ETH_P_IPV6);
	put32(f, 0x60000000);
	put16(f, (unsigned int)payload);
	put8(f, next);
	put8(f, 64);
	put(f, doc, 15);
	put8(f, 1);
	put(f, doc, 15);
	put8(f, 2);
}

static void block(uint32_t type, const void *head, size_t head_len,
		  const void *data, size_t len)
{
	static const unsigned char zero[4];
	size_t pad = -(head_len + len) & 3;
	uint32_t total = (uint32_t)(12 + head_len + len + pad);

	if (fwrite(&type, 4, 1, out) != 1 || fwrite(&total, 4, 1, out) != 1 ||
	    fwrite(head, 1, head_len, out) != head_len ||
	    fwrite(data, 1, len, out) != len ||
	    fwrite(zero, 1, pad, out) != pad || fwrite(&total, 4, 1, out) != 1)
		demo_die(errno, "write");
}

static void file_head(void)
{
	/* byte order, version 1.0, section length unknown */
	static const uint32_t shb[4] = { 0x1a2b3c4d, 1, 0xffffffff, 0xffffffff };
	/* Ethernet, no limit; option 9: nanoseconds; end of options */
	static const uint32_t idb[2] = { 1, 0 };
	static const uint32_t opts[3] = { 1 << 16 | 9, 9, 0 };

	block(0x0a0d0d0a, shb, sizeof(shb), NULL, 0);
	block(1, idb, sizeof(idb), opts, sizeof(opts));
}

static void frame_out(const struct frame *f)
{
	uint64_t ns = 1000000000000000000ULL + made * 100000ULL;
	uint32_t epb[5] = {
		0, (uint32_t)(ns >> 32), (uint32_t)ns,
		(uint32_t)f->len, (uint32_t)f->len,
	};

	block(6, epb, sizeof(epb), f->data, f->len);
	made++;
}

static void make_udp4(size_t data)
{
	struct frame f;

	ethernet(&f);
	ipv4(&f, 8 + data, made, 0);
	udp(&f, data);
	put_data(&f, data);
	frame_out(&f);
}

static void make_vlan(unsigned int tags)
{
	struct frame f;

	ethernet(&f);
	if (tags > 1) {
		put16(&f, ETH_P_8021AD);
		put16(&f, 200);
	}
	put16(&f, ETH_P_8021Q);
	put16(&f, 3 << 13 | 100);
	ipv4(&f, 8 + 300, made, 0);
	udp(&f, 300);
	put_data(&f, 300);
	frame_out(&f);
}

/* One datagram of 4000 bytes in three pieces */
static void make_fragments4(void)
{
	static const size_t at[4] = { 0, 1480, 2960, 4000 };
	uint32_t first = made;
	struct frame f;
	int i;

	for (i = 0; i < 3; i++) {
		size_t n = at[i + 1] - at[i];

		ethernet(&f);
		ipv4(&f, n, first, (i < 2 ? 0x2000 : 0) | (unsigned int)at[i] / 8);
		if (!i) {
			udp(&f, 4000 - 8);
			n -= 8;
		}
		put_data(&f, n);
		frame_out(&f);
	}
}

/* IPv6 has no datagrams without a checksum. @n: bytes with the UDP header */
static void udp6_sum(struct frame *f, size_t n)
{
	unsigned char *u = f->data + f->len - n;
	uint32_t pseudo = (uint32_t)n + 17;
	unsigned int sum, i;

	for (i = 0; i < 32; i += 2)	/* the two addresses */
		pseudo += (uint32_t)(f->data[22 + i] << 8 | f->data[23 + i]);
	sum = ip_sum(u, n, pseudo);
	sum = sum ? sum : 0xffff;
	u[6] = (unsigned char)(sum >> 8);
	u[7] = (unsigned char)sum;
}

static void make_udp6(bool extension)
{
	struct frame f;

	ethernet(&f);
	ipv6(&f, (extension ? 8 : 0) + 8 + 200, extension ? 60 : 17);
	if (extension) {	/* destination options: padding */
		put16(&f, 17 << 8);
		put16(&f, 0x0104);
		put32(&f, 0);
	}
	udp(&f, 200);
	put_data(&f, 200);
	udp6_sum(&f, 8 + 200);
	frame_out(&f);
}

/* Two pieces of a packet of protocol 253, which is for experiments */
static void make_fragments6(void)
{
	uint32_t id = made;
	struct frame f;
	int i;

	for (i = 0; i < 2; i++) {
		ethernet(&f);
		ipv6(&f, 8 + 1208, 44);
		put16(&f, 253 << 8);
		put16(&f, (unsigned int)(i * 1208) | !i);
		put32(&f, id);
		put_data(&f, 1208);
		frame_out(&f);
	}
}

static void make_arp(void)
{
	struct frame f;

	ethernet(&f);
	put16(&f, ETH_P_ARP);
	put16(&f, 1);
	put16(&f, ETH_P_IP);
	put16(&f, 0x0604);
	put16(&f, 1);
	put(&f, f.data + ETH_ALEN, ETH_ALEN);
	put32(&f, 0xc6336401);
	put16(&f, 0);
	put32(&f, 0);
	put32(&f, 0xc6336402);
	frame_out(&f);
}

int main(int argc, char **argv)
{
	if (argc != 2) {
		fprintf(stderr, "usage: demo_mkpcap FILE\n");
		return 2;
	}
	out = fopen(argv[1], "w");
	if (!out)
		demo_die(errno, "%s", argv[1]);
	file_head();
	make_udp4(18);		/* 60 bytes, the shortest Ethernet frame */
	make_udp4(1472);
	make_vlan(1);
	make_vlan(2);
	make_fragments4();
	make_udp6(false);
	make_udp6(true);
	make_fragments6();
	make_udp4(4000);
	make_udp4(8972);	/* 9000 bytes of IP */
	make_arp();
	if (fclose(out))
		demo_die(errno, "%s", argv[1]);
	return 0;
}
