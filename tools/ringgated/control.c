// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * Requests over the UNIX socket, one packet each, and their answers: "ok TEXT" or
 * "err ERRNO TEXT". ringgated(8) lists them.
 */
#include <errno.h>
#include <grp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "ringgated.h"
#include "util.h"

#define CLIENTS_MAX	128
#define REQUEST_MAX	4096
#define PING_MS		2000

struct client {
	int sock;		/* -1: none */
	bool has_ring;
	uint32_t ring;		/* the inlet's number of it */
	uid_t uid;
};

struct control {
	struct daemon *d;
	int epoll_fd;
	int listen_fd;
	struct client clients[CLIENTS_MAX];
};

static void answer(struct client *c, const char *text, size_t len)
{
	/* Who does not read its answers does not get them. */
	if (send(c->sock, text, len, MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
		say("an answer was not taken: %s", strerror(errno));
}

static void answer_ok(struct client *c)
{
	answer(c, "ok ", 3);
}

__attribute__((format(printf, 3, 4)))
static void refuse(struct client *c, int err, const char *fmt, ...)
{
	char text[512];
	va_list ap;
	int n;

	n = snprintf(text, sizeof(text), "err %d ", -err);
	va_start(ap, fmt);
	n += vsnprintf(text + n, sizeof(text) - (size_t)n, fmt, ap);
	va_end(ap);
	answer(c, text, (size_t)n < sizeof(text) ? (size_t)n : sizeof(text) - 1);
}

static void show(struct daemon *d, struct client *c, void (*what)(struct daemon *d, FILE *f))
{
	char *text = NULL;
	size_t len = 0;
	FILE *f = open_memstream(&text, &len);

	if (!f) {
		refuse(c, -ENOMEM, "no memory");
		return;
	}
	fputs("ok ", f);
	what(d, f);
	if (fclose(f) || len > RGATE_DAEMON_ANSWER - 1)
		refuse(c, -EMSGSIZE, "the answer is too long");
	else
		answer(c, text, len);
	free(text);
}

static void give_ring(struct daemon *d, struct client *c, const struct rgate_ring_opts *o)
{
	struct rgate_ring *ring;
	int err;

	err = rgate_inlet_open(d->inlet, &ring, o, &c->ring);
	if (err) {
		refuse(c, err, "%s", err == -EEXIST ? "a ring of that name is open" :
		       rgate_mem_strerror(err));
		return;
	}
	answer_ok(c);
	err = rgate_ring_send(ring, c->sock);
	rgate_ring_close(ring);
	if (err) {
		(void)rgate_inlet_close(d->inlet, c->ring);
		return;
	}
	c->has_ring = true;
}

static void on_ring_open(struct daemon *d, struct client *c, char *args)
{
	struct rgate_ring_opts o = { .sz = sizeof(o) };
	char name[RGATE_NAME_LEN] = "", unique[RGATE_NAME_LEN];
	static unsigned int number;

	if (!d->inlet) {
		refuse(c, -EOPNOTSUPP, "this node is the gateway: rings are at compute nodes");
		return;
	}
	if (c->has_ring) {
		refuse(c, -EBUSY, "this connection has a ring");
		return;
	}
	if (sscanf(args, "%u %u %u %u %31s", &o.slots, &o.slot_size, &o.policy, &o.clock,
		   name) < 4) {
		refuse(c, -EINVAL, "ring-open SLOTS SLOT_SIZE POLICY CLOCK [NAME]");
		return;
	}
	snprintf(unique, sizeof(unique), "ring%u", number++);
	o.name = *name ? name : unique;
	give_ring(d, c, &o);
}

static bool may_change(struct client *c)
{
	if (!c->uid || c->uid == geteuid())
		return true;
	refuse(c, -EPERM, "only root may change the rules");
	return false;
}

static void on_steer(struct daemon *d, struct client *c, char *args)
{
	char why[256] = "", *save = NULL, *before = NULL, *verb = strtok_r(args, " ", &save);
	int err;

	if (!d->gw) {
		refuse(c, -EOPNOTSUPP, "rules are at the gateway, which is another node");
	} else if (verb && !strcmp(verb, "list")) {
		show(d, c, steer_text);
	} else if (verb && !strcmp(verb, "list-json")) {
		show(d, c, steer_json);
	} else if (!may_change(c)) {
		return;
	} else if (verb && (!strcmp(verb, "add") || !strcmp(verb, "insert"))) {
		if (*verb == 'i')
			before = strtok_r(NULL, " ", &save);
		err = gateway_steer_add(d, before, save, why, sizeof(why));
		if (err)
			refuse(c, err, "%s", *why ? why : strerror(-err));
		else
			answer_ok(c);
	} else if (verb && !strcmp(verb, "remove")) {
		err = gateway_steer_remove(d, save, why, sizeof(why));
		if (err)
			refuse(c, err, "%s", why);
		else
			answer_ok(c);
	} else {
		refuse(c, -EINVAL, "steer list, list-json, add, insert or remove");
	}
}

/* A read by the fabric of the node's memory. One that takes too long ends by itself: who
 * asks how the wire is does not cut it, as rgate_peer_flush() would. */
static int read_there_and_back(struct rgate_peer *peer, uint64_t *ns)
{
	const struct rgate_op op = { .kind = RGATE_OP_FLUSH };
	uint64_t ticket;
	int err;

	*ns = util_now();
	err = rgate_peer_post(peer, &op, 1, &ticket);
	if (!err)
		err = rgate_peer_finish(peer, ticket, PING_MS);
	*ns = util_now() - *ns;
	return err;
}

static void on_ping(struct daemon *d, struct client *c, char *args)
{
	struct rgate_cluster_node n = { .sz = sizeof(n) };
	struct rgate_peer *peer;
	char text[64];
	uint64_t t;
	int err, len;

	err = rgate_cluster_find(d->cluster, args, &n);
	peer = err ? NULL : rgate_hub_peer(d->hub, n.id);
	if (!peer) {
		refuse(c, -ENOENT, "%s: %s", args, err ? "no such node" : "this node itself");
		return;
	}
	err = read_there_and_back(peer, &t);
	if (err) {
		refuse(c, err, "%s: %s", n.name, err == -ENOTCONN ? "not connected" :
		       strerror(-err));
		return;
	}
	len = snprintf(text, sizeof(text), "ok %s %llu", n.name, (unsigned long long)t);
	answer(c, text, (size_t)len);
}

static void request(struct daemon *d, struct client *c, char *text)
{
	char *args = text + strcspn(text, " ");

	if (*args)
		*args++ = '\0';
	if (!strcmp(text, "status"))
		show(d, c, !strcmp(args, "json") ? status_json : status_text);
	else if (!strcmp(text, "counters"))
		show(d, c, status_counters);
	else if (!strcmp(text, "steer"))
		on_steer(d, c, args);
	else if (!strcmp(text, "ping"))
		on_ping(d, c, args);
	else if (!strcmp(text, "ring-open"))
		on_ring_open(d, c, args);
	else
		refuse(c, -EOPNOTSUPP, "this daemon knows no request '%.64s'", text);
}

static void drop_client(struct control *ctl, struct client *c)
{
	if (c->has_ring)
		(void)rgate_inlet_close(ctl->d->inlet, c->ring);
	close(c->sock);
	*c = (struct client){ .sock = -1 };
}

static int watch(struct control *ctl, int fd, uint64_t tag)
{
	struct epoll_event ev = { .events = EPOLLIN, .data.u64 = tag };

	return epoll_ctl(ctl->epoll_fd, EPOLL_CTL_ADD, fd, &ev) < 0 ? -errno : 0;
}

static void new_client(struct control *ctl)
{
	int sock = accept4(ctl->listen_fd, NULL, NULL, SOCK_CLOEXEC);
	const int bytes = RGATE_DAEMON_ANSWER * 2;
	struct ucred cred = { 0 };
	socklen_t len = sizeof(cred);
	unsigned int i;

	if (sock < 0) {
		/* Who waits would wake us at once again, and find no descriptor either. */
		if (errno != EAGAIN && errno != EINTR)
			usleep(100000);
		return;
	}
	for (i = 0; i < CLIENTS_MAX && ctl->clients[i].sock >= 0; i++)
		;
	if (i == CLIENTS_MAX || getsockopt(sock, SOL_SOCKET, SO_PEERCRED, &cred, &len) < 0) {
		say("a client was turned away: there are %d already", CLIENTS_MAX);
		close(sock);
		return;
	}
	(void)setsockopt(sock, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof(bytes));
	ctl->clients[i] = (struct client){ .sock = sock, .uid = cred.uid };
	if (watch(ctl, sock, i))
		drop_client(ctl, &ctl->clients[i]);
}

static void serve_client(struct control *ctl, struct client *c)
{
	char text[REQUEST_MAX + 1];
	ssize_t n = recv(c->sock, text, sizeof(text) - 1, MSG_DONTWAIT);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) {
		drop_client(ctl, c);
		return;
	}
	text[n] = '\0';
	request(ctl->d, c, text);
}

#define TAG_LISTEN	CLIENTS_MAX
#define TAG_SIGNAL	(CLIENTS_MAX + 1)

int control_serve(struct control *ctl, int signal_fd)
{
	struct epoll_event ev[16];
	int i, n, err;

	err = watch(ctl, signal_fd, TAG_SIGNAL);
	if (err)
		return err;
	for (;;) {
		n = epoll_wait(ctl->epoll_fd, ev, ARRAY_SIZE(ev), -1);
		if (n < 0 && errno != EINTR)
			return -errno;
		for (i = 0; i < n; i++) {
			if (ev[i].data.u64 == TAG_SIGNAL) {
				epoll_ctl(ctl->epoll_fd, EPOLL_CTL_DEL, signal_fd, NULL);
				return 0;
			}
			if (ev[i].data.u64 == TAG_LISTEN)
				new_client(ctl);
			else if (ctl->clients[ev[i].data.u64].sock >= 0)
				serve_client(ctl, &ctl->clients[ev[i].data.u64]);
		}
	}
}

static int allow_group(const char *path, const char *name)
{
	const struct group *gr = name ? getgrnam(name) : NULL;

	if (name && !gr) {
		say("there is no group '%s'", name);
		return -ENOENT;
	}
	if (gr && chown(path, (uid_t)-1, gr->gr_gid) < 0)
		return -errno;
	return chmod(path, 0660) < 0 ? -errno : 0;
}

/* A socket that nobody listens on any more is in the way; another one is not ours. */
static int clear_path(const char *path)
{
	struct sockaddr_un sun = { .sun_family = AF_UNIX };
	struct stat st;
	int sock, ret;

	if (lstat(path, &st) < 0)
		return errno == ENOENT ? 0 : -errno;
	if (!S_ISSOCK(st.st_mode))
		return -EEXIST;
	memcpy(sun.sun_path, path, strlen(path) + 1);
	sock = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (sock < 0)
		return -errno;
	ret = connect(sock, (struct sockaddr *)&sun, sizeof(sun)) < 0 && errno == ECONNREFUSED ?
	      0 : -EADDRINUSE;
	close(sock);
	return ret ? ret : unlink(path) < 0 ? -errno : 0;
}

static int listen_at(struct control *ctl, const char *path, const char *group)
{
	struct sockaddr_un sun = { .sun_family = AF_UNIX };
	int err;

	if (strlen(path) >= sizeof(sun.sun_path))
		return -ENAMETOOLONG;
	err = clear_path(path);
	if (err)
		return err;
	memcpy(sun.sun_path, path, strlen(path) + 1);
	ctl->listen_fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (ctl->listen_fd < 0 || bind(ctl->listen_fd, (struct sockaddr *)&sun, sizeof(sun)) < 0)
		return -errno;
	err = allow_group(path, group);
	if (!err && listen(ctl->listen_fd, 16) < 0)
		err = -errno;
	return err ? err : watch(ctl, ctl->listen_fd, TAG_LISTEN);
}

int control_open(struct control **out, struct daemon *d)
{
	struct control *ctl = calloc(1, sizeof(*ctl));
	unsigned int i;
	int err;

	if (!ctl)
		return -ENOMEM;
	ctl->d = d;
	ctl->listen_fd = -1;
	for (i = 0; i < CLIENTS_MAX; i++)
		ctl->clients[i].sock = -1;
	ctl->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	err = ctl->epoll_fd < 0 ? -errno : listen_at(ctl, d->conf.socket, d->conf.group);
	if (err) {
		say("cannot listen at %s: %s", d->conf.socket, strerror(-err));
		if (ctl->listen_fd >= 0)
			close(ctl->listen_fd);
		if (ctl->epoll_fd >= 0)
			close(ctl->epoll_fd);
		free(ctl);
		return err;
	}
	*out = ctl;
	return 0;
}

void control_close(struct control *ctl)
{
	unsigned int i;

	for (i = 0; i < CLIENTS_MAX; i++)
		if (ctl->clients[i].sock >= 0)
			drop_client(ctl, &ctl->clients[i]);
	close(ctl->listen_fd);
	(void)unlink(ctl->d->conf.socket);
	close(ctl->epoll_fd);
	free(ctl);
}
