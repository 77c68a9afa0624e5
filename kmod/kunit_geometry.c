// SPDX-License-Identifier: GPL-2.0-only
/* KUnit: geometry checks and the areas they make. */
#include <kunit/test.h>
#include <linux/mm.h>
#include "geometry.h"

static void rgate_geo_areas(struct kunit *test)
{
	struct rgate_geo g;
	u32 slots, size;

	for (slots = RGATE_SLOTS_MIN; slots <= RGATE_SLOTS_MAX; slots *= 2) {
		for (size = RGATE_SLOT_SIZE_MIN; size <= RGATE_SLOT_SIZE_MAX;
		     size *= 2) {
			KUNIT_ASSERT_EQ(test, rgate_geo_init(&g, slots, size), 0);
			KUNIT_EXPECT_EQ(test, 1U << g.lap_shift, slots);
			KUNIT_EXPECT_EQ(test, 1U << g.size_shift, size);
			KUNIT_EXPECT_TRUE(test, PAGE_ALIGNED(g.cons_off));
			KUNIT_EXPECT_TRUE(test, PAGE_ALIGNED(g.slots_off));
			KUNIT_EXPECT_TRUE(test, PAGE_ALIGNED(g.map_len));
			KUNIT_EXPECT_GE(test, g.cons_off,
					sizeof(struct rgate_prod));
			KUNIT_EXPECT_EQ(test, g.credits_off,
					g.cons_off + RGATE_CREDITS_OFF);
			KUNIT_EXPECT_GE(test, g.credits_off,
					g.cons_off + sizeof(struct rgate_cons));
			KUNIT_EXPECT_GE(test, g.owners_off, g.credits_off +
					slots / RGATE_BATCH * sizeof(u64));
			KUNIT_EXPECT_EQ(test, g.owners_off % 64, 0);
			KUNIT_EXPECT_GE(test, g.slots_off, g.owners_off +
					slots / RGATE_BATCH * sizeof(u64));
			KUNIT_EXPECT_EQ(test, g.map_len, g.slots_off +
					PAGE_ALIGN((size_t)slots * size));
		}
	}
}

static void rgate_geo_refused(struct kunit *test)
{
	static const u32 slots[] = {
		0, 1, 2, RGATE_SLOTS_MIN / 2, RGATE_SLOTS_MIN - 1,
		RGATE_SLOTS_MIN + 1, 100, RGATE_SLOTS_MAX - 1,
		RGATE_SLOTS_MAX + 1, RGATE_SLOTS_MAX * 2, 1U << 31, U32_MAX,
	};
	static const u32 sizes[] = {
		0, 1, RGATE_SLOT_SIZE_MIN / 2, RGATE_SLOT_SIZE_MIN - 1,
		RGATE_SLOT_SIZE_MIN + 1, 1500, RGATE_SLOT_SIZE_MAX - 1,
		RGATE_SLOT_SIZE_MAX + 1, RGATE_SLOT_SIZE_MAX * 2, 1U << 31,
		U32_MAX,
	};
	struct rgate_geo g;
	int i;

	for (i = 0; i < ARRAY_SIZE(slots); i++)
		KUNIT_EXPECT_EQ_MSG(test, rgate_geo_init(&g, slots[i], 2048),
				    -EINVAL, "%u slots", slots[i]);
	for (i = 0; i < ARRAY_SIZE(sizes); i++)
		KUNIT_EXPECT_EQ_MSG(test, rgate_geo_init(&g, 4096, sizes[i]),
				    -EINVAL, "slots of %u bytes", sizes[i]);
}

static void rgate_geo_permissions(struct kunit *test)
{
	struct rgate_geo g;
	size_t data;

	KUNIT_ASSERT_EQ(test, rgate_geo_init(&g, 64, 2048), 0);
	data = g.map_len - g.slots_off;
	/* the producer area never, alone or with what follows */
	KUNIT_EXPECT_TRUE(test, rgate_geo_readonly(&g, true, 0, PAGE_SIZE));
	KUNIT_EXPECT_TRUE(test, rgate_geo_readonly(&g, true, 0, g.map_len));
	KUNIT_EXPECT_TRUE(test, rgate_geo_readonly(&g, true,
						   g.cons_off - PAGE_SIZE,
						   2 * PAGE_SIZE));
	/* the consumer area always */
	KUNIT_EXPECT_FALSE(test, rgate_geo_readonly(&g, false, g.cons_off,
						    g.slots_off - g.cons_off));
	/* slots only where the ring says so, down to a single page of them */
	KUNIT_EXPECT_TRUE(test, rgate_geo_readonly(&g, false, g.slots_off, data));
	KUNIT_EXPECT_TRUE(test, rgate_geo_readonly(&g, false, g.cons_off,
						   g.slots_off - g.cons_off +
						   PAGE_SIZE));
	KUNIT_EXPECT_TRUE(test, rgate_geo_readonly(&g, false,
						   g.map_len - PAGE_SIZE,
						   PAGE_SIZE));
	KUNIT_EXPECT_FALSE(test, rgate_geo_readonly(&g, true, g.slots_off, data));
	KUNIT_EXPECT_FALSE(test, rgate_geo_readonly(&g, true, g.cons_off,
						    g.map_len - g.cons_off));
}

static struct kunit_case rgate_geometry_cases[] = {
	KUNIT_CASE(rgate_geo_areas),
	KUNIT_CASE(rgate_geo_refused),
	KUNIT_CASE(rgate_geo_permissions),
	{}
};

static struct kunit_suite rgate_geometry_suite = {
	.name = "ringgate-geometry",
	.test_cases = rgate_geometry_cases,
};

kunit_test_suite(rgate_geometry_suite);
