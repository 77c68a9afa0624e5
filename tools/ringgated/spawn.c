// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * Processes for other nodes. Their streams have a thread of their own: the thread of the
 * requests waits for pings, that of the hub has packets.
 */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include "json.h"
#include "module.h"
#include "util.h"

/* Who asked for what, and what became of it: not only for those who want to hear more */
static void on_line(void *ctx, const char *line)
{
	(void)ctx;
	say("%s", line);
}

static int spawn_check(struct daemon *d)
{
	const struct config *c = &d->conf;
	struct stat st;
	int err;

	if (!c->spawn_policy && c->spawn_cgroup) {
		say("spawn cgroup without spawn policy: nothing is run");
		return -EINVAL;
	}
	if (c->spawn_cgroup && *c->spawn_cgroup &&
	    (stat(c->spawn_cgroup, &st) < 0 || !S_ISDIR(st.st_mode))) {
		say("spawn cgroup: %s is no directory", c->spawn_cgroup);
		return -ENOTDIR;
	}
	if (!c->spawn_policy)
		return 0;
	err = rgate_spawnd_check(d->cluster, c->spawn_policy);
	if (err)
		say("spawn policy %s: %s", c->spawn_policy,
		    rgate_strerror("rgate_spawnd_check", err));
	return err;
}

static int spawn_prepare(struct daemon *d)
{
	const struct config *c = &d->conf;
	const struct rgate_spawnd_opts o = RGATE_OPTS(rgate_spawnd_opts,
		.policy = c->spawn_policy, .cgroup = c->spawn_cgroup, .flags = RGATE_SPAWND_SHARED,
		.log = on_line);
	int err;

	if (!c->spawn_policy)
		return 0;
	err = rgate_spawnd_create(&d->spawnd, d->cluster, &o);
	if (err)
		say("cannot run processes for others: %s", strerror(-err));
	return err;
}

static void *spawn_main(void *arg)
{
	struct daemon *d = arg;
	struct pollfd p[2] = { { .fd = rgate_spawnd_fd(d->spawnd), .events = POLLIN },
			       { .fd = d->spawn_stop, .events = POLLIN } };
	bool told = false;

	while (!p[1].revents) {
		if (rgate_spawnd_process(d->spawnd) && !told) {
			say("the spawner is gone: start ringgated anew to run processes");
			told = true;
		}
		while (poll(p, 2, -1) < 0 && errno == EINTR)
			;
	}
	return NULL;
}

static void spawn_discard(struct daemon *d)
{
	rgate_spawnd_destroy(d->spawnd);
	d->spawnd = NULL;
}

static int spawn_start(struct daemon *d)
{
	int err;

	if (!d->spawnd)
		return 0;
	err = rgate_spawnd_attach_hub(d->spawnd, d->hub);
	if (err)
		goto fail;
	d->spawn_stop = eventfd(0, EFD_CLOEXEC);
	if (d->spawn_stop < 0) {
		err = -errno;
		goto fail;
	}
	err = -pthread_create(&d->spawn_thread, NULL, spawn_main, d);
	if (!err)
		return 0;
	close(d->spawn_stop);
fail:
	/* It may be on the hub. */
	spawn_discard(d);
	say("cannot run processes for others: %s", strerror(-err));
	return err;
}

static void spawn_stop(struct daemon *d)
{
	if (!d->spawnd)
		return;
	eventfd_write(d->spawn_stop, 1);
	pthread_join(d->spawn_thread, NULL);
	close(d->spawn_stop);
	spawn_discard(d);
}

static int spawn_reload(struct daemon *d)
{
	int err = d->spawnd ? rgate_spawnd_reload(d->spawnd) : 0;

	return err ? err : d->spawnd != NULL;
}

static void spawn_json(struct daemon *d, struct json *j)
{
	struct rgate_spawnd_stats s = { .sz = sizeof(s) };

	if (!d->spawnd)
		return;
	(void)rgate_spawnd_stats(d->spawnd, &s);
	json_object(j, "spawn");
	json_u64(j, "requests", s.requests);
	json_u64(j, "refused", s.refused);
	json_u64(j, "failed", s.failed);
	json_u64(j, "started", s.started);
	json_u64(j, "completed", s.completed);
	json_u64(j, "killed", s.killed);
	json_u64(j, "timed_out", s.timed_out);
	json_u64(j, "garbage", s.garbage);
	json_u64(j, "jobs", s.jobs);
	json_u64(j, "queued", s.queued);
	json_u64(j, "running", s.running);
	json_u64(j, "bytes_out", s.bytes_out);
	json_u64(j, "bytes_in", s.bytes_in);
	json_object_end(j);
}

static void spawn_text(struct daemon *d, FILE *f)
{
	struct rgate_spawnd_stats s = { .sz = sizeof(s) };

	if (!d->spawnd)
		return;
	(void)rgate_spawnd_stats(d->spawnd, &s);
	fprintf(f, "\nprocesses: running %llu, waiting %llu, ended %llu, refused %llu, not started %llu\n",
		(unsigned long long)s.running, (unsigned long long)s.queued,
		(unsigned long long)s.completed, (unsigned long long)s.refused,
		(unsigned long long)s.failed);
}

const struct module spawn_module = {
	.check = spawn_check,
	.prepare = spawn_prepare,
	.discard = spawn_discard,
	.start = spawn_start,
	.stop = spawn_stop,
	.reload = spawn_reload,
	.files = "the policy was read",
	.status_json = spawn_json,
	.status_text = spawn_text,
};
