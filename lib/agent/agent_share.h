/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * What `ringgate run` and an agent that it shares with others say to each other, over a
 * SOCK_SEQPACKET connection of AF_UNIX, which is the member's life. Who connects hears first
 * whether he may ask: who has sent something before might lose the answer of one that closes
 * without having read it. Then he asks to join, and may ask for numbers later. Where the daemon
 * offers an agent it is at AGENT_SHARE_PATH behind the path of the daemon's socket of requests.
 */
#ifndef RGATE_AGENT_SHARE_H
#define RGATE_AGENT_SHARE_H

#include "agent.h"
#include "agent_wire.h"

#define AGENT_SHARE_PATH	".agent"
#define AGENT_SHARE_DIRS	".agents"	/* likewise: directories of agents, by user */
#define AGENT_GROUP_MAX		32U		/* bytes of a group's name, and a byte of 0 */
#define AGENT_LINE_MAX		256U

enum agent_share_what {
	AGENT_SHARE_JOIN = 1,	/* the answer's text: what programs have in AGENT_ENV */
	AGENT_SHARE_INFO = 2,	/* the answer's info: agent_member_info()'s */
	AGENT_SHARE_LINE = 3,	/* unasked; text: what is to be said of the member's programs */
	AGENT_SHARE_HELLO = 4,	/* unasked, and first */
};

struct agent_share_ask {
	uint32_t version;		/* AGENT_VERSION */
	uint32_t what;
	char group[AGENT_GROUP_MAX];	/* empty: the user's own one */
};

struct agent_share_answer {
	uint32_t version;
	uint32_t what;
	/*
	 * 0 or -errno: -EPERM: the agent has groups of the system that who asks has not;
	 * -EOPNOTSUPP: there is none for this user; -EAGAIN: in a moment
	 */
	int32_t result;
	uint32_t reserved;
	char text[AGENT_LINE_MAX];
	struct agent_info info;
};

#endif
