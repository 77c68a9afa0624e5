// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * XDP programs out of classic BPF, as far as no kernel is needed: what is refused, and
 * that jumps and calls stay inside. That the same frames match is tests/vm/t_xdp_filter.c.
 */
#include "unit.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

#include "xdp.h"
#include "xdp_prog.h"

#define FUNC	4321
#define STMT(c, v)	{ (c), 0, 0, (uint32_t)(v) }
#define JUMP(c, v, t, f) { (c), (t), (f), (uint32_t)(v) }
#define COUNT(v)	(sizeof(v) / sizeof((v)[0]))

static const struct rgate_ident att = { .id = 7, .cookie = 0x1122334455667788ULL };

static int make(const struct sock_filter *v, size_t len, struct bpf_insn **insns, size_t *n)
{
	struct sock_fprog f = {
		.len = (unsigned short)len, .filter = (struct sock_filter *)(uintptr_t)v,
	};

	return xdp_prog(&f, xdp_call(FUNC), &att, insns, n);
}

/* Every jump and call of a program goes to an instruction of it; the last is an exit. */
static void assert_closed(const struct bpf_insn *v, size_t n)
{
	size_t i, calls = 0;

	assert_int_equal(v[n - 1].code, BPF_JMP | BPF_EXIT);
	for (i = 0; i < n; i++) {
		uint8_t class = BPF_CLASS(v[i].code);
		long to = (long)i + 1 + v[i].off;

		if (v[i].code == (BPF_LD | BPF_DW | BPF_IMM)) {
			i++;
			continue;
		}
		if (class != BPF_JMP && class != BPF_JMP32)
			continue;
		if (BPF_OP(v[i].code) == BPF_EXIT)
			continue;
		if (BPF_OP(v[i].code) != BPF_CALL) {
			assert_in_range(to, i + 1, n - 1);
		} else if (v[i].src_reg == BPF_PSEUDO_CALL) {
			assert_in_range((long)i + 1 + v[i].imm, i + 1, n - 1);
		} else if (v[i].src_reg == BPF_PSEUDO_KFUNC_CALL) {
			assert_int_equal(v[i].imm, FUNC);
			calls++;
		}
	}
	assert_int_equal(calls, 1);
}

static void assert_makes(const struct sock_filter *v, size_t len)
{
	struct bpf_insn *insns;
	size_t n;

	assert_int_equal(make(v, len, &insns, &n), 0);
	assert_closed(insns, n);
	free(insns);
}

static void assert_refuses(const struct sock_filter *v, size_t len, int err)
{
	struct bpf_insn *insns;
	size_t n;

	assert_int_equal(make(v, len, &insns, &n), err);
}

static void all_frames(void **state)
{
	struct bpf_insn *insns;
	size_t n, i;
	bool cookie = false;

	(void)state;
	assert_int_equal(make(NULL, 0, &insns, &n), 0);
	assert_closed(insns, n);
	for (i = 0; i + 1 < n; i++)
		if (insns[i].code == (BPF_LD | BPF_DW | BPF_IMM))
			cookie = (uint32_t)insns[i].imm == (uint32_t)att.cookie &&
				 (uint32_t)insns[i + 1].imm == att.cookie >> 32;
	assert_true(cookie);
	free(insns);
}

static void every_instruction(void **state)
{
	static const struct sock_filter v[] = {
		STMT(BPF_LD | BPF_W | BPF_ABS, 30),
		STMT(BPF_LD | BPF_H | BPF_ABS, 12),
		STMT(BPF_LD | BPF_B | BPF_IND, 3),
		STMT(BPF_LDX | BPF_B | BPF_MSH, 14),
		STMT(BPF_LDX | BPF_W | BPF_LEN, 0),
		STMT(BPF_LD | BPF_W | BPF_LEN, 0),
		STMT(BPF_ST, 15),
		STMT(BPF_STX, 0),
		STMT(BPF_LD | BPF_MEM, 15),
		STMT(BPF_LDX | BPF_MEM, 0),
		STMT(BPF_ALU | BPF_DIV | BPF_X, 0),
		STMT(BPF_ALU | BPF_NEG, 0),
		STMT(BPF_MISC | BPF_TXA, 0),
		STMT(BPF_MISC | BPF_TAX, 0),
		JUMP(BPF_JMP | BPF_JSET | BPF_X, 0, 1, 0),
		JUMP(BPF_JMP | BPF_JA, 1, 0, 0),
		STMT(BPF_LD | BPF_W | BPF_ABS, SKF_AD_OFF + SKF_AD_VLAN_TAG),
		STMT(BPF_LD | BPF_W | BPF_ABS, SKF_AD_OFF + SKF_AD_IFINDEX),
		STMT(BPF_RET | BPF_A, 0),
	};

	(void)state;
	assert_makes(v, COUNT(v));
}

/* Programs that never were through the kernel's check are refused, and read no further. */
static void no_programs(void **state)
{
	static const struct sock_filter open_end[] = { STMT(BPF_LD | BPF_IMM, 1) };
	static const struct sock_filter far_jump[] = {
		JUMP(BPF_JMP | BPF_JEQ | BPF_K, 1, 0, 200), STMT(BPF_RET | BPF_K, 1),
	};
	static const struct sock_filter back[] = {
		STMT(BPF_LD | BPF_IMM, 1), JUMP(BPF_JMP | BPF_JA, 0xfffffffe, 0, 0),
		STMT(BPF_RET | BPF_K, 1),
	};
	static const struct sock_filter memory[] = {
		STMT(BPF_ST, BPF_MEMWORDS), STMT(BPF_RET | BPF_K, 1),
	};
	static const struct sock_filter operation[] = {
		STMT(BPF_ALU | 0xb0, 1), STMT(BPF_RET | BPF_K, 1),
	};
	static const struct sock_filter branch[] = {
		JUMP(BPF_JMP | 0x50, 1, 0, 0), STMT(BPF_RET | BPF_K, 1),
	};

	(void)state;
	assert_refuses(open_end, COUNT(open_end), -EINVAL);
	assert_refuses(far_jump, COUNT(far_jump), -EINVAL);
	assert_refuses(back, COUNT(back), -EINVAL);
	assert_refuses(memory, COUNT(memory), -EINVAL);
	assert_refuses(operation, COUNT(operation), -EINVAL);
	assert_refuses(branch, COUNT(branch), -EINVAL);
}

static void not_known(void **state)
{
	static const int offs[] = {
		SKF_AD_OFF + SKF_AD_CPU, SKF_AD_OFF + SKF_AD_RXHASH, SKF_AD_OFF + SKF_AD_MARK,
		SKF_NET_OFF, SKF_LL_OFF + 12,
	};
	size_t i;

	(void)state;
	for (i = 0; i < COUNT(offs); i++) {
		struct sock_filter v[] = {
			STMT(BPF_LD | BPF_W | BPF_ABS, offs[i]), STMT(BPF_RET | BPF_A, 0),
		};

		assert_refuses(v, COUNT(v), -EOPNOTSUPP);
	}
}

/* What nothing reaches is left out: the kernel refuses programs that have such. */
static void dead_code(void **state)
{
	static const struct sock_filter v[] = {
		STMT(BPF_RET | BPF_K, 1),
		STMT(BPF_ALU | BPF_ADD | BPF_K, 77),
		STMT(BPF_RET | BPF_K, 2),
	};
	struct bpf_insn *insns;
	size_t n, i;

	(void)state;
	assert_int_equal(make(v, COUNT(v), &insns, &n), 0);
	for (i = 0; i < n; i++)
		assert_false(insns[i].code == (BPF_ALU | BPF_ADD | BPF_K) &&
			     insns[i].imm == 77);
	free(insns);
}

/* Jumps reach 32767 instructions far; only what is reached counts. */
static void too_long(void **state)
{
	struct sock_filter *v = calloc(RGATE_FILTER_LEN_MAX, sizeof(*v));
	size_t i;

	(void)state;
	assert_non_null(v);
	for (i = 0; i < RGATE_FILTER_LEN_MAX; i++)
		v[i] = (struct sock_filter)STMT(BPF_LDX | BPF_B | BPF_MSH, 14);
	v[RGATE_FILTER_LEN_MAX - 1] = (struct sock_filter)STMT(BPF_RET | BPF_K, 1);
	assert_refuses(v, RGATE_FILTER_LEN_MAX, -E2BIG);
	assert_makes(v + 100, RGATE_FILTER_LEN_MAX - 100);
	v[0] = (struct sock_filter)JUMP(BPF_JMP | BPF_JA, RGATE_FILTER_LEN_MAX - 2, 0, 0);
	assert_makes(v, RGATE_FILTER_LEN_MAX);
	free(v);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_frames),
		cmocka_unit_test(every_instruction),
		cmocka_unit_test(no_programs),
		cmocka_unit_test(not_known),
		cmocka_unit_test(dead_code),
		cmocka_unit_test(too_long),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
