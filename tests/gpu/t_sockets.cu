// SPDX-License-Identifier: MIT OR GPL-2.0
/* Warps that use sockets, of an engine of this process, over the loopback device */
#include "gtest.h"

#include <ringgate/gpu/sockets.cuh>
#include <ringgate/rgate_session.h>

#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define WARPS		64U
#define PART		4096U
#define CLIENTS		16U
#define ROUNDS		20U	/* connections of a client */
#define BYTES		50000U	/* of a connection */
#define DATAGRAMS	500U	/* of a client */
#define LONG		30000000U	/* us */

/* What kernels found; managed memory, read after they have returned */
struct seen {
	uint64_t served, wrong;
	int64_t first_wrong;
};

struct bed {
	struct rgate_gpu *gpu;
	struct rgate_session *session;
	struct rgate_dask ask;
	struct seen *seen;
	struct sockaddr_in addr;
	int daemon[2];		/* the second is closed: the session is over */
	unsigned int index;
	uint32_t socket;	/* the host's: a listener, or one for datagrams */
	uint64_t random;
};

static __device__ void wrong(struct seen *s, int64_t what)
{
	if (rgate_dlane())
		return;
	s->first_wrong = what;
	atomicAdd((unsigned long long *)&s->wrong, 1ULL);
}

static __device__ void count(uint64_t *n, uint32_t one)
{
	if (one && rgate_dlane() == 0)
		atomicAdd((unsigned long long *)n, 1ULL);
}

/*
 * Sends back what comes with each bit turned, by all lanes; a connection that begins with its end
 * ends a warp.
 */
static __global__ void streams_kernel(struct rgate_dask ask, uint32_t listener, struct seen *seen)
{
	__shared__ __align__(16) unsigned char near[PART];
	unsigned char *far = ask.memory + blockIdx.x * PART;
	struct rgate_dsocket s;
	uint32_t i, some;
	int n, err;

	err = rgate_dsocket_init(&s, &ask, blockIdx.x * PART, PART);
	do {
		some = 0;
		err = err ? err : rgate_dsocket_accept(&s, listener, LONG);
		while (!err && (n = rgate_dsocket_recv(&s, 0, PART, 0, LONG)) != 0) {
			some = 1;
			if (n < 0) {
				err = n;
				break;
			}
			rgate_dask_fetch(&ask, s.off, n, near);
			for (i = rgate_dlane(); i < (uint32_t)n; i += 32)
				far[i] = ~near[i];
			n -= rgate_dsocket_send(&s, 0, n, LONG);
			err = n ? -EIO : 0;
		}
		if (!err)
			err = rgate_dsocket_shutdown(&s, RGATE_SOCKET_SHUT_SEND, LONG);
		if (!err)
			err = rgate_dsocket_close(&s);
		count(&seen->served, some && !err);
	} while (some && !err);
	rgate_dsocket_fini(&s);
	if (err)
		wrong(seen, err);
}

/* Likewise datagrams, each to who has sent it; an empty one ends a warp */
static __global__ void datagrams_kernel(struct rgate_dask ask, uint32_t socket, struct seen *seen)
{
	const uint32_t at = sizeof(struct rgate_socket_addr);
	__shared__ __align__(16) unsigned char near[PART];
	unsigned char *far = ask.memory + blockIdx.x * PART + at;
	struct rgate_dsocket s;
	uint64_t whole;
	uint32_t i;
	int n;

	n = rgate_dsocket_init(&s, &ask, blockIdx.x * PART, PART);
	rgate_dsocket_use(&s, socket);
	for (;;) {
		n = n ? n : rgate_dsocket_recvfrom(&s, at, PART - at, 0, LONG, &whole);
		if (n <= 0)
			break;
		rgate_dask_fetch(&ask, s.off + at, n, near);
		for (i = rgate_dlane(); i < (uint32_t)n; i += 32)
			far[i] = ~near[i];
		i = (uint32_t)n;
		n = rgate_dsocket_sendto(&s, at, i, 0, LONG);
		if (n != (int)i || whole != i)
			break;
		count(&seen->served, 1);
		n = 0;
	}
	rgate_dsocket_fini(&s);
	if (n)
		wrong(seen, n);
}

/* Until the session is over */
static __global__ void stay(struct rgate_dask ask, uint32_t listener, struct seen *seen)
{
	struct rgate_dsocket s;
	int err = rgate_dsocket_init(&s, &ask, blockIdx.x * PART, PART);

	if (!err)
		err = rgate_dsocket_accept(&s, listener, LONG);
	if (!err) {
		count(&seen->served, 1);
		err = rgate_dsocket_recv(&s, 0, 1, 0, LONG);
	}
	if (err != -EPIPE)
		wrong(seen, err);
}

/*
 * The host's side
 */

static uint64_t ask_once(struct bed *b, struct rgate_request q)
{
	struct rgate_completion c;

	g_require(!rgate_session_submit(b->session, &q));
	g_require(rgate_session_wait(b->session, 10000) == 1);
	g_require(rgate_session_poll(b->session, &c, 1) == 1 && !c.result);
	return c.value;
}

static struct rgate_request on_socket(const struct bed *b, uint16_t op, uint64_t a0, uint32_t len)
{
	struct rgate_request q;

	memset(&q, 0, sizeof(q));
	q.op = op;
	q.handle = b->socket;
	q.a0 = a0;
	q.len = len;
	return q;
}

static void make_socket(struct bed *b, uint32_t type)
{
	struct rgate_socket_addr *a =
		(struct rgate_socket_addr *)rgate_session_memory(b->session, NULL);

	b->socket = (uint32_t)ask_once(b, on_socket(b, RGATE_REQ_SOCKET_OPEN,
						    RGATE_SOCKET_A0(RGATE_SOCKET_INET, type), 0));
	memset(a, 0, sizeof(*a));
	a->family = RGATE_SOCKET_INET;
	a->addr[0] = 127;
	a->addr[3] = 1;
	ask_once(b, on_socket(b, RGATE_REQ_SOCKET_BIND, 0, sizeof(*a)));
	if (type == RGATE_SOCKET_STREAM)
		ask_once(b, on_socket(b, RGATE_REQ_SOCKET_LISTEN, 256, 0));
	ask_once(b, on_socket(b, RGATE_REQ_SOCKET_NAME, 0, sizeof(*a)));
	b->addr.sin_family = AF_INET;
	b->addr.sin_port = htons(a->port);
	b->addr.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
}

static void bed_open(struct bed *b, uint32_t type)
{
	struct rgate_session_loan loan;
	struct rgate_session_opts o;

	memset(b, 0, sizeof(*b));
	b->random = g_seed();
	memset(&o, 0, sizeof(o));
	o.sz = sizeof(o);
	o.where = RGATE_SESSION_PROCESS;
	o.requests = 1024;
	o.memory = WARPS * PART;
	memset(&loan, 0, sizeof(loan));
	loan.sz = sizeof(loan);
	g_ok(NULL, rgate_gpu_open(&b->gpu, NULL));
	g_require(!cudaMallocManaged((void **)&b->seen, sizeof(*b->seen)));
	memset(b->seen, 0, sizeof(*b->seen));
	g_require(!rgate_session_open(&b->session, &o));
	make_socket(b, type);
	g_require(!rgate_session_lend(b->session, &loan));
	g_require(!socketpair(AF_UNIX, SOCK_SEQPACKET, 0, b->daemon));
	loan.gone_fd = b->daemon[0];
	g_ok(b->gpu, rgate_gpu_bind_session(b->gpu, &loan, NULL, &b->index));
	g_ok(b->gpu, rgate_gpu_session_view(b->gpu, b->index, &b->ask, sizeof(b->ask)));
}

/* The kernel has returned */
static void bed_close(struct bed *b)
{
	g_require(!cudaStreamSynchronize((cudaStream_t)rgate_gpu_stream(b->gpu)));
	if (b->seen->wrong)
		g_note("%llu wrong, the first: %lld", (unsigned long long)b->seen->wrong,
		       (long long)b->seen->first_wrong);
	g_require(!b->seen->wrong);
	rgate_gpu_close(b->gpu);
	rgate_session_close(b->session);
	close(b->daemon[0]);
	cudaFree(b->seen);
}

struct client {
	struct bed *b;
	uint64_t random;
	uint32_t rounds;
	int type;
	pthread_t thread;
};

static int client_socket(const struct bed *b, int type)
{
	struct timeval limit = { 30, 0 };
	int fd = socket(AF_INET, type, 0);

	g_require(fd >= 0);
	g_require(!setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit)));
	g_require(!connect(fd, (const struct sockaddr *)&b->addr, sizeof(b->addr)));
	return fd;
}

static void fill(unsigned char *to, uint32_t n, uint64_t *random)
{
	for (uint32_t i = 0; i < n; i++)
		to[i] = (unsigned char)(g_random(random) >> 32);
}

static void is_turned(const unsigned char *back, const unsigned char *text, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		g_require(back[i] == (unsigned char)~text[i]);
}

static void stream_once(struct client *c)
{
	unsigned char text[BYTES], back[8192];
	uint32_t sent = 0, got = 0, some;
	int fd = client_socket(c->b, c->type);
	ssize_t n;

	fill(text, BYTES, &c->random);
	while (got < BYTES) {
		some = BYTES - sent < 9000 ? BYTES - sent : 9000;
		if (some) {
			g_require(send(fd, text + sent, some, 0) == (ssize_t)some);
			sent += some;
		}
		if (some && sent == BYTES)
			g_require(!shutdown(fd, SHUT_WR));
		n = recv(fd, back, sizeof(back), 0);
		g_require(n > 0);
		is_turned(back, text + got, (uint32_t)n);
		got += (uint32_t)n;
	}
	g_require(recv(fd, back, sizeof(back), 0) == 0);
	close(fd);
}

static void datagrams_once(struct client *c, int fd)
{
	unsigned char text[1400], back[2000];
	uint32_t n = 1 + (uint32_t)(g_random(&c->random) >> 32) % sizeof(text);

	fill(text, n, &c->random);
	g_require(send(fd, text, n, 0) == (ssize_t)n);
	g_require(recv(fd, back, sizeof(back), 0) == (ssize_t)n);
	is_turned(back, text, n);
}

static void *client_main(void *arg)
{
	struct client *c = (struct client *)arg;
	int fd = c->type == SOCK_DGRAM ? client_socket(c->b, c->type) : -1;

	for (uint32_t i = 0; i < c->rounds; i++)
		if (fd >= 0)
			datagrams_once(c, fd);
		else
			stream_once(c);
	if (fd >= 0)
		close(fd);
	return NULL;
}

/* How many rounds in all */
static uint64_t all_clients(struct bed *b, int type, uint32_t rounds)
{
	struct client c[CLIENTS];

	for (uint32_t i = 0; i < CLIENTS; i++) {
		c[i].b = b;
		c[i].random = g_random(&b->random);
		c[i].rounds = rounds;
		c[i].type = type;
		g_require(!pthread_create(&c[i].thread, NULL, client_main, &c[i]));
	}
	for (uint32_t i = 0; i < CLIENTS; i++)
		pthread_join(c[i].thread, NULL);
	return (uint64_t)CLIENTS * rounds;
}

static cudaStream_t stream_of(const struct bed *b)
{
	return (cudaStream_t)rgate_gpu_stream(b->gpu);
}

static void streams(void)
{
	uint64_t served;
	struct bed b;

	bed_open(&b, RGATE_SOCKET_STREAM);
	streams_kernel<<<WARPS, 32, 0, stream_of(&b)>>>(b.ask, b.socket, b.seen);
	g_require(!cudaGetLastError());
	served = all_clients(&b, SOCK_STREAM, ROUNDS / (uint32_t)g_slow());
	for (uint32_t i = 0; i < WARPS; i++)
		close(client_socket(&b, SOCK_STREAM));
	g_require(!cudaStreamSynchronize(stream_of(&b)));
	g_require(b.seen->served == served);
	close(b.daemon[1]);
	bed_close(&b);
}

static void datagrams(void)
{
	uint64_t served;
	struct bed b;
	int fd;

	bed_open(&b, RGATE_SOCKET_DGRAM);
	datagrams_kernel<<<WARPS, 32, 0, stream_of(&b)>>>(b.ask, b.socket, b.seen);
	g_require(!cudaGetLastError());
	served = all_clients(&b, SOCK_DGRAM, DATAGRAMS / (uint32_t)g_slow());
	fd = client_socket(&b, SOCK_DGRAM);
	for (uint32_t i = 0; i < WARPS; i++)
		g_require(!send(fd, "", 0, 0));
	close(fd);
	g_require(!cudaStreamSynchronize(stream_of(&b)));
	g_require(b.seen->served == served);
	close(b.daemon[1]);
	bed_close(&b);
}

/* The session ends under warps that accept and receive */
static void over(void)
{
	struct bed b;
	int fd[4];

	bed_open(&b, RGATE_SOCKET_STREAM);
	stay<<<WARPS, 32, 0, stream_of(&b)>>>(b.ask, b.socket, b.seen);
	g_require(!cudaGetLastError());
	for (uint32_t i = 0; i < 4; i++)
		fd[i] = client_socket(&b, SOCK_STREAM);
	usleep(200000);
	close(b.daemon[1]);
	g_require(!cudaStreamSynchronize(stream_of(&b)));
	g_require(b.seen->served == 4);
	for (uint32_t i = 0; i < 4; i++)
		close(fd[i]);
	bed_close(&b);
}

static const struct g_test tests[] = {
	{ "streams", streams },
	{ "datagrams", datagrams },
	{ "over", over },
};

int main(int argc, char **argv)
{
	return g_run(argc, argv, tests, sizeof(tests) / sizeof(tests[0]));
}
