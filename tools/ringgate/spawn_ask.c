// SPDX-License-Identifier: MIT OR GPL-2.0
#include "spawn_ask.h"

#include <endian.h>
#include <errno.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cmd.h"
#include "util.h"

#define STATUS		512U		/* bytes for a status */
#define JOB		(STATUS + 2 * ASK_PIECE)
#define NODES_MS	20		/* between two looks at a node that is not up */

RGATE_ASSERT(sizeof(struct rgate_spawn_status) <= STATUS);

static const char *socket_of(const struct spawn_opts *o)
{
	const char *path = o->socket ? o->socket : getenv("RGATE_REQUESTS");

	return path ? path : RGATE_SESSION_SOCKET;
}

static void say_refused(void)
{
	const struct passwd *pw = getpwuid(geteuid());
	char user[64];

	if (pw)
		snprintf(user, sizeof(user), "%s", pw->pw_name);
	else
		snprintf(user, sizeof(user), "%u", geteuid());
	say("ringgated does not let user %s ask for processes: `allow user:%s spawn` in the file "
	    "of `requests policy`, then `systemctl reload ringgated`", user, user);
}

/* Why there is no session, or it has not the operations that are needed */
static int say_why(const char *path, int err)
{
	if (err == -EACCES)
		say_refused();
	else if (err == -EDQUOT)
		say("this user has as many sessions with ringgated, or as much memory there, as he "
		    "may: `limit` in the file of `requests policy` says how many");
	else if (err == -EOPNOTSUPP)
		say("the ringgated at %s is older than this command, and cannot do that", path);
	else if (err == -ENOENT || err == -ECONNREFUSED)
		say("no ringgated answers at %s: `sudo systemctl start ringgated`", path);
	else
		return fail_in("rgate_session_open", err, "%s", path);
	return EXIT_FAIL;
}

int ask_take(struct spawn_ask *a)
{
	struct rgate_completion c[16];
	unsigned int i;
	int n;

	while ((n = rgate_session_poll(a->session, c, ARRAY_SIZE(c))) > 0)
		for (i = 0; i < (unsigned int)n; i++) {
			const uint64_t number = c[i].cookie / ASK_WHATS;
			const enum ask_what what = c[i].cookie % ASK_WHATS;

			if (what == ASK_ALONE && number == a->number) {
				a->alone = c[i];
				a->has_alone = true;
			} else if (what > ASK_UNHEARD && number < RGATE_NODES_MAX) {
				ask_job_told(&a->job[number], what, c[i].result);
			}
		}
	if (!n || a->broken)
		return n;
	a->broken = true;
	for (i = 0; i < RGATE_NODES_MAX; i++)
		ask_job_lost(&a->job[i]);
	return n;
}

void ask_sleep(struct spawn_ask *a, int timeout_ms)
{
	(void)rgate_session_wait(a->session, timeout_ms);
}

int ask_submit(struct spawn_ask *a, struct rgate_request q)
{
	int err = a->broken ? -EPIPE : rgate_session_submit(a->session, &q);

	/* There are more places than a command has requests: the daemon will be back at once. */
	while (err == -EAGAIN) {
		ask_sleep(a, 1);
		if (ask_take(a) < 0)
			return -EPIPE;
		err = rgate_session_submit(a->session, &q);
	}
	return err;
}

int ask_alone(struct spawn_ask *a, struct rgate_request q, int timeout_ms, uint64_t *value)
{
	/* A little longer than the daemon, which knows more of why it takes so long */
	const uint64_t end = util_now() + (uint64_t)timeout_ms * 1000000 + NSEC;
	int err;

	q.cookie = ++a->number * ASK_WHATS + ASK_ALONE;
	a->has_alone = false;
	err = ask_submit(a, q);
	while (!err && !a->has_alone) {
		if (ask_take(a) < 0)
			err = -EPIPE;
		else if (!a->has_alone && util_now() >= end)
			err = -ETIMEDOUT;
		else if (!a->has_alone)
			ask_sleep(a, 100);
	}
	if (err)
		return err;
	if (value)
		*value = a->alone.value;
	return a->alone.result;
}

/* ---- Nodes ---- */

static int read_nodes(struct spawn_ask *a)
{
	int n = ask_alone(a, (struct rgate_request){
		.op = RGATE_REQ_SPAWN_NODES, .off = (uint64_t)(a->in - a->mem),
		.len = sizeof(a->node) }, SPAWN_TIMEOUT, NULL);

	if (n < 0)
		return n;
	memcpy(a->node, a->in, sizeof(a->node));
	a->nodes = (unsigned int)n < RGATE_NODES_MAX ? (unsigned int)n : RGATE_NODES_MAX;
	for (n = 0; n < (int)a->nodes; n++)
		a->node[n].name[sizeof(a->node[n].name) - 1] = '\0';
	return 0;
}

static bool has(const struct rgate_spawn_node *n, uint32_t flag)
{
	return le32toh(n->flags) & flag;
}

void spawn_ask_name(const struct spawn_ask *a, uint32_t id, char name[32])
{
	unsigned int i;

	for (i = 0; i < a->nodes; i++)
		if (le32toh(a->node[i].node) == id)
			snprintf(name, 32, "%s", a->node[i].name);
}

/* By name or number, NULL: the gateway */
static const struct rgate_spawn_node *find(const struct spawn_ask *a, const char *what)
{
	const struct rgate_spawn_node *n;
	char number[16];

	for (n = a->node; n < a->node + a->nodes; n++) {
		snprintf(number, sizeof(number), "%u", le32toh(n->node));
		if (what ? !strcmp((const char *)n->name, what) || !strcmp(number, what) :
			   has(n, RGATE_SPAWN_NODE_GATEWAY))
			return n;
	}
	return NULL;
}

static struct spawn_target *add(struct spawn_node *sn, const struct rgate_spawn_node *n)
{
	struct spawn_target *t = &sn->target[sn->n++];

	t->to.id = le32toh(n->node);
	snprintf(t->to.name, sizeof(t->to.name), "%s", n->name);
	t->up = has(n, RGATE_SPAWN_NODE_UP);
	t->ask = t->up ? sn->ask : NULL;
	return t;
}

static int choose_one(struct spawn_node *sn, const char *what)
{
	const uint64_t end = util_now() + SPAWN_TIMEOUT * 1000000ULL;
	const struct rgate_spawn_node *n = find(sn->ask, what);
	int err;

	if (!n && what)
		say("the cluster has no node '%s'", what);
	else if (!n)
		say("the cluster has no gateway: which --node?");
	else if (has(n, RGATE_SPAWN_NODE_SELF))
		say("node %s is this machine's own: which other --node?", n->name);
	if (!n || has(n, RGATE_SPAWN_NODE_SELF))
		return EXIT_USAGE;
	/* It may be about to come. */
	while (!has(n, RGATE_SPAWN_NODE_UP) && util_now() < end) {
		util_sleep(util_now() + NODES_MS * 1000000ULL);
		err = read_nodes(sn->ask);
		if (err)
			return fail_in("rgate_session_open", err, "the nodes");
	}
	if (add(sn, n)->up)
		return EXIT_OK;
	return fail_in("rgate_peer_wait_up", -ETIMEDOUT, "node %s", n->name);
}

static int choose(struct spawn_node *sn, const struct spawn_opts *o)
{
	unsigned int i, fine = 0;

	if (!o->all)
		return choose_one(sn, o->node);
	for (i = 0; i < sn->ask->nodes; i++)
		if (!has(&sn->ask->node[i], RGATE_SPAWN_NODE_SELF))
			fine += add(sn, &sn->ask->node[i])->up;
	return fine ? EXIT_OK : fail_in("rgate_peer_wait_up", -ETIMEDOUT, "no node can be reached");
}

/* ---- The session ---- */

static void lay_out(struct spawn_ask *a, unsigned int jobs)
{
	uint8_t *at = a->mem + a->record;
	unsigned int i;

	a->in = at;
	at += ASK_PIECE;
	for (i = 0; i < RGATE_NODES_MAX; i++) {
		a->job[i].ask = a;
		a->job[i].number = i;
		if (i >= jobs)
			continue;
		a->job[i].status = (void *)at;
		a->job[i].out[0].mem = at + STATUS;
		a->job[i].out[1].mem = at + STATUS + ASK_PIECE;
		at += JOB;
	}
}

static int connect_daemon(struct spawn_ask *a, const struct spawn_opts *o)
{
	const unsigned int jobs = o->all ? RGATE_NODES_MAX : 1;
	struct rgate_session_opts so = RGATE_OPTS(rgate_session_opts, .path = socket_of(o),
		.where = RGATE_SESSION_DAEMON, .requests = RGATE_REQ_PLACES_MIN);
	int64_t len = o->request ? rgate_spawn_record_encode(o->request, NULL, 0) : 0;
	int err;

	/* What is wrong with it is said when it is made. */
	a->record = len > 0 ? ((size_t)len + 4095) / 4096 * 4096 : 0;
	so.memory = a->record + ASK_PIECE + (size_t)jobs * JOB;
	err = rgate_session_open(&a->session, &so);
	if (err)
		return say_why(so.path, err);
	a->mem = rgate_session_memory(a->session, NULL);
	lay_out(a, jobs);
	err = read_nodes(a);
	return err ? say_why(so.path, err) : EXIT_OK;
}

int spawn_ask_open(struct spawn_node *sn, const struct spawn_opts *o)
{
	int ret;

	sn->way = &spawn_way_ask;
	sn->ask = calloc(1, sizeof(*sn->ask));
	if (!sn->ask)
		return fail(-ENOMEM, "a session");
	sn->ask->target = sn->target;
	ret = connect_daemon(sn->ask, o);
	if (!ret)
		ret = choose(sn, o);
	if (ret)
		spawn_ask_close(sn);
	return ret;
}

void spawn_ask_close(struct spawn_node *sn)
{
	rgate_session_close(sn->ask->session);
	free(sn->ask);
	sn->ask = NULL;
}
