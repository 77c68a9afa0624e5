// SPDX-License-Identifier: MIT OR GPL-2.0
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <ringgate/rgate_hub.h>

#include "clock.h"
#include "events.h"
#include "hub_ref.h"
#include "log.h"
#include "node_ref.h"
#include "opts.h"
#include "outbox.h"
#include "session.h"
#include "spin.h"
#include "thread.h"

#define MSG_BYTES	65536	/* as rgate_node_opts.msg_size allows */
#define ROUND		64	/* messages of one peer before the others have their turn */
#define EVENTS		(RGATE_NODES_MAX + 1)
#define ROOM_NS		2000000	/* between looks for room for messages */
#define RELAXES		16	/* between looks, so that those who post have the peer's lock */
#define ROLES		(2 * RGATE_SERVICES_MAX)	/* those that serve, those that ask */

struct hub_role {
	struct rgate_service ops;	/* sz 0: none */
	void *ctx;
	uint32_t epoch[RGATE_NODES_MAX]; /* of the connection that it knows of; 0: of none */
};

struct hub_peer {
	struct rgate_peer *peer;	/* NULL: none for that node */
	struct session session;		/* of the thread alone */
	bool awaited;			/* atomic: the end of operations is */
	struct outbox out;
};

struct rgate_hub {
	struct rgate_node *node;
	pthread_t thread;
	struct events ev;
	bool started;			/* there is a thread */
	bool stop;			/* atomic */
	bool polling;			/* atomic: no event is needed, see wake() */
	bool woken;			/* atomic: by rgate_hub_wake(), since it was seen */
	struct rgate_spin spin;		/* of the thread alone, as the next one */
	uint32_t served;		/* peers, since their fds were armed */
	uint32_t users;			/* atomic: who made it, its services' roles, hub_ref.h */
	struct rgate_hub_stats stats;	/* atomic words */

	struct hub_peer peers[RGATE_NODES_MAX];
	/* Of one service each, both its roles and all calls of their functions: who adds or
	 * removes a service waits for no other one. Never two of them at once. */
	pthread_mutex_t turn[RGATE_SERVICES_MAX];
	uint32_t there;			/* atomic, bit per role: so that others cost nothing */
	struct hub_role roles[ROLES];
	uint64_t buf[MSG_BYTES / sizeof(uint64_t)];
};

/* The hub whose thread this one is; NULL: of none */
static __thread const struct rgate_hub *own;

static void count(uint64_t *counter)
{
	__atomic_add_fetch(counter, 1, __ATOMIC_RELAXED);
}

static pthread_mutex_t *turn_of(struct rgate_hub *hub, unsigned int i)
{
	return &hub->turn[i % RGATE_SERVICES_MAX];
}

/*
 * With its service's turn: tells it of connections that came or went since it was told last, or
 * since it was added, before it is called for anything else. Only the thread does, as the
 * sessions are its own; so nobody is told of one that has been followed by another already.
 */
static void catch_up(const struct rgate_hub *hub, struct hub_role *r)
{
	uint32_t id;

	for (id = 0; id < RGATE_NODES_MAX; id++) {
		const struct session *s = &hub->peers[id].session;
		const uint32_t epoch = s->up ? s->epoch : 0;

		if (r->epoch[id] == epoch)
			continue;
		r->epoch[id] = epoch;
		if (r->ops.state)
			r->ops.state(r->ctx, id, s->up);
	}
}

/* The role at @i, with its service's turn, and up to date; NULL: there is none */
static struct hub_role *take_role(struct rgate_hub *hub, unsigned int i)
{
	struct hub_role *r = &hub->roles[i];

	if (!(__atomic_load_n(&hub->there, __ATOMIC_RELAXED) & 1U << i))
		return NULL;
	pthread_mutex_lock(turn_of(hub, i));
	if (r->ops.sz) {
		catch_up(hub, r);
		return r;
	}
	pthread_mutex_unlock(turn_of(hub, i));
	return NULL;
}

static void leave_role(struct rgate_hub *hub, unsigned int i)
{
	pthread_mutex_unlock(turn_of(hub, i));
}

static void tell(struct rgate_hub *hub)
{
	unsigned int i;

	for (i = 0; i < ROLES; i++)
		if (take_role(hub, i))
			leave_role(hub, i);
}

static void look_at_state(struct rgate_hub *hub, uint32_t id)
{
	const uint64_t now = rgate_clock_now(CLOCK_MONOTONIC);
	struct hub_peer *p = &hub->peers[id];
	enum session_news news;

	while ((news = session_look(&p->session, now)) != SESSION_SAME) {
		/* Nothing goes to the next one before services know that the last has ended. */
		if (news == SESSION_DOWN)
			outbox_reset(&p->out, 0);
		else if (news == SESSION_UP)
			outbox_reset(&p->out, p->session.epoch);
		else
			continue;
		tell(hub);
	}
}

/* The place of a role, by its number as messages have it; ROLES: there can be none */
static unsigned int place(uint32_t number)
{
	const uint32_t of = number & ~(uint32_t)RGATE_SERVICE_ASKER;

	if (!of || of >= RGATE_SERVICES_MAX)
		return ROLES;
	return of + (number == of ? 0 : RGATE_SERVICES_MAX);
}

static void dispatch(struct rgate_hub *hub, uint32_t id, const struct rgate_msg *msg)
{
	const uint32_t number = msg->has_imm ? msg->imm >> RGATE_NOTICE_SHIFT :
				msg->len ? *(const uint8_t *)hub->buf : 0;
	const unsigned int i = place(number);
	struct hub_role *r = i < ROLES ? take_role(hub, i) : NULL;

	count(msg->has_imm ? &hub->stats.notices : &hub->stats.messages);
	if (r && msg->has_imm && r->ops.notice)
		r->ops.notice(r->ctx, id, msg->imm);
	else if (r && !msg->has_imm && r->ops.message)
		r->ops.message(r->ctx, id, hub->buf, msg->len);
	else
		count(&hub->stats.unknown);
	if (r)
		leave_role(hub, i);
}

/* Hands on what a peer has sent, a round of it at most: how many messages */
static unsigned int serve(struct rgate_hub *hub, uint32_t id)
{
	struct hub_peer *p = &hub->peers[id];
	struct rgate_msg msg;
	unsigned int i;

	if (!p->peer)
		return 0;
	/* What a connection has brought is handed on before its end is told. */
	for (i = 0; i < ROUND; i++) {
		if (rgate_peer_recv(p->peer, &msg, hub->buf, sizeof(hub->buf), 0))
			break;
		/* Of a connection that has come up since */
		if (msg.epoch != p->session.epoch)
			look_at_state(hub, id);
		if (p->session.up && msg.epoch == p->session.epoch)
			dispatch(hub, id, &msg);
		else
			count(&hub->stats.stale);
	}
	if (i < ROUND)
		look_at_state(hub, id);
	hub->served |= 1U << id;
	return i;
}

static int64_t tick(struct rgate_hub *hub)
{
	struct hub_role *r;
	int64_t least = -1, ns;
	unsigned int i;

	/* A peer that has taken messages does not wake us. */
	for (i = 0; i < RGATE_NODES_MAX; i++)
		if (hub->peers[i].peer && outbox_pump(&hub->peers[i].out))
			least = ROOM_NS;
	for (i = 0; i < ROLES; i++) {
		r = take_role(hub, i);
		if (!r)
			continue;
		ns = r->ops.tick ? r->ops.tick(r->ctx) : -1;
		leave_role(hub, i);
		if (ns >= 0 && (least < 0 || ns < least))
			least = ns;
	}
	return least;
}

/*
 * Before the thread sleeps. Who posts takes his completions, one post would wake the thread
 * otherwise, so they are armed only where somebody awaits them. Returns the peers of which the
 * sign that a connection has changed was taken: nobody else serves them.
 */
static uint32_t arm(struct rgate_hub *hub)
{
	uint32_t more = 0, id;

	for (id = 0; id < RGATE_NODES_MAX; id++) {
		struct hub_peer *p = &hub->peers[id];

		if (__atomic_exchange_n(&p->awaited, false, __ATOMIC_ACQUIRE))
			(void)rgate_peer_arm(p->peer);
		else if (p->peer && hub->served & 1U << id)
			(void)rgate_peer_arm_recv(p->peer);
		else
			continue;
		if (session_changed(&p->session))
			more |= 1U << id;
	}
	hub->served = 0;
	return more;
}

/* Looks at all peers once. Returns those that had something; @awaited: is an operation? */
static uint32_t look(struct rgate_hub *hub, bool *awaited)
{
	uint32_t came = 0, id;

	*awaited = false;
	for (id = 0; id < RGATE_NODES_MAX; id++) {
		if (serve(hub, id))
			came |= 1U << id;
		*awaited |= __atomic_load_n(&hub->peers[id].awaited, __ATOMIC_ACQUIRE);
	}
	return came;
}

/*
 * Looks at all peers, and at operations that are awaited, for as long as the spin has learned from
 * @begun on, *@ns at most (-1: no limit; later what tick() says), without arming any, so that a
 * message costs its sender no system call, nor does who wakes. Returns the peers that had some
 */
static uint32_t poll_some(struct rgate_hub *hub, uint64_t begun, int64_t *ns)
{
	const uint64_t most = hub->spin.ns;
	uint32_t came = 0;
	unsigned int i;
	bool awaited;

	__atomic_store_n(&hub->polling, true, __ATOMIC_RELAXED);
	while (!came && !__atomic_load_n(&hub->stop, __ATOMIC_RELAXED)) {
		const uint64_t now = rgate_clock_now(CLOCK_MONOTONIC);

		if (now - begun >= most || (*ns >= 0 && now - begun >= (uint64_t)*ns))
			break;
		for (i = 0; i < RELAXES; i++)
			rgate_cpu_relax();
		came = look(hub, &awaited);
		if (__atomic_exchange_n(&hub->woken, false, __ATOMIC_ACQUIRE) || awaited)
			*ns = tick(hub);
	}
	__atomic_store_n(&hub->polling, false, __ATOMIC_RELAXED);
	/* Against wake(): polling, fence, what it has set here; that, fence, polling there. */
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	return came;
}

/* Sleeps for @ns at most, or for ever. Returns the peers that have something */
static uint32_t sleep_some(struct rgate_hub *hub, int64_t ns)
{
	struct epoll_event ev[EVENTS];
	uint32_t ready = 0;
	int i, n;

	n = events_wait(&hub->ev, ev, EVENTS, ns);
	for (i = 0; i < n; i++)
		if (ev[i].data.u64 == EVENTS_WAKE)
			events_woken(&hub->ev);
		else
			ready |= 1U << ev[i].data.u64;
	return ready;
}

/* The next time that there is something to do, or @ns from now. Returns the peers that have it */
static uint32_t wait_some(struct rgate_hub *hub, int64_t ns)
{
	const uint64_t begun = rgate_clock_now(CLOCK_MONOTONIC);
	uint32_t ready = hub->spin.ns ? poll_some(hub, begun, &ns) : 0;

	/* Whoever has woken it while it polled asks for a tick, or for its end. */
	if (!ready && (__atomic_exchange_n(&hub->woken, false, __ATOMIC_ACQUIRE) ||
		       __atomic_load_n(&hub->stop, __ATOMIC_ACQUIRE)))
		return 0;
	if (!ready)
		ready = arm(hub);
	if (!ready)
		ready = sleep_some(hub, ns);
	if (ready)
		rgate_spin_learn(&hub->spin, rgate_clock_now(CLOCK_MONOTONIC) - begun);
	return ready;
}

static void *hub_main(void *arg)
{
	struct rgate_hub *hub = arg;
	uint32_t ready = UINT32_MAX, more, id;
	int64_t ns;

	own = hub;
	while (!__atomic_load_n(&hub->stop, __ATOMIC_ACQUIRE)) {
		more = 0;
		for (id = 0; id < RGATE_NODES_MAX; id++)
			if (ready & 1U << id && serve(hub, id) == ROUND)
				more |= 1U << id;
		ns = tick(hub);
		/* Who has more has had his turn. The fd of one not armed is still readable. */
		ready = more ? more | sleep_some(hub, 0) : wait_some(hub, ns);
	}
	return NULL;
}

static void close_peers(struct rgate_hub *hub)
{
	unsigned int id;

	for (id = 0; id < RGATE_NODES_MAX; id++) {
		rgate_peer_close(hub->peers[id].peer);
		outbox_fini(&hub->peers[id].out);
	}
}

static int open_peers(struct rgate_hub *hub, uint32_t nodes)
{
	const struct rgate_cluster *cluster = rgate_node_cluster(hub->node);
	struct rgate_cluster_node to;
	struct hub_peer *p;
	unsigned int i;
	int err = 0;

	for (i = 0; !err && i < rgate_cluster_nodes(cluster); i++) {
		to.sz = sizeof(to);
		err = rgate_cluster_node(cluster, i, &to);
		if (err)
			break;
		if (nodes ? !(nodes & 1U << to.id) : to.id == rgate_node_id(hub->node))
			continue;
		p = &hub->peers[to.id];
		err = rgate_peer_open(&p->peer, hub->node, to.id);
		session_init(&p->session, p->peer, 0, 0);
		if (!err)
			err = outbox_init(&p->out, hub->node, p->peer);
		if (!err)
			err = events_add(&hub->ev, rgate_peer_fd(p->peer), EPOLLIN, to.id);
	}
	if (err)
		close_peers(hub);
	return err;
}

int rgate_hub_start(struct rgate_hub *hub)
{
	int err;

	if (hub->started)
		return -EALREADY;
	err = rgate_thread_start(&hub->thread, NULL, hub_main, hub);
	hub->started = !err;
	return err;
}

static void destroy_turns(struct rgate_hub *hub)
{
	unsigned int i;

	for (i = 0; i < RGATE_SERVICES_MAX; i++)
		pthread_mutex_destroy(&hub->turn[i]);
}

int rgate_hub_create(struct rgate_hub **out, struct rgate_node *node,
		     const struct rgate_hub_opts *opts)
{
	struct rgate_hub_opts o;
	struct rgate_hub *hub;
	unsigned int i;
	int err;

	err = rgate_opts_copy(&o, sizeof(o), opts);
	if (!err && o.flags & ~(uint32_t)RGATE_HUB_PAUSED)
		err = -EINVAL;
	if (err)
		return err;
	hub = calloc(1, sizeof(*hub));
	if (!hub)
		return -ENOMEM;
	err = rgate_spin_init(&hub->spin, o.spin_us);
	if (err)
		goto free_hub;
	hub->node = node;
	hub->users = 1;
	err = events_open(&hub->ev);
	if (err)
		goto free_hub;
	for (i = 0; i < RGATE_SERVICES_MAX; i++)
		rgate_mutex_init_brief(&hub->turn[i]);
	err = open_peers(hub, o.nodes);
	if (err)
		goto destroy_turns;
	err = o.flags & RGATE_HUB_PAUSED ? 0 : rgate_hub_start(hub);
	if (err)
		goto close_peers;
	rgate_node_get(node);
	*out = hub;
	return 0;

close_peers:
	close_peers(hub);
destroy_turns:
	destroy_turns(hub);
	events_close(&hub->ev);
free_hub:
	free(hub);
	return err;
}

void rgate_hub_get(struct rgate_hub *hub)
{
	__atomic_add_fetch(&hub->users, 1, __ATOMIC_RELAXED);
}

/* Not its thread: who calls from there has a role */
void rgate_hub_put(struct rgate_hub *hub)
{
	struct rgate_node *node = hub->node;

	if (__atomic_sub_fetch(&hub->users, 1, __ATOMIC_ACQ_REL))
		return;
	__atomic_store_n(&hub->stop, true, __ATOMIC_RELEASE);
	rgate_hub_wake(hub);
	if (hub->started)
		pthread_join(hub->thread, NULL);
	close_peers(hub);
	destroy_turns(hub);
	events_close(&hub->ev);
	free(hub);
	rgate_node_put(node);
}

void rgate_hub_destroy(struct rgate_hub *hub)
{
	struct rgate_hub_stats s = { .sz = sizeof(s) };

	if (!hub)
		return;
	(void)rgate_hub_stats(hub, &s);
	if (s.serving | s.asking)
		rgate_info("the hub of node %u goes on until its services are removed (%#x, %#x)",
			   rgate_node_id(hub->node), s.serving, s.asking);
	rgate_hub_put(hub);
}

int rgate_hub_add(struct rgate_hub *hub, uint32_t number, const struct rgate_service *ops,
		  void *ctx)
{
	const unsigned int i = place(number);
	struct hub_role made = { .ctx = ctx }, *r;
	int err;

	if (i == ROLES || !ops)
		return -EINVAL;
	err = rgate_opts_copy(&made.ops, sizeof(made.ops), ops);
	if (err)
		return err;
	made.ops.sz = sizeof(made.ops);
	r = &hub->roles[i];
	pthread_mutex_lock(turn_of(hub, i));
	if (r->ops.sz) {
		err = -EEXIST;
	} else {
		*r = made;
		rgate_hub_get(hub);
	}
	pthread_mutex_unlock(turn_of(hub, i));
	if (err)
		return err;
	__atomic_or_fetch(&hub->there, 1U << i, __ATOMIC_RELAXED);
	/* It is the thread that tells of connections: see catch_up(). */
	rgate_hub_wake(hub);
	return 0;
}

void rgate_hub_remove(struct rgate_hub *hub, uint32_t number)
{
	const unsigned int i = place(number);
	bool was;

	if (i == ROLES)
		return;
	__atomic_and_fetch(&hub->there, ~(1U << i), __ATOMIC_RELAXED);
	pthread_mutex_lock(turn_of(hub, i));
	was = hub->roles[i].ops.sz;
	memset(&hub->roles[i], 0, sizeof(hub->roles[i]));
	pthread_mutex_unlock(turn_of(hub, i));
	if (was)
		rgate_hub_put(hub);
}

struct rgate_node *rgate_hub_node(const struct rgate_hub *hub)
{
	return hub->node;
}

struct rgate_peer *rgate_hub_peer(const struct rgate_hub *hub, uint32_t node)
{
	return node < RGATE_NODES_MAX ? hub->peers[node].peer : NULL;
}

uint32_t rgate_hub_epoch(const struct rgate_hub *hub, uint32_t node)
{
	return node < RGATE_NODES_MAX ? hub->peers[node].session.epoch : 0;
}

int rgate_hub_send(struct rgate_hub *hub, uint32_t node, const void *msg, size_t len)
{
	struct rgate_peer *peer = rgate_hub_peer(hub, node);
	struct outbox *box;
	int err;

	if (!peer)
		return -ENOTCONN;
	box = &hub->peers[node].out;
	err = outbox_send(box, msg, len);
	if (!err && outbox_pump(box))
		rgate_hub_wake(hub);
	return err;
}

/* The thread sees what was set before, by the next tick at the latest. */
static void wake(struct rgate_hub *hub)
{
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	if (!__atomic_load_n(&hub->polling, __ATOMIC_RELAXED))
		events_wake(&hub->ev);
}

void rgate_hub_await(struct rgate_hub *hub, uint32_t node)
{
	if (!rgate_hub_peer(hub, node))
		return;
	/* Pairs with arm() and look(): what was posted before is seen when it is armed. */
	__atomic_store_n(&hub->peers[node].awaited, true, __ATOMIC_RELEASE);
	if (own != hub)
		wake(hub);
}

void rgate_hub_wake(struct rgate_hub *hub)
{
	__atomic_store_n(&hub->woken, true, __ATOMIC_RELEASE);
	wake(hub);
}

int rgate_hub_stats(const struct rgate_hub *hub, struct rgate_hub_stats *stats)
{
	const uint32_t there = __atomic_load_n(&hub->there, __ATOMIC_RELAXED);
	const struct rgate_hub_stats s = {
		.messages = __atomic_load_n(&hub->stats.messages, __ATOMIC_RELAXED),
		.notices = __atomic_load_n(&hub->stats.notices, __ATOMIC_RELAXED),
		.unknown = __atomic_load_n(&hub->stats.unknown, __ATOMIC_RELAXED),
		.stale = __atomic_load_n(&hub->stats.stale, __ATOMIC_RELAXED),
		.serving = there & ((1U << RGATE_SERVICES_MAX) - 1),
		.asking = there >> RGATE_SERVICES_MAX,
	};

	return rgate_info_copy(stats, &s, sizeof(s));
}
