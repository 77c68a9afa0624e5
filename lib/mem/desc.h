/* SPDX-License-Identifier: MIT OR GPL-2.0 */
#ifndef RGATE_MEM_DESC_H
#define RGATE_MEM_DESC_H

#include <ringgate/rgate_mem.h>

/* A descriptor as it goes to a peer; what the fields are: uapi/ringgate/desc.h */
void rgate_desc_fill(struct rgate_desc *desc, uint32_t rkey, uint64_t addr, uint64_t length,
		     uint32_t access, uint32_t epoch);

#endif
