/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * What locks and barriers have in common: where the one of that name is.
 *
 * Each has a session of its own; where programs do other things with theirs, or want to wait
 * for several at once, they use the requests (<ringgate/sync.h>) themselves.
 */
#ifndef RINGGATE_RGATE_SYNC_H
#define RINGGATE_RGATE_SYNC_H

#include <ringgate/rgate.h>
#include <ringgate/sync.h>

#ifdef __cplusplus
extern "C" {
#endif

enum rgate_sync_flags {
	RGATE_SYNC_AT = 1U << 0,	/* its home is @home; else this node */
	RGATE_SYNC_OF = 1U << 1,	/* it is user @owner's; else the own one */
	RGATE_SYNC_EXISTS = 1U << 2,	/* it has to be there */
	RGATE_SYNC_ANYBODY = 1U << 3,	/* if it is made: other users may open it, too */
};

struct rgate_sync_opts {
	size_t sz;
	const char *path;	/* the daemon's socket; NULL: RGATE_SESSION_SOCKET */
	uint32_t where;		/* enum rgate_session_where */
	uint32_t flags;		/* RGATE_SYNC_AT, _OF, _EXISTS, _ANYBODY */
	uint32_t home;
	uint32_t owner;		/* uid at the home */
	uint32_t timeout_ms;	/* for the home to answer; 0: 5000 */
	uint32_t reserved;
};

#ifdef __cplusplus
}
#endif
#endif
