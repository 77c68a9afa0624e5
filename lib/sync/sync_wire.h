/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * What two daemons say to each other about locks and barriers: a question and its one answer,
 * with the same number, both at once; and news, for which nobody has asked just then.
 * Little-endian, no holes. Neither believes the other more than what sync_question_get() and
 * sync_answer_get() let pass.
 */
#ifndef RGATE_SYNC_WIRE_H
#define RGATE_SYNC_WIRE_H

#include <linux/types.h>

#include <ringgate/rgate_hub.h>

#include "sync_table.h"

#define SYNC_VERSION	1

enum sync_op {
	SYNC_OPEN = 1,
	SYNC_TAKE = 2,		/* answer: 0 and the value; -EINPROGRESS: there will be news */
	SYNC_DROP = 3,
	SYNC_CLOSE = 4,
	SYNC_STATE = 5,		/* what there is follows the answer */
	SYNC_LIST = 6,		/* likewise; claim: position */
	SYNC_RENEW = 7,		/* the life goes on */
	SYNC_NEWS = 8,		/* no question: of what waits since SYNC_TAKE; number: its seq */
	SYNC_FENCE = 9,		/* claim: a node whose connection is to be ended; life: of it */
};

struct sync_ask {
	__u8 service;		/* RGATE_SERVICE_SYNC */
	__u8 version;		/* SYNC_VERSION */
	__u8 op;		/* enum sync_op */
	__u8 kind;		/* enum sync_kind: SYNC_OPEN; else 0 */
	__le32 uid;		/* who asks, as his daemon says */
	__le64 number;
	__le64 life;		/* of who asks: see sync_priv.h; SYNC_FENCE: that is over */
	__le64 claim;		/* its id, but of SYNC_OPEN and SYNC_RENEW */
	__le64 seq;		/* SYNC_TAKE */
	__le32 owner;		/* SYNC_OPEN: */
	__le32 flags;		/* or of SYNC_TAKE: RGATE_LOCK_*; SYNC_CLOSE: 1: clean */
	__le32 members;
	__le32 zero;
	char name[RGATE_SYNC_NAME_ROOM]; /* zeros behind its end */
};

struct sync_answer {
	__u8 service;		/* RGATE_SERVICE_SYNC | RGATE_SERVICE_ASKER */
	__u8 version;
	__u8 op;		/* of the question, or SYNC_NEWS */
	__u8 kind;		/* of what follows; 0: nothing does */
	__le32 error;		/* errno; 0: done */
	__le64 number;
	__le64 claim;		/* SYNC_OPEN, SYNC_NEWS; SYNC_LIST: position */
	__le64 value;
	__le32 lease_ms;	/* so long a life goes on behind a question */
	__le32 zero;
};

RGATE_ASSERT(sizeof(struct sync_ask) == 120);
RGATE_ASSERT(sizeof(struct sync_answer) == 40);
RGATE_ASSERT(sizeof(struct sync_answer) + sizeof(struct rgate_lock_info) <= RGATE_HUB_MSG_MAX);

/* A question in host order */
struct sync_question {
	uint64_t number, life, claim, seq;
	enum sync_op op;
	uid_t uid;
	uint32_t flags;		/* but of SYNC_OPEN */
	struct sync_open as;	/* SYNC_OPEN */
};

/* An answer likewise */
struct sync_result {
	uint64_t number, claim, value;
	enum sync_op op;
	int err;		/* 0 or -errno */
	uint32_t lease_ms;
	enum sync_kind kind;	/* of which there is: */
	union {
		struct rgate_lock_info lock;
		struct rgate_barrier_info barrier;
	} info;
};

/* Writes it to @msg, of RGATE_HUB_MSG_MAX bytes; how long it is */
size_t sync_question_put(void *msg, const struct sync_question *q);
size_t sync_answer_put(void *msg, const struct sync_result *r);

/*
 * sync_question_get - of a peer's message
 * -EPROTO: malformed, then there is no answer; -EPROTONOSUPPORT, -EOPNOTSUPP: of another version,
 * an operation not known here: @q->number is there for the answer. Names are looked at by
 * sync_table_open().
 */
int sync_question_get(struct sync_question *q, const void *msg, size_t len);

/* -EPROTO: malformed. Whether it fits its question is for who has asked that */
int sync_answer_get(struct sync_result *r, const void *msg, size_t len);

#endif
