/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * A session with a peer: over one connection after the other, for as long as neither of the
 * two processes is another one, and no pause between two connections is longer than a
 * grace time. What a service keeps for a peer lives as long as the session; what was posted
 * to a connection ends with that.
 *
 * No lock: whoever owns it calls its functions one at a time.
 */
#ifndef RGATE_CLUSTER_SESSION_H
#define RGATE_CLUSTER_SESSION_H

#include <ringgate/rgate_peer.h>

/* As its owner was told, whatever has happened since */
struct session {
	struct rgate_peer *peer;
	uint64_t grace_ns;
	uint64_t down_ns;	/* CLOCK_MONOTONIC, since when; 0: up, or LOST was told */
	uint64_t incarnation;	/* of the peer's process; 0: it was never seen */
	uint32_t epoch;		/* of the connection, or of the last one; 0: none so far */
	bool up;
};

enum session_news {
	SESSION_SAME,
	SESSION_DOWN,	/* the connection is gone, and transfers over it are over */
	SESSION_LOST,	/* for longer than the grace time; told once */
	SESSION_OTHER,	/* the peer's process is another one: it knows nothing of what the
			 * former was told. UP follows. */
	SESSION_UP,	/* a connection, perhaps not the first; posts carry its epoch, and fail
			 * when it is gone by then */
};

/*
 * @grace_ns: 0: never LOST; @since: waiting for the first connection began then
 * (CLOCK_MONOTONIC); 0: it may take for ever
 */
void session_init(struct session *s, struct rgate_peer *peer, uint64_t grace_ns, uint64_t since);

/*
 * session_look - the next thing that has happened; to be called until it is SESSION_SAME
 * @now: CLOCK_MONOTONIC
 * A connection that went and came back between two looks is told as DOWN, then UP.
 */
enum session_news session_look(struct session *s, uint64_t now);

/* Would session_look() tell of a connection that came or went? */
bool session_changed(const struct session *s);

/* When LOST will be due unless it comes up: ns of CLOCK_MONOTONIC; UINT64_MAX: never */
uint64_t session_due(const struct session *s);

/* After LOST: it is told once more when the grace time has passed again */
void session_wait_again(struct session *s, uint64_t now);

#endif
