// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * Requests over the UNIX socket, one packet each, and their answers: "ok TEXT" or
 * "err ERRNO TEXT". ringgated(8) lists them.
 *
 * No client can make the thread wait: its socket does not block, an answer that has no
 * room in it ends the connection, and so does a silence of IDLE_NS unless it has a ring.
 * Where all places are taken the one that has been silent longest goes.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "events.h"
#include "fmt.h"
#include "hurry.h"
#include "listen.h"
#include "number.h"
#include "requests_net.h"
#include "gateway.h"
#include "status.h"
#include "util.h"

#define CLIENTS_MAX	128
#define REQUEST_MAX	4096
#define PING_MS		2000
#define IDLE_NS		(10 * NSEC)	/* as long as the library waits for an answer */

struct client {
	int sock;		/* -1: none */
	bool has_ring;
	bool deaf;		/* did not take an answer: to be dropped */
	uint32_t ring;		/* the inlet's number of it */
	uint64_t ring_bytes;
	uint64_t heard;		/* CLOCK_MONOTONIC ns: its last request */
	uid_t uid;
};

struct control {
	struct daemon *d;
	struct events ev;
	int listen_fd;
	uint64_t ring_bytes;	/* of all rings that clients have */
	struct client clients[CLIENTS_MAX];
};

static void answer(struct client *c, const char *text, size_t len)
{
	/* One who misses an answer would take the next one for it. */
	if (send(c->sock, text, len, MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
		c->deaf = true;
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

/* The daemon's memory is locked for it, so it is not without end. */
static bool may_have(struct control *ctl, struct client *c, const struct rgate_ring_opts *o)
{
	const uint64_t given = ctl->d->conf.ring_memory, most = given ? given : CONFIG_RING_MEMORY;
	char used[FMT_LEN], all[FMT_LEN], wanted[FMT_LEN];

	c->ring_bytes = (uint64_t)(o->slots ? o->slots : RGATE_SLOTS_DEFAULT) *
			(o->slot_size ? o->slot_size : RGATE_SLOT_SIZE_DEFAULT);
	if (c->ring_bytes <= most && ctl->ring_bytes <= most - c->ring_bytes)
		return true;
	refuse(c, -EDQUOT, "a ring of %s is too large: rings here may have %s, and have %s; ringgated's ring-memory",
	       fmt_bytes(wanted, c->ring_bytes), fmt_bytes(all, most),
	       fmt_bytes(used, ctl->ring_bytes));
	return false;
}

static void give_ring(struct control *ctl, struct client *c, const struct rgate_ring_opts *o)
{
	struct rgate_inlet *inlet = ctl->d->inlet;
	struct rgate_ring *ring;
	int err;

	err = rgate_inlet_add(inlet, &ring, o, &c->ring);
	if (err) {
		refuse(c, err, "%s", err == -EEXIST ? "a ring of that name is open" :
		       rgate_strerror("rgate_gateway_", err));
		return;
	}
	answer_ok(c);
	err = c->deaf ? -EAGAIN : rgate_ring_send(ring, c->sock);
	rgate_ring_close(ring);
	if (err) {
		c->deaf = true;
		(void)rgate_inlet_remove(inlet, c->ring);
		return;
	}
	c->has_ring = true;
	ctl->ring_bytes += c->ring_bytes;
}

/* The next word, a number. False: there is none */
static bool next_number(char **save, uint32_t *v)
{
	const char *word = strtok_r(NULL, " ", save);
	uint64_t n;

	if (!word || number_parse(word, false, 0, UINT32_MAX, &n))
		return false;
	*v = (uint32_t)n;
	return true;
}

/* Names stand in lines that others take apart by words. */
static bool is_name(const char *name)
{
	const char *p;

	for (p = name; *p; p++)
		if (*p <= ' ' && *p > 0)
			return false;
	return strlen(name) < RGATE_NAME_LEN;
}

static void on_ring_open(struct control *ctl, struct client *c, char *args)
{
	struct rgate_ring_opts o = { .sz = sizeof(o) };
	char *save = args, *name, unique[RGATE_NAME_LEN];
	static unsigned int number;

	if (!ctl->d->inlet) {
		refuse(c, -EOPNOTSUPP, "this node is the gateway: rings are at compute nodes");
		return;
	}
	if (c->has_ring) {
		refuse(c, -EBUSY, "this connection has a ring");
		return;
	}
	if (!next_number(&save, &o.slots) || !next_number(&save, &o.slot_size) ||
	    !next_number(&save, &o.policy) || !next_number(&save, &o.clock)) {
		refuse(c, -EINVAL, "ring-open SLOTS SLOT_SIZE POLICY CLOCK [NAME]");
		return;
	}
	name = strtok_r(NULL, " ", &save);
	if (name && !is_name(name)) {
		refuse(c, -EINVAL, "a ring's name has up to %d bytes, and no blanks",
		       RGATE_NAME_LEN - 1);
		return;
	}
	snprintf(unique, sizeof(unique), "ring%u", number++);
	o.name = name ? name : unique;
	if (may_have(ctl, c, &o))
		give_ring(ctl, c, &o);
}

static bool find_ring(struct daemon *d, struct client *c, struct rgate_inlet_ring *r)
{
	unsigned int i;

	*r = (struct rgate_inlet_ring){ .sz = sizeof(*r) };
	for (i = 0; c->has_ring && !rgate_inlet_info(d->inlet, i, r); i++)
		if (r->number == c->ring)
			return true;
	refuse(c, -ENOENT, "this connection has no ring");
	return false;
}

static void on_ring_state(struct daemon *d, struct client *c)
{
	struct rgate_inlet_ring r;

	if (!find_ring(d, c, &r))
		return;
	if (r.error == -EMSGSIZE)
		refuse(c, r.error, "the gateway refuses the ring, as its own has slots of %u bytes, and this one of %u: --slot-size %u",
		       r.least_slot_size, r.slot_size, r.least_slot_size);
	else if (r.error)
		refuse(c, r.error, "the gateway refuses the ring: %s", strerror(-r.error));
	else
		answer(c, r.filled ? "ok filled" : "ok waiting", r.filled ? 9 : 10);
}

static void on_ring_device(struct daemon *d, struct client *c, char *args)
{
	char name[RGATE_DEVICE_NAME], text[RGATE_DEVICE_NAME + 4], *save = args;
	uint32_t ifindex;
	int err, len;

	if (!c->has_ring || !next_number(&save, &ifindex)) {
		refuse(c, -EINVAL, "ring-device NUMBER, of who has a ring");
		return;
	}
	err = rgate_inlet_device(d->inlet, ifindex, name);
	if (err) {
		refuse(c, err, "device %u of the gateway: %s", ifindex, strerror(-err));
		return;
	}
	len = snprintf(text, sizeof(text), "ok %s", name);
	answer(c, text, (size_t)len);
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

static void show_sockets(struct daemon *d, struct client *c, uint64_t after)
{
	char *text = NULL;
	size_t len = 0;
	FILE *f = open_memstream(&text, &len);

	if (!f) {
		refuse(c, -ENOMEM, "no memory");
		return;
	}
	fputs("ok ", f);
	net_list(d, f, after);
	if (fclose(f))
		refuse(c, -ENOMEM, "no memory");
	else
		answer(c, text, len);
	free(text);
}

/* net list AFTER, net kill ID */
static void on_net(struct daemon *d, struct client *c, char *args)
{
	char *save = NULL, *verb = strtok_r(args, " ", &save), *word = strtok_r(NULL, " ", &save);
	uint64_t id;

	if (!d->requests)
		refuse(c, -EOPNOTSUPP, "this daemon serves no sockets: it has no requests socket");
	else if (!net_serves(d))
		refuse(c, -EOPNOTSUPP,
		       "sockets of this node's programs are the gateway's: ask its daemon");
	else if (!verb || !word || number_parse(word, false, 0, UINT64_MAX, &id) ||
		 (strcmp(verb, "list") && strcmp(verb, "kill")))
		refuse(c, -EINVAL, "net list AFTER, or net kill ID");
	else if (!strcmp(verb, "list"))
		show_sockets(d, c, id);
	else if (c->uid && c->uid != geteuid())
		refuse(c, -EPERM, "only root may end sockets");
	else if (net_kill(d, id))
		refuse(c, -ENOENT, "there is no socket %s", word);
	else
		answer_ok(c);
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
		refuse(c, err, "%s: %s", n.name, err == -ENOTCONN ?
		       "not connected: `systemctl status ringgated` on that node" :
		       strerror(-err));
		return;
	}
	len = snprintf(text, sizeof(text), "ok %s %llu", n.name, (unsigned long long)t);
	answer(c, text, (size_t)len);
}

static void request(struct control *ctl, struct client *c, char *text)
{
	char *args = text + strcspn(text, " ");
	struct daemon *d = ctl->d;

	if (*args)
		*args++ = '\0';
	if (!strcmp(text, "status"))
		show(d, c, !strcmp(args, "json") ? status_json : status_text);
	else if (!strcmp(text, "counters"))
		show(d, c, modules_counters);
	else if (!strcmp(text, "steer"))
		on_steer(d, c, args);
	else if (!strcmp(text, "net"))
		on_net(d, c, args);
	else if (!strcmp(text, "ping"))
		on_ping(d, c, args);
	else if (!strcmp(text, "ring-open"))
		on_ring_open(ctl, c, args);
	else if (!strcmp(text, "ring-state"))
		on_ring_state(d, c);
	else if (!strcmp(text, "ring-device"))
		on_ring_device(d, c, args);
	else
		refuse(c, -EOPNOTSUPP, "this daemon knows no request '%.64s'", text);
}

static void drop_client(struct control *ctl, struct client *c)
{
	if (c->has_ring) {
		(void)rgate_inlet_remove(ctl->d->inlet, c->ring);
		ctl->ring_bytes -= c->ring_bytes;
	}
	hurry_close(c->sock);
	*c = (struct client){ .sock = -1 };
}

/* The one without a ring that has been silent longest; NULL: there is none */
static struct client *idlest(struct control *ctl)
{
	struct client *c, *best = NULL;

	for (c = ctl->clients; c < ctl->clients + CLIENTS_MAX; c++)
		if (c->sock >= 0 && !c->has_ring && (!best || c->heard < best->heard))
			best = c;
	return best;
}

/* In how many ms to look again; -1: nobody is waited for */
static int drop_silent(struct control *ctl)
{
	const uint64_t now = util_now();
	struct client *c = idlest(ctl);

	while (c && now - c->heard >= IDLE_NS) {
		drop_client(ctl, c);
		c = idlest(ctl);
	}
	return c ? (int)((c->heard + IDLE_NS - now) / 1000000) + 1 : -1;
}

/* A free place. There always is one, as fewer can have rings than there are places. */
static struct client *place(struct control *ctl)
{
	struct client *c;

	for (c = ctl->clients; c < ctl->clients + CLIENTS_MAX; c++)
		if (c->sock < 0)
			return c;
	c = idlest(ctl);
	if (c)
		drop_client(ctl, c);
	return c;
}

static void new_client(struct control *ctl)
{
	int sock = accept4(ctl->listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	const int bytes = RGATE_DAEMON_ANSWER * 2;
	struct ucred cred = { 0 };
	socklen_t len = sizeof(cred);
	struct client *c;

	if (sock < 0) {
		/* Who waits would wake us at once again, and find no descriptor either. */
		if (errno != EAGAIN && errno != EINTR)
			usleep(100000);
		return;
	}
	c = place(ctl);
	if (!c || getsockopt(sock, SOL_SOCKET, SO_PEERCRED, &cred, &len) < 0) {
		hurry_close(sock);
		return;
	}
	(void)setsockopt(sock, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof(bytes));
	*c = (struct client){ .sock = sock, .uid = cred.uid, .heard = util_now() };
	if (events_add(&ctl->ev, sock, EPOLLIN, (uint64_t)(c - ctl->clients)))
		drop_client(ctl, c);
}

static void serve_client(struct control *ctl, struct client *c)
{
	char text[REQUEST_MAX + 1];
	struct hurry hurry;
	ssize_t n;

	hurry_begin(&hurry);
	/* How long it is, too, where it is longer: half of a rule is another one. */
	n = recv(c->sock, text, sizeof(text) - 1, MSG_DONTWAIT | MSG_TRUNC);
	hurry_end(&hurry);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n > 0)
		c->heard = util_now();
	if (n > REQUEST_MAX) {
		refuse(c, -EMSGSIZE, "a request has up to %d bytes", REQUEST_MAX);
	} else if (n > 0) {
		text[n] = '\0';
		request(ctl, c, text);
	}
	if (n <= 0 || c->deaf)
		drop_client(ctl, c);
}

#define TAG_LISTEN	CLIENTS_MAX
#define TAG_SIGNAL	(CLIENTS_MAX + 1)

int control_serve(struct control *ctl, int signal_fd)
{
	struct epoll_event ev[16];
	int i, n, err;

	err = events_add(&ctl->ev, signal_fd, EPOLLIN, TAG_SIGNAL);
	if (err)
		return err;
	for (;;) {
		n = events_wait(&ctl->ev, ev, ARRAY_SIZE(ev), events_ms(drop_silent(ctl)));
		if (n < 0 && n != -EINTR)
			return n;
		for (i = 0; i < n; i++) {
			if (ev[i].data.u64 == TAG_SIGNAL) {
				events_remove(&ctl->ev, signal_fd);
				return 0;
			}
			if (ev[i].data.u64 == TAG_LISTEN)
				new_client(ctl);
			else if (ctl->clients[ev[i].data.u64].sock >= 0)
				serve_client(ctl, &ctl->clients[ev[i].data.u64]);
		}
	}
}

int control_open(struct control **out, struct daemon *d)
{
	struct control *ctl = calloc(1, sizeof(*ctl));
	unsigned int i;
	int err;

	if (!ctl)
		return -ENOMEM;
	ctl->d = d;
	for (i = 0; i < CLIENTS_MAX; i++)
		ctl->clients[i].sock = -1;
	err = events_open_plain(&ctl->ev);
	ctl->listen_fd = err ? err : listen_open(d->conf.socket, d->conf.group, 0660);
	if (ctl->listen_fd < 0)
		err = ctl->listen_fd;
	else
		err = events_add(&ctl->ev, ctl->listen_fd, EPOLLIN, TAG_LISTEN);
	if (err) {
		say("cannot listen at %s: %s", d->conf.socket, strerror(-err));
		if (ctl->listen_fd >= 0)
			close(ctl->listen_fd);
		events_close(&ctl->ev);
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
	events_close(&ctl->ev);
	free(ctl);
}
