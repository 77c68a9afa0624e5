/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/* Sized option structs: older and newer callers than this library. */
#ifndef RGATE_LIB_OPTS_H
#define RGATE_LIB_OPTS_H

#include <stddef.h>

/*
 * Copies the caller's options over the zeroed @dst of @len bytes; both begin with
 * size_t sz. -EINVAL: sz too small. What the caller has beyond @len must be zero,
 * or it asks for something unknown here: -E2BIG.
 */
int rgate_opts_copy(void *dst, size_t len, const void *src);

/*
 * The other way: as much of @src as the caller's @dst has room for, by its sz, which
 * stays; what is beyond @len becomes zero. -EINVAL: sz too small.
 */
int rgate_info_copy(void *dst, const void *src, size_t len);

#endif
