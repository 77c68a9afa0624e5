// SPDX-License-Identifier: MIT OR GPL-2.0
/* The gateway's thread: who comes, who goes, forwarding, sleeping. */
#include <endian.h>
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/eventfd.h>

#include "clock.h"
#include "consumer.h"
#include "gateway.h"
#include "log.h"

#define IDLE_NS		1000000000LL	/* sleeps at most */
#define FLIGHT_NS	50000LL		/* while posts are under way */
#define FULL_NS		5000000LL	/* while queues wait for room */
#define BUSY_NS		10000000ULL	/* between readings of this thread's CPU time */
#define ENDED_NS	100000000LL	/* between looks at a ring without a producer */

/* What was on its way is lost or not; what only waited may go to another. */
static void bury(struct rgate_gateway *gw, struct gw_dest *d)
{
	struct rgate_gateway_node *node = &gw->nodes[d->node];

	for (; d->done != d->posted; d->done++) {
		gw_unref(gw, &d->items[d->done % GW_QUEUE]);
		gw_count(&node->lost, 1);
	}
	for (; d->done != d->in; d->done++) {
		const struct gw_item *item = &d->items[d->done % GW_QUEUE];

		if (item->flags & GW_DOWN_DROP || !gw_steer(gw, item, true))
			gw_count(&node->dropped_down, 1);
		gw_unref(gw, item);
	}
}

static void say_left(struct rgate_gateway *gw, const struct gw_dest *d)
{
	const struct net_hdr msg = {
		.service = RGATE_SERVICE_NET, .type = NET_LEFT, .ring = htole16((uint16_t)d->ring),
	};

	(void)rgate_hub_send(gw->hub, d->node, &msg, sizeof(msg));
}

static void drop_dest(struct rgate_gateway *gw, unsigned int i)
{
	struct gw_dest *d = gw->dests[i];

	/* Out of the list first, so that nothing is steered to it. */
	pthread_mutex_lock(&gw->lock);
	memmove(&gw->dests[i], &gw->dests[i + 1],
		(--gw->ndests - i) * sizeof(struct gw_dest *));
	pthread_mutex_unlock(&gw->lock);
	rgate_info("node %u: its ring %s is filled no more", d->node, d->name);
	bury(gw, d);
	if (gw_flag(&d->withdrawn) && !gw_flag(&d->dead))
		say_left(gw, d);
	gw_dest_free(gw, d);
}

static void depart(struct rgate_gateway *gw)
{
	unsigned int i = gw->ndests;

	while (i--) {
		struct gw_dest *d = gw->dests[i];

		/* What is under way is read out of the slots and the scratch memory until then. */
		if ((gw_flag(&d->dead) || gw_flag(&d->withdrawn)) && xfer_list_empty(&d->xfers))
			drop_dest(gw, i);
	}
}

static void arrive(struct rgate_gateway *gw)
{
	struct gw_dest *d;

	while (gw->arrivals && gw->ndests < GW_DESTS) {
		d = gw->arrivals;
		gw->arrivals = d->next;
		gw->dests[gw->ndests++] = d;
		gw_count(&gw->nodes[d->node].sessions, 1);
		rgate_info("node %u: its ring %s is filled from position %llu on", d->node, d->name,
			   (unsigned long long)d->head);
	}
}

/* A frame of the source is still on its way or in a queue */
static bool held(const struct gw_source *src)
{
	return src->c.done != src->next;
}

/* Items of the source that are not posted are given up; those posted end soon. */
static void forget(struct rgate_gateway *gw, const struct gw_source *src)
{
	const uint8_t number = (uint8_t)(src - gw->sources);
	unsigned int i;
	uint32_t k, to;

	for (i = 0; i < gw->ndests; i++) {
		struct gw_dest *d = gw->dests[i];

		for (k = to = d->posted; k != d->in; k++)
			if (d->items[k % GW_QUEUE].source != number)
				d->items[to++ % GW_QUEUE] = d->items[k % GW_QUEUE];
			else
				gw_unref(gw, &d->items[k % GW_QUEUE]);
		d->in = to;
	}
}

static bool in_flight(const struct rgate_gateway *gw)
{
	unsigned int i;

	for (i = 0; i < gw->ndests; i++)
		if (!xfer_list_empty(&gw->dests[i]->xfers))
			return true;
	return false;
}

static bool posted_of(const struct rgate_gateway *gw, const struct gw_source *src)
{
	const uint8_t number = (uint8_t)(src - gw->sources);
	unsigned int i;
	uint32_t k;

	for (i = 0; i < gw->ndests; i++) {
		const struct gw_dest *d = gw->dests[i];

		for (k = d->done; k != d->posted; k++)
			if (d->items[k % GW_QUEUE].source == number)
				return true;
	}
	return false;
}

/* From the first frame on that somebody did not get, they stay in the ring. */
static void remove_source(struct rgate_gateway *gw, struct gw_source *src)
{
	if (posted_of(gw, src))
		return;
	if (!src->failed)
		(void)gw_source_release(src);
	forget(gw, src);
	gw_source_unbind(src);
	pthread_mutex_lock(&gw->lock);
	memset(src, 0, sizeof(*src));
	pthread_cond_broadcast(&gw->changed);
	pthread_mutex_unlock(&gw->lock);
}

static int fits(const struct rgate_gateway *gw, struct rgate_ring *ring)
{
	struct rgate_view v;
	unsigned int i;

	rgate_ring_view(ring, &v);
	if (v.prod->policy == RGATE_POLICY_OVERWRITE)
		return -EOPNOTSUPP;
	for (i = 0; i < gw->ndests; i++)
		if (v.slot_size > 1U << gw->dests[i]->size_shift)
			return -EMSGSIZE;
	return 0;
}

/* With the lock */
static int add_source(struct rgate_gateway *gw, struct rgate_ring *ring)
{
	struct gw_source *src = gw->sources;
	int err = fits(gw, ring);

	while (src < gw->sources + RGATE_GATEWAY_RINGS_MAX && src->ring)
		src++;
	if (!err && src == gw->sources + RGATE_GATEWAY_RINGS_MAX)
		err = -ENOSPC;
	if (err)
		return err;
	src->ring = ring;
	src->driven = gw->adding_driven;
	err = gw_source_bind(gw, src);
	if (err)
		memset(src, 0, sizeof(*src));
	return err;
}

static void control(struct rgate_gateway *gw)
{
	struct rgate_steer *old = NULL;
	unsigned int i;

	pthread_mutex_lock(&gw->lock);
	arrive(gw);
	if (gw->adding) {
		gw->add_err = add_source(gw, gw->adding);
		__atomic_store_n(&gw->adding, NULL, __ATOMIC_RELAXED);
		pthread_cond_broadcast(&gw->changed);
	}
	if (gw->new_rules) {
		old = gw->rules;
		gw->rules = rgate_steer_get(gw->steer);
		__atomic_store_n(&gw->new_rules, false, __ATOMIC_RELAXED);
	}
	pthread_mutex_unlock(&gw->lock);
	rgate_steer_destroy(old);
	depart(gw);
	for (i = 0; i < RGATE_GATEWAY_RINGS_MAX; i++)
		if (gw->sources[i].ring && gw_flag(&gw->sources[i].leaving))
			remove_source(gw, &gw->sources[i]);
}

/* A resized ring is mapped anew once all of the old memory was given back. */
static void follow(struct rgate_gateway *gw, struct gw_source *src)
{
	int err;

	gw_source_unbind(src);
	/* the hub's thread looks at the ring's sizes */
	pthread_mutex_lock(&gw->lock);
	err = rgate_ring_remap(src->ring);
	pthread_mutex_unlock(&gw->lock);
	if (err >= 0)
		err = fits(gw, src->ring);
	if (!err)
		err = gw_source_bind(gw, src);
	if (!err)
		return;
	rgate_err("a ring of the gateway was resized and cannot be used any more: %s",
		  strerror(-err));
	src->failed = true;
}

/* As rgate_consumer_arm_at(). Nobody publishes behind the back of who drives the source. */
static int arm(struct gw_source *src)
{
	if (!src->driven)
		return rgate_consumer_arm_at(&src->c, src->next);
	if (rgate_consumer_ready(&src->c, src->next))
		return 1;
	return src->c.prod->state == RGATE_STATE_ACTIVE ? 0 : -EPIPE;
}

/* 1: do not sleep; 0: asleep once there is nothing */
static int prepare_sleep(struct rgate_gateway *gw, struct gw_source *src, int64_t *most)
{
	int ret = arm(src);

	if (ret != -EPIPE)
		return ret;
	if (!held(src) && __atomic_load_n(&src->c.prod->state, __ATOMIC_ACQUIRE) ==
	    RGATE_STATE_RETIRED) {
		follow(gw, src);
		return 1;
	}
	if (*most > ENDED_NS)
		*most = ENDED_NS;
	return 0;
}

static int64_t until(uint64_t ns)
{
	const uint64_t now = rgate_clock_now(CLOCK_MONOTONIC);

	return ns > now ? (int64_t)(ns - now) : 0;
}

static int64_t patience(const struct rgate_gateway *gw)
{
	int64_t ns = IDLE_NS, mail;
	unsigned int i;

	if (in_flight(gw))
		return FLIGHT_NS;
	for (i = 0; i < gw->ndests; i++) {
		const struct gw_dest *d = gw->dests[i];

		if (d->in != d->posted || d->mail_due)
			return FULL_NS;
		mail = d->mail_by ? until(d->mail_by) : ns;
		if (mail < ns)
			ns = mail;
	}
	return ns;
}

/*
 * Who fills a driven source's ring is this thread: it is its socket that wakes it. Of the
 * others the ring's own.
 */
static int fd_of(const struct gw_source *src)
{
	return src->driven ? rgate_source_socket(src->driven) : rgate_ring_fd(src->ring);
}

static void nap(struct rgate_gateway *gw)
{
	struct pollfd fds[RGATE_GATEWAY_RINGS_MAX + 1] = {
		{ .fd = gw->wake_fd, .events = POLLIN },
	};
	struct gw_source *armed[RGATE_GATEWAY_RINGS_MAX];
	int64_t ns = patience(gw);
	unsigned int i, n = 0;
	struct timespec ts;
	bool awake = false;
	eventfd_t v;

	for (i = 0; i < RGATE_GATEWAY_RINGS_MAX && !awake; i++) {
		struct gw_source *src = &gw->sources[i];

		/* A ring that is full here would not let us sleep. */
		if (!src->ring || src->failed || src->next - src->c.done > src->c.mask)
			continue;
		awake = prepare_sleep(gw, src, &ns) == 1;
		if (awake || src->failed)
			continue;
		armed[n++] = src;
		fds[n] = (struct pollfd){ .fd = fd_of(src), .events = POLLIN };
	}
	ts = rgate_clock_timespec((uint64_t)ns);
	if (!awake) {
		gw_count(&gw->stats.sleeps, 1);
		(void)ppoll(fds, n + 1, &ts, NULL);
	}
	/* drains what is readable, and is not asked for what was not armed */
	for (i = 0; i < n; i++) {
		if (!armed[i]->driven)
			rgate_consumer_disarm(&armed[i]->c);
		armed[i]->quiet = armed[i]->driven && !awake && !fds[i + 1].revents;
	}
	if (fds[0].revents)
		(void)eventfd_read(gw->wake_fd, &v);
}

/* By this thread, so that its frames need no wakeup to come here */
static unsigned int drive(struct gw_source *src)
{
	int r;

	/* poll(2) has just looked, and a frame of another source waits meanwhile. */
	if (src->quiet) {
		src->quiet = false;
		return 0;
	}
	r = rgate_source_turn(src->driven);
	if (r >= 0)
		return (unsigned int)r;
	/* what it has left in the ring is taken yet */
	src->driven = NULL;
	return 0;
}

static unsigned int forward(struct rgate_gateway *gw)
{
	unsigned int i, work = 0;

	for (i = 0; i < RGATE_GATEWAY_RINGS_MAX; i++) {
		struct gw_source *src = &gw->sources[i];

		if (!src->ring || src->failed || gw_flag(&src->leaving))
			continue;
		if (src->driven)
			work += drive(src);
		work += gw_source_take(gw, src);
	}
	for (i = 0; i < gw->ndests; i++)
		work += gw_dest_send(gw, gw->dests[i]) + gw_dest_reap(gw, gw->dests[i]);
	for (i = 0; i < RGATE_GATEWAY_RINGS_MAX; i++)
		if (gw->sources[i].refs)
			work += gw_source_release(&gw->sources[i]);
	return work;
}

static bool anything_new(const struct rgate_gateway *gw)
{
	unsigned int i;

	if (__atomic_load_n(&gw->arrivals, __ATOMIC_RELAXED) ||
	    __atomic_load_n(&gw->adding, __ATOMIC_RELAXED) || gw_flag(&gw->new_rules))
		return true;
	for (i = 0; i < gw->ndests; i++)
		if (gw_flag(&gw->dests[i]->dead) || gw_flag(&gw->dests[i]->withdrawn))
			return true;
	for (i = 0; i < RGATE_GATEWAY_RINGS_MAX; i++)
		if (gw_flag(&gw->sources[i].leaving))
			return true;
	return false;
}

static uint64_t cpu_ns(void)
{
	return rgate_clock_now(CLOCK_THREAD_CPUTIME_ID);
}

void *gw_main(void *arg)
{
	struct rgate_gateway *gw = arg;
	uint64_t idle = 0, told = 0, now;

	while (!gw_flag(&gw->stop)) {
		if (anything_new(gw))
			control(gw);
		if (forward(gw)) {
			if (idle)
				rgate_spin_learn(&gw->spin,
						 rgate_clock_now(CLOCK_MONOTONIC) - idle);
			idle = 0;
			continue;
		}
		now = rgate_clock_now(CLOCK_MONOTONIC);
		if (!idle)
			idle = now;
		if (now - idle < gw->spin.ns) {
			rgate_cpu_relax();
			continue;
		}
		/* A system call: not before each of many short naps */
		if (now - told >= BUSY_NS) {
			__atomic_store_n(&gw->stats.busy_ns, cpu_ns(), __ATOMIC_RELAXED);
			told = now;
		}
		nap(gw);
	}
	return NULL;
}
