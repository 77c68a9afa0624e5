/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/* Files that are executed only if they are what the policy knows. Of one thread. */
#ifndef RGATE_SPAWN_FILEHASH_H
#define RGATE_SPAWN_FILEHASH_H

#include <stdint.h>

/*
 * A descriptor to be executed, of a file with that SHA-256. -EACCES: it has another;
 * -ENOEXEC: a script, whose interpreter would open it once more; -ENOENT, ... What was
 * hashed once is not read again as long as inode, size and times are the same.
 */
int rgate_filehash_open(const char *path, const uint8_t sha256[32]);

#endif
