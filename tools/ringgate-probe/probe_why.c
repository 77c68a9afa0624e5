// SPDX-License-Identifier: MIT OR GPL-2.0
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <ringgate/rgate_mem.h>

#include "probe_why.h"
#include "util.h"

static const char *of_transfer(const struct probe_cell *c)
{
	switch (c->err) {
	case -EBADMSG:
		return "other bytes arrived than were sent: do not use this memory with "
		       "this device, and please report it";
	case -ETIMEDOUT:
		return "no answer: the device cannot reach itself; is the address of its "
		       "network device there, and up?";
	case -EREMOTEIO:
	case -EPERM:
		return "the device refused an access that was registered";
	default:
		return rgate_strerror("rgate_mem_", c->err);
	}
}

static const char *of_view(const struct probe_type *t, const struct probe_cell *c)
{
	if (c->err == -EBADMSG)
		return "not the same bytes: what was written on one side did not come "
		       "out on the other; please report it";
	if (c->err == -EFAULT && t->refused)
		return t->refused;
	return strerrordesc_np(-c->err);
}

static const char *of_gpu(const struct probe_type *t, const struct probe_cell *c)
{
	if (c->err == -EINVAL || c->err == -EOPNOTSUPP || c->err == -EPERM)
		return t->refused ? t->refused :
		       "the driver cannot map this kind of memory for the GPU: use memory "
		       "of one that is ok here, or copy";
	if (c->err == -ENOMEM)
		return "the driver could not pin it: raise `ulimit -l`, or free memory";
	return of_view(t, c);
}

static const char *of_access(const struct probe_type *t, const struct probe_env *env,
			     enum probe_col col, const struct probe_cell *c)
{
	if (c->err == -EBADMSG)
		return "it registers, but other bytes arrived than were sent: do not use "
		       "this with this device";
	if (c->err == -EFAULT && t->refused)
		return t->refused;
	if (c->err == -ENOBUFS)
		return "RLIMIT_MEMLOCK is too small for it: `ulimit -l unlimited`, or "
		       "CAP_IPC_LOCK; see `ringgate doctor`";
	if (c->err == -EOPNOTSUPP && col == COL_ODP)
		return "device or driver cannot do this on demand: pin the memory instead";
	if (c->err == -EOPNOTSUPP && strstr(t->name, "dmabuf"))
		return !strcmp(env->device.driver, "rdma_rxe") ?
		       "Soft-RoCE registers no dma-bufs: register the memory the dma-buf "
		       "is made of" :
		       "driver or exporter cannot do dma-bufs: register the memory the "
		       "dma-buf is made of, or copy";
	return rgate_strerror("rgate_mem_", c->err);
}

const char *probe_why(const struct probe_type *t, const struct probe_env *env,
		      enum probe_col col, const struct probe_cell *c)
{
	switch (col) {
	case COL_TRANSFER:
		return of_transfer(c);
	case COL_GPU:
		return of_gpu(t, c);
	case COL_PIN:
	case COL_COPY:
	case COL_CPU:
		return of_view(t, c);
	default:
		return of_access(t, env, col, c);
	}
}

void probe_why_ended(const struct probe_row *row, char *buf, size_t len)
{
	const char *doing = row->doing ? row->doing : "starting";

	*buf = '\0';
	switch (row->end) {
	case END_SIGNAL:
		snprintf(buf, len, "SIG%s while %s", sigabbrev_np(row->end_value) ?: "?",
			 doing);
		break;
	case END_TIMEOUT:
		snprintf(buf, len, "no end of %s", doing);
		break;
	case END_STUCK:
		snprintf(buf, len, "stuck in the kernel while %s", doing);
		break;
	case END_EXIT:
		snprintf(buf, len, "exit(%d) while %s", row->end_value, doing);
		break;
	case END_STOPPED:
		snprintf(buf, len, "interrupted while %s", doing);
		break;
	case END_DONE:
		break;
	}
}
