// SPDX-License-Identifier: GPL-2.0-only
/*
 * A function that XDP programs call: the frame in the driver's buffer, before
 * there is an skb, goes into the rings of an attachment.
 */
#include <linux/bpf.h>
#include <linux/btf.h>
#include <linux/btf_ids.h>
#include <linux/etherdevice.h>
#include <linux/if_arp.h>
#include <linux/kernel.h>
#include <linux/module.h>
#include <net/flow_dissector.h>
#include <net/xdp.h>
#include "compat.h"
#include "deliver.h"
#include "put.h"
#include "xdp.h"

static inline u32 rgate_xdp_linear(const struct xdp_buff *xdp)
{
	return xdp->data_end - xdp->data;
}

/* Behind the linear part: the fragments, one after the other. */
static noinline int rgate_xdp_copy_frags(const struct xdp_buff *xdp, u32 off,
					 u8 *to, u32 len)
{
	u32 head = rgate_xdp_linear(xdp), n, i;
	const struct skb_shared_info *info;

	if (off < head) {
		n = min(len, head - off);
		memcpy(to, xdp->data + off, n);
		to += n;
		len -= n;
		off = head;
	}
	off -= head;
	if (!xdp_buff_has_frags((struct xdp_buff *)xdp))
		return len ? -EFAULT : 0;
	info = xdp_get_shared_info_from_buff((struct xdp_buff *)xdp);
	for (i = 0; i < info->nr_frags && len; i++) {
		const skb_frag_t *frag = &info->frags[i];

		if (off >= skb_frag_size(frag)) {
			off -= skb_frag_size(frag);
			continue;
		}
		n = min(len, skb_frag_size(frag) - off);
		memcpy(to, skb_frag_address(frag) + off, n);
		to += n;
		len -= n;
		off = 0;
	}
	return len ? -EFAULT : 0;
}

static __always_inline int rgate_frame_copy(const struct rgate_frame *f,
					    u32 off, u8 *to, u32 len)
{
	/* Without fragments all of it is there, and only what is there is asked for. */
	if (unlikely(xdp_buff_has_frags(f->xdp)))
		return rgate_xdp_copy_frags(f->xdp, off, to, len);
	memcpy(to, f->xdp->data + off, len);
	return 0;
}

static inline u32 rgate_frame_flags(const struct rgate_frame *f)
{
	return RGATE_SLOT_QUEUE;
}

static inline u32 rgate_frame_ifindex(const struct rgate_frame *f)
{
	return f->xdp->rxq->dev->ifindex;
}

/* Of a frame with a length in the place of a type. Apart, as it has a variable in memory. */
static noinline __be16 rgate_xdp_protocol_802(const struct xdp_buff *xdp)
{
	__be16 first;

	if (!rgate_xdp_copy_frags(xdp, ETH_HLEN, (u8 *)&first, sizeof(first)) &&
	    first == htons(0xffff))
		return htons(ETH_P_802_3);
	return htons(ETH_P_802_2);
}

/* As eth_type_trans() has it; what is no Ethernet II has a length there. */
static __always_inline __be16 rgate_xdp_protocol(const struct rgate_frame *f)
{
	const struct ethhdr *eth = f->xdp->data;

	if (likely(eth_proto_is_802_3(eth->h_proto)))
		return eth->h_proto;
	return rgate_xdp_protocol_802(f->xdp);
}

static __always_inline u8 rgate_xdp_pkt_type(const struct ethhdr *eth,
					     const struct net_device *dev)
{
	if (is_multicast_ether_addr(eth->h_dest))
		return is_broadcast_ether_addr(eth->h_dest) ? PACKET_BROADCAST :
							      PACKET_MULTICAST;
	return ether_addr_equal(eth->h_dest, dev->dev_addr) ? PACKET_HOST :
							     PACKET_OTHERHOST;
}

static noinline struct rgate_offsets
rgate_xdp_headers_gather(const struct xdp_buff *xdp, u32 len, __be16 proto)
{
	u32 head = rgate_xdp_linear(xdp) - ETH_HLEN;
	u8 buf[RGATE_HEADERS];

	if (head >= RGATE_HEADERS)
		return rgate_parse(xdp->data + ETH_HLEN, head, proto, ETH_HLEN);
	len = min_t(u32, len - ETH_HLEN, RGATE_HEADERS);
	if (rgate_xdp_copy_frags(xdp, ETH_HLEN, buf, len))
		len = 0;
	return rgate_parse(buf, len, proto, ETH_HLEN);
}

static __always_inline struct rgate_offsets
rgate_xdp_headers(const struct rgate_frame *f, __be16 proto)
{
	if (unlikely(xdp_buff_has_frags(f->xdp)))
		return rgate_xdp_headers_gather(f->xdp, f->len, proto);
	return rgate_parse(f->xdp->data + ETH_HLEN, f->len - ETH_HLEN, proto, ETH_HLEN);
}

/* A VLAN tag is where it was on the wire: in the frame. */
static __always_inline void rgate_frame_describe(struct rgate_slot *slot,
						 const struct rgate_frame *f,
						 struct rgate_part *part)
{
	const struct xdp_rxq_info *rxq = f->xdp->rxq;
	const struct net_device *dev = rxq->dev;
	__be16 proto = rgate_xdp_protocol(f);

	if (!part->idx)
		part->headers = rgate_xdp_headers(f, proto);
	slot->wire_len = f->len;
	slot->flags = part->flags;
	slot->ifindex = dev->ifindex;
	slot->hash = 0;
	rgate_slot_pair(&slot->queue, rxq->queue_index, smp_processor_id());
	rgate_slot_pair(&slot->vlan_tci, 0, 0);
	slot->protocol = ntohs(proto);
	slot->dev_type = dev->type;
	rgate_slot_headers(slot, part->headers);
	slot->pkt_type = rgate_xdp_pkt_type(f->xdp->data, dev);
	slot->reserved = 0;
}

/* The hash that an skb of this frame would get in software */
static noinline u32 rgate_xdp_hash(const struct rgate_frame *f)
{
	const struct ethhdr *eth = f->xdp->data;
	struct flow_keys keys;

	memset(&keys, 0, sizeof(keys));
	__skb_flow_dissect(dev_net(f->xdp->rxq->dev), NULL, &flow_keys_dissector,
			   &keys, f->xdp->data, eth->h_proto, ETH_HLEN,
			   rgate_xdp_linear(f->xdp), FLOW_DISSECTOR_F_STOP_AT_FLOW_LABEL);
	return flow_hash_from_keys(&keys);
}

static unsigned int rgate_source_choose(const struct rgate_att *att,
					const struct rgate_frame *f,
					unsigned int n)
{
	switch (att->fanout) {
	case RGATE_FANOUT_CPU:
		return smp_processor_id() % n;
	case RGATE_FANOUT_QUEUE:
		return f->xdp->rxq->queue_index % n;
	case RGATE_FANOUT_HASH:
		return reciprocal_scale(rgate_xdp_hash(f), n);
	default:
		return 0;
	}
}

static noinline enum rgate_outcome rgate_source_put(const struct rgate_frame *f,
						    struct rgate_ring *ring,
						    bool spill)
{
	return rgate_put(f, ring, spill);
}

/*
 * The latest attachment of kind XDP by the low bits of its number: looking it up in
 * rgate_atts takes a fifth of what all the rest of a frame does. RCU, changed under
 * rgate_lock.
 */
static struct rgate_att __rcu *rgate_xdp_near[64];

static struct rgate_att __rcu **rgate_xdp_place(u32 id)
{
	return &rgate_xdp_near[id % ARRAY_SIZE(rgate_xdp_near)];
}

/* rgate_xdp_enter - programs may ask for an attachment from now on */
void rgate_xdp_enter(struct rgate_att *att)
{
	lockdep_assert_held(&rgate_lock);
	rcu_assign_pointer(*rgate_xdp_place(att->ident.id), att);
}

/* rgate_xdp_leave - no longer; it is freed after a grace period */
void rgate_xdp_leave(struct rgate_att *att)
{
	struct rgate_att __rcu **place = rgate_xdp_place(att->ident.id);

	lockdep_assert_held(&rgate_lock);
	if (rcu_access_pointer(*place) == att)
		RCU_INIT_POINTER(*place, NULL);
}

/* Another one has its place. */
static noinline struct rgate_att *rgate_xdp_far(u32 id)
{
	return xa_load(&rgate_atts, id);
}

/* The attachment that a program means, if it may use it for this frame */
static __always_inline int rgate_xdp_att(const struct xdp_buff *xdp, u32 id,
					 u64 cookie, struct rgate_att **found)
{
	struct rgate_att *att = rgate_deliver_rcu(*rgate_xdp_place(id));

	if (unlikely(!att || att->ident.id != id))
		att = rgate_xdp_far(id);
	if (unlikely(!att))
		return -ENOENT;
	if (unlikely(att->ident.cookie != cookie))
		return -ESTALE;
	if (unlikely(att->kind != RGATE_KIND_XDP))
		return -EINVAL;
	/* Also keeps network namespaces apart: a device is in one of them. */
	if (unlikely(att->dev != xdp->rxq->dev))
		return -ENODEV;
	*found = att;
	return 0;
}

static __always_inline int rgate_xdp_push(struct rgate_att *att, struct xdp_buff *xdp,
					  u32 snap)
{
	struct rgate_att_pcpu *p = this_cpu_ptr(att->stats);
	const struct rgate_att_cfg *cfg = rgate_deliver_rcu(att->cfg);
	struct rgate_frame f = {
		.xdp = xdp,
		.mac_len = ETH_HLEN,
		.len = xdp_get_buff_len(xdp),
	};

	/* No driver hands over less; what follows reads the header there. */
	if (unlikely(rgate_xdp_linear(xdp) < ETH_HLEN))
		return -EINVAL;
	rgate_deliver_count(p, RGATE_A_ATT_STATS_SEEN, 1);
	if (!snap) {
		rgate_deliver_count(p, RGATE_A_ATT_STATS_FILTERED, 1);
		return XDP_PASS;
	}
	f.snap = min(f.len, snap);
	if (rgate_deliver_sampled_out(att, p, cfg))
		return XDP_PASS;
	return rgate_deliver_fate(p, cfg->action, &f, rgate_deliver(att, p, &f)) ==
		RGATE_FATE_STACK ? XDP_PASS : XDP_DROP;
}

static __always_inline int rgate_xdp_frame(struct xdp_buff *xdp, u32 attachment,
					   u64 cookie, u32 snap)
{
	struct rgate_att *att;
	int err = rgate_xdp_att(xdp, attachment, cookie, &att);

	return unlikely(err) ? err : rgate_xdp_push(att, xdp, snap);
}

/* BPF_PROG_TEST_RUN leaves them on before Linux 6.3. */
static noinline int rgate_xdp_frame_process(struct xdp_buff *xdp, u32 attachment,
					    u64 cookie, u32 snap)
{
	int ret;

	local_bh_disable();
	ret = rgate_xdp_frame(xdp, attachment, cookie, snap);
	local_bh_enable();
	return ret;
}

__bpf_kfunc_start_defs();

/**
 * bpf_ringgate_push - a received frame into the rings of an attachment
 * @ctx: of the XDP program
 * @attachment: number of an attachment of kind XDP to the device that received
 * @cookie: of that attachment
 * @snap: bytes wanted of the frame, U32_MAX for all; 0: it does not match, and is
 *	counted as filtered
 *
 * Runs in the receive path of the driver, with bottom halves off, which is what
 * grace periods wait for. The attachment is found by number each time, so that
 * nothing has to be told to a program when it goes: from then on it is refused, and
 * what runs is waited for by the grace period that frees attachment and rings.
 *
 * Return: XDP_PASS or XDP_DROP, what the attachment's action and its rings'
 * policies make of the frame; or -ENOENT, -ESTALE (another attachment has that
 * number), -EINVAL (not of kind XDP, or no Ethernet header in the buffer), -ENODEV
 * (of another device), and the frame was not looked at. Programs of a devmap send:
 * there is no device that received for them, and older kernels leave garbage in its
 * place, so it is not for these.
 */
__bpf_kfunc int bpf_ringgate_push(struct xdp_md *ctx, u32 attachment, u64 cookie,
				  u32 snap)
{
	struct xdp_buff *xdp = (struct xdp_buff *)ctx;

	if (unlikely(!in_softirq()))
		return rgate_xdp_frame_process(xdp, attachment, cookie, snap);
	return rgate_xdp_frame(xdp, attachment, cookie, snap);
}

__bpf_kfunc_end_defs();

BTF_KFUNCS_START(rgate_xdp_ids)
BTF_ID_FLAGS(func, bpf_ringgate_push)
BTF_KFUNCS_END(rgate_xdp_ids)

static const struct btf_kfunc_id_set rgate_xdp_set = {
	.owner = THIS_MODULE,
	.set = &rgate_xdp_ids,
};

/* Programs take the frames of such a device to have an Ethernet header. */
bool rgate_xdp_device(const struct net_device *dev)
{
	return dev->type == ARPHRD_ETHER || dev->type == ARPHRD_LOOPBACK;
}

/*
 * A kernel that does not know the module's types does without XDP: all the rest
 * works. Success says little: some kernels return it where the module brought none.
 */
void rgate_xdp_init(void)
{
	int err = register_btf_kfunc_id_set(BPF_PROG_TYPE_XDP, &rgate_xdp_set);

	if (err)
		pr_info("ringgate: no function for XDP programs (%d)\n", err);
}
