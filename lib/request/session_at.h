/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/* Sessions of who has the engine itself, for somebody who cannot have its descriptors. */
#ifndef RGATE_REQUEST_SESSION_AT_H
#define RGATE_REQUEST_SESSION_AT_H

#include <ringgate/rgate_session.h>

#include "engine.h"

/*
 * rgate_session_at - a session at @engine, with the client's side in this process, too
 * @seat: out: the caller's, to be removed by rgate_seat_remove() before or after
 *	rgate_session_close(), which leaves it as it is. If this fails, @opts->over may be called
 *	for a seat that there was.
 * As rgate_seat_add(); -errno of mmap(2). Any thread.
 */
int rgate_session_at(struct rgate_session **session, struct rgate_engine *engine,
		     const struct rgate_seat_opts *opts, struct rgate_seat **seat);

#endif
