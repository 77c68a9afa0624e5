/* SPDX-License-Identifier: MIT OR GPL-2.0 */
#ifndef RGATE_SPAWN_CUT_H
#define RGATE_SPAWN_CUT_H

#include <ringgate/rgate_peer.h>

/*
 * Ends the connection of @peer, which stays open and makes another one: the other side
 * does not do its part, and what was lent to it must be ours again.
 */
void rgate_spawn_cut(struct rgate_peer *peer);

#endif
