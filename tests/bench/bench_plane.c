// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * Frames from a ring at a gateway to consumers at nodes, and the same frames by UDP.
 * One run of one way; tests/bench/plane.sh takes turns. All nodes are of this process.
 *
 *	batched		the gateway as it is
 *	single		the gateway with a post for each frame
 *	udp		taken out of the ring, sent by sendmmsg(2), received by recvmmsg(2)
 *	send, recv	only the two ends of that, for what the kernel forwards between them
 *
 * Environment: RGATE_BENCH_ADDRS, addresses divided by commas: over RDMA and between
 * these; without it over shared memory and the loopback device.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <getopt.h>
#include <net/if_arp.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <ringgate/ringgate.h>

#include "bench.h"

#define NODES_MAX	8U
#define SLOTS		4096U
#define SLOT_SIZE	2048U
#define FLOWS		64U
#define BURST		32U
#define WARM_MS		200
#define PORT		17500
#define HEAD		42U	/* Ethernet, IPv4, UDP */

struct node {
	struct rgate_node *node;
	struct rgate_hub *hub;
	struct rgate_inlet *inlet;
	struct rgate_ring *ring;
	pthread_t thread;
	int sock;
	uint64_t frames;	/* atomic */
	uint64_t bytes;		/* atomic */
};

struct options {
	const char *way;
	uint32_t len;
	unsigned int ms;
	unsigned int nodes;
	bool copies;		/* every frame to all nodes */
	const char *to;		/* send: whom */
};

static struct options o = { .way = "batched", .len = 256, .ms = 500, .nodes = 1 };
static struct node nodes[NODES_MAX + 1];
static struct rgate_cluster *cluster;
static struct rgate_ring *source;
static char dir[32] = "/tmp/ringgate-bench-XXXXXX";
static bool stop;		/* atomic */

static bool stopped(void)
{
	return __atomic_load_n(&stop, __ATOMIC_RELAXED);
}

static const char *address(unsigned int i, char *buf, size_t len)
{
	const char *list = getenv("RGATE_BENCH_ADDRS"), *p = list;
	unsigned int n = 1;

	if (!list)
		return "127.0.0.1";
	for (; *p; p++)
		n += *p == ',';
	for (p = list, i %= n; i; i--)
		p = strchr(p, ',') + 1;
	snprintf(buf, len, "%.*s", (int)strcspn(p, ","), p);
	return buf;
}

static void make_cluster(void)
{
	const bool local = !getenv("RGATE_BENCH_ADDRS");
	char text[2048], one[64];
	unsigned int i;
	size_t at;
	int err;

	if (!mkdtemp(dir))
		bench_die(errno, "%s", dir);
	at = (size_t)snprintf(text, sizeof(text), "provider %s\ntimeout 30000\n",
			      local ? "local" : "verbs");
	for (i = 0; i <= o.nodes; i++) {
		at += (size_t)snprintf(text + at, sizeof(text) - at, "node %u %s ", i,
				       i ? "compute" : "gateway");
		if (local)
			at += (size_t)snprintf(text + at, sizeof(text) - at, "%s/%u\n", dir, i);
		else
			at += (size_t)snprintf(text + at, sizeof(text) - at, "%s:%u\n",
					       address(i, one, sizeof(one)), 7600 + i);
	}
	at = bench_public_keys(text, at, sizeof(text), o.nodes + 1);
	err = rgate_cluster_parse(&cluster, "bench", text, at);
	if (err)
		bench_die(-err, "cluster");
}

static void make_node(struct node *n, unsigned int id)
{
	const struct rgate_pool_opts pool = RGATE_OPTS(rgate_pool_opts, .region_size = 8 << 20,
						       .access = RGATE_ACCESS_REMOTE);
	const struct rgate_node_opts no = RGATE_OPTS(rgate_node_opts, .pool = &pool,
						     .key = bench_key(id), .send_depth = 4096);
	const struct rgate_ring_opts ro = RGATE_OPTS(rgate_ring_opts, .slots = SLOTS,
						     .slot_size = SLOT_SIZE, .name = "bench");
	uint32_t number;
	int err;

	err = rgate_node_create(&n->node, cluster, id, &no);
	if (!err)
		err = rgate_hub_create(&n->hub, n->node, NULL);
	if (!err && id)
		err = rgate_inlet_create(&n->inlet, n->hub);
	if (!err && id)
		err = rgate_inlet_add(n->inlet, &n->ring, &ro, &number);
	if (err)
		bench_die(-err, "node %u", id);
}

static void count(struct node *n, uint64_t frames, uint64_t bytes)
{
	__atomic_store_n(&n->frames, n->frames + frames, __ATOMIC_RELAXED);
	__atomic_store_n(&n->bytes, n->bytes + bytes, __ATOMIC_RELAXED);
}

static void *consume_ring(void *arg)
{
	const struct rgate_consumer_opts co = RGATE_OPTS(rgate_consumer_opts, .spin_us = 20);
	const struct rgate_slot *v[BURST];
	struct rgate_consumer c;
	struct node *n = arg;

	if (rgate_consumer_init(&c, n->ring, &co))
		bench_die(0, "consumer");
	while (!stopped()) {
		unsigned int k = rgate_consumer_peek(&c, v, BURST), i;
		uint64_t bytes = 0;

		if (!k) {
			(void)rgate_consumer_wait(&c, 50);
			continue;
		}
		for (i = 0; i < k; i++)
			bytes += v[i]->len;
		rgate_consumer_release_n(&c, k);
		count(n, k, bytes);
	}
	return NULL;
}

static int udp_socket(const char *addr, unsigned int port)
{
	struct sockaddr_in sin = { .sin_family = AF_INET, .sin_port = htons((uint16_t)port) };
	const struct timeval tv = { .tv_usec = 50000 };
	const int room = 8 << 20;
	int sock = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	inet_pton(AF_INET, addr, &sin.sin_addr);
	if (sock < 0 || bind(sock, (struct sockaddr *)&sin, sizeof(sin)))
		bench_die(errno, "%s:%u", addr, port);
	if (setsockopt(sock, SOL_SOCKET, SO_RCVBUFFORCE, &room, sizeof(room)))
		(void)setsockopt(sock, SOL_SOCKET, SO_RCVBUF, &room, sizeof(room));
	(void)setsockopt(sock, SOL_SOCKET, SO_RCVTIMEO, &tv, sizeof(tv));
	return sock;
}

static void *consume_udp(void *arg)
{
	static __thread unsigned char buf[BURST][SLOT_SIZE];
	struct mmsghdr msgs[BURST];
	struct iovec iov[BURST];
	struct node *n = arg;
	unsigned int i;

	memset(msgs, 0, sizeof(msgs));
	for (i = 0; i < BURST; i++) {
		iov[i] = (struct iovec){ buf[i], SLOT_SIZE };
		msgs[i].msg_hdr.msg_iov = &iov[i];
		msgs[i].msg_hdr.msg_iovlen = 1;
	}
	while (!stopped()) {
		int k = recvmmsg(n->sock, msgs, BURST, MSG_WAITFORONE, NULL), m;
		uint64_t bytes = 0;

		for (m = 0; m < k; m++)
			bytes += msgs[m].msg_len;
		if (k > 0)
			count(n, (uint64_t)k, bytes);
	}
	return NULL;
}

static void *produce(void *arg)
{
	const struct rgate_slot hdr = {
		.protocol = 0x0800, .dev_type = ARPHRD_ETHER, .l3_off = 14, .l4_off = 34,
		.payload_off = HEAD, .ip_proto = IPPROTO_UDP,
	};
	unsigned char frame[SLOT_SIZE] = { 0 };
	struct rgate_producer p;
	uint64_t i = 0;

	(void)arg;
	if (rgate_producer_init(&p, source))
		bench_die(0, "producer");
	frame[12] = 8;
	frame[14] = 0x45;
	frame[23] = IPPROTO_UDP;
	frame[26] = frame[30] = 10;
	while (!stopped()) {
		frame[34] = (unsigned char)(i % FLOWS);
		memcpy(frame + HEAD, &i, 8);
		if (rgate_producer_write(&p, &hdr, frame, o.len, o.len)) {
			rgate_producer_flush(&p);
			sched_yield();
			continue;
		}
		i++;
	}
	rgate_producer_fini(&p);
	return NULL;
}

/* The rival at the gateway: frames out of the same ring, into datagrams */
static void send_frames(int sock, struct mmsghdr *msgs, unsigned int n)
{
	unsigned int at = 0;

	while (at < n && !stopped()) {
		int k = sendmmsg(sock, msgs + at, n - at, 0);

		if (k > 0)
			at += (unsigned int)k;
		else if (errno != ENOBUFS && errno != EAGAIN && errno != ECONNREFUSED)
			bench_die(errno, "sendmmsg");
	}
}

static void *forward_udp(void *arg)
{
	const struct rgate_consumer_opts co = RGATE_OPTS(rgate_consumer_opts, .spin_us = 20);
	const struct rgate_slot *v[BURST];
	struct sockaddr_in to[NODES_MAX];
	struct mmsghdr msgs[BURST];
	struct iovec iov[BURST];
	struct rgate_consumer c;
	char one[64];
	unsigned int i;
	int sock = udp_socket(address(0, one, sizeof(one)), 0);

	(void)arg;
	memset(msgs, 0, sizeof(msgs));
	for (i = 0; i < o.nodes; i++) {
		to[i] = (struct sockaddr_in){ .sin_family = AF_INET,
					      .sin_port = htons((uint16_t)(PORT + 1 + i)) };
		inet_pton(AF_INET, address(i + 1, one, sizeof(one)), &to[i].sin_addr);
	}
	if (rgate_consumer_init(&c, source, &co))
		bench_die(0, "consumer");
	while (!stopped()) {
		unsigned int k = rgate_consumer_peek(&c, v, BURST);

		if (!k) {
			(void)rgate_consumer_wait(&c, 50);
			continue;
		}
		for (i = 0; i < k; i++) {
			const unsigned char *data = rgate_slot_data(v[i]);

			iov[i] = (struct iovec){ (void *)data, v[i]->len };
			msgs[i].msg_hdr = (struct msghdr){
				.msg_name = &to[data[34] % o.nodes], .msg_namelen = sizeof(to[0]),
				.msg_iov = &iov[i], .msg_iovlen = 1,
			};
		}
		send_frames(sock, msgs, k);
		rgate_consumer_release_n(&c, k);
	}
	close(sock);
	return NULL;
}

/* Only sends, to whatever forwards it */
static void *send_udp(void *arg)
{
	static unsigned char buf[SLOT_SIZE];
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons(PORT + 1) };
	struct iovec iov = { buf, o.len - HEAD };
	struct mmsghdr msgs[BURST];
	unsigned int i;
	int sock = udp_socket("0.0.0.0", 0);

	(void)arg;
	memset(msgs, 0, sizeof(msgs));
	inet_pton(AF_INET, o.to, &to.sin_addr);
	for (i = 0; i < BURST; i++)
		msgs[i].msg_hdr = (struct msghdr){ .msg_name = &to, .msg_namelen = sizeof(to),
						   .msg_iov = &iov, .msg_iovlen = 1 };
	while (!stopped())
		send_frames(sock, msgs, BURST);
	close(sock);
	return NULL;
}

static void sum(uint64_t *frames, uint64_t *bytes)
{
	unsigned int i;

	*frames = *bytes = 0;
	for (i = 1; i <= o.nodes; i++) {
		*frames += __atomic_load_n(&nodes[i].frames, __ATOMIC_RELAXED);
		*bytes += __atomic_load_n(&nodes[i].bytes, __ATOMIC_RELAXED);
	}
}

static void measure(void)
{
	uint64_t f0, b0, f1, b1, t;

	usleep(WARM_MS * 1000);
	sum(&f0, &b0);
	t = bench_now_ns();
	usleep(o.ms * 1000);
	sum(&f1, &b1);
	t = bench_now_ns() - t;
	printf("{\"way\":\"%s\",\"bytes\":%u,\"nodes\":%u,\"copies\":%s,\"frames_per_s\":%.0f,"
	       "\"bytes_per_s\":%.0f", o.way, o.len, o.nodes, o.copies ? "true" : "false",
	       (double)(f1 - f0) * 1e9 / (double)t, (double)(b1 - b0) * 1e9 / (double)t);
}

static struct rgate_gateway *make_gateway(bool single)
{
	const struct rgate_gateway_opts go = RGATE_OPTS(rgate_gateway_opts,
							.burst = single ? 1 : 0);
	struct rgate_gateway_ring r = { .sz = sizeof(r) };
	struct rgate_steer *steer;
	struct rgate_gateway *gw;
	unsigned int i;
	int err;

	make_node(&nodes[0], 0);
	err = rgate_gateway_create(&gw, nodes[0].hub, &go);
	if (!err)
		err = rgate_steer_create(&steer, cluster);
	if (!err)
		err = rgate_steer_add(steer, o.copies ? "all all:*" : "all hash:*", NULL, NULL, 0);
	if (!err)
		err = rgate_gateway_steer(gw, steer);
	for (i = 1; !err && i <= o.nodes; i++)
		make_node(&nodes[i], i);
	for (i = 0; !err && i < 2000 && rgate_gateway_ring(gw, o.nodes - 1, &r); i++)
		usleep(10000);
	if (!err)
		err = rgate_gateway_add(gw, source);
	if (err)
		bench_die(-err, "gateway");
	return gw;
}

static void report_gateway(struct rgate_gateway *gw)
{
	struct rgate_gateway_ring r = { .sz = sizeof(r) };
	uint64_t frames = 0, posts = 0, writes = 0;
	unsigned int i;

	for (i = 0; !rgate_gateway_ring(gw, i, &r); i++) {
		frames += r.frames;
		posts += r.posts;
		writes += r.writes;
	}
	printf(",\"frames_a_post\":%.2f,\"writes_a_frame\":%.2f",
	       posts ? (double)frames / (double)posts : 0,
	       frames ? (double)writes / (double)frames : 0);
}

static void start(pthread_t *thread, void *(*fn)(void *), void *arg)
{
	int err = pthread_create(thread, NULL, fn, arg);

	if (err)
		bench_die(err, "thread");
}

static void run(void)
{
	const bool ends = !strcmp(o.way, "send") || !strcmp(o.way, "recv");
	const bool udp = ends || !strcmp(o.way, "udp");
	const struct rgate_ring_opts ro = RGATE_OPTS(rgate_ring_opts, .slots = SLOTS,
						     .slot_size = SLOT_SIZE);
	struct rgate_gateway *gw = NULL;
	pthread_t producer, forwarder;
	unsigned int i;
	char one[64];

	if (rgate_ring_open_memfd(&source, &ro))
		bench_die(0, "ring");
	if (!udp) {
		make_cluster();
		gw = make_gateway(!strcmp(o.way, "single"));
	}
	for (i = 1; i <= o.nodes && strcmp(o.way, "send"); i++) {
		if (udp)
			nodes[i].sock = udp_socket(ends ? "0.0.0.0" : address(i, one, sizeof(one)),
						   PORT + i);
		start(&nodes[i].thread, udp ? consume_udp : consume_ring, &nodes[i]);
	}
	if (!ends)
		start(&producer, produce, NULL);
	if (!strcmp(o.way, "udp"))
		start(&forwarder, forward_udp, NULL);
	if (!strcmp(o.way, "send"))
		start(&forwarder, send_udp, NULL);
	measure();
	if (gw)
		report_gateway(gw);
	printf("}\n");
	fflush(stdout);
	/* What is under way has its end with the process. */
	__atomic_store_n(&stop, true, __ATOMIC_RELAXED);
	for (i = 0; gw && i <= o.nodes; i++) {
		char path[128];

		snprintf(path, sizeof(path), "%s/%u", dir, i);
		unlink(path);
		snprintf(path, sizeof(path), "%s/%u.lock", dir, i);
		unlink(path);
	}
	rmdir(dir);
	_exit(0);
}

int main(int argc, char **argv)
{
	int c;

	while ((c = getopt(argc, argv, "w:l:t:n:ca:")) != -1) {
		switch (c) {
		case 'w':
			o.way = optarg;
			break;
		case 'l':
			o.len = (uint32_t)atoi(optarg);
			break;
		case 't':
			o.ms = (unsigned int)atoi(optarg);
			break;
		case 'n':
			o.nodes = (unsigned int)atoi(optarg);
			break;
		case 'c':
			o.copies = true;
			break;
		case 'a':
			o.to = optarg;
			break;
		default:
			return 2;
		}
	}
	if (o.len < 64 || o.len > SLOT_SIZE - RGATE_SLOT_HDR || !o.nodes || o.nodes >= NODES_MAX)
		bench_die(0, "64 to %u bytes, 1 to %u nodes", SLOT_SIZE - RGATE_SLOT_HDR,
			  NODES_MAX - 1);
	run();
}
