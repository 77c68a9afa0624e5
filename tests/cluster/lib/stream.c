// SPDX-License-Identifier: MIT OR GPL-2.0
#include <endian.h>
#include <string.h>

#include "stream.h"

#define MAGIC		0x52474353U
#define ETH_LEN		14
#define UDP_LEN		8
#define PROTO_UDP	17

struct head {
	uint32_t magic;
	uint32_t flow;
	uint32_t number;
	uint32_t len;
};

static uint64_t mix(uint64_t x)
{
	x += 0x9e3779b97f4a7c15ULL;
	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
	x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
	return x ^ (x >> 31);
}

/* Word @i behind the head of a datagram with @seed */
static uint64_t word(uint64_t seed, size_t i)
{
	return htole64(mix(seed + i));
}

static uint64_t seed_of(const struct head *h)
{
	return mix((uint64_t)h->flow << 32 | h->number) ^ h->len;
}

size_t stream_fill(unsigned char *buf, uint32_t flow, uint32_t number, size_t max)
{
	struct head h = { .magic = MAGIC, .flow = flow, .number = number };
	size_t at, len;
	uint64_t seed, w;

	len = STREAM_MIN + mix((uint64_t)number << 32 | flow) % (max - STREAM_MIN + 1);
	h.len = (uint32_t)len;
	seed = seed_of(&h);
	memcpy(buf, &h, sizeof(h));
	for (at = sizeof(h); at < len; at += sizeof(w)) {
		w = word(seed, at);
		memcpy(buf + at, &w, len - at < sizeof(w) ? len - at : sizeof(w));
	}
	return len;
}

bool stream_check(const unsigned char *buf, size_t len, uint32_t *flow, uint32_t *number)
{
	struct head h;
	uint64_t seed, w;
	size_t at;

	if (len < STREAM_MIN)
		return false;
	memcpy(&h, buf, sizeof(h));
	if (h.magic != MAGIC || h.len != len || h.flow >= STREAM_FLOWS)
		return false;
	seed = seed_of(&h);
	for (at = sizeof(h); at < len; at += sizeof(w)) {
		w = word(seed, at);
		if (memcmp(buf + at, &w, len - at < sizeof(w) ? len - at : sizeof(w)))
			return false;
	}
	*flow = h.flow;
	*number = h.number;
	return true;
}

const unsigned char *stream_payload(const unsigned char *frame, size_t len, size_t *out)
{
	size_t at = ETH_LEN, udp;

	if (len < ETH_LEN + 20 + UDP_LEN || frame[12] != 8 || frame[13] != 0 ||
	    frame[at] >> 4 != 4 || frame[at + 9] != PROTO_UDP)
		return NULL;
	at += (frame[at] & 15U) * 4;
	if (len < at + UDP_LEN)
		return NULL;
	udp = (size_t)frame[at + 4] << 8 | frame[at + 5];
	if (udp < UDP_LEN || len < at + udp)
		return NULL;
	*out = udp - UDP_LEN;
	return frame + at + UDP_LEN;
}
