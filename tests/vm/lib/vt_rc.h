/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * libringgate on the devices of vt_rdma.h: what several tests need around it.
 * Functions end the case where they fail, unless they return an error.
 */
#ifndef VT_RC_H
#define VT_RC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <ringgate/rgate_device.h>
#include <ringgate/rgate_mem.h>
#include <ringgate/rgate_pool.h>

#include "rc.h"
#include "vt_rdma.h"

#define VT_MS	10000	/* a transfer under emulation takes no longer */

/* Keeps what the library logs, forgets what it did before */
void vt_log_catch(void);
/* Was something logged with @word in it, whatever its case? */
bool vt_log_has(const char *word);

struct rgate_device *vt_dev_rdma(unsigned int i);
void vt_dev_close(struct rgate_device *dev);

/* Registers with @access; 0 or -errno */
int vt_mem_try(struct rgate_mem **mem, struct rgate_device *dev, void *addr, size_t len,
	       uint32_t access);
struct rgate_mem *vt_mem(struct rgate_device *dev, void *addr, size_t len,
			 uint32_t access);
void vt_mem_drop(struct rgate_mem *mem);

/* A queue pair connected to itself, whose peer may do @access */
struct rgate_rc *vt_rc_loop(struct rgate_device *dev, uint32_t access);
/* Two, connected to each other; the devices may be the same */
void vt_rc_pair(struct rgate_rc *rc[2], struct rgate_device *a, struct rgate_device *b,
		uint32_t access);
/* One, whose peer does the same at the other end of @sock */
struct rgate_rc *vt_rc_meet(struct rgate_device *dev, int sock, uint32_t access);

/* All bytes of a message, within VT_MS */
void vt_put(int sock, const void *data, size_t len);
void vt_get(int sock, void *data, size_t len);

struct vt_mem_at {	/* a piece of registered memory, as a device is told of it */
	uint64_t addr;
	uint32_t key;
};

/* Of @mem from @off: for the local end, for the remote end */
struct vt_mem_at vt_here(const struct rgate_mem *mem, size_t off);
struct vt_mem_at vt_there(const struct rgate_mem *mem, size_t off);

/* One operation from beginning to end; 0 or -errno */
int vt_rc_do(struct rgate_rc *rc, enum rgate_rc_op op, struct vt_mem_at local,
	     struct vt_mem_at remote, size_t len);
int vt_rc_add(struct rgate_rc *rc, struct vt_mem_at local, struct vt_mem_at remote,
	      uint64_t add);
int vt_rc_swap(struct rgate_rc *rc, struct vt_mem_at local, struct vt_mem_at remote,
	       uint64_t expect, uint64_t swap);

/* 6.1: 6 and 1 */
bool vt_kernel_before(unsigned int major, unsigned int minor);
/* Descriptors that this process has open */
unsigned int vt_open_files(void);

#endif
