// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * What can be known to be wrong before anything is changed: the same for --check and for
 * the start, which goes on where this finds nothing.
 */
#include <errno.h>
#include <grp.h>
#include <libgen.h>
#include <linux/filter.h>
#include <net/if.h>
#include <netinet/in.h>
#include <pwd.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <ringgate/rgate_session.h>

#include "address.h"
#include "requests.h"
#include "ringgated.h"
#include "util.h"

static int check_names(const struct config *c)
{
	if (c->user && !getpwnam(c->user)) {
		say("there is no user '%s'", c->user);
		return -ENOENT;
	}
	if (c->group && !getgrnam(c->group)) {
		say("there is no group '%s'", c->group);
		return -ENOENT;
	}
	if (c->requests_group && !getgrnam(c->requests_group)) {
		say("there is no group '%s'", c->requests_group);
		return -ENOENT;
	}
	return 0;
}

/* The directory of @path, for a file to be made there */
static int check_directory(const char *what, const char *path)
{
	char copy[512], *dir;
	struct stat st;
	int err = 0;

	if (snprintf(copy, sizeof(copy), "%s", path) >= (int)sizeof(copy))
		return -ENAMETOOLONG;
	dir = dirname(copy);
	if (stat(dir, &st) < 0 || access(dir, W_OK | X_OK) < 0)
		err = -errno;
	else if (!S_ISDIR(st.st_mode))
		err = -ENOTDIR;
	if (err)
		say("%s cannot be written to %s: %s", what, dir, strerror(-err));
	return err;
}

static int check_socket(const char *path)
{
	struct stat st;

	if (strlen(path) >= sizeof(((struct sockaddr_un *)NULL)->sun_path)) {
		say("the socket's path is too long: %s", path);
		return -ENAMETOOLONG;
	}
	if (!lstat(path, &st) && !S_ISSOCK(st.st_mode)) {
		say("%s is there, and no socket", path);
		return -EEXIST;
	}
	/* their directory is made at the start */
	if (!strcmp(path, RGATE_DAEMON_SOCKET) || !strcmp(path, RGATE_SESSION_SOCKET))
		return 0;
	return check_directory("the socket", path);
}

static int check_requests(const struct config *c)
{
	const char *path = requests_path(c);
	int err = requests_check(c);

	if (err || !path)
		return err;
	if (!strcmp(path, c->socket)) {
		say("the socket of requests is that of the daemon: %s", path);
		return -EINVAL;
	}
	return check_socket(path);
}

static int check_key(const struct daemon *d)
{
	uint8_t key[RGATE_KEY_LEN];
	int err = rgate_cluster_read_key(d->cluster, d->self.id, key);

	explicit_bzero(key, sizeof(key));
	return err;
}

static int check_size(const struct source_conf *s, const char *what, uint32_t v, uint32_t least,
		      uint32_t most)
{
	if (!v || (v >= least && v <= most && !(v & (v - 1))))
		return 0;
	say("source %s: %s: %u is no power of two from %u to %u", s->at, what, v, least, most);
	return -EINVAL;
}

static int check_filter(const struct source_conf *s)
{
	struct sock_fprog prog;
	char why[256] = "";
	int err;

	if (!s->filter)
		return 0;
	if (s->kind == SOURCE_UDP) {
		say("source %s: a UDP socket takes no filter", s->at);
		return -EINVAL;
	}
	err = rgate_filter_compile(s->at, s->filter, &prog, why, sizeof(why));
	if (err)
		say("source %s: filter: %s", s->at, *why ? why : strerror(-err));
	else
		rgate_filter_free(&prog);
	return err;
}

/* The address is one of this machine: at a port that nobody has, as it may be in use */
static int check_udp(const struct source_conf *s)
{
	struct sockaddr_storage addr;
	const char *why;
	socklen_t len;
	int sock, err;

	err = address_parse(s->at, &addr, &len, &why);
	if (err) {
		say("source %s: %s", s->at, why);
		return err;
	}
	sock = socket(addr.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (sock < 0)
		return -errno;
	/* at the same place in both */
	((struct sockaddr_in *)(void *)&addr)->sin_port = 0;
	err = bind(sock, (struct sockaddr *)&addr, len) < 0 ? -errno : 0;
	close(sock);
	if (err)
		say("source %s: %s", s->at, strerror(-err));
	return err;
}

/* May it be opened? */
static int check_kind(const struct source_conf *s)
{
	struct rgate_ctl *ctl;
	int err, sock;

	if (!if_nametoindex(s->at)) {
		say("source %s: there is no such network device", s->at);
		return -ENODEV;
	}
	if (s->kind == SOURCE_MODULE) {
		err = rgate_ctl_open(&ctl);
		if (err == -ENOENT)
			say("source %s: the module is not loaded: ringgate load", s->at);
		else if (err)
			say("source %s: the module does not answer: %s", s->at, strerror(-err));
		else
			rgate_ctl_close(ctl);
		return err;
	}
	/* of no protocol: nothing is received */
	sock = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0);
	if (sock < 0) {
		err = -errno;
		say("source %s: no packet socket: %s", s->at, strerror(-err));
		return err;
	}
	close(sock);
	return 0;
}

static int check_source(const struct source_conf *s)
{
	int err = check_size(s, "slots", s->slots, RGATE_SLOTS_MIN, RGATE_SLOTS_MAX);

	if (!err)
		err = check_size(s, "slot_size", s->slot_size, RGATE_SLOT_SIZE_MIN,
				 RGATE_SLOT_SIZE_MAX);
	if (!err)
		err = s->kind == SOURCE_UDP ? check_udp(s) : check_kind(s);
	return err ? err : check_filter(s);
}

static int check_gateway(struct daemon *d)
{
	const struct config *c = &d->conf;
	unsigned int i;
	int err;

	if (c->ring_memory) {
		say("ring-memory is for compute nodes, and this one is the gateway");
		return -EINVAL;
	}
	err = rules_check(d);
	if (!err && c->steer)
		err = check_directory("the rules", c->steer);
	for (i = 0; !err && i < c->nsources; i++)
		err = check_source(&c->sources[i]);
	return err;
}

static int check_compute(const struct config *c)
{
	const char *what = c->nsources ? "source" : c->steer ? "steer" : c->spin_us ? "spin" : NULL;

	if (!what)
		return 0;
	say("%s is for the gateway, and this is a compute node", what);
	return -EINVAL;
}

static int check_spawn(struct daemon *d)
{
	const struct config *c = &d->conf;
	struct stat st;

	if (!c->spawn_policy && c->spawn_cgroup) {
		say("spawn cgroup without spawn policy: nothing is run");
		return -EINVAL;
	}
	if (c->spawn_cgroup && *c->spawn_cgroup &&
	    (stat(c->spawn_cgroup, &st) < 0 || !S_ISDIR(st.st_mode))) {
		say("spawn cgroup: %s is no directory", c->spawn_cgroup);
		return -ENOTDIR;
	}
	return c->spawn_policy ? spawn_check(d) : 0;
}

int preflight(struct daemon *d)
{
	int err = check_names(&d->conf);

	if (!err)
		err = check_socket(d->conf.socket);
	if (!err)
		err = check_requests(&d->conf);
	if (!err)
		err = check_key(d);
	if (!err)
		err = d->self.role == RGATE_ROLE_GATEWAY ? check_gateway(d) :
		      check_compute(&d->conf);
	return err ? err : check_spawn(d);
}
