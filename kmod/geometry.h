/* SPDX-License-Identifier: GPL-2.0-only */
/* Where things stand in a ring's mapping; arithmetic only. */
#ifndef RGATE_GEOMETRY_H
#define RGATE_GEOMETRY_H

#include <ringgate/ioctl.h>

/**
 * struct rgate_geo - the checked shape of a ring
 * @slots: number of slots, a power of two
 * @slot_size: bytes of a slot with its header, a power of two
 * @lap_shift: log2(@slots)
 * @size_shift: log2(@slot_size)
 * @cons_off: consumer area, bytes from the mapping's start
 * @credits_off: credit words
 * @owners_off: owner words
 * @slots_off: slots
 * @map_len: the whole mapping, a multiple of PAGE_SIZE
 */
struct rgate_geo {
	u32 slots;
	u32 slot_size;
	u8 lap_shift;
	u8 size_shift;
	size_t cons_off;
	size_t credits_off;
	size_t owners_off;
	size_t slots_off;
	size_t map_len;
};

int rgate_geo_init(struct rgate_geo *geo, u32 slots, u32 slot_size);
bool rgate_geo_readonly(const struct rgate_geo *geo, bool rw_slots,
			size_t off, size_t len);

#endif
