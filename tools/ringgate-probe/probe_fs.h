/* SPDX-License-Identifier: MIT OR GPL-2.0 */
#ifndef PROBE_FS_H
#define PROBE_FS_H

#include <stddef.h>

/* Type of the file system that @dir is on, as in /proc/mounts. 0 or -errno */
int probe_fs(const char *dir, char *type, size_t len);

#endif
