// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * Filters: the input is text, or a way through the grammar of tcpdump expressions.
 * What compiles has to be taken by the kernel that this runs on, and has to let pass
 * by the kernel's reckoning what an unoptimised program of the same text lets pass step
 * by step, whatever the packet.
 */
#include <ctype.h>
#include <errno.h>
#include <linux/filter.h>
#include <netdb.h>
#include <pcap/pcap.h>
#include <stdarg.h>
#include <sys/socket.h>
#include <unistd.h>

#include <ringgate/ringgate.h>

#include "cbpf.h"
#include "filter.h"
#include "fuzz.h"

#define TEXT_MAX	400
#define TERMS_MAX	12
#define PACKETS		3
#define PACKET_MAX	128
#define SNAPLEN		262144

static int sock[2];	/* packets go in at 0, and pass the filter of 1, or do not */

/* libpcap is not instrumented: pairs of instructions stand for its coverage. The corpus
 * that is kept has each instruction, not each pair. */
static uint8_t pairs[4096] __attribute__((section("__libfuzzer_extra_counters")));
static bool merging;

/* Names are not looked up: the network is nothing to play with. */

int getaddrinfo(const char *node, const char *service, const struct addrinfo *hints,
		struct addrinfo **res)
{
	(void)node;
	(void)service;
	(void)hints;
	*res = NULL;
	return EAI_NONAME;
}

struct netent *getnetbyname(const char *name)
{
	(void)name;
	return NULL;
}

/* A live device is nothing to play with either: `vlan` finds none. */

pcap_t *__wrap_pcap_create(const char *source, char *errbuf)
{
	(void)source;
	(void)errbuf;
	return NULL;
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc;
	(void)argv;
	merging = getenv("FUZZ_MERGE");
	FUZZ_CHECK(!socketpair(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, sock));
	return 0;
}

/* Expressions */

struct expr {
	struct fuzz_in *in;
	char text[TEXT_MAX + 1];
	size_t len;
	unsigned int terms;
};

static void __attribute__((format(printf, 2, 3))) add(struct expr *e, const char *fmt, ...)
{
	size_t room = sizeof(e->text) - e->len;
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(e->text + e->len, room, fmt, ap);
	va_end(ap);
	FUZZ_CHECK(n >= 0);
	e->len += (size_t)n < room ? (size_t)n : room - 1;
}

#define PICK(e, list) ((list)[fuzz_u8((e)->in) % (sizeof(list) / sizeof((list)[0]))])

static void address(struct expr *e)
{
	static const char *const more[] = {
		"10.0.0.1", "192.0.2.0/24", "2001:db8::1", "2001:db8::/32", "127.1",
		"02:00:00:00:00:01", "10.1", "lo", "localhost", "0xff", "255.255.255.255",
	};

	if (fuzz_u8(e->in) & 1)
		add(e, "%u.%u.%u.%u", fuzz_u8(e->in), fuzz_u8(e->in), fuzz_u8(e->in),
		    fuzz_u8(e->in));
	else
		add(e, "%s", PICK(e, more));
}

static void number(struct expr *e)
{
	static const char *const how[] = { "%u", "0x%x", "0%o" };
	static const uint32_t edge[] = { 0, 1, 12, 255, 256, 65535, 65536, 0x7fffffff,
					 0x80000000, 0xffffffff };
	uint8_t which = fuzz_u8(e->in);
	uint32_t v = which < 128 ? PICK(e, edge) : fuzz_u16(e->in);

	switch (which % 3) {
	case 0:
		add(e, how[0], v);
		break;
	case 1:
		add(e, how[1], v);
		break;
	default:
		add(e, how[2], v);
	}
}

/* NOLINTNEXTLINE(misc-no-recursion): terms are counted */
static void arithmetic(struct expr *e)
{
	static const char *const load[] = { "ether", "ip", "ip6", "tcp", "udp", "icmp", "arp" };
	static const char *const size[] = { "", ":1", ":2", ":4" };
	static const char *const op[] = { "+", "-", "*", "/", "%%", "&", "|", "^", "<<", ">>" };

	if (++e->terms > TERMS_MAX) {
		add(e, "1");
		return;
	}
	switch (fuzz_u8(e->in) % 5) {
	case 0:
		number(e);
		break;
	case 1:
		add(e, "len");
		break;
	case 2:
		add(e, "%s[", PICK(e, load));
		arithmetic(e);
		add(e, "%s]", PICK(e, size));
		break;
	case 3:
		add(e, "(");
		arithmetic(e);
		add(e, " %s ", PICK(e, op));
		arithmetic(e);
		add(e, ")");
		break;
	default:
		add(e, "%s[%u]", PICK(e, load), fuzz_u8(e->in));
	}
}

static void primitive(struct expr *e)
{
	static const char *const words[] = {
		"ip", "ip6", "arp", "rarp", "tcp", "udp", "icmp", "icmp6", "igmp", "sctp", "ah",
		"esp", "stp", "broadcast", "multicast", "ip broadcast", "ip multicast",
		"inbound", "outbound", "mpls", "mpls 5", "pppoes", "geneve 3", "atalk", "iso",
		"ether multicast", "llc", "ip protochain 6", "ip6 protochain 17", "vrrp", "ipx",
		"tcp[tcpflags] & tcp-syn != 0", "portrange 20-80", "udp portrange 1-3",
		"gateway localhost", "wlan type mgt", "ifname lo", "fddi", "carp", "pim",
		"link proto 5", "proto \\tcp", "ip proto 17", "ether proto 0x800",
		"ip6 proto 58", "vlan",
	};
	static const char *const dir[] = { "", "src ", "dst ", "src or dst ", "src and dst " };
	static const char *const kind[] = { "host ", "net ", "ether host ", "ip host ",
					    "ip6 host ", "arp host ", "ip net " };
	static const char *const port[] = { "port ", "tcp port ", "udp port ", "less ",
					    "greater ", "sctp port " };
	static const char *const rel[] = { "=", "!=", "<", ">", "<=", ">=", "==" };

	switch (fuzz_u8(e->in) & 3) {
	case 0:
		add(e, "%s", PICK(e, words));
		break;
	case 1:
		add(e, "%s%s", PICK(e, dir), PICK(e, kind));
		address(e);
		break;
	case 2:
		add(e, "%s", PICK(e, port));
		number(e);
		break;
	default:
		arithmetic(e);
		add(e, " %s ", PICK(e, rel));
		arithmetic(e);
	}
}

/* NOLINTNEXTLINE(misc-no-recursion): terms are counted */
static void expression(struct expr *e)
{
	if (++e->terms > TERMS_MAX) {
		add(e, "ip");
		return;
	}
	switch (fuzz_u8(e->in) % 6) {
	case 0:
		add(e, "not ");
		expression(e);
		break;
	case 1:
	case 2:
		add(e, "(");
		expression(e);
		add(e, fuzz_u8(e->in) & 1 ? " and " : " or ");
		expression(e);
		add(e, ")");
		break;
	default:
		primitive(e);
	}
}

/* Programs */

static void count_pairs(const struct sock_fprog *prog)
{
	unsigned int i, was = 0;

	for (i = 0; i < prog->len; i++) {
		unsigned int code = prog->filter[i].code;

		pairs[(was * 31 + code) % sizeof(pairs)] = 1;
		was = merging ? 0 : code;
	}
}

/* To the kernel a load from the last GiBs is one of something beside the packet. */
static bool loads_beside(const struct sock_fprog *prog)
{
	unsigned int i;

	for (i = 0; i < prog->len; i++) {
		unsigned int class = BPF_CLASS(prog->filter[i].code);
		unsigned int mode = BPF_MODE(prog->filter[i].code);

		if ((class == BPF_LD || class == BPF_LDX) &&
		    (mode == BPF_ABS || mode == BPF_IND || mode == BPF_MSH) &&
		    (mode == BPF_IND || prog->filter[i].k > 0x7fffffff))
			return true;
	}
	return false;
}

static bool passes_kernel(const void *packet, size_t len)
{
	char buf[PACKET_MAX];
	ssize_t n;

	FUZZ_CHECK(send(sock[0], packet, len, 0) == (ssize_t)len);
	n = recv(sock[1], buf, sizeof(buf), 0);
	FUZZ_CHECK(n == (ssize_t)len || (n < 0 && errno == EAGAIN));
	return n >= 0;
}

static size_t make_packet(struct fuzz_in *in, unsigned char *p)
{
	static const unsigned char head[] = {
		2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0, 0x45, 0, 0, 0x30, 0, 1, 0, 0, 0x40, 6,
		0, 0, 10, 0, 0, 1, 10, 0, 0, 2, 0x11, 0x11, 0x22, 0x22, 0, 0, 0, 1, 0, 0, 0, 2,
		0x50, 0x10,
	};
	size_t len = fuzz_u8(in) % PACKET_MAX + 1;
	unsigned int n;

	memset(p, 0, PACKET_MAX);
	memcpy(p, head, sizeof(head));
	for (n = fuzz_u8(in) & 7; n; n--)
		p[fuzz_u8(in) % PACKET_MAX] = fuzz_u8(in);
	return len;
}

/* A program of the same text, as plain as libpcap can make it */
static bool compile_plain(const char *text, struct bpf_program *plain)
{
	pcap_t *pc = pcap_open_dead(DLT_EN10MB, SNAPLEN);
	bool ok;

	FUZZ_CHECK(pc);
	ok = !pcap_compile(pc, plain, text, 0, PCAP_NETMASK_UNKNOWN);
	pcap_close(pc);
	return ok;
}

/*
 * libpcap's optimiser has mistakes of its own, which are not looked for here. It puts
 * loads before the tests that guard them, so that some packets that are too short for
 * these do not match; and comparisons of expressions it takes for constant that are not
 * (its issues 434, 437 and 1699), or leaves out what stands behind them, as in
 * "net 10.0.0.1 or arp or 1 == 2 or ip".
 */
static bool optimiser_errs(const char *text)
{
	return strpbrk(text, "<>=");
}

static void check_packet(const char *text, const struct sock_fprog *prog,
			 const struct bpf_program *plain, struct fuzz_in *in)
{
	const struct sock_filter *insns = (const struct sock_filter *)plain->bf_insns;
	unsigned char packet[PACKET_MAX];
	uint32_t len = (uint32_t)make_packet(in, packet);
	bool kernel = passes_kernel(packet, len), sure, plain_sure, match, plain_match;

	match = fuzz_cbpf(prog->filter, prog->len, packet, len, &sure);
	plain_match = fuzz_cbpf(insns, plain->bf_len, packet, len, &plain_sure);
	if (!plain_sure || optimiser_errs(text))
		plain_match = match;
	if (!sure || (match == kernel && plain_match == match))
		return;
	fprintf(stderr, "'%s' on %u bytes: %d by the kernel, %d step by step, %d if plain\n",
		text, len, kernel, match, plain_match);
	FUZZ_CHECK(0);
}

static void compare(const char *text, const struct sock_fprog *prog, struct fuzz_in *in)
{
	struct bpf_program plain;
	unsigned int i;

	if (!compile_plain(text, &plain))
		return;		/* some are too long as they are */
	for (i = 0; i < PACKETS; i++)
		check_packet(text, prog, &plain, in);
	pcap_freecode(&plain);
}

static void check_program(const char *text, const struct sock_fprog *prog,
			  struct fuzz_in *in)
{
	FUZZ_CHECK(prog->len >= 1 && prog->len <= RGATE_FILTER_LEN_MAX && prog->filter);
	FUZZ_CHECK(BPF_CLASS(prog->filter[prog->len - 1].code) == BPF_RET);
	count_pairs(prog);
	if (setsockopt(sock[1], SOL_SOCKET, SO_ATTACH_FILTER, prog, sizeof(*prog))) {
		fprintf(stderr, "the kernel refuses '%s': %s\n", text, strerror(errno));
		FUZZ_CHECK(0);
	}
	if (!loads_beside(prog))
		compare(text, prog, in);
}

static bool of_name(char c)
{
	return isalnum((unsigned char)c) || (c && strchr("_-.", c));
}

/* A word of its own: neither before nor behind it what names are made of */
static bool has_vlan(const char *text)
{
	size_t i, len = strlen(text);

	for (i = 0; i + 4 <= len; i++)
		if (!memcmp(text + i, "vlan", 4) && (!i || !of_name(text[i - 1])) &&
		    !of_name(text[i + 4]))
			return true;
	return false;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_in in = { data, size };
	struct expr e = { .in = &in };
	struct sock_fprog prog;
	char why[100], *text;
	int err;

	if (fuzz_u8(&in) & 1) {
		e.len = fuzz_u8(&in);
		e.len = fuzz_bytes(&in, e.text, e.len);
		e.text[e.len] = 0;
	} else {
		expression(&e);
	}
	text = strdup(e.text);	/* ends where it ends */
	FUZZ_CHECK(text);
	FUZZ_CHECK(rgate_filter_uses_vlan(text) == has_vlan(text));
	err = rgate_filter_compile(NULL, text, &prog, why, sizeof(why));
	FUZZ_CHECK(memchr(why, 0, sizeof(why)));
	if (err) {
		FUZZ_CHECK(err == -EINVAL || (err == -EPERM && has_vlan(text)));
		FUZZ_CHECK(!prog.filter && !prog.len && why[0]);
	} else {
		FUZZ_CHECK(!why[0]);
		check_program(text, &prog, &in);
		rgate_filter_free(&prog);
	}
	free(text);
	return 0;
}
