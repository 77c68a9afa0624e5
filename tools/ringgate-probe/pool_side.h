/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/* One end of the transfers: device, carved pool and queue pair of a process. */
#ifndef POOL_SIDE_H
#define POOL_SIDE_H

#include "pool_carve.h"
#include "rc.h"

struct pool_side {
	struct rgate_device *dev;	/* NULL: memory without a device */
	struct carve carve;
	struct rgate_rc *rc;
	uint32_t access;		/* what the device can grant */
	/* memory with a region of its own in the middle, beside the pool */
	unsigned char *extra;
	struct rgate_mem *extra_mem;
	uint64_t extra_key;
};

#define EXTRA_LEN	((size_t)3 * 4096)
#define EXTRA_AT	4000	/* where the region in it begins: no page's border */
#define EXTRA_MR	4096

/* @name: device; NULL: the best. 0 or -errno of rgate_device_open() */
int side_open(struct pool_side *s, const char *name);
/* A new queue pair instead of the one that there is, not connected yet */
int side_renew(struct pool_side *s, struct rgate_rc_addr *addr);

/* Registers the middle of the extra memory, filled by @key */
int side_extra(struct pool_side *s, uint32_t access, uint64_t key, struct rgate_desc *desc);
/* Nothing but the first @len bytes of its region were written, these by @payload; then
 * all is as it was at first. */
bool side_extra_intact(struct pool_side *s, uint64_t payload, size_t len,
		       char text[CARVE_TEXT]);
int side_extra_drop(struct pool_side *s);
void side_extra_free(struct pool_side *s);

/* Gives everything back: 0 or the first error */
int side_close(struct pool_side *s, uint64_t rng);

#endif
