// SPDX-License-Identifier: MIT OR GPL-2.0
/* Datagrams over loopback through the userspace source. */
#include "unit.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <net/if_arp.h>
#include <netinet/in.h>
#include <pthread.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "ended.h"

struct setup {
	struct rgate_ring *ring[3];
	unsigned int nrings;
	struct rgate_source *src;
	struct rgate_consumer c;
	int tx;
	struct sockaddr_storage to;
	socklen_t to_len;
	size_t front;
};

static void open_setup(struct setup *t, int family, const char *addr,
		       const struct rgate_source_opts *o)
{
	struct sockaddr_in *a4 = (struct sockaddr_in *)&t->to;
	struct sockaddr_in6 *a6 = (struct sockaddr_in6 *)&t->to;

	t->to.ss_family = (sa_family_t)family;
	t->front = family == AF_INET ? 28 : 48;
	assert_int_equal(inet_pton(family, addr, family == AF_INET ?
				   (void *)&a4->sin_addr : (void *)&a6->sin6_addr), 1);
	assert_int_equal(rgate_source_start_udp(&t->src, t->ring, t->nrings,
						(struct sockaddr *)&t->to, sizeof(t->to), o), 0);
	t->to_len = sizeof(t->to);
	assert_int_equal(rgate_source_addr(t->src, (struct sockaddr *)&t->to,
					   &t->to_len), 0);
	if (family == AF_INET && a4->sin_addr.s_addr == 0)
		a4->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	if (family == AF_INET6 && IN6_IS_ADDR_UNSPECIFIED(&a6->sin6_addr))
		a6->sin6_addr = in6addr_loopback;
	t->tx = socket(family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	assert_true(t->tx >= 0);
	assert_int_equal(connect(t->tx, (struct sockaddr *)&t->to, t->to_len), 0);
	assert_int_equal(rgate_consumer_init(&t->c, t->ring[0], NULL), 0);
}

static void setup_one(struct setup *t, uint32_t slots, uint32_t slot_size,
		      uint32_t flags, uint32_t policy)
{
	memset(t, 0, sizeof(*t));
	t->ring[0] = unit_ring(slots, slot_size, flags, policy);
	t->nrings = 1;
}

static void close_setup(struct setup *t)
{
	unsigned int i;

	if (t->src)
		assert_int_equal(source_ended(t->src), 0);
	close(t->tx);
	for (i = 0; i < t->nrings; i++)
		rgate_ring_close(t->ring[i]);
}

static void send_one(struct setup *t, uint64_t i, size_t len)
{
	static unsigned char buf[65536];

	unit_pattern(buf, i, len);
	while (send(t->tx, buf, len, 0) < 0)
		assert_true(errno == EINTR || errno == ECONNREFUSED);
}

/* Waits until the source has read @n messages. */
static void wait_received(struct setup *t, uint64_t n)
{
	struct timespec ts = { 0, 1000000 };
	struct rgate_source_stats st;
	unsigned int i;

	for (i = 0; i < 10000; i++) {
		rgate_source_stats(t->src, &st);
		if (st.received >= n)
			break;
		nanosleep(&ts, NULL);
	}
	assert_int_equal(st.received, n);
	assert_int_equal(st.socket_drops, 0);
	assert_int_equal(st.errors, 0);
}

static uint16_t sum16(const void *data, size_t len, uint32_t sum)
{
	const unsigned char *p = data;
	size_t i;

	for (i = 0; i < len; i++)
		sum += (uint32_t)p[i] << (i & 1 ? 0 : 8);
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t)sum;
}

static void check_ipv4(const struct setup *t, const unsigned char *f, size_t wire)
{
	const struct sockaddr_in *to = (const struct sockaddr_in *)&t->to;

	assert_int_equal(f[0], 0x45);
	assert_int_equal(f[2] << 8 | f[3], wire);
	assert_int_equal(f[9], 17);
	assert_int_equal(sum16(f, 20, 0), 0xffff);
	assert_memory_equal(f + 16, &to->sin_addr, 4);
	assert_memory_equal(f + 22, &to->sin_port, 2);
	assert_int_equal(f[24] << 8 | f[25], wire - 20);
	assert_int_equal(f[26] << 8 | f[27], 0);
}

static void check_ipv6(const struct setup *t, const unsigned char *f, size_t have,
		       size_t wire)
{
	const struct sockaddr_in6 *to = (const struct sockaddr_in6 *)&t->to;
	uint32_t pseudo = (uint32_t)(wire - 40) + 17;

	assert_int_equal(f[0], 0x60);
	assert_int_equal(f[4] << 8 | f[5], wire - 40);
	assert_int_equal(f[6], 17);
	assert_memory_equal(f + 24, &to->sin6_addr, 16);
	assert_memory_equal(f + 42, &to->sin6_port, 2);
	/* of a cut datagram it is 0, or that of the whole */
	if (have == wire)
		assert_int_equal(sum16(f + 40, wire - 40,
				       sum16(f + 8, 32, pseudo)), 0xffff);
}

static void check_meta(const struct setup *t, const struct rgate_slot *h)
{
	bool v4 = t->front == 28;

	assert_int_equal(h->dev_type, ARPHRD_NONE);
	assert_int_equal(h->protocol, v4 ? 0x0800 : 0x86dd);
	assert_int_equal(h->l3_off, 0);
	assert_int_equal(h->l4_off, v4 ? 20 : 40);
	assert_int_equal(h->payload_off, t->front);
	assert_int_equal(h->ip_proto, 17);
	assert_true(h->flags & RGATE_SLOT_CSUM_OK);
	assert_true(h->tstamp <= unit_now_ns());
	assert_true(h->tstamp + 60000000000 > unit_now_ns());
}

/* The next frame is datagram @i of @len bytes, @kept frame bytes of it stored. */
static void take_one(struct setup *t, struct rgate_slot *hdr, uint64_t i, size_t len,
		     size_t kept)
{
	static unsigned char f[70000];
	size_t wire = t->front + len;
	long got;

	while ((got = rgate_consumer_copy(&t->c, hdr, f, sizeof(f))) == -EAGAIN)
		assert_int_equal(rgate_consumer_wait(&t->c, 10000), 1);
	assert_int_equal(got, kept < wire ? kept : wire);
	assert_int_equal(hdr->wire_len, wire);
	check_meta(t, hdr);
	if (t->front == 28)
		check_ipv4(t, f, wire);
	else
		check_ipv6(t, f, (size_t)got, wire);
	assert_int_equal(unit_pattern_check(f + t->front, i, (size_t)got - t->front), 0);
}

static void contents(int family, const char *addr, bool any)
{
	struct rgate_slot hdr;
	struct setup t;
	uint64_t i;

	setup_one(&t, 64, 2048, 0, RGATE_POLICY_DROP);
	open_setup(&t, family, addr, NULL);
	for (i = 0; i < 3000; i++) {
		size_t len = i % 1936;

		send_one(&t, i, len);
		take_one(&t, &hdr, i, len, 1984);
		assert_int_equal(hdr.flags, RGATE_SLOT_CSUM_OK |
				 (t.front + len > 1984 ? RGATE_SLOT_TRUNC : 0));
		assert_int_equal(hdr.ifindex, any ? if_nametoindex("lo") : 0);
	}
	wait_received(&t, 3000);
	close_setup(&t);
}

static void contents_v4(void **state)
{
	(void)state;
	contents(AF_INET, "127.0.0.1", false);
}

static void contents_v4_any(void **state)
{
	(void)state;
	contents(AF_INET, "0.0.0.0", true);
}

static bool have_ipv6(void)
{
	struct sockaddr_in6 a = { .sin6_family = AF_INET6,
				  .sin6_addr = IN6ADDR_LOOPBACK_INIT };
	int fd = socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	bool ok = fd >= 0 && !bind(fd, (struct sockaddr *)&a, sizeof(a));

	if (fd >= 0)
		close(fd);
	return ok;
}

static void contents_v6(void **state)
{
	(void)state;
	if (!have_ipv6())
		unit_skip("no IPv6");
	contents(AF_INET6, "::1", false);
}

static void contents_v6_any(void **state)
{
	(void)state;
	if (!have_ipv6())
		unit_skip("no IPv6");
	contents(AF_INET6, "::", true);
}

static void truncation(void **state)
{
	struct rgate_slot hdr;
	struct rgate_stats st;
	struct setup t;

	(void)state;
	setup_one(&t, 64, 256, 0, RGATE_POLICY_DROP);
	open_setup(&t, AF_INET, "127.0.0.1", NULL);
	send_one(&t, 0, 192 - 28);
	send_one(&t, 1, 192 - 28 + 1);
	send_one(&t, 2, 65507);
	take_one(&t, &hdr, 0, 192 - 28, 192);
	assert_int_equal(hdr.flags & RGATE_SLOT_TRUNC, 0);
	take_one(&t, &hdr, 1, 192 - 28 + 1, 192);
	assert_true(hdr.flags & RGATE_SLOT_TRUNC);
	take_one(&t, &hdr, 2, 65507, 192);
	assert_int_equal(source_ended(t.src), 0);
	t.src = NULL;
	rgate_ring_stats(t.ring[0], &st);
	assert_int_equal(st.delivered, 3);
	assert_int_equal(st.truncated, 2);
	assert_int_equal(st.bytes, 3 * 192);
	close_setup(&t);
}

/* Long and short ones mixed, one by one and in bursts */
static void chains(void **state)
{
	static const size_t lens[] = { 0, 1, 100, 164, 165, 300, 1472, 5000, 20, 6000,
				       6116, 6117, 30 };
	int family = (int)(uintptr_t)*state;
	struct rgate_slot hdr;
	struct setup t;
	unsigned int i, r;

	if (family == AF_INET6 && !have_ipv6())
		unit_skip("no IPv6");
	setup_one(&t, 512, 256, RGATE_RING_CHAIN, RGATE_POLICY_DROP);
	open_setup(&t, family, family == AF_INET ? "127.0.0.1" : "::1", NULL);
	for (r = 0; r < 30; r++) {
		for (i = 0; i < ARRAY_LEN(lens); i++) {
			send_one(&t, i, lens[i]);
			if (r < 5)
				take_one(&t, &hdr, i, lens[i], 192 * 32);
		}
		for (i = 0; r >= 5 && i < ARRAY_LEN(lens); i++)
			take_one(&t, &hdr, i, lens[i], 192 * 32);
	}
	wait_received(&t, r * ARRAY_LEN(lens));
	close_setup(&t);
}

static void policy_drop(void **state)
{
	struct rgate_source_stats ss;
	struct rgate_slot hdr;
	struct rgate_stats st;
	struct setup t;
	uint64_t i;

	(void)state;
	setup_one(&t, 64, 256, 0, RGATE_POLICY_DROP);
	open_setup(&t, AF_INET, "127.0.0.1", NULL);
	for (i = 0; i < 100; i++) {
		send_one(&t, i, 50);
		if (i % 10 == 9)
			wait_received(&t, i + 1);
	}
	for (i = 0; i < 64; i++)
		take_one(&t, &hdr, i, 50, 192);
	send_one(&t, 100, 50);
	take_one(&t, &hdr, 100, 50, 192);
	assert_int_equal(hdr.gap, 36);
	rgate_source_stats(t.src, &ss);
	assert_int_equal(ss.ring_drops, 36);
	assert_int_equal(ss.bytes, 101 * 50);
	rgate_ring_stats(t.ring[0], &st);
	assert_int_equal(st.dropped_full, 36);
	close_setup(&t);
}

static void policy_overwrite(void **state)
{
	struct rgate_slot hdr;
	struct rgate_stats st;
	struct setup t;
	uint64_t i;

	(void)state;
	setup_one(&t, 64, 256, 0, RGATE_POLICY_OVERWRITE);
	open_setup(&t, AF_INET, "127.0.0.1", NULL);
	for (i = 0; i < 1000; i++) {
		send_one(&t, i, 50);
		if (i % 10 == 9)
			wait_received(&t, i + 1);
	}
	/* what is left is the end, and it is whole */
	assert_int_equal(rgate_consumer_wait(&t.c, 10000), 1);
	for (i = 1000 - 64 + 24; i < 1000; i++)
		take_one(&t, &hdr, i, 50, 192);
	assert_int_equal(rgate_consumer_copy(&t.c, NULL, NULL, 0), -EAGAIN);
	assert_int_equal(rgate_consumer_lost(&t.c), 960);
	assert_int_equal(source_ended(t.src), 0);
	t.src = NULL;
	rgate_ring_stats(t.ring[0], &st);
	assert_int_equal(st.delivered, 1000);
	assert_int_equal(st.overwritten, 1024 - 64);
	assert_int_equal(st.dropped_full, 0);
	close_setup(&t);
}

static void policy_spill(void **state)
{
	struct rgate_stats st[3];
	struct setup t;
	unsigned int r;
	uint64_t i;

	(void)state;
	memset(&t, 0, sizeof(t));
	t.ring[0] = unit_ring(64, 256, 0, RGATE_POLICY_SPILL);
	t.ring[1] = unit_ring(128, 256, 0, RGATE_POLICY_SPILL);
	t.ring[2] = unit_ring(64, 256, 0, RGATE_POLICY_DROP);
	t.nrings = 3;
	open_setup(&t, AF_INET, "127.0.0.1", NULL);
	for (i = 0; i < 300; i++) {
		send_one(&t, i, 50);
		if (i % 10 == 9)
			wait_received(&t, i + 1);
	}
	for (r = 0, i = 0; r < 3; r++) {
		uint64_t end = i + (r == 1 ? 128 : 64);
		struct rgate_slot hdr;

		assert_int_equal(rgate_consumer_init(&t.c, t.ring[r], NULL), 0);
		for (; i < end; i++)
			take_one(&t, &hdr, i, 50, 192);
		rgate_ring_stats(t.ring[r], &st[r]);
	}
	assert_int_equal(st[0].spilled, 300 - 64);
	assert_int_equal(st[1].spilled, 300 - 192);
	assert_int_equal(st[2].dropped_full, 300 - 256);
	assert_int_equal(st[0].dropped_full + st[1].dropped_full, 0);
	close_setup(&t);
}

/* Takes what one ring has of the messages from @i on; a message is @len bytes, or gone. */
static uint64_t take_chains(struct setup *t, unsigned int r, uint64_t i, size_t len)
{
	static unsigned char buf[8192], want[8192];
	struct rgate_slot hdr;
	long n;

	assert_int_equal(rgate_consumer_init(&t->c, t->ring[r], NULL), 0);
	while ((n = rgate_consumer_copy(&t->c, &hdr, buf, sizeof(buf))) != -EAGAIN) {
		assert_int_equal(n, len + t->front);
		unit_pattern(want, i++, len);
		assert_memory_equal(buf + t->front, want, len);
	}
	return i;
}

/* A chain has room as a whole or goes to the next ring as a whole. */
static void spill_chains(void **state)
{
	struct rgate_stats st[3];
	struct setup t;
	unsigned int r;
	uint64_t i, was = 0;

	(void)state;
	memset(&t, 0, sizeof(t));
	t.ring[0] = unit_ring(64, 256, RGATE_RING_CHAIN, RGATE_POLICY_SPILL);
	t.ring[1] = unit_ring(128, 256, RGATE_RING_CHAIN, RGATE_POLICY_SPILL);
	t.ring[2] = unit_ring(64, 256, RGATE_RING_CHAIN, RGATE_POLICY_DROP);
	t.nrings = 3;
	open_setup(&t, AF_INET, "127.0.0.1", NULL);
	/* 850 bytes are five slots of 192; a chain stays in its batch: six in 32 slots */
	for (i = 0; i < 60; i++) {
		send_one(&t, i, 850);
		wait_received(&t, i + 1);
	}
	assert_int_equal(source_ended(t.src), 0);
	t.src = NULL;
	for (r = 0; r < 3; r++) {
		i = take_chains(&t, r, was, 850);
		assert_int_equal(i - was, r == 1 ? 24 : 12);
		was = i;
		rgate_ring_stats(t.ring[r], &st[r]);
	}
	assert_int_equal(st[0].spilled, 60 - 12);
	assert_int_equal(st[1].spilled, 60 - 36);
	assert_int_equal(st[2].dropped_full, 60 - 48);
	assert_int_equal(st[0].dropped_full + st[1].dropped_full, 0);
	close_setup(&t);
}

static void arguments(void **state)
{
	struct sockaddr_in a = { .sin_family = AF_INET };
	struct sockaddr_in6 a6 = { .sin6_family = AF_INET6 };
	struct rgate_source_opts o = RGATE_OPTS(rgate_source_opts, .batch = 257);
	struct rgate_ring *pass = unit_ring(64, 256, 0, RGATE_POLICY_PASS);
	struct rgate_ring *ring = unit_ring(64, 256, 0, RGATE_POLICY_DROP);
	struct sockaddr *sa = (struct sockaddr *)&a;
	struct rgate_ring *twice[2] = { ring, ring };
	struct rgate_source *src, *other;
	struct rgate_producer p;
	socklen_t len;

	(void)state;
	assert_int_equal(rgate_source_start_udp(&src, &pass, 1, sa, sizeof(a), NULL),
			 -EOPNOTSUPP);
	assert_int_equal(rgate_source_start_udp(&src, &ring, 0, sa, sizeof(a), NULL), -EINVAL);
	assert_int_equal(rgate_source_start_udp(&src, &ring, 1, sa, 4, NULL), -EINVAL);
	assert_int_equal(rgate_source_start_udp(&src, &ring, 1, sa, 1, NULL), -EINVAL);
	assert_int_equal(rgate_source_start_udp(&src, &ring, 1, (struct sockaddr *)&a6,
						sizeof(a), NULL), -EINVAL);
	assert_int_equal(rgate_source_start_udp(&src, &ring, 1, sa, sizeof(a), &o), -EINVAL);
	o.batch = 1;
	o.filter = "udp";
	assert_int_equal(rgate_source_start_udp(&src, &ring, 1, sa, sizeof(a), &o), -EINVAL);
	o.filter = NULL;
	o.cpu_plus1 = 1000;
	assert_int_equal(rgate_source_start_udp(&src, &ring, 1, sa, sizeof(a), &o), -EINVAL);
	o.cpu_plus1 = 1;
	o.driven = 1;	/* a thread that is not there cannot be pinned */
	assert_int_equal(rgate_source_start_udp(&src, &ring, 1, sa, sizeof(a), &o), -EINVAL);
	o.cpu_plus1 = 0;
	o.driven = 2;
	assert_int_equal(rgate_source_start_udp(&src, &ring, 1, sa, sizeof(a), &o), -EINVAL);
	o.driven = 0;
	a.sin_addr.s_addr = htonl(0xc6336401);	/* 198.51.100.1: not ours */
	assert_int_equal(rgate_source_start_udp(&src, &ring, 1, sa, sizeof(a), &o),
			 -EADDRNOTAVAIL);
	a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	assert_int_equal(rgate_source_start_udp(&src, twice, 2, sa, sizeof(a), &o), -EBUSY);
	assert_int_equal(rgate_producer_init(&p, ring), 0);
	assert_int_equal(rgate_source_start_udp(&src, &ring, 1, sa, sizeof(a), &o), -EBUSY);
	rgate_producer_fini(&p);
	assert_int_equal(rgate_source_start_udp(&src, &ring, 1, sa, sizeof(a), &o), 0);
	len = sizeof(a);
	assert_int_equal(rgate_source_addr(src, sa, &len), 0);
	assert_true(a.sin_port);
	assert_int_equal(rgate_source_start_udp(&other, &pass, 1, sa, sizeof(a), &o),
			 -EOPNOTSUPP);
	assert_int_equal(source_ended(src), 0);
	rgate_source_stop(NULL);
	rgate_ring_close(pass);
	rgate_ring_close(ring);
}

static uint64_t cpu_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

static void stop_idle(void **state)
{
	struct timespec ts = { 0, 300000000 };
	struct setup t;
	uint64_t cpu, began;

	(void)state;
	setup_one(&t, 64, 256, 0, RGATE_POLICY_DROP);
	open_setup(&t, AF_INET, "127.0.0.1", NULL);
	cpu = cpu_ns();
	nanosleep(&ts, NULL);
	assert_true(cpu_ns() - cpu < 50000000);
	began = unit_now_ns();
	assert_int_equal(source_ended(t.src), 0);
	t.src = NULL;
	assert_true(unit_now_ns() - began < 2000000000);
	assert_true(rgate_ring_retired(t.ring[0]));
	assert_int_equal(rgate_consumer_wait(&t.c, -1), -EPIPE);
	close_setup(&t);
}

struct flood {
	struct setup *t;
	bool stop;
};

static void *flood_main(void *arg)
{
	struct flood *f = arg;
	char buf[100] = { 0 };

	while (!__atomic_load_n(&f->stop, __ATOMIC_RELAXED))
		if (send(f->t->tx, buf, sizeof(buf), 0) < 0 && errno != ECONNREFUSED)
			break;
	return NULL;
}

static void stop_loaded(void **state)
{
	const struct timespec ts = { 0, 10000000 };
	struct rgate_source_stats ss = { 0 };
	struct rgate_stats st = { 0 };
	struct setup t;
	struct flood f = { .t = &t };
	int tries, mapped = 0;
	uint64_t began;
	pthread_t th;

	(void)state;
	setup_one(&t, 64, 256, 0, RGATE_POLICY_DROP);
	open_setup(&t, AF_INET, "127.0.0.1", NULL);
	assert_int_equal(pthread_create(&th, NULL, flood_main, &f), 0);
	for (tries = 0; tries < 1000 && !(ss.received > 64 && ss.ring_drops); tries++) {
		nanosleep(&ts, NULL);
		rgate_source_stats(t.src, &ss);
	}
	assert_true(ss.received > 64 && ss.ring_drops > 0);
	/* a resize takes effect under load, though all is full */
	assert_int_equal(rgate_ring_resize(t.ring[0], 128, 256), 0);
	for (tries = 0; tries < 1000 && !mapped; tries++) {
		nanosleep(&ts, NULL);
		mapped = rgate_ring_remap(t.ring[0]);
	}
	assert_int_equal(mapped, 1);
	for (tries = 0; tries < 1000 && st.delivered < 64 + 128; tries++) {
		nanosleep(&ts, NULL);
		rgate_ring_stats(t.ring[0], &st);
	}
	began = unit_now_ns();
	assert_int_equal(source_ended(t.src), 0);
	t.src = NULL;
	assert_true(unit_now_ns() - began < 2000000000);
	__atomic_store_n(&f.stop, true, __ATOMIC_RELAXED);
	pthread_join(th, NULL);
	rgate_ring_stats(t.ring[0], &st);
	assert_int_equal(st.delivered, 64 + 128);
	close_setup(&t);
}

/* An idle source is told of a resize. */
static void resize_idle(void **state)
{
	struct timespec ts = { 0, 1000000 };
	struct rgate_slot hdr;
	struct setup t;
	int i;

	(void)state;
	setup_one(&t, 64, 256, 0, RGATE_POLICY_DROP);
	open_setup(&t, AF_INET, "127.0.0.1", NULL);
	send_one(&t, 0, 100);
	take_one(&t, &hdr, 0, 100, 192);
	assert_int_equal(rgate_ring_resize(t.ring[0], 128, 1024), 0);
	for (i = 0; i < 5000 && !rgate_ring_retired(t.ring[0]); i++)
		nanosleep(&ts, NULL);
	assert_true(rgate_ring_retired(t.ring[0]));
	send_one(&t, 1, 800);
	take_one(&t, &hdr, 1, 800, 960);
	close_setup(&t);
}

/* Nobody receives but who calls for it: a batch a call, and one wakeup at the end. */
static void driven(void **state)
{
	struct rgate_source_opts o = RGATE_OPTS(rgate_source_opts, .batch = 4, .driven = 1);
	struct rgate_source_stats st;
	struct rgate_stats rs;
	struct setup t;
	uint64_t i;

	(void)state;
	setup_one(&t, 64, 256, 0, RGATE_POLICY_DROP);
	open_setup(&t, AF_INET, "127.0.0.1", &o);
	assert_int_equal(rgate_consumer_arm(&t.c), 0);
	for (i = 0; i < 10; i++)
		send_one(&t, i, 100);
	assert_int_equal(rgate_source_stats(t.src, &st), 0);
	assert_int_equal(st.syscalls, 0);
	assert_null(rgate_consumer_next(&t.c));
	assert_int_equal(rgate_source_turn(t.src), 1);
	assert_int_equal(rgate_source_turn(t.src), 1);
	rgate_ring_stats(t.ring[0], &rs);
	assert_int_equal(rs.wakeups, 0);	/* there may be more */
	assert_int_equal(rgate_source_turn(t.src), 0);
	rgate_ring_stats(t.ring[0], &rs);
	assert_int_equal(rs.wakeups, 1);
	rgate_consumer_disarm(&t.c);
	for (i = 0; i < 10; i++) {
		const struct rgate_slot *s = rgate_consumer_next(&t.c);

		assert_non_null(s);
		assert_int_equal(unit_pattern_check((const unsigned char *)rgate_slot_data(s) +
						    t.front, i, 100), 0);
		rgate_consumer_release(&t.c);
	}
	assert_null(rgate_consumer_next(&t.c));
	assert_int_equal(rgate_source_stats(t.src, &st), 0);
	assert_int_equal(st.received, 10);
	assert_int_equal(st.syscalls, 3);
	/* a resize takes effect at the next turn */
	assert_int_equal(rgate_ring_resize(t.ring[0], 128, 256), 0);
	assert_int_equal(rgate_consumer_wait(&t.c, 0), 0);
	assert_int_equal(t.c.mask, 63);
	assert_int_equal(rgate_source_turn(t.src), 0);
	assert_int_equal(rgate_consumer_wait(&t.c, 0), 0);
	assert_int_equal(t.c.mask, 127);
	close_setup(&t);
}

static void driven_ends(void **state)
{
	struct rgate_source_opts o = RGATE_OPTS(rgate_source_opts, .driven = 1);
	struct setup t;
	int null;

	(void)state;
	/* who has a thread is not driven */
	setup_one(&t, 64, 256, 0, RGATE_POLICY_DROP);
	open_setup(&t, AF_INET, "127.0.0.1", NULL);
	assert_int_equal(rgate_source_turn(t.src), -EOPNOTSUPP);
	close_setup(&t);
	/* stopped: the ring has ended */
	setup_one(&t, 64, 256, 0, RGATE_POLICY_DROP);
	open_setup(&t, AF_INET, "127.0.0.1", &o);
	send_one(&t, 0, 10);
	assert_int_equal(rgate_source_turn(t.src), 0);
	assert_int_equal(source_ended(t.src), 0);
	t.src = NULL;
	assert_int_equal(rgate_consumer_wait(&t.c, -1), 1);
	assert_non_null(rgate_consumer_next(&t.c));
	rgate_consumer_release(&t.c);
	assert_int_equal(rgate_consumer_wait(&t.c, -1), -EPIPE);
	close_setup(&t);
	/* what it receives from is no socket any more: told each time, ended once */
	setup_one(&t, 64, 256, 0, RGATE_POLICY_DROP);
	open_setup(&t, AF_INET, "127.0.0.1", &o);
	null = open("/dev/null", O_RDWR | O_CLOEXEC);
	assert_true(null >= 0);
	assert_true(dup2(null, rgate_source_socket(t.src)) >= 0);
	close(null);
	assert_int_equal(rgate_source_turn(t.src), -ENOTSOCK);
	assert_int_equal(rgate_source_turn(t.src), -ENOTSOCK);
	assert_int_equal(rgate_consumer_wait(&t.c, -1), -EPIPE);
	assert_int_equal(source_ended(t.src), -ENOTSOCK);
	t.src = NULL;
	close_setup(&t);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(contents_v4),
	cmocka_unit_test(contents_v4_any),
	cmocka_unit_test(contents_v6),
	cmocka_unit_test(contents_v6_any),
	cmocka_unit_test(truncation),
	{ "chains_v4", chains, NULL, NULL, (void *)AF_INET },
	{ "chains_v6", chains, NULL, NULL, (void *)AF_INET6 },
	cmocka_unit_test(policy_drop),
	cmocka_unit_test(policy_overwrite),
	cmocka_unit_test(policy_spill),
	cmocka_unit_test(spill_chains),
	cmocka_unit_test(arguments),
	cmocka_unit_test(stop_idle),
	cmocka_unit_test(stop_loaded),
	cmocka_unit_test(resize_idle),
	cmocka_unit_test(driven),
	cmocka_unit_test(driven_ends),
};

UNIT_MAIN(tests)
