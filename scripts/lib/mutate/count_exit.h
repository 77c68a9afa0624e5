/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/* Included before all else where lines are counted: _exit(), by which children end, does
 * not write what gcov counted. */
#ifndef MUTATE_COUNT_EXIT_H
#define MUTATE_COUNT_EXIT_H

void __gcov_dump(void);
extern void _exit(int status) __attribute__((__noreturn__));

static inline void mutate_exit(int status) __attribute__((__noreturn__));
static inline void mutate_exit(int status)
{
	__gcov_dump();
	_exit(status);
}

#define _exit(status) mutate_exit(status)

#endif
