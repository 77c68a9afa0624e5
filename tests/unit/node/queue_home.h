/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * A home that the test is (queue_bed.h): it has one queue, or says so, takes tasks and tells what
 * has become of them, as and when the test wants; and a program that submits tasks there.
 */
#ifndef NODE_QUEUE_HOME_H
#define NODE_QUEUE_HOME_H

#include <unistd.h>

#include "queue_bed.h"

#define HOME_TASKS	64U
#define HOME_HELD	8U
#define MS		1000000ULL

struct home {
	bool there;			/* the queue */
	bool hidden;			/* it cannot be opened, nor made */
	uint32_t serial;		/* its number */
	uint64_t last;			/* number of a task */
	uint64_t next;			/* of FOLLOW */
	bool deaf;			/* who follows hears nothing */
	bool crowded;			/* nobody can wait for what ends */
	uint64_t ended;			/* who follows at once hears of that one; 0: of none */
	bool holds;			/* SUBMITs are taken, and end later */
	uint32_t takes;			/* tasks of one, at most; 0: all */
	int fails;			/* the next one, with that */
	uint64_t over;			/* bits that OVER leaves, from number 1 on; */
	uint64_t adds;			/* and those of which nobody has asked */
	/* what it was asked */
	unsigned int opens, makes, looks, overs, closes, removes, leaves, submits;
	unsigned int asked_now;		/* who follows, without waiting */
	bool followed;			/* one waits: */
	struct gate_question follow;
	struct gate_question held[HOME_HELD];
	uint64_t first[HOME_HELD];
	unsigned int nheld;
	struct rgate_queue_place place;	/* of the last one that was made */
	char got[HOME_TASKS];		/* the first byte of each task */
	struct rgate_queue_put puts[HOME_TASKS];
	unsigned int ngot;
	struct rgate_queue_info info;	/* of the queue */
	/* With a mirror: who has copies waits with COPIES, or has asked at once; what he said */
	bool copied;
	unsigned int copied_now;
	struct gate_question copying;
	struct rgate_queue_copies has;
	/* What came again, in got[] and puts[], and when it was of two: the number of the first one */
	struct rgate_queue_copy again[HOME_TASKS];
	uint64_t was;
};

extern struct home home;

int home_setup(void **state);
int home_setup_silent(void **state);

/* All that there is to do here, and to be asked there */
void run(void);

#define until(c) \
	do { \
		const uint64_t until_ = unit_now_ns() + PATIENCE_MS * MS; \
		for (run(); !(c); run()) { \
			assert_true(unit_now_ns() < until_); \
			usleep(1000); \
		} \
	} while (0)

/* ---- What it says ---- */

/* The end of @q */
void home_ends(const struct gate_question *q, int result, uint64_t value, const void *data,
	       uint32_t len);
/* Who follows is told that. */
void home_tells(const struct gate_question *q, const uint64_t *ids, uint32_t n, uint32_t flags);
/* Who waits with COPIES is told of that: @n tasks from number @id on, of a letter each. */
void home_copies(const struct rgate_queue_copies *head, const uint64_t *ends, uint64_t id,
		 const char *letters);
/* Of the @i-th SUBMIT that was held: so many were taken, it says */
void home_lets_go(unsigned int i, uint32_t n);

#define has_ended(...) \
	do { \
		const uint64_t ids_[] = { __VA_ARGS__ }; \
		until(home.followed); \
		home.followed = false; \
		home_tells(&home.follow, ids_, ARRAY_LEN(ids_), 0); \
		run(); \
	} while (0)

/* Another process, which has no queue, or one of that number */
void home_dies(uint64_t incarnation, uint32_t serial);
/* For longer than it may, in a silent bed; then the same process is there */
void home_stands_still(void);

/* ---- The program ---- */

uint32_t open_far_as(const char *name, uid_t owner, uint32_t flags);
uint32_t open_far(void);
/* A task of each letter: the request */
uint64_t puts_as(uint32_t h, const char *letters, struct rgate_queue_put put);
uint64_t puts_some(uint32_t h, const char *letters);
/* It has to take them. */
void put_far(uint32_t h, const char *letters);

#endif
