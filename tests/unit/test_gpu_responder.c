// SPDX-License-Identifier: MIT OR GPL-2.0
/* The thread that sends what is in an output ring, with a CPU as the ring's producer. */
#include "unit.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <ringgate/rgate_responder.h>

#define FRAMES 2000U

struct bed {
	struct rgate_ring *ring;
	struct rgate_producer p;
	struct rgate_responder *r;
	int server, client;
	struct sockaddr_in6 to;		/* the client's; room for either family */
};

/* How the thread sends; the Makefile's linker brings it here. */
static struct {
	int err;		/* atomic: what the next calls are refused with, */
	unsigned int times;	/* atomic: and how many */
	cpu_set_t cpus;		/* where the last was made */
} sending;

extern __typeof__(sendmmsg) __real_sendmmsg, __wrap_sendmmsg;
int __wrap_sendmmsg(int fd, struct mmsghdr *v, unsigned int n, int flags)
{
	sched_getaffinity(0, sizeof(sending.cpus), &sending.cpus);
	if (!__atomic_load_n(&sending.times, __ATOMIC_ACQUIRE))
		return __real_sendmmsg(fd, v, n, flags);
	__atomic_fetch_sub(&sending.times, 1, __ATOMIC_RELAXED);
	errno = __atomic_load_n(&sending.err, __ATOMIC_RELAXED);
	return -1;
}

/* The thread stays at the end of a round, where it looks at what it has taken of its CPU. */
static struct {
	bool holds, held;	/* atomic */
} pause_of;

extern __typeof__(clock_gettime) __real_clock_gettime, __wrap_clock_gettime;
int __wrap_clock_gettime(clockid_t id, struct timespec *ts)
{
	while (id == CLOCK_THREAD_CPUTIME_ID &&
	       __atomic_load_n(&pause_of.holds, __ATOMIC_ACQUIRE)) {
		__atomic_store_n(&pause_of.held, true, __ATOMIC_RELEASE);
		usleep(1000);
	}
	return __real_clock_gettime(id, ts);
}

static int bound(int family, struct sockaddr_in6 *addr)
{
	struct sockaddr_in *addr4 = (struct sockaddr_in *)addr;
	socklen_t len = family == AF_INET ? sizeof(*addr4) : sizeof(*addr);
	int fd = socket(family, SOCK_DGRAM, 0), size = 1 << 20;

	if (fd < 0)
		return fd;
	memset(addr, 0, sizeof(*addr));
	addr->sin6_family = (sa_family_t)family;
	if (family == AF_INET)
		addr4->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	else
		addr->sin6_addr = in6addr_loopback;
	setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &size, sizeof(size));
	if (bind(fd, (struct sockaddr *)addr, len) ||
	    getsockname(fd, (struct sockaddr *)addr, &len)) {
		close(fd);
		return -1;
	}
	return fd;
}

/* false: no such family here */
static bool bed_open(struct bed *b, int family)
{
	struct rgate_responder_opts o = { .sz = sizeof(o), .batch = 7, .spin_us = 1 };
	struct sockaddr_in6 from;

	memset(b, 0, sizeof(*b));
	b->client = bound(family, &b->to);
	if (b->client < 0)
		return false;
	b->server = bound(family, &from);
	assert_true(b->server >= 0);
	/* it hears this server alone, not who sends to whoever had the port before */
	assert_int_equal(connect(b->client, (struct sockaddr *)&from,
				 family == AF_INET ? sizeof(struct sockaddr_in) : sizeof(from)), 0);
	b->ring = unit_ring(256, 256, 0, RGATE_POLICY_DROP);
	assert_int_equal(rgate_producer_init(&b->p, b->ring), 0);
	o.udp_socket_plus1 = b->server + 1;
	assert_int_equal(rgate_responder_start(&b->r, b->ring, &o), 0);
	return true;
}

static void bed_close(struct bed *b)
{
	rgate_responder_stop(b->r);
	rgate_producer_fini(&b->p);
	rgate_ring_close(b->ring);
	close(b->client);
	close(b->server);
}

/* A packet for the client: number @n, @len bytes of payload */
static struct rgate_slot *put(struct bed *b, uint32_t n, uint32_t len)
{
	const struct sockaddr_in *to4 = (const struct sockaddr_in *)&b->to;
	bool v4 = b->to.sin6_family == AF_INET;
	uint32_t l4 = v4 ? 20 : 40;
	struct rgate_slot *s;
	unsigned char *f;

	do {
		s = rgate_producer_reserve(&b->p);
	} while (!s);
	f = rgate_producer_data(s);
	memset(f, 0, l4 + 8);
	f[0] = v4 ? 0x45 : 0x60;
	if (v4)
		memcpy(f + 16, &to4->sin_addr, 4);
	else
		memcpy(f + 24, &b->to.sin6_addr, 16);
	memcpy(f + l4 + 2, &to4->sin_port, 2);	/* at the same place in both */
	unit_pattern(f + l4 + 8, n, len);
	rgate_producer_fill(&b->p, s, l4 + 8 + len, l4 + 8 + len);
	s->l3_off = 0;
	s->l4_off = (uint16_t)l4;
	return s;
}

static void send_one(struct bed *b, uint32_t n, uint32_t len)
{
	put(b, n, len);
	rgate_producer_publish(&b->p);
}

static void expect(struct bed *b, uint32_t n, uint32_t len)
{
	struct pollfd pfd = { .fd = b->client, .events = POLLIN };
	unsigned char buf[512];

	if (poll(&pfd, 1, 5000 * (int)unit_patience()) != 1)
		fail_msg("number %u has not come", n);
	assert_int_equal(recv(b->client, buf, sizeof(buf), 0), len);
	assert_int_equal(unit_pattern_check(buf, n, len), 0);
}

static struct rgate_responder_stats stats_of(struct bed *b)
{
	struct rgate_responder_stats st = { .sz = sizeof(st) };

	assert_int_equal(rgate_responder_stats(b->r, &st), 0);
	return st;
}

static void sends(int family)
{
	struct rgate_responder_stats st;
	uint64_t end, bytes = 0;
	struct bed b;
	uint32_t i, k;

	if (!bed_open(&b, family))
		unit_skip("no such addresses here");
	for (i = 0; i < FRAMES; i++) {
		send_one(&b, i, i % 140);
		bytes += i % 140;
		if (i % 100 != 99)
			continue;
		rgate_producer_flush(&b.p);
		for (k = i - 99; k <= i; k++)
			expect(&b, k, k % 140);
	}
	end = unit_now_ns() + 5000000000ULL;
	do {
		st = stats_of(&b);
	} while (st.sent < FRAMES && unit_now_ns() < end);
	assert_int_equal(st.sent, FRAMES);
	assert_int_equal(st.bytes, bytes);
	assert_int_equal(st.errors + st.malformed, 0);
	assert_true(st.calls >= FRAMES / 32 && st.calls <= FRAMES);
	bed_close(&b);
}

static void sends_ipv4(void **state)
{
	(void)state;
	sends(AF_INET);
}

static void sends_ipv6(void **state)
{
	(void)state;
	sends(AF_INET6);
}

/* What is no packet to be sent is left out and counted, the next goes all the same. */
static void malformed(void **state)
{
	struct rgate_responder_stats st;
	struct rgate_slot *s;
	struct bed b;

	(void)state;
	assert_true(bed_open(&b, AF_INET));
	put(&b, 0, 8)->l4_off = 0;			/* no l4 behind l3 */
	rgate_producer_publish(&b.p);
	put(&b, 0, 8)->l3_off = RGATE_OFF_NONE;
	rgate_producer_publish(&b.p);
	put(&b, 0, 8)->l4_off = 30;			/* its header ends beyond the frame */
	rgate_producer_publish(&b.p);
	s = put(&b, 0, 8);
	((unsigned char *)rgate_producer_data(s))[0] = 0x60;	/* the other family */
	rgate_producer_publish(&b.p);
	put(&b, 0, 8)->len = 193;			/* longer than the slot */
	rgate_producer_publish(&b.p);
	put(&b, 0, 8)->len = 0xffffffff;
	rgate_producer_publish(&b.p);
	put(&b, 0, 8)->chain_cnt = 2;
	rgate_producer_publish(&b.p);
	put(&b, 0, 8)->flags = RGATE_SLOT_CONT;
	rgate_producer_publish(&b.p);
	send_one(&b, 5, 100);
	rgate_producer_flush(&b.p);
	expect(&b, 5, 100);
	st = stats_of(&b);
	assert_int_equal(st.malformed, 8);
	assert_int_equal(st.errors, 0);
	bed_close(&b);
}

/* Changes the last header between one that is right and ones that are not, until told to end */
struct flipper {
	struct rgate_slot *s;	/* atomic; null: it is to end */
};

static void *flip(void *arg)
{
	struct flipper *f = arg;
	struct rgate_slot *s;
	unsigned int i;

	for (i = 0; (s = __atomic_load_n(&f->s, __ATOMIC_ACQUIRE)); i++) {
		__atomic_store_n(&s->l4_off, i & 1 ? 20 : 190, __ATOMIC_RELAXED);
		__atomic_store_n(&s->len, i & 2 ? 48 : 36, __ATOMIC_RELAXED);
	}
	return NULL;
}

/*
 * A slot that is changed while it is looked at is sent as one of what it was, or is malformed:
 * never by the length of the one and the offset of the other.
 */
static void changed_meanwhile(void **state)
{
	uint64_t end = unit_now_ns() + 60000000000ULL * unit_patience();
	struct rgate_responder_stats st;
	const uint32_t frames = unit_rounds(60000);
	struct flipper f;
	unsigned char buf[512];
	pthread_t thread;
	struct bed b;
	ssize_t n;
	uint32_t i;

	(void)state;
	unit_not_for_tsan("the slot is changed under its reader's hands, on purpose");
	assert_true(bed_open(&b, AF_INET));
	f.s = put(&b, 0, 20);
	assert_int_equal(pthread_create(&thread, NULL, flip, &f), 0);
	for (i = 1; i <= frames; i++) {
		rgate_producer_publish(&b.p);
		rgate_producer_flush(&b.p);
		while ((n = recv(b.client, buf, sizeof(buf), MSG_DONTWAIT)) >= 0)
			assert_true(n == 20 || n == 8);
		if (i < frames)
			__atomic_store_n(&f.s, put(&b, i, 20), __ATOMIC_RELEASE);
	}
	__atomic_store_n(&f.s, NULL, __ATOMIC_RELEASE);
	pthread_join(thread, NULL);
	do {
		st = stats_of(&b);
		assert_true(unit_now_ns() < end);
	} while (st.sent + st.errors + st.malformed < frames);
	assert_int_equal(st.errors, 0);
	bed_close(&b);
}

/* The socket refuses one: it is counted, the others go. */
static void refused(void **state)
{
	uint64_t end = unit_now_ns() + 5000000000ULL;
	struct rgate_responder_stats st;
	struct rgate_slot *s;
	struct bed b;

	(void)state;
	assert_true(bed_open(&b, AF_INET));
	send_one(&b, 1, 10);
	s = put(&b, 2, 10);
	memset((unsigned char *)rgate_producer_data(s) + 16, 0xff, 4);	/* broadcast */
	rgate_producer_publish(&b.p);
	send_one(&b, 3, 10);
	rgate_producer_flush(&b.p);
	expect(&b, 1, 10);
	expect(&b, 3, 10);
	do {
		st = stats_of(&b);
	} while (st.sent + st.errors < 3 && unit_now_ns() < end);
	assert_int_equal(st.sent, 2);
	assert_int_equal(st.errors, 1);
	bed_close(&b);
}

/* Number @n is sent after @times refusals with @err: those that are counted */
static uint64_t refused_with(struct bed *b, int err, unsigned int times, uint32_t n)
{
	const uint64_t before = stats_of(b).errors;

	__atomic_store_n(&sending.err, err, __ATOMIC_RELAXED);
	__atomic_store_n(&sending.times, times, __ATOMIC_RELEASE);
	send_one(b, n, 10);
	send_one(b, n + 1, 10);
	rgate_producer_flush(&b->p);
	if (times < 2)
		expect(b, n, 10);
	expect(b, n + 1, 10);
	return stats_of(b).errors - before;
}

/* The socket has no room: it is asked once more, and then the message is given up. */
static void full(void **state)
{
	struct bed b;

	(void)state;
	assert_true(bed_open(&b, AF_INET));
	assert_int_equal(refused_with(&b, EAGAIN, 1, 0), 0);
	assert_int_equal(refused_with(&b, ENOBUFS, 1, 10), 0);
	assert_int_equal(refused_with(&b, EINTR, 1, 20), 0);
	assert_int_equal(refused_with(&b, EAGAIN, 2, 30), 1);
	bed_close(&b);
}

/* It runs on the CPU that it was told. */
static void pinned(void **state)
{
	struct rgate_responder_opts o = { .sz = sizeof(o) };
	cpu_set_t here;
	struct bed b;
	int cpu = CPU_SETSIZE - 1;

	(void)state;
	assert_int_equal(sched_getaffinity(0, sizeof(here), &here), 0);
	while (!CPU_ISSET(cpu, &here))
		cpu--;
	assert_true(bed_open(&b, AF_INET));
	rgate_responder_stop(b.r);
	o.udp_socket_plus1 = b.server + 1;
	o.cpu_plus1 = cpu + 1;
	assert_int_equal(rgate_responder_start(&b.r, b.ring, &o), 0);
	send_one(&b, 1, 10);
	rgate_producer_flush(&b.p);
	expect(&b, 1, 10);
	rgate_responder_stop(b.r);
	b.r = NULL;
	assert_int_equal(CPU_COUNT(&sending.cpus), 1);
	assert_true(CPU_ISSET(cpu, &sending.cpus));
	bed_close(&b);
}

/* The socket that it sends whole frames by is its own, and ends with it. */
static void own_socket(void **state)
{
	struct rgate_ring *ring = unit_ring(64, 256, 0, RGATE_POLICY_DROP);
	const struct rgate_responder_opts o = { .sz = sizeof(o), .ifname = "lo" };
	const unsigned int fds = unit_entries("/proc/self/fd");
	struct rgate_responder *r;
	int err = rgate_responder_start(&r, ring, &o);

	(void)state;
	if (!err) {
		assert_int_equal(unit_entries("/proc/self/fd"), fds + 1);
		rgate_responder_stop(r);
		assert_int_equal(unit_entries("/proc/self/fd"), fds);
	}
	rgate_ring_close(ring);
	if (err == -EPERM)
		unit_skip("no whole frames without CAP_NET_RAW");
	assert_int_equal(err, 0);
}

/* Stopped: what was published before is sent; a producer that goes on keeps nobody. */
static void stops(void **state)
{
	struct bed b;
	uint32_t i;

	(void)state;
	assert_true(bed_open(&b, AF_INET));
	for (i = 0; i < 200; i++)
		send_one(&b, i, 20);
	rgate_producer_flush(&b.p);
	rgate_responder_stop(b.r);
	b.r = NULL;
	for (i = 0; i < 200; i++)
		expect(&b, i, 20);
	bed_close(&b);
}

static void *stop_it(void *arg)
{
	rgate_responder_stop(arg);
	return NULL;
}

/* Found nothing, and then what came and the stop: that is sent, too. */
static void stops_later(void **state)
{
	pthread_t thread;
	struct bed b;
	uint32_t i;

	(void)state;
	assert_true(bed_open(&b, AF_INET));
	__atomic_store_n(&pause_of.holds, true, __ATOMIC_RELEASE);
	while (!__atomic_load_n(&pause_of.held, __ATOMIC_ACQUIRE))
		usleep(1000);
	for (i = 0; i < 200; i++)
		send_one(&b, i, 20);
	rgate_producer_flush(&b.p);
	assert_int_equal(pthread_create(&thread, NULL, stop_it, b.r), 0);
	usleep(20000);
	__atomic_store_n(&pause_of.holds, false, __ATOMIC_RELEASE);
	assert_int_equal(pthread_join(thread, NULL), 0);
	b.r = NULL;
	for (i = 0; i < 200; i++)
		expect(&b, i, 20);
	bed_close(&b);
}

static void options(void **state)
{
	struct rgate_ring *ring = unit_ring(64, 256, 0, RGATE_POLICY_DROP);
	struct rgate_responder_opts o = { .sz = sizeof(o) };
	struct rgate_responder *r = NULL;
	int tcp = socket(AF_INET, SOCK_STREAM, 0), null = open("/dev/null", O_RDONLY | O_CLOEXEC);

	(void)state;
	assert_int_equal(rgate_responder_start(&r, ring, NULL), -EINVAL);
	assert_int_equal(rgate_responder_start(&r, ring, &o), -EINVAL);
	o.udp_socket_plus1 = tcp + 1;
	assert_int_equal(rgate_responder_start(&r, ring, &o), -EINVAL);
	o.ifname = "lo";	/* both */
	assert_int_equal(rgate_responder_start(&r, ring, &o), -EINVAL);
	o.udp_socket_plus1 = 0;
	o.batch = 257;
	assert_int_equal(rgate_responder_start(&r, ring, &o), -EINVAL);
	o.batch = 0;
	o.ifname = "no-such-device";
	assert_int_equal(rgate_responder_start(&r, ring, &o), -ENODEV);
	/* a descriptor that nobody has, and one that is no socket */
	o.ifname = NULL;
	o.udp_socket_plus1 = 1000;
	assert_int_equal(rgate_responder_start(&r, ring, &o), -EBADF);
	o.udp_socket_plus1 = null + 1;
	assert_int_equal(rgate_responder_start(&r, ring, &o), -ENOTSOCK);
	o.udp_socket_plus1 = -3;
	assert_int_equal(rgate_responder_start(&r, ring, &o), -EINVAL);
	assert_null(r);
	o.sz = sizeof(o.sz) - 1;	/* no sized structure at all */
	assert_int_equal(rgate_responder_start(&r, ring, &o), -EINVAL);
	assert_null(r);
	rgate_responder_stop(NULL);
	close(null);
	close(tcp);
	rgate_ring_close(ring);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(sends_ipv4),
	cmocka_unit_test(sends_ipv6),
	cmocka_unit_test(malformed),
	cmocka_unit_test(changed_meanwhile),
	cmocka_unit_test(refused),
	cmocka_unit_test(full),
	cmocka_unit_test(pinned),
	cmocka_unit_test(own_socket),
	cmocka_unit_test(stops),
	cmocka_unit_test(stops_later),
	cmocka_unit_test(options),
};

UNIT_MAIN(tests)
