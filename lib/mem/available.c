// SPDX-License-Identifier: MIT OR GPL-2.0
#include <inttypes.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "available.h"
#include "own_cgroup.h"

/* The number behind @key in @file of @dir; a limit that is not set is none */
static bool read_value(const char *dir, const char *file, const char *key, uint64_t *value)
{
	const size_t len = strlen(key);
	char path[PATH_MAX + 32], line[128];
	bool found = false;
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", dir, file);
	f = fopen(path, "re");
	while (f && !found && fgets(line, sizeof(line), f))
		found = !strncmp(line, key, len) && sscanf(line + len, " %" SCNu64, value) == 1;
	if (f)
		fclose(f);
	return found;
}

/*
 * What a group has left. Pages of files count as used, but the kernel drops them before it
 * kills; those in memory that is shared, as regions are, it cannot drop.
 */
static uint64_t group_room(const char *dir)
{
	static const char *const droppable[] = { "inactive_file ", "active_file " };
	uint64_t max, used, files, dropped = 0;
	unsigned int i;

	if (!read_value(dir, "memory.max", "", &max) ||
	    !read_value(dir, "memory.current", "", &used))
		return UINT64_MAX;
	for (i = 0; i < sizeof(droppable) / sizeof(droppable[0]); i++)
		if (read_value(dir, "memory.stat", droppable[i], &files))
			dropped += files;
	used -= dropped < used ? dropped : used;
	return used < max ? max - used : 0;
}

uint64_t rgate_available(char *where, size_t cap)
{
	uint64_t least = UINT64_MAX, room;
	char dir[PATH_MAX];
	size_t root;

	snprintf(where, cap, "on this machine");
	if (read_value("/proc", "meminfo", "MemAvailable:", &room) && room <= UINT64_MAX >> 10)
		least = room << 10;
	if (rgate_own_cgroup(dir, sizeof(dir), &root))
		return least;
	/* The root of a mount may be the root of a container, and have a limit. */
	while (strlen(dir) >= root) {
		room = group_room(dir);
		if (room < least) {
			least = room;
			snprintf(where, cap, "in %s (memory.max)", dir);
		}
		if (!strrchr(dir, '/'))
			break;
		*strrchr(dir, '/') = '\0';
	}
	return least;
}
