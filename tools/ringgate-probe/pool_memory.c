// SPDX-License-Identifier: MIT OR GPL-2.0
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pool_memory.h"
#include "util.h"

#define CGROUP	"/sys/fs/cgroup"

/* Free memory, and free huge pages, which are not counted in it */
static uint64_t machine(void)
{
	unsigned long long kib, available = 0, huge = 0, huge_kib = 0;
	FILE *f = fopen("/proc/meminfo", "re");
	char line[128];

	if (!f)
		return UINT64_MAX;
	while (fgets(line, sizeof(line), f)) {
		char *value = strchr(line, ':');

		if (!value)
			continue;
		*value++ = '\0';
		kib = strtoull(value, NULL, 10);
		if (!strcmp(line, "MemAvailable"))
			available = kib;
		else if (!strcmp(line, "HugePages_Free"))
			huge = kib;
		else if (!strcmp(line, "Hugepagesize"))
			huge_kib = kib;
	}
	fclose(f);
	return (available + huge * huge_kib) << 10;
}

static int read_number(const char *path, uint64_t *v)
{
	char line[64], *end;
	int err = util_read_line(path, line, sizeof(line));

	if (err)
		return err;
	*v = strtoull(line, &end, 10);
	return end == line ? -EINVAL : 0;
}

/* Pages of files, which the group gives up when it needs memory: version 2, then 1 */
static uint64_t reclaimable(void)
{
	unsigned long long v, cache = 0, shmem = 0;
	FILE *f = fopen(CGROUP "/memory.stat", "re") ?:
		  fopen(CGROUP "/memory/memory.stat", "re");
	char name[64];

	if (!f)
		return 0;
	while (fscanf(f, "%63s %llu", name, &v) == 2) {
		if (!strcmp(name, "file") || !strcmp(name, "cache"))
			cache = v;
		else if (!strcmp(name, "shmem"))
			shmem = v;
	}
	fclose(f);
	return cache > shmem ? cache - shmem : 0;
}

/* Of the group that is seen as the root: that of a container */
static uint64_t group(void)
{
	uint64_t max, now, back = reclaimable();

	if (read_number(CGROUP "/memory.max", &max) &&
	    read_number(CGROUP "/memory/memory.limit_in_bytes", &max))
		return UINT64_MAX;
	if (read_number(CGROUP "/memory.current", &now) &&
	    read_number(CGROUP "/memory/memory.usage_in_bytes", &now))
		return UINT64_MAX;
	now -= back < now ? back : now;
	return max > now ? max - now : 0;
}

uint64_t pool_memory_available(void)
{
	uint64_t a = machine(), b = group();

	return a < b ? a : b;
}
