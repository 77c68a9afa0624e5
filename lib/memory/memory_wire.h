/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * What two daemons say to each other about exported memory: a question, and its one answer
 * with the same number. Little-endian, no holes; bytes that are read or written, or a name,
 * follow. Neither believes the other more than what memory_question_get() and
 * memory_answer_get() let pass.
 */
#ifndef RGATE_MEMORY_WIRE_H
#define RGATE_MEMORY_WIRE_H

#include <linux/types.h>

#include <ringgate/rgate_hub.h>

#include "regions.h"

#define MEMORY_VERSION	1
#define MEMORY_PIECE	192U	/* bytes of memory in a message */

struct memory_ask {
	__u8 service;		/* RGATE_SERVICE_MEMORY */
	__u8 version;		/* MEMORY_VERSION */
	__u8 op;		/* enum memory_op */
	__u8 zero;
	__le32 uid;		/* who asks, as his daemon says */
	__le64 number;
	__le64 region;		/* its id; MEMORY_OPEN: owner, and rights << 32 */
	__le64 off;
	__le32 len;		/* to be read, or of what follows */
	__le32 zero2;
	__le64 operand;
	__le64 swap;
	__le64 zero3;
};

struct memory_answer {
	__u8 service;		/* RGATE_SERVICE_MEMORY | RGATE_SERVICE_ASKER */
	__u8 version;
	__u8 op;		/* of the question */
	__u8 zero;
	__le32 error;		/* errno; 0: done */
	__le64 number;
	__le64 value;		/* MEMORY_OPEN: length */
	__le64 region;		/* MEMORY_OPEN */
	__le32 len;		/* of what follows */
	__le32 zero2;
};

RGATE_ASSERT(sizeof(struct memory_ask) == 64);
RGATE_ASSERT(sizeof(struct memory_answer) == 40);
RGATE_ASSERT(sizeof(struct memory_ask) + MEMORY_PIECE <= RGATE_HUB_MSG_MAX);

/* A question in host order */
struct memory_question {
	uint64_t number;
	struct memory_access a;		/* data: what follows, or NULL */
	uid_t owner;			/* MEMORY_OPEN */
	uint32_t rights;
	char name[RGATE_MEMORY_NAME_MAX + 1];
};

/* An answer likewise */
struct memory_result {
	uint64_t number;
	enum memory_op op;
	int err;			/* 0 or -errno */
	uint64_t value, region;
	uint32_t len;
	const void *data;
};

/* Writes it to @msg, of RGATE_HUB_MSG_MAX bytes; how long it is. What follows is at most
 * MEMORY_PIECE, from a.data or the name */
size_t memory_question_put(void *msg, const struct memory_question *q);
size_t memory_answer_put(void *msg, const struct memory_result *r);

/*
 * memory_question_get - of a peer's message; @q->a.data points into it
 * -EPROTO: malformed, then there is no answer; -EPROTONOSUPPORT, -EOPNOTSUPP, -EINVAL: of another
 * version, an operation not known here, a name that is none: @q->number is there for the answer.
 */
int memory_question_get(struct memory_question *q, const void *msg, size_t len);

/* -EPROTO: malformed. Whether it fits its question is for who has asked that */
int memory_answer_get(struct memory_result *r, const void *msg, size_t len);

#endif
