/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/* The gateway's part of the daemon, and its rules as control.c changes them */
#ifndef GATEWAY_H
#define GATEWAY_H

#include "module.h"

/* gateway.c; 0, or -errno with words in @why */
int gateway_steer_add(struct daemon *d, const char *before, const char *line, char *why,
		      size_t len);
int gateway_steer_remove(struct daemon *d, const char *name, char *why, size_t len);
/* Can the rules' file be used? */
int rules_check(struct daemon *d);

/* gateway_check.c */
int gateway_check(struct daemon *d);

/* gateway_status.c */
void gateway_json(struct daemon *d, struct json *j);
void gateway_text(struct daemon *d, FILE *f);
void gateway_peer_json(struct daemon *d, struct json *j, uint32_t node);
void gateway_counters(struct daemon *d, FILE *f);
void steer_json(struct daemon *d, FILE *f);
void steer_text(struct daemon *d, FILE *f);

#endif
