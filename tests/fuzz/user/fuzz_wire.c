// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * Records of others: remote descriptors, the geometry of rings and of shards, and the messages by
 * which nodes prove who they are. What is accepted must be what the rules in the headers say,
 * told here a second time, and written out again it must be the same bytes.
 */
#include <endian.h>
#include <errno.h>
#include <sanitizer/asan_interface.h>

#include <ringgate/rgate_mem.h>

#include "fuzz.h"
#include "geometry.h"
#include "handshake.h"
#include "shard.h"

static bool descriptor_ok(const uint8_t *p, size_t len)
{
	unsigned __int128 end;
	uint64_t addr, length;
	uint32_t reserved;

	if (len != 32 || p[0] != 'R' || p[1] != 'G' || p[2] != 1 || p[3] & 0xe0)
		return false;
	memcpy(&addr, p + 8, 8);
	memcpy(&length, p + 16, 8);
	memcpy(&reserved, p + 28, 4);
	end = (unsigned __int128)le64toh(addr) + le64toh(length);
	return length && !reserved && end <= (unsigned __int128)1 << 64;
}

static void descriptor(struct fuzz_in *in)
{
	struct rgate_remote r;
	struct rgate_desc d;
	size_t len;
	uint8_t *p = fuzz_copy(in, 40, &len);
	int err = rgate_desc_parse(&r, p, len);

	FUZZ_CHECK(!err || err == -EPROTO || err == -EPROTONOSUPPORT);
	FUZZ_CHECK(!err == descriptor_ok(p, len));
	if (!err) {
		d = (struct rgate_desc){
			.magic = htole16(RGATE_DESC_MAGIC),
			.version = RGATE_DESC_VERSION,
			.access = (uint8_t)r.access,
			.rkey = htole32(r.rkey),
			.addr = htole64(r.addr),
			.length = htole64(r.length),
			.epoch = htole32(r.epoch),
		};
		FUZZ_CHECK(!memcmp(&d, p, sizeof(d)));
	}
	free(p);
}

static bool power_of_two(uint64_t v, uint64_t min, uint64_t max)
{
	return __builtin_popcountll(v) == 1 && v >= min && v <= max;
}

/* Areas in order, with nothing over the end of another or of the mapping */
static bool areas_ok(const struct rgate_geometry *g, size_t page)
{
	unsigned __int128 cons = g->cons_off, credits = g->credits_off, slots = g->slots_off;

	return cons >= sizeof(struct rgate_prod) &&
	       credits >= cons + sizeof(struct rgate_cons) &&
	       slots >= credits + (uint64_t)g->slots / RGATE_BATCH * 8 &&
	       g->map_len >= slots + (uint64_t)g->slots * g->slot_size &&
	       g->map_len <= SIZE_MAX / 2 && !(g->map_len % page) && !(g->cons_off % page) &&
	       !(g->slots_off % page) && !(g->credits_off % 64);
}

static bool geometry_ok(const struct rgate_geometry *g, size_t page)
{
	return power_of_two(g->slots, RGATE_SLOTS_MIN, RGATE_SLOTS_MAX) &&
	       power_of_two(g->slot_size, RGATE_SLOT_SIZE_MIN, RGATE_SLOT_SIZE_MAX) &&
	       g->handle < RGATE_HANDLES_MAX && areas_ok(g, page);
}

/* Every byte of a shard's memory belongs to one thing, and none lies beyond what was lent. */
static bool shard_ok(const struct rgate_shard_geometry *g, uint64_t lent)
{
	const uint64_t tasks = le32toh(g->tasks), payload = le32toh(g->payload);
	const uint64_t result = le32toh(g->result), nodes = g->nodes;
	const uint64_t each = 8 + (payload + 16 + 63) / 64 * 64 +
			      nodes * ((result + 16 + 63) / 64 * 64);
	unsigned int i, rest = g->reserved0;

	for (i = 0; i < 4; i++)
		rest |= g->reserved[i] != 0;
	return le32toh(g->magic) == RGATE_SHARD_MAGIC && le16toh(g->version) == 1 && !rest &&
	       power_of_two(tasks, 64, 65536) && payload && payload <= 65536 && result &&
	       result <= 65536 && nodes && nodes <= 8 && g->submitters &&
	       g->submitters < 1U << nodes && le64toh(g->bytes) <= lent &&
	       le64toh(g->bytes) == 64 + 128 * nodes + tasks * each;
}

static void shard(struct fuzz_in *in)
{
	struct rgate_shard_geometry g;
	struct shard_layout l, made;
	uint64_t lent;
	int err;

	fuzz_bytes(in, &lent, sizeof(lent));
	fuzz_bytes(in, &g, sizeof(g));
	/* Its magic, and mostly the right number of bytes, are not for chance to find. */
	if (fuzz_u8(in) & 1) {
		g.magic = htole32(RGATE_SHARD_MAGIC);
		made = (struct shard_layout){
			.nodes = g.nodes, .submitters = g.submitters, .tasks = le32toh(g.tasks),
			.payload = le32toh(g.payload), .result = le32toh(g.result),
		};
		g.bytes = shard_layout(&made) ? g.bytes : htole64(made.bytes);
	}
	err = shard_parse(&l, &g, lent);
	FUZZ_CHECK(!err || err == -EPROTO || err == -EPROTONOSUPPORT);
	FUZZ_CHECK(!err == shard_ok(&g, lent));
	if (err)
		return;
	FUZZ_CHECK(l.words >= 64 + 128 * (uint64_t)l.nodes && l.records == l.words + 8 * l.tasks &&
		   l.outcomes == l.records + (uint64_t)l.record * l.tasks &&
		   l.bytes == l.outcomes + (uint64_t)l.outcome * l.nodes * l.tasks);
}

static const size_t pages[] = { 4096, 16384, 65536, 2 << 20 };

static void geometry(struct fuzz_in *in)
{
	size_t page = pages[fuzz_u8(in) & 3];
	struct rgate_geometry g, made;
	int err;

	fuzz_bytes(in, &g, sizeof(g));
	err = rgate_geometry_validate(&g, page);
	FUZZ_CHECK(!err || err == -EPROTO);
	FUZZ_CHECK(!err == geometry_ok(&g, page));
	err = rgate_geometry_compute(g.slots, g.slot_size, page, &made);
	FUZZ_CHECK(!err == !rgate_geometry_check(g.slots, g.slot_size));
	if (err)
		return;
	FUZZ_CHECK(made.slots == g.slots && made.slot_size == g.slot_size);
	FUZZ_CHECK(geometry_ok(&made, page) && !rgate_geometry_validate(&made, page));
}

/* What version 1 says of the constant part, apart from the geometry */
static bool header_ok(const struct rgate_prod *p)
{
	return p->magic == RGATE_MAGIC && p->version == 1 && p->slot_hdr == 64 &&
	       p->features < 32 && p->batch == 32 && p->flags < 16 && p->policy < 4 &&
	       p->clock < 3 && p->handles == 32 && !p->reserved0 &&
	       strnlen(p->name, sizeof(p->name)) < sizeof(p->name);
}

static bool owners_ok(const struct rgate_prod *p)
{
	const unsigned __int128 off = p->owners_off, words = p->slots / RGATE_BATCH * 8;

	if (!(p->features & RGATE_FEAT_OWNERS))
		return !off;
	return !(off % 64) && off >= p->credits_off + words && off + words <= p->slots_off;
}

static void producer_area(struct fuzz_in *in)
{
	struct rgate_prod *prod = malloc(sizeof(*prod));
	struct rgate_geometry g;
	int err;

	/* only the constant part may be read */
	FUZZ_CHECK(prod);
	fuzz_bytes(in, prod, RGATE_PROD_CONST);
	__asan_poison_memory_region((char *)prod + RGATE_PROD_CONST,
				    sizeof(*prod) - RGATE_PROD_CONST);
	err = rgate_geometry_from_prod(prod, 4096, &g);
	FUZZ_CHECK(!err || err == -EPROTO || err == -EPROTONOSUPPORT);
	if (!err) {
		FUZZ_CHECK(header_ok(prod) && geometry_ok(&g, 4096) && !g.handle &&
			   owners_ok(prod));
		FUZZ_CHECK(g.slots == prod->slots && g.slot_size == prod->slot_size &&
			   g.generation == prod->generation &&
			   g.map_len == prod->map_len && g.cons_off == prod->cons_off &&
			   g.credits_off == prod->credits_off &&
			   g.slots_off == prod->slots_off);
	}
	__asan_unpoison_memory_region(prod, sizeof(*prod));
	free(prod);
}

/* The four messages of one handshake, and who is about to read each */
#define STAGES	4

static struct stage {
	struct rgate_hs reader;
	uint8_t msg[64];
	size_t len;
} stages[STAGES];

static uint8_t key[2][RGATE_KEY_LEN], public[2][RGATE_KEY_LEN], shared[RGATE_KEY_LEN];
static const struct rgate_noise_keys keys[2] = {
	{ key[0], public[0], public[1], shared }, { key[1], public[1], public[0], shared },
};

static void stage(unsigned int i, const struct rgate_hs *reader, const void *msg, size_t len)
{
	FUZZ_CHECK(len <= sizeof(stages[i].msg));
	stages[i].reader = *reader;
	memcpy(stages[i].msg, msg, len);
	stages[i].len = len;
}

static void make_stages(void)
{
	const struct rgate_hs_terms terms = { 7, 1024, 64 };
	static struct rgate_hs client, server;
	uint8_t line[RGATE_HS_LINE] = "line";
	struct rgate_hs_welcome welcome;
	struct rgate_hs_terms theirs;
	struct rgate_hs_proof proof;
	struct rgate_hs_ready ready;
	unsigned int i;

	for (i = 0; i < 2; i++) {
		memset(key[i], 'a' + (int)i, RGATE_KEY_LEN);
		FUZZ_CHECK(!rgate_key_public(public[i], key[i]));
	}
	FUZZ_CHECK(!rgate_noise_dh(shared, key[0], public[0], public[1]));
	FUZZ_CHECK(!rgate_hs_hello(&client, 3, 0, &keys[0]));
	stage(0, &server, &client.hello, sizeof(client.hello));
	FUZZ_CHECK(!rgate_hs_check_hello(&server, &client.hello, &keys[1]));
	FUZZ_CHECK(!rgate_hs_welcome(&server, &welcome, &terms));
	stage(1, &client, &welcome, sizeof(welcome));
	FUZZ_CHECK(!rgate_hs_read_welcome(&client, &welcome, sizeof(welcome), &theirs));
	FUZZ_CHECK(!rgate_hs_proof(&client, &proof, &terms, line));
	stage(2, &server, &proof, sizeof(proof));
	FUZZ_CHECK(!rgate_hs_read_proof(&server, &proof, sizeof(proof), &theirs, line));
	FUZZ_CHECK(!rgate_hs_ready(&server, &ready, line));
	stage(3, &client, &ready, sizeof(ready));
}

static int read_stage(unsigned int i, struct rgate_hs *hs, const uint8_t *p, size_t len)
{
	struct rgate_hs_hello hello;
	struct rgate_hs_terms terms;
	uint8_t line[RGATE_HS_LINE];
	int err;

	switch (i) {
	case 0:
		err = rgate_hs_read_hello(&hello, p, len, 0);
		return err ? err : rgate_hs_check_hello(hs, &hello, &keys[1]);
	case 1:
		return rgate_hs_read_welcome(hs, p, len, &terms);
	case 2:
		return rgate_hs_read_proof(hs, p, len, &terms, line);
	default:
		return rgate_hs_read_ready(hs, p, len, line);
	}
}

/* A genuine message with what the input says changed in it, or the input alone: it is
 * accepted if and only if it is the genuine one */
static void handshake(struct fuzz_in *in, unsigned int how)
{
	const struct stage *s = &stages[how % STAGES];
	struct rgate_hs hs;
	size_t i, len, most = sizeof(s->msg) + 4;
	bool same;
	uint8_t *p;
	int err;

	if (!stages[0].len)
		make_stages();
	hs = s->reader;
	if (how & 8) {
		p = fuzz_copy(in, most, &len);
	} else {
		len = (s->len + fuzz_u8(in)) % most;
		p = malloc(len ? len : 1);
		FUZZ_CHECK(p);
		for (i = 0; i < len; i++)
			p[i] = (uint8_t)((i < s->len ? s->msg[i] : 0) ^ fuzz_u8(in));
	}
	/* behind the first two there may be zeros, or anything: rdma_cm fills up */
	same = (how % STAGES < 2 ? len >= s->len : len == s->len) && !memcmp(p, s->msg, s->len);
	err = read_stage(how % STAGES, &hs, p, len);
	FUZZ_CHECK(!err || err == -EACCES || err == -EPROTO || err == -EPROTONOSUPPORT);
	FUZZ_CHECK(!err == same);
	rgate_hs_end(&hs);
	free(p);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_in in = { data, size };
	const uint8_t what = fuzz_u8(&in);

	if ((what & 0xf0) == 0xe0) {
		handshake(&in, what & 0xf);
		return 0;
	}
	if ((what & 0xf0) == 0xd0) {
		shard(&in);
		return 0;
	}
	switch (what % 3) {
	case 0:
		descriptor(&in);
		break;
	case 1:
		geometry(&in);
		break;
	default:
		producer_area(&in);
	}
	return 0;
}
