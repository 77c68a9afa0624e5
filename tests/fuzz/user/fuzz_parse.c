// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * Where the headers of a frame lie. The library's parser has to say what the module's
 * says, whose source is compiled in here: a program must not care which of them
 * filled its ring. And what is known of a frame must not change with what is cut off
 * behind it.
 */
#include <net/if_arp.h>

#include "fuzz.h"
#include "parse.h"

#include "../../../kmod/parse.c"

#define ETH_LEN	14

/* Alignment is not promised to the parsers, and no more bytes than the frame has. */
static void *exact(const void *frame, size_t len)
{
	void *copy = malloc(len ? len : 1);

	FUZZ_CHECK(copy);
	memcpy(copy, frame, len);
	return copy;
}

static struct rgate_slot parse(const struct rgate_slot *like, const void *frame, size_t len)
{
	struct rgate_slot hdr = *like;
	void *copy = exact(frame, len);

	hdr.l3_off = hdr.l4_off = hdr.payload_off = 1;
	hdr.ip_proto = 1;
	rgate_parse_frame(&hdr, copy, len);
	free(copy);
	return hdr;
}

static void check_bounds(const struct rgate_slot *h, size_t len)
{
	FUZZ_CHECK(h->l3_off == RGATE_OFF_NONE || h->l3_off <= len);
	FUZZ_CHECK(h->l4_off == RGATE_OFF_NONE || h->l4_off < len);
	FUZZ_CHECK(h->payload_off == RGATE_OFF_NONE || h->payload_off <= len);
	FUZZ_CHECK(h->l4_off == RGATE_OFF_NONE || h->l4_off > h->l3_off);
	FUZZ_CHECK(h->payload_off == RGATE_OFF_NONE || h->payload_off > h->l4_off);
	FUZZ_CHECK(h->payload_off == RGATE_OFF_NONE || h->l4_off != RGATE_OFF_NONE);
	FUZZ_CHECK(h->l4_off == RGATE_OFF_NONE || h->l3_off != RGATE_OFF_NONE);
	FUZZ_CHECK(h->l4_off != RGATE_OFF_NONE || !h->ip_proto);
}

/* What is known of the cut frame is so of the whole one. */
static void check_cut(const struct rgate_slot *whole, const struct rgate_slot *cut)
{
	FUZZ_CHECK(cut->l3_off == RGATE_OFF_NONE || cut->l3_off == whole->l3_off);
	FUZZ_CHECK(cut->l4_off == RGATE_OFF_NONE || cut->l4_off == whole->l4_off);
	FUZZ_CHECK(cut->payload_off == RGATE_OFF_NONE ||
		   cut->payload_off == whole->payload_off);
	FUZZ_CHECK(!cut->ip_proto || cut->ip_proto == whole->ip_proto);
}

static void check_kernel(const struct rgate_slot *h, const uint8_t *frame, size_t len)
{
	unsigned int base = h->dev_type == ARPHRD_ETHER ? ETH_LEN : 0;
	struct rgate_offsets o;
	void *copy;

	if (len <= base)
		return;
	copy = exact(frame + base, len - base);
	o = rgate_parse(copy, (u32)(len - base), htons(h->protocol), base);
	free(copy);
	FUZZ_CHECK(o.l3 == h->l3_off);
	FUZZ_CHECK(o.l4 == h->l4_off);
	FUZZ_CHECK(o.payload == h->payload_off);
	FUZZ_CHECK(o.ip_proto == h->ip_proto);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const uint16_t types[] = { ARPHRD_ETHER, ARPHRD_ETHER, 0xfffe, 999 };
	static const uint16_t protocols[] = { 0x0800, 0x86dd, 0x8100, 0x88a8 };
	struct fuzz_in in = { data, size };
	struct rgate_slot like = { 0 }, whole, cut;
	uint8_t how = fuzz_u8(&in);
	uint16_t at;

	like.dev_type = types[how & 3];
	like.protocol = how & 128 ? fuzz_u16(&in) : protocols[how >> 2 & 3];
	at = fuzz_u16(&in);
	whole = parse(&like, in.p, in.len);
	check_bounds(&whole, in.len);
	if (like.dev_type != 999)
		check_kernel(&whole, in.p, in.len);
	else
		FUZZ_CHECK(whole.l3_off == RGATE_OFF_NONE);
	if (!in.len)
		return 0;
	cut = parse(&like, in.p, at % in.len);
	check_bounds(&cut, at % in.len);
	check_cut(&whole, &cut);
	return 0;
}
