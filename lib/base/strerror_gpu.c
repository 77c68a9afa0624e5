// SPDX-License-Identifier: MIT OR GPL-2.0
/* Errors of libringgate-gpu: rgate_gpu_error() has the details. */
#include <errno.h>
#include <stddef.h>

#include "strerror.h"

const struct rgate_error_row rgate_errors_gpu[] = {
	{ "rgate_gpu_", ENODEV, false, "no driver of a GPU, or no such one: `nvidia-smi -L` "
	  "lists them" },
	{ "rgate_gpu_", EIO, false, "the GPU or its driver failed: rgate_gpu_error() says how" },
	{ "rgate_gpu_", EBUSY, false, "a kernel runs, or has the memory still: rgate_gpu_stop() "
	  "first" },
	{ "rgate_gpu_", ENOSPC, false, "as many are bound as can be: rgate_gpu_unbind() one "
	  "first" },
	{ "rgate_gpu_", EMFILE, false, "too many open files: `ulimit -n 4096`, and once more" },
	{ "rgate_gpu_", ETIMEDOUT, false, "the kernel still runs: call it again" },
	{ "rgate_gpu_", EOPNOTSUPP, false, "this GPU or ring cannot do that: rgate_gpu_error() "
	  "says why" },
	{ "rgate_gpu_bind_output", EBUSY, false, "the ring has a producer, or a kernel runs: "
	  "rgate_gpu_stop() first" },
	{ "rgate_gpu_bind_output", EEXIST, false, "there is an output ring already" },
	{ "rgate_gpu_bind_output", EOPNOTSUPP, false, "an output ring is a memfd ring of this "
	  "process that does not overwrite" },
	{ "rgate_gpu_start", EINVAL, false, "its options, no ring bound, or a kernel of another "
	  "kind or version: rgate_gpu_error() says which" },
	{ "rgate_gpu_start", ENODATA, false, "the function answers, and there is no output ring: "
	  "rgate_gpu_bind_output() first" },
	{ "rgate_gpu_start", E2BIG, false, "it does not fit on the device at once: fewer blocks, "
	  "or threads of one" },
	{ "rgate_gpu_drain", EPIPE, false, "no kernel runs, and something is left: "
	  "rgate_gpu_start()" },
	{ "rgate_gpu_ring_view", ESTALE, false, "the ring was resized, and its new memory did "
	  "not reach this process: open it anew" },
	{ "rgate_responder_", ENODEV, false, "no such device in this network namespace: `ip "
	  "link` lists them" },
	{ "rgate_responder_", EPERM, false, "frames need CAP_NET_RAW: run it with sudo" },
	{ .call = NULL },
};
