// SPDX-License-Identifier: MIT OR GPL-2.0
/* Asked by who is a node itself: the library's own functions. */
#include "spawn_node.h"

static int way_start(struct spawn_target *t, const struct rgate_spawn_request *req, void **job)
{
	struct rgate_spawn_job *made = NULL;
	const int err = rgate_spawn_start(t->spawn, req, &made);

	*job = made;
	return err;
}

static int way_attach(struct spawn_target *t, uint64_t id, uint32_t ring_bytes, void **job)
{
	struct rgate_spawn_job *made = NULL;
	const int err = rgate_spawn_attach(t->spawn, id, ring_bytes, &made);

	*job = made;
	return err;
}

static ssize_t way_read(void *job, int stream, void *buf, size_t len)
{
	return rgate_spawn_job_read(job, stream, buf, len, 0);
}

static ssize_t way_write(void *job, const void *buf, size_t len)
{
	return rgate_spawn_job_write(job, buf, len, 0);
}

static int way_close_stdin(void *job)
{
	return rgate_spawn_job_close_stdin(job);
}

static int way_wait(void *job, struct rgate_spawn_result *r, int timeout_ms)
{
	return rgate_spawn_job_wait(job, r, timeout_ms);
}

static int way_result(void *job, struct rgate_spawn_result *r)
{
	return rgate_spawn_job_result(job, r);
}

static int way_signal(void *job, int signal, enum rgate_spawn_scope scope)
{
	return rgate_spawn_job_kill(job, signal, scope);
}

static int way_detach(void *job, int timeout_ms)
{
	return rgate_spawn_job_detach(job, timeout_ms);
}

static void way_close(void *job)
{
	rgate_spawn_job_close(job);
}

static int way_list(struct spawn_target *t,
		    int (*fn)(void *ctx, const struct rgate_spawn_info *info), void *ctx,
		    int timeout_ms)
{
	return rgate_spawn_list(t->spawn, fn, ctx, timeout_ms);
}

static int way_kill(struct spawn_target *t, uint64_t id, int signal, enum rgate_spawn_scope scope,
		    int timeout_ms)
{
	return rgate_spawn_kill(t->spawn, id, signal, scope, timeout_ms);
}

static int way_fd(struct spawn_target *t)
{
	return rgate_spawn_fd(t->spawn);
}

static void way_process(struct spawn_target *t)
{
	(void)rgate_spawn_process(t->spawn);
}

static bool way_next(struct spawn_target *t)
{
	struct rgate_spawn_job *job;

	return !rgate_spawn_next(t->spawn, &job, 0);
}

const struct spawn_way spawn_way_node = {
	.start = way_start, .attach = way_attach, .read = way_read, .write = way_write,
	.close_stdin = way_close_stdin, .wait = way_wait, .result = way_result,
	.signal = way_signal, .detach = way_detach, .close = way_close, .list = way_list,
	.kill = way_kill, .fd = way_fd, .process = way_process, .next = way_next,
};
