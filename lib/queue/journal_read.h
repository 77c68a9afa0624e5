/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * What a segment of a queue's journal has, and how it is read. A segment is a file: a head, then
 * records one behind the other, each a multiple of 8 bytes. Numbers are those of the machine that
 * wrote it.
 *
 * Whoever reads has a copy that nobody writes any more, and believes no size in it.
 */
#ifndef RGATE_QUEUE_JOURNAL_READ_H
#define RGATE_QUEUE_JOURNAL_READ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <ringgate/queue.h>

#define JOURNAL_MAGIC		0x6c6e726a2e677201ULL
#define JOURNAL_VERSION		1U
#define JOURNAL_SEGMENT_MOST	(64U << 20)	/* bytes; behind that, ends of tasks alone */
#define JOURNAL_FILE_MOST	(1U << 30)	/* that are read */

struct journal_head {
	uint64_t magic;
	uint32_t version;
	uint32_t salt;		/* all sums of this file begin with it: random, so that bytes of a
				 * task, which anybody may have chosen, are no record here */
	uint64_t number;
	uint32_t reserved[9];
	uint32_t crc;		/* of what is before it */
};

enum journal_kind {
	JOURNAL_QUEUE = 1,	/* struct journal_queue; at the beginning of a segment: all */
	JOURNAL_REMOVED,	/* struct journal_name, of no task: with all that it has */
	JOURNAL_TASK,		/* struct journal_task: all of it, its bytes, its end */
	JOURNAL_CHANGE,		/* struct journal_change, its end */
	JOURNAL_GONE,		/* struct journal_name */
	JOURNAL_KINDS,
};

struct journal_record {
	uint32_t crc;		/* of all that follows it in the record */
	uint32_t len;		/* of the record */
	uint32_t at;		/* where it is in the file */
	uint32_t sure;		/* what is before that in the file was safe when it was written */
	uint32_t kind;		/* enum journal_kind */
	uint32_t reserved;
};

struct journal_queue {
	uint64_t serial;
	uint64_t last;		/* number of a task */
	uint32_t owner;
	uint32_t flags;		/* RGATE_QUEUE_* */
	struct rgate_queue_place place;
};

struct journal_name {
	uint64_t queue;		/* its serial */
	uint64_t id;
};

/* What becomes of a task. Times are those of CLOCK_REALTIME, ns */
struct journal_change {
	struct journal_name name;
	uint64_t due;		/* DELAYED; DONE: its result is kept till then */
	uint32_t attempts;
	uint32_t end_len;
	uint8_t state;		/* READY, DELAYED, BURIED, DONE */
	uint8_t reserved[7];
};

struct journal_task {
	struct journal_change now;
	uint64_t born;
	uint32_t uid;
	uint32_t len;
	uint32_t most;		/* attempts */
	uint8_t type, priority, flags, reserved;
};

RGATE_ASSERT(sizeof(struct journal_head) == 64);
RGATE_ASSERT(sizeof(struct journal_record) == 24);
RGATE_ASSERT(sizeof(struct journal_queue) == 112);
RGATE_ASSERT(sizeof(struct journal_change) == 40);
RGATE_ASSERT(sizeof(struct journal_task) == 64);

#define JOURNAL_RECORD_MOST	(sizeof(struct journal_record) + sizeof(struct journal_task) + \
				 2 * RGATE_QUEUE_DATA_MAX)

struct journal_reader {
	const unsigned char *mem;
	size_t len, at;
	uint32_t salt;
	uint64_t number;
};

/* A record's own, a copy; @data and @end are in the reader's memory, as long as it says */
struct journal_got {
	struct journal_record head;
	union {
		struct journal_queue queue;
		struct journal_name name;
		struct journal_change change;
		struct journal_task task;
	};
	const unsigned char *data, *end;
};

/* -EBADMSG: this is no head, or not all of it; -EPROTONOSUPPORT: of another version */
int journal_read_head(struct journal_reader *r, const void *mem, size_t len);

/* 1; 0: that was the last one; -EBADMSG: there is none at r->at, which stays */
int journal_read_next(struct journal_reader *r, struct journal_got *got);

/*
 * Behind @r->at, where there is no record: the next one. 0: there is none
 * @sure: out: one of those that follow was written when what is here was safe
 */
size_t journal_read_find(const struct journal_reader *r, bool *sure);

/* For who writes: the sum of a head, and of a record of that file */
uint32_t journal_head_crc(const struct journal_head *head);
uint32_t journal_record_crc(uint32_t salt, const void *record, size_t len);

#endif
