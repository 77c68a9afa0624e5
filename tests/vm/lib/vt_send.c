// SPDX-License-Identifier: MIT OR GPL-2.0
#include "vt.h"
#include "vt_send.h"

#include <arpa/inet.h>
#include <linux/ip.h>
#include <linux/tcp.h>

void vt_send_open(struct vt_send *s, uint32_t slots, uint32_t slot_size)
{
	memset(s, 0, sizeof(*s));
	vt_ring_open(&s->r, slots, slot_size, RGATE_RING_TRANSMIT | RGATE_RING_RW_SLOTS,
		     RGATE_POLICY_DROP);
}

int vt_send_try_bind(struct vt_nl *nl, const struct vt_send *s, const char *ifname)
{
	struct vt_att a = {
		.ifname = ifname, .rings = { s->r.id }, .n = 1,
		.kind = RGATE_KIND_TRANSMIT,
	};

	return vt_att_new(nl, &a);
}

static uint32_t bound(const struct vt_send *s, const char *ifname, int id)
{
	if (id <= 0)
		DIE("ring %u to send through %s: %s", s->r.id, ifname, strerror(-id));
	return (uint32_t)id;
}

uint32_t vt_send_bind(struct vt_nl *nl, const struct vt_send *s, const char *ifname)
{
	return bound(s, ifname, vt_send_try_bind(nl, s, ifname));
}

uint32_t vt_send_bind_thread(struct vt_nl *nl, const struct vt_send *s, const char *ifname,
			     uint32_t share)
{
	struct vt_att a = {
		.ifname = ifname, .rings = { s->r.id }, .n = 1,
		.kind = RGATE_KIND_TRANSMIT, .thread = share,
	};

	return bound(s, ifname, vt_att_new(nl, &a));
}

bool vt_send_need_wakeup(const struct vt_send *s)
{
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	return __atomic_load_n(&s->r.prod->need_wakeup, __ATOMIC_RELAXED);
}

struct rgate_tx_slot *vt_send_slot(const struct vt_send *s, uint64_t pos)
{
	return (void *)(s->r.slots + (pos & (s->r.geo.slots - 1)) * s->r.geo.slot_size);
}

struct rgate_tx_slot *vt_send_next(const struct vt_send *s)
{
	uint64_t batch = s->pos / RGATE_BATCH & (s->r.geo.slots / RGATE_BATCH - 1);
	struct rgate_tx_slot *slot = vt_send_slot(s, s->pos);

	/* Acquire: what is written from here on is not read any more. */
	if (__atomic_load_n(&s->r.credits[batch], __ATOMIC_ACQUIRE) !=
	    vt_ring_lap(&s->r, s->pos) - 1)
		return NULL;
	memset((uint8_t *)slot + sizeof(slot->seq), 0, sizeof(*slot) - sizeof(slot->seq));
	return slot;
}

void vt_send_publish(struct vt_send *s, uint32_t len, uint32_t flags)
{
	struct rgate_tx_slot *slot = vt_send_slot(s, s->pos);

	slot->len = len;
	slot->flags = flags;
	__atomic_store_n(&slot->seq, vt_ring_lap(&s->r, s->pos), __ATOMIC_RELEASE);
	s->pos++;
}

bool vt_send_udp(struct vt_send *s, size_t len, uint64_t seq)
{
	struct rgate_tx_slot *slot = vt_send_next(s);

	if (!slot)
		return false;
	if (len > s->r.geo.slot_size - RGATE_SLOT_HDR)
		DIE("%zu bytes do not fit a slot", len);
	vt_pkt_udp(vt_send_data(slot), len, seq, 0);
	vt_send_publish(s, (uint32_t)len, 0);
	return true;
}

int vt_send_kick(const struct vt_send *s, uint32_t budget, struct rgate_send *out)
{
	struct rgate_send arg = { .budget = budget };

	if (ioctl(s->r.fd, RGATE_IOC_SEND, &arg))
		return -errno;
	if (out)
		*out = arg;
	return (int)arg.taken;
}

static const uint8_t tcp_src[4] = { 10, 9, 0, 1 }, tcp_dst[4] = { 10, 9, 0, 2 };

void vt_send_tcp(uint8_t *frame, uint32_t data)
{
	struct iphdr ip = {
		.version = 4, .ihl = 5, .ttl = 64, .protocol = IPPROTO_TCP,
		.tot_len = htons((uint16_t)(40 + data)),
	};
	struct tcphdr tcp = { .source = htons(1), .dest = htons(2), .doff = 5, .ack = 1 };

	memset(frame, 2, 12);
	frame[12] = 0x08;
	frame[13] = 0x00;
	memcpy(&ip.saddr, tcp_src, 4);
	memcpy(&ip.daddr, tcp_dst, 4);
	ip.check = htons(vt_csum(&ip, sizeof(ip), 0));
	tcp.check = (__sum16)~htons(vt_csum(tcp_src, 4, 0x0a09 + 2 + IPPROTO_TCP + 20 + data));
	memcpy(frame + 14, &ip, sizeof(ip));
	memcpy(frame + 34, &tcp, sizeof(tcp));
	vt_pkt_fill(frame + 54, data, 7);
}

void vt_send_no_offload(void)
{
	if (vt_sh("ethtool -K va tx off tso off gso off sg off >/dev/null 2>&1"))
		vt_skip("no ethtool here");
}
