// SPDX-License-Identifier: MIT OR GPL-2.0
/* ringgated: a node of a cluster. */
#include <argp.h>
#include <errno.h>
#include <grp.h>
#include <linux/capability.h>
#include <pthread.h>
#include <pwd.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include "errout.h"
#include "module.h"
#include "preflight.h"
#include "requests.h"
#include "util.h"

#define CONFIG_FILE	"/etc/ringgate/ringgated.conf"
#define LINES_MAX	64	/* eight nodes, each with a key, and eight sources fit */
#define LOG_BURST	200	/* lines of the library at once, */
#define LOG_EACH_NS	(NSEC / 2)	/* then one in so long */

struct args {
	const char *config;
	bool config_given;
	unsigned int nlines;
	char lines[LINES_MAX][512];
	bool check;
	bool verbose;
};

enum {
	OPT_SOURCE = 256, OPT_RINGS, OPT_POOL, OPT_SPIN, OPT_CHECK, OPT_GROUP, OPT_SPAWN, OPT_LINE,
	OPT_REQUESTS, OPT_PACK, OPT_JOURNAL,
};

static const struct argp_option options[] = {
	{ "config", 'c', "FILE", 0, "Configuration (default " CONFIG_FILE ")", 0 },
	{ "cluster", 'C', "FILE", 0, "The cluster's file", 0 },
	{ "cluster-line", OPT_LINE, "LINE", 0, "In place of that file: a line of one, for "
	  "instance 'node 0 gateway 192.0.2.1'; can be repeated", 0 },
	{ "node", 'n', "NODE", 0, "Which node this is: name, number or address", 0 },
	{ "socket", 's', "PATH", 0, "Listen here for ringgate(1) and programs", 0 },
	{ "steer", 'S', "FILE", 0, "Gateway: rules, read and kept up to date", 0 },
	{ "source", OPT_SOURCE, "SOURCE", 0, "Gateway: forward from there, for instance "
	  "'module eth1 slots 8192' or 'udp 127.0.0.1:9000'; can be repeated", 0 },
	{ "pool", OPT_POOL, "BYTES", 0, "Memory for the fabric (default 64M)", 0 },
	{ "ring-memory", OPT_RINGS, "BYTES", 0, "Compute node: all rings of its programs together "
	  "(default 1G)", 0 },
	{ "spin", OPT_SPIN, "US", 0, "Gateway: poll so long before sleeping", 0 },
	{ "pack", OPT_PACK, "WHEN", 0, "Gateway: many frames in one write, which the node's daemon lays "
	  "into the ring: auto (default: where an operation is dear), never, always", 0 },
	{ "user", 'u', "USER", 0, "Become this user once all is open", 0 },
	{ "group", OPT_GROUP, "GROUP", 0, "May talk to the socket, beside this user", 0 },
	{ "spawn", OPT_SPAWN, "WHAT", 0, "Run processes for other nodes, for instance "
	  "'policy /etc/ringgate/spawn.conf'", 0 },
	{ "requests", OPT_REQUESTS, "WHAT", 0, "Programs of this machine may ask, for instance "
	  "'policy /etc/ringgate/requests.conf' or 'socket none'; can be repeated", 0 },
	{ "journal", OPT_JOURNAL, "DIR", 0, "Tasks of queues outlive the daemon, in files there, for "
	  "instance '/var/lib/ringgate/queues fsync each'", 0 },
	{ "check", OPT_CHECK, NULL, 0, "Check all that the start would refuse, then end", 0 },
	{ "verbose", 'v', NULL, 0, "Say more", 0 },
	{ 0 }
};

/* @words: the value is several; else it is one, whatever blanks it has */
static void add_line(struct args *a, struct argp_state *state, const char *key, const char *value,
		     bool words)
{
	if (a->nlines == LINES_MAX)
		argp_error(state, "too many options");
	if (snprintf(a->lines[a->nlines++], sizeof(a->lines[0]), words ? "%s %s" : "%s \"%s\"",
		     key, value) >= (int)sizeof(a->lines[0]))
		argp_error(state, "%s: too long", key);
}

static error_t parse_opt(int key, char *arg, struct argp_state *state)
{
	static const struct {
		int key;
		const char *name;
		bool words;
	} lines[] = {
		{ 'C', "cluster", false }, { 'n', "node", false }, { 's', "socket", false },
		{ 'S', "steer", false }, { 'u', "user", false }, { OPT_GROUP, "group", false },
		{ OPT_POOL, "pool", false }, { OPT_RINGS, "ring-memory", false },
		{ OPT_SPIN, "spin", false }, { OPT_PACK, "pack", false },
		{ OPT_SOURCE, "source", true },
		{ OPT_SPAWN, "spawn", true }, { OPT_LINE, "cluster-line", true },
		{ OPT_REQUESTS, "requests", true }, { OPT_JOURNAL, "journal", true },
	};
	struct args *a = state->input;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(lines); i++)
		if (key == lines[i].key) {
			add_line(a, state, lines[i].name, arg, lines[i].words);
			return 0;
		}
	switch (key) {
	case 'c':
		a->config = arg;
		a->config_given = true;
		break;
	case OPT_CHECK:
		a->check = true;
		break;
	case 'v':
		a->verbose = true;
		break;
	case ARGP_KEY_ARG:
		argp_error(state, "'%s' is no option", arg);
		break;
	default:
		return ARGP_ERR_UNKNOWN;
	}
	return 0;
}

static const struct argp argp = {
	.options = options,
	.parser = parse_opt,
	.doc = "A node of a ringgate cluster: as gateway it forwards packets into rings of "
	       "the other nodes; as compute node it offers rings to programs.\v"
	       "SIGHUP reads rules and policy again, SIGTERM and SIGINT end the daemon. See "
	       "ringgated(8).",
};

static void print_version(FILE *f, struct argp_state *state)
{
	(void)state;
	fprintf(f, "ringgated %s\n", rgate_version());
}

/* Peers can make the library say things: not without end. From any of its threads */
static void on_log(void *ctx, enum rgate_log_level level, const char *msg)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	static struct limit limit;
	unsigned int swallowed = 0;
	bool pass;

	if (level > *(const enum rgate_log_level *)ctx)
		return;
	pthread_mutex_lock(&lock);
	pass = limit_pass(&limit, LOG_BURST, LOG_EACH_NS, util_now(), &swallowed);
	pthread_mutex_unlock(&lock);
	if (swallowed)
		say("%u lines were left out", swallowed);
	if (pass)
		say("%s", msg);
}

/* Tells systemd, where it started us: sd_notify(3), "Notes" */
static void notify(const char *state)
{
	struct sockaddr_un sun = { .sun_family = AF_UNIX };
	const char *path = getenv("NOTIFY_SOCKET");
	socklen_t len;
	int sock;

	if (!path || (*path != '/' && *path != '@') || strlen(path) >= sizeof(sun.sun_path))
		return;
	memcpy(sun.sun_path, path, strlen(path) + 1);
	if (*path == '@')
		sun.sun_path[0] = '\0';
	len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(path));
	sock = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (sock < 0)
		return;
	(void)sendto(sock, state, strlen(state), MSG_NOSIGNAL, (struct sockaddr *)&sun, len);
	close(sock);
}

/* Rings that programs ask for later are registered by a user without privilege. */
static void lift_memlock(void)
{
	const struct rlimit all = { RLIM_INFINITY, RLIM_INFINITY };

	if (setrlimit(RLIMIT_MEMLOCK, &all) < 0 && errno != EPERM)
		say("RLIMIT_MEMLOCK stays: %s", strerror(errno));
}

/* Each session of a program has some descriptors. */
static void lift_nofile(void)
{
	struct rlimit files;

	if (getrlimit(RLIMIT_NOFILE, &files) < 0)
		return;
	files.rlim_cur = files.rlim_max;
	(void)setrlimit(RLIMIT_NOFILE, &files);
}

/* What sources need, of the permitted ones */
static int keep_capabilities(void)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	const uint32_t wanted = 1U << CAP_NET_ADMIN | 1U << CAP_NET_RAW;
	struct __user_cap_data_struct caps[2] = { { 0 } };

	if (syscall(SYS_capget, &head, caps))
		return -errno;
	caps[0].permitted &= wanted;
	caps[0].effective = caps[0].permitted;
	caps[1] = (struct __user_cap_data_struct){ 0 };
	return syscall(SYS_capset, &head, caps) ? -errno : 0;
}

static int become(const struct config *c, bool keep)
{
	const struct passwd *pw = getpwnam(c->user);
	const char *requests = requests_path(c);

	if (!pw)
		return -ENOENT;
	/* The sockets' files are removed at the end by whom they belong to. */
	if (chown(c->socket, pw->pw_uid, (gid_t)-1) < 0 ||
	    (requests && chown(requests, pw->pw_uid, (gid_t)-1) < 0) ||
	    initgroups(c->user, pw->pw_gid) < 0 || setgid(pw->pw_gid) < 0 ||
	    (keep && prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0) < 0) || setuid(pw->pw_uid) < 0)
		return -errno;
	return keep ? keep_capabilities() : 0;
}

/* @keep: what sources need */
static int drop_privileges(const struct config *c, bool keep)
{
	int err;

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return -errno;
	if (!c->user)
		return 0;
	err = become(c, keep);
	if (err)
		say("cannot become user '%s': %s", c->user, strerror(-err));
	return err;
}

/*
 * An RDMA device is refused by the kernel (ib_safe_file_access()) to who is not the same
 * any more as when it was opened: so who uses one becomes the user first, and keeps what
 * sources need. Without one privileges go when all is open.
 */
static int start(struct daemon *d)
{
	const bool rdma = rgate_cluster_provider(d->cluster) == RGATE_PROVIDER_VERBS;
	int err = 0;

	if (rdma) {
		err = daemon_read_key(d);
		if (!err)
			err = drop_privileges(&d->conf, true);
	}
	if (!err)
		err = daemon_start(d);
	if (err || rdma)
		return err;
	err = drop_privileges(&d->conf, false);
	if (err)
		daemon_stop(d);
	return err;
}

static int signals(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGHUP);
	sigprocmask(SIG_BLOCK, &set, NULL);
	signal(SIGPIPE, SIG_IGN);
	return signalfd(-1, &set, SFD_CLOEXEC);
}

static int serve(struct daemon *d, struct control *ctl, int sig_fd)
{
	struct signalfd_siginfo si;
	int err;

	for (;;) {
		err = control_serve(ctl, sig_fd);
		if (err || read(sig_fd, &si, sizeof(si)) != sizeof(si))
			return err ? err : -EIO;
		if (si.ssi_signo != SIGHUP)
			return 0;
		notify("RELOADING=1");
		modules_reload(d);
		notify("READY=1");
	}
}

static int run(struct daemon *d)
{
	struct control *ctl;
	int err, sig_fd = signals();

	if (sig_fd < 0)
		return -errno;
	err = daemon_load(d);
	if (err)
		goto close_signals;
	/* After the spawner was made: what it runs gets the limits that we got. */
	lift_memlock();
	lift_nofile();
	/* A file that may not grow is an error like any other. */
	signal(SIGXFSZ, SIG_IGN);
	err = control_open(&ctl, d);
	if (err)
		goto unload;
	err = modules_open(d);
	if (err)
		goto close_control;
	err = start(d);
	if (!err) {
		say("node %u (%s) is ready", d->self.id, d->self.name);
		notify("READY=1");
		err = serve(d, ctl, sig_fd);
		notify("STOPPING=1");
	}
	/* What its clients have is given back before that is taken down. */
	control_close(ctl);
	if (d->hub)
		daemon_stop(d);
	modules_close(d);
	goto unload;

close_control:
	control_close(ctl);
unload:
	daemon_unload(d);
close_signals:
	close(sig_fd);
	return err;
}

static int check(struct daemon *d)
{
	int err = daemon_read_cluster(d);

	if (err)
		return err;
	err = preflight(d);
	if (!err)
		err = preflight_device(d);
	rgate_cluster_destroy(d->cluster);
	return err;
}

int main(int argc, char **argv)
{
	static enum rgate_log_level level = RGATE_LOG_WARN;
	static struct args a = { .config = CONFIG_FILE };
	static struct daemon d;
	unsigned int i;
	int err;

	argp_program_version_hook = print_version;
	argp_err_exit_status = 2;
	util_set_name("ringgated");
	if (argp_parse(&argp, argc, argv, 0, NULL, &a))
		return 2;
	if (a.verbose)
		level = RGATE_LOG_INFO;
	if (!a.check) {
		errout_open();
		util_set_out(errout_line);
	}
	rgate_log_set(on_log, &level);
	err = config_load(&d.conf, a.config, a.config_given);
	for (i = 0; !err && i < a.nlines; i++)
		err = config_line(&d.conf, "option", a.lines[i]);
	if (!err)
		err = a.check ? check(&d) : run(&d);
	config_free(&d.conf);
	return err ? 1 : 0;
}
