/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * The memory of a memfd ring: two sealed files mapped side by side. One has the
 * producer area and the slots, and can be written through nothing but the mapping
 * its creator made before sealing it; the other has the consumer area.
 */
#ifndef RGATE_LIB_MEMFD_MEM_H
#define RGATE_LIB_MEMFD_MEM_H

#include <stdbool.h>

#include <ringgate/ioctl.h>

struct rgate_memfd_mem {
	unsigned int refs;		/* atomic: handles, producer, core */
	int fd_prod;			/* producer area and slots */
	int fd_give;			/* the same, for other processes */
	int fd_cons;
	unsigned char *base;
	struct rgate_geometry geo;
};

/*
 * New memory, mapped writable, all zero. -EINVAL, -ENOMEM, -ENOSPC, ...
 * @filled: not sealed against later writers, since another process fills the slots;
 * what is given away is open for reading only.
 */
int rgate_memfd_mem_new(struct rgate_memfd_mem **mem, uint32_t slots,
			uint32_t slot_size, bool filled);
struct rgate_memfd_mem *rgate_memfd_mem_get(struct rgate_memfd_mem *mem);
void rgate_memfd_mem_put(struct rgate_memfd_mem *mem);

/*
 * Maps files got from another process, after checking seals, sizes and what the
 * producer area says. @prod: out, the copy that was checked. The descriptors stay
 * the caller's.
 */
int rgate_memfd_mem_map(int fd_prod, int fd_cons, struct rgate_geometry *geo,
			struct rgate_prod *prod, unsigned char **base);

#endif
