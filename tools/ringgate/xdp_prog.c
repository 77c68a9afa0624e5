// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * Classic BPF to eBPF, instruction by instruction.
 *
 * A filter is compiled for frames as the receive hook sees them: the outer VLAN tag
 * was taken off, and stands beside the frame. An XDP program sees it in the frame. So
 * that the same filter matches the same frames, what follows the two addresses is read
 * as many bytes further on as the tag is long, and what the filter asks of the tag is
 * answered from there.
 *
 * Reads go through functions of the program, one for each size, that know this and
 * the ends of the frame; a read beyond ends the filter: no match, as in the kernel.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "xdp_prog.h"

#define FRAME_MAX	0xffff		/* of what the kernel's helper reads */
#define TAG_AT		12		/* behind the addresses */
#define TAG_LEN		4
#define WHOLE		0xffffffffU

/* What the registers hold; r1 to r5 are lost in calls */
enum { A = BPF_REG_7, X = BPF_REG_8, CTX = BPF_REG_6, TAG = BPF_REG_9 };

/* On the stack: the scratch memory, and the tag that was found */
#define SCRATCH(k)	((int16_t)(-4 * ((int)(k) + 1)))
#define TCI		((int16_t)(-4 * (BPF_MEMWORDS + 1)))
#define TPID		((int16_t)(-4 * (BPF_MEMWORDS + 2)))
#define READ_BUF	(-8)

enum { READ_1, READ_2, READ_4, NREADS };

/* Places that are not known yet when they are jumped to */
enum { TO_REJECT, TO_PUSH, TO_READ, TO_READ_END = TO_READ + NREADS, TO_CLASSIC = TO_READ_END };

struct gen {
	struct bpf_insn *v;
	size_t n, room;
	int *to;		/* of each instruction: place it goes to, or -1 */
	bool used[NREADS];
	int err;
};

static struct bpf_insn insn(uint8_t code, uint8_t dst, uint8_t src, int16_t off, int32_t imm)
{
	return (struct bpf_insn){
		.code = code, .dst_reg = dst & 0xf, .src_reg = src & 0xf, .off = off, .imm = imm,
	};
}

static void emit(struct gen *g, struct bpf_insn v, int to)
{
	if (g->err)
		return;
	if (g->n == g->room) {
		size_t room = g->room ? 2 * g->room : 256;
		struct bpf_insn *all = reallocarray(g->v, room, sizeof(*all));
		int *w = all ? reallocarray(g->to, room, sizeof(*w)) : NULL;

		if (all)
			g->v = all;
		if (!w) {
			g->err = -ENOMEM;
			return;
		}
		g->to = w;
		g->room = room;
	}
	g->to[g->n] = to;
	g->v[g->n++] = v;
}

static void op(struct gen *g, uint8_t code, uint8_t dst, uint8_t src, int16_t off, int32_t imm)
{
	emit(g, insn(code, dst, src, off, imm), -1);
}

static void mov(struct gen *g, uint8_t dst, uint8_t src)
{
	op(g, BPF_ALU64 | BPF_MOV | BPF_X, dst, src, 0, 0);
}

static void mov_u32(struct gen *g, uint8_t dst, uint32_t k)
{
	op(g, BPF_ALU | BPF_MOV | BPF_K, dst, 0, 0, (int32_t)k);
}

static void jump(struct gen *g, uint8_t code, uint8_t dst, uint8_t src, int32_t imm, int to)
{
	emit(g, insn(code, dst, src, 0, imm), to);
}

static void helper(struct gen *g, int func)
{
	op(g, BPF_JMP | BPF_CALL, 0, 0, 0, func);
}

/* r0 = bytes at r2; out of the frame: to @fail. With @fail < 0 r0 is looked at later. */
static void read_call(struct gen *g, int which, uint8_t tag, int fail)
{
	mov(g, BPF_REG_1, CTX);
	if (tag)
		mov(g, BPF_REG_3, tag);
	else
		mov_u32(g, BPF_REG_3, 0);
	emit(g, insn(BPF_JMP | BPF_CALL, 0, BPF_PSEUDO_CALL, 0, 0), TO_READ + which);
	g->used[which] = true;
	if (fail >= 0)
		jump(g, BPF_JMP | BPF_JSLT | BPF_K, BPF_REG_0, 0, 0, fail);
}

static void read_at(struct gen *g, int which, uint32_t off)
{
	mov_u32(g, BPF_REG_2, off);
	read_call(g, which, TAG, TO_REJECT);
}

/* The tag, if there is one: its length, and what it says */
static void find_tag(struct gen *g)
{
	size_t no_tag, too_short;

	mov(g, CTX, BPF_REG_1);
	mov_u32(g, A, 0);
	mov_u32(g, X, 0);
	mov_u32(g, TAG, 0);
	op(g, BPF_ST | BPF_MEM | BPF_W, BPF_REG_10, 0, TCI, 0);
	op(g, BPF_ST | BPF_MEM | BPF_W, BPF_REG_10, 0, TPID, 0);
	mov_u32(g, BPF_REG_2, TAG_AT);
	read_call(g, READ_2, 0, TO_REJECT);
	op(g, BPF_JMP | BPF_JEQ | BPF_K, BPF_REG_0, 0, 1, 0x8100);
	no_tag = g->n;
	op(g, BPF_JMP | BPF_JNE | BPF_K, BPF_REG_0, 0, 0, 0x88a8);
	op(g, BPF_STX | BPF_MEM | BPF_W, BPF_REG_10, BPF_REG_0, TPID, 0);
	mov_u32(g, BPF_REG_2, TAG_AT + 2);
	read_call(g, READ_2, 0, -1);
	too_short = g->n;
	op(g, BPF_JMP | BPF_JSLT | BPF_K, BPF_REG_0, 0, 0, 0);
	op(g, BPF_STX | BPF_MEM | BPF_W, BPF_REG_10, BPF_REG_0, TCI, 0);
	mov_u32(g, TAG, TAG_LEN);
	if (g->err)
		return;
	g->v[no_tag].off = (int16_t)(g->n - no_tag - 1);
	g->v[too_short].off = (int16_t)(g->n - too_short - 1);
}

/* What the kernel knows beside a frame */
static void ancillary(struct gen *g, uint32_t what)
{
	switch (what) {
	case SKF_AD_VLAN_TAG:
		op(g, BPF_LDX | BPF_MEM | BPF_W, A, BPF_REG_10, TCI, 0);
		break;
	case SKF_AD_VLAN_TAG_PRESENT:
		mov(g, A, TAG);
		op(g, BPF_ALU | BPF_RSH | BPF_K, A, 0, 0, 2);
		break;
	case SKF_AD_VLAN_TPID:
		op(g, BPF_LDX | BPF_MEM | BPF_W, A, BPF_REG_10, TPID, 0);
		break;
	case SKF_AD_IFINDEX:
		op(g, BPF_LDX | BPF_MEM | BPF_W, A, CTX,
		   offsetof(struct xdp_md, ingress_ifindex), 0);
		break;
	case SKF_AD_PKTTYPE:
		/* Expressions only ask whether the frame was sent from here: never. */
		mov_u32(g, A, 0);
		break;
	default:
		g->err = -EOPNOTSUPP;
	}
}

static int read_of(uint16_t code)
{
	return BPF_SIZE(code) == BPF_W ? READ_4 : BPF_SIZE(code) == BPF_H ? READ_2 : READ_1;
}

static void frame_len(struct gen *g, uint8_t dst)
{
	mov(g, BPF_REG_1, CTX);
	helper(g, BPF_FUNC_xdp_get_buff_len);
	op(g, BPF_ALU | BPF_SUB | BPF_X, BPF_REG_0, TAG, 0, 0);
	op(g, BPF_ALU | BPF_MOV | BPF_X, dst, BPF_REG_0, 0, 0);
}

static void load_a(struct gen *g, const struct sock_filter *f)
{
	switch (BPF_MODE(f->code)) {
	case BPF_ABS:
		if ((int32_t)f->k < 0 && f->k >= (uint32_t)SKF_AD_OFF) {
			ancillary(g, f->k - (uint32_t)SKF_AD_OFF);
			return;
		}
		if ((int32_t)f->k < 0) {
			g->err = -EOPNOTSUPP;
			return;
		}
		read_at(g, read_of(f->code), f->k);
		break;
	case BPF_IND:
		op(g, BPF_ALU | BPF_MOV | BPF_X, BPF_REG_2, X, 0, 0);
		/* NOLINTNEXTLINE(misc-redundant-expression): two are 0 */
		op(g, BPF_ALU | BPF_ADD | BPF_K, BPF_REG_2, 0, 0, (int32_t)f->k);
		read_call(g, read_of(f->code), TAG, TO_REJECT);
		break;
	case BPF_IMM:
		mov_u32(g, A, f->k);
		return;
	case BPF_MEM:
		op(g, BPF_LDX | BPF_MEM | BPF_W, A, BPF_REG_10, SCRATCH(f->k), 0);
		return;
	case BPF_LEN:
		frame_len(g, A);
		return;
	default:
		g->err = -EINVAL;
	}
	op(g, BPF_ALU | BPF_MOV | BPF_X, A, BPF_REG_0, 0, 0);
}

static void load_x(struct gen *g, const struct sock_filter *f)
{
	switch (BPF_MODE(f->code)) {
	case BPF_IMM:
		mov_u32(g, X, f->k);
		break;
	case BPF_MEM:
		op(g, BPF_LDX | BPF_MEM | BPF_W, X, BPF_REG_10, SCRATCH(f->k), 0);
		break;
	case BPF_LEN:
		frame_len(g, X);
		break;
	case BPF_MSH:
		/* four times the low half of a byte: a header's length */
		read_at(g, READ_1, f->k);
		op(g, BPF_ALU | BPF_AND | BPF_K, BPF_REG_0, 0, 0, 0xf);
		op(g, BPF_ALU | BPF_LSH | BPF_K, BPF_REG_0, 0, 0, 2);
		op(g, BPF_ALU | BPF_MOV | BPF_X, X, BPF_REG_0, 0, 0);
		break;
	default:
		g->err = -EINVAL;
	}
}

static void arithmetic(struct gen *g, const struct sock_filter *f)
{
	uint8_t what = BPF_OP(f->code), by = BPF_SRC(f->code);

	if (what > BPF_XOR) {
		g->err = -EINVAL;
		return;
	}
	/* classic BPF ends there, eBPF would go on with 0 */
	if ((what == BPF_DIV || what == BPF_MOD) && by == BPF_X)
		jump(g, BPF_JMP32 | BPF_JEQ | BPF_K, X, 0, 0, TO_REJECT);
	if (what == BPF_NEG)
		by = BPF_K;
	op(g, BPF_ALU | what | by, A, by == BPF_X ? X : 0, 0,
	   by == BPF_X || what == BPF_NEG ? 0 : (int32_t)f->k);
}

/* Classic instruction @i; those behind it that can be reached are marked. */
static void branch(struct gen *g, const struct sock_filter *f, size_t i, size_t len, bool *reach)
{
	uint8_t what = BPF_OP(f->code), by = BPF_SRC(f->code);
	size_t jt = i + 1 + (what == BPF_JA ? f->k : f->jt), jf = i + 1 + f->jf;

	if (jt >= len || (what != BPF_JA && jf >= len) || what > BPF_JSET) {
		g->err = -EINVAL;
		return;
	}
	reach[jt] = true;
	if (what == BPF_JA) {
		jump(g, BPF_JMP | BPF_JA, 0, 0, 0, TO_CLASSIC + (int)jt);
		return;
	}
	reach[jf] = true;
	jump(g, BPF_JMP32 | what | by, A, by == BPF_X ? X : 0,
	     by == BPF_X ? 0 : (int32_t)f->k, TO_CLASSIC + (int)jt);
	jump(g, BPF_JMP | BPF_JA, 0, 0, 0, TO_CLASSIC + (int)jf);
}

static void result(struct gen *g, const struct sock_filter *f)
{
	if (BPF_RVAL(f->code) == BPF_K)
		mov_u32(g, A, f->k);
	else if (BPF_RVAL(f->code) != BPF_A)
		g->err = -EINVAL;
	jump(g, BPF_JMP | BPF_JA, 0, 0, 0, TO_PUSH);
}

static void translate(struct gen *g, const struct sock_filter *f, size_t i, size_t len,
		      bool *reach)
{
	uint8_t class = BPF_CLASS(f->code);

	if ((class == BPF_ST || class == BPF_STX || ((class == BPF_LD || class == BPF_LDX) &&
						     BPF_MODE(f->code) == BPF_MEM)) &&
	    f->k >= BPF_MEMWORDS)
		g->err = -EINVAL;
	if (class == BPF_JMP) {
		branch(g, f, i, len, reach);
		return;
	}
	if (class == BPF_RET) {
		result(g, f);
		return;
	}
	if (i + 1 == len) {
		g->err = -EINVAL;
		return;
	}
	reach[i + 1] = true;
	switch (class) {
	case BPF_LD:
		load_a(g, f);
		break;
	case BPF_LDX:
		load_x(g, f);
		break;
	case BPF_ST:
	case BPF_STX:
		op(g, BPF_STX | BPF_MEM | BPF_W, BPF_REG_10, class == BPF_ST ? A : X,
		   SCRATCH(f->k), 0);
		break;
	case BPF_ALU:
		arithmetic(g, f);
		break;
	default:
		if (BPF_MISCOP(f->code) == BPF_TAX)
			op(g, BPF_ALU | BPF_MOV | BPF_X, X, A, 0, 0);
		else
			op(g, BPF_ALU | BPF_MOV | BPF_X, A, X, 0, 0);
	}
}

/* Hands the frame on with the filter's word on it, in A, and returns the verdict. */
static void push(struct gen *g, struct bpf_insn call, const struct rgate_ident *att)
{
	/* Bytes that are wanted do not count a tag that the filter does not see. */
	op(g, BPF_JMP32 | BPF_JEQ | BPF_K, A, 0, 2, 0);
	op(g, BPF_JMP32 | BPF_JGT | BPF_K, A, 0, 1, FRAME_MAX);
	op(g, BPF_ALU | BPF_ADD | BPF_X, A, TAG, 0, 0);
	mov(g, BPF_REG_1, CTX);
	mov_u32(g, BPF_REG_2, att->id);
	/* NOLINTNEXTLINE(misc-redundant-expression): two are 0 */
	op(g, BPF_LD | BPF_DW | BPF_IMM, BPF_REG_3, 0, 0, (int32_t)(uint32_t)att->cookie);
	op(g, 0, 0, 0, 0, (int32_t)(att->cookie >> 32));
	mov(g, BPF_REG_4, A);
	emit(g, call, -1);
	/* an attachment that is gone: the stack's, as if nobody were here */
	op(g, BPF_JMP32 | BPF_JSGE | BPF_K, BPF_REG_0, 0, 1, 0);
	mov_u32(g, BPF_REG_0, XDP_PASS);
	op(g, BPF_JMP | BPF_EXIT, 0, 0, 0, 0);
}

/* r0 = @size bytes at r2 of the real frame, r6 its context; otherwise to @fail */
static void read_real(struct gen *g, int size, size_t *fail)
{
	mov(g, BPF_REG_1, BPF_REG_6);
	mov(g, BPF_REG_3, BPF_REG_10);
	/* NOLINTNEXTLINE(misc-redundant-expression): two are 0 */
	op(g, BPF_ALU64 | BPF_ADD | BPF_K, BPF_REG_3, 0, 0, READ_BUF);
	mov_u32(g, BPF_REG_4, (uint32_t)size);
	helper(g, BPF_FUNC_xdp_load_bytes);
	*fail = g->n;
	op(g, BPF_JMP | BPF_JNE | BPF_K, BPF_REG_0, 0, 0, 0);
	op(g, BPF_LDX | BPF_MEM | (size == 1 ? BPF_B : size == 2 ? BPF_H : BPF_W), BPF_REG_0,
	   BPF_REG_10, READ_BUF, 0);
	if (size > 1)
		op(g, BPF_ALU | BPF_END | BPF_TO_BE, BPF_REG_0, 0, 0, 8 * size);
}

/* A function: r0 = bytes at r2 of r1's frame without the tag of r3 bytes; -1: beyond */
static void read_function(struct gen *g, int size)
{
	size_t far, plain, before = 0, fail[3] = { 0 }, at, i;

	mov(g, BPF_REG_6, BPF_REG_1);
	mov(g, BPF_REG_7, BPF_REG_2);
	far = g->n;
	op(g, BPF_JMP | BPF_JGT | BPF_K, BPF_REG_2, 0, 0, FRAME_MAX);
	plain = g->n;
	op(g, BPF_JMP | BPF_JEQ | BPF_K, BPF_REG_3, 0, 0, 0);
	op(g, BPF_JMP | BPF_JLT | BPF_K, BPF_REG_2, 0, 2, TAG_AT);
	op(g, BPF_ALU64 | BPF_ADD | BPF_X, BPF_REG_2, BPF_REG_3, 0, 0);
	op(g, BPF_JMP | BPF_JA, 0, 0, size > 1, 0);
	if (size > 1) {
		before = g->n;
		op(g, BPF_JMP | BPF_JGT | BPF_K, BPF_REG_2, 0, 0, TAG_AT - size);
	}
	at = g->n;
	read_real(g, size, &fail[0]);
	op(g, BPF_JMP | BPF_EXIT, 0, 0, 0, 0);
	if (g->err)
		return;
	g->v[plain].off = (int16_t)(at - plain - 1);
	if (size > 1) {
		/* on both sides of the tag: the front of one read, the end of another */
		g->v[before].off = (int16_t)(g->n - before - 1);
		mov(g, BPF_REG_8, BPF_REG_3);
		read_real(g, size, &fail[1]);
		mov(g, BPF_REG_9, BPF_REG_0);
		mov(g, BPF_REG_2, BPF_REG_7);
		op(g, BPF_ALU64 | BPF_ADD | BPF_X, BPF_REG_2, BPF_REG_8, 0, 0);
		read_real(g, size, &fail[2]);
		/* r7 = bits that stand behind it */
		/* NOLINTNEXTLINE(misc-redundant-expression): two are 0 */
		op(g, BPF_ALU64 | BPF_ADD | BPF_K, BPF_REG_7, 0, 0, size - TAG_AT);
		op(g, BPF_ALU64 | BPF_LSH | BPF_K, BPF_REG_7, 0, 0, 3);
		mov_u32(g, BPF_REG_1, 1);
		op(g, BPF_ALU64 | BPF_LSH | BPF_X, BPF_REG_1, BPF_REG_7, 0, 0);
		op(g, BPF_ALU64 | BPF_SUB | BPF_K, BPF_REG_1, 0, 0, 1);
		op(g, BPF_ALU64 | BPF_AND | BPF_X, BPF_REG_0, BPF_REG_1, 0, 0);
		op(g, BPF_ALU64 | BPF_XOR | BPF_K, BPF_REG_1, 0, 0, -1);
		op(g, BPF_ALU64 | BPF_AND | BPF_X, BPF_REG_9, BPF_REG_1, 0, 0);
		op(g, BPF_ALU64 | BPF_OR | BPF_X, BPF_REG_0, BPF_REG_9, 0, 0);
		op(g, BPF_JMP | BPF_EXIT, 0, 0, 0, 0);
	}
	if (g->err)
		return;
	g->v[far].off = (int16_t)(g->n - far - 1);
	for (i = 0; i < 3; i++)
		if (fail[i])
			g->v[fail[i]].off = (int16_t)(g->n - fail[i] - 1);
	op(g, BPF_ALU64 | BPF_MOV | BPF_K, BPF_REG_0, 0, 0, -1);
	op(g, BPF_JMP | BPF_EXIT, 0, 0, 0, 0);
}

/* Jumps and calls, now that all places are known */
static void resolve(struct gen *g, const size_t *place)
{
	size_t i;

	for (i = 0; i < g->n; i++) {
		ptrdiff_t by;

		if (g->to[i] < 0)
			continue;
		by = (ptrdiff_t)place[g->to[i]] - (ptrdiff_t)i - 1;
		if (g->v[i].code == (BPF_JMP | BPF_CALL))
			g->v[i].imm = (int32_t)by;
		else if (by <= INT16_MAX)
			g->v[i].off = (int16_t)by;
		else
			g->err = -E2BIG;
	}
}

static void filter_all(struct gen *g)
{
	mov(g, CTX, BPF_REG_1);
	mov_u32(g, TAG, 0);
	mov_u32(g, A, WHOLE);
}

static void filter_some(struct gen *g, const struct sock_fprog *filter, size_t *place,
			bool *reach)
{
	size_t i;

	find_tag(g);
	reach[0] = true;
	for (i = 0; i < filter->len && !g->err; i++) {
		place[TO_CLASSIC + i] = g->n;
		if (reach[i])
			translate(g, &filter->filter[i], i, filter->len, reach);
	}
	place[TO_REJECT] = g->n;
	mov_u32(g, A, 0);
}

int xdp_prog(const struct sock_fprog *filter, struct bpf_insn call,
	     const struct rgate_ident *att, struct bpf_insn **insns, size_t *n)
{
	size_t *place = calloc(TO_CLASSIC + (size_t)filter->len, sizeof(*place));
	bool *reach = calloc(filter->len + 1U, sizeof(*reach));
	struct gen g = { 0 };
	int i;

	if (!place || !reach)
		g.err = -ENOMEM;
	else if (filter->len)
		filter_some(&g, filter, place, reach);
	else
		filter_all(&g);
	if (!g.err) {
		place[TO_PUSH] = g.n;
		push(&g, call, att);
	}
	for (i = 0; i < NREADS && !g.err; i++)
		if (g.used[i]) {
			place[TO_READ + i] = g.n;
			read_function(&g, 1 << i);
		}
	if (!g.err)
		resolve(&g, place);
	free(place);
	free(reach);
	free(g.to);
	if (g.err) {
		free(g.v);
		return g.err;
	}
	*insns = g.v;
	*n = g.n;
	return 0;
}
