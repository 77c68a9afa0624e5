// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * From slots to a capture file: the CLI's path, on slots with any header and any
 * frame. The file is read back twice: block by block here, and by libpcap where it can
 * (which wants one link type a file), and has to hold the frames that were put in. The
 * lines for the terminal have to be one a frame, in JSON or without anything that a
 * terminal would obey.
 */
#include <fcntl.h>
#include <pcap/pcap.h>
#include <sanitizer/asan_interface.h>
#include <sys/mman.h>
#include <unistd.h>

#include <ringgate/ringgate.h>

#include "cmd.h"
#include "frame.h"
#include "fuzz.h"
#include "output.h"
#include "parse.h"
#include "ring.h"

#define SLOTS		64
#define SLOT_SIZE	256
#define ROOM		(SLOT_SIZE - RGATE_SLOT_HDR)
#define FRAMES		40
#define FRAME_MAX	(RGATE_CHAIN_MAX * ROOM)
#define FILE_MAX	(8U << 20)

static unsigned char *slots;	/* ends where its memory does */
static int file = -1;		/* memfd that is written */

/* A frame as it has to come out */
struct want {
	bool exact;		/* all of it is known */
	uint64_t time_ns;
	uint32_t orig_len;
	uint32_t len;
	uint16_t link;
	unsigned char data[FRAME_MAX + FRAME_EXTRA];
};

struct work {
	struct fuzz_in in;
	struct capture_opts o;
	struct inputs inputs;
	struct input_dev dev;
	struct output out;
	char path[32];
	char *text;		/* what went to the terminal */
	size_t text_len;
	struct want *want;
	unsigned int frames;
};

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc;
	(void)argv;
	file = memfd_create("fuzz", MFD_CLOEXEC);
	slots = aligned_alloc(64, SLOTS * SLOT_SIZE);
	FUZZ_CHECK(file >= 0 && slots);
	return 0;
}

/* The frame's slots lie at the end of the memory, so that one byte too far is seen. */
static unsigned char *slot_at(unsigned int i)
{
	return slots + (SLOTS - RGATE_BATCH + i) * SLOT_SIZE;
}

static void consumer_init(struct rgate_consumer *c, unsigned int parts)
{
	*c = (struct rgate_consumer){
		.slots = slots, .mask = SLOTS - 1, .lap_shift = 6, .size_shift = 8,
		.done = SLOTS - parts, .pos = SLOTS, .end = SLOTS, .lap = 1,
	};
	c->cur = (const unsigned char *)rgate_consumer_slot(c, c->done);
}

/* Header fields from the input; offsets as the parser finds them, or any */
static void make_header(struct fuzz_in *in, struct rgate_slot *s)
{
	static const uint16_t types[] = { 1, 772, 801, 802, 803, 0xfffe, 519, 512, 999 };
	static const uint16_t protocols[] = { 0x0800, 0x86dd, 0x0806, 0x8100, 0x88a8 };
	uint8_t how = fuzz_u8(in);

	*s = (struct rgate_slot){ .seq = 1, .chain_cnt = 1 };
	s->dev_type = types[how % 9];
	s->protocol = how & 128 ? fuzz_u16(in) : protocols[how % 5];
	s->flags = fuzz_u16(in);
	s->wire_len = fuzz_u16(in);
	s->tstamp = fuzz_u64(in);
	s->ifindex = fuzz_u8(in) & 3;
	s->vlan_tci = fuzz_u16(in);
	s->vlan_proto = how & 64 ? 0x88a8 : 0x8100;
	s->pkt_type = fuzz_u8(in) & 7;
	s->queue = fuzz_u8(in);
	s->gap = how & 32 ? fuzz_u32(in) : 0;
}

/* Joins the parts as the slots have them: what is to be seen, in plain words */
static size_t join(unsigned char *flat, const struct rgate_consumer *c)
{
	unsigned int i, n = rgate_consumer_parts(c);
	size_t len = 0;

	for (i = 0; i < n; i++) {
		const struct rgate_slot *s = rgate_consumer_part(c, i);
		size_t part = s->len < ROOM ? s->len : ROOM;

		memcpy(flat + len, rgate_slot_data(s), part);
		len += part;
	}
	return len;
}

static bool plain_link(uint16_t dev_type)
{
	return dev_type == 1 || dev_type == 772 || (dev_type >= 801 && dev_type <= 803);
}

static void put16(struct want *w, uint16_t v)
{
	w->data[w->len++] = (unsigned char)(v >> 8);
	w->data[w->len++] = (unsigned char)v;
}

static void put(struct want *w, const unsigned char *data, size_t len)
{
	memcpy(w->data + w->len, data, len);
	w->len += (uint32_t)len;
}

static void want_cooked(struct want *w, const struct rgate_slot *s)
{
	static const unsigned char no_address[10];
	bool tag = s->flags & RGATE_SLOT_VLAN;

	w->link = LINK_LINUX_SLL;
	put16(w, s->pkt_type);
	put16(w, s->dev_type);
	put(w, no_address, sizeof(no_address));
	put16(w, tag ? s->vlan_proto : s->protocol);
	if (tag) {
		put16(w, s->vlan_tci);
		put16(w, s->protocol);
	}
}

static uint16_t link_of(uint16_t dev_type)
{
	switch (dev_type) {
	case 801:
		return LINK_IEEE802_11;
	case 802:
		return LINK_PRISM;
	case 803:
		return LINK_RADIOTAP;
	default:
		return LINK_ETHERNET;
	}
}

/* The frame with its tag in it, or a cooked header before it */
static void make_want(struct want *w, const struct rgate_consumer *c)
{
	static unsigned char flat[FRAME_MAX];
	const struct rgate_slot *s = rgate_consumer_part(c, 0);
	size_t len = join(flat, c), skip = 0, all = s->wire_len;
	bool tag = s->flags & RGATE_SLOT_VLAN;
	bool ip = s->protocol == 0x0800 || s->protocol == 0x86dd;

	w->time_ns = s->tstamp;
	w->len = 0;
	if (plain_link(s->dev_type)) {
		w->link = link_of(s->dev_type);
		if (tag && w->link == LINK_ETHERNET && len >= 12 && s->len >= 12) {
			put(w, flat, skip = 12);
			put16(w, s->vlan_proto);
			put16(w, s->vlan_tci);
			all += 4;
		}
		put(w, flat + skip, len - skip);
	} else {
		if (s->l3_off <= s->len && s->l3_off != RGATE_OFF_NONE)
			skip = s->l3_off;
		if (ip && !tag && s->dev_type != 999)
			w->link = LINK_RAW;
		else
			want_cooked(w, s);
		all = (all > skip ? all - skip : 0) + w->len;
		put(w, flat + skip, len - skip);
	}
	w->orig_len = (uint32_t)(all > w->len ? all : w->len);
}

/* Mostly one that lies in the slot, or not far behind it */
static uint16_t any_offset(struct fuzz_in *in)
{
	uint8_t off = fuzz_u8(in);

	return off < 250 ? off : off < 253 ? fuzz_u16(in) : RGATE_OFF_NONE;
}

/* The slots of one frame, as a producer of this library fills them */
static unsigned int make_frame(struct work *w)
{
	uint8_t how = fuzz_u8(&w->in);
	unsigned int parts = how & 128 ? how % RGATE_CHAIN_MAX + 1 : 1, i;
	struct rgate_slot first, *s;

	make_header(&w->in, &first);
	for (i = 0; i < parts; i++) {
		s = (struct rgate_slot *)slot_at(RGATE_BATCH - parts + i);
		__asan_unpoison_memory_region(s, SLOT_SIZE);
		*s = first;
		s->chain_idx = (uint8_t)i;
		s->chain_cnt = (uint8_t)parts;
		s->len = i + 1 < parts ? ROOM : fuzz_u8(&w->in) % (ROOM + 1);
		fuzz_bytes(&w->in, s + 1, s->len);
		/* what is not the frame's is not to be read */
		__asan_poison_memory_region((char *)(s + 1) + s->len, ROOM - s->len);
	}
	s = (struct rgate_slot *)slot_at(RGATE_BATCH - parts);
	if (how & 64) {
		s->l3_off = any_offset(&w->in);
		s->l4_off = any_offset(&w->in);
		s->ip_proto = fuzz_u8(&w->in);
	} else {
		rgate_parse_frame(s, s + 1, s->len);
	}
	return parts;
}

/*
 * A frame of the file's link type is written as it is. Any other is made one of it, or left
 * out and counted; of those only time and length are known here.
 */
static void put_frame(struct work *w, struct input_ring *r, const struct rgate_slot *s)
{
	struct want *want = &w->want[w->frames];
	const uint64_t frames = w->out.frames, misfits = w->out.misfits;

	make_want(want, &r->c);
	want->exact = want->link == w->out.link;
	FUZZ_CHECK(!output_frame(&w->out, r, s));
	if (w->out.frames == frames) {
		FUZZ_CHECK(!want->exact && w->out.misfits == misfits + 1);
		return;
	}
	FUZZ_CHECK(w->out.frames == frames + 1 && w->out.misfits == misfits);
	w->frames++;
}

static void put_frames(struct work *w)
{
	struct input_ring r = { .room = ROOM };
	const struct rgate_slot *s;
	unsigned int parts;

	while (w->in.len && w->frames < FRAMES) {
		parts = make_frame(w);
		consumer_init(&r.c, parts);
		s = rgate_consumer_part(&r.c, 0);
		put_frame(w, &r, s);
	}
}

/* The file, block by block */

struct block {
	const uint32_t *w;
	size_t words;
};

static void check_options(const struct block *b, size_t at)
{
	if (at == b->words - 1)
		return;
	for (;;) {
		uint32_t code, len;

		FUZZ_CHECK(at < b->words - 1);
		code = b->w[at] & 0xffff;
		len = b->w[at] >> 16;
		at += 1 + (len + 3) / 4;
		if (!code) {
			FUZZ_CHECK(!len && at == b->words - 1);
			return;
		}
	}
}

static void check_packet(const struct work *w, const struct block *b, unsigned int n,
			 const uint16_t *links, unsigned int nlinks)
{
	const struct want *want = &w->want[n];

	FUZZ_CHECK(b->words >= 8 && n < w->frames && b->w[2] < nlinks);
	FUZZ_CHECK(links[b->w[2]] == w->out.link);
	FUZZ_CHECK(((uint64_t)b->w[3] << 32 | b->w[4]) == want->time_ns);
	FUZZ_CHECK(b->w[5] <= b->w[6] && b->w[5] <= FRAME_MAX);
	FUZZ_CHECK(b->words >= 8 + (size_t)(b->w[5] + 3) / 4);
	if (want->exact) {
		FUZZ_CHECK(b->w[5] == want->len && b->w[6] == want->orig_len);
		FUZZ_CHECK(!memcmp(&b->w[7], want->data, want->len));
	}
	check_options(b, 7 + (b->w[5] + 3) / 4);
}

/*
 * Returns whether libpcap can read it: all interfaces have one link type. A second one
 * of LINK_RAW it takes for another than the first (1.10: it compares a DLT_ value with
 * a LINKTYPE_ value, and these differ for this one).
 */
static bool check_blocks(const struct work *w, const uint32_t *p, size_t words)
{
	unsigned int packets = 0, stats = 0, nlinks = 0, i;
	uint16_t links[4 * FRAMES];
	struct block b;

	FUZZ_CHECK(words >= 7 && p[0] == 0x0a0d0d0a && p[2] == 0x1a2b3c4d);
	for (; words; p += b.words, words -= b.words) {
		FUZZ_CHECK(words >= 3 && p[1] >= 12 && !(p[1] & 3) && p[1] / 4 <= words);
		b = (struct block){ p, p[1] / 4 };
		FUZZ_CHECK(p[b.words - 1] == p[1]);
		switch (p[0]) {
		case 0x0a0d0d0a:
			check_options(&b, 6);
			break;
		case 1:
			FUZZ_CHECK(nlinks < 4 * FRAMES && b.words >= 5);
			links[nlinks++] = (uint16_t)p[2];
			check_options(&b, 4);
			break;
		case 5:
			FUZZ_CHECK(b.words >= 6 && p[2] < nlinks);
			check_options(&b, 5);
			stats++;
			break;
		default:
			FUZZ_CHECK(p[0] == 6);
			check_packet(w, &b, packets++, links, nlinks);
		}
	}
	FUZZ_CHECK(packets == w->frames && stats == nlinks);
	for (i = 1; i < nlinks; i++)
		if (links[i] != links[0] || links[i] == LINK_RAW)
			return false;
	return nlinks;
}

static void check_libpcap(const struct work *w)
{
	char err[PCAP_ERRBUF_SIZE], path[32];
	struct pcap_pkthdr *h;
	const u_char *data;
	unsigned int n;
	pcap_t *pc;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", file);
	pc = pcap_open_offline_with_tstamp_precision(path, PCAP_TSTAMP_PRECISION_NANO, err);
	FUZZ_CHECK(pc);
	for (n = 0; pcap_next_ex(pc, &h, &data) == 1; n++) {
		const struct want *want = &w->want[n];

		FUZZ_CHECK(n < w->frames);
		FUZZ_CHECK((uint64_t)h->ts.tv_sec == want->time_ns / 1000000000);
		FUZZ_CHECK((uint64_t)h->ts.tv_usec == want->time_ns % 1000000000);
		if (!want->exact)
			continue;
		FUZZ_CHECK(h->caplen == want->len && h->len == want->orig_len);
		FUZZ_CHECK(!memcmp(data, want->data, h->caplen));
	}
	if (n < w->frames)
		fprintf(stderr, "libpcap, after %u packets: %s\n", n, pcap_geterr(pc));
	FUZZ_CHECK(n == w->frames);
	pcap_close(pc);
}

static void check_file(const struct work *w)
{
	off_t len = lseek(file, 0, SEEK_END);
	void *p;

	FUZZ_CHECK(len > 0 && len <= FILE_MAX && !(len & 3));
	p = malloc((size_t)len);
	FUZZ_CHECK(p && pread(file, p, (size_t)len, 0) == len);
	if (check_blocks(w, p, (size_t)len / 4))
		check_libpcap(w);
	free(p);
}

static void check_text(const struct work *w)
{
	const char *p = w->text, *end = p + w->text_len;
	unsigned int lines = 0;

	while (p < end) {
		const char *nl = memchr(p, '\n', (size_t)(end - p)), *q;

		FUZZ_CHECK(nl);
		if (w->o.json)
			FUZZ_CHECK(fuzz_json_ok(p, (size_t)(nl - p)));
		for (q = p; q < nl; q++)
			FUZZ_CHECK((unsigned char)*q >= 0x20 && (unsigned char)*q < 0x7f);
		p = nl + 1;
		lines++;
	}
	FUZZ_CHECK(lines == (w->o.print ? w->frames : 0));
}

/* A tcpdump expression is any text, and stands in the file as it is. */
static void options(struct work *w)
{
	uint8_t how = fuzz_u8(&w->in), n;

	snprintf(w->path, sizeof(w->path), "/proc/self/fd/%d", file);
	w->o.file = w->path;
	w->o.slot_size = SLOT_SIZE;
	w->o.chain = true;
	w->o.print = how & 1;
	w->o.json = how & 2;
	w->o.any = how & 4;
	w->o.udp = how & 8;
	if (how & 16) {
		n = fuzz_u8(&w->in);
		w->o.filter = calloc(1, n + 1U);
		FUZZ_CHECK(w->o.filter);
		fuzz_bytes(&w->in, w->o.filter, n);
	}
	snprintf(w->dev.name, sizeof(w->dev.name), "lo");
	w->dev.ifindex = 1;
	w->inputs = (struct inputs){ .devs = &w->dev, .ndevs = 1 };
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct want want[FRAMES];
	struct work w = { .in = { data, size }, .want = want };
	FILE *terminal = stdout;

	FUZZ_CHECK(!ftruncate(file, 0));
	options(&w);
	stdout = open_memstream(&w.text, &w.text_len);
	FUZZ_CHECK(stdout);
	FUZZ_CHECK(output_open(&w.out, &w.o) == EXIT_OK);
	FUZZ_CHECK(!output_begin(&w.out, &w.inputs));
	put_frames(&w);
	FUZZ_CHECK(!output_flush(&w.out) && !output_close(&w.out));
	fclose(stdout);
	stdout = terminal;
	check_file(&w);
	check_text(&w);
	free(w.text);
	free(w.o.filter);
	__asan_unpoison_memory_region(slots, SLOTS * SLOT_SIZE);
	return 0;
}
