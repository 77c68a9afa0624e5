/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/* Pages of a mapping made before they are used, by several threads. */
#ifndef RGATE_MEM_PREFAULT_H
#define RGATE_MEM_PREFAULT_H

#include <stddef.h>
#include <stdint.h>

#include <ringgate/rgate_pool.h>

/*
 * @threads: 0: as many as CPUs, 8 at most. @progress: may be NULL; called by the
 * calling thread. -ENOMEM: there is not so much memory (an error, not a signal).
 */
int rgate_prefault(void *addr, size_t len, uint32_t threads, rgate_pool_progress_fn progress,
		   void *ctx);

#endif
