// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * The function of Documentation/examples/gpu/udp_echo.cu on this CPU: datagrams as they should
 * be, and offsets of a producer that says what it likes.
 */
#include "unit.h"

#include <string.h>

#include "fake_kernel.h"

#define __device__
/* The example has no semicolon behind it, so it ends with a function. */
#define RGATE_GPU_LANES(kernel, fn, near_bytes, reply_bytes) \
	FAKE_LANES(kernel, fn, near_bytes, reply_bytes); \
	static inline void kernel##_end(void) {}
#define main udp_echo_main
int udp_echo_main(int argc, char **argv);

/* nvcc does not ask for it */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-parameter"
#include "../../Documentation/examples/gpu/udp_echo.cu"
#pragma GCC diagnostic pop
#undef main

#define GUARD	64U

static unsigned char out[GUARD + LONGEST + GUARD];

/* The answer's bytes, in out + GUARD; nothing beyond it was touched */
static uint32_t answer(const struct rgate_slot *hdr, const unsigned char *frame)
{
	static const struct rgate_dring ring = { .size_shift = 11 };
	struct rgate_dpkt pkt = {
		.hdr = hdr, .near = frame, .data = frame, .r = &ring, .parts = 1,
		.len = hdr->len, .near_len = hdr->len < LONGEST ? hdr->len : LONGEST,
	};
	uint32_t len, i;

	memset(out, 0xee, sizeof(out));
	len = echo(&pkt, out + GUARD, NULL);
	assert_true(len <= LONGEST);
	for (i = 0; i < GUARD; i++) {
		assert_int_equal(out[i], 0xee);
		assert_int_equal(out[GUARD + LONGEST + i], 0xee);
	}
	return len;
}

/* A datagram of @len bytes with its headers, offsets as a source gives them */
static struct rgate_slot datagram(unsigned char *frame, uint16_t protocol, uint32_t len)
{
	uint16_t l4 = protocol == RGATE_DETH_IPV4 ? 20 : 40;
	struct rgate_slot s = {
		.len = len, .wire_len = len, .protocol = protocol, .ip_proto = RGATE_DPROTO_UDP,
		.l3_off = 0, .l4_off = l4, .payload_off = (uint16_t)(l4 + 8), .chain_cnt = 1,
	};

	unit_pattern(frame, len, len);
	return s;
}

static void datagrams(void **state)
{
	unsigned char frame[LONGEST + 1];
	struct rgate_slot s;
	uint32_t len;

	(void)state;
	for (len = 28; len <= LONGEST; len++) {
		s = datagram(frame, RGATE_DETH_IPV4, len);
		assert_int_equal(answer(&s, frame), len);
		assert_memory_equal(out + GUARD, frame, 12);
		assert_memory_equal(out + GUARD + 12, frame + 16, 4);
		assert_memory_equal(out + GUARD + 16, frame + 12, 4);
		assert_memory_equal(out + GUARD + 20, frame + 22, 2);
		assert_memory_equal(out + GUARD + 22, frame + 20, 2);
		assert_memory_equal(out + GUARD + 24, frame + 24, len - 24);
	}
	s = datagram(frame, RGATE_DETH_IPV6, 60);
	assert_int_equal(answer(&s, frame), 60);
	assert_memory_equal(out + GUARD + 8, frame + 24, 16);
	assert_memory_equal(out + GUARD + 24, frame + 8, 16);
	s = datagram(frame, RGATE_DETH_IPV4, LONGEST + 1);
	assert_int_equal(answer(&s, frame), 0);
	s = datagram(frame, 0x0806, 60);
	assert_int_equal(answer(&s, frame), 0);
}

/* Whatever the offsets are, the answer stays in its place */
static void offsets(void **state)
{
	static const uint16_t any[] = {
		0, 8, 20, 28, 40, 48, 150, 180, 184, 191, 192, 200, 230, 1000, 0xfffe,
		RGATE_OFF_NONE,
	};
	unsigned char frame[LONGEST];
	struct rgate_slot s;
	unsigned int a, b, c, v, answers = 0;

	(void)state;
	for (v = 0; v < 2; v++)
		for (a = 0; a < ARRAY_LEN(any); a++)
			for (b = 0; b < ARRAY_LEN(any); b++)
				for (c = 0; c < ARRAY_LEN(any); c++) {
					s = datagram(frame, v ? RGATE_DETH_IPV6 : RGATE_DETH_IPV4,
						     LONGEST);
					s.l3_off = any[a];
					s.l4_off = any[b];
					s.payload_off = any[c];
					answers += answer(&s, frame) != 0;
				}
	assert_true(answers);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(datagrams),
	cmocka_unit_test(offsets),
};

UNIT_MAIN_ALONE(tests)
