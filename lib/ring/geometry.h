/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/* Sizes and offsets of a ring: computing them, and distrusting others' */
#ifndef RGATE_LIB_GEOMETRY_H
#define RGATE_LIB_GEOMETRY_H

#include <stddef.h>
#include <stdint.h>

#include <ringgate/ioctl.h>

/* 0, or -EINVAL: not powers of two in range */
int rgate_geometry_check(uint32_t slots, uint32_t slot_size);

/*
 * The layout of a new ring; generation and handle are left 0. -EINVAL, or
 * -ENOMEM where it does not fit in the address space.
 */
int rgate_geometry_compute(uint32_t slots, uint32_t slot_size, size_t page,
			   struct rgate_geometry *geo);

/* Where the owner words of a ring of this layout stand, from the mapping's start */
uint64_t rgate_geometry_owners(const struct rgate_geometry *geo);

/* Areas aligned, in order, large enough and inside map_len? 0 or -EPROTO */
int rgate_geometry_validate(const struct rgate_geometry *geo, size_t page);

/*
 * Checks a private copy of a producer area's constant part, and takes the
 * geometry from it. -EPROTO: no ring, or inconsistent; -EPROTONOSUPPORT: unknown
 * version, features or flags.
 */
int rgate_geometry_from_prod(const struct rgate_prod *prod, size_t page,
			     struct rgate_geometry *geo);

/* The part of struct rgate_prod that never changes while a mapping lives */
#define RGATE_PROD_CONST 128U

size_t rgate_page_size(void);

#endif
