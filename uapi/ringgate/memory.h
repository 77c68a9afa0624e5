/* SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note */
/*
 * What the operations of RGATE_REQ_MEMORY have in their words: memory that a session exports
 * under a name, and that others open. Documentation/memory.rst tells what they do.
 */
#ifndef RINGGATE_MEMORY_H
#define RINGGATE_MEMORY_H

#include <linux/types.h>
#include <ringgate/assert.h>

/* What may be done to exported memory */
#define RGATE_MEMORY_READ	(1U << 0)
#define RGATE_MEMORY_WRITE	(1U << 1)
#define RGATE_MEMORY_ATOMIC	(1U << 2)	/* fetch-add, compare-and-swap */
#define RGATE_MEMORY_RIGHTS	7U

/* By sessions of the user that has exported it, and by those of others */
#define RGATE_MEMORY_OTHERS_SHIFT 3
#define RGATE_MEMORY_MODE(owner, others) \
	((__u32)(owner) | (__u32)(others) << RGATE_MEMORY_OTHERS_SHIFT)
#define RGATE_MEMORY_MODES	RGATE_MEMORY_MODE(RGATE_MEMORY_RIGHTS, RGATE_MEMORY_RIGHTS)

/* Letters, digits, and . _ - / */
#define RGATE_MEMORY_NAME_MAX	63U
/* Bytes that one request reads or writes */
#define RGATE_MEMORY_LEN_MAX	(1U << 20)
/* rgate_request.a0 of OPEN: the node that is asked, whichever it is */
#define RGATE_MEMORY_HERE	(~0ULL)

/* rgate_request.a1 of EXPORT */
#define RGATE_MEMORY_EXPORT_A1(mode, name_len)	((__u64)(name_len) << 32 | (__u32)(mode))
/* rgate_request.a1 of OPEN: whose memory, and what is to be done to it */
#define RGATE_MEMORY_OPEN_A1(owner, rights)	((__u64)(rights) << 32 | (__u32)(owner))

/* rgate_completion.value of OPEN */
#define RGATE_MEMORY_HANDLE(value)		((__u32)(value))
#define RGATE_MEMORY_LENGTH(value)		((__u32)((__u64)(value) >> 32))

RGATE_ASSERT(RGATE_MEMORY_MODES == 63U);

#endif /* RINGGATE_MEMORY_H */
