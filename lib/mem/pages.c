// SPDX-License-Identifier: MIT OR GPL-2.0
/* Page sizes and alignment. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#include <ringgate/rgate_mem.h>

int rgate_mem_pages(const void *addr, size_t len, size_t page_size, void **base, size_t *span)
{
	uintptr_t start = (uintptr_t)addr, end;

	if (!page_size)
		page_size = (size_t)sysconf(_SC_PAGESIZE);
	if (!len || page_size & (page_size - 1))
		return -EINVAL;
	if (__builtin_add_overflow(start, len, &end) ||
	    __builtin_add_overflow(end, page_size - 1, &end))
		return -EOVERFLOW;
	start &= ~(page_size - 1);
	end &= ~(page_size - 1);
	*base = (void *)start;
	*span = end - start;
	return 0;
}

long rgate_mem_page_size(const void *addr)
{
	const uintptr_t at = (uintptr_t)addr;
	unsigned long kib;
	uintptr_t from, to;
	char line[512];
	bool inside = false;
	long size = -EFAULT;
	FILE *f = fopen("/proc/self/smaps", "re");

	if (!f)
		return -errno;
	while (fgets(line, sizeof(line), f)) {
		if (sscanf(line, "%" SCNxPTR "-%" SCNxPTR " ", &from, &to) == 2) {
			inside = at >= from && at < to;
		} else if (inside && sscanf(line, "KernelPageSize: %lu kB", &kib) == 1) {
			size = (long)kib * 1024;
			break;
		}
	}
	fclose(f);
	return size;
}
