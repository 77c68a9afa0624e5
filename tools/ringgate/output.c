// SPDX-License-Identifier: MIT OR GPL-2.0
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/utsname.h>
#include <net/if.h>
#include <time.h>
#include <unistd.h>

#include "cmd.h"
#include "describe.h"
#include "frame.h"
#include "output.h"
#include "util.h"

static uint64_t realtime(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_REALTIME, &ts);
	return (uint64_t)ts.tv_sec * NSEC + ts.tv_nsec;
}

static int open_fd(const char *file)
{
	int fd;

	if (!strcmp(file, "-")) {
		if (!isatty(STDOUT_FILENO))
			return STDOUT_FILENO;
		say("not writing pcapng to a terminal: use -w FILE, or pipe the "
		    "output");
		return -1;
	}
	/* Others' traffic is not for everybody on this machine to read. */
	fd = open(file, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (fd < 0)
		(void)fail_in(WHY_WRITE, -errno, "cannot write %s", file);
	return fd;
}

int output_open(struct output *out, const struct capture_opts *o)
{
	struct utsname u;
	char os[sizeof(u)], app[64];
	int err;

	*out = (struct output){ .o = o, .fd = -1, .start_ns = realtime() };
	/* the daemon knows of no filter */
	if (o->remote && o->filter && sieve_new(&out->sieve, o->filter))
		return EXIT_FAIL;
	if (!o->file)
		return EXIT_OK;
	out->fd = open_fd(o->file);
	if (out->fd < 0) {
		sieve_free(out->sieve);
		return EXIT_FAIL;
	}
	uname(&u);
	snprintf(os, sizeof(os), "%s %s", u.sysname, u.release);
	snprintf(app, sizeof(app), "ringgate %s", rgate_version());
	err = pcapng_new(&out->file, out->fd, u.machine, os, app);
	return err ? fail_in(WHY_WRITE, err, "cannot write %s", o->file) : EXIT_OK;
}

/* What libpcap would call it: the link type of frames that are yet to come */
static uint16_t type_of(const char *name)
{
	struct ifreq ifr = { 0 };
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	uint16_t type = 0xfffe;

	if (fd < 0)
		return type;
	snprintf(ifr.ifr_name, sizeof(ifr.ifr_name), "%.15s", name);
	if (!ioctl(fd, SIOCGIFHWADDR, &ifr))
		type = ifr.ifr_hwaddr.sa_family;
	close(fd);
	return type;
}

static int add_if(struct output *out, uint32_t ifindex)
{
	const struct capture_opts *o = out->o;
	struct pcapng_interface pi = { .link = out->link, .filter = o->filter };
	const uint64_t size = o->slot_size ?: RGATE_SLOT_SIZE_DEFAULT;
	struct output_if *i;
	uint64_t longest;
	void *v;

	v = reallocarray(out->ifs, out->nifs + 1, sizeof(*out->ifs));
	if (!v)
		return -ENOMEM;
	out->ifs = v;
	i = &out->ifs[out->nifs];
	*i = (struct output_if){ .ifindex = ifindex };
	inputs_device(out->in, ifindex, i->name, sizeof(i->name));
	pi.name = i->name;
	/* what the gateway sends may always be chained */
	longest = (size - RGATE_SLOT_HDR) * (o->chain || o->remote ? RGATE_CHAIN_MAX : 1) +
		  FRAME_EXTRA;
	pi.snaplen = longest < FRAME_SNAPLEN ? (uint32_t)longest : FRAME_SNAPLEN;
	if (out->file) {
		i->number = pcapng_interface(out->file, &pi);
		if (i->number < 0)
			return i->number;
	}
	return out->nifs++;
}

static int find_if(struct output *out, uint32_t ifindex)
{
	unsigned int i;

	for (i = 0; i < out->nifs; i++)
		if (out->ifs[i].ifindex == ifindex)
			return i;
	return add_if(out, ifindex);
}

/*
 * A file has frames of one link type: others, tcpdump among them, read no file that has
 * several. Devices of different types, and any, have cooked headers. What the gateway has
 * is not known before the first frame.
 */
static uint16_t choose_link(const struct output *out)
{
	struct rgate_slot s = { .protocol = 0x0800 };
	uint16_t link = 0;
	unsigned int i;

	if (out->o->remote)
		return 0;
	if (out->o->udp)
		return LINK_RAW;
	if (out->o->any)
		return LINK_LINUX_SLL;
	for (i = 0; i < out->in->ndevs; i++) {
		s.dev_type = type_of(out->in->devs[i].name);
		if (link && frame_link(&s) != link)
			return LINK_LINUX_SLL;
		link = frame_link(&s);
	}
	return link;
}

int output_begin(struct output *out, struct inputs *in)
{
	unsigned int i;
	int r = 0;

	out->in = in;
	out->link = choose_link(out);
	/* Known devices come first, so that a file without packets names them;
	 * what is met on the way, as with any, is described then. */
	for (i = 0; r >= 0 && i < in->ndevs && !out->o->any && !out->o->remote; i++)
		r = find_if(out, in->devs[i].ifindex);
	return r < 0 ? r : output_flush(out);
}

static int write_frame(struct output *out, const struct frame *f,
		       const struct rgate_slot *s, uint64_t time_ns, unsigned int i)
{
	struct pcapng_packet pkt = {
		.interface = out->ifs[i].number,
		.orig_len = f->orig_len,
		.time_ns = time_ns,
		.flags = f->flags,
		.queue = s->flags & RGATE_SLOT_QUEUE ? s->queue : -1,
		.dropped = s->gap,
		.iov = f->iov,
		.iovcnt = f->iovcnt,
	};

	return pcapng_packet(out->file, &pkt);
}

/* 1: it is to be put out; 0: it is not, and counted; -errno */
static int build(struct output *out, const struct input_ring *r, const struct rgate_slot *s,
		 struct frame *f)
{
	int ret;

	if (out->file && !out->link)
		out->link = frame_link(s);
	if (!frame_build(f, &r->c, r->room, out->file ? out->link : frame_link(s))) {
		out->misfits++;
		return 0;
	}
	ret = out->sieve ? sieve_match(out->sieve, f) : 1;
	out->filtered += !ret;
	return ret;
}

int output_frame(struct output *out, struct input_ring *r,
		 const struct rgate_slot *s)
{
	struct frame f;
	uint64_t time_ns;
	int err, i;

	out->lost += s->gap;
	err = build(out, r, s, &f);
	if (err <= 0)
		return err;
	/* one socket, one interface: that of a datagram does not matter */
	i = find_if(out, out->o->udp ? 0 : s->ifindex);
	if (i < 0)
		return i;
	time_ns = inputs_time(out->in, s);
	err = out->file ? write_frame(out, &f, s, time_ns, i) : 0;
	if (err)
		return err;
	if (out->o->print)
		describe_frame(s, r->room, time_ns, f.cap_len, f.orig_len,
			       out->ifs[i].name, out->o->json);
	out->ifs[i].delivered++;
	out->frames++;
	out->bytes += f.cap_len;
	out->cut += f.cap_len < f.orig_len;
	return 0;
}

int output_flush(struct output *out)
{
	int err = out->file ? pcapng_flush(out->file) : 0;

	if (!err && out->o->print && util_stdout_dead())
		err = util_stop == SIGPIPE ? -EPIPE : -EIO;
	return err;
}

/* NULL: a device among those of one socket or one ring, which counts for all of them */
static const struct input_dev *dev_of(const struct output *out, unsigned int i)
{
	unsigned int n;

	for (n = 0; n < out->in->ndevs && !out->o->any && !out->o->remote; n++)
		if (out->in->devs[n].ifindex == out->ifs[i].ifindex)
			return &out->in->devs[n];
	return NULL;
}

static int write_stats(struct output *out, unsigned int i, uint64_t now)
{
	const struct input_dev *d = dev_of(out, i);
	const struct output_if *oi = &out->ifs[i];
	struct pcapng_stats s = {
		.time_ns = now,
		.start_ns = out->start_ns,
		.received = d ? d->received : oi->delivered,
		.dropped = d ? d->dropped : 0,
		.accepted = d ? d->received - d->filtered : oi->delivered,
		.delivered = oi->delivered,
	};

	/* What all lost is told with the first interface. */
	if ((out->o->any || out->o->remote) && !i && out->in->ndevs)
		s.dropped = out->in->devs[0].dropped;
	return pcapng_stats(out->file, oi->number, &s);
}

/* A file without an interface is none. */
static int complete(struct output *out)
{
	int r;

	if (!out->file || out->nifs || !out->in)
		return 0;
	out->link = out->link ?: LINK_ETHERNET;
	r = add_if(out, 0);
	return r < 0 ? r : 0;
}

int output_close(struct output *out)
{
	uint64_t now = realtime();
	int err = complete(out), e;
	unsigned int i;

	for (i = 0; out->file && !err && i < out->nifs; i++)
		err = write_stats(out, i, now);
	e = pcapng_free(out->file);
	err = err ?: e;
	out->file = NULL;
	/* A full disk may show only here. */
	if (out->fd > STDERR_FILENO && close(out->fd) && !err)
		err = -errno;
	out->fd = -1;
	sieve_free(out->sieve);
	out->sieve = NULL;
	free(out->ifs);
	out->ifs = NULL;
	out->nifs = 0;
	return err;
}
