/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * A pool of one region, all of it handed out as buffers of one size. As every byte has
 * an owner that is known, any byte that changes without having been written is seen.
 */
#ifndef POOL_CARVE_H
#define POOL_CARVE_H

#include <stdbool.h>

#include <ringgate/rgate_pool.h>

#define CARVE_TEXT	128
#define CARVE_ZONE	128	/* bytes watched on either side of a piece */

typedef void (*carve_progress_fn)(const char *what, uint64_t done, uint64_t total);

struct carve {
	struct rgate_pool *pool;
	struct rgate_pool_region region;
	const struct rgate_buf **bufs;	/* in the order of addresses */
	bool *touched;			/* no longer as carve_write() left it */
	size_t n, max;
	size_t buffer;
	uint64_t key;
	carve_progress_fn progress;
};

/*
 * carve_create - the pool, nothing handed out yet
 * @dev: NULL: without
 * @access: enum rgate_access
 * @key: of the patterns
 * 0 or -errno of rgate_pool_create() and rgate_pool_region()
 */
int carve_create(struct carve *c, struct rgate_device *dev, size_t size, size_t buffer,
		 uint32_t access, uint64_t key, carve_progress_fn progress);
/* Hands everything out, until the pool has no more. 0 or -errno */
int carve_all(struct carve *c);
/* Is nothing left that a buffer could be made of? Sizes that are powers of two fill the
 * region without a remainder, unless the pool has red zones (RGATE_POOL_DEBUG). */
bool carve_complete(const struct carve *c, char text[CARVE_TEXT]);
/* Takes all back in random order: 0 or the first error of rgate_pool_free() */
int carve_free(struct carve *c, uint64_t *rng);
/* 0, or -EBUSY: buffers of the pool are held, and it stays as long */
int carve_destroy(struct carve *c);

/* What is wrong with place and keys of buffer @i, or NULL */
const char *carve_misplaced(const struct carve *c, size_t i);

/* Writes first, last and random bytes of every buffer; no buffer counts as touched */
void carve_write(struct carve *c, carve_progress_fn progress);
/* How many buffers that were not touched since are other; @text: the first */
size_t carve_damaged(const struct carve *c, char text[CARVE_TEXT]);

/* A piece of a buffer */
struct piece {
	size_t index;
	size_t off;
	size_t len;
};

void *piece_addr(const struct carve *c, const struct piece *p);

/* Writes the piece and what is around it; its buffer and neighbours are touched */
void piece_fill(struct carve *c, const struct piece *p, uint64_t key);
/* Writes the piece alone */
void piece_write(const struct carve *c, const struct piece *p, uint64_t key);
/* Only the surroundings; false: other bytes are there, see @text */
bool piece_zones(const struct carve *c, const struct piece *p, uint64_t key,
		 char text[CARVE_TEXT]);
/* The piece as piece_write() has it (the place counts from its begin) */
bool piece_holds(const struct carve *c, const struct piece *p, uint64_t key,
		 char text[CARVE_TEXT]);
/* The piece as piece_fill() has left it */
bool piece_untouched(const struct carve *c, const struct piece *p, uint64_t key,
		     char text[CARVE_TEXT]);

#endif
