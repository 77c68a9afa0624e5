// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * XDP programs out of classic BPF are run here, by as much of an eBPF machine as they need, on
 * frames with and without a tag: they answer as libpcap does for the frame without it.
 */
#include "unit.h"

#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "xdp.h"
#include "xdp_prog.h"

#define FUNC		4321
#define VERDICT		77
#define STACK		512
#define STEPS_MAX	100000U
#define STMT(c, v)	{ (c), 0, 0, (uint32_t)(v) }
#define JUMP(c, v, t, f) { (c), (t), (f), (uint32_t)(v) }
#define IFINDEX		0x1234567

/* libpcap's, whose header has another struct bpf_insn */
unsigned int bpf_filter(const void *program, const unsigned char *frame, unsigned int wire_len,
			unsigned int len);

static const struct rgate_ident att = { .id = 7, .cookie = 0x91223344a5667788ULL };

/* ---- The machine ---- */

static struct machine {
	const struct bpf_insn *v;
	size_t n;
	const unsigned char *frame;
	unsigned int len, steps, pushes;
	struct xdp_md ctx;
	uint32_t wanted;	/* what the program said of the frame */
	int64_t answer;		/* of the function that it hands frames to */
} m;

static uint64_t run(size_t pc, uint64_t r1, uint64_t r2, uint64_t r3);

/* What registers hold after calls is of no use. */
static void spoil(uint64_t *r)
{
	int i;

	for (i = 1; i <= 5; i++)
		r[i] = 0xdeadbeefdeadbeefULL + (uint64_t)i;
}

static void call(const struct bpf_insn *in, size_t pc, uint64_t *r)
{
	unit_require(r[1] == (uintptr_t)&m.ctx && !in->dst_reg);
	unit_require(in->off == (in->src_reg == BPF_PSEUDO_KFUNC_CALL));
	if (in->src_reg == BPF_PSEUDO_CALL) {
		r[0] = run(pc + 1 + (size_t)(ssize_t)in->imm, r[1], r[2], r[3]);
	} else if (in->src_reg == BPF_PSEUDO_KFUNC_CALL) {
		unit_require(in->imm == FUNC && (uint32_t)r[2] == att.id && r[3] == att.cookie);
		m.wanted = (uint32_t)r[4];
		m.pushes++;
		r[0] = (uint64_t)m.answer;
	} else if (in->imm == BPF_FUNC_xdp_get_buff_len) {
		unit_require(!in->src_reg);
		r[0] = m.len;
	} else {
		unit_require(in->imm == BPF_FUNC_xdp_load_bytes && !in->src_reg);
		unit_require(r[4] >= 1 && r[4] <= 4);
		r[0] = (uint64_t)-EFAULT;
		if (r[2] + r[4] <= m.len) {
			memcpy((void *)(uintptr_t)r[3], m.frame + r[2], r[4]);
			r[0] = 0;
		}
	}
	spoil(r);
}

static uint64_t alu(uint8_t op, uint64_t a, uint64_t b, bool wide)
{
	const unsigned int bits = wide ? 63 : 31;

	switch (op) {
	case BPF_ADD:
		return a + b;
	case BPF_SUB:
		return a - b;
	case BPF_MUL:
		return a * b;
	case BPF_DIV:
		return b ? a / b : 0;
	case BPF_OR:
		return a | b;
	case BPF_AND:
		return a & b;
	case BPF_LSH:
		return a << (b & bits);
	case BPF_RSH:
		return a >> (b & bits);
	case BPF_NEG:
		return -a;
	case BPF_MOD:
		return b ? a % b : a;
	case BPF_XOR:
		return a ^ b;
	default:
		unit_require(op == BPF_MOV);
		return b;
	}
}

static bool holds(uint8_t op, uint64_t a, uint64_t b, bool wide)
{
	const int64_t sa = wide ? (int64_t)a : (int32_t)a, sb = wide ? (int64_t)b : (int32_t)b;

	switch (op) {
	case BPF_JA:
		return true;
	case BPF_JEQ:
		return a == b;
	case BPF_JNE:
		return a != b;
	case BPF_JGT:
		return a > b;
	case BPF_JGE:
		return a >= b;
	case BPF_JLT:
		return a < b;
	case BPF_JLE:
		return a <= b;
	case BPF_JSET:
		return a & b;
	case BPF_JSLT:
		return sa < sb;
	default:
		unit_require(op == BPF_JSGE);
		return sa >= sb;
	}
}

/* What an instruction does not use is 0: else the kernel does not take it. */
static uint64_t operand(const struct bpf_insn *in, const uint64_t *r)
{
	if (BPF_SRC(in->code) == BPF_X) {
		unit_require(!in->imm);
		return r[in->src_reg];
	}
	unit_require(!in->src_reg);
	return (uint64_t)(int64_t)in->imm;
}

static void swap(const struct bpf_insn *in, uint64_t *r)
{
	const uint64_t v = r[in->dst_reg];

	unit_require(BPF_CLASS(in->code) == BPF_ALU && BPF_SRC(in->code) == BPF_TO_BE);
	unit_require(!in->src_reg && !in->off && (in->imm == 16 || in->imm == 32));
	r[in->dst_reg] = in->imm == 16 ? htobe16((uint16_t)v) : htobe32((uint32_t)v);
}

static void compute(const struct bpf_insn *in, uint64_t *r)
{
	const bool wide = BPF_CLASS(in->code) == BPF_ALU64;
	uint64_t a = r[in->dst_reg], b = operand(in, r);

	unit_require(!in->off);
	if (!wide) {
		a = (uint32_t)a;
		b = (uint32_t)b;
	}
	a = alu(BPF_OP(in->code), a, b, wide);
	r[in->dst_reg] = wide ? a : (uint32_t)a;
}

static void transfer(const struct bpf_insn *in, uint64_t *r, const unsigned char *stack)
{
	const bool load = BPF_CLASS(in->code) == BPF_LDX;
	const uint8_t by = load ? in->src_reg : in->dst_reg;
	unsigned char *at = (unsigned char *)(uintptr_t)r[by] + in->off;
	const uint64_t v = BPF_CLASS(in->code) == BPF_ST ? (uint64_t)(int64_t)in->imm :
							    r[in->src_reg];
	uint32_t word = 0;
	size_t size = BPF_SIZE(in->code) == BPF_B ? 1 : BPF_SIZE(in->code) == BPF_H ? 2 : 4;

	unit_require(BPF_MODE(in->code) == BPF_MEM);
	unit_require(BPF_CLASS(in->code) == BPF_ST ? !in->src_reg : !in->imm);
	if (by != BPF_REG_10)
		unit_require(load && at == (unsigned char *)&m.ctx.ingress_ifindex);
	else
		unit_require(at >= stack && at + size <= stack + STACK);
	if (load) {
		memcpy(&word, at, size);
		r[in->dst_reg] = word;
	} else {
		memcpy(at, &v, size);
	}
}

static bool jumps(const struct bpf_insn *in, const uint64_t *r)
{
	const bool wide = BPF_CLASS(in->code) == BPF_JMP;
	const uint64_t a = r[in->dst_reg], b = operand(in, r);

	if (in->code == (BPF_JMP | BPF_JA))
		unit_require(!in->dst_reg && !in->imm);
	return holds(BPF_OP(in->code), wide ? a : (uint32_t)a, wide ? b : (uint32_t)b, wide);
}

/* A function of the program, from @pc to its exit */
static uint64_t run(size_t pc, uint64_t r1, uint64_t r2, uint64_t r3)
{
	unsigned char stack[STACK];
	uint64_t r[11] = { 0, r1, r2, r3, 4, 5, 6, 7, 8, 9, (uintptr_t)stack + STACK };

	memset(stack, 0xee, sizeof(stack));
	for (;; pc++) {
		const struct bpf_insn *in = &m.v[pc];
		const uint8_t class = BPF_CLASS(in->code);

		unit_require(pc < m.n && ++m.steps < STEPS_MAX);
		if (in->code == (BPF_LD | BPF_DW | BPF_IMM)) {
			unit_require(!in->src_reg && !in->off);
			unit_require(!in[1].code && !in[1].dst_reg && !in[1].src_reg && !in[1].off);
			r[in->dst_reg] = (uint32_t)in->imm | (uint64_t)(uint32_t)in[1].imm << 32;
			pc++;
		} else if (BPF_OP(in->code) == BPF_END && class == BPF_ALU) {
			swap(in, r);
		} else if (class == BPF_ALU || class == BPF_ALU64) {
			compute(in, r);
		} else if (in->code == (BPF_JMP | BPF_EXIT)) {
			unit_require(!in->dst_reg && !in->src_reg && !in->off && !in->imm);
			return r[0];
		} else if (in->code == (BPF_JMP | BPF_CALL)) {
			call(in, pc, r);
		} else if (class == BPF_JMP || class == BPF_JMP32) {
			pc += jumps(in, r) ? (size_t)(ssize_t)in->off : 0;
		} else {
			transfer(in, r, stack);
		}
	}
}

/* ---- What it says ---- */

/* The program's word on a frame */
static uint32_t word_on(const struct sock_filter *v, size_t n, const unsigned char *frame,
			unsigned int len)
{
	struct sock_fprog f = {
		.len = (unsigned short)n, .filter = (struct sock_filter *)(uintptr_t)v,
	};
	struct bpf_insn *insns;
	int64_t answer = m.answer;
	uint64_t got;

	m = (struct machine){ .frame = frame, .len = len, .answer = answer,
			      .ctx.ingress_ifindex = IFINDEX };
	assert_int_equal(xdp_prog(&f, xdp_call(FUNC), &att, &insns, &m.n), 0);
	m.v = insns;
	got = run(0, (uintptr_t)&m.ctx, 2, 3);
	free(insns);
	assert_int_equal(m.pushes, 1);
	/* of an attachment that is gone the stack has its frames */
	assert_int_equal((uint32_t)got, answer < 0 ? XDP_PASS : (uint32_t)answer);
	return m.wanted;
}

#define LONGEST	64

/* A frame of @len bytes, and the same with a tag behind its addresses, if it has room for one */
static unsigned char plain[LONGEST], tagged[LONGEST + 4];

static void frames(uint16_t tpid, uint16_t tci)
{
	uint64_t rnd = 4;
	unsigned int i;

	for (i = 0; i < LONGEST; i++)
		plain[i] = (unsigned char)unit_random(&rnd);
	plain[12] = 8;
	plain[13] = 0;
	memcpy(tagged, plain, 12);
	tagged[12] = (unsigned char)(tpid >> 8);
	tagged[13] = (unsigned char)tpid;
	tagged[14] = (unsigned char)(tci >> 8);
	tagged[15] = (unsigned char)tci;
	memcpy(tagged + 16, plain + 12, LONGEST - 12);
}

/* Bytes that are wanted are counted with the tag; none, and all, are what they are. */
static uint32_t with_tag(uint32_t wanted)
{
	return wanted && wanted <= 0xffff ? wanted + 4 : wanted;
}

/* As libpcap has it, for all lengths of frames that have an Ethernet header */
static void same(const struct sock_filter *v, size_t n)
{
	unsigned int len;
	uint32_t want;

	frames(0x8100, 0xa123);
	for (len = 14; len <= LONGEST; len += len < 40 ? 1 : 8) {
		want = bpf_filter(v, plain, len, len);
		assert_int_equal(word_on(v, n, plain, len), want);
		assert_int_equal(word_on(v, n, tagged, len + 4), with_tag(want));
	}
}

#define SAME(...) \
	do { \
		const struct sock_filter v_[] = { __VA_ARGS__ }; \
		same(v_, ARRAY_LEN(v_)); \
	} while (0)

static void everything(void **state)
{
	(void)state;
	frames(0x8100, 1);
	m.answer = VERDICT;
	assert_int_equal(word_on(NULL, 0, plain, 14), UINT32_MAX);
	assert_int_equal(word_on(NULL, 0, plain, 0), UINT32_MAX);
	assert_int_equal(word_on(NULL, 0, tagged, 68), UINT32_MAX);
	m.answer = -1;
	assert_int_equal(word_on(NULL, 0, tagged, 68), UINT32_MAX);
	m.answer = 0;
	assert_int_equal(word_on(NULL, 0, tagged, 68), UINT32_MAX);
	m.answer = VERDICT;
}

static void results(void **state)
{
	static const uint32_t values[] = { 0, 1, 96, 0xffff, 0x10000, UINT32_MAX };
	unsigned int i;

	(void)state;
	for (i = 0; i < ARRAY_LEN(values); i++) {
		SAME(STMT(BPF_RET | BPF_K, values[i]));
		SAME(STMT(BPF_LD | BPF_IMM, values[i]), STMT(BPF_RET | BPF_A, 0));
		SAME(STMT(BPF_LDX | BPF_IMM, values[i]), STMT(BPF_MISC | BPF_TXA, 0),
		     STMT(BPF_RET | BPF_A, 0));
	}
}

/* Each place and size, before the tag, across it, behind it and beyond the frame */
static void reads(void **state)
{
	static const uint16_t sizes[] = { BPF_B, BPF_H, BPF_W };
	unsigned int i, k;

	(void)state;
	for (i = 0; i < ARRAY_LEN(sizes); i++)
		for (k = 0; k < 30; k++) {
			SAME(STMT(BPF_LD | BPF_ABS | sizes[i], k), STMT(BPF_RET | BPF_A, 0));
			SAME(STMT(BPF_LDX | BPF_IMM, k / 2),
			     STMT(BPF_LD | BPF_IND | sizes[i], k - k / 2),
			     STMT(BPF_RET | BPF_A, 0));
			SAME(STMT(BPF_LDX | BPF_B | BPF_MSH, k), STMT(BPF_MISC | BPF_TXA, 0),
			     STMT(BPF_RET | BPF_A, 0));
		}
	/* far away, and around the end of numbers */
	SAME(STMT(BPF_LD | BPF_ABS | BPF_W, 0x10000), STMT(BPF_RET | BPF_A, 0));
	SAME(STMT(BPF_LD | BPF_ABS | BPF_W, 0xffff), STMT(BPF_RET | BPF_A, 0));
	SAME(STMT(BPF_LD | BPF_ABS | BPF_B, 0x7fffffff), STMT(BPF_RET | BPF_A, 0));
	SAME(STMT(BPF_LDX | BPF_IMM, 0xfffffffe), STMT(BPF_LD | BPF_IND | BPF_H, 1),
	     STMT(BPF_RET | BPF_A, 0));
}

static void registers(void **state)
{
	unsigned int k;

	(void)state;
	for (k = 0; k < BPF_MEMWORDS; k++) {
		/* one word each: a neighbour's stays */
		SAME(STMT(BPF_LD | BPF_IMM, 500), STMT(BPF_ST, k ^ 1),
		     STMT(BPF_LD | BPF_IMM, 300 + k), STMT(BPF_ST, k), STMT(BPF_LDX | BPF_IMM, 7),
		     STMT(BPF_STX, k ^ 2), STMT(BPF_LD | BPF_IMM, 9), STMT(BPF_LD | BPF_MEM, k),
		     STMT(BPF_LDX | BPF_MEM, k ^ 1), STMT(BPF_ALU | BPF_SUB | BPF_X, 0),
		     STMT(BPF_LDX | BPF_MEM, k ^ 2), STMT(BPF_ALU | BPF_MUL | BPF_X, 0),
		     STMT(BPF_RET | BPF_A, 0));
	}
	SAME(STMT(BPF_LD | BPF_LEN | BPF_W, 0), STMT(BPF_RET | BPF_A, 0));
	SAME(STMT(BPF_LDX | BPF_LEN | BPF_W, 0), STMT(BPF_LD | BPF_IMM, 5),
	     STMT(BPF_ALU | BPF_ADD | BPF_X, 0), STMT(BPF_RET | BPF_A, 0));
	SAME(STMT(BPF_LD | BPF_IMM, 11), STMT(BPF_MISC | BPF_TAX, 0), STMT(BPF_LD | BPF_IMM, 2),
	     STMT(BPF_ALU | BPF_LSH | BPF_X, 0), STMT(BPF_RET | BPF_A, 0));
	/* what was read stays over the next read */
	SAME(STMT(BPF_LDX | BPF_B | BPF_MSH, 14), STMT(BPF_LD | BPF_W | BPF_ABS, 10),
	     STMT(BPF_ST, 3), STMT(BPF_LD | BPF_H | BPF_IND, 2), STMT(BPF_LDX | BPF_MEM, 3),
	     STMT(BPF_ALU | BPF_XOR | BPF_X, 0), STMT(BPF_RET | BPF_A, 0));
	/* and none has what was there before */
	SAME(STMT(BPF_RET | BPF_A, 0));
	SAME(STMT(BPF_MISC | BPF_TXA, 0), STMT(BPF_RET | BPF_A, 0));
}

static void arithmetic(void **state)
{
	static const uint16_t ops[] = {
		BPF_ADD, BPF_SUB, BPF_MUL, BPF_DIV, BPF_OR, BPF_AND, BPF_LSH, BPF_RSH, BPF_MOD,
		BPF_XOR,
	};
	static const uint32_t values[] = { 1, 3, 31, 0x80000001, UINT32_MAX };
	unsigned int i, a, b;

	(void)state;
	for (i = 0; i < ARRAY_LEN(ops); i++)
		for (a = 0; a < ARRAY_LEN(values); a++)
			for (b = 0; b < ARRAY_LEN(values); b++) {
				if ((ops[i] == BPF_LSH || ops[i] == BPF_RSH) && values[b] > 31)
					continue;
				SAME(STMT(BPF_LD | BPF_IMM, values[a]),
				     STMT(BPF_ALU | BPF_K | ops[i], values[b]),
				     STMT(BPF_RET | BPF_A, 0));
				SAME(STMT(BPF_LDX | BPF_IMM, values[b]),
				     STMT(BPF_LD | BPF_IMM, values[a]),
				     STMT(BPF_ALU | BPF_X | ops[i], 0),
				     STMT(BPF_RET | BPF_A, 0));
			}
	SAME(STMT(BPF_LD | BPF_IMM, 5), STMT(BPF_ALU | BPF_NEG, 0), STMT(BPF_RET | BPF_A, 0));
	/* by nothing: no match */
	SAME(STMT(BPF_LD | BPF_IMM, 5), STMT(BPF_ALU | BPF_DIV | BPF_X, 0),
	     STMT(BPF_RET | BPF_K, 9));
	SAME(STMT(BPF_LD | BPF_IMM, 5), STMT(BPF_ALU | BPF_MOD | BPF_X, 0),
	     STMT(BPF_RET | BPF_K, 9));
}

static void branches(void **state)
{
	static const uint16_t ops[] = { BPF_JEQ, BPF_JGT, BPF_JGE, BPF_JSET };
	static const uint32_t values[] = { 0, 1, 2, 0x7fffffff, 0x80000000, UINT32_MAX };
	unsigned int i, a, b;

	(void)state;
	for (i = 0; i < ARRAY_LEN(ops); i++)
		for (a = 0; a < ARRAY_LEN(values); a++)
			for (b = 0; b < ARRAY_LEN(values); b++) {
				SAME(STMT(BPF_LD | BPF_IMM, values[a]),
				     JUMP(BPF_JMP | BPF_K | ops[i], values[b], 0, 1),
				     STMT(BPF_RET | BPF_K, 11), STMT(BPF_RET | BPF_K, 22));
				SAME(STMT(BPF_LDX | BPF_IMM, values[b]),
				     STMT(BPF_LD | BPF_IMM, values[a]),
				     JUMP(BPF_JMP | BPF_X | ops[i], 0, 2, 1),
				     STMT(BPF_RET | BPF_K, 11), STMT(BPF_RET | BPF_K, 22),
				     STMT(BPF_RET | BPF_K, 33));
			}
	/* over what is never reached */
	SAME(STMT(BPF_JMP | BPF_JA, 1), STMT(BPF_RET | BPF_K, 11), STMT(BPF_RET | BPF_K, 22));
}

static uint32_t beside(uint32_t what, const unsigned char *frame, unsigned int len)
{
	const struct sock_filter v[] = {
		STMT(BPF_LD | BPF_W | BPF_ABS, (uint32_t)(SKF_AD_OFF + (int)what)),
		STMT(BPF_ALU | BPF_OR | BPF_K, 0x40000000),	/* no number of bytes */
		STMT(BPF_RET | BPF_A, 0),
	};

	return word_on(v, ARRAY_LEN(v), frame, len) & ~0x40000000U;
}

/* What the kernel has beside the frame */
static void tags(void **state)
{
	static const uint16_t tpids[] = { 0x8100, 0x88a8 };
	unsigned int i;

	(void)state;
	for (i = 0; i < ARRAY_LEN(tpids); i++) {
		frames(tpids[i], 0xe00f);
		assert_int_equal(beside(SKF_AD_VLAN_TAG, tagged, 64), 0xe00f);
		assert_int_equal(beside(SKF_AD_VLAN_TPID, tagged, 64), tpids[i]);
		assert_int_equal(beside(SKF_AD_VLAN_TAG_PRESENT, tagged, 64), 1);
		assert_int_equal(beside(SKF_AD_VLAN_TAG_PRESENT, tagged, 16), 1);
	}
	/* another one is no tag, nor is half of one */
	frames(0x8101, 0xe00f);
	assert_int_equal(beside(SKF_AD_VLAN_TAG_PRESENT, tagged, 64), 0);
	assert_int_equal(beside(SKF_AD_VLAN_TAG, tagged, 64), 0);
	frames(0x8100, 0xe00f);
	assert_int_equal(beside(SKF_AD_VLAN_TAG_PRESENT, tagged, 15), 0);
	assert_int_equal(beside(SKF_AD_VLAN_TAG, plain, 60), 0);
	assert_int_equal(beside(SKF_AD_VLAN_TPID, plain, 60), 0);
	assert_int_equal(beside(SKF_AD_VLAN_TAG_PRESENT, plain, 60), 0);
	assert_int_equal(beside(SKF_AD_IFINDEX, plain, 60), IFINDEX);
	assert_int_equal(beside(SKF_AD_PKTTYPE, plain, 60), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(everything),
		cmocka_unit_test(results),
		cmocka_unit_test(reads),
		cmocka_unit_test(registers),
		cmocka_unit_test(arithmetic),
		cmocka_unit_test(branches),
		cmocka_unit_test(tags),
	};

	m.answer = VERDICT;
	return unit_run(__FILE__, tests, ARRAY_LEN(tests));
}
