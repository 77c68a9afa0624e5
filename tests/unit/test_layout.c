// SPDX-License-Identifier: MIT OR GPL-2.0
/* Sizes, geometry, errors in words, and the log. */
#include "unit.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "csum.h"
#include "geometry.h"
#include "log.h"
#include "opts.h"

/* The uapi headers assert the rest; here is what consumers compute with. */
static void sizes(void **state)
{
	(void)state;
	assert_int_equal(sizeof(struct rgate_slot), 64);
	assert_int_equal(sizeof(struct rgate_prod), 512);
	assert_int_equal(offsetof(struct rgate_prod, head), RGATE_PROD_CONST);
	assert_int_equal(sizeof(struct rgate_waiter), 64);
	assert_int_equal(sizeof(struct rgate_cons), 128 + 64 * RGATE_HANDLES_MAX);
	/* what each frame needs, and all of it */
	assert_true(offsetof(struct rgate_consumer, take) <= 128);
	assert_true(sizeof(struct rgate_consumer) <= 320);
}

static void check(void **state)
{
	static const struct {
		uint32_t slots, slot_size;
		int err;
	} t[] = {
		{ 64, 256, 0 }, { 4096, 2048, 0 }, { 1U << 20, 65536, 0 },
		{ 0, 2048, -EINVAL }, { 1, 2048, -EINVAL }, { 32, 2048, -EINVAL },
		{ 63, 2048, -EINVAL }, { 96, 2048, -EINVAL },
		{ 1U << 21, 2048, -EINVAL }, { 1U << 31, 2048, -EINVAL },
		{ UINT32_MAX, 2048, -EINVAL }, { 4096, 0, -EINVAL },
		{ 4096, 1, -EINVAL }, { 4096, 128, -EINVAL }, { 4096, 2047, -EINVAL },
		{ 4096, 1U << 17, -EINVAL }, { 4096, 1U << 31, -EINVAL },
		{ 1U << 31, 1U << 31, -EINVAL },
	};
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_LEN(t); i++)
		assert_int_equal(rgate_geometry_check(t[i].slots, t[i].slot_size),
				 t[i].err);
}

static void compute_one(uint32_t slots, uint32_t size, size_t page)
{
	uint64_t bytes = (uint64_t)slots * size;
	struct rgate_geometry g;

	assert_int_equal(rgate_geometry_compute(slots, size, page, &g), 0);
	assert_int_equal(rgate_geometry_validate(&g, page), 0);
	assert_true(g.map_len - g.slots_off >= bytes);
	g.map_len = g.slots_off + bytes - page;
	assert_int_equal(rgate_geometry_validate(&g, page), -EPROTO);
}

static void compute(void **state)
{
	static const size_t pages[] = { 4096, 16384, 65536 };
	struct rgate_geometry g;
	uint32_t slots, size;
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_LEN(pages); i++)
		for (slots = RGATE_SLOTS_MIN; slots <= RGATE_SLOTS_MAX; slots *= 2)
			for (size = RGATE_SLOT_SIZE_MIN; size <= RGATE_SLOT_SIZE_MAX; size *= 2)
				compute_one(slots, size, pages[i]);
	assert_int_equal(rgate_geometry_compute(64, 256, 4096, &g), 0);
	assert_int_equal(g.cons_off, 4096);
	assert_int_equal(g.credits_off, 8192);
	assert_int_equal(g.slots_off, 12288);
	assert_int_equal(g.map_len, 12288 + 64 * 256);
	g.handle = RGATE_HANDLES_MAX;
	assert_int_equal(rgate_geometry_validate(&g, 4096), -EPROTO);
}

/* Random geometries are either refused or safe to map. */
static void validate_random(void **state)
{
	uint64_t seed = 1, i, passed = 0;

	(void)state;
	for (i = 0; i < unit_rounds(300000); i++) {
		uint64_t *w, bytes;
		struct rgate_geometry g;

		rgate_geometry_compute(64U << unit_random(&seed) % 8,
				       256U << unit_random(&seed) % 8, 4096, &g);
		w = (uint64_t *)&g + unit_random(&seed) % 6;
		if (unit_random(&seed) & 1)
			*w ^= 1ULL << unit_random(&seed) % 64;
		else
			*w += (unit_random(&seed) % 5 - 2) * 4096;
		if (rgate_geometry_validate(&g, 4096))
			continue;
		passed++;
		bytes = (uint64_t)g.slots * g.slot_size;
		assert_true(g.slots_off + bytes <= g.map_len);
		assert_true(g.slots_off + bytes >= bytes);
		assert_true(g.credits_off + g.slots / 32 * 8 <= g.slots_off);
		assert_true(g.credits_off >= g.cons_off + sizeof(struct rgate_cons));
		assert_true(g.cons_off >= sizeof(struct rgate_prod));
		assert_true(g.handle < RGATE_HANDLES_MAX);
	}
	assert_true(passed > 0 && passed < i);
}

static void words(void **state)
{
	int i;

	(void)state;
	for (i = 0; i < 200; i++) {
		assert_true(strlen(rgate_strerror(NULL, i)) > 3);
		assert_ptr_equal(rgate_strerror(NULL, i), rgate_strerror(NULL, -i));
	}
	assert_non_null(rgate_strerror(NULL, INT32_MIN));
	/* What it means, not what to type: that is another thing in each call */
	for (i = 0; i < 200; i++)
		assert_null(strchr(rgate_strerror(NULL, i), '`'));
	assert_non_null(strstr(rgate_strerror(NULL, -ENOBUFS), "RLIMIT_MEMLOCK"));
	assert_non_null(strstr(rgate_strerror(NULL, -ENXIO), "module"));
	assert_non_null(strstr(rgate_strerror(NULL, -EPERM), "CAP_NET_ADMIN"));
	assert_int_equal(strncmp(rgate_version(), "0.1.", 4), 0);
}

static char last[600];
static int last_level = -1;

static void on_log(void *ctx, enum rgate_log_level level, const char *msg)
{
	assert_ptr_equal(ctx, last);
	last_level = (int)level;
	snprintf(last, sizeof(last), "%s", msg);
}

static void logging(void **state)
{
	char longer[2000];

	(void)state;
	rgate_err("nobody hears %s", "this");
	rgate_log_set(on_log, last);
	rgate_warn("%d frames", 5);
	assert_string_equal(last, "5 frames");
	assert_int_equal(last_level, RGATE_LOG_WARN);
	memset(longer, 'x', sizeof(longer));
	longer[sizeof(longer) - 1] = 0;
	rgate_err("%s", longer);
	assert_int_equal(strlen(last), 511);
	rgate_log_set(NULL, NULL);
	rgate_err("nor this");
	assert_int_equal(strlen(last), 511);
}

static void options(void **state)
{
	struct old { size_t sz; uint32_t a; } old = { sizeof(old), 5 };
	struct now { size_t sz; uint32_t a, b; uint64_t c; } now;
	struct new { size_t sz; uint32_t a, b; uint64_t c, d; } new = {
		sizeof(new), 1, 2, 3, 0 };

	(void)state;
	memset(&now, 0xff, sizeof(now));
	assert_int_equal(rgate_opts_copy(&now, sizeof(now), NULL), 0);
	assert_int_equal(now.a | now.b | now.c, 0);
	assert_int_equal(rgate_opts_copy(&now, sizeof(now), &old), 0);
	assert_int_equal(now.a, 5);
	assert_int_equal(now.c, 0);
	assert_int_equal(rgate_opts_copy(&now, sizeof(now), &new), 0);
	assert_int_equal(now.c, 3);
	new.d = 1;
	assert_int_equal(rgate_opts_copy(&now, sizeof(now), &new), -E2BIG);
	new.sz = 7;
	assert_int_equal(rgate_opts_copy(&now, sizeof(now), &new), -EINVAL);
}

/* RFC 1071's example, and a sum byte by byte */
static void checksum(void **state)
{
	static const unsigned char rfc[] = { 0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6,
					     0xf7 };
	unsigned char buf[1500], two[2];
	uint64_t seed = 3;
	uint16_t c;
	size_t n, i;

	(void)state;
	c = rgate_csum_fold(rgate_csum_add(0, rfc, sizeof(rfc)));
	memcpy(two, &c, 2);
	assert_int_equal(two[0] << 8 | two[1], 0xffff - 0xddf2);
	for (n = 0; n < sizeof(buf); n += 7) {
		uint32_t sum = 0;

		for (i = 0; i < n; i++) {
			buf[i] = (unsigned char)unit_random(&seed);
			sum += (uint32_t)buf[i] << (i & 1 ? 0 : 8);
		}
		while (sum >> 16)
			sum = (sum & 0xffff) + (sum >> 16);
		c = rgate_csum_fold(rgate_csum_add(0, buf, n));
		memcpy(two, &c, 2);
		assert_int_equal(two[0] << 8 | two[1], 0xffff - sum);
	}
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(sizes),
	cmocka_unit_test(check),
	cmocka_unit_test(compute),
	cmocka_unit_test(validate_random),
	cmocka_unit_test(words),
	cmocka_unit_test(logging),
	cmocka_unit_test(options),
	cmocka_unit_test(checksum),
};

UNIT_MAIN_ALONE(tests)
