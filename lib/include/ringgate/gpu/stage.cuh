/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * A warp's piece of work: slots brought near, the user's function called for each
 * packet, answers put into the output ring.
 *
 * Slots are read over the link in one go: the header and the frame's first bytes of all
 * slots, 16 bytes a lane, neighbouring lanes neighbouring bytes, eight loads in flight
 * before the first is used. A 64-byte packet is one request of 128 bytes that way.
 */
#ifndef RINGGATE_GPU_STAGE_CUH
#define RINGGATE_GPU_STAGE_CUH

#include <ringgate/gpu/out.cuh>
#include <ringgate/gpu/packet.cuh>

#define RGATE_DSTAGE_LOADS	8U

/*
 * rgate_dprocess_fn - the user's function
 * @pkt: the packet; whole chains only, no filler
 * @result: this packet's element of the output array, or where its answer is to be built
 *	(in an output ring's slot; its header is before it, see rgate_dreply_header()), or
 *	null
 * @arg: as given to rgate_gpu_start()
 * Returns the bytes of the answer; 0: none. Without an output ring it means nothing.
 */
typedef uint32_t (*rgate_dprocess_fn)(const struct rgate_dpkt *pkt, void *result, void *arg);

/* How a kernel was made; constants, once all is inlined */
struct rgate_dshape {
	uint32_t near_len;	/* bytes of each frame brought near, a multiple of 16 */
	uint32_t reply;		/* bytes of an answer at most, a multiple of 64 */
	uint32_t run;		/* slots at most that a warp has in hand */
	uint32_t warp_each;	/* the warp calls for each packet together, not each lane */
	rgate_dprocess_fn process;
};

/* Bytes from one slot's copy to the next: not a multiple of 128, for the banks' sake */
#define RGATE_DSTAGE_STRIDE(near_len)	(RGATE_SLOT_HDR + (near_len) + 16U)
#define RGATE_DREPLY_STRIDE(reply)	((reply) ? RGATE_SLOT_HDR + (reply) + 16U : 0U)
/* Memory of one warp: copies, answers and their lengths */
#define RGATE_DWARP_BYTES(near_len, reply, run) \
	((run) * (RGATE_DSTAGE_STRIDE(near_len) + RGATE_DREPLY_STRIDE(reply)) + \
	 ((reply) ? 32U * 4U : 0U))

struct rgate_dnear {
	unsigned char *slots;
	unsigned char *replies;
	uint32_t *reply_len;
	struct rgate_dhint hint;	/* lane 0's */
};

RGATE_DEV void rgate_dnear_init(struct rgate_dnear *n, unsigned char *mem,
				const struct rgate_dshape *sh)
{
	n->slots = mem;
	n->replies = mem + sh->run * RGATE_DSTAGE_STRIDE(sh->near_len);
	n->reply_len = (uint32_t *)(n->replies + sh->run * RGATE_DREPLY_STRIDE(sh->reply));
	n->hint.head = n->hint.limit = 0;
}

/* The header of the answer that is built at @result: fields may be changed, seq not */
RGATE_DEV struct rgate_slot *rgate_dreply_header(void *result)
{
	return (struct rgate_slot *)((unsigned char *)result - RGATE_SLOT_HDR);
}

/*
 * The whole warp: brings @n slots from @pos on near. Of a slot that is shorter than header
 * and @near_len all of it: what follows is the next slot, or nobody's memory.
 */
RGATE_DEV void rgate_dstage(const struct rgate_dring *r, uint64_t pos, uint32_t n,
			    unsigned char *to, uint32_t near_len)
{
	const uint32_t per = (RGATE_SLOT_HDR + near_len) / 16, step = RGATE_DWARP;
	const uint32_t stride = RGATE_DSTAGE_STRIDE(near_len), total = n * per;
	const uint32_t most = 1U << r->size_shift >> 4;
	struct rgate_dvec v[RGATE_DSTAGE_LOADS];
	uint32_t at, i;

	RGATE_DROLL
	for (at = rgate_dlane(); at < total; at += RGATE_DSTAGE_LOADS * step) {
		RGATE_DUNROLL
		for (i = 0; i < RGATE_DSTAGE_LOADS; i++) {
			uint32_t c = at + i * step;

			if (c < total && c % per < most)
				v[i] = rgate_dload16((const unsigned char *)
						     rgate_dring_slot(r, pos + c / per) +
						     c % per * 16);
		}
		RGATE_DUNROLL
		for (i = 0; i < RGATE_DSTAGE_LOADS; i++) {
			uint32_t c = at + i * step;

			if (c < total && c % per < most)
				*(struct rgate_dvec *)(to + c / per * stride + c % per * 16) = v[i];
		}
	}
	rgate_dwarp_sync();
}

/* Slots of the packet that begins at @pos; 0: filler, or no packet's first slot */
RGATE_DEV uint32_t rgate_dslot_parts(const struct rgate_slot *s, uint64_t pos)
{
	uint32_t room = RGATE_BATCH - (uint32_t)(pos & (RGATE_BATCH - 1));

	if (s->flags & (RGATE_SLOT_PAD | RGATE_SLOT_CONT))
		return 0;
	if (s->chain_cnt <= 1)
		return 1;
	return s->chain_cnt <= room ? s->chain_cnt : 0;
}

/* The slot at @pos, whose header and first @near_len bytes are at @copy; all but parts and ring */
RGATE_DEV void rgate_dslot_view(const struct rgate_dring *r, uint64_t pos,
				const unsigned char *copy, uint32_t near_len,
				struct rgate_dpkt *pkt)
{
	const uint32_t room = rgate_dring_room(r);

	pkt->hdr = (const struct rgate_slot *)copy;
	pkt->near = copy + RGATE_SLOT_HDR;
	pkt->data = (const unsigned char *)rgate_dring_slot(r, pos) + RGATE_SLOT_HDR;
	pkt->r = r;
	pkt->pos = pos;
	/* never beyond the slot, whatever it says */
	pkt->len = pkt->hdr->len < room ? pkt->hdr->len : room;
	pkt->near_len = pkt->len < near_len ? pkt->len : near_len;
}

/* What a warp counts of a run, by lane */
struct rgate_dtally {
	uint32_t packets;
	uint32_t bytes;
};

/* What is left to do when a piece is done with, by anybody */
struct rgate_dleft {
	struct rgate_drun run;
	uint64_t ns;		/* that it took */
	uint64_t bytes;		/* of its packets */
	uint32_t packets;
	uint32_t answers;	/* shown, from @out on */
	uint64_t answer_bytes;
	uint64_t out;
};

RGATE_DEV void *rgate_dresult(const struct rgate_dctx *ctx, const struct rgate_dshape *sh,
			      const struct rgate_dnear *near, uint32_t i, uint64_t pos)
{
	if (sh->reply)
		return near->replies + i * RGATE_DREPLY_STRIDE(sh->reply) + RGATE_SLOT_HDR;
	if (!ctx->results)
		return NULL;
	return ctx->results + (pos & ctx->results_mask) * ctx->result_size;
}

/* The zero tail of an answer, as a slot has it */
RGATE_DEV void rgate_dreply_tail(unsigned char *frame, uint32_t len, uint32_t lane,
				 uint32_t step)
{
	uint32_t end = (len + 63) & ~63U, i;

	RGATE_DROLL
	for (i = len + lane; i < end; i += step)
		frame[i] = 0;
}

/* One lane, or the whole warp with the same @i: the @i-th slot of a run */
RGATE_DEV void rgate_dslot_work(const struct rgate_dctx *ctx, const struct rgate_dshape *sh,
				const struct rgate_drun *run, const struct rgate_dnear *near,
				uint32_t i, struct rgate_dtally *tally)
{
	const unsigned char *copy = near->slots + i * RGATE_DSTAGE_STRIDE(sh->near_len);
	const struct rgate_slot *s = (const struct rgate_slot *)copy;
	uint32_t step = sh->warp_each ? RGATE_DWARP : 1;
	uint32_t lane = sh->warp_each ? rgate_dlane() : 0, len = 0;
	struct rgate_dpkt pkt;
	void *result;

	rgate_dslot_view(&ctx->ring[run->ring], run->pos + i, copy, sh->near_len, &pkt);
	pkt.ring = run->ring;
	pkt.parts = rgate_dslot_parts(s, pkt.pos);
	if (pkt.parts) {
		result = rgate_dresult(ctx, sh, near, i, pkt.pos);
		if (sh->reply && lane == 0)
			rgate_dout_header(rgate_dreply_header(result), s, 0,
					  ctx->out.flags);
		if (sh->reply && sh->warp_each)
			rgate_dwarp_sync();
		len = sh->process(&pkt, result, ctx->arg);
		if (lane == 0) {
			tally->packets++;
			tally->bytes += pkt.parts > 1 ? rgate_dpkt_total(&pkt) : pkt.len;
		}
		if (sh->reply) {
			if (len > sh->reply)
				len = 0;	/* what does not fit is none */
			rgate_dreply_tail((unsigned char *)result, len, lane, step);
		}
	}
	if (sh->reply && lane == 0)
		near->reply_len[i] = len;
}

/*
 * The whole warp: puts the answers of @n packets into the output ring, in their order
 * @mine: bits of those that are this warp's
 * @left: out, how many, and where: their turn is to be passed on
 */
RGATE_DEV void rgate_dreply_send(const struct rgate_dctx *ctx, const struct rgate_dshape *sh,
				 struct rgate_dnear *near, uint32_t n, uint32_t mine,
				 struct rgate_dleft *left)
{
	const uint32_t per = (RGATE_SLOT_HDR + sh->reply) / 16;
	const uint32_t stride = RGATE_DREPLY_STRIDE(sh->reply);
	uint32_t i, mask = 0, count, bytes = 0;	/* count: the first ones have room */
	const struct rgate_dout *o = &ctx->out;
	uint64_t pos;

	left->answers = 0;
	RGATE_DROLL
	for (i = rgate_dlane(); i < n; i += RGATE_DWARP)
		if (mine >> i & 1 && near->reply_len[i])
			mask |= 1U << i;
	mask = rgate_dwarp_or(mask);
	count = rgate_dcount(mask);
	if (!count)
		return;
	pos = rgate_dout_reserve(ctx, &near->hint, &count);
	if (!count)
		return;
	RGATE_DROLL
	for (i = rgate_dlane(); i < n; i += RGATE_DWARP) {
		uint32_t nth = rgate_dcount(mask & ((1U << i) - 1));
		struct rgate_slot *s = (struct rgate_slot *)(near->replies + i * stride);

		if (!(mask >> i & 1) || nth >= count)
			continue;
		/* the word as it is there now: it is stored with the rest, and means "not yet" */
		s->seq = (pos + nth) >> o->lap_shift;
		s->len = s->wire_len = near->reply_len[i];
		bytes += near->reply_len[i];
	}
	bytes = rgate_dwarp_add(bytes);
	rgate_dwarp_sync();
	RGATE_DROLL
	for (i = rgate_dlane(); i < n * per; i += RGATE_DWARP) {
		uint32_t k = i / per, off = i % per * 16;
		uint32_t nth = rgate_dcount(mask & ((1U << k) - 1));

		if (mask >> k & 1 && nth < count &&
		    off < RGATE_SLOT_HDR + ((near->reply_len[k] + 63) & ~63U))
			*(struct rgate_dvec *)((unsigned char *)rgate_dout_slot(o, pos + nth) + off) =
				*(const struct rgate_dvec *)(near->replies + k * stride + off);
	}
	rgate_dout_show(o, pos, count);
	left->out = pos;
	left->answers = count;
	left->answer_bytes = bytes;
}

/* The whole warp: does a run of at most sh->run slots. @left: out */
RGATE_DEV void rgate_drun_piece(const struct rgate_dctx *ctx, const struct rgate_dshape *sh,
				const struct rgate_drun *run, struct rgate_dnear *near,
				struct rgate_dleft *left)
{
	uint64_t began = rgate_dnow();
	struct rgate_dtally t = { 0, 0 };
	uint32_t i;

	rgate_dstage(&ctx->ring[run->ring], run->pos, run->count, near->slots, sh->near_len);
	if (sh->warp_each) {
		RGATE_DROLL
		for (i = 0; i < run->count; i++)
			rgate_dslot_work(ctx, sh, run, near, i, &t);
	} else {
		RGATE_DROLL
		for (i = rgate_dlane(); i < run->count; i += RGATE_DWARP)
			rgate_dslot_work(ctx, sh, run, near, i, &t);
	}
	rgate_dwarp_sync();
	left->answers = 0;
	if (sh->reply)
		rgate_dreply_send(ctx, sh, near, run->count, ~0U, left);
	left->packets = rgate_dwarp_add(t.packets);
	left->bytes = rgate_dwarp_add(t.bytes);
	left->run = *run;
	left->ns = rgate_dnow() - began;
	rgate_dwarp_sync();
}

/* One thread, after a barrier with those that worked: what is left of a piece */
RGATE_DEV void rgate_dleft_do(const struct rgate_dctx *ctx, const struct rgate_dleft *left)
{
	if (left->answers)
		rgate_dout_pass(&ctx->out, left->out, left->answers, left->answer_bytes);
	rgate_drun_count(ctx, left->run.ring, left->packets, left->bytes, left->ns);
	rgate_drun_done(ctx, &left->run);
}

/* The whole warp: a run inside one batch */
RGATE_DEV void rgate_drun_work(const struct rgate_dctx *ctx, const struct rgate_dshape *sh,
			       const struct rgate_drun *run, struct rgate_dnear *near)
{
	struct rgate_drun piece = *run;
	uint32_t todo = run->count;
	struct rgate_dleft left;

	RGATE_DROLL
	while (todo) {
		piece.count = todo < sh->run ? todo : sh->run;
		rgate_drun_piece(ctx, sh, &piece, near, &left);
		if (rgate_dlane() == 0)
			rgate_dleft_do(ctx, &left);
		rgate_dwarp_sync();
		piece.pos += piece.count;
		todo -= piece.count;
	}
}

#endif
