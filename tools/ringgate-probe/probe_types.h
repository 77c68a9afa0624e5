/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/* The kinds of memory that are probed: how each is made, and given back. */
#ifndef PROBE_TYPES_H
#define PROBE_TYPES_H

#include <stddef.h>

#include "gpu_cuda.h"
#include "probe.h"

/* What a kind may need to be made */
struct probe_need {
	const char *dir;	/* for files */
	struct gpu *gpu;	/* NULL: none */
};

/* A piece of memory. Only one process has it, and nothing of it outlives that. */
struct probe_mem {
	void *addr;		/* NULL: this process has no mapping */
	size_t len;
	size_t page;		/* bytes */
	bool writable;		/* through @addr */
	void *alias;		/* a second mapping of the same bytes; NULL: none */
	bool alias_writable;
	int dmabuf;		/* registered through this; -1: through @addr */
	uint64_t gpu_ptr;	/* the GPU has it already; 0: @addr is to be mapped */
	char note[PROBE_TEXT];	/* what is special, or why it could not be made */

	void *map;		/* what is to be unmapped, with slack for alignment */
	size_t map_len;
	int fd;			/* -1: none */
	void *own[2];		/* of the kind */
};

struct probe_type {
	const char *name;	/* in tables and JSON */
	const char *what;	/* in words */
	/* 0; -errno: not on this machine, probe_mem.note says why */
	int (*make)(struct probe_mem *m, const struct probe_need *need);
	void (*destroy)(struct probe_mem *m);
	const char *refused;	/* why pinning fails with EFAULT, and what to do */
};

/* The @i-th kind, NULL behind the last */
const struct probe_type *probe_type(size_t i);

/* Parts of the table, each ended by a kind without name */
extern const struct probe_type probe_anon_types[], probe_file_types[], probe_dev_types[];

/* For the kinds: pages of 4 KiB or so, and how many of them */
#define PROBE_PAGES	16
size_t probe_page(void);

/* mmap(2) of @m->fd or, without, anonymous; and a second mapping. -errno, with a note */
int probe_map(struct probe_mem *m, size_t len, int prot, int flags);
int probe_map_alias(struct probe_mem *m, int prot);
/* Returns @err; "CALL: MESSAGE" and what to do go to the note */
int probe_not_made(struct probe_mem *m, int err, const char *call, const char *remedy);
void probe_unmap(struct probe_mem *m);
/* Are @pages huge pages of a size free? -ENOMEM, with a note that says how to get them */
int probe_huge_pages(struct probe_mem *m, size_t size, size_t pages);

#endif
