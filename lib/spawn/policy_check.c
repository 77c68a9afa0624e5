// SPDX-License-Identifier: MIT OR GPL-2.0
#include <errno.h>
#include <fnmatch.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "policy_rules.h"

static const char *const default_env[] = { "LANG", "LC_*", "TERM", "TZ", NULL };

__attribute__((format(printf, 3, 4)))
static int no(char why[RGATE_POLICY_WHY], int err, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(why, RGATE_POLICY_WHY, fmt, ap);
	va_end(ap);
	return err;
}

uint32_t rgate_policy_max_running(const struct rgate_spawn_policy *policy)
{
	return policy->max_running;
}

const char *rgate_policy_search(const struct rgate_spawn_policy *policy)
{
	return policy->search;
}

uint32_t rgate_policy_max_queued(const struct rgate_spawn_policy *policy, uint32_t id)
{
	const uint32_t own = id < RGATE_NODES_MAX ? policy->node[id].max_queued : 0;

	return own ? own : policy->max_queued;
}

const struct rgate_policy_node *rgate_policy_node(const struct rgate_spawn_policy *policy,
						  uint32_t id)
{
	return id < RGATE_NODES_MAX && policy->node[id].known ? &policy->node[id] : NULL;
}

/* /a/b, without //, /. and /.. and without / at the end */
static bool is_plain(const char *path)
{
	const char *p = path;
	size_t len;

	while (*p == '/') {
		len = strcspn(++p, "/");
		if (!len || (len == 1 && p[0] == '.') || (len == 2 && p[0] == '.' && p[1] == '.'))
			return false;
		p += len;
	}
	return p != path && !*p;
}

/* A pattern that is a path is for paths: with .. they would lead anywhere. */
static bool arg_fits(const char *pattern, const char *arg)
{
	if (*pattern != '/')
		return !fnmatch(pattern, arg, 0);
	return !strcmp(pattern, arg) || (is_plain(arg) && !fnmatch(pattern, arg, FNM_PATHNAME));
}

static const char *last_part(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/* By its name, too, some programs are told what to do. */
static bool args_fit(const struct rgate_policy_rule *rule, const char *path,
		     const struct rgate_spawn_parsed *req)
{
	const uint32_t n = req->argc - 1;
	uint32_t i;

	if (!rule->with_args)
		return true;
	if (strcmp(last_part(req->argv[0]), last_part(path)) || n < rule->nargs ||
	    (n > rule->nargs && !rule->rest))
		return false;
	for (i = 0; i < rule->nargs; i++)
		if (!arg_fits(rule->args[i], req->argv[i + 1]))
			return false;
	return true;
}

static const struct rgate_policy_rule *find_rule(const struct rgate_spawn_policy *policy,
						 uint32_t id, const char *path,
						 const struct rgate_spawn_parsed *req)
{
	const struct rgate_policy_rule *rule;

	for (rule = policy->rules; rule; rule = rule->next)
		if (rule->nodes & 1U << id &&
		    (!rule->path || !fnmatch(rule->path, path, FNM_PATHNAME)) &&
		    args_fit(rule, path, req))
			return rule;
	return NULL;
}

static int take(struct rgate_policy_grant *grant, const struct rgate_policy_rule *rule)
{
	grant->with_hash = rule->with_hash;
	memcpy(grant->sha256, rule->sha256, sizeof(grant->sha256));
	return 0;
}

/* A command without a path: the first that is allowed and there */
static int search(const struct rgate_spawn_policy *policy, uint32_t id,
		  const struct rgate_spawn_parsed *req, struct rgate_policy_grant *grant,
		  char why[RGATE_POLICY_WHY])
{
	const struct rgate_policy_rule *rule;
	bool allowed = false;
	const char *dir;
	size_t len;
	int n;

	for (dir = policy->search; *dir; dir += len + (dir[len] == ':')) {
		len = strcspn(dir, ":");
		n = snprintf(grant->path, sizeof(grant->path), "%.*s/%s", (int)len, dir,
			     req->exe);
		if (n >= (int)sizeof(grant->path) || !is_plain(grant->path))
			continue;
		rule = find_rule(policy, id, grant->path, req);
		if (!rule)
			continue;
		allowed = true;
		if (!access(grant->path, X_OK))
			return take(grant, rule);
	}
	if (allowed)
		return no(why, -ENOENT, "no such command");
	return no(why, -EACCES, "the policy does not allow this command to this node");
}

static int check_env(const struct rgate_policy_node *node, const struct rgate_spawn_parsed *req,
		     char why[RGATE_POLICY_WHY])
{
	const char *const *patterns = node->env ? node->env : default_env, *const *p;
	char name[256];
	size_t len;
	uint32_t i;

	for (i = 0; i < req->envc; i++) {
		len = strcspn(req->env[i], "=");
		if (len >= sizeof(name))
			return no(why, -EACCES, "a name in the environment is too long");
		memcpy(name, req->env[i], len);
		name[len] = '\0';
		for (p = patterns; *p && fnmatch(*p, name, 0); p++)
			;
		if (!*p)
			return no(why, -EACCES,
				  "the policy does not let this node set %.32s", name);
	}
	return 0;
}

static void clip64(uint64_t *value, uint64_t limit)
{
	if (limit && (!*value || *value > limit))
		*value = limit;
}

static void clip32(uint32_t *value, uint32_t limit)
{
	if (limit && (!*value || *value > limit))
		*value = limit;
}

int rgate_policy_path(const struct rgate_spawn_policy *policy, uint32_t id,
		      const struct rgate_spawn_parsed *req, struct rgate_policy_grant *grant,
		      char why[RGATE_POLICY_WHY])
{
	const struct rgate_policy_rule *rule;

	if (!rgate_policy_node(policy, id))
		return no(why, -EACCES, "the policy lets this node run nothing");
	if (strlen(req->exe) >= sizeof(grant->path))
		return no(why, -ENAMETOOLONG, "the path is too long");
	if (!strchr(req->exe, '/'))
		return search(policy, id, req, grant, why);
	if (!is_plain(req->exe))
		return no(why, -EINVAL, "the path must be absolute, without . and ..");
	rule = find_rule(policy, id, req->exe, req);
	if (!rule)
		return no(why, -EACCES, "the policy does not allow this command to this node");
	snprintf(grant->path, sizeof(grant->path), "%s", req->exe);
	return take(grant, rule);
}

int rgate_policy_limits(const struct rgate_spawn_policy *policy, uint32_t id,
			struct rgate_spawn_parsed *req, char why[RGATE_POLICY_WHY])
{
	const struct rgate_policy_node *node = rgate_policy_node(policy, id);
	int err;

	if (!node)
		return no(why, -EACCES, "the policy lets this node run nothing");
	err = check_env(node, req, why);
	if (err)
		return err;
	clip64(&req->wall_ms, node->wall_ms);
	clip64(&req->memory, node->memory);
	clip32(&req->processes, node->processes);
	clip32(&req->files, node->files);
	clip32(&req->cpu_s, node->cpu_s);
	if (req->nice < node->nice)
		req->nice = node->nice;
	return 0;
}

int rgate_policy_check(const struct rgate_spawn_policy *policy, uint32_t id,
		       struct rgate_spawn_parsed *req, struct rgate_policy_grant *grant,
		       char why[RGATE_POLICY_WHY])
{
	int err = rgate_policy_path(policy, id, req, grant, why);

	return err ? err : rgate_policy_limits(policy, id, req, why);
}
