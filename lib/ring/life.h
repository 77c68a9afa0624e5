/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * Which handles of a memfd ring are still held. Each has an open file description of
 * one empty file, with a lock on the byte of its number. The kernel lets go of the lock
 * once the last descriptor of that description is closed, which is when the processes
 * that have it ended, however they did; and anybody with the file can ask.
 */
#ifndef RGATE_LIB_LIFE_H
#define RGATE_LIB_LIFE_H

#include <stdbool.h>
#include <stdint.h>

/* The empty file, or -errno. -ENOENT: /proc is not there, by which it is opened again */
int rgate_life_new(void);

/* A description of its own, with @handle's lock, for who gets that handle */
int rgate_life_open(int file, uint32_t handle);

/* What came from another process: a file whose questions the kernel answers at once? */
bool rgate_life_valid(int fd);

/* Does nobody have @handle? @fd: another handle's descriptor */
bool rgate_life_over(int fd, uint32_t handle);

#endif
