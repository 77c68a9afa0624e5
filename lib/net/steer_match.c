// SPDX-License-Identifier: MIT OR GPL-2.0
/* What a frame is to the rules. Slots may lie: every length is bounded by @room. */
#include <net/if_arp.h>
#include <netinet/in.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <ringgate/rgate_consumer.h>

#include "steer.h"

#define ETH_BYTES	14U
#define TAG_BYTES	4U
#define HEAD_BYTES	512U	/* of a frame that has to be rebuilt for a filter */
#define IP_FRAGMENT	0x3fff	/* offset, and that more follow */
#define ETH_IP		0x0800
#define ETH_IP6		0x86dd

static uint32_t bytes_of(const struct rgate_slot *s, uint32_t room)
{
	const uint32_t len = __atomic_load_n(&s->len, __ATOMIC_RELAXED);

	return len < room ? len : room;
}

static void put16(unsigned char *to, uint16_t v)
{
	to[0] = (unsigned char)(v >> 8);
	to[1] = (unsigned char)v;
}

/* The frame's first bytes as they were on an Ethernet: with its tag, or with a header
 * where there was none */
static uint32_t rebuild(const struct rgate_slot *s, const unsigned char *data, uint32_t len,
			unsigned char *to)
{
	uint32_t n = len < HEAD_BYTES ? len : HEAD_BYTES, head = ETH_BYTES;

	if (s->dev_type != ARPHRD_ETHER && s->dev_type != ARPHRD_LOOPBACK) {
		const uint32_t skip = s->l3_off <= n ? s->l3_off : 0;

		memset(to, 0, ETH_BYTES);
		put16(to + 12, s->protocol);
		memcpy(to + ETH_BYTES, data + skip, n - skip);
		return ETH_BYTES + n - skip;
	}
	if (n < ETH_BYTES)
		head = n;
	memcpy(to, data, head < 12 ? head : 12);
	if (head < ETH_BYTES)
		return head < 12 ? head : 12;
	put16(to + 12, s->vlan_proto);
	put16(to + 14, s->vlan_tci);
	memcpy(to + 16, data + 12, n - 12);
	return n + TAG_BYTES;
}

static bool takes(const struct bpf_program *prog, const struct rgate_slot *s, uint32_t len)
{
	unsigned char head[HEAD_BYTES + ETH_BYTES + TAG_BYTES];
	const unsigned char *data = rgate_slot_data(s);
	uint32_t wire = s->wire_len, n = len;

	if (!prog->bf_len)
		return true;
	if (s->flags & RGATE_SLOT_VLAN ||
	    (s->dev_type != ARPHRD_ETHER && s->dev_type != ARPHRD_LOOPBACK)) {
		n = rebuild(s, data, len, head);
		data = head;
	}
	return bpf_filter(prog->bf_insns, data, wire > n ? wire : n, n) != 0;
}

struct steer_rule *rgate_steer_match(struct rgate_steer *steer, unsigned int from,
				     const struct rgate_slot *slot, uint32_t room)
{
	const uint32_t len = bytes_of(slot, room);
	unsigned int i;

	for (i = from; i < steer->count; i++)
		if (takes(&steer->rules[i].prog, slot, len))
			return &steer->rules[i];
	return NULL;
}

struct flow {
	unsigned char addr[2][16];
	uint16_t port[2];
	uint8_t proto;
	uint8_t zero;
};

/* The smaller end first, so that both directions are the same */
static void order(struct flow *f)
{
	const int c = memcmp(f->addr[0], f->addr[1], sizeof(f->addr[0]));
	unsigned char addr[16];
	uint16_t port;

	if (c < 0 || (!c && f->port[0] <= f->port[1]))
		return;
	memcpy(addr, f->addr[0], sizeof(addr));
	memcpy(f->addr[0], f->addr[1], sizeof(addr));
	memcpy(f->addr[1], addr, sizeof(addr));
	port = f->port[0];
	f->port[0] = f->port[1];
	f->port[1] = port;
}

/* Both are 4 bytes from where layer 4 begins; only of a whole datagram */
static void ports(struct flow *f, const struct rgate_slot *s, const unsigned char *data,
		  uint32_t len)
{
	if (s->l4_off == RGATE_OFF_NONE || s->l4_off + 4U > len)
		return;
	if (s->ip_proto != IPPROTO_TCP && s->ip_proto != IPPROTO_UDP &&
	    s->ip_proto != IPPROTO_SCTP && s->ip_proto != IPPROTO_UDPLITE)
		return;
	memcpy(&f->port[0], data + s->l4_off, 2);
	memcpy(&f->port[1], data + s->l4_off + 2, 2);
}

static bool ip_flow(struct flow *f, const struct rgate_slot *s, const unsigned char *data,
		    uint32_t len)
{
	const unsigned char *ip = data + s->l3_off;
	bool fragment;

	if (s->l3_off == RGATE_OFF_NONE || s->l3_off + 20U > len)
		return false;
	if (s->protocol == ETH_IP && ip[0] >> 4 == 4) {
		fragment = (ip[6] << 8 | ip[7]) & IP_FRAGMENT;
		f->proto = ip[9];
		memcpy(f->addr[0], ip + 12, 4);
		memcpy(f->addr[1], ip + 16, 4);
	} else if (ip[0] >> 4 == 6 && s->l3_off + 40U <= len) {
		fragment = ip[6] == IPPROTO_FRAGMENT;
		f->proto = fragment ? 0 : s->ip_proto;
		memcpy(f->addr[0], ip + 8, 16);
		memcpy(f->addr[1], ip + 24, 16);
	} else {
		return false;
	}
	if (!fragment)
		ports(f, s, data, len);
	return true;
}

uint64_t rgate_steer_flow(const struct rgate_slot *s, uint32_t room)
{
	const unsigned char *data = rgate_slot_data(s);
	const uint32_t len = bytes_of(s, room);
	struct flow f;

	memset(&f, 0, sizeof(f));
	if (!ip_flow(&f, s, data, len)) {
		/* by the hardware addresses, where there are any */
		memset(&f, 0, sizeof(f));
		if (len >= ETH_BYTES) {
			memcpy(f.addr[0], data, 6);
			memcpy(f.addr[1], data + 6, 6);
		}
		f.port[0] = f.port[1] = s->protocol;
	}
	order(&f);
	return XXH3_64bits(&f, sizeof(f));
}

uint64_t rgate_steer_weight(uint64_t flow, uint32_t id)
{
	const uint64_t key[2] = { flow, id };

	return XXH3_64bits(key, sizeof(key));
}
