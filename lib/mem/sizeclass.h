/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * Sizes of buffers. Four steps to a doubling, each a multiple of a cache line, and
 * every power of two among them; so at most a fifth is lost to rounding above 256
 * bytes. Those that are whole grains are runs of their own, the others cut from slabs.
 */
#ifndef RGATE_MEM_SIZECLASS_H
#define RGATE_MEM_SIZECLASS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define RGATE_LINE_SHIFT	6
#define RGATE_GRAIN_SHIFT	14
#define RGATE_GRAIN		((size_t)1 << RGATE_GRAIN_SHIFT)
#define RGATE_SLAB_MIN		(4 * RGATE_GRAIN)
#define RGATE_STEPS_SHIFT	2

/* Sizes up to this have a class, and can be kept by threads */
#define RGATE_CLASS_MAX_SHIFT	22
#define RGATE_CLASS_MAX		((size_t)1 << RGATE_CLASS_MAX_SHIFT)
/* 64, 128, 192, 256, then four to each doubling up to 4 MiB */
#define RGATE_CLASSES \
	(4 + ((RGATE_CLASS_MAX_SHIFT - RGATE_LINE_SHIFT - RGATE_STEPS_SHIFT) << \
	      RGATE_STEPS_SHIFT))

/* The class of @size, 1 to RGATE_CLASS_MAX; of others a number that is no class */
static inline unsigned int rgate_class_of(size_t size)
{
	const size_t lines = (size - 1) >> RGATE_LINE_SHIFT;
	unsigned int shift;

	if (lines < 4)
		return (unsigned int)lines;
	/* The two bits behind the highest are the step. */
	shift = 63 - RGATE_STEPS_SHIFT - (unsigned int)__builtin_clzl(lines);
	return (unsigned int)(lines >> shift) + (shift << RGATE_STEPS_SHIFT);
}

static inline size_t rgate_class_size(unsigned int cls)
{
	unsigned int shift;

	if (cls < 4)
		return (size_t)(cls + 1) << RGATE_LINE_SHIFT;
	shift = (cls >> RGATE_STEPS_SHIFT) - 1;
	return (size_t)((cls & 3) + 5) << (shift + RGATE_LINE_SHIFT);
}

/* Bytes of the run of grains that buffers of @size are cut from */
static inline size_t rgate_slab_size(size_t size)
{
	size_t slab = 8 * size;

	if (size % RGATE_GRAIN == 0)
		return size;
	if (slab < RGATE_SLAB_MIN)
		return RGATE_SLAB_MIN;
	return (slab + RGATE_GRAIN - 1) & ~(RGATE_GRAIN - 1);
}

#endif
