// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * The same filter, once in the receive hook and once as part of an XDP program, on the
 * same device: the same frames match, and as much of them is wanted, whether there is
 * a VLAN tag (in the frame for XDP, beside it in the hook) or none.
 */
#include "lib/vt.h"

#include <bpf/bpf.h>
#include <linux/if_link.h>
#include <ringgate/rgate_ctl.h>

#include "xdp.h"
#include "xdp_prog.h"

#define FRAMES	160
#define ROOM	512

static struct vt_nl nl;
static struct vt_ring hook_ring, xdp_ring;
static struct frame {
	size_t len;
	bool tagged;
	uint8_t data[ROOM];
} frames[FRAMES];
static int tx, btf_fd;
static uint32_t func;

static uint32_t pick(uint32_t n)
{
	return (uint32_t)(vt_rand() % n);
}

static size_t put16(uint8_t *p, uint16_t v)
{
	p[0] = (uint8_t)(v >> 8);
	p[1] = (uint8_t)v;
	return 2;
}

/* What the expressions below ask for, and its neighbours */
static size_t put_l4(uint8_t *p, uint8_t proto)
{
	static const uint16_t ports[] = { 53, 80, 4711, 4712, 20000 };

	put16(p, ports[pick(5)]);
	put16(p + 2, ports[pick(5)]);
	if (proto == 6) {
		p[12] = (uint8_t)((5 + pick(3)) << 4);
		p[13] = (uint8_t)pick(64);
	}
	p[20] = (uint8_t)pick(4);
	return 40;
}

static size_t put_l3(uint8_t *p, uint16_t *type)
{
	static const uint8_t protos[] = { 17, 17, 6, 1, 58 };
	uint8_t proto = protos[pick(5)];
	size_t words = 5 + pick(3);

	switch (pick(6)) {
	case 0:
	case 1:
		*type = 0x0800;
		p[0] = (uint8_t)(0x40 | words);
		put16(p + 6, pick(4) ? 0 : (uint16_t)pick(8192));
		p[9] = proto;
		memcpy(p + 12, "\x0a\x09\x00", 3);
		p[15] = (uint8_t)pick(3);
		memcpy(p + 16, pick(4) ? "\x0a\x09\x00" : "\xe0\x00\x00", 3);
		p[19] = (uint8_t)pick(3);
		return words * 4 + put_l4(p + words * 4, proto);
	case 2:
		*type = 0x86dd;
		p[0] = 0x60;
		p[6] = proto;
		p[23] = (uint8_t)pick(3);
		return 40 + put_l4(p + 40, proto);
	case 3:
		*type = 0x0806;
		return 28;
	case 4:
		*type = (uint16_t)(40 + pick(200));	/* a length: LLC */
		return 40;
	default:
		*type = pick(2) ? 0x88b5 : 0x8847;
		return 40;
	}
}

static void make_frame(unsigned int i)
{
	static const uint16_t tags[] = { 0x8100, 0x8100, 0x88a8 };
	struct frame *f = &frames[i];
	unsigned int t, ntags = pick(3);
	size_t at = 12, l3;
	uint8_t body[ROOM];
	uint16_t type;

	for (l3 = 0; l3 < sizeof(body); l3++) {
		body[l3] = (uint8_t)vt_rand();
		f->data[l3] = (uint8_t)vt_rand();
	}
	memcpy(f->data, pick(3) ? "\x02\x01\x02\x03\x04\x05" : "\xff\xff\xff\xff\xff\xff", 6);
	/* by which it is known again */
	memcpy(f->data + 6, "\x02\xaa\x00\x00", 4);
	put16(f->data + 10, (uint16_t)i);
	l3 = put_l3(body, &type);
	for (t = 0; t < ntags; t++) {
		at += put16(f->data + at, tags[pick(3)]);
		at += put16(f->data + at, (uint16_t)(pick(8) << 13 | (4 + pick(4))));
	}
	at += put16(f->data + at, type);
	memcpy(f->data + at, body, l3 + 60);
	f->len = at + l3 + 10 + pick(50);
	f->tagged = ntags > 0;
}

static void setup(void)
{
	unsigned int i;
	int err = xdp_func(&btf_fd, &func);

	if (err == -ENOENT)
		vt_skip("this kernel does not know the module's types");
	REQUIRE(!err);
	vt_nl_open(&nl);
	vt_veth("va", "vb", 0);
	vt_ring_open(&hook_ring, 256, 1024, 0, RGATE_POLICY_DROP);
	vt_ring_open(&xdp_ring, 256, 1024, 0, RGATE_POLICY_DROP);
	tx = vt_tx_open("va");
	for (i = 0; i < FRAMES; i++)
		make_frame(i);
}

static uint32_t attach(uint32_t kind, uint32_t ring, const struct sock_fprog *f)
{
	struct vt_att a = {
		.ifname = "vb", .rings = { ring }, .n = 1, .kind = kind,
		.action = RGATE_ACTION_MIRROR,
		.filter = f ? f->filter : NULL, .nfilter = f ? f->len : 0,
	};
	int id = vt_att_new(&nl, &a);

	if (id < 0)
		DIE("attaching: %s", strerror(-id));
	return (uint32_t)id;
}

static int load(uint32_t att, const struct sock_fprog *f, const char *what)
{
	static char log[1 << 16];
	struct rgate_ident ident = { .id = att, .cookie = vt_att_cookie(&nl, att) };
	struct bpf_insn *insns;
	size_t n;
	int fd, err = xdp_prog(f, xdp_call(func), &ident, &insns, &n);

	if (err)
		DIE("%s: not translated: %s", what, strerror(-err));
	fd = xdp_load(btf_fd, insns, n, NULL, 0);
	if (fd < 0) {
		fd = xdp_load(btf_fd, insns, n, log, sizeof(log));
		DIE("%s: refused: %s ...%s", what, strerror(-fd),
		    strlen(log) > 600 ? log + strlen(log) - 600 : log);
	}
	free(insns);
	return fd;
}

static uint64_t seen(uint32_t att)
{
	struct vt_att_info ai;

	REQUIRE(!vt_att_get(&nl, att, &ai));
	return ai.st[RGATE_A_ATT_STATS_SEEN];
}

/* How much of each frame is there; 0: it is not */
static unsigned int collect(struct vt_ring *r, uint32_t lens[FRAMES])
{
	const struct rgate_slot *s;
	unsigned int n = 0;

	memset(lens, 0, FRAMES * sizeof(*lens));
	while ((s = vt_ring_next(r))) {
		const uint8_t *d = vt_slot_data(s);
		unsigned int i = d[10] << 8 | d[11];

		/* those that want less than the addresses are none of these filters */
		REQUIRE(s->len >= 12 && i < FRAMES);
		lens[i] = s->len;
		n++;
		vt_ring_done(r);
	}
	return n;
}

/* All frames past both; how many match */
static unsigned int compare(const char *what, const struct sock_fprog *f)
{
	const struct bpf_link_create_opts opts = {
		.sz = sizeof(opts), .flags = XDP_FLAGS_DRV_MODE,
	};
	uint32_t by_hook[FRAMES], by_xdp[FRAMES];
	uint32_t hook = attach(RGATE_KIND_HOOK, hook_ring.id, f);
	uint32_t xdp = attach(RGATE_KIND_XDP, xdp_ring.id, NULL);
	int fd = load(xdp, f, what), link;
	unsigned int i, n;

	link = bpf_link_create(fd, (int)vt_ifindex("vb"), BPF_XDP, &opts);
	if (link < 0)
		DIE("%s: the link: %s", what, strerror(errno));
	for (i = 0; i < FRAMES; i++)
		REQUIRE(!vt_tx_send(tx, frames[i].data, frames[i].len));
	if (!VT_UNTIL(seen(hook) >= FRAMES && seen(xdp) >= FRAMES, 20000))
		DIE("%s: %llu in the hook, %llu in XDP", what,
		    (unsigned long long)seen(hook), (unsigned long long)seen(xdp));
	n = collect(&hook_ring, by_hook);
	collect(&xdp_ring, by_xdp);
	for (i = 0; i < FRAMES; i++) {
		uint32_t tag = by_hook[i] && frames[i].tagged ? 4 : 0;

		if (by_hook[i] + tag != by_xdp[i])
			FAIL("%s: frame %u of %zu bytes%s: hook %u, XDP %u", what, i,
			     frames[i].len, frames[i].tagged ? ", tagged" : "",
			     by_hook[i], by_xdp[i]);
	}
	REQUIRE(!vt_att_del(&nl, hook) && !vt_att_del(&nl, xdp));
	close(link);
	close(fd);
	return n;
}

static const char *const expressions[] = {
	"ip", "ip6", "arp", "udp", "tcp", "icmp6 or icmp", "vlan", "not vlan", "vlan 5",
	"vlan 5 and udp", "vlan and vlan 6", "vlan and (arp or ip6)", "udp port 4711",
	"tcp dst port 80 or udp src port 53", "portrange 4000-5000", "host 10.9.0.1",
	"dst net 224.0.0.0/4", "ether broadcast", "ether dst 02:01:02:03:04:05",
	"ether[9:4] & 0xff = 8", "ether[11:2] & 7 = 0", "ether[12:2] > 0x0800",
	"tcp[tcpflags] & tcp-syn != 0", "udp[20] = 1", "ip[0] & 0xf > 5", "greater 130",
	"len & 3 = 1", "ip6 and udp port 53", "llc", "mpls", "inbound and ip",
	"not (udp or tcp) and not arp", "ether proto 0x88b5",
	"(vlan 4 or vlan 5) and udp port 4711",
};

static void same_expressions(unsigned int half)
{
	unsigned int i, some = 0;

	setup();
	for (i = half; i < VT_COUNT(expressions); i += 2) {
		struct sock_fprog f;
		char why[256];
		unsigned int n;

		if (rgate_filter_compile("vb", expressions[i], &f, why, sizeof(why)))
			DIE("%s: %s", expressions[i], why);
		n = compare(expressions[i], &f);
		some += n && n < FRAMES;
		rgate_filter_free(&f);
	}
	/* Frames that all filters take, or none, would show nothing. */
	EXPECT(some * 4 >= VT_COUNT(expressions) / 2 * 3);
}

static void expressions_1(void)
{
	same_expressions(0);
}

static void expressions_2(void)
{
	same_expressions(1);
}

static void none_matches(void)
{
	struct sock_fprog f;

	setup();
	REQUIRE(!rgate_filter_compile("vb", "outbound", &f, NULL, 0));
	EXPECT_EQ(compare("outbound", &f), 0);
	rgate_filter_free(&f);
}

#define STMT(c, v)	{ (c), 0, 0, (uint32_t)(v) }
#define JUMP(c, v, t, f) { (c), (t), (f), (uint32_t)(v) }

/*
 * Reads of all sizes at all offsets around the tag, absolute and by X, mixed into one
 * number; its low bits are the bytes wanted, so that a wrong byte shows in most frames.
 */
static void around_the_tag(void)
{
	static const uint16_t sizes[] = { BPF_B, BPF_H, BPF_W };
	struct sock_filter v[400];
	struct sock_fprog f = { .filter = v };
	uint16_t n = 0;
	unsigned int s, off;

	setup();
	v[n++] = (struct sock_filter)STMT(BPF_LD | BPF_IMM, 1);
	v[n++] = (struct sock_filter)STMT(BPF_ST, 3);
	for (s = 0; s < 3; s++)
		for (off = 7; off < 19; off++) {
			v[n++] = (struct sock_filter)STMT(BPF_LDX | BPF_IMM, off - 5);
			v[n++] = off & 1 ? (struct sock_filter)
				STMT(BPF_LD | BPF_ABS | sizes[s], off) :
				(struct sock_filter)STMT(BPF_LD | BPF_IND | sizes[s], 5);
			v[n++] = (struct sock_filter)STMT(BPF_LDX | BPF_MEM, 3);
			v[n++] = (struct sock_filter)STMT(BPF_ALU | BPF_XOR | BPF_X, 0);
			v[n++] = (struct sock_filter)STMT(BPF_ALU | BPF_MUL | BPF_K,
							  2654435761U);
			v[n++] = (struct sock_filter)STMT(BPF_ST, 3);
		}
	v[n++] = (struct sock_filter)STMT(BPF_ALU | BPF_RSH | BPF_K, 26);
	v[n++] = (struct sock_filter)STMT(BPF_ALU | BPF_ADD | BPF_K, 12);
	v[n++] = (struct sock_filter)STMT(BPF_RET | BPF_A, 0);
	f.len = n;
	EXPECT_EQ(compare("reads around the tag", &f), FRAMES);
}

/* The other side of each size, by X, where off and even change places */
static void around_the_tag_by_x(void)
{
	unsigned int off;

	setup();
	for (off = 9; off < 12; off++) {
		struct sock_filter v[] = {
			STMT(BPF_LDX | BPF_IMM, off),
			STMT(BPF_LD | BPF_IND | BPF_W, 0),
			STMT(BPF_ALU | BPF_MUL | BPF_K, 2654435761U),
			STMT(BPF_ALU | BPF_RSH | BPF_K, 26),
			STMT(BPF_ALU | BPF_ADD | BPF_K, 12),
			STMT(BPF_RET | BPF_A, 0),
		};
		struct sock_fprog f = { .len = VT_COUNT(v), .filter = v };

		EXPECT_EQ(compare("a word across", &f), FRAMES);
	}
}

/* Ends of frames, division, shifts, the length, and what a program may do otherwise */
static void odd_programs(void)
{
	struct sock_filter beyond[] = {
		STMT(BPF_LD | BPF_LEN, 0),
		STMT(BPF_ALU | BPF_SUB | BPF_K, 2),
		STMT(BPF_MISC | BPF_TAX, 0),
		STMT(BPF_LD | BPF_IND | BPF_H, 0),	/* the last two */
		STMT(BPF_LDX | BPF_LEN, 0),
		STMT(BPF_ALU | BPF_AND | BPF_K, 1),
		JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0, 0, 1),
		STMT(BPF_LD | BPF_IND | BPF_B, 0xffffffffU),	/* the last one */
		STMT(BPF_LD | BPF_IND | BPF_B, 0),	/* one too far */
		STMT(BPF_RET | BPF_K, 100),
	};
	struct sock_filter divide[] = {
		STMT(BPF_LD | BPF_ABS | BPF_B, 15),
		STMT(BPF_ALU | BPF_AND | BPF_K, 3),
		STMT(BPF_MISC | BPF_TAX, 0),
		STMT(BPF_LD | BPF_IMM, 120),
		STMT(BPF_ALU | BPF_DIV | BPF_X, 0),	/* by 0: ends */
		STMT(BPF_ALU | BPF_LSH | BPF_X, 0),
		STMT(BPF_ALU | BPF_NEG, 0),
		STMT(BPF_ALU | BPF_NEG, 0),
		STMT(BPF_RET | BPF_A, 0),
	};
	struct sock_filter header[] = {
		STMT(BPF_LDX | BPF_B | BPF_MSH, 14),
		STMT(BPF_MISC | BPF_TXA, 0),
		JUMP(BPF_JMP | BPF_JGE | BPF_K, 12, 1, 0),
		STMT(BPF_RET | BPF_K, 0),
		STMT(BPF_RET | BPF_A, 0),
	};
	struct sock_filter tag[] = {
		STMT(BPF_LD | BPF_ABS | BPF_W, SKF_AD_OFF + SKF_AD_VLAN_TAG_PRESENT),
		JUMP(BPF_JMP | BPF_JEQ | BPF_K, 1, 1, 0),
		STMT(BPF_RET | BPF_K, 50),
		STMT(BPF_LD | BPF_ABS | BPF_W, SKF_AD_OFF + SKF_AD_VLAN_TPID),
		STMT(BPF_ST, 15),
		STMT(BPF_LD | BPF_ABS | BPF_W, SKF_AD_OFF + SKF_AD_VLAN_TAG),
		STMT(BPF_LDX | BPF_MEM, 15),
		STMT(BPF_ALU | BPF_XOR | BPF_X, 0),
		STMT(BPF_ALU | BPF_MUL | BPF_K, 2654435761U),
		STMT(BPF_ALU | BPF_RSH | BPF_K, 26),
		STMT(BPF_ALU | BPF_ADD | BPF_K, 12),
		STMT(BPF_RET | BPF_A, 0),
	};
	struct sock_fprog f;

	setup();
	f = (struct sock_fprog){ VT_COUNT(beyond), beyond };
	EXPECT_EQ(compare("one byte too far", &f), 0);
	beyond[8] = beyond[7];
	compare("the last bytes", &f);
	f = (struct sock_fprog){ VT_COUNT(divide), divide };
	compare("a division", &f);
	f = (struct sock_fprog){ VT_COUNT(header), header };
	compare("a header's length", &f);
	f = (struct sock_fprog){ VT_COUNT(tag), tag };
	EXPECT_EQ(compare("what the tag says", &f), FRAMES);
}

static const struct vt_case cases[] = {
	{ .name = "expressions", .fn = expressions_1, .secs = 120 },
	{ .name = "more expressions", .fn = expressions_2, .secs = 120 },
	{ .name = "an expression that nothing matches", .fn = none_matches },
	{ .name = "reads around the tag", .fn = around_the_tag },
	{ .name = "words across the tag", .fn = around_the_tag_by_x },
	{ .name = "programs at their limits", .fn = odd_programs },
};

VT_MAIN(cases)
