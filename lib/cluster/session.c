// SPDX-License-Identifier: MIT OR GPL-2.0
#include "session.h"

void session_init(struct session *s, struct rgate_peer *peer, uint64_t grace_ns, uint64_t since)
{
	*s = (struct session){ .peer = peer, .grace_ns = grace_ns, .down_ns = since };
}

/* Is the connection that was told of gone? @info: out; false also if nothing is known */
static bool gone(const struct session *s, struct rgate_peer_info *info)
{
	*info = (struct rgate_peer_info){ .sz = sizeof(*info) };
	(void)rgate_peer_info(s->peer, info);
	return s->up && (info->state != RGATE_PEER_UP || info->epoch != s->epoch);
}

enum session_news session_look(struct session *s, uint64_t now)
{
	struct rgate_peer_info info;

	if (gone(s, &info)) {
		s->up = false;
		s->down_ns = now;
		return SESSION_DOWN;
	}
	if (s->up)
		return SESSION_SAME;
	if (info.state != RGATE_PEER_UP) {
		if (now < session_due(s))
			return SESSION_SAME;
		s->down_ns = 0;
		return SESSION_LOST;
	}
	if (s->incarnation && s->incarnation != info.incarnation) {
		s->incarnation = 0;
		return SESSION_OTHER;
	}
	s->incarnation = info.incarnation;
	s->epoch = info.epoch;
	s->up = true;
	s->down_ns = 0;
	return SESSION_UP;
}

bool session_changed(const struct session *s)
{
	struct rgate_peer_info info;

	return gone(s, &info) || (!s->up && info.state == RGATE_PEER_UP);
}

uint64_t session_due(const struct session *s)
{
	return s->down_ns && s->grace_ns ? s->down_ns + s->grace_ns : UINT64_MAX;
}

void session_wait_again(struct session *s, uint64_t now)
{
	if (!s->up)
		s->down_ns = now;
}
