// SPDX-License-Identifier: MIT OR GPL-2.0
#include <errno.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/ip.h>
#include <netinet/ip6.h>
#include <netinet/udp.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <ringgate/rgate_consumer.h>
#include <ringgate/rgate_responder.h>

#include "clock.h"
#include "opts.h"

#define BATCH		64U
#define BATCH_MAX	256U
#define SPIN_US		200U
#define WAIT_MS		50	/* so long it sleeps before it looks whether to end */
#define FULL_MS		100

struct rgate_responder {
	struct rgate_consumer c;
	int sock;
	int own_sock;		/* to be closed; -1: none */
	int family;		/* of a UDP socket; AF_PACKET: whole frames */
	bool stop;		/* atomic */
	uint32_t batch;
	uint32_t room;		/* bytes of a slot's frame */
	struct mmsghdr *msg;
	struct iovec *iov;
	struct sockaddr_in6 *to;	/* room for either family */
	pthread_t thread;
	struct rgate_responder_stats stats; /* atomic; written by the thread */
};

static void count(uint64_t *word, uint64_t n)
{
	__atomic_store_n(word, *word + n, __ATOMIC_RELAXED);
}

/*
 * What a slot's header says, each field read once: who writes the slot may be anybody, and
 * may change it at any time.
 */
struct header {
	uint32_t len;
	uint32_t flags;
	uint32_t l3;
	uint32_t l4;
	uint32_t parts;
};

static void read_header(const struct rgate_slot *s, struct header *h)
{
	h->len = __atomic_load_n(&s->len, __ATOMIC_RELAXED);
	h->flags = __atomic_load_n(&s->flags, __ATOMIC_RELAXED);
	h->l3 = __atomic_load_n(&s->l3_off, __ATOMIC_RELAXED);
	h->l4 = __atomic_load_n(&s->l4_off, __ATOMIC_RELAXED);
	h->parts = __atomic_load_n(&s->chain_cnt, __ATOMIC_RELAXED);
}

/* Where a UDP packet goes; its addresses are in the slot, which may be anyhow */
static socklen_t destination(const struct rgate_responder *r, const unsigned char *frame,
			     const struct header *h, struct sockaddr_in6 *to)
{
	struct sockaddr_in *to4 = (struct sockaddr_in *)to;
	const unsigned char *l3 = frame + h->l3;
	struct udphdr udp;

	if (h->l3 >= h->l4 || h->l4 + sizeof(udp) > h->len)
		return 0;
	memcpy(&udp, frame + h->l4, sizeof(udp));
	memset(to, 0, sizeof(*to));
	if (r->family == AF_INET && l3[0] >> 4 == 4 && h->l4 - h->l3 >= sizeof(struct iphdr)) {
		to4->sin_family = AF_INET;
		to4->sin_port = udp.dest;
		memcpy(&to4->sin_addr, l3 + offsetof(struct iphdr, daddr), 4);
		return sizeof(*to4);
	}
	if (r->family == AF_INET6 && l3[0] >> 4 == 6 &&
	    h->l4 - h->l3 >= sizeof(struct ip6_hdr)) {
		to->sin6_family = AF_INET6;
		to->sin6_port = udp.dest;
		memcpy(&to->sin6_addr, l3 + offsetof(struct ip6_hdr, ip6_dst), 16);
		return sizeof(*to);
	}
	return 0;
}

/* Message @i from a slot; false: there is nothing to be sent in it */
static bool prepare(struct rgate_responder *r, const struct rgate_slot *s, unsigned int i)
{
	struct msghdr *m = &r->msg[i].msg_hdr;
	unsigned char *frame = (unsigned char *)(uintptr_t)rgate_slot_data(s);
	struct header h;
	size_t skip = 0;

	read_header(s, &h);
	/* longer than a slot: nobody answers so, and the rest would be its neighbour's */
	if (h.len > r->room || h.flags & RGATE_SLOT_CONT || h.parts > 1)
		return false;
	memset(m, 0, sizeof(*m));
	if (r->family != AF_PACKET) {
		m->msg_namelen = destination(r, frame, &h, &r->to[i]);
		if (!m->msg_namelen)
			return false;
		m->msg_name = &r->to[i];
		skip = h.l4 + sizeof(struct udphdr);
	}
	r->iov[i].iov_base = frame + skip;
	r->iov[i].iov_len = h.len - skip;
	m->msg_iov = &r->iov[i];
	m->msg_iovlen = 1;
	return true;
}

static bool wait_writable(const struct rgate_responder *r)
{
	struct pollfd pfd = { .fd = r->sock, .events = POLLOUT };

	return poll(&pfd, 1, FULL_MS) > 0 && pfd.revents & POLLOUT;
}

/* Sends @n messages; one that cannot be sent is left out */
static void send_all(struct rgate_responder *r, unsigned int n)
{
	bool waited = false;
	unsigned int at = 0;

	while (at < n) {
		int sent = sendmmsg(r->sock, r->msg + at, n - at, MSG_DONTWAIT | MSG_NOSIGNAL), i;

		count(&r->stats.calls, 1);
		if (sent > 0) {
			count(&r->stats.sent, (uint64_t)sent);
			for (i = 0; i < sent; i++)
				count(&r->stats.bytes, r->msg[at + (unsigned int)i].msg_len);
			at += (unsigned int)sent;
			waited = false;
			continue;
		}
		if (errno == EINTR)
			continue;
		if ((errno == EAGAIN || errno == ENOBUFS) && !waited) {
			waited = true;
			wait_writable(r);
			continue;
		}
		count(&r->stats.errors, 1);
		at++;	/* and no wait for the others, until one has gone */
	}
}

/* Takes what is there, at most one batch of the ring; false: nothing was */
static bool round_of(struct rgate_responder *r)
{
	const struct rgate_slot *v[RGATE_BATCH];
	unsigned int max = r->batch < RGATE_BATCH ? r->batch : RGATE_BATCH, n, i, k = 0;

	n = rgate_consumer_peek(&r->c, v, max);
	if (!n)
		return false;
	for (i = 0; i < n; i++) {
		if (v[i]->flags & RGATE_SLOT_PAD)
			continue;
		if (prepare(r, v[i], k))
			k++;
		else
			count(&r->stats.malformed, 1);
	}
	send_all(r, k);
	rgate_consumer_release_n(&r->c, n);
	return true;
}

static bool stopped(const struct rgate_responder *r)
{
	return __atomic_load_n(&r->stop, __ATOMIC_ACQUIRE);
}

/* A ring full at most: who fills it may go on for ever */
static void last_rounds(struct rgate_responder *r)
{
	uint64_t end = r->c.pos + r->c.mask + 1;

	while (r->c.pos < end && round_of(r))
		;
}

static void *thread_main(void *arg)
{
	struct rgate_responder *r = arg;
	bool stop;

	for (;;) {
		while (!stopped(r) && round_of(r))
			;
		/* Once: what was published before it is set is sent before the thread ends. */
		stop = stopped(r);
		if (stop)
			last_rounds(r);
		__atomic_store_n(&r->stats.cpu_ns, rgate_clock_now(CLOCK_THREAD_CPUTIME_ID),
				 __ATOMIC_RELAXED);
		if (stop)
			return NULL;
		if (rgate_consumer_wait(&r->c, WAIT_MS) == -EPIPE)
			return NULL;
	}
}

static int open_packet(struct rgate_responder *r, const char *ifname)
{
	struct sockaddr_ll ll = { .sll_family = AF_PACKET };

	ll.sll_ifindex = (int)if_nametoindex(ifname);
	if (!ll.sll_ifindex)
		return -ENODEV;
	/* protocol 0: it receives nothing */
	r->own_sock = r->sock = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0);
	if (r->sock < 0)
		return -errno;
	r->family = AF_PACKET;
	return bind(r->sock, (struct sockaddr *)&ll, sizeof(ll)) < 0 ? -errno : 0;
}

static int use_udp(struct rgate_responder *r, int sock)
{
	struct sockaddr_storage addr = { 0 };
	socklen_t len = sizeof(addr);
	int type = 0;
	socklen_t typelen = sizeof(type);

	if (getsockname(sock, (struct sockaddr *)&addr, &len) < 0 ||
	    getsockopt(sock, SOL_SOCKET, SO_TYPE, &type, &typelen) < 0)
		return -errno;
	if (type != SOCK_DGRAM || (addr.ss_family != AF_INET && addr.ss_family != AF_INET6))
		return -EINVAL;
	r->sock = sock;
	r->family = addr.ss_family;
	return 0;
}

static int start_thread(struct rgate_responder *r, int32_t cpu_plus1)
{
	sigset_t all, old;
	cpu_set_t cpus;
	int err;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	err = -pthread_create(&r->thread, NULL, thread_main, r);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (err)
		return err;
	pthread_setname_np(r->thread, "rgate-respond");
	if (cpu_plus1) {
		CPU_ZERO(&cpus);
		CPU_SET((unsigned int)cpu_plus1 - 1, &cpus);
		pthread_setaffinity_np(r->thread, sizeof(cpus), &cpus);
	}
	return 0;
}

static void free_all(struct rgate_responder *r)
{
	if (r->own_sock >= 0)
		close(r->own_sock);
	free(r->msg);
	free(r->iov);
	free(r->to);
	free(r);
}

static int alloc_all(struct rgate_responder *r)
{
	r->msg = calloc(r->batch, sizeof(*r->msg));
	r->iov = calloc(r->batch, sizeof(*r->iov));
	r->to = calloc(r->batch, sizeof(*r->to));
	return r->msg && r->iov && r->to ? 0 : -ENOMEM;
}

int rgate_responder_start(struct rgate_responder **out, struct rgate_ring *ring,
			  const struct rgate_responder_opts *opts)
{
	struct rgate_consumer_opts co = { .sz = sizeof(co) };
	struct rgate_responder_opts o;
	struct rgate_responder *r;
	struct rgate_view view;
	int err = rgate_opts_copy(&o, sizeof(o), opts);

	if (err)
		return err;
	if (!o.ifname == !o.udp_socket_plus1 || o.udp_socket_plus1 < 0 || o.batch > BATCH_MAX ||
	    o.cpu_plus1 < 0 || o.cpu_plus1 > CPU_SETSIZE || o.spin_us > 1000000)
		return -EINVAL;
	r = calloc(1, sizeof(*r));
	if (!r)
		return -ENOMEM;
	r->own_sock = -1;
	r->batch = o.batch ? o.batch : BATCH;
	rgate_ring_view(ring, &view);
	r->room = view.slot_size - RGATE_SLOT_HDR;
	co.spin_us = o.spin_us ? o.spin_us : SPIN_US;
	err = alloc_all(r);
	if (!err)
		err = o.ifname ? open_packet(r, o.ifname) : use_udp(r, o.udp_socket_plus1 - 1);
	if (!err)
		err = rgate_consumer_init(&r->c, ring, &co);
	if (!err)
		err = start_thread(r, o.cpu_plus1);
	if (err) {
		free_all(r);
		return err;
	}
	*out = r;
	return 0;
}

static uint64_t word(const uint64_t *p)
{
	return __atomic_load_n(p, __ATOMIC_RELAXED);
}

int rgate_responder_stats(const struct rgate_responder *r, struct rgate_responder_stats *stats)
{
	const struct rgate_responder_stats *from = &r->stats;
	struct rgate_responder_stats st = {
		.sz = sizeof(st),
		.sent = word(&from->sent),
		.bytes = word(&from->bytes),
		.calls = word(&from->calls),
		.malformed = word(&from->malformed),
		.errors = word(&from->errors),
		.cpu_ns = word(&from->cpu_ns),
	};

	return rgate_info_copy(stats, &st, sizeof(st));
}

void rgate_responder_stop(struct rgate_responder *r)
{
	if (!r)
		return;
	__atomic_store_n(&r->stop, true, __ATOMIC_RELEASE);
	pthread_join(r->thread, NULL);
	free_all(r);
}
