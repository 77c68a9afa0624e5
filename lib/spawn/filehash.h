/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/* Files that are executed only if they are what the policy knows. Of one thread. */
#ifndef RGATE_SPAWN_FILEHASH_H
#define RGATE_SPAWN_FILEHASH_H

#include <stdint.h>

#define RGATE_FILEHASH_MAX	(1ULL << 30)	/* bytes of such a file */

/*
 * A descriptor to be executed: a copy of the file, in memory that nobody can write any
 * more, which has that SHA-256. -EACCES: it has another, or may not be executed; -ENOEXEC: a
 * script, whose interpreter would open it once more; -EFBIG; -ENOENT, ...
 */
int rgate_filehash_open(const char *path, const uint8_t sha256[32]);
/* Has the C library of hashes ready, for processes that are forked later */
void rgate_filehash_prepare(void);

#endif
