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
#include <unistd.h>

#include "ringgated.h"
#include "util.h"

/* Who asked for what, and what became of it: not only for those who want to hear more */
static void on_line(void *ctx, const char *line)
{
	(void)ctx;
	say("%s", line);
}

int spawn_prepare(struct daemon *d)
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

int spawn_start(struct daemon *d)
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
	spawn_destroy(d);
	say("cannot run processes for others: %s", strerror(-err));
	return err;
}

void spawn_stop(struct daemon *d)
{
	if (!d->spawnd)
		return;
	eventfd_write(d->spawn_stop, 1);
	pthread_join(d->spawn_thread, NULL);
	close(d->spawn_stop);
	spawn_destroy(d);
}

void spawn_destroy(struct daemon *d)
{
	rgate_spawnd_destroy(d->spawnd);
	d->spawnd = NULL;
}

int spawn_reload(struct daemon *d)
{
	return d->spawnd ? rgate_spawnd_reload(d->spawnd) : 0;
}

int spawn_check(struct daemon *d)
{
	int err = rgate_spawnd_check(d->cluster, d->conf.spawn_policy);

	if (err)
		say("cannot use %s: %s", d->conf.spawn_policy, strerror(-err));
	return err;
}
