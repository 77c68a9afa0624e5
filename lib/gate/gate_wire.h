/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * What two nodes say to each other about requests that one of them carries out for the other's
 * sessions: a question and its one answer, with the same number, both at once; and GATE_DONE, for
 * which nobody has asked, when a request has ended. Little-endian, no holes; bytes follow. Neither
 * believes the other more than what gate_question_get() and gate_answer_get() let pass.
 *
 * What a request with RGATE_REQ_MULTI comes to before its end is told by GATE_MORE, which nobody
 * has asked for, either: a completion in as many messages as its bytes take. A request's are
 * counted from 0 on, one that says of a berth as the pieces that it would be, and GATE_DONE says
 * how many there were, so none is missed. Over another
 * connection nothing of it is told before GATE_HEARD has said how many were heard, and then what
 * follows these: who has heard of its end is silent, and so is who tells.
 *
 * Nodes of versions before GATE_HEARD do not say it, and would be told nothing over another
 * connection, for ever. So each side refuses such a request of the other one with -EOPNOTSUPP, as
 * any kind that it does not know: GATE_SUBMIT_MANY has another number than theirs, which was 7 and
 * is no kind's any more. All else they do for each other.
 *
 * Bytes that no message has room for go by writes, each to a berth of the other node: a piece of
 * memory that this one alone is told of. Each has a dock of them for the other one, as long as a
 * connection lasts: GATE_DOCK asks for that of who serves, and has that of who asks. Over the same
 * connection the message comes after it that tells which berth they are in; what it tells of the
 * dock of another connection was not written here. Nodes of versions before GATE_DOCK refuse it,
 * and then bytes go in pieces, as they do where there is no berth.
 *
 * Some berths and tickets are wide, which nodes of other versions do not know: a dock that is so
 * long says that its node does, and only then it is asked for more bytes than a ticket's room.
 *
 * A session is a guest at the other node, and each of its requests has a ticket there: room for
 * bytes to send or to receive into, as much as its role has, and an address.
 *
 * A role is a service that has such requests: all that is different about it.
 */
#ifndef RGATE_GATE_WIRE_H
#define RGATE_GATE_WIRE_H

#include <linux/types.h>

#include <ringgate/desc.h>
#include <ringgate/request.h>
#include <ringgate/queue.h>
#include <ringgate/rgate_hub.h>
#include <ringgate/socket.h>

#define GATE_VERSION	1
#define GATE_TICKETS	64U	/* of a guest: requests under way */
#define GATE_ROOM	69632U	/* bytes of a ticket, of any role */
#define GATE_MANY	1024U	/* completions of a request at most */
#define GATE_PIECE	192U	/* bytes in a message, an address among them */
#define GATE_BERTHS	32U	/* of a dock; each has a ticket's room */
#define GATE_WIDE	8U	/* tickets, the last ones, and berths behind those, are wide, */
#define GATE_LONG	196608U	/* of so many bytes at most, of a role that has some */
#define GATE_ADDR	((uint32_t)sizeof(struct rgate_socket_addr))

enum gate_kind {
	GATE_PUT = 1,		/* bytes for a request to come */
	GATE_SUBMIT = 2,	/* the request; address and first bytes follow */
	GATE_GET = 3,		/* bytes of one that has ended */
	GATE_CANCEL = 4,
	GATE_LEAVE = 5,		/* the session is over */
	GATE_DONE = 6,		/* no question: address and first bytes follow */
	GATE_MORE = 8,		/* no question: bytes of one of them follow */
	GATE_HEARD = 9,		/* a0: messages of GATE_MORE that came of one of those */
	GATE_SUBMIT_MANY = 10,	/* as GATE_SUBMIT, with RGATE_REQ_MULTI; a1: completions */
	GATE_DOCK = 11,		/* of no request: struct rgate_desc follows, in the answer as well;
				 * serial: what this dock, and that one, is called
				 */
};

struct gate_ask {
	__u8 service;		/* gate_role.service */
	__u8 version;		/* GATE_VERSION */
	__u8 kind;		/* enum gate_kind */
	__u8 follows;		/* enum gate_follows: before the bytes, in this order */
	__le32 uid;		/* who asks, as his daemon says */
	__le64 number;
	__le64 guest;		/* of the session; not 0, and no other session's */
	__le64 serial;		/* of the request; higher than those that had its ticket before */
	__le16 ticket;
	__le16 op;		/* GATE_SUBMIT: rgate_request.op and what else it has: */
	__le32 handle;
	__le64 a0;
	__le64 a1;		/* but where an address is */
	__le32 len;		/* of its part; GATE_PUT, GATE_GET: bytes */
	__le32 off;		/* GATE_PUT, GATE_GET */
};

struct gate_answer {
	__u8 service;		/* gate_role.service | RGATE_SERVICE_ASKER */
	__u8 version;
	__u8 kind;		/* of the question, or GATE_DONE, GATE_MORE */
	__u8 follows;
	__le32 result;		/* as a completion has it */
	__le64 number;		/* GATE_MORE: the message's; GATE_DONE: of those so many were */
	__le64 guest;		/* GATE_DONE, GATE_MORE, as the next two */
	__le64 serial;
	__le16 ticket;
	__le16 zero;
	__le32 len;		/* GATE_DONE: bytes that there are to get, with those that follow;
				 * GATE_MORE: of the completion, in all its messages
				 */
	__le64 value;
};

enum gate_follows {
	GATE_FOLLOWS_ADDR = 1U << 0,	/* GATE_ADDR bytes: GATE_SUBMIT, GATE_DONE */
	GATE_FOLLOWS_LENT = 1U << 1,	/* struct gate_berths: those two, their like with many
					 * completions, and GATE_GET. No bytes follow
					 */
};

/* Berths, counted from 1 on; 0: none */
struct gate_berths {
	__le64 dock;
	__le16 in;		/* of who serves: there all of the request's part is; */
	__le16 out;		/* of who asks: there its bytes are, or go */
	__le32 zero;
};

RGATE_ASSERT(sizeof(struct gate_ask) == 64);
RGATE_ASSERT(sizeof(struct gate_berths) == 16);
RGATE_ASSERT(sizeof(struct gate_answer) == 48);
RGATE_ASSERT(sizeof(struct gate_ask) + GATE_PIECE <= RGATE_HUB_MSG_MAX);
RGATE_ASSERT(sizeof(struct gate_answer) + GATE_PIECE <= RGATE_HUB_MSG_MAX);

struct gate_lent {
	uint64_t dock;		/* 0: there is none */
	uint32_t in, out;
};

/* A question in host order */
struct gate_question {
	enum gate_kind kind;
	uint32_t uid, ticket, op, handle, len, off;
	uint64_t number, guest, serial, a0, a1;
	const struct rgate_socket_addr *addr;	/* NULL: none; may not be aligned */
	struct gate_lent lent;
	const void *data;
	uint32_t data_len;	/* follow */
};

/* An answer likewise */
struct gate_result {
	enum gate_kind kind;
	int result;
	uint32_t ticket, len;
	uint64_t number, guest, serial, value;
	const struct rgate_socket_addr *addr;
	struct gate_lent lent;
	const void *data;
	uint32_t data_len;
};

/* ---- What requests have besides their words ---- */

enum gate_has {
	GATE_HAS_IN = 1U << 0,		/* its part is read: sent */
	GATE_HAS_OUT = 1U << 1,		/* its part is written: as many bytes as its result, also
					 * where it was read; */
	GATE_HAS_WHOLE = 1U << 2,	/* all of it */
	GATE_HAS_TO = 1U << 3,		/* a1 is where an address is read, */
	GATE_HAS_FROM = 1U << 4,	/* or written */
	GATE_HAS_STREAM = 1U << 5,	/* its part may be as long as it likes, and is cut */
	GATE_HAS_NODE = 1U << 6,	/* a0 names the node: gate_role.here, over there */
	GATE_HAS_TO_GO = 1U << 7,	/* goes on though it is cancelled before it was sent */
	GATE_HAS_MANY = 1U << 8,	/* can have RGATE_REQ_MULTI: each completion but the last
					 * has its share of the part then, all of one length. Not
					 * with GATE_HAS_IN
					 */
};

static inline uint32_t least(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

struct gate_role {
	uint32_t service;		/* of the hub */
	uint32_t requests;		/* enum rgate_req_service_number */
	uint32_t room;			/* of a ticket, GATE_ROOM at most; */
	uint32_t wide;			/* of a wide one, GATE_LONG at most; 0: there are none */
	uint32_t nops;
	const uint16_t *has;		/* of each: enum gate_has */
	uint64_t here;
};

extern const struct gate_role gate_sockets, gate_queues;

/* ---- Rooms ---- */

static inline uint32_t gate_berths(const struct gate_role *role)
{
	return GATE_BERTHS + (role->wide ? GATE_WIDE : 0);
}

static inline uint32_t gate_berth_room(const struct gate_role *role, uint32_t berth)
{
	return berth > GATE_BERTHS ? role->wide : role->room;
}

/* Where it is in the dock; of one more than there are: how long that is */
static inline size_t gate_berth_at(const struct gate_role *role, uint32_t berth)
{
	const size_t n = berth - 1, narrow = n < GATE_BERTHS ? n : GATE_BERTHS;

	return narrow * role->room + (n - narrow) * role->wide;
}

static inline bool gate_ticket_is_wide(const struct gate_role *role, uint32_t ticket)
{
	return role->wide && ticket >= GATE_TICKETS - GATE_WIDE;
}

static inline uint32_t gate_ticket_room(const struct gate_role *role, uint32_t ticket)
{
	return gate_ticket_is_wide(role, ticket) ? role->wide : role->room;
}

/* Where a ticket's room is in a guest's memory: an address is behind it */
static inline uint64_t gate_room(const struct gate_role *role, uint32_t ticket)
{
	const uint32_t wide = gate_ticket_is_wide(role, ticket) ?
			      ticket - (GATE_TICKETS - GATE_WIDE) : 0;

	return (uint64_t)ticket * (role->room + GATE_ADDR) +
	       (uint64_t)wide * (role->wide - role->room);
}

/* Bytes of its part that a completion has written */
static inline uint32_t gate_bytes(uint32_t has, uint32_t part, int result)
{
	if (result < 0)
		return 0;
	if (has & GATE_HAS_WHOLE)
		return part;
	return has & GATE_HAS_OUT ? least((uint32_t)result, part) : 0;
}

/* Of one of many: an address is in front of the bytes then */
static inline uint32_t gate_front(uint32_t has)
{
	return has & GATE_HAS_FROM ? GATE_ADDR : 0;
}

/* Bytes of its share that one of many has written */
static inline uint32_t gate_share(uint32_t has, uint32_t share, int result)
{
	const uint32_t front = result < 0 ? 0 : least(gate_front(has), share);

	return front + gate_bytes(has, share - front, result);
}

/* Messages that so many bytes take; none take one as well */
static inline uint32_t gate_pieces(uint32_t len)
{
	return len ? (len + GATE_PIECE - 1) / GATE_PIECE : 1;
}

/* enum gate_has of the operation; -EOPNOTSUPP: of another service, or none */
int gate_op_has(const struct gate_role *role, uint32_t op);

/*
 * Writes it to @msg, of RGATE_HUB_MSG_MAX bytes; how long it is. Of data_len as much goes as there
 * is room for: which is told.
 */
size_t gate_question_put(const struct gate_role *role, void *msg, struct gate_question *q);
size_t gate_answer_put(const struct gate_role *role, void *msg, struct gate_result *r);

/*
 * gate_question_get - of a peer's message, into which @q's pointers point
 * -EPROTO: malformed, then there is no answer; -EPROTONOSUPPORT, -EOPNOTSUPP: of another version,
 * a kind not known here: @q->number is there for the answer. ticket, len and off are in bounds.
 */
int gate_question_get(const struct gate_role *role, struct gate_question *q, const void *msg,
		      size_t len);

/* -EPROTO: malformed. Whether it fits its question is for who has asked that */
int gate_answer_get(struct gate_result *r, const void *msg, size_t len);

#endif
