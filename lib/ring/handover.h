/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/* A ring handle as one message with descriptors over an AF_UNIX socket */
#ifndef RGATE_LIB_HANDOVER_H
#define RGATE_LIB_HANDOVER_H

#include <stdint.h>

#define RGATE_HANDOVER_MAGIC	0x48474752U	/* "RGGH" */
#define RGATE_HANDOVER_VERSION	1
#define RGATE_HANDOVER_FDS	3

enum rgate_handover_kind {
	RGATE_HANDOVER_MODULE = 1,	/* the device file */
	RGATE_HANDOVER_MEMFD = 2,	/* producer+slots, consumer area, wake socket */
	RGATE_HANDOVER_MEMORY = 3,	/* producer+slots, consumer area: after a resize */
	RGATE_HANDOVER_WAKE = 4,	/* nothing: wakes the receiver */
	RGATE_HANDOVER_LIFE = 5,	/* life file, and what is polled instead of the wake
					 * socket, if it has a bell: first on that socket */
};

struct rgate_handover {
	uint32_t magic;
	uint16_t version;
	uint8_t kind;
	uint8_t nfds;
	uint32_t handle;
	uint32_t reserved;
};

/* Sends; never raises SIGPIPE. 0 or -errno. @flags: of sendmsg(2) */
int rgate_handover_send(int sock, uint8_t kind, uint32_t handle, const int *fds,
			unsigned int nfds, int flags);

/*
 * Receives one message. On success exactly msg->nfds entries of @fds are open,
 * close-on-exec and the caller's. -EPROTO: something else came (closed again);
 * -EPIPE: the other end is closed.
 */
int rgate_handover_recv(int sock, struct rgate_handover *msg,
			int fds[RGATE_HANDOVER_FDS], int flags);

#endif
