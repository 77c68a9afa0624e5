/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/* All rings and attachments of this network namespace at one time. */
#ifndef SNAPSHOT_H
#define SNAPSHOT_H

#include <ringgate/rgate_ctl.h>

#include "json.h"

struct snapshot {
	struct rgate_ring_info *rings;	/* ordered by number */
	size_t nrings;
	struct rgate_att_info *atts;
	size_t natts;
};

/* 0 or -errno; free it with snapshot_free() either way */
int snapshot_get(struct snapshot *s, struct rgate_ctl *ctl);
void snapshot_free(struct snapshot *s);

const struct rgate_ring_info *snapshot_ring(const struct snapshot *s,
					    uint32_t ring_id);

/*
 * snapshot_find - the ring that an argument means: its number, or its name
 * NULL: says that there is none, or that several have the name
 */
const struct rgate_ring_info *snapshot_find(const struct snapshot *s,
					    const char *text);

/* Is the ring part of the attachment? */
bool att_has_ring(const struct rgate_att_info *a, uint32_t ring_id);

/* As members of an object */
void json_ring(struct json *j, const struct rgate_ring_info *r);
void json_att(struct json *j, const struct rgate_att_info *a);

/*
 * ctl_open - talk to the module
 * Says what is wrong if it can't; returns an exit code, EXIT_OK with @ctl set.
 */
int ctl_open(struct rgate_ctl **ctl);

#endif
