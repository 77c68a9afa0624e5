/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 *	journal.c	records, and who waits for them
 *	journal_open.c	begin and end
 *	journal_write.c	the thread that writes
 *	journal_dir.c	the directory, and its files
 *	journal_load.c	at the start
 *	journal_read.c	what a file has
 */
#ifndef RGATE_QUEUE_JOURNAL_PRIV_H
#define RGATE_QUEUE_JOURNAL_PRIV_H

#include <pthread.h>

#include "journal.h"
#include "journal_read.h"

#define JOURNAL_SEGMENT		(16U << 20)
#define JOURNAL_RESERVE		(1U << 20)	/* behind it, for what ends when the disk is full */
#define JOURNAL_LEAST		(64U << 10)	/* bytes that a segment counts for */
#define JOURNAL_NAME_ROOM	32U

struct segment {
	struct link of_journal;		/* or of a batch, behind which it is removed */
	struct link tasks;
	uint64_t number;
	uint64_t size;			/* when all is written */
	uint64_t synced;		/* the lock; bytes that are on the disk */
	uint32_t salt;
	int fd;				/* -1: it is full, all of it is on the disk */
	bool bad;			/* it is renamed, not removed */
	bool again;			/* the writer's: its last sync failed */
};

/* Records of one segment that are written at once */
struct batch {
	struct batch *next;
	struct segment *seg;
	uint64_t at;			/* in the file */
	char *buf;
	size_t len, room, written;
	struct journal_answer *held;
	uint32_t nheld, held_room;
	struct link dead;		/* segments */
};

struct journal {
	struct queues *home;
	int dir;
	uint32_t sync_ms, segment;
	uid_t uid;
	bool repair;
	bool look;			/* nothing is changed */
	uint64_t (*wall)(void);
	char name[256];			/* of the directory, for messages */
	/* the queues' owner's */
	struct link segs;		/* the oldest first; the last one is written to */
	uint64_t live;			/* bytes; atomic */
	uint64_t total;			/* likewise; changed under the lock */
	uint64_t records;
	uint64_t moved_at;		/* total, when tasks were last moved */
	uint64_t restored;
	/* under the lock */
	pthread_mutex_t lock;
	pthread_cond_t cond;
	pthread_t thread;
	struct batch *first, *last;	/* to be written */
	struct batch *busy;		/* is being written */
	struct batch *spare_batch;
	struct batch *reserve;		/* for a record that was promised, without memory */
	struct segment *spare;		/* the next one, ready; its number is the last one's + 1 */
	struct segment *head;		/* is written to */
	struct journal_answer *failed;	/* SUBMITs: their tasks go with the next tick */
	uint32_t nfailed;
	uint64_t pending;		/* bytes */
	uint64_t next;			/* number of a segment */
	bool sleeps, stop, want_spare;
	int err;			/* the last try to write */
	int tight;			/* the last try to have a spare segment */
	struct journal_stats count;
	/* the thread's: why something was not written when it ended */
	int lost;
	bool stays;			/* a file that is of no use: so do all others */
};

/* journal.c */
uint64_t journal_now(const struct journal *j);
uint64_t journal_total(const struct segment *s);
/* On with the spare segment: in its beginning are all queues. False: no memory, also for @more */
bool journal_roll(struct journal *j, size_t more);
/* Those of no use, from the oldest one on, are removed behind what is recorded so far. */
void journal_drop_segments(struct journal *j);
struct batch *journal_batch_free(struct batch *b);

/* journal_dir.c */
/* Open, locked, and looked at; @make: it may be made */
int journal_dir_open(struct journal *j, const char *path, bool make);
void journal_name(uint64_t number, char name[JOURNAL_NAME_ROOM]);
/* Numbers of its files in their order, for free(). -EBADMSG: one is missing between */
int journal_dir_list(const struct journal *j, uint64_t **numbers, size_t *n);
/* All of it, for free(); and the descriptor, where @fd is not NULL */
int journal_dir_read(const struct journal *j, uint64_t number, char **mem, size_t *len, int *fd);
/* With its head on the disk, and room for all of it. NULL: *err */
struct segment *journal_segment_new(struct journal *j, uint64_t number, int *err);
void journal_segment_free(struct segment *s);
/* Its file is removed, or put aside */
int journal_segment_remove(struct journal *j, const struct segment *s);

/* journal_load.c */
/* Each queue has a handle yet, which journal_settle() takes: when the journal is the home's */
int journal_load(struct journal *j);
void journal_settle(struct journal *j);

/* journal_write.c */
int journal_writer_start(struct journal *j);
/* When all is written */
void journal_writer_stop(struct journal *j);
/* Until there is nothing left to be written, or that failed: false */
bool journal_drain(struct journal *j);

#endif
