/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * What the threads of one fuzzing process share. They race on purpose: a descriptor
 * may be closed, and a mapping gone, between a look at it and its use.
 */
#ifndef FUZZ_H
#define FUZZ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FUZZ_FDS	24
#define FUZZ_MAPS	24
#define FUZZ_IDS	64	/* rings and attachments have small numbers */

struct fuzz_map {
	void *addr;
	size_t len;
};

struct fuzz_proc {
	int fds[FUZZ_FDS];		/* of the device, or -1 */
	struct fuzz_map maps[FUZZ_MAPS];
	int sock;			/* where other processes' descriptors come from */
	int tx;				/* packet socket, or -1 */
	bool admin;
};

/* Of one thread */
struct fuzz {
	struct fuzz_proc *p;
	uint64_t rnd;
	uint64_t *done;			/* calls that succeeded */
	uint32_t pick;			/* which ring or attachment was named last */
};

uint64_t fuzz_rand(struct fuzz *f);
/* 0 to @n - 1 */
uint32_t fuzz_below(struct fuzz *f, uint32_t n);
/* One in @n */
bool fuzz_one_in(struct fuzz *f, uint32_t n);
/* A number as programs get them wrong: small, large, a power of two, all ones, ... */
uint64_t fuzz_number(struct fuzz *f);
/* Changes some bytes of @buf, or none */
void fuzz_mutate(struct fuzz *f, void *buf, size_t len);

/* One random call; device files and memory, or netlink and frames */
void fuzz_file_op(struct fuzz *f);
void fuzz_memory_op(struct fuzz *f);
void fuzz_netlink_op(struct fuzz *f);
void fuzz_traffic_op(struct fuzz *f);

/* What a call returned */
static inline bool fuzz_note(struct fuzz *f, long r)
{
	if (r < 0)
		return false;
	__atomic_fetch_add(f->done, 1, __ATOMIC_RELAXED);
	return true;
}

#endif
