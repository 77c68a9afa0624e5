/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/* Something done in a child, so that what kills or hangs it is an outcome. */
#ifndef PROBE_CHILD_H
#define PROBE_CHILD_H

#include "probe.h"

/*
 * probe_child - @fn(@arg) in a child of at most @seconds
 * What it has to say goes to shared memory. @value: signal or exit status.
 * 0, or -errno: no child
 */
int probe_child(void (*fn)(void *arg), void *arg, unsigned int seconds,
		enum probe_end *end, int *value);

/* Memory that is shared with children, zeroed. NULL: none */
void *probe_shared(size_t len);
void probe_unshare(void *mem, size_t len);

#endif
