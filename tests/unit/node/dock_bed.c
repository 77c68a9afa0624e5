// SPDX-License-Identifier: MIT OR GPL-2.0
#include "dock_bed.h"

int dock_setup(void **state)
{
	(void)asks_setup(state);
	o.hub.node.no_share = false;
	return 0;
}

int dock_teardown(void **state)
{
	const int err = asks_teardown(state);

	assert_int_equal(node_shares(&o.hub.node), 0);
	assert_int_equal(o.peer.misplaced, 0);
	return err;
}

uint8_t dock_byte(uint32_t at)
{
	return (uint8_t)(at * 13 + at / 256 + 5);
}

void dock_set_bytes(unsigned char *at, uint32_t len)
{
	uint32_t i;

	for (i = 0; i < len; i++)
		at[i] = dock_byte(i);
}

void dock_check_bytes(const unsigned char *at, uint32_t len)
{
	uint32_t i;

	for (i = 0; i < len; i++)
		assert_int_equal(at[i], dock_byte(i));
}
