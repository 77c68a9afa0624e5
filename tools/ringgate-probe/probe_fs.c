// SPDX-License-Identifier: MIT OR GPL-2.0
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "probe_fs.h"

/* "ID PARENT MAJ:MIN ROOT POINT OPTIONS [FIELDS...] - TYPE SOURCE OPTIONS" */
int probe_fs(const char *dir, char *type, size_t len)
{
	unsigned long long id;
	char line[1024];
	struct statx st;
	FILE *f;

	snprintf(type, len, "unknown");
	if (statx(AT_FDCWD, dir, 0, STATX_MODE | STATX_MNT_ID, &st))
		return -errno;
	if (!S_ISDIR(st.stx_mode))
		return -ENOTDIR;
	if (!(st.stx_mask & STATX_MNT_ID))
		return 0;
	f = fopen("/proc/self/mountinfo", "re");
	while (f && fgets(line, sizeof(line), f)) {
		const char *rest = strstr(line, " - ");

		if (sscanf(line, "%llu ", &id) == 1 && id == st.stx_mnt_id && rest) {
			rest += 3;
			snprintf(type, len, "%.*s", (int)strcspn(rest, "\n "), rest);
			break;
		}
	}
	if (f)
		fclose(f);
	return 0;
}
