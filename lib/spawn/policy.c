// SPDX-License-Identifier: MIT OR GPL-2.0
#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conf.h"
#include "file.h"
#include "log.h"
#include "policy_rules.h"

#define GROUPS_MAX	RGATE_POLICY_GROUPS
#define MAX_RUNNING	64
#define MAX_QUEUED	1024
#define DEFAULT_SEARCH	"/usr/local/bin:/usr/bin:/bin"

struct parser {
	struct rgate_spawn_policy *to;
	const struct rgate_cluster *cluster;
};

static struct rgate_spawn_policy *policy_of(const struct rgate_conf *c)
{
	return ((const struct parser *)c->ctx)->to;
}

static int number(const struct rgate_conf *c, const char *what, const char *s, int64_t least,
		  int64_t most, int64_t *to)
{
	char *end;

	errno = 0;
	*to = strtoll(s, &end, 10);
	if (errno || end == s || *end || *to < least || *to > most)
		return rgate_conf_bad(c, "%s is '%s', and must be %lld to %lld", what, s,
			   (long long)least, (long long)most);
	return 0;
}

static int size(const struct rgate_conf *c, const char *s, uint64_t *to)
{
	static const char units[] = "KMGT";
	unsigned int shift = 0;
	const char *unit;
	char *end;

	errno = 0;
	*to = strtoull(s, &end, 10);
	unit = *end ? strchr(units, *end) : NULL;
	if (unit) {
		shift = 10 * (unsigned int)(unit - units + 1);
		end++;
	}
	if (errno || *s < '0' || *s > '9' || *end || !*to || *to > UINT64_MAX >> shift)
		return rgate_conf_bad(c, "'%s' is not a size such as 512M", s);
	*to <<= shift;
	return 0;
}

static int find_node(const struct rgate_conf *c, const char *what, uint32_t *id)
{
	struct rgate_cluster_node node = { .sz = sizeof(node) };

	if (rgate_cluster_find(((const struct parser *)c->ctx)->cluster, what, &node))
		return rgate_conf_bad(c, "the cluster has no node '%s'", what);
	*id = node.id;
	return 0;
}

/* A node, or * for all of them */
static int find_nodes(const struct rgate_conf *c, const char *what, uint32_t *mask)
{
	uint32_t id = 0;
	int err;

	*mask = (1U << RGATE_NODES_MAX) - 1;
	if (!strcmp(what, "*"))
		return 0;
	err = find_node(c, what, &id);
	if (!err)
		*mask = 1U << id;
	return err;
}

static int find_groups(struct rgate_policy_user *user)
{
	int n = 16, got = -1;
	gid_t *groups = NULL, *more;

	while (got < 0 && n <= GROUPS_MAX) {
		more = reallocarray(groups, (size_t)n, sizeof(*groups));
		if (!more)
			break;
		groups = more;
		got = n;
		if (getgrouplist(user->name, user->gid, groups, &got) < 0) {
			n = got > n ? got : n * 2;
			got = -1;
		}
	}
	if (got < 0) {
		free(groups);
		return -ENOMEM;
	}
	user->groups = groups;
	user->ngroups = (uint32_t)got;
	return 0;
}

/* gcc 12's analyzer loses what the user has. */
#ifndef __clang__
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wanalyzer-malloc-leak"
#endif
static int find_user(const struct rgate_conf *c, const char *name, struct rgate_policy_user *user)
{
	struct passwd pw, *found = NULL;
	char buf[4096];

	if (strlen(name) >= sizeof(user->name))
		return rgate_conf_bad(c, "the name of the user is too long");
	if (getpwnam_r(name, &pw, buf, sizeof(buf), &found) || !found)
		return rgate_conf_bad(c, "there is no user '%s'", name);
	if (!pw.pw_uid && strcmp(name, "root"))
		return rgate_conf_bad(c, "'%s' is root: it has to be called so", name);
	snprintf(user->name, sizeof(user->name), "%s", name);
	user->uid = pw.pw_uid;
	user->gid = pw.pw_gid;
	user->home = strdup(pw.pw_dir);
	user->shell = strdup(*pw.pw_shell ? pw.pw_shell : "/bin/sh");
	if (!user->home || !user->shell)
		return -ENOMEM;
	return find_groups(user);
}

#ifndef __clang__
#pragma GCC diagnostic pop
#endif

/* node NODE user USER [max-running N] [max-queued N] [admin] */
static int read_node(struct rgate_conf *c)
{
	struct rgate_policy_node *node;
	unsigned int i;
	int64_t value;
	uint32_t id = 0;
	int err;

	if (c->n < 4 || strcmp(c->word[2], "user"))
		return rgate_conf_bad(c, "node NODE user USER ...");
	err = find_node(c, c->word[1], &id);
	if (err)
		return err;
	node = &policy_of(c)->node[id];
	if (node->known)
		return rgate_conf_bad(c, "node '%s' has a user already", c->word[1]);
	err = find_user(c, c->word[3], &node->user);
	for (i = 4; i < c->n && !err; i++) {
		if (!strcmp(c->word[i], "admin")) {
			node->admin = true;
			continue;
		}
		if (i + 1 == c->n)
			return rgate_conf_bad(c, "what is '%s'?", c->word[i]);
		err = number(c, c->word[i], c->word[i + 1], 1, 1000000, &value);
		if (!strcmp(c->word[i], "max-running"))
			node->max_running = (uint32_t)value;
		else if (!strcmp(c->word[i], "max-queued"))
			node->max_queued = (uint32_t)value;
		else
			return rgate_conf_bad(c, "what is '%s'?", c->word[i]);
		i++;
	}
	node->known = !err;
	return err;
}

static int read_hash(const struct rgate_conf *c, const char *hex, uint8_t to[32])
{
	unsigned int i, byte;
	char pair[3] = "";

	if (strlen(hex) != 64 || strspn(hex, "0123456789abcdefABCDEF") != 64)
		return rgate_conf_bad(c, "sha256 has 64 hexadecimal digits");
	for (i = 0; i < 32; i++) {
		memcpy(pair, hex + 2 * (size_t)i, 2);
		byte = (unsigned int)strtoul(pair, NULL, 16);
		to[i] = (uint8_t)byte;
	}
	return 0;
}

static int read_args(struct rgate_conf *c, unsigned int first, struct rgate_policy_rule *rule)
{
	unsigned int n = c->n - first;

	rule->with_args = true;
	if (n && !strcmp(c->word[c->n - 1], "...")) {
		rule->rest = true;
		n--;
	}
	rule->nargs = n;
	rule->args = calloc(n + 1, sizeof(*rule->args));
	if (!rule->args)
		return -ENOMEM;
	if (n)
		memcpy(rule->args, c->word + first, n * sizeof(*rule->args));
	return 0;
}

/* allow NODE PATH [sha256 HEX] [args PATTERN...] */
static int read_allow(struct rgate_conf *c)
{
	struct rgate_policy_rule *rule;
	unsigned int i = 3;
	int err;

	if (c->n < 3)
		return rgate_conf_bad(c, "allow NODE PATH ...");
	rule = calloc(1, sizeof(*rule));
	if (!rule)
		return -ENOMEM;
	*policy_of(c)->last = rule;
	policy_of(c)->last = &rule->next;
	err = find_nodes(c, c->word[1], &rule->nodes);
	if (err)
		return err;
	if (*c->word[2] == '/')
		rule->path = c->word[2];
	else if (strcmp(c->word[2], "any"))
		return rgate_conf_bad(c, "'%s' is neither a path from / on nor any", c->word[2]);
	if (i + 1 < c->n && !strcmp(c->word[i], "sha256")) {
		err = read_hash(c, c->word[i + 1], rule->sha256);
		if (err)
			return err;
		rule->with_hash = true;
		i += 2;
	}
	if (i == c->n)
		return 0;
	if (strcmp(c->word[i], "args"))
		return rgate_conf_bad(c, "what is '%s'?", c->word[i]);
	return read_args(c, i + 1, rule);
}

/* env NODE PATTERN...: added to what is there */
static int read_env(struct rgate_conf *c)
{
	const char **list, **more;
	unsigned int i, n, id;
	uint32_t mask;
	int err;

	if (c->n < 3)
		return rgate_conf_bad(c, "env NODE PATTERN...");
	err = find_nodes(c, c->word[1], &mask);
	if (err)
		return err;
	for (id = 0; id < RGATE_NODES_MAX; id++) {
		if (!(mask & 1U << id))
			continue;
		list = policy_of(c)->node[id].env;
		for (n = 0; list && list[n]; n++)
			;
		more = reallocarray(list, n + c->n - 1, sizeof(*list));
		if (!more)
			return -ENOMEM;
		for (i = 2; i < c->n; i++)
			more[n++] = c->word[i];
		more[n] = NULL;
		policy_of(c)->node[id].env = more;
	}
	return 0;
}

static int set_limit(struct rgate_conf *c, struct rgate_policy_node *node, const char *what,
		     const char *value)
{
	int64_t v = 0;
	int err;

	if (!strcmp(what, "memory"))
		return size(c, value, &node->memory);
	err = number(c, what, value, strcmp(what, "nice") ? 1 : -20,
		     strcmp(what, "nice") ? 1000000000 : 19, &v);
	if (!strcmp(what, "wall"))
		node->wall_ms = (uint64_t)v * 1000;
	else if (!strcmp(what, "processes"))
		node->processes = (uint32_t)v;
	else if (!strcmp(what, "files"))
		node->files = (uint32_t)v;
	else if (!strcmp(what, "cpu"))
		node->cpu_s = (uint32_t)v;
	else if (!strcmp(what, "nice"))
		node->nice = (int32_t)v;
	else
		return rgate_conf_bad(c, "there is no limit '%s'", what);
	return err;
}

/* limit NODE WHAT VALUE ... */
static int read_limit(struct rgate_conf *c)
{
	unsigned int i, id;
	uint32_t mask;
	int err;

	if (c->n < 4 || c->n % 2)
		return rgate_conf_bad(c, "limit NODE WHAT VALUE ...");
	err = find_nodes(c, c->word[1], &mask);
	for (id = 0; id < RGATE_NODES_MAX; id++)
		for (i = 2; i < c->n && !err; i += 2)
			if (mask & 1U << id)
				err = set_limit(c, &policy_of(c)->node[id], c->word[i],
						c->word[i + 1]);
	return err;
}

static int read_path(struct rgate_conf *c)
{
	const char *s;

	if (c->n != 2)
		return rgate_conf_bad(c, "path DIRECTORY:DIRECTORY...");
	for (s = c->word[1]; s; s = strchr(s, ':')) {
		s += *s == ':';
		if (*s != '/')
			return rgate_conf_bad(c, "a directory of the path does not begin with /");
	}
	policy_of(c)->search = c->word[1];
	return 0;
}

static int read_count(struct rgate_conf *c, uint32_t *to)
{
	int64_t value;
	int err;

	if (c->n != 2)
		return rgate_conf_bad(c, "%s NUMBER", c->word[0]);
	err = number(c, c->word[0], c->word[1], 1, 1000000, &value);
	*to = err ? 0 : (uint32_t)value;
	return err;
}

/* no-new-privs NODE, need-cgroup NODE */
static int read_demand(struct rgate_conf *c)
{
	const bool privs = !strcmp(c->word[0], "no-new-privs");
	unsigned int id;
	uint32_t mask;
	int err;

	if (c->n != 2)
		return rgate_conf_bad(c, "%s NODE", c->word[0]);
	err = find_nodes(c, c->word[1], &mask);
	for (id = 0; id < RGATE_NODES_MAX && !err; id++) {
		if (!(mask & 1U << id))
			continue;
		if (privs)
			policy_of(c)->node[id].no_new_privs = true;
		else
			policy_of(c)->node[id].need_cgroup = true;
	}
	return err;
}

static int read_line(struct rgate_conf *c)
{
	if (!strcmp(c->word[0], "node"))
		return read_node(c);
	if (!strcmp(c->word[0], "allow"))
		return read_allow(c);
	if (!strcmp(c->word[0], "env"))
		return read_env(c);
	if (!strcmp(c->word[0], "limit"))
		return read_limit(c);
	if (!strcmp(c->word[0], "no-new-privs") || !strcmp(c->word[0], "need-cgroup"))
		return read_demand(c);
	if (!strcmp(c->word[0], "path"))
		return read_path(c);
	if (!strcmp(c->word[0], "max-running"))
		return read_count(c, &policy_of(c)->max_running);
	if (!strcmp(c->word[0], "max-queued"))
		return read_count(c, &policy_of(c)->max_queued);
	return rgate_conf_bad(c, "what is '%s'?", c->word[0]);
}

int rgate_policy_nothing(struct rgate_spawn_policy **out)
{
	struct rgate_spawn_policy *policy = calloc(1, sizeof(*policy));

	if (!policy)
		return -ENOMEM;
	policy->last = &policy->rules;
	policy->max_running = MAX_RUNNING;
	policy->max_queued = MAX_QUEUED;
	policy->search = DEFAULT_SEARCH;
	*out = policy;
	return 0;
}

int rgate_policy_parse(struct rgate_spawn_policy **out, const struct rgate_cluster *cluster,
		       const char *name, const char *text, size_t len)
{
	struct parser p = { .cluster = cluster };
	struct rgate_conf conf = { .ctx = &p, .name = name, .most = RGATE_CONF_WORDS };
	int err;

	if (len > RGATE_POLICY_MAX)
		return -EFBIG;
	err = rgate_policy_nothing(&p.to);
	if (err)
		return err;
	p.to->text = malloc(len + 1);
	err = -ENOMEM;
	if (!p.to->text)
		goto free_policy;
	memcpy(p.to->text, text, len);
	err = rgate_conf_read(&conf, p.to->text, len, RGATE_LEX_LINE, read_line);
	if (err)
		goto free_policy;
	*out = p.to;
	return 0;

free_policy:
	rgate_policy_free(p.to);
	return err;
}

int rgate_policy_read(const char *path, char **text, size_t *len)
{
	int err = rgate_file_read_own(path, RGATE_POLICY_MAX, text, len);

	if (err == -EPERM)
		rgate_err("%s: others may write it, or it is not root's: not read", path);
	return err;
}

int rgate_policy_load(struct rgate_spawn_policy **policy, const struct rgate_cluster *cluster,
		      const char *path)
{
	size_t len;
	char *text;
	int err;

	err = rgate_policy_read(path, &text, &len);
	if (err)
		return err;
	err = rgate_policy_parse(policy, cluster, path, text, len);
	free(text);
	return err;
}

void rgate_policy_free(struct rgate_spawn_policy *policy)
{
	struct rgate_policy_rule *rule;
	unsigned int i;

	if (!policy)
		return;
	while ((rule = policy->rules)) {
		policy->rules = rule->next;
		free(rule->args);
		free(rule);
	}
	for (i = 0; i < RGATE_NODES_MAX; i++) {
		free(policy->node[i].user.groups);
		free(policy->node[i].user.home);
		free(policy->node[i].user.shell);
		free(policy->node[i].env);
	}
	free(policy->text);
	free(policy);
}
