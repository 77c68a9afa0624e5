// SPDX-License-Identifier: MIT OR GPL-2.0
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "record.h"
#include "service_priv.h"

/* ---- What may have to wait ---- */

/* Who polls the state's word finds the rest in its place. */
static void give_status(struct rgate_spawn_job *job, struct rgate_req *r)
{
	struct rgate_spawn_status st, *to = rgate_req_mem(r);

	if (!to)
		return;
	client_job_status(job, &st);
	memcpy((char *)to + sizeof(to->state), (char *)&st + sizeof(st.state),
	       sizeof(st) - sizeof(st.state));
	__atomic_store_n(&to->state, st.state, __ATOMIC_RELEASE);
}

static int end_of(const struct rgate_spawn_result *result)
{
	if (result->state != RGATE_SPAWN_ERROR)
		return 0;
	return result->error ? result->error : -EIO;
}

static int try_wait(struct rgate_spawn_job *job, struct rgate_req *r)
{
	struct rgate_spawn_result result = { .sz = sizeof(result) };

	if (rgate_spawn_job_wait(job, &result, 0))
		return RGATE_REQ_LATER;
	give_status(job, r);
	return end_of(&result);
}

static int try_read(struct rgate_spawn_job *job, struct rgate_req *r, int stream)
{
	const ssize_t n = rgate_spawn_job_read(job, stream, rgate_req_mem(r),
					       rgate_req_get(r)->len, 0);

	return n == -EAGAIN ? RGATE_REQ_LATER : (int)n;
}

static int try_write(struct rgate_spawn_job *job, struct rgate_req *r)
{
	const ssize_t n = rgate_spawn_job_write(job, rgate_req_mem(r), rgate_req_get(r)->len, 0);

	return n == -EAGAIN ? RGATE_REQ_LATER : (int)n;
}

static int try_detach(struct rgate_spawn_job *job)
{
	int err;

	return client_job_detach(job, &err) ? err : RGATE_REQ_LATER;
}

/* The result, or RGATE_REQ_LATER: not yet */
static int try(struct task *task, struct rgate_req *r, enum task_kind kind)
{
	switch (kind) {
	case TASK_WAIT:
		return try_wait(task->job, r);
	case TASK_WRITE:
		return try_write(task->job, r);
	case TASK_DETACH:
		return try_detach(task->job);
	default:
		return try_read(task->job, r, kind == TASK_READ_OUT ? 1 : 2);
	}
}

/* The first of its kind is over; the request is not to be touched any more. */
static void end_first(struct waiter **first, int result, uint64_t value)
{
	struct waiter *w = *first;

	*first = w->next;
	rgate_req_set_data(w->r, NULL);
	rgate_req_end(w->r, result, value);
	free(w);
}

/* All waiters, but those of a kind */
static void end_others(struct task *task, enum task_kind but)
{
	unsigned int kind;

	for (kind = 0; kind < TASK_KINDS; kind++)
		while (kind != but && task->waiters[kind])
			end_first(&task->waiters[kind], -ECANCELED, 0);
}

/* Nothing names it any more. */
static void leave_task(struct task *task)
{
	rgate_spawn_job_set_data(task->job, NULL);
	client_job_leave(task->job);
	free(task);
}

void spawn_task_news(struct task *task)
{
	const bool leaves = task->waiters[TASK_DETACH];
	struct waiter **first;
	unsigned int kind;
	int result;

	for (kind = 0; kind < TASK_KINDS; kind++) {
		first = &task->waiters[kind];
		while (*first) {
			result = try(task, (*first)->r, kind);
			if (result == RGATE_REQ_LATER)
				break;
			end_first(first, result, leaves ? rgate_spawn_job_id(task->job) : 0);
		}
	}
	if (leaves && !task->waiters[TASK_DETACH])
		leave_task(task);
}

static int wait_for(struct task *task, struct rgate_req *r, enum task_kind kind)
{
	struct waiter **last, *w = malloc(sizeof(*w));

	if (!w)
		return -ENOMEM;
	*w = (struct waiter){ .r = r, .task = task, .kind = kind };
	rgate_req_set_data(r, w);
	for (last = &task->waiters[kind]; *last; last = &(*last)->next)
		;
	*last = w;
	return RGATE_REQ_LATER;
}

/* At once, unless others wait for the same or there is nothing yet */
static int begin_task(struct rgate_req *r, struct spawn_service *sv, enum task_kind kind)
{
	struct task *task = rgate_req_object(r);
	int result = RGATE_REQ_LATER;

	if (!task)
		return -EBADF;
	pthread_mutex_lock(&sv->lock);
	if (!task->waiters[kind])
		result = try(task, r, kind);
	if (result == RGATE_REQ_LATER)
		result = wait_for(task, r, kind);
	spawn_service_poke(sv, task->node);
	pthread_mutex_unlock(&sv->lock);
	return result;
}

/* Of one that waits; by the time it is asked for it may have ended. */
static int cancel_task(struct rgate_req *r, void *ctx)
{
	struct spawn_service *sv = ctx;
	struct waiter **at, *w;
	struct spawn_node *node;
	struct task *task;
	bool leaves;

	pthread_mutex_lock(&sv->lock);
	w = rgate_req_data(r);
	if (w) {
		task = w->task;
		leaves = w->kind == TASK_DETACH;
		for (at = &task->waiters[w->kind]; *at != w; at = &(*at)->next)
			;
		end_first(at, -ECANCELED, 0);
		/* It is let go without what its stdin has not taken. */
		node = task->node;
		if (leaves)
			leave_task(task);
		spawn_service_poke(sv, node);
	}
	pthread_mutex_unlock(&sv->lock);
	return w ? 0 : -EALREADY;
}

static bool status_fits(const struct rgate_request *q)
{
	return q->len >= sizeof(struct rgate_spawn_status) &&
	       q->off % __alignof__(struct rgate_spawn_status) == 0;
}

static int begin_wait(struct rgate_req *r, void *ctx)
{
	const struct rgate_request *q = rgate_req_get(r);

	return !q->len || status_fits(q) ? begin_task(r, ctx, TASK_WAIT) : -EINVAL;
}

static int begin_read(struct rgate_req *r, void *ctx)
{
	switch (rgate_req_get(r)->a0) {
	case 1:
		return begin_task(r, ctx, TASK_READ_OUT);
	case 2:
		return begin_task(r, ctx, TASK_READ_ERR);
	default:
		return -EINVAL;
	}
}

static int begin_write(struct rgate_req *r, void *ctx)
{
	return begin_task(r, ctx, TASK_WRITE);
}

/* ---- What does not ---- */

static struct rgate_spawn_request request_of(const struct rgate_spawn_parsed *p)
{
	return RGATE_OPTS(rgate_spawn_request,
		.exe = p->exe, .argv = (const char *const *)p->argv, .cwd = p->cwd,
		.env = (const char *const *)p->env, .unset = (const char *const *)p->unset,
		.env_mode = p->env_mode, .stdin_mode = p->stdin_mode,
		.stdout_mode = p->stdout_mode, .stderr_mode = p->stderr_mode,
		.input = p->input_len ? p->input : NULL, .input_len = p->input_len,
		.tail_bytes = p->tail_bytes, .flags = p->flags, .wall_ms = p->wall_ms,
		.memory = p->memory, .cpu_s = p->cpu_s, .processes = p->processes,
		.files = p->files, .nice = p->nice,
		.set_umask = p->umask != RGATE_SPAWN_UMASK_DEFAULT, .umask = p->umask,
		.grace_ms = p->grace_ms);
}

static void close_task(struct spawn_service *sv, struct task *task)
{
	pthread_mutex_lock(&sv->lock);
	end_others(task, TASK_KINDS);
	rgate_spawn_job_set_data(task->job, NULL);
	rgate_spawn_job_close(task->job);
	spawn_service_poke(sv, task->node);
	pthread_mutex_unlock(&sv->lock);
	free(task);
}

/* Of what @parsed says; NULL: attached to the process that the request names */
static int make_job(struct rgate_req *r, struct spawn_service *sv, struct task *task,
		    const struct rgate_spawn_parsed *parsed)
{
	struct rgate_spawn *spawn = task->node->spawn;
	struct rgate_spawn_request req;
	struct spawn_share *share;
	int err;

	err = spawn_share_begin(sv, spawn, rgate_seat_uid(rgate_req_seat(r)), &share);
	if (err)
		return err;
	/* What happened meanwhile is not about this one. */
	(void)rgate_spawn_process(spawn);
	if (parsed) {
		req = request_of(parsed);
		err = client_start(spawn, &req, spawn_owner_of(r), &task->job);
	} else {
		err = client_attach(spawn, rgate_req_get(r)->a1, 0, spawn_owner_of(r),
				    &task->job);
	}
	spawn_share_end(share, err ? NULL : task->job);
	return err;
}

/* And the handle for it, which comes first: nothing is started for whom there is none. */
static int make_task(struct rgate_req *r, struct spawn_service *sv,
		     const struct rgate_spawn_parsed *parsed)
{
	struct task *task = calloc(1, sizeof(*task));
	uint32_t handle;
	int err;

	if (!task)
		return -ENOMEM;
	task->node = &sv->node[rgate_req_get(r)->a0];
	err = rgate_seat_handle(rgate_req_seat(r), RGATE_REQ_SPAWN, task, &handle);
	if (err)
		goto free_task;
	pthread_mutex_lock(&sv->lock);
	err = make_job(r, sv, task, parsed);
	if (!err) {
		rgate_spawn_job_set_data(task->job, task);
		spawn_service_poke(sv, task->node);
	}
	pthread_mutex_unlock(&sv->lock);
	if (err)
		goto release_handle;
	rgate_req_set_value(r, handle);
	return 0;

release_handle:
	(void)rgate_seat_release(rgate_req_seat(r), RGATE_REQ_SPAWN, handle);
free_task:
	free(task);
	return err;
}

static bool is_node(const struct spawn_service *sv, uint64_t node)
{
	return node < RGATE_NODES_MAX && sv->node[node].spawn;
}

static int begin_start(struct rgate_req *r, void *ctx)
{
	const struct rgate_request *q = rgate_req_get(r);
	struct rgate_spawn_parsed parsed;
	struct spawn_service *sv = ctx;
	const char *why;
	void *record;
	int err;

	if (!is_node(sv, q->a0))
		return -ENXIO;
	if (!q->len)
		return -EINVAL;
	if (q->len > RGATE_SPAWN_RECORD_MAX)
		return -E2BIG;
	record = malloc(q->len);
	if (!record)
		return -ENOMEM;
	memcpy(record, rgate_req_mem(r), q->len);
	err = rgate_spawn_decode(record, q->len, &parsed, &why);
	if (err)
		goto free_record;
	err = make_task(r, sv, &parsed);
	rgate_spawn_parsed_free(&parsed);
free_record:
	free(record);
	return err;
}

static int begin_attach(struct rgate_req *r, void *ctx)
{
	const struct rgate_request *q = rgate_req_get(r);

	if (!is_node(ctx, q->a0))
		return -ENXIO;
	return q->a1 ? make_task(r, ctx, NULL) : -EINVAL;
}

/* The handle is gone whatever becomes of it: all else that waits for it is cancelled. */
static int begin_detach(struct rgate_req *r, void *ctx)
{
	struct task *task = rgate_req_object(r);
	struct spawn_service *sv = ctx;
	struct spawn_node *node;
	int err;

	if (!task)
		return -EBADF;
	node = task->node;
	pthread_mutex_lock(&sv->lock);
	err = wait_for(task, r, TASK_DETACH);
	if (err == RGATE_REQ_LATER) {
		(void)rgate_seat_release(rgate_req_seat(r), RGATE_REQ_SPAWN,
					 rgate_req_get(r)->handle);
		end_others(task, TASK_DETACH);
		spawn_task_news(task);
		spawn_service_poke(sv, node);
	}
	pthread_mutex_unlock(&sv->lock);
	return err;
}

static int begin_status(struct rgate_req *r, void *ctx)
{
	struct task *task = rgate_req_object(r);
	struct spawn_service *sv = ctx;

	if (!task)
		return -EBADF;
	if (!status_fits(rgate_req_get(r)))
		return -EINVAL;
	pthread_mutex_lock(&sv->lock);
	give_status(task->job, r);
	pthread_mutex_unlock(&sv->lock);
	return 0;
}

static int begin_close_stdin(struct rgate_req *r, void *ctx)
{
	struct task *task = rgate_req_object(r);
	struct spawn_service *sv = ctx;
	int err;

	if (!task)
		return -EBADF;
	pthread_mutex_lock(&sv->lock);
	err = rgate_spawn_job_close_stdin(task->job);
	/* Those that wait for room find that there will be none. */
	spawn_task_news(task);
	spawn_service_poke(sv, task->node);
	pthread_mutex_unlock(&sv->lock);
	return err;
}

static int begin_signal(struct rgate_req *r, void *ctx)
{
	const struct rgate_request *q = rgate_req_get(r);
	struct task *task = rgate_req_object(r);
	struct spawn_service *sv = ctx;
	int err;

	if (!task)
		return -EBADF;
	if (q->a0 > INT32_MAX || q->a1 > RGATE_SPAWN_TO_LEADER)
		return -EINVAL;
	pthread_mutex_lock(&sv->lock);
	err = rgate_spawn_job_kill(task->job, (int)q->a0, (enum rgate_spawn_scope)q->a1);
	spawn_service_poke(sv, task->node);
	pthread_mutex_unlock(&sv->lock);
	return err;
}

static int begin_close(struct rgate_req *r, void *ctx)
{
	struct task *task = rgate_seat_release(rgate_req_seat(r), RGATE_REQ_SPAWN,
					       rgate_req_get(r)->handle);

	if (!task)
		return -EBADF;
	close_task(ctx, task);
	return 0;
}

/* Its session is over. */
static void drop(void *object, void *ctx)
{
	struct spawn_service *sv = ctx;
	struct task *task = object;
	struct spawn_node *node = task->node;

	if (!task->job->keep) {
		close_task(sv, task);
		return;
	}
	/* RGATE_SPAWN_KEEP; or it was there before the session was. */
	pthread_mutex_lock(&sv->lock);
	end_others(task, TASK_KINDS);
	leave_task(task);
	spawn_service_poke(sv, node);
	pthread_mutex_unlock(&sv->lock);
}

#define OP(number)	((number) & ((1U << RGATE_REQ_OP_SHIFT) - 1))

static const struct rgate_req_op ops[] = {
	[OP(RGATE_REQ_SPAWN_START)] = {
		.name = "start", .uses = RGATE_USES_A0 | RGATE_USES_MEM, .begin = begin_start,
	},
	[OP(RGATE_REQ_SPAWN_STATUS)] = {
		.name = "status", .uses = RGATE_USES_HANDLE | RGATE_USES_MEM,
		.begin = begin_status,
	},
	[OP(RGATE_REQ_SPAWN_WAIT)] = {
		.name = "wait", .uses = RGATE_USES_HANDLE | RGATE_USES_MEM, .begin = begin_wait,
		.cancel = cancel_task,
	},
	[OP(RGATE_REQ_SPAWN_READ)] = {
		.name = "read", .uses = RGATE_USES_HANDLE | RGATE_USES_A0 | RGATE_USES_MEM,
		.begin = begin_read, .cancel = cancel_task,
	},
	[OP(RGATE_REQ_SPAWN_WRITE)] = {
		.name = "write", .uses = RGATE_USES_HANDLE | RGATE_USES_MEM,
		.begin = begin_write, .cancel = cancel_task,
	},
	[OP(RGATE_REQ_SPAWN_CLOSE_STDIN)] = {
		.name = "close-stdin", .uses = RGATE_USES_HANDLE, .begin = begin_close_stdin,
	},
	[OP(RGATE_REQ_SPAWN_SIGNAL)] = {
		.name = "signal", .uses = RGATE_USES_HANDLE | RGATE_USES_A0 | RGATE_USES_A1,
		.begin = begin_signal,
	},
	[OP(RGATE_REQ_SPAWN_CLOSE)] = {
		.name = "close", .uses = RGATE_USES_HANDLE, .begin = begin_close,
	},
	[OP(RGATE_REQ_SPAWN_ATTACH)] = {
		.name = "attach", .uses = RGATE_USES_A0 | RGATE_USES_A1, .begin = begin_attach,
	},
	[OP(RGATE_REQ_SPAWN_DETACH)] = {
		.name = "detach", .uses = RGATE_USES_HANDLE, .begin = begin_detach,
		.cancel = cancel_task,
	},
	[OP(RGATE_REQ_SPAWN_LIST)] = {
		.name = "list", .uses = RGATE_USES_A0 | RGATE_USES_A1 | RGATE_USES_MEM,
		.begin = service_begin_list, .cancel = service_cancel_inquiry,
	},
	[OP(RGATE_REQ_SPAWN_KILL)] = {
		.name = "kill", .uses = RGATE_USES_A0 | RGATE_USES_A1,
		.begin = service_begin_kill, .cancel = service_cancel_inquiry,
	},
	[OP(RGATE_REQ_SPAWN_NODES)] = {
		.name = "nodes", .uses = RGATE_USES_MEM, .begin = service_begin_nodes,
	},
};

const struct rgate_req_service spawn_requests = {
	.number = RGATE_REQ_SPAWN, .nops = sizeof(ops) / sizeof(ops[0]), .name = "spawn",
	.ops = ops, .drop = drop,
};
