// SPDX-License-Identifier: MIT OR GPL-2.0
#include "other.h"

#include <string.h>

struct other o;

void other_init(uint32_t service)
{
	memset(&o, 0, sizeof(o));
	hub_init(HUB, SELF, service);
	hub_connect(HUB, OTHER, PEER);
	o.may = true;
}

void other_comes_up_unseen(uint64_t incarnation)
{
	peer_comes_up(PEER, incarnation);
}

void other_comes_up(uint64_t incarnation)
{
	other_comes_up_unseen(incarnation);
	peer_is_seen(PEER);
}

void other_goes_down(void)
{
	peer_goes_down(PEER);
	peer_is_seen(PEER);
}

bool other_heard(struct msg *m)
{
	return msgs_take(&o.peer.said, m);
}
