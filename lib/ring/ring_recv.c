// SPDX-License-Identifier: MIT OR GPL-2.0
#include <errno.h>
#include <unistd.h>

#include <ringgate/rgate_ring.h>

#include "handover.h"
#include "ring_memfd.h"
#include "ring_module.h"

int rgate_ring_recv(struct rgate_ring **ring, int sock)
{
	int fds[RGATE_HANDOVER_FDS], err;
	struct rgate_handover msg;

	err = rgate_handover_recv(sock, &msg, fds, 0);
	if (err)
		return err;
	switch (msg.kind) {
	case RGATE_HANDOVER_MODULE:
		err = rgate_module_adopt(ring, fds[0], NULL);
		/* some other file was sent */
		return err == -ENOTTY || err == -EBADF ? -EPROTO : err;
	case RGATE_HANDOVER_MEMFD:
		return rgate_memfd_adopt(ring, fds, msg.handle);
	default:
		while (msg.nfds)
			close(fds[--msg.nfds]);
		return -EPROTO;
	}
}
