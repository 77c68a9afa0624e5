/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/* `ringgate probe`: what its parts share. */
#ifndef PROBE_H
#define PROBE_H

#include <stdbool.h>
#include <stdint.h>

#include <ringgate/rgate_device.h>

#define PROBE_TEXT	256

/* Columns of the table. The first ones need an RDMA device. */
enum probe_col {
	COL_LOCAL,		/* registered for the device itself */
	COL_READ,		/* ... remote read */
	COL_WRITE,		/* ... remote write */
	COL_ATOMIC,
	COL_RELAXED,
	COL_READONLY,		/* the device writes nothing */
	COL_ODP,		/* on demand, not pinned */
	COL_TRANSFER,		/* RDMA write, read and atomic, contents compared */
	COL_PIN,		/* the kernel through pinned pages */
	COL_COPY,		/* the kernel through copies to and from user space */
	COL_CPU,
	COL_GPU,
	COLS,
	COLS_RDMA = COL_TRANSFER + 1,
};

enum probe_state {
	PROBE_NA,		/* not applicable, or not tried */
	PROBE_OK,
	PROBE_FAILED,
};

struct probe_cell {
	enum probe_state state;
	int err;		/* -errno; -EBADMSG: other bytes than were written */
	char why[PROBE_TEXT];	/* what library, kernel or driver said */
};

/* How the child that probed a row ended */
enum probe_end {
	END_DONE,
	END_SIGNAL,
	END_TIMEOUT,
	END_STUCK,		/* SIGKILL did not end it either */
	END_EXIT,		/* a library ended the process */
	END_STOPPED,		/* util_stop */
};

/* A row. In memory shared with the child that fills it in. */
struct probe_row {
	int made;		/* 1: memory is there; 0: not tried; -errno */
	int device_err;		/* the RDMA device could not be used */
	uint64_t len;
	uint32_t page;
	char note[PROBE_TEXT];
	const char *doing;	/* what it was at, for the case that it dies */
	struct probe_cell cell[COLS];
	/* by the parent: */
	enum probe_end end;
	int end_value;		/* signal or exit status */
};

/* What there is on this machine; found in a child too */
struct probe_env {
	int device_err;		/* 0: @device is there */
	struct rgate_device_info device;
	char device_why[PROBE_TEXT];
	int gpu_err;
	char gpu[PROBE_TEXT];	/* name */
	char gpu_why[PROBE_TEXT];
	char fs[64];		/* type of the file system of @dir */
};

struct probe_opts {
	const char *device;	/* NULL: the best */
	const char *dir;	/* of the probed files */
	const char *only;	/* memory type; NULL: all */
	bool json;
};

struct probe_limit_opts {
	const char *device;
	uint64_t size;
	uint64_t max;		/* regions; 0: as many as the device takes */
	uint64_t time_ns;
	bool distinct;		/* each region has memory of its own */
	bool json;
};

/* The command: parses argv, returns an exit code. */
int probe_main(int argc, char **argv);

/* Each returns an exit code. */
int probe_table(const struct probe_opts *o);
int probe_list(bool json);
int probe_limit(const struct probe_limit_opts *o);

/* "EFAULT", or "differs" for bytes that differ */
const char *probe_err_name(int err);

/* The last message of the library is kept in @buf, instead of shown */
void probe_catch_log(char buf[PROBE_TEXT]);

/* As fail(), with the words for errors of devices and regions; @why: what the
 * library said, "" if nothing */
int probe_fail(int err, const char *what, const char *why);

#endif
