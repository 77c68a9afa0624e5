/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * What the daemon is made of. The functions of a kind are called in the order of the table in
 * modules.c, those that undo in the reverse one; each may be NULL. What does not concern this
 * node's role, or was not asked for, returns 0 and does nothing. Whoever returns -errno has
 * said why, and undone what it did.
 */
#ifndef MODULE_H
#define MODULE_H

#include "json.h"
#include "ringgated.h"

struct module {
	/* What the start would refuse; before anything is changed */
	int (*check)(struct daemon *d);
	/* Before there are threads and limits are lifted: may fork */
	int (*prepare)(struct daemon *d);
	/* Of what was prepared, and not started or stopped since */
	void (*discard)(struct daemon *d);
	/* What only who started the daemon may open */
	int (*open)(struct daemon *d);
	void (*close)(struct daemon *d);
	/* Node and hub are there; nothing is received yet */
	int (*start)(struct daemon *d);
	void (*stop)(struct daemon *d);
	/* Reads its files again; what holds stays if they are malformed. 1: read; 0: has none */
	int (*reload)(struct daemon *d);
	const char *files;	/* what it reads again, in words */

	void (*status_json)(struct daemon *d, struct json *j);
	void (*status_text)(struct daemon *d, FILE *f);
	/* Of a peer, within its object */
	void (*peer_json)(struct daemon *d, struct json *j, uint32_t node);
	/* Lines "NAME STATE FRAMES BYTES LOST DROPPED" of each node, or of each ring here */
	void (*counters)(struct daemon *d, FILE *f);
};

extern const struct module peers_module, gateway_module, inlet_module, spawn_module,
	requests_module, agents_module;

/* All of them, or, where one fails, none */
int modules_check(struct daemon *d);
int modules_prepare(struct daemon *d);
int modules_open(struct daemon *d);
int modules_start(struct daemon *d);
void modules_stop(struct daemon *d);
void modules_close(struct daemon *d);
void modules_discard(struct daemon *d);
/* Says what was read */
void modules_reload(struct daemon *d);

void modules_status_json(struct daemon *d, struct json *j);
void modules_status_text(struct daemon *d, FILE *f);
void modules_peer_json(struct daemon *d, struct json *j, uint32_t node);
void modules_counters(struct daemon *d, FILE *f);

#endif
