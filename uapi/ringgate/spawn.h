/* SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note */
/*
 * Processes on other nodes: the request, its status, and the messages between the node
 * that asks and the node that runs. All words are little-endian. Documentation/spawn.rst
 * tells the life of a request.
 */
#ifndef RINGGATE_SPAWN_H
#define RINGGATE_SPAWN_H

#include <linux/types.h>
#include <ringgate/assert.h>
#include <ringgate/desc.h>

#define RGATE_SPAWN_MAGIC	0x4e505352	/* "RSPN" */
#define RGATE_SPAWN_VERSION	3	/* of messages */
#define RGATE_SPAWN_RECORD_VERSION 1
#define RGATE_SPAWN_RECORD_MAX	(1U << 20)	/* bytes of a record with its strings */
#define RGATE_SPAWN_ARGS_MAX	131072U		/* strings in it: of a command */
#define RGATE_SPAWN_ENV_MAX	4096U		/* of the environment, set or unset */
#define RGATE_SPAWN_LISTED_MAX	65536U		/* processes of a node that are listed */
#define RGATE_SPAWN_TAIL_MAX	(1U << 20)	/* bytes kept of an output at most */
#define RGATE_SPAWN_RING_MIN	4096U		/* bytes of a buffer for a stream */
#define RGATE_SPAWN_RING_MAX	(64U << 20)

/* Where strings lie in the record, from its beginning */
struct rgate_spawn_area {
	__le32	offset;
	__le32	length;		/* with the NUL of each string */
	__le32	count;		/* strings, one behind the other */
};

enum rgate_spawn_env {
	RGATE_SPAWN_ENV_MERGE	= 0,	/* that of a login, with these set, those unset */
	RGATE_SPAWN_ENV_REPLACE	= 1,	/* these and nothing else */
};

enum rgate_spawn_stdin {
	RGATE_SPAWN_IN_NONE	= 0,	/* /dev/null */
	RGATE_SPAWN_IN_STREAM	= 1,	/* what the client writes */
	RGATE_SPAWN_IN_DATA	= 2,	/* bytes in the record */
};

enum rgate_spawn_output {
	RGATE_SPAWN_OUT_NONE	= 0,	/* /dev/null */
	RGATE_SPAWN_OUT_STREAM	= 1,	/* all of it; a slow reader slows the program */
	RGATE_SPAWN_OUT_TAIL	= 2,	/* the last tail_bytes, at the end */
	RGATE_SPAWN_OUT_STDOUT	= 3,	/* stderr only: into the same as stdout */
};

enum rgate_spawn_flags {
	RGATE_SPAWN_KEEP	= 1U << 0,	/* goes on when the client dies */
	RGATE_SPAWN_LEAVE	= 1U << 1,	/* what it left behind lives on */
};

#define RGATE_SPAWN_UMASK_DEFAULT	0xffffffffU

/* The record's head; 0 in a limit: none. Strings follow */
struct rgate_spawn_record {
	__le32	magic;
	__le16	version;
	__le16	header;			/* bytes of this head */
	__le32	length;			/* of all */
	__le32	flags;			/* enum rgate_spawn_flags */
	struct rgate_spawn_area exe;	/* one string */
	struct rgate_spawn_area cwd;	/* one, or none: the user's home */
	struct rgate_spawn_area argv;
	struct rgate_spawn_area env;	/* NAME=VALUE */
	struct rgate_spawn_area unset;	/* NAME; with RGATE_SPAWN_ENV_MERGE */
	struct rgate_spawn_area input;	/* RGATE_SPAWN_IN_DATA; count is 0 */
	__u8	env_mode;
	__u8	stdin_mode;
	__u8	stdout_mode;
	__u8	stderr_mode;
	__le32	tail_bytes;		/* RGATE_SPAWN_OUT_TAIL */
	__le64	wall_ms;		/* from its start on */
	__le64	memory;			/* bytes, of all its processes where cgroups are there */
	__le32	cpu_s;			/* of one process */
	__le32	processes;
	__le32	files;			/* descriptors */
	__le32	nice;			/* -20 to 19, as two's complement */
	__le32	umask;			/* or RGATE_SPAWN_UMASK_DEFAULT */
	__le32	grace_ms;		/* between SIGTERM and SIGKILL; 0: 2000 */
	__le64	reserved[2];		/* 0 */
};

RGATE_AT(struct rgate_spawn_record, exe, 16);
RGATE_AT(struct rgate_spawn_record, env_mode, 88);
RGATE_AT(struct rgate_spawn_record, wall_ms, 96);
RGATE_AT(struct rgate_spawn_record, cpu_s, 112);
RGATE_ASSERT(sizeof(struct rgate_spawn_record) == 152);

enum rgate_spawn_state {
	RGATE_SPAWN_PENDING	= 1,	/* read and accepted; waits its turn */
	RGATE_SPAWN_RUNNING	= 2,
	RGATE_SPAWN_COMPLETE	= 3,	/* ended, and all its output is there */
	RGATE_SPAWN_ERROR	= 4,	/* it never ran, or nobody knows what became of it */
};

/* How far a request came that ended in an error */
enum rgate_spawn_stage {
	RGATE_SPAWN_AT_RUN	= 0,	/* it ran: exit code or signal count */
	RGATE_SPAWN_AT_REQUEST	= 1,	/* malformed, or refused by the node's policy */
	RGATE_SPAWN_AT_SETUP	= 2,	/* user, directory, limits, descriptors */
	RGATE_SPAWN_AT_EXEC	= 3,	/* execve(2) */
	RGATE_SPAWN_AT_LOST	= 4,	/* the node that ran it, or its spawner, is gone */
};

enum rgate_spawn_result_flags {
	RGATE_SPAWN_TIMED_OUT	= 1U << 0,	/* the wall time was over */
	RGATE_SPAWN_KILLED_OOM	= 1U << 1,	/* its memory limit was hit */
	RGATE_SPAWN_LEFTOVERS	= 1U << 2,	/* processes that it left were killed */
	RGATE_SPAWN_CUT		= 1U << 3,	/* somebody else holds its output: not waited for */
	RGATE_SPAWN_NO_CGROUP	= 1U << 4,	/* limits are for each process, not for all */
};

enum rgate_spawn_ended {
	RGATE_SPAWN_OUT_ENDED	= 1U << 0,
	RGATE_SPAWN_ERR_ENDED	= 1U << 1,
	RGATE_SPAWN_IN_CLOSED	= 1U << 2,	/* nobody reads its stdin any more */
};

#define RGATE_SPAWN_REASON	96

/*
 * In the client's memory, written by the serving node: everything but @state first, and
 * then @state by a write of its own. Who polls @state (a GPU) reads the rest after it.
 */
struct rgate_spawn_status {
	__le64	state;		/* enum rgate_spawn_state; version of the status << 8 */
	__le64	id;
	__le32	error;		/* errno; 0 */
	__le32	stage;		/* enum rgate_spawn_stage */
	__le32	exit_code;
	__le32	signal;		/* that ended it; 0 */
	__le32	flags;		/* enum rgate_spawn_result_flags */
	__le32	pid;
	__le32	ended;		/* enum rgate_spawn_ended */
	__le32	signals;	/* number of the last signal that was sent on */
	__le64	produced[2];	/* bytes of stdout, stderr that are in the client's memory */
	__le64	dropped[2];	/* RGATE_SPAWN_OUT_TAIL: bytes before these */
	__le64	taken;		/* bytes of stdin that were read from the client */
	__le64	queued_ns;	/* CLOCK_REALTIME of the serving node */
	__le64	started_ns;
	__le64	exited_ns;
	__le64	utime_us;
	__le64	stime_us;
	__le64	maxrss;		/* bytes, of its largest process */
	__le64	inblock;	/* 512 bytes each */
	__le64	oublock;
	__le64	minflt;
	__le64	majflt;
	__u8	reason[RGATE_SPAWN_REASON]; /* in words, with a NUL; empty */
};

RGATE_AT(struct rgate_spawn_status, produced, 48);
RGATE_AT(struct rgate_spawn_status, reason, 168);
RGATE_ASSERT(sizeof(struct rgate_spawn_status) == 264);

/*
 * First word of each message; its first byte is the number of the service on a hub, whose
 * topmost bit says which side it is for
 */
#define RGATE_SPAWN_SERVICE	0x50535202	/* 2, "RSP"; to the node that runs */
#define RGATE_SPAWN_ASKER	0x50535282	/* likewise; to the node that asked */

enum rgate_spawn_msg_type {
	/* to the node that runs */
	RGATE_SPAWN_START	= 1,	/* struct rgate_spawn_start */
	RGATE_SPAWN_ATTACH	= 2,	/* struct rgate_spawn_start, without a record */
	RGATE_SPAWN_CONTROL	= 3,	/* struct rgate_spawn_control */
	RGATE_SPAWN_DETACH	= 4,	/* struct rgate_spawn_msg: leave the client's memory */
	RGATE_SPAWN_RELEASE	= 5,	/* struct rgate_spawn_msg: forget it, dead or alive */
	RGATE_SPAWN_LIST	= 6,	/* struct rgate_spawn_ask */
	RGATE_SPAWN_KILL	= 7,	/* struct rgate_spawn_ask */
	/* to the node that asked */
	RGATE_SPAWN_UPDATE	= 64,	/* struct rgate_spawn_msg: look at the status */
	/* The client's memory is not used any more; with an error: nor was it ever */
	RGATE_SPAWN_GONE	= 65,	/* struct rgate_spawn_answer */
	RGATE_SPAWN_LISTED	= 66,	/* struct rgate_spawn_answer */
	RGATE_SPAWN_DONE	= 67,	/* struct rgate_spawn_answer: of RGATE_SPAWN_KILL */
};

/*
 * Whom a node asks for: the uid of one of its users, and 1; RGATE_SPAWN_NODE: itself. What one of
 * its users has started is listed, signalled and attached to for that user, or for the node.
 * It is what the node says: between its users it decides itself.
 */
#define RGATE_SPAWN_NODE	0U

struct rgate_spawn_msg {
	__le32	service;	/* RGATE_SPAWN_SERVICE or RGATE_SPAWN_ASKER */
	__u8	version;	/* RGATE_SPAWN_VERSION */
	__u8	type;
	__le16	reserved;	/* 0 */
	__le64	cookie;		/* the client's name for the request */
	__le64	id;		/* the serving node's; 0: not known yet */
};

/*
 * Memory of the client: what the serving node writes (status at its beginning, the rings of
 * stdout and stderr) and what it reads (record, the ring of stdin), which nobody else should be
 * able to write. A stream's byte number n is at n % size of its ring.
 */
struct rgate_spawn_start {
	struct rgate_spawn_msg h;
	struct rgate_desc memory;	/* to be written */
	struct rgate_desc lent;		/* to be read */
	__le32	record;		/* offset in what is lent; a multiple of 8 */
	__le32	record_len;
	__le32	ring[3];	/* offsets of stdin (lent), stdout, stderr */
	__le32	ring_len[3];	/* powers of two; 0: no such stream */
	__le64	consumed[2];	/* RGATE_SPAWN_ATTACH: bytes of stdout, stderr read so far */
	__le64	incarnation;	/* of the client, with the cookie: asked again, run once */
	__le32	owner;		/* a user of the client's, or RGATE_SPAWN_NODE */
	__le32	reserved;	/* 0 */
};

enum rgate_spawn_scope {
	RGATE_SPAWN_TO_GROUP	= 0,	/* its process group */
	RGATE_SPAWN_TO_TREE	= 1,	/* all that came of it */
	RGATE_SPAWN_TO_LEADER	= 2,	/* the process itself */
};

struct rgate_spawn_control {
	struct rgate_spawn_msg h;
	__le64	consumed[2];	/* bytes of stdout, stderr that were read */
	__le64	given;		/* bytes of stdin that are in the ring, since the beginning */
	__le32	given_all;	/* 1: there will be no more */
	__le32	signals;	/* number of the signal below; 0: none */
	__le32	signal;
	__le32	scope;		/* enum rgate_spawn_scope */
};

struct rgate_spawn_ask {
	struct rgate_spawn_msg h;	/* id: of the process, or of the last one listed */
	struct rgate_desc memory;	/* RGATE_SPAWN_LIST: for entries */
	__le32	signal;			/* RGATE_SPAWN_KILL */
	__le32	scope;
	__le32	owner;			/* as in struct rgate_spawn_start */
	__le32	reserved;		/* 0 */
};

struct rgate_spawn_answer {
	struct rgate_spawn_msg h;
	__le32	error;			/* errno; 0 */
	__le32	count;			/* entries that were written */
	__le32	total;			/* of those there are behind the one named */
	__le32	reserved;
	__u8	reason[RGATE_SPAWN_REASON];
};

#define RGATE_SPAWN_ENTRY_COMMAND	128

struct rgate_spawn_entry {
	__le64	id;
	__le32	state;			/* enum rgate_spawn_state */
	__le32	node;			/* that asked */
	__le32	pid;
	__le32	attached;
	__le64	started_ns;		/* CLOCK_REALTIME; 0 */
	__le32	owner;			/* of the node that asked, or RGATE_SPAWN_NODE */
	__le32	reserved;
	__u8	user[32];
	__u8	command[RGATE_SPAWN_ENTRY_COMMAND]; /* cut where it is longer */
};

enum rgate_spawn_node_flags {
	RGATE_SPAWN_NODE_SELF	= 1U << 0,	/* whose daemon was asked */
	RGATE_SPAWN_NODE_UP	= 1U << 1,	/* there is a connection */
	RGATE_SPAWN_NODE_GATEWAY = 1U << 2,
};

/* What a request RGATE_REQ_SPAWN_NODES writes */
struct rgate_spawn_node {
	__le32	node;
	__le32	flags;			/* enum rgate_spawn_node_flags */
	__u8	name[32];		/* with a NUL */
};

RGATE_ASSERT(sizeof(struct rgate_spawn_node) == 40);
RGATE_ASSERT(sizeof(struct rgate_spawn_msg) == 24);
RGATE_AT(struct rgate_spawn_start, record, 88);
RGATE_AT(struct rgate_spawn_start, consumed, 120);
RGATE_ASSERT(sizeof(struct rgate_spawn_start) == 152);
RGATE_ASSERT(sizeof(struct rgate_spawn_control) == 64);
RGATE_ASSERT(sizeof(struct rgate_spawn_ask) == 72);
RGATE_ASSERT(sizeof(struct rgate_spawn_answer) == 136);
RGATE_ASSERT(sizeof(struct rgate_spawn_entry) == 200);

#endif
