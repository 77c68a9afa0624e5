// SPDX-License-Identifier: MIT OR GPL-2.0
#include "unit.h"

#include <stdlib.h>

#include "heap.h"

#define N	500U

static struct heap_node node[N];

/* What comes out, in the order in which it does, against all that is in */
static void by_time(void **state)
{
	struct heap h = { .n = 0 };
	unsigned int i, round, left;
	struct heap_node *first;
	uint64_t last;

	(void)state;
	srand(7);
	for (round = 0; round < unit_rounds(50); round++) {
		for (i = 0; i < N; i++) {
			node[i] = (struct heap_node){ .at = 0 };
			assert_int_equal(heap_reserve(&h, i + 1), 0);
			heap_add(&h, &node[i], (uint64_t)(rand() % 100));
			assert_true(heap_has(&node[i]));
		}
		/* some of them, from anywhere; twice does nothing */
		for (left = N, i = 0; i < N; i += 1 + (unsigned int)(rand() % 3), left--) {
			heap_del(&h, &node[i]);
			heap_del(&h, &node[i]);
			assert_false(heap_has(&node[i]));
		}
		assert_int_equal(h.n, left);
		for (last = 0; (first = heap_first(&h)); left--) {
			assert_true(first->at >= last);
			for (i = 0; i < N; i++)
				assert_true(!heap_has(&node[i]) || node[i].at >= first->at);
			last = first->at;
			heap_del(&h, first);
		}
		assert_int_equal(left, 0);
	}
	heap_fini(&h);
	assert_null(heap_first(&h));
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(by_time),
};

UNIT_MAIN_ALONE(tests)
