// SPDX-License-Identifier: MIT OR GPL-2.0
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "own_cgroup.h"

/* Where cgroup2 is mounted: field 5 of a line with "- cgroup2" in mountinfo */
static int find_mount(char *path, size_t cap)
{
	FILE *f = fopen("/proc/self/mountinfo", "re");
	char *line = NULL, *at;
	size_t room = 0;
	int ret = -ENOENT, i;

	if (!f)
		return -errno;
	while (ret && getline(&line, &room, f) > 0) {
		if (!strstr(line, " - cgroup2 "))
			continue;
		for (at = line, i = 0; at && i < 4; i++) {
			at = strchr(at, ' ');
			at += !!at;
		}
		if (!at || strcspn(at, " ") >= cap)
			continue;
		snprintf(path, cap, "%.*s", (int)strcspn(at, " "), at);
		ret = 0;
	}
	free(line);
	fclose(f);
	return ret;
}

int rgate_own_cgroup(char *path, size_t cap, size_t *root)
{
	char mount[PATH_MAX / 2], *line = NULL;
	size_t room = 0;
	int err, n;
	FILE *f;

	err = find_mount(mount, sizeof(mount));
	if (err)
		return err;
	f = fopen("/proc/self/cgroup", "re");
	if (!f)
		return -errno;
	err = -ENOENT;
	while (err && getline(&line, &room, f) > 0) {
		if (strncmp(line, "0::/", 4))
			continue;
		line[strcspn(line, "\n")] = '\0';
		n = snprintf(path, cap, "%s%s", mount, line + 3);
		err = n < (int)cap ? 0 : -ENAMETOOLONG;
	}
	free(line);
	fclose(f);
	if (!err && root)
		*root = strlen(mount);
	return err;
}
