// SPDX-License-Identifier: MIT OR GPL-2.0
#include "host.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "agent_share.h"
#include "clock.h"
#include "events.h"
#include "list.h"
#include "wire.h"

#define CLIENTS_MAX	256U	/* members of all groups, and who has not joined yet */
#define SILENT_MAX	16U	/* of these; one more and the oldest goes */
#define GROUPS_MAX	16U
#define SILENT_NS	10000000000ULL
#define IDLE_NS		1000000000ULL
#define LOOK_MS		200

struct group {
	struct link link;
	char name[AGENT_GROUP_MAX];
	struct agent *agent;
	uint32_t members;
	bool failed;
};

/* One who has connected */
struct client {
	struct link link;
	int sock;
	struct group *group;		/* NULL: has not joined */
	struct agent_member *member;
	uint64_t since;
};

struct host {
	int keeper;
	const char *requests, *dir;
	struct events ev;
	struct link groups, clients;
	uint32_t ngroups, nclients, nsilent;
	struct client *joins;		/* who hears what is logged now; NULL */
	uint64_t taken, idle_ns;	/* since when there is nobody; 0: there is */
};

/* ---- What they are told ---- */

static void put(const struct client *c, struct agent_share_answer *answer)
{
	answer->version = AGENT_VERSION;
	/* Who does not take it misses it. */
	(void)rgate_wire_send(c->sock, answer, sizeof(*answer), NULL, 0, MSG_DONTWAIT);
}

static void put_line(const struct client *c, const char *line)
{
	struct agent_share_answer answer = { .what = AGENT_SHARE_LINE };

	(void)snprintf(answer.text, sizeof(answer.text), "%s", line);
	put(c, &answer);
}

static void put_hello(int sock, int result)
{
	const struct client c = { .sock = sock };
	struct agent_share_answer answer = { .what = AGENT_SHARE_HELLO, .result = result };

	put(&c, &answer);
}

static void put_result(const struct client *c, int result)
{
	struct agent_share_answer answer = { .what = AGENT_SHARE_JOIN, .result = result };

	if (!result)
		(void)snprintf(answer.text, sizeof(answer.text), "%s",
			       agent_member_path(c->member));
	put(c, &answer);
}

static void put_info(const struct client *c)
{
	struct agent_share_answer answer = { .what = AGENT_SHARE_INFO,
					     .info.sz = sizeof(answer.info) };

	answer.result = agent_member_info(c->member, &answer.info);
	put(c, &answer);
}

static void on_warn(void *ctx, const struct agent_member *m, const char *line)
{
	const struct host *h = ctx;
	const struct link *at;

	for (at = h->clients.next; at != &h->clients; at = at->next) {
		const struct client *c = container_of(at, struct client, link);

		if (c->member == m)
			put_line(c, line);
	}
}

/* Of the library: who asks for something just now hears it, and else nobody. */
static void on_log(void *ctx, enum rgate_log_level level, const char *line)
{
	const struct host *h = ctx;

	if (level <= RGATE_LOG_WARN && h->joins)
		put_line(h->joins, line);
}

/* ---- Coming and going ---- */

static void end_group(struct host *h, struct group *g)
{
	list_del(&g->link);
	h->ngroups--;
	agent_close(g->agent);
	free(g);
}

/* gcc 12's analyzer takes what is in a list for NULL. */
#ifndef __clang__
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wanalyzer-null-dereference"
#endif
static void drop(struct host *h, struct client *c)
{
	struct group *g = c->group;

	list_del(&c->link);
	h->nclients--;
	h->nsilent -= !g;
	if (c->member)
		agent_leave(c->member);
	close(c->sock);
	free(c);
	if (g && !--g->members)
		end_group(h, g);
}

#ifndef __clang__
#pragma GCC diagnostic pop
#endif

static struct group *find_group(struct host *h, const char *name)
{
	struct link *at;

	for (at = h->groups.next; at != &h->groups; at = at->next) {
		struct group *g = container_of(at, struct group, link);

		if (!g->failed && !strcmp(g->name, name))
			return g;
	}
	return NULL;
}

static int begin_group(struct host *h, const char *name, struct group **out)
{
	const struct agent_opts o = RGATE_OPTS(agent_opts, .path = h->requests,
		.where = RGATE_SESSION_DAEMON, .parent = h->dir, .warn = on_warn, .ctx = h);
	struct group *g;
	int err;

	if (h->ngroups >= GROUPS_MAX)
		return -EDQUOT;
	g = calloc(1, sizeof(*g));
	if (!g)
		return -ENOMEM;
	err = agent_open(&g->agent, &o);
	if (err)
		goto free;
	err = events_add(&h->ev, agent_fd(g->agent), EPOLLIN, events_word(g));
	if (err)
		goto close;
	(void)snprintf(g->name, sizeof(g->name), "%s", name);
	list_add_tail(&h->groups, &g->link);
	h->ngroups++;
	*out = g;
	return 0;
close:
	agent_close(g->agent);
free:
	free(g);
	return err;
}

static int join(struct host *h, struct client *c, const struct agent_share_ask *ask)
{
	struct group *g = find_group(h, ask->group);
	int err = g ? 0 : begin_group(h, ask->group, &g);

	if (err)
		return err;
	err = agent_join(g->agent, &c->member);
	if (err) {
		if (!g->members)
			end_group(h, g);
		return err;
	}
	g->members++;
	c->group = g;
	h->nsilent--;
	return 0;
}

static bool could_be(const struct agent_share_ask *ask)
{
	return ask->version == AGENT_VERSION && memchr(ask->group, '\0', sizeof(ask->group));
}

/* False: he is to go */
static bool on_ask(struct host *h, struct client *c, const struct agent_share_ask *ask)
{
	int err;

	if (c->member) {
		if (could_be(ask) && ask->what == AGENT_SHARE_INFO)
			put_info(c);
		return could_be(ask) && ask->what == AGENT_SHARE_INFO;
	}
	h->joins = c;
	err = !could_be(ask) ? -EPROTONOSUPPORT : ask->what != AGENT_SHARE_JOIN ? -EINVAL :
	      join(h, c, ask);
	h->joins = NULL;
	put_result(c, err);
	return !err;
}

static void on_client(struct host *h, struct client *c)
{
	struct agent_share_ask ask;
	int n = rgate_wire_recv(c->sock, &ask, sizeof(ask), NULL, NULL, MSG_DONTWAIT);

	if (n == -EAGAIN || n == -EINTR)
		return;
	if (n != (int)sizeof(ask)) {
		if (n > 0)
			put_result(c, -EPROTONOSUPPORT);
		drop(h, c);
	} else if (!on_ask(h, c, &ask)) {
		drop(h, c);
	}
}

/* Those are the oldest that are first. */
static struct client *first_silent(const struct host *h)
{
	struct link *at;

	for (at = h->clients.next; at != &h->clients; at = at->next) {
		struct client *c = container_of(at, struct client, link);

		if (!c->group)
			return c;
	}
	return NULL;
}

/* gcc 12's analyzer loses what is in a list. */
#ifndef __clang__
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wanalyzer-malloc-leak"
#endif
static void add_client(struct host *h, int sock)
{
	struct client *c;

	if (h->nsilent >= SILENT_MAX)
		drop(h, first_silent(h));
	c = h->nclients < CLIENTS_MAX ? calloc(1, sizeof(*c)) : NULL;
	if (!c || events_add(&h->ev, sock, EPOLLIN, events_word(c))) {
		put_hello(sock, c ? -ENOMEM : -EDQUOT);
		close(sock);
		free(c);
		return;
	}
	c->sock = sock;
	c->since = rgate_clock_now(CLOCK_MONOTONIC);
	list_add_tail(&h->clients, &c->link);
	h->nclients++;
	h->nsilent++;
	put_hello(sock, 0);
}

#ifndef __clang__
#pragma GCC diagnostic pop
#endif

/* False: the keeper is gone, or wants this one to end */
static bool on_keeper(struct host *h)
{
	unsigned int n = 1, i;
	int fds[RGATE_FDS], ret;
	char byte;

	ret = rgate_wire_recv(h->keeper, &byte, sizeof(byte), fds, &n, MSG_DONTWAIT);
	if (ret == -EAGAIN || ret == -EINTR)
		return true;
	if (ret < 0)
		return false;
	h->taken++;
	for (i = 0; i < n; i++)
		add_client(h, fds[i]);
	return true;
}

/* ---- Its loop ---- */

static struct client *client_of(const struct host *h, uint64_t word)
{
	struct link *at;

	for (at = h->clients.next; at != &h->clients; at = at->next)
		if (events_word(container_of(at, struct client, link)) == word)
			return container_of(at, struct client, link);
	return NULL;
}

/* Those of a group whose sockets are gone hear it by their connection's end. */
static void fail_group(struct host *h, struct group *g)
{
	struct link *at, *next;
	uint32_t left = g->members;

	g->failed = true;
	for (at = h->clients.next; left && at != &h->clients; at = next) {
		struct client *c = container_of(at, struct client, link);

		/* NOLINTNEXTLINE(clang-analyzer-unix.Malloc): what is freed has left its list */
		next = at->next;
		if (c->group == g) {
			left--;
			drop(h, c);
		}
	}
}

static void step_all(struct host *h)
{
	struct link *at, *next;

	for (at = h->groups.next; at != &h->groups; at = next) {
		struct group *g = container_of(at, struct group, link);

		next = at->next;
		if (agent_step(g->agent))
			fail_group(h, g);
	}
}

static int timeout_of(const struct host *h)
{
	struct link *at;
	int ms = LOOK_MS;

	for (at = h->groups.next; at != &h->groups; at = at->next) {
		const int most = agent_timeout(container_of(at, struct group, link)->agent);

		ms = most < ms ? most : ms;
	}
	return ms;
}

/* Who says nothing goes; without anybody the keeper is asked whether somebody comes. */
static void look(struct host *h)
{
	const uint64_t now = rgate_clock_now(CLOCK_MONOTONIC);
	const struct host_idle idle = { .taken = h->taken };
	struct client *c = first_silent(h);

	if (c && now - c->since >= SILENT_NS)
		drop(h, c);
	if (h->nclients)
		h->idle_ns = 0;
	else if (!h->idle_ns)
		h->idle_ns = now;
	if (!h->idle_ns || now - h->idle_ns < IDLE_NS)
		return;
	h->idle_ns = now;
	(void)rgate_wire_send(h->keeper, &idle, sizeof(idle), NULL, 0, MSG_DONTWAIT);
}

/* One event at a time: what one does may free what another is about. */
static bool turn(struct host *h)
{
	struct epoll_event ev;
	struct client *c;

	if (events_wait(&h->ev, &ev, 1, events_ms(timeout_of(h))) == 1) {
		if (ev.data.u64 == events_word(h) && !on_keeper(h))
			return false;
		c = client_of(h, ev.data.u64);
		if (c)
			on_client(h, c);
	}
	step_all(h);
	look(h);
	return true;
}

/* What one has left that was killed: its programs look whether the names are there. */
static void clear_dir(const char *dir)
{
	char path[512];
	struct dirent *e, *in;
	DIR *d = opendir(dir), *sub;

	while (d && (e = readdir(d))) {
		if (strncmp(e->d_name, "ringgate-", 9) ||
		    snprintf(path, sizeof(path), "%s/%s", dir, e->d_name) >= (int)sizeof(path))
			continue;
		sub = opendir(path);
		while (sub && (in = readdir(sub)))
			(void)unlinkat(dirfd(sub), in->d_name, 0);
		if (sub)
			closedir(sub);
		(void)rmdir(path);
	}
	if (d)
		closedir(d);
}

static void end(struct host *h)
{
	while (!list_empty(&h->clients))
		/* NOLINTNEXTLINE(clang-analyzer-unix.Malloc): what is freed has left its list */
		drop(h, container_of(h->clients.next, struct client, link));
	events_close(&h->ev);
}

int host_run(int keeper, const char *requests, const char *dir)
{
	struct host h = { .keeper = keeper, .requests = requests, .dir = dir };

	list_init(&h.groups);
	list_init(&h.clients);
	rgate_log_set(on_log, &h);
	clear_dir(dir);
	if (events_open_plain(&h.ev) || events_add(&h.ev, keeper, EPOLLIN, events_word(&h)))
		return 1;
	while (turn(&h))
		;
	end(&h);
	return 0;
}
