// SPDX-License-Identifier: MIT OR GPL-2.0
#include "four.h"

#include <string.h>

struct wclient c[MANY];
uint32_t h[MANY];

int four_setup(void **state)
{
	static const unsigned int node[MANY] = { 0, 1, 2, 1 };
	unsigned int i;

	(void)state;
	world_make(3);
	for (i = 0; i < MANY; i++)
		wclient_new(&c[i], node[i], 1);
	return 0;
}

int four_teardown(void **state)
{
	unsigned int i;

	(void)state;
	for (i = 0; i < MANY; i++)
		wclient_end(&c[i]);
	world_unmake();
	return 0;
}

void open_all(void)
{
	unsigned int i;

	for (i = 0; i < MANY; i++)
		h[i] = lock_at(&c[i], 0, "l", 0);
}

bool waits(unsigned int i, uint64_t cookie)
{
	settle();
	return !is_done(&c[i], cookie);
}

struct rgate_lock_info lock_info(unsigned int i)
{
	struct rgate_lock_info info;

	assert_int_equal(ask(i, LOCK_STATE, .off = ROOM, .len = sizeof(info)), 0);
	memcpy(&info, c[i].c.mem + ROOM, sizeof(info));
	return info;
}
