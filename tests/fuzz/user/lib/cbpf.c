// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * Classic BPF, step by step. A load beyond the packet ends a program with "no match";
 * that is told apart here, as an optimiser may leave out such a load.
 */
#include <linux/filter.h>

#include "cbpf.h"
#include "fuzz.h"

struct machine {
	const uint8_t *packet;
	uint32_t len;
	uint32_t a, x;
	uint32_t mem[BPF_MEMWORDS];
	bool beyond;
};

static uint32_t fetch(struct machine *m, uint64_t at, uint32_t bytes)
{
	uint32_t v = 0;

	if (at + bytes > m->len) {
		m->beyond = true;
		return 0;
	}
	while (bytes--)
		v = v << 8 | m->packet[at++];
	return v;
}

static uint32_t load(struct machine *m, const struct sock_filter *f)
{
	uint32_t bytes = BPF_SIZE(f->code) == BPF_W ? 4 : BPF_SIZE(f->code) == BPF_H ? 2 : 1;

	switch (BPF_MODE(f->code)) {
	case BPF_IMM:
		return f->k;
	case BPF_ABS:
		return fetch(m, f->k, bytes);
	case BPF_IND:
		return fetch(m, (uint64_t)m->x + f->k, bytes);
	case BPF_MEM:
		FUZZ_CHECK(f->k < BPF_MEMWORDS);
		return m->mem[f->k];
	case BPF_LEN:
		return m->len;
	default:
		FUZZ_CHECK(BPF_MODE(f->code) == BPF_MSH);
		return (fetch(m, f->k, 1) & 15) * 4;
	}
}

/* Division by a zero in X ends the program, as a load beyond does. */
static void calculate(struct machine *m, const struct sock_filter *f)
{
	uint32_t v = BPF_SRC(f->code) == BPF_X ? m->x : f->k;

	switch (BPF_OP(f->code)) {
	case BPF_ADD:
		m->a += v;
		break;
	case BPF_SUB:
		m->a -= v;
		break;
	case BPF_MUL:
		m->a *= v;
		break;
	case BPF_DIV:
		m->beyond |= !v;
		m->a = v ? m->a / v : 0;
		break;
	case BPF_MOD:
		m->beyond |= !v;
		m->a = v ? m->a % v : 0;
		break;
	case BPF_AND:
		m->a &= v;
		break;
	case BPF_OR:
		m->a |= v;
		break;
	case BPF_XOR:
		m->a ^= v;
		break;
	case BPF_LSH:
		m->beyond |= v > 31;
		m->a = v > 31 ? 0 : m->a << v;
		break;
	case BPF_RSH:
		m->beyond |= v > 31;
		m->a = v > 31 ? 0 : m->a >> v;
		break;
	default:
		FUZZ_CHECK(BPF_OP(f->code) == BPF_NEG);
		m->a = -m->a;
	}
}

static bool holds(const struct machine *m, const struct sock_filter *f)
{
	uint32_t v = BPF_SRC(f->code) == BPF_X ? m->x : f->k;

	switch (BPF_OP(f->code)) {
	case BPF_JEQ:
		return m->a == v;
	case BPF_JGT:
		return m->a > v;
	case BPF_JGE:
		return m->a >= v;
	default:
		FUZZ_CHECK(BPF_OP(f->code) == BPF_JSET);
		return m->a & v;
	}
}

bool fuzz_cbpf(const struct sock_filter *prog, size_t n, const void *packet, uint32_t len,
	       bool *sure)
{
	struct machine m = { .packet = packet, .len = len };
	size_t i;

	for (i = 0; i < n && !m.beyond; i++) {
		const struct sock_filter *f = &prog[i];

		switch (BPF_CLASS(f->code)) {
		case BPF_LD:
			m.a = load(&m, f);
			break;
		case BPF_LDX:
			m.x = load(&m, f);
			break;
		case BPF_ST:
		case BPF_STX:
			FUZZ_CHECK(f->k < BPF_MEMWORDS);
			m.mem[f->k] = BPF_CLASS(f->code) == BPF_ST ? m.a : m.x;
			break;
		case BPF_ALU:
			calculate(&m, f);
			break;
		case BPF_JMP:
			i += BPF_OP(f->code) == BPF_JA ? f->k :
			     holds(&m, f) ? f->jt : f->jf;
			break;
		case BPF_RET:
			*sure = true;
			return BPF_RVAL(f->code) == BPF_A ? m.a : f->k;
		default:
			if (BPF_MISCOP(f->code) == BPF_TAX)
				m.x = m.a;
			else
				m.a = m.x;
		}
	}
	FUZZ_CHECK(m.beyond);	/* a program ends in a return */
	*sure = false;
	return false;
}
