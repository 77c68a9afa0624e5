// SPDX-License-Identifier: MIT OR GPL-2.0
/* The module: engine, socket, and a thread that looks after who is connected. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <ringgate/rgate_session.h>

#include "gate_service.h"
#include "listen.h"
#include "preflight.h"
#include "queue_service.h"
#include "requests_clients.h"
#include "requests_net.h"
#include "requests_services.h"
#include "util.h"

#define RETRY_US	100000	/* after a connection for which there is no descriptor */

const char *requests_path(const struct config *c)
{
	if (c->requests_socket)
		return strcmp(c->requests_socket, "none") ? c->requests_socket : NULL;
	/* Where several daemons are on a machine each is told its paths. */
	return strcmp(c->socket, RGATE_DAEMON_SOCKET) ? NULL : RGATE_SESSION_SOCKET;
}

static int requests_check(struct daemon *d)
{
	const struct config *c = &d->conf;
	const char *path = requests_path(c);
	struct request_policy *policy;
	struct journal_opts journal;
	int err;

	if (!path) {
		if (!c->journal && !c->requests_policy && !c->requests_group &&
		    !c->requests_sockets && !c->sockets_there && !c->agents)
			return 0;
		say("journal, or requests policy, sockets, sockets-at, agent or group, without requests socket: nobody can ask");
		return -EINVAL;
	}
	err = check_group(c->requests_group);
	if (!err)
		err = request_policy_load(&policy, c->requests_policy);
	if (err)
		return err;
	request_policy_free(policy);
	err = net_check(c->requests_sockets);
	if (err)
		return err;
	if (requests_journal(c, &journal))
		err = journal_check(&journal);
	if (err)
		return err;
	if (!strcmp(path, c->socket)) {
		say("the socket of requests is that of the daemon: %s", path);
		return -EINVAL;
	}
	return check_socket(path);
}

static int on_log(void *ctx, uid_t uid, const char *text, size_t len)
{
	return request_log_line(ctx, uid, text, len);
}

static void *serve(void *arg)
{
	struct requests *rq = arg;
	struct epoll_event ev[32];
	int i, n, wait = -1, err = 0;

	for (;;) {
		n = events_wait(&rq->ev, ev, ARRAY_SIZE(ev), events_ms(wait));
		pthread_mutex_lock(&rq->lock);
		for (i = 0; i < n; i++) {
			const uint64_t tag = ev[i].data.u64;

			if (tag == EVENTS_WAKE)
				goto unlock;
			if (tag == REQUESTS_TAG_LISTEN)
				err = clients_accept(rq);
			else if (rq->clients[tag].sock >= 0)
				clients_read(rq, &rq->clients[tag]);
		}
		wait = clients_expire(rq);
		pthread_mutex_unlock(&rq->lock);
		/* Who waits would wake us at once again, and find no descriptor either. */
		if (err)
			usleep(RETRY_US);
		err = 0;
	}
unlock:
	pthread_mutex_unlock(&rq->lock);
	return NULL;
}

static int start_engine(struct requests *rq, struct rgate_hub *hub)
{
	struct rgate_engine_opts o = { .sz = sizeof(o), .log = on_log,
				       .node = 1 + rgate_node_id(rgate_hub_node(hub)) };
	int err;

	err = request_log_open(&rq->log, STDERR_FILENO);
	if (err)
		return err;
	o.log_ctx = rq->log;
	err = rgate_engine_create(&rq->engine, &o);
	if (err)
		goto close_log;
	err = services_start(rq, hub);
	if (!err)
		return 0;
	services_quit(rq);
	rgate_engine_destroy(rq->engine);
	services_stop(rq);
close_log:
	request_log_close(rq->log);
	return err;
}

static void stop_engine(struct requests *rq)
{
	services_quit(rq);
	rgate_engine_destroy(rq->engine);
	services_stop(rq);
	request_log_close(rq->log);
}

static void free_requests(struct requests *rq)
{
	if (rq->listen_fd >= 0) {
		close(rq->listen_fd);
		(void)unlink(rq->path);
	}
	request_policy_free(rq->policy);
	pthread_mutex_destroy(&rq->policy_lock);
	pthread_mutex_destroy(&rq->lock);
	free(rq);
}

static int requests_open(struct daemon *d)
{
	const struct config *c = &d->conf;
	struct requests *rq;
	int err;

	if (!requests_path(c))
		return 0;
	rq = calloc(1, sizeof(*rq));
	if (!rq)
		return -ENOMEM;
	pthread_mutex_init(&rq->lock, NULL);
	pthread_mutex_init(&rq->policy_lock, NULL);
	rq->path = requests_path(c);
	rq->policy_path = c->requests_policy;
	rq->sockets_path = c->requests_sockets;
	rq->sockets_there = c->sockets_there;
	rq->listen_fd = -1;
	(void)requests_journal(c, &rq->journal);
	err = request_policy_load(&rq->policy, rq->policy_path);
	if (err)
		goto free_requests;
	rq->listen_fd = listen_open(rq->path, c->requests_group, 0666);
	if (rq->listen_fd < 0) {
		err = rq->listen_fd;
		say("cannot listen at %s: %s", rq->path, strerror(-err));
		goto free_requests;
	}
	d->requests = rq;
	return 0;

free_requests:
	free_requests(rq);
	return err;
}

static void requests_close(struct daemon *d)
{
	if (d->requests)
		free_requests(d->requests);
	d->requests = NULL;
}

/* What the thread waits for */
static int open_events(struct requests *rq)
{
	int err = events_open(&rq->ev);

	if (err)
		return err;
	err = events_add(&rq->ev, rq->listen_fd, EPOLLIN, REQUESTS_TAG_LISTEN);
	if (err)
		events_close(&rq->ev);
	return err;
}

static int requests_start(struct daemon *d)
{
	struct requests *rq = d->requests;
	int err;

	if (!rq)
		return 0;
	err = start_engine(rq, d->hub);
	if (err)
		goto fail;
	err = open_events(rq);
	if (err)
		goto stop_engine;
	err = -pthread_create(&rq->thread, NULL, serve, rq);
	if (!err)
		return 0;
	events_close(&rq->ev);
stop_engine:
	stop_engine(rq);
fail:
	say("cannot serve requests: %s", strerror(-err));
	return err;
}

static void requests_stop(struct daemon *d)
{
	struct requests *rq = d->requests;
	struct request_client *c;

	if (!rq)
		return;
	/* Its end is not that of those who work here. */
	if (rq->queues)
		queue_service_stops(rq->queues);
	events_wake(&rq->ev);
	pthread_join(rq->thread, NULL);
	for (c = rq->clients; c < rq->clients + rq->nclients; c++)
		if (c->sock >= 0)
			clients_drop(rq, c);
	events_close(&rq->ev);
	stop_engine(rq);
}

static int requests_reload(struct daemon *d)
{
	struct requests *rq = d->requests;
	struct request_policy *policy, *old;
	struct socket_policy *sockets;
	int err;

	if (!rq)
		return 0;
	err = request_policy_load(&policy, rq->policy_path);
	if (err)
		return err;
	err = net_reload(rq->sockets_path, &sockets);
	if (err) {
		request_policy_free(policy);
		return err;
	}
	net_keep(rq, sockets);
	pthread_mutex_lock(&rq->lock);
	pthread_mutex_lock(&rq->policy_lock);
	old = rq->policy;
	rq->policy = policy;
	pthread_mutex_unlock(&rq->policy_lock);
	clients_review(rq);
	pthread_mutex_unlock(&rq->lock);
	gate_service_review(rq->gate);
	gate_service_review(rq->queue_gate);
	request_policy_free(old);
	return rq->policy_path || rq->sockets_path;
}

void requests_stats(struct requests *rq, struct requests_stats *stats)
{
	struct request_log_stats log;

	pthread_mutex_lock(&rq->lock);
	*stats = rq->stats;
	pthread_mutex_unlock(&rq->lock);
	stats->engine.sz = sizeof(stats->engine);
	(void)rgate_engine_stats(rq->engine, &stats->engine);
	request_log_stats(rq->log, &log);
	stats->log_lines = log.written;
	stats->log_dropped = log.dropped;
}

int requests_user(struct requests *rq, unsigned int i, struct rgate_user_stats *stats)
{
	return rgate_engine_user(rq->engine, i, stats);
}

const struct module requests_module = {
	.check = requests_check,
	.open = requests_open,
	.close = requests_close,
	.start = requests_start,
	.stop = requests_stop,
	.reload = requests_reload,
	.files = "the policy of requests was read",
	.status_json = requests_json,
	.status_text = requests_text,
};
