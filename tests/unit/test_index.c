// SPDX-License-Identifier: MIT OR GPL-2.0
#include "unit.h"

#include <string.h>

#include "index.h"

#define N	1000U

static struct thing {
	uint64_t key;
	struct index_node of;
} things[N];

static unsigned int refuse;	/* so many of the next allocations find no memory */

void *__real_malloc(size_t len);
void *__wrap_malloc(size_t len);

void *__wrap_malloc(size_t len)
{
	if (refuse) {
		refuse--;
		return NULL;
	}
	return __real_malloc(len);
}

static struct thing *find(const struct index *x, uint64_t key)
{
	struct link *const ring = index_at(x, key), *l;
	struct thing *t;

	for (l = ring->next; l != ring; l = l->next) {
		t = container_of(l, struct thing, of.link);
		if (t->key == key)
			return t;
	}
	return NULL;
}

static unsigned int longest(const struct index *x)
{
	unsigned int n, most = 0;
	const struct link *l;
	uint64_t i;

	for (i = 0; i < x->places; i++) {
		for (n = 0, l = x->place[i].next; l != &x->place[i]; l = l->next)
			n++;
		most = n > most ? n : most;
	}
	return most;
}

static void add_all(struct index *x, uint64_t step)
{
	unsigned int i;

	memset(things, 0, sizeof(things));
	for (i = 0; i < N; i++) {
		things[i].key = i * step;
		index_add(x, &things[i].of, things[i].key);
	}
}

/* Each is found as long as it is in, in a ring that is short */
static void finds(void **state)
{
	struct index x;
	unsigned int i;

	(void)state;
	assert_int_equal(index_init(&x), 0);
	assert_null(find(&x, 7));
	add_all(&x, 1);
	assert_int_equal(x.n, N);
	assert_int_equal(longest(&x), 1);
	for (i = 0; i < N; i++)
		assert_ptr_equal(find(&x, i), &things[i]);
	assert_null(find(&x, N));
	/* twice does nothing */
	for (i = 0; i < N; i += 3) {
		index_del(&x, &things[i].of);
		index_del(&x, &things[i].of);
	}
	assert_int_equal(x.n, N - (N + 2) / 3);
	for (i = 0; i < N; i++)
		assert_ptr_equal(find(&x, i), i % 3 ? &things[i] : NULL);
	for (i = 0; i < N; i += 3)
		index_add(&x, &things[i].of, i);
	for (i = 0; i < N; i++)
		assert_ptr_equal(find(&x, i), &things[i]);
	for (i = 0; i < N; i++)
		index_del(&x, &things[i].of);
	assert_int_equal(longest(&x), 0);
	index_fini(&x);
}

/* Those of one place are in one ring, and those of one number as well */
static void share_a_place(void **state)
{
	struct thing same = { .key = 1ULL << 20 };
	struct index x;
	unsigned int i;

	(void)state;
	assert_int_equal(index_init(&x), 0);
	add_all(&x, 1ULL << 20);
	index_add(&x, &same.of, same.key);
	assert_int_equal(longest(&x), N + 1);
	for (i = 0; i < N; i++)
		assert_ptr_equal(find(&x, (uint64_t)i << 20), &things[i]);
	index_del(&x, &things[1].of);
	assert_ptr_equal(find(&x, 1ULL << 20), &same);
	index_fini(&x);
}

/* One that found no memory for more places has them as soon as there is some. */
static void grows_later(void **state)
{
	struct index x;
	unsigned int i;

	(void)state;
	assert_int_equal(index_init(&x), 0);
	refuse = 1;
	add_all(&x, 1);
	assert_int_equal(refuse, 0);
	assert_int_equal(longest(&x), 1);
	for (i = 0; i < N; i++)
		assert_ptr_equal(find(&x, i), &things[i]);
	index_fini(&x);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(finds), cmocka_unit_test(share_a_place), cmocka_unit_test(grows_later),
};

UNIT_MAIN_ALONE(tests)
