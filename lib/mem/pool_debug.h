/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * Finding mistakes of the pool's users: red zones around each buffer, poison in free
 * ones, who holds what (RGATE_POOL_DEBUG); and marks for valgrind and AddressSanitizer.
 */
#ifndef RGATE_MEM_POOL_DEBUG_H
#define RGATE_MEM_POOL_DEBUG_H

#include "pool.h"

/* Of one buffer; under the lock of its slab's class unless it is held */
struct rgate_buf_info {
	const char *tag;
	const void *site;
	int thread;
	size_t size;		/* as asked for */
	uint32_t front;		/* bytes of red zone before the buffer */
	bool poisoned;		/* was released, and lies there untouched */
	bool set_aside;		/* its red zone was overwritten */
};

struct rgate_buf_info *rgate_debug_infos(uint32_t n);
/* The slab has another run: nothing is known of what is in it */
void rgate_debug_fresh(struct rgate_slab *s);

/* Bytes that a buffer of @size takes with its red zones; 0: overflow */
size_t rgate_debug_size(size_t size, size_t align);
/* A buffer that was just taken: poison looked at, red zones made, address set */
void rgate_debug_alloc(struct rgate_pool *pool, struct rgate_buf *buf, size_t size, size_t align,
		       const char *tag, const void *site);
/* Before it is given back: 0, or -EOVERFLOW: it was set aside */
int rgate_debug_free(struct rgate_pool *pool, struct rgate_buf *buf);
/* Is @buf a buffer of this pool at all? Looks at every slab. */
bool rgate_debug_known(const struct rgate_pool *pool, const struct rgate_buf *buf);
/* Buffers found overwritten */
int rgate_debug_check(struct rgate_pool *pool);

/* Is this a run under valgrind or with AddressSanitizer? */
bool rgate_annotated(void);
void rgate_mark_held(const struct rgate_buf *buf, size_t size);
void rgate_mark_free(const struct rgate_buf *buf, size_t size);
/* All of a region, when it is made and before it ends */
void rgate_mark_region(const void *addr, size_t len, bool accessible);
/* Memory mapped from elsewhere, where a region may have been: a child has its parent's marks */
void rgate_mark_mapped(const void *addr, size_t len);

#endif
