// SPDX-License-Identifier: MIT OR GPL-2.0
#include <arpa/inet.h>
#include <errno.h>
#include <limits.h>
#include <openssl/crypto.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>

#include <ringgate/rgate_cluster.h>

#include "cluster_copy.h"
#include "conf.h"
#include "file.h"
#include "log.h"
#include "opts.h"
#include "secret.h"

#define DEFAULT_PATH	"/etc/ringgate/cluster.conf"
#define DEFAULT_KEY	"node%i.key"
#define DEFAULT_TIMEOUT	3000U	/* ms */
#define FILE_MAX	65536
#define LINE_LENGTH	511
#define WORDS_MAX	6

struct rgate_cluster {
	unsigned int n;
	struct rgate_cluster_node node[RGATE_NODES_MAX];	/* in order of ids */
	bool has_key[RGATE_NODES_MAX];	/* by id: its public one */
	uint32_t provider;
	uint32_t timeout_ms;
	char *dir;			/* of the file, with a / at its end, or "" */
	char *key;			/* as the file has it */
};

struct parser {
	struct rgate_cluster *c;
	struct rgate_conf conf;
	bool seen_timeout;
	bool draft;		/* public keys may be missing yet */
	/* an address, in the provider's form */
	int (*set)(struct parser *p, struct rgate_cluster_node *node, const char *word);
};

#define bad(p, ...)	rgate_conf_bad(&(p)->conf, __VA_ARGS__)

static int number(const char *word, uint32_t least, uint32_t most, uint32_t *value)
{
	uint64_t v = 0;
	const char *c;

	for (c = word; *c; c++) {
		if (*c < '0' || *c > '9' || c - word > 9)
			return -EINVAL;
		v = v * 10 + (uint64_t)(*c - '0');
	}
	if (c == word || v < least || v > most)
		return -EINVAL;
	*value = (uint32_t)v;
	return 0;
}

static int on_shared_key(struct parser *p)
{
	return bad(p, "there is no key for all nodes any more, each has its own: remove this line, and let `ringgate cluster keygen` make them");
}

static int on_private_key(struct parser *p)
{
	const char *c;

	if (p->c->key)
		return bad(p, "the private key is given twice");
	if (p->conf.n != 2)
		return bad(p, "write `private-key FILE`");
	for (c = strchr(p->conf.word[1], '%'); c; c = strchr(c + 1, '%'))
		if (c[1] != 'i')
			return bad(p, "'%.60s': only %%i is known, which is the node's id",
				   p->conf.word[1]);
	p->c->key = strdup(p->conf.word[1]);
	return p->c->key ? 0 : -ENOMEM;
}

static int on_public_key(struct parser *p)
{
	struct rgate_cluster *c = p->c;
	struct rgate_cluster_node *node = NULL;
	uint8_t key[RGATE_KEY_LEN];
	unsigned int i;
	uint32_t id;

	if (p->conf.n != 3)
		return bad(p, "write `public-key ID BASE64`");
	if (number(p->conf.word[1], 0, RGATE_NODES_MAX - 1, &id))
		return bad(p, "'%.60s' is no id: 0 to %d", p->conf.word[1], RGATE_NODES_MAX - 1);
	if (rgate_key_from_text(key, p->conf.word[2]))
		return bad(p, "'%.60s' is no public key: 44 characters of base64, as `ringgate cluster keygen` writes them",
			   p->conf.word[2]);
	for (i = 0; i < c->n; i++) {
		if (c->node[i].id == id)
			node = &c->node[i];
		else if (c->has_key[c->node[i].id] &&
			 !memcmp(c->node[i].public_key, key, sizeof(key)))
			return bad(p, "nodes %u and %u have the same public key: each needs its own",
				   c->node[i].id, id);
	}
	if (!node)
		return bad(p, "node %u has no line before this: its public key comes after it", id);
	if (c->has_key[id])
		return bad(p, "the public key of node %u is given twice", id);
	c->has_key[id] = true;
	memcpy(node->public_key, key, sizeof(key));
	return 0;
}

static int on_timeout(struct parser *p)
{
	if (p->seen_timeout)
		return bad(p, "the timeout is given twice");
	p->seen_timeout = true;
	if (p->conf.n != 2 || number(p->conf.word[1], 100, 60000, &p->c->timeout_ms))
		return bad(p, "write `timeout MS`, 100 to 60000");
	return 0;
}

/* The one form in which addresses are compared: IPv6 has many for the same. */
static int normal(const char *text, char out[INET6_ADDRSTRLEN])
{
	const int family = strchr(text, ':') ? AF_INET6 : AF_INET;
	struct in6_addr bin;

	if (inet_pton(family, text, &bin) != 1)
		return -EINVAL;
	/* On which network device it is would not be known. */
	if (family == AF_INET6 && IN6_IS_ADDR_LINKLOCAL(&bin))
		return -EADDRNOTAVAIL;
	return inet_ntop(family, &bin, out, INET6_ADDRSTRLEN) ? 0 : -errno;
}

/* ADDRESS, ADDRESS:PORT, or [IPv6]:PORT */
static int set_address(struct parser *p, struct rgate_cluster_node *node, const char *word)
{
	const char *addr = word, *port = NULL;
	char buf[sizeof(node->addr)], text[INET6_ADDRSTRLEN];
	uint32_t v;
	size_t len = strlen(word);
	int err;

	if (*word == '[') {
		addr = word + 1;
		port = strchr(word, ']');
		len = port ? (size_t)(port - addr) : sizeof(buf);
		if (port && *++port && *port != ':')
			len = sizeof(buf);
	} else if (strchr(word, ':') && strchr(word, ':') == strrchr(word, ':')) {
		port = strchr(word, ':');
		len = (size_t)(port - word);
	}
	if (len >= sizeof(buf))
		return bad(p, "'%.60s' is no address: 192.0.2.1, 192.0.2.1:7471 or [2001:db8::1]:7471",
			   word);
	memcpy(buf, addr, len);
	buf[len] = '\0';
	err = normal(buf, text);
	if (err == -EADDRNOTAVAIL)
		return bad(p, "'%.60s' is a link-local address, which is not enough", word);
	if (err)
		return bad(p, "'%.60s' is no address: 192.0.2.1, 192.0.2.1:7471 or [2001:db8::1]:7471",
			   word);
	v = RGATE_CLUSTER_PORT;
	if (port && *port && number(port + 1, 1, 65535, &v))
		return bad(p, "'%.60s' is no port: 1 to 65535", port + 1);
	node->port = (uint16_t)v;
	memcpy(node->addr, text, sizeof(text));
	return 0;
}

static int set_path(struct parser *p, struct rgate_cluster_node *node, const char *word)
{
	if (*word != '/' || strlen(word) >= sizeof(((struct sockaddr_un *)NULL)->sun_path))
		return bad(p, "'%.60s' is no path of a socket: with `provider local` an address is an absolute path of up to 107 characters",
			   word);
	snprintf(node->addr, sizeof(node->addr), "%s", word);
	return 0;
}

static int on_provider(struct parser *p)
{
	static const struct {
		const char *word;
		uint32_t number;
		int (*set)(struct parser *p, struct rgate_cluster_node *node, const char *word);
	} providers[] = {
		{ "verbs", RGATE_PROVIDER_VERBS, set_address },
		{ "local", RGATE_PROVIDER_LOCAL, set_path },
	};
	unsigned int i;

	if (p->c->provider)
		return bad(p, "the provider is given twice");
	for (i = 0; p->conf.n == 2 && i < sizeof(providers) / sizeof(providers[0]); i++)
		if (!strcmp(p->conf.word[1], providers[i].word)) {
			p->c->provider = providers[i].number;
			p->set = providers[i].set;
			return 0;
		}
	return bad(p, "write `provider verbs` (RDMA) or `provider local` (one machine)");
}

static int set_name(struct parser *p, struct rgate_cluster_node *node, const char *word)
{
	uint32_t v;

	if (strlen(word) >= sizeof(node->name) || !number(word, 0, UINT32_MAX, &v))
		return bad(p, "'%.60s' is no name: up to %zu characters, not only digits", word,
			   sizeof(node->name) - 1);
	snprintf(node->name, sizeof(node->name), "%s", word);
	return 0;
}

static int insert(struct parser *p, const struct rgate_cluster_node *node)
{
	struct rgate_cluster *c = p->c;
	unsigned int i;

	for (i = 0; i < c->n; i++) {
		const struct rgate_cluster_node *o = &c->node[i];

		if (o->id == node->id)
			return bad(p, "node %u is given twice", node->id);
		if (!strcmp(o->name, node->name))
			return bad(p, "two nodes are named '%s'", node->name);
		if (!strcmp(o->addr, node->addr) && o->port == node->port)
			return bad(p, "nodes %u and %u have the same address", o->id, node->id);
		if (!strchr(o->addr, ':') != !strchr(node->addr, ':') &&
		    c->provider == RGATE_PROVIDER_VERBS)
			return bad(p, "nodes %u and %u cannot reach each other: one has an IPv4 address, one an IPv6 one",
				   o->id, node->id);
		if (o->role == RGATE_ROLE_GATEWAY && node->role == RGATE_ROLE_GATEWAY)
			return bad(p, "nodes %u and %u are both gateways: there is one", o->id,
				   node->id);
	}
	for (i = c->n++; i && c->node[i - 1].id > node->id; i--)
		c->node[i] = c->node[i - 1];
	c->node[i] = *node;
	return 0;
}

static int on_node(struct parser *p)
{
	struct rgate_cluster_node node = { .sz = sizeof(node) };
	int err;

	if (!p->c->provider)
		return bad(p, "`provider` comes before the nodes: their addresses depend on it");
	if (p->conf.n < 4 || p->conf.n > 5)
		return bad(p, "write `node ID gateway|compute ADDRESS [NAME]`");
	if (number(p->conf.word[1], 0, RGATE_NODES_MAX - 1, &node.id))
		return bad(p, "'%.60s' is no id: 0 to %d", p->conf.word[1], RGATE_NODES_MAX - 1);
	if (!strcmp(p->conf.word[2], "gateway"))
		node.role = RGATE_ROLE_GATEWAY;
	else if (!strcmp(p->conf.word[2], "compute"))
		node.role = RGATE_ROLE_COMPUTE;
	else
		return bad(p, "'%.60s' is no role: gateway or compute", p->conf.word[2]);
	err = p->set(p, &node, p->conf.word[3]);
	if (err)
		return err;
	snprintf(node.name, sizeof(node.name), "node%u", node.id);
	err = p->conf.n == 5 ? set_name(p, &node, p->conf.word[4]) : 0;
	return err ? err : insert(p, &node);
}

static int on_line(struct rgate_conf *conf)
{
	struct parser *p = conf->ctx;
	static const struct {
		const char *word;
		int (*fn)(struct parser *p);
	} known[] = {
		{ "provider", on_provider }, { "timeout", on_timeout }, { "node", on_node },
		{ "private-key", on_private_key }, { "public-key", on_public_key },
		{ "key", on_shared_key },
	};
	unsigned int i;

	for (i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (!strcmp(p->conf.word[0], known[i].word))
			return known[i].fn(p);
	return bad(p, "unknown word '%.60s': provider, private-key, timeout, node or public-key",
		   p->conf.word[0]);
}

static int check_whole(struct parser *p)
{
	unsigned int i, gateways = 0;

	if (!p->c->provider)
		return bad(p, "no `provider verbs` or `provider local`");
	for (i = 0; i < p->c->n; i++)
		gateways += p->c->node[i].role == RGATE_ROLE_GATEWAY;
	if (p->c->n < 2)
		return bad(p, "%u node%s: a cluster has 2 to %d", p->c->n, p->c->n == 1 ? "" : "s",
			   RGATE_NODES_MAX);
	if (!gateways)
		return bad(p, "no node is the gateway");
	for (i = 0; i < p->c->n && !p->draft; i++)
		if (!p->c->has_key[p->c->node[i].id])
			return bad(p, "node %u (%s) has no `public-key` line: `ringgate cluster keygen` makes its keys",
				   p->c->node[i].id, p->c->node[i].name);
	return 0;
}

static int parse(struct parser *p, char *text, size_t len)
{
	int err;

	p->conf.ctx = p;
	p->conf.most = WORDS_MAX;
	err = rgate_conf_read(&p->conf, text, len, LINE_LENGTH, on_line);
	return err ? err : check_whole(p);
}

/* @dir_len: of p->name, which is before the name of the file itself; @text: as of the lexer */
static int make(struct rgate_cluster **out, struct parser *p, size_t dir_len, char *text,
		size_t len)
{
	int err = -ENOMEM;

	p->c = calloc(1, sizeof(*p->c));
	if (!p->c)
		return err;
	p->c->timeout_ms = DEFAULT_TIMEOUT;
	p->c->dir = strndup(p->conf.name, dir_len);
	if (p->c->dir)
		err = parse(p, text, len);
	if (err)
		rgate_cluster_destroy(p->c);
	else
		*out = p->c;
	return err;
}

int rgate_cluster_parse(struct rgate_cluster **out, const char *name, const char *text, size_t len)
{
	struct parser p = { .conf = { .name = name ? name : "cluster" } };
	char *copy;
	int err;

	if (!out || (len && !text))
		return -EINVAL;
	copy = malloc(len + 1);
	if (!copy)
		return -ENOMEM;
	if (len)
		memcpy(copy, text, len);
	err = make(out, &p, 0, copy, len);
	free(copy);
	return err;
}

static int load(struct rgate_cluster **out, const char *path, bool draft)
{
	const char *env = getenv("RGATE_CLUSTER"), *slash;
	struct parser p = { .draft = draft };
	char *text = NULL;
	size_t len = 0;
	int err;

	if (!out)
		return -EINVAL;
	if (!path)
		path = env && *env ? env : DEFAULT_PATH;
	p.conf.name = path;
	err = rgate_file_read(path, FILE_MAX, &text, &len);
	if (err) {
		rgate_err("cannot read the cluster file %s: %s", path, strerror(-err));
		return err;
	}
	slash = strrchr(path, '/');
	err = make(out, &p, slash ? (size_t)(slash + 1 - path) : 0, text, len);
	free(text);
	return err;
}

int rgate_cluster_load(struct rgate_cluster **out, const char *path)
{
	return load(out, path, false);
}

int rgate_cluster_load_draft(struct rgate_cluster **out, const char *path)
{
	return load(out, path, true);
}

void rgate_cluster_destroy(struct rgate_cluster *cluster)
{
	if (!cluster)
		return;
	free(cluster->dir);
	free(cluster->key);
	free(cluster);
}

unsigned int rgate_cluster_nodes(const struct rgate_cluster *cluster)
{
	return cluster->n;
}

int rgate_cluster_node(const struct rgate_cluster *cluster, unsigned int i,
		       struct rgate_cluster_node *node)
{
	if (i >= cluster->n)
		return -ENOENT;
	return rgate_info_copy(node, &cluster->node[i], sizeof(*node));
}

int rgate_cluster_find(const struct rgate_cluster *cluster, const char *what,
		       struct rgate_cluster_node *node)
{
	const char *addr = what;
	uint32_t id = RGATE_NODES_MAX;
	char text[INET6_ADDRSTRLEN];
	unsigned int i;

	if (!what)
		return -EINVAL;
	if (cluster->provider == RGATE_PROVIDER_VERBS && !normal(what, text))
		addr = text;
	(void)number(what, 0, RGATE_NODES_MAX - 1, &id);
	for (i = 0; i < cluster->n; i++) {
		const struct rgate_cluster_node *n = &cluster->node[i];

		if (n->id == id || !strcmp(n->name, what) || !strcmp(n->addr, addr))
			return rgate_info_copy(node, n, sizeof(*n));
	}
	return -ENOENT;
}

int rgate_cluster_gateway(const struct rgate_cluster *cluster, struct rgate_cluster_node *node)
{
	unsigned int i = 0;

	/* check_whole() has seen that there is one. */
	while (i < cluster->n - 1 && cluster->node[i].role != RGATE_ROLE_GATEWAY)
		i++;
	return rgate_info_copy(node, &cluster->node[i], sizeof(*node));
}

static bool is_whole(const struct rgate_cluster_node *node)
{
	return node->sz == sizeof(*node) && node->id < RGATE_NODES_MAX &&
	       memchr(node->name, '\0', sizeof(node->name)) &&
	       memchr(node->addr, '\0', sizeof(node->addr));
}

int rgate_cluster_copy(struct rgate_cluster **out, uint32_t provider,
		       const struct rgate_cluster_node *nodes, unsigned int n)
{
	struct rgate_cluster *c;
	unsigned int i;

	if (n > RGATE_NODES_MAX)
		return -EINVAL;
	for (i = 0; i < n; i++)
		if (!is_whole(&nodes[i]))
			return -EINVAL;
	c = calloc(1, sizeof(*c));
	if (!c)
		return -ENOMEM;
	c->n = n;
	c->provider = provider;
	memcpy(c->node, nodes, n * sizeof(*nodes));
	*out = c;
	return 0;
}

uint32_t rgate_cluster_provider(const struct rgate_cluster *cluster)
{
	return cluster->provider;
}

static const struct rgate_cluster_node *by_id(const struct rgate_cluster *cluster, uint32_t id)
{
	unsigned int i;

	for (i = 0; i < cluster->n; i++)
		if (cluster->node[i].id == id)
			return &cluster->node[i];
	return NULL;
}

int rgate_cluster_key_path(const struct rgate_cluster *cluster, uint32_t id, char *path, size_t len)
{
	const char *c = cluster->key ? cluster->key : DEFAULT_KEY;
	size_t at = 0;

	if (!by_id(cluster, id))
		return -ENOENT;
	if (*c != '/')
		at = (size_t)snprintf(path, len, "%s", cluster->dir);
	for (; *c && at < len; c++)
		if (*c == '%')
			c++, path[at++] = (char)('0' + id);
		else
			path[at++] = *c;
	if (at >= len)
		return -ENAMETOOLONG;
	path[at] = '\0';
	return 0;
}

int rgate_cluster_read_key(const struct rgate_cluster *cluster, uint32_t id,
			   uint8_t key[RGATE_KEY_LEN])
{
	char path[PATH_MAX];
	int err;

	err = rgate_cluster_key_path(cluster, id, path, sizeof(path));
	if (!err)
		err = rgate_key_load(key, path);
	if (err)
		return err;
	err = rgate_secret_check(by_id(cluster, id), key);
	if (err)
		OPENSSL_cleanse(key, RGATE_KEY_LEN);
	return err;
}

uint32_t rgate_cluster_timeout_ms(const struct rgate_cluster *cluster)
{
	return cluster->timeout_ms;
}
