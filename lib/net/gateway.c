// SPDX-License-Identifier: MIT OR GPL-2.0
#include <endian.h>
#include <errno.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "clock.h"
#include "gateway.h"
#include "hub_ref.h"
#include "log.h"
#include "opts.h"
#include "thread.h"

#define FINISH_MS	1000
#define PACK_NS		1000	/* CPU time of an operation from which frames are packed */
#define EVERYONE	RGATE_RULE_DEFAULT " hash:*"	/* rules, until there are others */

static void wake(struct rgate_gateway *gw)
{
	eventfd_write(gw->wake_fd, 1);
}

static void send_to(struct rgate_gateway *gw, uint32_t node, const void *msg, size_t len)
{
	int err = rgate_hub_send(gw->hub, node, msg, len);

	if (err && err != -ENOTCONN)
		rgate_warn("no message to node %u: %s", node, strerror(-err));
}

/* With the lock: the thread drops what is marked */
static void mark(struct rgate_gateway *gw, uint32_t node, int ring, bool dead)
{
	unsigned int i;

	for (i = 0; i < gw->ndests; i++) {
		struct gw_dest *d = gw->dests[i];

		if (d->node == node && (ring < 0 || d->ring == (uint32_t)ring))
			__atomic_store_n(dead ? &d->dead : &d->withdrawn, true, __ATOMIC_RELEASE);
	}
}

static void cancel_of(struct rgate_gateway *gw, struct gw_dest **at, uint32_t node, int ring)
{
	struct gw_dest *d;

	while ((d = *at)) {
		if (d->node == node && (ring < 0 || d->ring == (uint32_t)ring)) {
			__atomic_store_n(at, d->next, __ATOMIC_RELAXED);
			gw_dest_free(gw, d);
		} else {
			at = &d->next;
		}
	}
}

/* Arrivals that the thread did not see yet, and rings without the inbox that they shall have */
static void cancel(struct rgate_gateway *gw, uint32_t node, int ring)
{
	cancel_of(gw, &gw->arrivals, node, ring);
	cancel_of(gw, &gw->waiting, node, ring);
}

/* With the lock: the thread takes it from there */
static void arrived(struct rgate_gateway *gw, struct gw_dest *d)
{
	d->next = gw->arrivals;
	__atomic_store_n(&gw->arrivals, d, __ATOMIC_RELEASE);
}

static void say_ready(struct rgate_gateway *gw, uint32_t node)
{
	const struct net_ready msg = {
		.hdr = { .service = RGATE_SERVICE_NET, .type = NET_READY },
		.instance = htole64(gw->instance),
	};

	send_to(gw, node, &msg, sizeof(msg));
}

static void on_state(void *ctx, uint32_t node, bool up)
{
	struct rgate_gateway *gw = ctx;

	if (up) {
		say_ready(gw, node);
		return;
	}
	pthread_mutex_lock(&gw->lock);
	mark(gw, node, -1, true);
	cancel(gw, node, -1);
	pthread_mutex_unlock(&gw->lock);
	wake(gw);
}

static void on_offer(struct rgate_gateway *gw, uint32_t node, const struct net_offer *o)
{
	struct net_taken t = {
		.hdr = { .service = RGATE_SERVICE_NET, .type = NET_TAKEN, .ring = o->hdr.ring },
	};
	struct gw_dest *d = NULL;
	int err;

	pthread_mutex_lock(&gw->lock);
	err = gw_dest_create(&d, gw, node, o);
	if (!err)
		err = rgate_buf_desc(rgate_node_pool(gw->node), d->credit, 0,
				     d->pack.size ? 16 : 8, &t.credit_at);
	if (err) {
		gw_count(&gw->stats.refused, 1);
		rgate_warn("node %u: its ring %.31s is refused: %s", node,
			   memchr(o->name, 0, sizeof(o->name)) ? o->name : "?", strerror(-err));
		if (d)
			gw_dest_free(gw, d);
		d = NULL;
	} else {
		/* offered again: the former one is not to be written any more */
		mark(gw, node, (int)d->ring, true);
		cancel(gw, node, (int)d->ring);
		t.inbox = htole32(d->pack.size);
	}
	t.hdr.value = htole32((uint32_t)-err);
	t.slot_size = htole32(gw_slot_size(gw));
	pthread_mutex_unlock(&gw->lock);
	/* First the node learns where credits go. */
	send_to(gw, node, &t, sizeof(t));
	if (!d)
		return;
	pthread_mutex_lock(&gw->lock);
	if (d->pack.size) {
		d->next = gw->waiting;
		gw->waiting = d;
	} else {
		arrived(gw, d);
	}
	pthread_mutex_unlock(&gw->lock);
	wake(gw);
}

static void on_inbox(struct rgate_gateway *gw, uint32_t node, const struct net_inbox *msg)
{
	struct gw_dest **at = &gw->waiting, *d;

	pthread_mutex_lock(&gw->lock);
	while ((d = *at) && (d->node != node || d->ring != le16toh(msg->hdr.ring)))
		at = &d->next;
	if (d) {
		*at = d->next;
		(void)gw_pack_inbox(d, msg);
		arrived(gw, d);
	}
	pthread_mutex_unlock(&gw->lock);
	if (d)
		wake(gw);
}

static void on_withdraw(struct rgate_gateway *gw, uint32_t node, uint16_t ring)
{
	struct net_hdr left = {
		.service = RGATE_SERVICE_NET, .type = NET_LEFT, .ring = htole16(ring),
	};
	bool known = false;
	unsigned int i;

	pthread_mutex_lock(&gw->lock);
	cancel(gw, node, ring);
	for (i = 0; i < gw->ndests; i++)
		known |= gw->dests[i]->node == node && gw->dests[i]->ring == ring;
	mark(gw, node, ring, false);
	pthread_mutex_unlock(&gw->lock);
	if (known)
		wake(gw);
	else
		send_to(gw, node, &left, sizeof(left));
}

static void on_ping(struct rgate_gateway *gw, uint32_t node, const struct net_ping *ping)
{
	struct net_ping pong = *ping;
	const uint32_t clock = le32toh(ping->hdr.value);

	if (clock >= RGATE_CLOCK_COUNT)
		return;
	pong.hdr.type = NET_PONG;
	pong.seen = htole64(rgate_clock_now(rgate_clock_id(clock)));
	pong.answered = pong.seen;
	send_to(gw, node, &pong, sizeof(pong));
}

/* The name of a device that frames came from, where this process sees it */
static void on_device(struct rgate_gateway *gw, uint32_t node, const struct net_hdr *hdr)
{
	struct net_name msg = {
		.hdr = { .service = RGATE_SERVICE_NET, .type = NET_NAME, .value = hdr->value },
	};

	if (!if_indextoname(le32toh(hdr->value), msg.name))
		memset(msg.name, 0, sizeof(msg.name));
	send_to(gw, node, &msg, sizeof(msg));
}

static void on_message(void *ctx, uint32_t node, const void *msg, size_t len)
{
	const struct net_hdr *hdr = msg;
	struct rgate_gateway *gw = ctx;

	if (len < sizeof(*hdr))
		return;
	if (hdr->type == NET_HELLO)
		say_ready(gw, node);
	else if (hdr->type == NET_OFFER && len == sizeof(struct net_offer))
		on_offer(gw, node, msg);
	else if (hdr->type == NET_INBOX && len == sizeof(struct net_inbox))
		on_inbox(gw, node, msg);
	else if (hdr->type == NET_WITHDRAW)
		on_withdraw(gw, node, le16toh(hdr->ring));
	else if (hdr->type == NET_PING && len == sizeof(struct net_ping))
		on_ping(gw, node, msg);
	else if (hdr->type == NET_DEVICE && len == sizeof(*hdr))
		on_device(gw, node, hdr);
}

/* Slots came free that we had asked for. */
static void on_notice(void *ctx, uint32_t node, uint32_t imm)
{
	(void)node;
	(void)imm;
	wake(ctx);
}

static bool is_gateway(struct rgate_node *node)
{
	struct rgate_cluster_node n = { .sz = sizeof(n) };

	return !rgate_cluster_gateway(rgate_node_cluster(node), &n) && n.id == rgate_node_id(node);
}

static int first_rules(struct rgate_gateway *gw)
{
	int err = rgate_steer_create(&gw->steer, rgate_node_cluster(gw->node));

	if (err)
		return err;
	err = rgate_steer_add(gw->steer, EVERYONE, NULL, NULL, 0);
	if (err) {		/* a cluster of one */
		rgate_dbg("no compute nodes: no rules");
		err = 0;
	}
	gw->rules = rgate_steer_get(gw->steer);
	return err;
}

static int start_thread(struct rgate_gateway *gw)
{
	return rgate_thread_start(&gw->thread, NULL, gw_main, gw);
}

static void stop_thread(struct rgate_gateway *gw)
{
	__atomic_store_n(&gw->stop, true, __ATOMIC_RELEASE);
	wake(gw);
	pthread_join(gw->thread, NULL);
}

static bool packs(const struct rgate_gateway *gw)
{
	uint64_t ns;

	if (gw->o.pack != RGATE_PACK_AUTO)
		return gw->o.pack == RGATE_PACK_ALWAYS;
	ns = gw_pack_cost(gw->node);
	rgate_dbg("an operation takes %llu ns of CPU time", (unsigned long long)ns);
	return ns >= PACK_NS;
}

int rgate_gateway_create(struct rgate_gateway **out, struct rgate_hub *hub,
			 const struct rgate_gateway_opts *opts)
{
	const struct rgate_service service = {
		.sz = sizeof(service), .state = on_state, .message = on_message,
		.notice = on_notice,
	};
	struct rgate_gateway *gw;
	struct rgate_gateway_opts o;
	struct rgate_spin spin;
	int err;

	err = rgate_opts_copy(&o, sizeof(o), opts);
	if (!err)
		err = rgate_spin_init(&spin, o.spin_us);
	if (err)
		return err;
	if (o.burst > RGATE_CHAIN_MAX || o.pack >= RGATE_PACK_COUNT ||
	    !is_gateway(rgate_hub_node(hub)))
		return -EINVAL;
	gw = calloc(1, sizeof(*gw));
	if (!gw)
		return -ENOMEM;
	gw->spin = spin;
	o.burst = o.burst ? o.burst : RGATE_CHAIN_MAX;
	gw->o = o;
	/* never 0 */
	gw->instance = rgate_clock_now(CLOCK_REALTIME) | 1;
	gw->hub = hub;
	gw->node = rgate_hub_node(hub);
	gw->pack = packs(gw);
	gw->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	err = gw->wake_fd < 0 ? -errno : first_rules(gw);
	if (err)
		goto free_gw;
	pthread_mutex_init(&gw->lock, NULL);
	pthread_cond_init(&gw->changed, NULL);
	err = start_thread(gw);
	if (err)
		goto destroy_lock;
	err = rgate_hub_add(hub, RGATE_SERVICE_NET, &service, gw);
	if (err)
		goto stop_thread;
	*out = gw;
	return 0;

stop_thread:
	stop_thread(gw);
destroy_lock:
	pthread_cond_destroy(&gw->changed);
	pthread_mutex_destroy(&gw->lock);
	rgate_steer_destroy(gw->rules);
	rgate_steer_destroy(gw->steer);
free_gw:
	if (gw->wake_fd >= 0)
		close(gw->wake_fd);
	free(gw);
	return err;
}

void rgate_gateway_destroy(struct rgate_gateway *gw)
{
	struct rgate_hub *hub;
	unsigned int i;

	if (!gw)
		return;
	hub = gw->hub;
	/* Its node and its peers are used until the end. */
	rgate_hub_get(hub);
	rgate_hub_remove(hub, RGATE_SERVICE_NET);
	stop_thread(gw);
	for (i = 0; i < RGATE_NODES_MAX; i++)
		cancel(gw, i, -1);
	/* Posts that are under way still use their memory. */
	for (i = 0; i < gw->ndests; i++) {
		struct gw_dest *d = gw->dests[i];

		xfer_settle(&d->xfers, FINISH_MS);
		(void)gw_dest_reap(gw, d);
	}
	for (i = 0; i < RGATE_GATEWAY_RINGS_MAX; i++)
		if (gw->sources[i].refs) {
			(void)gw_source_release(&gw->sources[i]);
			gw_source_unbind(&gw->sources[i]);
		}
	for (i = 0; i < gw->ndests; i++)
		gw_dest_free(gw, gw->dests[i]);
	rgate_steer_destroy(gw->rules);
	rgate_steer_destroy(gw->steer);
	pthread_cond_destroy(&gw->changed);
	pthread_mutex_destroy(&gw->lock);
	close(gw->wake_fd);
	free(gw);
	rgate_hub_put(hub);
}

/* The thread binds it, as sources are its own. */
int rgate_gateway_add_source(struct rgate_gateway *gw, struct rgate_ring *ring,
			     struct rgate_source *source)
{
	int err;

	pthread_mutex_lock(&gw->lock);
	while (gw->adding)
		pthread_cond_wait(&gw->changed, &gw->lock);
	gw->adding_driven = source;
	__atomic_store_n(&gw->adding, ring, __ATOMIC_RELEASE);
	wake(gw);
	while (gw->adding == ring)
		pthread_cond_wait(&gw->changed, &gw->lock);
	err = gw->add_err;
	pthread_mutex_unlock(&gw->lock);
	return err;
}

int rgate_gateway_add(struct rgate_gateway *gw, struct rgate_ring *ring)
{
	return rgate_gateway_add_source(gw, ring, NULL);
}

int rgate_gateway_remove(struct rgate_gateway *gw, struct rgate_ring *ring)
{
	int err = -ENOENT;
	unsigned int i;

	pthread_mutex_lock(&gw->lock);
	for (i = 0; i < RGATE_GATEWAY_RINGS_MAX; i++) {
		struct gw_source *src = &gw->sources[i];

		if (src->ring != ring)
			continue;
		__atomic_store_n(&src->leaving, true, __ATOMIC_RELEASE);
		wake(gw);
		/* What is under way ends, at the latest when its connection does. */
		while (src->ring == ring)
			pthread_cond_wait(&gw->changed, &gw->lock);
		err = 0;
	}
	pthread_mutex_unlock(&gw->lock);
	return err;
}

int rgate_gateway_steer(struct rgate_gateway *gw, struct rgate_steer *steer)
{
	struct rgate_steer *was;

	if (!steer)
		return -EINVAL;
	pthread_mutex_lock(&gw->lock);
	was = gw->steer;
	gw->steer = steer;
	__atomic_store_n(&gw->new_rules, true, __ATOMIC_RELEASE);
	pthread_mutex_unlock(&gw->lock);
	rgate_steer_destroy(was);
	wake(gw);
	return 0;
}
