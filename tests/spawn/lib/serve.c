// SPDX-License-Identifier: MIT OR GPL-2.0
#include "ended.h"
#include "serve.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define LONG_S	3600	/* a program with RGATE_TEST_LONG that takes longer hangs */

static const char anything[] = "node 1 user %s\nallow 1 any\nenv * *\nmax-running 1000\n"
			       "max-queued 100000\nlimit 1 nice -20\n";

bool serve_long(void)
{
	return getenv("RGATE_TEST_LONG") != NULL;
}

static void answer(int sock, struct rgate_spawnd *sd)
{
	struct rgate_spawnd_stats stats = { .sz = sizeof(stats) };
	char what;
	int err;

	if (read(sock, &what, 1) != 1)
		return;
	if (what == 'r') {
		err = rgate_spawnd_reload(sd);
		unit_require(write(sock, &err, sizeof(err)) == sizeof(err));
		return;
	}
	unit_require(!rgate_spawnd_stats(sd, &stats));
	unit_require(write(sock, &stats, sizeof(stats)) == sizeof(stats));
}

static void serve_loop(int sock, struct rgate_spawnd *sd)
{
	struct pollfd p[2] = { { .fd = sock, .events = POLLIN },
			       { .fd = rgate_spawnd_fd(sd), .events = POLLIN } };
	char what;

	for (;;) {
		poll(p, 2, -1);
		if (p[1].revents)
			unit_require(rgate_spawnd_process(sd) <= 0);
		if (p[0].revents & POLLIN) {
			if (recv(sock, &what, 1, MSG_PEEK | MSG_DONTWAIT) <= 0)
				return;
			answer(sock, sd);
		} else if (p[0].revents) {
			return;
		}
	}
}

static int server(int sock, void *arg)
{
	struct serve *s = arg;
	const struct rgate_spawnd_opts o = RGATE_OPTS(rgate_spawnd_opts, .policy = s->policy,
						      .cgroup = s->cgroup,
						      .flags = s->hub ? RGATE_SPAWND_SHARED : 0,
						      .reconnect_ms = s->reconnect_ms,
						      .start_ms = s->start_ms,
						      .stage_bytes = s->stage_bytes);
	struct rgate_hub *hub = NULL;
	struct rgate_spawnd *sd;
	struct rgate_node *node;

	if (serve_long())
		alarm(LONG_S);
	unit_require(!rgate_spawnd_create(&sd, s->c.conf, &o));
	node = cluster_node(&s->c, 0);
	if (s->hub) {
		unit_require(!rgate_hub_create(&hub, node, NULL));
		unit_require(!rgate_spawnd_attach_hub(sd, hub));
	} else {
		unit_require(!rgate_spawnd_attach(sd, node));
	}
	unit_require(write(sock, "", 1) == 1);
	serve_loop(sock, sd);
	if (s->early) {
		rgate_hub_destroy(hub);
		rgate_node_destroy(node);
		rgate_spawnd_destroy(sd);
		return 0;
	}
	rgate_spawnd_destroy(sd);
	rgate_hub_destroy(hub);
	unit_require(!node_ended(node));
	return 0;
}

void serve_start(struct serve *s)
{
	char c;

	s->server = unit_fork(server, s, &s->sock);
	unit_require(read(s->sock, &c, 1) == 1);
}

void serve_stop(struct serve *s, int signal)
{
	if (signal) {
		kill(s->server, signal);
		close(s->sock);
		assert_int_equal(waitpid(s->server, NULL, 0), s->server);
	} else {
		close(s->sock);
		/* A test that failed may have left it stopped. */
		kill(s->server, SIGCONT);
		unit_reap(s->server, 0);
	}
}

void serve_client_up(struct serve *s)
{
	const struct rgate_spawn_opts o = RGATE_OPTS(rgate_spawn_opts,
						     .reconnect_ms = s->reconnect_ms);

	s->node = cluster_node(&s->c, 1);
	assert_int_equal(rgate_peer_open(&s->peer, s->node, 0), 0);
	assert_int_equal(rgate_peer_wait_up(s->peer, MS), 0);
	assert_int_equal(rgate_spawn_open(&s->spawn, s->node, s->peer, &o), 0);
}

void serve_client_down_raw(struct serve *s, const struct rgate_buf *buf)
{
	rgate_spawn_close(s->spawn);
	s->spawn = NULL;
	rgate_peer_close(s->peer);
	assert_int_equal(rgate_pool_free(rgate_node_pool(s->node), buf), 0);
	assert_int_equal(node_ended(s->node), 0);
}

void serve_client_down(struct serve *s)
{
	/* A test that failed may not have it any more. */
	if (!s->spawn)
		return;
	rgate_spawn_close(s->spawn);
	s->spawn = NULL;
	rgate_peer_close(s->peer);
	assert_int_equal(node_ended(s->node), 0);
}

static void write_policy(struct serve *s, const char *policy)
{
	const struct passwd *pw = getpwuid(geteuid());
	FILE *f = fopen(s->policy, "w");

	assert_non_null(f);
	assert_non_null(pw);
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
	fprintf(f, policy ? policy : anything, pw->pw_name);
#pragma GCC diagnostic pop
	assert_int_equal(fclose(f), 0);
	assert_int_equal(chmod(s->policy, 0600), 0);
}

int serve_reload(struct serve *s, const char *policy)
{
	int err;

	write_policy(s, policy);
	assert_int_equal(write(s->sock, "r", 1), 1);
	assert_int_equal(read(s->sock, &err, sizeof(err)), sizeof(err));
	return err;
}

void serve_up(struct serve *s, const char *policy)
{
	if (serve_long())
		alarm(LONG_S);
	cluster_make(&s->c, s->nodes ? s->nodes : 2, s->silent_ms ? s->silent_ms : s->reconnect_ms);
	snprintf(s->policy, sizeof(s->policy), "%s/policy", s->c.dir);
	write_policy(s, policy);
	if (!s->cgroup)
		s->cgroup = getenv("RGATE_TEST_CGROUP");
	serve_start(s);
	serve_client_up(s);
}

void serve_down(struct serve *s)
{
	serve_client_down(s);
	serve_stop(s, 0);
	unlink(s->policy);
	cluster_free(&s->c);
}

struct rgate_spawnd_stats serve_stats(struct serve *s)
{
	struct rgate_spawnd_stats stats;

	assert_int_equal(write(s->sock, "s", 1), 1);
	assert_int_equal(read(s->sock, &stats, sizeof(stats)), sizeof(stats));
	return stats;
}

unsigned int serve_fds(struct serve *s)
{
	char path[48];
	unsigned int n = 0;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/fd", (int)s->server);
	dir = opendir(path);
	assert_non_null(dir);
	while (readdir(dir))
		n++;
	closedir(dir);
	return n;
}

struct done run_request(struct serve *s, struct rgate_spawn_request *req)
{
	struct rgate_spawn_job *job;
	struct done d;

	memset(&d, 0, sizeof(d));
	d.r.sz = sizeof(d.r);
	assert_int_equal(rgate_spawn_start(s->spawn, req, &job), 0);
	assert_int_equal(rgate_spawn_job_collect(job, d.out, 64 << 20, &d.r, MS), 0);
	rgate_spawn_job_close(job);
	return d;
}

void done_free(struct done *d)
{
	free(d->out[0].data);
	free(d->out[1].data);
}

void assert_ran(struct done *d, int code, const char *out)
{
	if (d->r.state != RGATE_SPAWN_COMPLETE)
		print_message("# %s: %s %s\n", rgate_spawn_stage_name(d->r.stage),
			      strerror(-d->r.error), d->r.reason);
	assert_int_equal(d->r.state, RGATE_SPAWN_COMPLETE);
	assert_int_equal(d->r.error, 0);
	assert_int_equal(d->r.stage, RGATE_SPAWN_AT_RUN);
	if (out)
		assert_string_equal(d->out[0].data, out);
	assert_int_equal(d->r.signal, 0);
	assert_int_equal(d->r.exit_code, code);
	done_free(d);
}

void assert_failed(struct done *d, uint32_t stage, int err)
{
	if (d->r.stage != stage || d->r.error != err)
		print_message("# %s: %s %s\n", rgate_spawn_stage_name(d->r.stage),
			      strerror(-d->r.error), d->r.reason);
	assert_int_equal(d->r.state, RGATE_SPAWN_ERROR);
	assert_int_equal(d->r.stage, stage);
	assert_int_equal(d->r.error, err);
	done_free(d);
}

struct rgate_spawn_job *start_argv(struct serve *s, uint32_t flags, const char *const *argv)
{
	const struct rgate_spawn_request req = RGATE_OPTS(rgate_spawn_request, .argv = argv,
		.stdout_mode = RGATE_SPAWN_OUT_STREAM, .stderr_mode = RGATE_SPAWN_OUT_STREAM,
		.stdin_mode = RGATE_SPAWN_IN_STREAM, .flags = flags, .ring_bytes = 4096);
	struct rgate_spawn_job *job;

	assert_int_equal(rgate_spawn_start(s->spawn, &req, &job), 0);
	return job;
}
