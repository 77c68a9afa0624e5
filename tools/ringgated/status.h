/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/* What the daemon knows, as JSON or as text */
#ifndef STATUS_H
#define STATUS_H

#include "ringgated.h"

void status_json(struct daemon *d, FILE *f);
void status_text(struct daemon *d, FILE *f);

/* "down", "up", ...: a peer's state in a word */
const char *status_state(const struct daemon *d, const struct rgate_peer_info *info);

#endif
