/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * Connections that rdma_cm makes, in memory, for one thread: its functions that the library
 * calls. Who connects reaches who listens on the port; the devices are those of mock_verbs.h.
 */
#ifndef MOCK_CM_H
#define MOCK_CM_H

#include <rdma/rdma_cma.h>
#include <stdbool.h>

extern struct mock_cm {
	const char *fail;	/* the function that fails, as long as it is set */
	int fail_errno;
	const char *device;	/* that routes lead over; NULL: none */
	unsigned int channels, ids, events;	/* there now; got and not acknowledged */
	unsigned int disconnects;
	struct sockaddr_storage bound, from;	/* what was listened on, connected from */
	struct rdma_conn_param asked, accepted;	/* of the last connection; without the data */
} mock_cm;

/* Nothing is there, and routes lead over mock0 */
void mock_cm_setup(void);
/* 0, or -1: something is left */
int mock_cm_left(void);
/* Puts an event in: of @id, with @status; @data of @len bytes as private data */
void mock_cm_event(struct rdma_cm_id *id, enum rdma_cm_event_type type, int status,
		   const void *data, size_t len);

#endif
