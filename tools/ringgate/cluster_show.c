// SPDX-License-Identifier: MIT OR GPL-2.0
/* ringgate cluster show: who is in the cluster file, and whether the keys here are right. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <ringgate/rgate_key.h>

#include "address.h"
#include "cluster.h"
#include "cmd.h"
#include "json.h"
#include "table.h"
#include "util.h"

#define ADDRESS_TEXT	128

struct show_args {
	const char *cluster;
	const char *node;
	bool json;
};

struct shown {
	struct rgate_cluster_node n;
	bool here;			/* it is this machine, or may be */
	char public[RGATE_KEY_TEXT];	/* "": the file has none */
	char place[PATH_MAX];		/* of its private key */
	const char *private;		/* what is there, in a word; NULL: nothing to say of it */
};

/* A word for what @err of rgate_key_load() says of @path */
static const char *why_not(int err, const char *path)
{
	switch (err) {
	case -ENOENT:
		return "missing";
	case -EACCES:
		return access(path, R_OK) ? "unreadable" : "exposed";
	case -EINVAL:
		return "damaged";
	default:
		return "unreadable";
	}
}

/* The private key of a node of this machine. EXIT_OK, or a message was printed */
static int check_private(struct shown *s, const char *file)
{
	uint8_t key[RGATE_KEY_LEN], pub[RGATE_KEY_LEN];
	int err;

	err = rgate_key_load(key, s->place);
	if (err) {
		s->private = why_not(err, s->place);
		return fail(err, "node %s", s->n.name);
	}
	err = rgate_key_public(pub, key);
	explicit_bzero(key, sizeof(key));
	if (err)
		return fail(err, "node %s", s->n.name);
	s->private = "fits";
	if (!cluster_has_key(&s->n) || !memcmp(pub, s->n.public_key, sizeof(pub)))
		return EXIT_OK;
	s->private = "other";
	say("node %s: %s is not the key that %s has for it: `ringgate cluster pubkey <%s` prints what belongs there",
	    s->n.name, s->place, file, s->place);
	return EXIT_FAIL;
}

static int look(const struct rgate_cluster *cluster, const char *file, struct shown *s)
{
	int err, ret = EXIT_OK;

	err = rgate_cluster_key_path(cluster, s->n.id, s->place, sizeof(s->place));
	if (err)
		return fail(err, "node %s", s->n.name);
	if (cluster_has_key(&s->n)) {
		rgate_key_to_text(s->public, s->n.public_key);
	} else {
		say("node %s has no public key in %s: `ringgate cluster keygen -C %s -n %u` on that node prints the line",
		    s->n.name, file, file, s->n.id);
		ret = EXIT_FAIL;
	}
	/* Of nodes elsewhere there is none, unless they are made here for all. */
	if (!s->here && access(s->place, F_OK))
		return ret;
	return check_private(s, file) || ret ? EXIT_FAIL : EXIT_OK;
}

static const char *role_name(uint32_t role)
{
	return role == RGATE_ROLE_GATEWAY ? "gateway" : "compute";
}

static const char *address_text(char buf[ADDRESS_TEXT], const struct rgate_cluster_node *n)
{
	const bool v6 = n->port && strchr(n->addr, ':');

	if (!n->port || n->port == RGATE_CLUSTER_PORT)
		return n->addr;
	snprintf(buf, ADDRESS_TEXT, v6 ? "[%s]:%u" : "%s:%u", n->addr, n->port);
	return buf;
}

static void print_text(const struct shown *s, unsigned int n)
{
	char buf[ADDRESS_TEXT];
	struct table t;
	unsigned int i;

	if (table_init(&t, "ID <NAME <ROLE <ADDRESS <HERE <PUBLIC-KEY <PRIVATE-KEY"))
		return;
	for (i = 0; i < n; i++) {
		table_cell(&t, "%u", s[i].n.id);
		table_cell(&t, "%s", s[i].n.name);
		table_cell(&t, "%s", role_name(s[i].n.role));
		table_cell(&t, "%s", address_text(buf, &s[i].n));
		table_cell(&t, "%s", s[i].here ? "yes" : "-");
		table_cell(&t, "%s", *s[i].public ? s[i].public : "-");
		table_cell(&t, "%s", s[i].private ? s[i].private : "-");
	}
	table_print(&t, stdout);
	table_free(&t);
}

static void print_json(const struct shown *s, unsigned int n)
{
	struct json j;
	unsigned int i;

	json_init(&j, stdout, true);
	json_array(&j, NULL);
	for (i = 0; i < n; i++) {
		json_object(&j, NULL);
		json_u64(&j, "id", s[i].n.id);
		json_str(&j, "name", s[i].n.name);
		json_str(&j, "role", role_name(s[i].n.role));
		json_str(&j, "address", s[i].n.addr);
		if (s[i].n.port)
			json_u64(&j, "port", s[i].n.port);
		json_bool(&j, "here", s[i].here);
		json_str(&j, "public_key", *s[i].public ? s[i].public : NULL);
		json_str(&j, "private_key_file", s[i].place);
		json_str(&j, "private_key", s[i].private);
		json_object_end(&j);
	}
	json_array_end(&j);
	json_end(&j);
}

/* Which of them this machine is: of processes of one machine all are, unless one is named. */
static void find_here(const struct rgate_cluster *cluster, const struct rgate_cluster_node *self,
		      struct shown *s, unsigned int n)
{
	const bool local = rgate_cluster_provider(cluster) == RGATE_PROVIDER_LOCAL;
	unsigned int i;

	for (i = 0; i < n; i++)
		s[i].here = self ? s[i].n.id == self->id : local || address_is_here(s[i].n.addr);
}

static int show(const struct rgate_cluster *cluster, const struct show_args *a)
{
	static struct shown s[RGATE_NODES_MAX];
	struct rgate_cluster_node self;
	const char *name = a->node ? a->node : getenv("RGATE_NODE");
	unsigned int i, n = rgate_cluster_nodes(cluster);
	int ret = EXIT_OK;

	if (name && *name && cluster_self(cluster, name, &self)) {
		say("the cluster has no node '%s'", name);
		return EXIT_USAGE;
	}
	for (i = 0; i < n; i++) {
		s[i] = (struct shown){ .n.sz = sizeof(s[i].n) };
		(void)rgate_cluster_node(cluster, i, &s[i].n);
	}
	find_here(cluster, name && *name ? &self : NULL, s, n);
	for (i = 0; i < n; i++)
		if (look(cluster, cluster_path(a->cluster), &s[i]) != EXIT_OK)
			ret = EXIT_FAIL;
	(a->json ? print_json : print_text)(s, n);
	return ret;
}

static error_t parse_opt(int key, char *arg, struct argp_state *state)
{
	struct show_args *a = state->input;

	switch (key) {
	case 'C':
		a->cluster = arg;
		break;
	case 'n':
		a->node = arg;
		break;
	case 'j':
		a->json = true;
		break;
	case ARGP_KEY_ARG:
		argp_error(state, "'%s' is not expected", arg);
		break;
	default:
		return ARGP_ERR_UNKNOWN;
	}
	return 0;
}

int cluster_show(int argc, char **argv)
{
	static const struct argp_option options[] = {
		OPT_JSON,
		{ "cluster", 'C', "FILE", 0, "The cluster's file", 0 },
		{ "node", 'n', "NODE", 0, "Which node this machine is (default: the one that has "
		  "an address of it)", 0 },
		{ 0 }
	};
	static const struct argp argp = {
		.options = options,
		.parser = parse_opt,
		.doc = "The nodes of the cluster file with their public keys, and whether the "
		       "private key of this machine is there, its owner's alone, and the right one.",
	};
	struct show_args a = { 0 };
	struct rgate_cluster *cluster;
	int ret;

	cmd_parse(&argp, argc, argv, &a);
	ret = cluster_load(&cluster, a.cluster);
	if (ret != EXIT_OK)
		return ret;
	ret = show(cluster, &a);
	rgate_cluster_destroy(cluster);
	return ret;
}
