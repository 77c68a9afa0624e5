// SPDX-License-Identifier: MIT OR GPL-2.0
#define _GNU_SOURCE
#include <errno.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "att_filter.h"
#include "clean.h"
#include "cmd.h"
#include "input.h"
#include "module.h"
#include "snapshot.h"
#include "util.h"

/* Bursts wait in the socket while the receive thread is not scheduled. */
#define SOCKET_BUFFER	(4U << 20)

static int open_ring(struct input_ring *r, const struct capture_opts *o,
		     unsigned int i)
{
	bool memfd = o->userspace || o->udp || o->remote;
	char name[RGATE_NAME_LEN];
	struct rgate_ring_opts ro = {
		.sz = sizeof(ro),
		.slots = o->slots,
		.slot_size = o->slot_size,
		.flags = o->chain ? RGATE_RING_CHAIN : 0,
		/* the gateway's, whose distance from ours is told then */
		.clock = o->remote ? RGATE_CLOCK_MONOTONIC : RGATE_CLOCK_REALTIME,
		.name = name,
		.device = o->daemon,
	};
	struct rgate_view view;
	int err;

	snprintf(name, sizeof(name), "capture-%d-%u", getpid(), i);
	if (o->remote)
		err = rgate_ring_open_remote(&r->ring, &ro);
	else
		err = memfd ? rgate_ring_open_memfd(&r->ring, &ro) :
			      rgate_ring_open(&r->ring, &ro);
	if (err && o->remote)
		return fail_in("rgate_ring_open_remote", err, "cannot get a ring");
	if (err && !memfd && is_no_module(err))
		return fail_no_module();
	if (err)
		return fail_in(memfd ? "rgate_ring_open_memfd" : "rgate_ring_open", err,
			       "cannot make a ring of %u slots of %u bytes",
			    o->slots ?: RGATE_SLOTS_DEFAULT,
			    o->slot_size ?: RGATE_SLOT_SIZE_DEFAULT);
	rgate_ring_view(r->ring, &view);
	r->room = view.slot_size - RGATE_SLOT_HDR;
	err = rgate_consumer_init(&r->c, r->ring, NULL);
	return err ? fail(err, "cannot read the ring") : EXIT_OK;
}

/* A packet socket that receives nothing keeps the device promiscuous. */
static int open_promisc(struct input_dev *d)
{
	struct packet_mreq mr = {
		.mr_ifindex = d->ifindex,
		.mr_type = PACKET_MR_PROMISC,
	};

	d->promisc_fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0);
	if (d->promisc_fd >= 0 &&
	    !setsockopt(d->promisc_fd, SOL_PACKET, PACKET_ADD_MEMBERSHIP, &mr,
			sizeof(mr)))
		return EXIT_OK;
	return fail_in("rgate_source_start_packet", -errno, "cannot make %s promiscuous", d->name);
}

static int open_module(struct inputs *in, struct input_dev *d,
		       const struct capture_opts *o)
{
	struct rgate_attach_opts ao = {
		.sz = sizeof(ao),
		.action = o->steal ? RGATE_ACTION_STEAL : RGATE_ACTION_MIRROR,
		.fanout = o->fanout,
		.filter = o->filter,
	};
	struct rgate_ident rings[RGATE_ATT_RINGS_MAX];
	struct sock_fprog prog;
	unsigned int i;
	int ret, err;

	ret = att_filter(d->name, &ao, &prog);
	if (ret)
		return ret;
	for (i = 0; i < in->nrings; i++)
		rgate_ring_ident(in->rings[i].ring, &rings[i]);
	err = rgate_ctl_attach(in->ctl, d->name, rings, in->nrings, &ao,
			       &d->att);
	rgate_filter_free(&prog);
	if (err)
		return fail_in("rgate_ctl_attach", err, "cannot attach to %s", d->name);
	d->attached = true;
	return o->promisc ? open_promisc(d) : EXIT_OK;
}

/* The thread must not get the signals that are meant for the main one. */
static int open_source(struct input_dev *d, struct rgate_ring *ring,
		       const struct capture_opts *o)
{
	struct rgate_source_opts so = {
		.sz = sizeof(so),
		.rcvbuf = SOCKET_BUFFER,
		.filter = o->filter,
		.promisc = o->promisc,
	};
	struct rgate_attach_opts filter = { .filter = o->filter };
	struct sock_fprog prog;
	sigset_t old;
	int err;

	/* what libpcap says of a wrong expression reaches the user */
	err = att_filter(o->any || o->udp ? NULL : d->name, &filter, &prog);
	if (err)
		return err;
	rgate_filter_free(&prog);
	util_block_signals(&old);
	if (o->udp)
		err = rgate_source_start_udp(&d->src, &ring, 1,
					     (const struct sockaddr *)&o->addr,
					     o->addrlen, &so);
	else
		err = rgate_source_start_packet(&d->src, &ring, 1,
						o->any ? NULL : d->name, &so);
	sigprocmask(SIG_SETMASK, &old, NULL);
	if (!err)
		return EXIT_OK;
	return fail_in(o->udp ? "rgate_source_start_udp" : "rgate_source_start_packet", err,
		       "cannot receive on %s", d->name);
}

/* gcc 12's analyzer loses what the device has. */
#ifndef __clang__
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wanalyzer-malloc-leak"
#endif
static int open_dev(struct inputs *in, unsigned int i,
		    const struct capture_opts *o)
{
	struct input_dev *d = &in->devs[i];
	struct input_remote *remote;

	if (o->remote) {
		snprintf(d->name, sizeof(d->name), "remote");
		remote = calloc(1, sizeof(*remote));
		if (!remote)
			return fail(-ENOMEM, "cannot begin");
		remote->ring = in->rings[i].ring;
		d->remote = remote;
		return EXIT_OK;
	}
	if (o->udp) {
		snprintf(d->name, sizeof(d->name), "udp:%s", o->addr_text);
	} else if (o->any) {
		snprintf(d->name, sizeof(d->name), "any");
	} else {
		snprintf(d->name, sizeof(d->name), "%s", o->devs[i]);
		d->ifindex = if_nametoindex(d->name);
		if (!d->ifindex)
			return fail_in("rgate_source_start_packet", -ENODEV, "%s", d->name);
	}
	if (o->udp || o->userspace)
		return open_source(d, in->rings[i].ring, o);
	return open_module(in, d, o);
}

#ifndef __clang__
#pragma GCC diagnostic pop
#endif

int inputs_open(struct inputs *in, const struct capture_opts *o)
{
	bool memfd = o->userspace || o->udp || o->remote;
	unsigned int i;
	int ret = EXIT_OK;

	*in = (struct inputs){ .quiet = o->quiet };
	in->ndevs = o->udp || o->any || o->remote ? 1 : o->ndevs;
	/* a source is the producer of its ring: one each */
	in->nrings = memfd ? in->ndevs : o->rings;
	in->rings = calloc(in->nrings, sizeof(*in->rings));
	in->devs = calloc(in->ndevs, sizeof(*in->devs));
	if (!in->rings || !in->devs) {
		in->ndevs = in->nrings = 0;
		return fail(-ENOMEM, "cannot begin");
	}
	for (i = 0; i < in->ndevs; i++)
		in->devs[i].promisc_fd = -1;
	for (i = 0; !ret && i < in->nrings; i++)
		ret = open_ring(&in->rings[i], o, i);
	if (!ret && !memfd)
		ret = ctl_open(&in->ctl);
	for (i = 0; !ret && i < in->ndevs; i++)
		ret = open_dev(in, i, o);
	return ret;
}

struct input_ring *inputs_next(struct inputs *in,
			       const struct rgate_slot **slot)
{
	struct input_ring *best = NULL;
	const struct rgate_slot *s;
	unsigned int i;

	*slot = NULL;
	for (i = 0; i < in->nrings; i++) {
		s = rgate_consumer_next(&in->rings[i].c);
		if (s && (!*slot || s->tstamp < (*slot)->tstamp)) {
			*slot = s;
			best = &in->rings[i];
		}
	}
	return best;
}

/* 1: something is there; 0: asleep words are set; -EPIPE: all ended; -errno */
static int arm_all(struct inputs *in, struct pollfd *pfds)
{
	unsigned int i, ended = 0;
	int r;

	for (i = 0; i < in->nrings; i++) {
		struct input_ring *ring = &in->rings[i];

		pfds[i].fd = -1;
		pfds[i].events = POLLIN;
		r = ring->ended ? -EPIPE : rgate_consumer_arm(&ring->c);
		if (r == -EPIPE) {
			ring->ended = true;
			ended++;
			continue;
		}
		if (r)
			return r;
		pfds[i].fd = rgate_ring_fd(ring->ring);
	}
	return ended == in->nrings ? -EPIPE : 0;
}

int inputs_wait(struct inputs *in, uint64_t until)
{
	struct pollfd pfds[RGATE_ATT_RINGS_MAX];
	uint64_t now = util_now();
	struct timespec ts;
	sigset_t old;
	unsigned int i;
	int r;

	if (now >= until)
		return 0;
	ts.tv_sec = (until - now) / NSEC;
	ts.tv_nsec = (until - now) % NSEC;
	util_block_signals(&old);
	r = arm_all(in, pfds);
	if (!r && !util_stop && ppoll(pfds, in->nrings, &ts, &old) < 0 &&
	    errno != EINTR)
		r = -errno;
	for (i = 0; i < in->nrings; i++)
		rgate_consumer_disarm(&in->rings[i].c);
	sigprocmask(SIG_SETMASK, &old, NULL);
	return r > 0 ? 0 : r;
}

static bool update_module(struct inputs *in, struct input_dev *d)
{
	struct rgate_att_info info;
	int err;

	if (!d->attached)
		return false;
	err = rgate_ctl_att(in->ctl, d->att.id, &info);
	if (err == -ENOENT || (!err && info.cookie != d->att.cookie)) {
		say("%s is gone", d->name);
		d->attached = false;
		return false;
	}
	if (err)
		return true;	/* the figures stay as they were */
	d->received = info.seen;
	d->filtered = info.filtered + info.sampled_out;
	d->dropped = info.dropped_full + info.dropped_fault + info.passed;
	return true;
}

static bool update_source(struct input_dev *d)
{
	struct rgate_source_stats s;

	if (!d->src)
		return false;
	if (rgate_source_stats(d->src, &s))
		return true;
	/* The kernel filters before the socket, so it counts what matched. */
	d->received = s.received + s.socket_drops;
	d->dropped = s.socket_drops + s.ring_drops;
	return true;
}

/* The gateway counts for the ring; it may come back any time. */
static bool update_remote(struct input_dev *d)
{
	struct rgate_stats s;

	(void)rgate_ring_stats(d->remote->ring, &s);
	d->received = s.delivered + s.dropped_full;
	d->dropped = s.dropped_full;
	return true;
}

/* False: the device is not there any more */
static bool update(struct inputs *in, struct input_dev *d)
{
	return d->remote ? update_remote(d) : in->ctl ? update_module(in, d) : update_source(d);
}

int inputs_update(struct inputs *in, bool idle)
{
	unsigned int i, alive = 0;
	int err;

	for (i = 0; i < in->ndevs; i++) {
		struct input_dev *d = &in->devs[i];

		alive += update(in, d);
		err = d->remote ? remote_look(d->remote, idle, in->quiet) : 0;
		if (err) {
			in->ended = err;
			return err;
		}
	}
	return (int)alive;
}

uint64_t inputs_next_update(const struct inputs *in, uint64_t now)
{
	return in->devs[0].remote ? remote_next_look(in->devs[0].remote, now) : now + NSEC;
}

uint64_t inputs_time(struct inputs *in, const struct rgate_slot *s)
{
	return in->devs[0].remote ? remote_time(in->devs[0].remote, s) : s->tstamp;
}

void inputs_device(struct inputs *in, uint32_t ifindex, char *name, size_t len)
{
	char local[IF_NAMESIZE], *text;
	unsigned int i;

	if (in->devs[0].remote) {
		remote_device(in->devs[0].remote, ifindex, name, len);
		return;
	}
	for (i = 0; i < in->ndevs && in->devs[i].ifindex != ifindex; i++)
		;
	if (i < in->ndevs)
		text = clean_dup(in->devs[i].name);
	else
		text = if_indextoname(ifindex, local) ? clean_dup(local) : NULL;
	if (text)
		snprintf(name, len, "%s", text);
	else
		snprintf(name, len, "if%u", ifindex);
	free(text);
}

int inputs_stop(struct inputs *in)
{
	unsigned int i;
	int err = 0;

	for (i = 0; i < in->ndevs; i++)
		(void)update(in, &in->devs[i]);
	for (i = 0; i < in->ndevs; i++) {
		struct input_dev *d = &in->devs[i];

		if (d->attached)
			rgate_ctl_detach(in->ctl, &d->att);
		d->attached = false;
		if (d->src) {
			struct rgate_source_stats st;

			(void)rgate_source_stats(d->src, &st);
			err = err ?: (int)st.error;
			rgate_source_stop(d->src);
		}
		d->src = NULL;
	}
	return err;
}

void inputs_close(struct inputs *in)
{
	unsigned int i;

	inputs_stop(in);
	for (i = 0; i < in->ndevs; i++) {
		if (in->devs[i].promisc_fd >= 0)
			close(in->devs[i].promisc_fd);
		free(in->devs[i].remote);
	}
	for (i = 0; i < in->nrings; i++)
		rgate_ring_close(in->rings[i].ring);
	if (in->ctl)
		rgate_ctl_close(in->ctl);
	free(in->devs);
	free(in->rings);
}
