/* SPDX-License-Identifier: MIT OR GPL-2.0 */
#ifndef RGATE_FILE_H
#define RGATE_FILE_H

#include <stddef.h>

/*
 * rgate_file_read - all of a file
 * @text: out, its bytes and a NUL behind them; the caller's, for free()
 * @len: out, without that NUL
 * 0; -EFBIG: it has more than @most bytes; or what open(2) and read(2) say
 */
int rgate_file_read(const char *path, size_t most, char **text, size_t *len);

/*
 * rgate_file_read_own - the same for a file that says who may do what
 * -EPERM: it is no file, or others than root and the process's user may write it
 */
int rgate_file_read_own(const char *path, size_t most, char **text, size_t *len);

#endif
