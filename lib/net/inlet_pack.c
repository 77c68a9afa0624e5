// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * Chunks of an inbox, laid into their ring. The gateway may write the inbox at any time: of a
 * chunk, and of each slot in it, the header is copied before it is looked at.
 */
#include <endian.h>
#include <errno.h>
#include <string.h>

#include "inlet.h"
#include "log.h"
#include "producer.h"

#define HEAD_BYTES	(RGATE_SLOT_HDR - 8U)	/* a slot's header without its sequence */

static int make(struct rgate_inlet *in, struct inlet_ring *r, uint32_t size,
		struct rgate_desc *desc)
{
	const struct rgate_alloc_opts zero = RGATE_OPTS(rgate_alloc_opts,
							.flags = RGATE_ALLOC_ZERO);
	struct rgate_pool *pool = rgate_node_pool(in->node);
	int err;

	if (r->inbox || size < NET_INBOX_MIN || size > NET_INBOX_MAX || size & (size - 1))
		return -EPROTO;
	/* No mark of a former session may be found there. */
	err = rgate_pool_alloc_opts(pool, size, &zero, &r->inbox);
	if (err)
		return err;
	r->inbox_size = size;
	r->read = r->read_told = 0;
	return rgate_buf_desc(pool, r->inbox, 0, size, desc);
}

void inlet_pack_begin(struct rgate_inlet *in, struct inlet_ring *r, uint32_t size)
{
	struct net_inbox msg = {
		.hdr = { .service = RGATE_SERVICE_NET, .type = NET_INBOX,
			 .ring = htole16((uint16_t)r->number) },
	};
	int err = make(in, r, size, &msg.at);

	if (err == -EPROTO) {
		r->errors++;
		return;
	}
	if (err)
		rgate_warn("ring %u: no inbox of %u bytes: %s: larger with --pool", r->number, size,
			   strerror(-err));
	msg.hdr.value = htole32((uint32_t)-err);
	(void)inlet_send(in, &msg, sizeof(msg));
}

void inlet_pack_end(struct rgate_inlet *in, struct inlet_ring *r)
{
	if (r->inbox)
		rgate_pool_free(rgate_node_pool(in->node), r->inbox);
	r->inbox = NULL;
}

/* Slot @i from the ring's head on, from the chunk's @left bytes at @from; what it took, -EPROTO */
static int lay_slot(struct rgate_producer *p, unsigned int i, const unsigned char *from,
		    uint32_t left)
{
	struct rgate_slot *to = rgate_producer_slot(p, p->head + i), head;
	uint32_t len;

	if (left < HEAD_BYTES)
		return -EPROTO;
	memcpy((unsigned char *)&head + 8, from, HEAD_BYTES);
	len = net_packed(head.len, (uint32_t)rgate_producer_room(p));
	if (left - HEAD_BYTES < len)
		return -EPROTO;
	memcpy((unsigned char *)to + 8, (unsigned char *)&head + 8, HEAD_BYTES);
	memcpy(rgate_producer_data(to), from + HEAD_BYTES, len);
	return (int)(HEAD_BYTES + len);
}

/* The last one's sequence first: who sees the first slot of a chain finds the others */
static void publish(struct rgate_producer *p, unsigned int n)
{
	while (n--) {
		const uint64_t pos = p->head + n;

		__atomic_store_n(&rgate_producer_slot(p, pos)->seq, (pos >> p->lap_shift) + 1,
				 __ATOMIC_RELEASE);
	}
}

static int lay(struct inlet_ring *r, const struct net_chunk *c, const unsigned char *from)
{
	const uint32_t n = le32toh(c->slots), bytes = le32toh(c->bytes);
	struct rgate_stats stats;
	uint32_t i, at = 0;
	uint64_t head;
	int took;

	inlet_ring_mail(r, &c->mail, &head, &stats);
	if (n > RGATE_BATCH || bytes > net_chunk_max(r->inbox_size) - sizeof(*c) || bytes % 8 ||
	    head != r->p.head + n || head > rgate_producer_free(&r->p))
		return -EPROTO;
	for (i = 0; i < n; i++) {
		took = lay_slot(&r->p, i, from + at, bytes - at);
		if (took < 0)
			return took;
		at += (uint32_t)took;
	}
	if (at != bytes)
		return -EPROTO;
	publish(&r->p, n);
	return rgate_producer_landed(&r->p, head, &stats);
}

int inlet_pack_take(struct inlet_ring *r)
{
	struct net_chunk c;
	uint64_t at;
	int err;

	do {
		const unsigned char *chunk;

		at = net_chunk_at(r->read, r->inbox_size);
		/* More than the gateway may have written is none of its chunks. */
		if (at - r->read_told >= 2ULL * r->inbox_size)
			return -EPROTO;
		chunk = (unsigned char *)r->inbox->addr + (at & (r->inbox_size - 1));
		memcpy(&c, chunk, sizeof(c));
		if (le64toh(c.mark) != at + 1)
			return -EPROTO;
		err = lay(r, &c, chunk + sizeof(c));
		if (err)
			return err;
		r->read = net_chunk_end(at, le32toh(c.bytes));
	} while (!(le32toh(c.flags) & NET_CHUNK_NOTICE));
	return 0;
}
