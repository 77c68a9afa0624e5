// SPDX-License-Identifier: MIT OR GPL-2.0
#include "frames.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_ether.h>
#include <netinet/ip.h>
#include <netinet/ip6.h>
#include <netinet/tcp.h>
#include <netinet/udp.h>
#include <stdlib.h>
#include <string.h>

#define FRAME_MAX	(RGATE_CHAIN_MAX * RGATE_SLOT_SIZE_MAX)
#define TAG_LEN		4U
#define TAG_AT		12U

void frames_init(struct frames *f, struct result *res)
{
	struct demo_sum warm;
	char text[DEMO_SUM_TEXT];

	memset(f, 0, sizeof(*f));
	f->res = res;
	/* all that libraries do on first use happens now */
	demo_sum_init(&warm, res->sha);
	demo_sum_add(&warm, text, 1);
	demo_sum_text(&warm, text);
	demo_sum_init(&f->sum, res->sha);
	f->buf = calloc(1, FRAME_MAX + TAG_LEN);
	if (!f->buf)
		demo_die(ENOMEM, "a buffer");
	tcp_stream_init(&f->stream);
}

/* The frame as it was on the wire: joined, and its VLAN tag put back */
static const unsigned char *whole(struct frames *f, const struct rgate_consumer *c,
				  const struct rgate_slot *s, size_t *len)
{
	unsigned int i, n = rgate_consumer_parts(c);
	unsigned char *to = f->buf + TAG_LEN;

	if (n == 1 && !(s->flags & RGATE_SLOT_VLAN)) {
		*len = s->len;
		return rgate_slot_data(s);
	}
	for (i = 0; i < n; i++) {
		const struct rgate_slot *part = rgate_consumer_part(c, i);

		memcpy(to, rgate_slot_data(part), part->len);
		to += part->len;
	}
	*len = (size_t)(to - f->buf) - TAG_LEN;
	if (!(s->flags & RGATE_SLOT_VLAN) || *len < TAG_AT)
		return f->buf + TAG_LEN;
	memmove(f->buf, f->buf + TAG_LEN, TAG_AT);
	f->buf[TAG_AT] = (unsigned char)(s->vlan_proto >> 8);
	f->buf[TAG_AT + 1] = (unsigned char)s->vlan_proto;
	f->buf[TAG_AT + 2] = (unsigned char)(s->vlan_tci >> 8);
	f->buf[TAG_AT + 3] = (unsigned char)s->vlan_tci;
	*len += TAG_LEN;
	return f->buf;
}

static void malformed(struct frames *f)
{
	f->res->malformed++;
}

static void take_stream(struct frames *f, const unsigned char *frame, size_t len,
			const struct rgate_slot *s, uint64_t now)
{
	struct result *r = f->res;
	struct demo_payload p;
	struct udphdr udp;
	size_t n;

	if (s->payload_off == RGATE_OFF_NONE || s->l4_off == RGATE_OFF_NONE ||
	    s->ip_proto != IPPROTO_UDP || s->payload_off > len ||
	    s->l4_off + sizeof(udp) > len)
		return malformed(f);
	memcpy(&udp, frame + s->l4_off, sizeof(udp));
	n = ntohs(udp.len) - sizeof(udp);
	if (n > len - s->payload_off || n < sizeof(p))
		return malformed(f);
	memcpy(&p, frame + s->payload_off, sizeof(p));
	if (p.magic != DEMO_MAGIC)
		return malformed(f);
	if (p.seq != f->next)
		r->holes += p.seq > f->next ? p.seq - f->next : 1;
	f->next = p.seq + 1;
	r->bytes += n;
	demo_sum_add(&f->sum, frame + s->payload_off, n);
	if (r->nsamples < r->max_samples)
		r->samples[r->nsamples++] = (struct result_sample){ p.sent_ns, now };
}

static void take_tcp(struct frames *f, const unsigned char *frame, size_t len,
		     const struct rgate_slot *s)
{
	struct iphdr ip;
	struct tcphdr tcp;
	size_t end, data;

	if (s->l3_off == RGATE_OFF_NONE || s->l4_off == RGATE_OFF_NONE ||
	    s->ip_proto != IPPROTO_TCP || s->l3_off + sizeof(ip) > len ||
	    s->l4_off + sizeof(tcp) > len)
		return malformed(f);
	memcpy(&ip, frame + s->l3_off, sizeof(ip));
	memcpy(&tcp, frame + s->l4_off, sizeof(tcp));
	data = s->l4_off + tcp.doff * 4U;
	end = s->l3_off + (size_t)ntohs(ip.tot_len);
	if (ip.version != 4 || data > end || end > len ||
	    !tcp_stream_add(&f->stream, &tcp, frame + data, end - data))
		malformed(f);
}

static uint16_t be16(const unsigned char *p)
{
	return (uint16_t)(p[0] << 8 | p[1]);
}

enum result_class frames_class(const unsigned char *p, size_t len)
{
	uint16_t type = len >= ETH_HLEN ? be16(p + TAG_AT) : 0;

	if (type == ETH_P_8021Q || type == ETH_P_8021AD)
		return CLASS_VLAN;
	if (len > ETH_FRAME_LEN)
		return CLASS_JUMBO;
	if (type == ETH_P_IPV6)
		return CLASS_IPV6;
	if (type == ETH_P_IP && len >= ETH_HLEN + sizeof(struct iphdr) &&
	    be16(p + ETH_HLEN + 6) & (IP_MF | IP_OFFMASK))
		return CLASS_FRAGMENT;
	return CLASS_PLAIN;
}

static void take_frame(struct frames *f, const unsigned char *frame, size_t len)
{
	f->res->bytes += len;
	f->res->classes[frames_class(frame, len)]++;
	demo_sum_add(&f->sum, frame, len);
}

static bool has_fin(const struct rgate_slot *s)
{
	struct tcphdr tcp;

	if (s->ip_proto != IPPROTO_TCP || s->l4_off == RGATE_OFF_NONE ||
	    s->l4_off + sizeof(tcp) > s->len)
		return false;
	memcpy(&tcp, rgate_slot_data(s) + s->l4_off, sizeof(tcp));
	return tcp.fin;
}

/*
 * A frame without a tag to put back is read where it lies. All parts but the last fill
 * their slots, whose room is a multiple of the sum's words: the sum is that of the whole.
 */
static void take_parts(struct frames *f, const struct rgate_consumer *c,
		       const struct rgate_slot *s)
{
	unsigned int i, n = rgate_consumer_parts(c);
	size_t len = 0;

	for (i = 0; i < n; i++) {
		const struct rgate_slot *part = rgate_consumer_part(c, i);

		demo_sum_add(&f->sum, rgate_slot_data(part), part->len);
		len += part->len;
	}
	f->res->bytes += len;
	f->res->classes[frames_class(rgate_slot_data(s), len)]++;
	f->fin |= has_fin(s);
}

void frames_take(struct frames *f, const struct rgate_consumer *c,
		 const struct rgate_slot *s)
{
	uint64_t now = demo_ticks();
	struct result *r = f->res;
	const unsigned char *frame;
	size_t len;

	if (!r->frames)
		r->first = now;
	r->last = now;
	r->frames++;
	r->slots += rgate_consumer_parts(c);
	if (s->flags & RGATE_SLOT_TRUNC)
		return malformed(f);
	if (r->kind == RESULT_FRAMES && !(s->flags & RGATE_SLOT_VLAN))
		return take_parts(f, c, s);
	frame = whole(f, c, s, &len);
	if (r->kind == RESULT_STREAM)
		take_stream(f, frame, len, s, now);
	else if (r->kind == RESULT_TCP)
		take_tcp(f, frame, len, s);
	else
		take_frame(f, frame, len);
}

bool frames_complete(const struct frames *f)
{
	if (f->res->want)
		return f->res->frames >= f->res->want;
	return f->res->kind == RESULT_TCP ? tcp_stream_complete(&f->stream) : f->fin;
}

static void finish_tcp(struct frames *f)
{
	const struct tcp_stream *st = &f->stream;
	const unsigned char *body = memmem(st->bytes, st->edge, "\r\n\r\n", 4);

	f->res->holes = tcp_stream_missing(st);
	if (!body)
		return;
	body += 4;
	f->res->bytes = st->edge - (uint64_t)(body - st->bytes);
	demo_sum_add(&f->sum, body, f->res->bytes);
}

void frames_finish(struct frames *f)
{
	if (f->res->kind == RESULT_TCP)
		finish_tcp(f);
	demo_sum_text(&f->sum, f->res->hash);
}
