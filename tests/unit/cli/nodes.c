// SPDX-License-Identifier: MIT OR GPL-2.0
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "cli.h"
#include "nodes.h"
/* not that of lib/spawn */
#include "../../../tools/ringgate/spawn_node.h"

#define note(...)	((void)fprintf(stderr, __VA_ARGS__))

struct fake_nodes nodes;

static const char *const names[NODES] = { "web", "db", "mail" };

extern __typeof__(spawn_node_open) __wrap_spawn_node_open;
int __wrap_spawn_node_open(struct spawn_node *sn, const struct spawn_opts *o)
{
	unsigned int i;

	note("open %s %s %s %d\n", o->cluster ?: "-", o->as ?: "-", o->node ?: "-", o->all);
	memset(sn, 0, sizeof(*sn));
	if (nodes.open)
		return nodes.open;
	sn->way = &spawn_way_node;
	for (i = 0; i < nodes.count; i++) {
		snprintf(sn->target[i].to.name, sizeof(sn->target[i].to.name), "%s", names[i]);
		nodes.spawn[i] = (struct rgate_spawn){ .fd = eventfd(1, EFD_CLOEXEC), .node = i };
		nodes.job[i].spawn = &nodes.spawn[i];
		if (!(nodes.gone & 1U << i))
			sn->target[i].spawn = &nodes.spawn[i];
	}
	sn->n = nodes.count;
	return 0;
}

extern __typeof__(spawn_node_close) __wrap_spawn_node_close;
void __wrap_spawn_node_close(struct spawn_node *sn)
{
	note("close of %u\n", sn->n);
}

extern __typeof__(rgate_cluster_nodes) __wrap_rgate_cluster_nodes;
unsigned int __wrap_rgate_cluster_nodes(const struct rgate_cluster *cluster)
{
	(void)cluster;
	return NODES;
}

extern __typeof__(rgate_cluster_node) __wrap_rgate_cluster_node;
int __wrap_rgate_cluster_node(const struct rgate_cluster *cluster, unsigned int i,
			      struct rgate_cluster_node *node)
{
	(void)cluster;
	node->id = i;
	snprintf(node->name, sizeof(node->name), "%s", names[i]);
	return 0;
}

static void note_list(const char *what, const char *const *list)
{
	note(" %s", what);
	for (; list && *list; list++)
		note(" %s", *list);
	note(";");
}

extern __typeof__(rgate_spawn_start) __wrap_rgate_spawn_start;
int __wrap_rgate_spawn_start(struct rgate_spawn *spawn, const struct rgate_spawn_request *q,
			     struct rgate_spawn_job **job)
{
	note("start on %s:", names[spawn->node]);
	note_list("argv", q->argv);
	note_list("env", q->env);
	note_list("unset", q->unset);
	note(" mode %u, cwd %s, in %u out %u err %u, tail %u, flags %u, ms %llu, memory %llu, "
	     "cpu %u, processes %u, files %u, nice %d, ring %u\n", q->env_mode, q->cwd ?: "-",
	     q->stdin_mode, q->stdout_mode, q->stderr_mode, q->tail_bytes, q->flags,
	     (unsigned long long)q->wall_ms, (unsigned long long)q->memory, q->cpu_s,
	     q->processes, q->files, q->nice, q->ring_bytes);
	if (q->sz != sizeof(*q) || q->exe || q->input)
		note("a request of another shape\n");
	*job = &nodes.job[spawn->node];
	return nodes.start;
}

extern __typeof__(rgate_spawn_attach) __wrap_rgate_spawn_attach;
int __wrap_rgate_spawn_attach(struct rgate_spawn *spawn, uint64_t id, uint32_t ring_bytes,
			      struct rgate_spawn_job **job)
{
	note("attach to %llx on %s, ring %u\n", (unsigned long long)id, names[spawn->node],
	     ring_bytes);
	*job = &nodes.job[spawn->node];
	return nodes.start;
}

extern __typeof__(rgate_spawn_fd) __wrap_rgate_spawn_fd;
int __wrap_rgate_spawn_fd(const struct rgate_spawn *spawn)
{
	return spawn->fd;
}

extern __typeof__(rgate_spawn_process) __wrap_rgate_spawn_process;
int __wrap_rgate_spawn_process(struct rgate_spawn *spawn)
{
	spawn->news = true;
	return 0;
}

extern __typeof__(rgate_spawn_next) __wrap_rgate_spawn_next;
int __wrap_rgate_spawn_next(struct rgate_spawn *spawn, struct rgate_spawn_job **job,
			    int timeout_ms)
{
	if (timeout_ms)
		note("next waits\n");
	if (!spawn->news)
		return -ETIMEDOUT;
	spawn->news = false;
	*job = &nodes.job[spawn->node];
	return 0;
}

static int signal_of(const char *piece)
{
	return *piece == *INT ? SIGINT : *piece == *TERM ? SIGTERM : *piece == *HUP ? SIGHUP : 0;
}

extern __typeof__(rgate_spawn_job_read) __wrap_rgate_spawn_job_read;
ssize_t __wrap_rgate_spawn_job_read(struct rgate_spawn_job *job, int stream, void *buf, size_t len,
				    int timeout_ms)
{
	unsigned int *at = &job->at[stream - 1];
	const char *piece = job->piece[stream - 1][*at];

	if (timeout_ms)
		note("read waits\n");
	if (job->wants_input && !job->closed)
		return -EAGAIN;
	if (!piece)
		return 0;
	(*at)++;
	if (signal_of(piece))
		kill(getpid(), signal_of(piece));
	if (signal_of(piece) || *piece == *AGAIN)
		return -EAGAIN;
	if (*piece == *BROKEN)
		return -ECONNRESET;
	if (*piece == *FULL)
		dup2(open("/dev/full", O_WRONLY | O_CLOEXEC), STDOUT_FILENO);
	if (strlen(piece) > len)
		return -EINVAL;
	memcpy(buf, piece, strlen(piece));
	return (ssize_t)strlen(piece);
}

extern __typeof__(rgate_spawn_job_write) __wrap_rgate_spawn_job_write;
ssize_t __wrap_rgate_spawn_job_write(struct rgate_spawn_job *job, const void *buf, size_t len,
				     int timeout_ms)
{
	const size_t n = len < 4 ? len : 4;

	if (timeout_ms)
		note("write waits\n");
	if (job->takes_none)
		return -EPIPE;
	job->full = !job->full;
	if (job->full)
		return -EAGAIN;
	note("write %.*s\n", (int)n, (const char *)buf);
	return (ssize_t)n;
}

extern __typeof__(rgate_spawn_job_close_stdin) __wrap_rgate_spawn_job_close_stdin;
int __wrap_rgate_spawn_job_close_stdin(struct rgate_spawn_job *job)
{
	note("end of input\n");
	job->closed = true;
	return 0;
}

extern __typeof__(rgate_spawn_job_wait) __wrap_rgate_spawn_job_wait;
int __wrap_rgate_spawn_job_wait(struct rgate_spawn_job *job, struct rgate_spawn_result *r,
				int timeout_ms)
{
	const size_t sz = r->sz;

	if (job->wait || job->r.state < RGATE_SPAWN_COMPLETE) {
		if (timeout_ms)
			note("wait %d ms\n", timeout_ms);
		return job->wait ?: -ETIMEDOUT;
	}
	*r = job->r;
	r->sz = sz;
	return 0;
}

extern __typeof__(rgate_spawn_job_result) __wrap_rgate_spawn_job_result;
int __wrap_rgate_spawn_job_result(struct rgate_spawn_job *job, struct rgate_spawn_result *r)
{
	*r = job->r;
	return 0;
}

extern __typeof__(rgate_spawn_job_kill) __wrap_rgate_spawn_job_kill;
int __wrap_rgate_spawn_job_kill(struct rgate_spawn_job *job, int signal,
				enum rgate_spawn_scope scope)
{
	note("signal %d to %s of %s\n", signal, scope == RGATE_SPAWN_TO_TREE ? "tree" :
	     scope == RGATE_SPAWN_TO_GROUP ? "group" : "leader", names[job->spawn->node]);
	return 0;
}

extern __typeof__(rgate_spawn_job_detach) __wrap_rgate_spawn_job_detach;
int __wrap_rgate_spawn_job_detach(struct rgate_spawn_job *job, int timeout_ms)
{
	note("let go of %s, %d\n", names[job->spawn->node], timeout_ms);
	return nodes.detach;
}

extern __typeof__(rgate_spawn_job_close) __wrap_rgate_spawn_job_close;
void __wrap_rgate_spawn_job_close(struct rgate_spawn_job *job)
{
	note("done with %s\n", names[job->spawn->node]);
}

extern __typeof__(rgate_spawn_kill) __wrap_rgate_spawn_kill;
int __wrap_rgate_spawn_kill(struct rgate_spawn *spawn, uint64_t id, int signal,
			    enum rgate_spawn_scope scope, int timeout_ms)
{
	note("kill %llx on %s: %d to %s, %d\n", (unsigned long long)id, names[spawn->node], signal,
	     scope == RGATE_SPAWN_TO_TREE ? "tree" : scope == RGATE_SPAWN_TO_GROUP ? "group" :
	     "leader", timeout_ms);
	return nodes.kill[spawn->node];
}

extern __typeof__(rgate_spawn_list) __wrap_rgate_spawn_list;
int __wrap_rgate_spawn_list(struct rgate_spawn *spawn,
			    int (*fn)(void *ctx, const struct rgate_spawn_info *info), void *ctx,
			    int timeout_ms)
{
	unsigned int i;

	note("list of %s, %d\n", names[spawn->node], timeout_ms);
	for (i = 0; i < nodes.infos; i++)
		assert_int_equal(fn(ctx, &nodes.info[i]), 0);
	return nodes.list;
}

int nodes_begin(void **state)
{
	unsigned int i;

	memset(&nodes, 0, sizeof(nodes));
	nodes.count = 1;
	for (i = 0; i < NODES; i++)
		nodes.job[i].r.state = RGATE_SPAWN_COMPLETE;
	return dup2(open("/dev/null", O_RDONLY | O_CLOEXEC), STDIN_FILENO) < 0 ||
	       cli_begin(state);
}
