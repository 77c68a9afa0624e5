// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * What can be known to be wrong before anything is changed: the same for --check and for
 * the start, which goes on where this finds nothing.
 */
#include <errno.h>
#include <grp.h>
#include <libgen.h>
#include <linux/capability.h>
#include <pwd.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include <ringgate/rgate_session.h>

#include "module.h"
#include "preflight.h"
#include "util.h"

int check_group(const char *name)
{
	if (!name || getgrnam(name))
		return 0;
	say("there is no group '%s'", name);
	return -ENOENT;
}

static bool may_become_others(void)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct caps[2] = { { 0 } };
	const uint32_t needed = 1U << CAP_SETUID | 1U << CAP_SETGID;

	return !syscall(SYS_capget, &head, caps) && (caps[0].effective & needed) == needed;
}

static int check_user(const char *user)
{
	if (!user)
		return 0;
	if (!getpwnam(user)) {
		say("there is no user '%s'", user);
		return -ENOENT;
	}
	if (may_become_others())
		return 0;
	say("cannot become user '%s': start ringgated as root, or leave out --user", user);
	return -EPERM;
}

static int check_names(const struct config *c)
{
	int err = check_user(c->user);

	return err ? err : check_group(c->group);
}

int check_directory(const char *what, const char *path)
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

int check_socket(const char *path)
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

static int check_key(const struct daemon *d)
{
	uint8_t key[RGATE_KEY_LEN];
	int err = rgate_cluster_read_key(d->cluster, d->self.id, key);

	explicit_bzero(key, sizeof(key));
	return err;
}

/* Over shared memory a node is a socket and a lock, which are made at its path. */
static int check_path(const struct daemon *d)
{
	char what[32];

	if (rgate_cluster_provider(d->cluster) != RGATE_PROVIDER_LOCAL)
		return 0;
	snprintf(what, sizeof(what), "the socket of node %u", d->self.id);
	return check_directory(what, d->self.addr);
}

int preflight(struct daemon *d)
{
	int err = check_names(&d->conf);

	if (!err)
		err = check_socket(d->conf.socket);
	if (!err)
		err = check_path(d);
	if (!err)
		err = check_key(d);
	return err ? err : modules_check(d);
}

int preflight_device(const struct daemon *d)
{
	const struct rgate_device_opts o = RGATE_OPTS(rgate_device_opts, .addr = d->self.addr);
	struct rgate_device *dev;
	int err;

	if (rgate_cluster_provider(d->cluster) != RGATE_PROVIDER_VERBS)
		return 0;
	err = rgate_device_open(&dev, &o);
	if (err)
		say("node %u cannot be at %s: %s", d->self.id, d->self.addr,
		    rgate_strerror("rgate_device_open", err));
	else
		rgate_device_close(dev);
	return err;
}
