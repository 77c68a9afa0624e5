/* SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note */
/*
 * A shard of tasks as it lies in the memory of its home, where peers claim them by operations of
 * the fabric (rgate_shard.h): geometry, a seat for each node, a word for each task, what the
 * tasks are, and a place for each task's result from each node. Each part begins on a line.
 * Words are in the byte order of the machines, which are alike.
 */
#ifndef RINGGATE_SHARD_H
#define RINGGATE_SHARD_H

#include <linux/types.h>
#include <ringgate/assert.h>

#define RGATE_SHARD_MAGIC	0x44534752	/* "RGSD" */
#define RGATE_SHARD_VERSION	1
#define RGATE_SHARD_LINE	64

/* Written once by the home; who opens the shard checks it, and keeps its own copy. */
struct rgate_shard_geometry {
	__le32	magic;		/* RGATE_SHARD_MAGIC */
	__le16	version;	/* RGATE_SHARD_VERSION */
	__u8	nodes;		/* ids are below it */
	__u8	submitters;	/* bit N: node N has a part of the tasks to submit */
	__le32	tasks;		/* a power of two */
	__le32	payload;	/* bytes of a task at most */
	__le32	result;		/* and of a result */
	__le32	reserved0;	/* 0 */
	__le64	bytes;		/* of all */
	__le64	reserved[4];	/* 0 */
};

/*
 * Of each node; two lines, as two write there: the node asks by a number with 0 in its low 16 bits
 * (0: it has left), and the home answers with that number, and in those bits the admission.
 */
struct rgate_shard_seat {
	__u64	ask;
	__u64	line0[7];
	__u64	answer;
	__u64	line1[7];
};

/* A task's word, which is changed by compare-and-swap alone */
#define RGATE_SHARD_STATE_SHIFT		0	/* 4 bits: enum rgate_shard_word_state */
#define RGATE_SHARD_NODE_SHIFT		4	/* 4 bits: who has claimed it, or done it */
#define RGATE_SHARD_ATTEMPT_SHIFT	8	/* 8 bits: claims that were lost; stays at 255 */
#define RGATE_SHARD_ADMISSION_SHIFT	16	/* 16 bits: of that node */
#define RGATE_SHARD_GENERATION_SHIFT	32	/* 32 bits: tasks that had the word before */

enum rgate_shard_word_state {
	RGATE_SHARD_EMPTY,	/* nothing but the generation is set */
	RGATE_SHARD_READY,	/* and the attempt */
	RGATE_SHARD_CLAIMED,
	RGATE_SHARD_DONE,
};

/* Before the bytes of a task; lines for both */
struct rgate_shard_record {
	__u32	generation;	/* as in the word */
	__u32	len;
	__u64	cookie;		/* of who submitted it */
};

/* Before the bytes of a result; lines for both */
struct rgate_shard_outcome {
	__u32	generation;
	__u32	len;
	__s32	status;
	__u32	reserved;	/* 0 */
};

RGATE_AT(struct rgate_shard_geometry, tasks, 8);
RGATE_AT(struct rgate_shard_geometry, bytes, 24);
RGATE_ASSERT(sizeof(struct rgate_shard_geometry) == 64);
RGATE_AT(struct rgate_shard_seat, answer, 64);
RGATE_ASSERT(sizeof(struct rgate_shard_seat) == 128);
RGATE_ASSERT(sizeof(struct rgate_shard_record) == 16);
RGATE_ASSERT(sizeof(struct rgate_shard_outcome) == 16);

#endif
