// SPDX-License-Identifier: MIT OR GPL-2.0
#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#include "geometry.h"

#define RGATE_FEATURES (RGATE_FEAT_CHAIN | RGATE_FEAT_OVERWRITE | RGATE_FEAT_RESIZE | \
			RGATE_FEAT_OWNERS | RGATE_FEAT_TRANSMIT)
#define LINE	64	/* owner words begin on one */

static int is_pow2(uint64_t v)
{
	return v && !(v & (v - 1));
}

static uint64_t align_up(uint64_t v, uint64_t a)
{
	return (v + a - 1) & ~(a - 1);
}

size_t rgate_page_size(void)
{
	long page = sysconf(_SC_PAGESIZE);

	return page > 0 ? (size_t)page : 4096;
}

int rgate_geometry_check(uint32_t slots, uint32_t slot_size)
{
	if (!is_pow2(slots) || slots < RGATE_SLOTS_MIN || slots > RGATE_SLOTS_MAX)
		return -EINVAL;
	if (!is_pow2(slot_size) || slot_size < RGATE_SLOT_SIZE_MIN ||
	    slot_size > RGATE_SLOT_SIZE_MAX)
		return -EINVAL;
	return 0;
}

static uint64_t words(uint32_t slots)
{
	return slots / RGATE_BATCH * sizeof(uint64_t);
}

uint64_t rgate_geometry_owners(const struct rgate_geometry *geo)
{
	return align_up(geo->credits_off + words(geo->slots), LINE);
}

int rgate_geometry_compute(uint32_t slots, uint32_t slot_size, size_t page,
			   struct rgate_geometry *geo)
{
	int err = rgate_geometry_check(slots, slot_size);

	if (err)
		return err;
	memset(geo, 0, sizeof(*geo));
	geo->slots = slots;
	geo->slot_size = slot_size;
	geo->cons_off = align_up(sizeof(struct rgate_prod), page);
	geo->credits_off = geo->cons_off + RGATE_CREDITS_OFF;
	geo->slots_off = align_up(rgate_geometry_owners(geo) + words(slots), page);
	geo->map_len = align_up(geo->slots_off + (uint64_t)slots * slot_size, page);
	return geo->map_len > SIZE_MAX / 2 ? -ENOMEM : 0;
}

int rgate_geometry_validate(const struct rgate_geometry *geo, size_t page)
{
	uint64_t bytes = (uint64_t)geo->slots * geo->slot_size;
	uint64_t credits = words(geo->slots);

	if (rgate_geometry_check(geo->slots, geo->slot_size))
		return -EPROTO;
	/* With map_len bounded, none of the sums below can wrap. */
	if (geo->map_len > SIZE_MAX / 2 || geo->cons_off > geo->map_len ||
	    geo->credits_off > geo->map_len || geo->slots_off > geo->map_len)
		return -EPROTO;
	if ((geo->map_len | geo->cons_off | geo->slots_off) & (page - 1) ||
	    geo->credits_off & 63)
		return -EPROTO;
	if (geo->cons_off < sizeof(struct rgate_prod) ||
	    geo->credits_off < geo->cons_off + sizeof(struct rgate_cons) ||
	    geo->slots_off < geo->credits_off + credits ||
	    geo->map_len < geo->slots_off + bytes)
		return -EPROTO;
	if (geo->handle >= RGATE_HANDLES_MAX)
		return -EPROTO;
	return 0;
}

/* Owner words lie between the credits and the slots; @geo is valid. */
static bool owners_fit(const struct rgate_prod *prod, const struct rgate_geometry *geo)
{
	uint64_t off = prod->owners_off;

	if (!(prod->features & RGATE_FEAT_OWNERS))
		return !off;
	return !(off & (LINE - 1)) && off <= geo->slots_off &&
	       off >= geo->credits_off + words(geo->slots) &&
	       geo->slots_off - off >= words(geo->slots);
}

int rgate_geometry_from_prod(const struct rgate_prod *prod, size_t page,
			     struct rgate_geometry *geo)
{
	int err;

	if (prod->magic != RGATE_MAGIC)
		return -EPROTO;
	if (prod->version != RGATE_ABI_VERSION || prod->features & ~RGATE_FEATURES ||
	    prod->flags & ~RGATE_RING_FLAGS)
		return -EPROTONOSUPPORT;
	if (prod->slot_hdr != RGATE_SLOT_HDR || prod->batch != RGATE_BATCH ||
	    prod->handles != RGATE_HANDLES_MAX ||
	    prod->policy >= RGATE_POLICY_COUNT || prod->clock >= RGATE_CLOCK_COUNT ||
	    prod->reserved0 ||
	    !memchr(prod->name, 0, sizeof(prod->name)))
		return -EPROTO;
	memset(geo, 0, sizeof(*geo));
	geo->slots = prod->slots;
	geo->slot_size = prod->slot_size;
	geo->generation = prod->generation;
	geo->map_len = prod->map_len;
	geo->cons_off = prod->cons_off;
	geo->credits_off = prod->credits_off;
	geo->slots_off = prod->slots_off;
	err = rgate_geometry_validate(geo, page);
	return err || owners_fit(prod, geo) ? err : -EPROTO;
}
