/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/* What is in the file of a program. */
#ifndef EXE_H
#define EXE_H

#include <stdbool.h>

/*
 * Is it one of this architecture into which no library can be loaded? Of a script it is what that
 * begins with. Looked for as execvp(3) does; false also if that is not known.
 */
bool exe_is_static(const char *name);

#endif
