// SPDX-License-Identifier: GPL-2.0-only
#include <linux/errno.h>
#include <linux/log2.h>
#include <linux/mm.h>
#include <linux/overflow.h>
#include "geometry.h"

/**
 * rgate_geo_init - check what a user asked for and lay it out
 * @geo: out
 * @slots: as asked
 * @slot_size: as asked, bytes
 *
 * Return: 0, -EINVAL for a value out of range, -EOVERFLOW where the mapping's
 * length does not fit this machine.
 */
int rgate_geo_init(struct rgate_geo *geo, u32 slots, u32 slot_size)
{
	size_t words = (size_t)slots / RGATE_BATCH * sizeof(u64);
	size_t data;

	if (slots < RGATE_SLOTS_MIN || slots > RGATE_SLOTS_MAX ||
	    !is_power_of_2(slots))
		return -EINVAL;
	if (slot_size < RGATE_SLOT_SIZE_MIN ||
	    slot_size > RGATE_SLOT_SIZE_MAX || !is_power_of_2(slot_size))
		return -EINVAL;

	geo->slots = slots;
	geo->slot_size = slot_size;
	geo->lap_shift = ilog2(slots);
	geo->size_shift = ilog2(slot_size);
	geo->cons_off = PAGE_ALIGN(sizeof(struct rgate_prod));
	geo->credits_off = geo->cons_off + RGATE_CREDITS_OFF;
	/* On a line of their own: consumers fight for these, not for credits. */
	geo->owners_off = ALIGN(geo->credits_off + words, 64);
	geo->slots_off = PAGE_ALIGN(geo->owners_off + words);
	if (check_mul_overflow((size_t)slots, (size_t)slot_size, &data) ||
	    check_add_overflow(geo->slots_off, PAGE_ALIGN(data), &geo->map_len))
		return -EOVERFLOW;
	return 0;
}

/**
 * rgate_geo_readonly - may a range of the mapping never be written by users?
 * @geo: geometry
 * @rw_slots: the ring's slots may be mapped writable
 * @off: page-aligned start
 * @len: bytes; the range lies inside the mapping
 */
bool rgate_geo_readonly(const struct rgate_geo *geo, bool rw_slots,
			size_t off, size_t len)
{
	return off < geo->cons_off ||
	       (!rw_slots && off + len > geo->slots_off);
}
