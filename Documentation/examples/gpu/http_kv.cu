/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * A key-value server that speaks HTTP/1.1, all of which is a GPU's:
 *
 *	http_kv [PORT [SOCKET]]
 *	curl -T file http://127.0.0.1:8080/key
 *	curl http://127.0.0.1:8080/key
 *
 * 96 warps have a connection each: they accept it, receive and parse requests, look into a table
 * in the GPU's memory, and send what it has. This process's thread does what they ask for with the
 * sockets; with a socket the daemon does, of its machine or of its gateway. Ends by ^C.
 */
#include <ringgate/gpu/sockets.cuh>
#include <ringgate/rgate_gpu.h>

#include <arpa/inet.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "http.cuh"
#include "kv.cuh"

#define WARPS	96U			/* and one that takes the answers of all */
#define IN	(HTTP_HEAD_MAX + HTTP_BODY_MAX)
#define OUT	(HTTP_ANSWER_MAX + KV_VALUE_MAX)
#define PART	(IN + OUT)		/* of the session's memory, a warp's */
#define SETS	8192U
#define LOOK	200000U			/* us between looks at whether to stop */
#define IDLE	30			/* s: for so long a connection may say nothing */
#define SECOND	1000000U

struct counts {
	unsigned long long connections, requests, found, refused;
};

struct server {
	struct rgate_dask ask;
	struct kv_table table;
	uint32_t listener;
	uint32_t warps_left;
	uint64_t over;			/* no warp serves any more */
	const uint64_t *stop;		/* the host's word */
	struct counts n;
};

struct connection {
	struct server *srv;
	struct rgate_dsocket s;
	unsigned char *in, *out;	/* near: IN, OUT */
	uint32_t have;			/* bytes in @in */
	uint32_t told;			/* "100 Continue", for the request at the begin of @in */
};

static __device__ void count(unsigned long long *n)
{
	if (rgate_dlane() == 0)
		atomicAdd(n, 1ULL);
}

static __device__ bool stopped(const struct server *srv)
{
	return rgate_dwarp_first(rgate_dsys_load(srv->stop)) != 0;
}

/* What is in @out: false: the connection is of no use any more */
static __device__ bool send_out(struct connection *c, uint32_t n)
{
	unsigned char *to = c->s.me.ask->memory + c->s.off + IN;

	for (uint32_t i = rgate_dlane() * 16; i < n; i += 32 * 16)
		*(struct rgate_dvec *)(to + i) = *(const struct rgate_dvec *)(c->out + i);
	return rgate_dsocket_send(&c->s, IN, n, IDLE * SECOND) == (int)n;
}

/* More of the request, behind what there is of it */
static __device__ bool receive(struct connection *c)
{
	const unsigned char *from = c->s.me.ask->memory + c->s.off;
	int n = -ETIMEDOUT;

	for (uint32_t i = 0; i < IDLE * SECOND / LOOK && n == -ETIMEDOUT; i++)
		n = stopped(c->srv) ? 0 :
		    rgate_dsocket_recv(&c->s, 0, IN - c->have, 0, LOOK);
	if (n <= 0)
		return false;
	for (uint32_t i = rgate_dlane() * 16; i < (uint32_t)n; i += 32 * 16) {
		struct rgate_dvec v = rgate_dload16(from + i);

		for (uint32_t k = 0; k < 16 && i + k < (uint32_t)n; k++)
			c->in[c->have + i + k] = (unsigned char)(v.w[k / 4] >> k % 4 * 8);
	}
	c->have += (uint32_t)n;
	rgate_dwarp_sync();
	return true;
}

/* @used bytes were a request: what came behind it is the begin of the next one */
static __device__ void go_on(struct connection *c, uint32_t used)
{
	c->told = 0;
	c->have -= used;
	for (uint32_t at = 0; at < c->have; at += 32) {
		const uint32_t i = at + rgate_dlane();
		unsigned char v = i < c->have ? c->in[used + i] : 0;

		rgate_dwarp_sync();
		if (i < c->have)
			c->in[i] = v;
		rgate_dwarp_sync();
	}
}

/* Does what is asked for; the status, and how many bytes of a value are in @out */
static __device__ uint32_t handle(struct connection *c, const struct http_request *r, uint32_t *len)
{
	const struct kv_key key = { c->in + r->key, r->key_len };
	const struct kv_table *t = &c->srv->table;
	int got;

	*len = 0;
	if (r->method == HTTP_PUT) {
		got = kv_put(t, key, c->in + r->body, r->body_len);
		return got == -ENOSPC ? 507 : got ? 201 : 204;
	}
	if (r->method == HTTP_DELETE)
		return kv_delete(t, key) ? 404 : 204;
	got = kv_get(t, key, c->out + HTTP_ANSWER_MAX);
	*len = got < 0 ? 0 : (uint32_t)got;
	return got < 0 ? 404 : 200;
}

static __device__ bool answer(struct connection *c, uint32_t status, uint32_t len, bool head,
			      bool close)
{
	uint32_t n = 0;

	count(status == 200 ? &c->srv->n.found : status < 400 || status == 404 ?
	      &c->srv->n.requests : &c->srv->n.refused);
	if (rgate_dlane() == 0)
		n = http_answer(c->out, status, len, close);
	n = (uint32_t)rgate_dwarp_first(n);
	if (head)
		len = 0;
	/* the value moves down to where the head ends, as bytes of a request do in go_on() */
	for (uint32_t at = 0; at < len; at += 32) {
		const uint32_t i = at + rgate_dlane();
		unsigned char v = i < len ? c->out[HTTP_ANSWER_MAX + i] : 0;

		rgate_dwarp_sync();
		if (i < len)
			c->out[n + i] = v;
	}
	rgate_dwarp_sync();
	return send_out(c, n + len) && !close;
}

static __device__ bool go_ahead(struct connection *c)
{
	uint32_t n = 0;

	c->told = 1;
	if (rgate_dlane() == 0)
		n = http_put(c->out, 0, "HTTP/1.1 100 Continue\r\n\r\n");
	rgate_dwarp_sync();
	return send_out(c, (uint32_t)rgate_dwarp_first(n));
}

/*
 * What was refused may be followed by more. Were the socket closed with that unread the peer would
 * be sent a reset, which overtakes the answer.
 */
static __device__ void let_finish(struct connection *c)
{
	int n = rgate_dsocket_shutdown(&c->s, RGATE_SOCKET_SHUT_SEND, SECOND);

	for (uint32_t i = 0; i < 64 && n >= 0 && !stopped(c->srv); i++) {
		n = rgate_dsocket_recv(&c->s, 0, IN, 0, SECOND);
		if (!n)
			break;
	}
}

/* One request and its answer; false: it was the last one */
static __device__ bool turn(struct connection *c)
{
	__shared__ struct http_request r;
	uint32_t status, len;
	int n = 0;

	for (;;) {
		if (rgate_dlane() == 0)
			n = http_parse(c->in, c->have, &r);
		n = (int)rgate_dwarp_first((uint64_t)n);
		rgate_dwarp_sync();	/* and the others see @r */
		if (n)
			break;
		if (r.body && r.expects && !c->told && !go_ahead(c))
			return false;
		if (!receive(c))
			return false;
	}
	if (n < 0) {
		answer(c, (uint32_t)-n, 0, false, true);
		let_finish(c);
		return false;
	}
	status = handle(c, &r, &len);
	if (!answer(c, status, len, r.method == HTTP_HEAD, r.close))
		return false;
	go_on(c, (uint32_t)n);
	return true;
}

/* A block is a warp: each serves one connection after the other, the last one takes answers */
static __global__ void serve(struct server *srv)
{
	__shared__ __align__(16) unsigned char in[IN], out[OUT];
	struct connection c = { srv, {}, in, out };
	int err;

	if (blockIdx.x == WARPS) {
		rgate_dask_serve_warp(&srv->ask, &srv->over);
		return;
	}
	err = rgate_dsocket_init(&c.s, &srv->ask, blockIdx.x * PART, PART);
	while (!err && !stopped(srv)) {
		err = rgate_dsocket_accept(&c.s, srv->listener, LOOK);
		if (err == -ETIMEDOUT || err == -ECONNABORTED || err == -EMFILE) {
			err = 0;
			continue;
		}
		if (err)
			break;
		count(&srv->n.connections);
		c.have = c.told = 0;
		while (turn(&c))
			;
		rgate_dsocket_close(&c.s);
	}
	rgate_dsocket_fini(&c.s);
	if (rgate_dlane() == 0 && rgate_dgpu_add32(&srv->warps_left, ~0U) == 1)
		rgate_dgpu_store(&srv->over, 1);
}

/*
 * The host's side
 */

static volatile sig_atomic_t ended;

static void on_signal(int sig)
{
	(void)sig;
	ended = 1;
}

static void check(const char *function, long ret, const char *what)
{
	if (ret >= 0)
		return;
	fprintf(stderr, "%s: %s\n", what, rgate_strerror(function, (int)ret));
	exit(1);
}

/* Before the session is the GPU's */
static uint64_t ask_once(struct rgate_session *s, struct rgate_request *q, const char *what)
{
	struct rgate_completion c = {};
	int n = rgate_session_submit(s, q);

	if (!n)
		n = rgate_session_wait(s, 30000);
	if (n > 0)
		n = rgate_session_poll(s, &c, 1);
	check("rgate_socket_", n == 1 ? c.result : n ? n : -ETIMEDOUT, what);
	return c.value;
}

/* A listener at that port of the loopback device; its handle */
static uint32_t listen_at(struct rgate_session *s, uint16_t port)
{
	struct rgate_socket_addr *addr =
		(struct rgate_socket_addr *)rgate_session_memory(s, NULL);
	struct rgate_request q = {};
	const int32_t one = 1;
	uint32_t handle;

	q.op = RGATE_REQ_SOCKET_OPEN;
	q.a0 = RGATE_SOCKET_A0(RGATE_SOCKET_INET, RGATE_SOCKET_STREAM);
	q.handle = handle = (uint32_t)ask_once(s, &q, "socket");
	q.op = RGATE_REQ_SOCKET_SETOPT;
	q.a0 = RGATE_SOCKET_REUSEADDR;
	q.len = sizeof(one);
	memcpy(addr, &one, sizeof(one));
	ask_once(s, &q, "socket");
	memset(addr, 0, sizeof(*addr));
	addr->family = RGATE_SOCKET_INET;
	addr->port = port;
	addr->addr[0] = 127;
	addr->addr[3] = 1;
	q.op = RGATE_REQ_SOCKET_BIND;
	q.a0 = 0;
	q.len = sizeof(*addr);
	ask_once(s, &q, "bind");
	q.op = RGATE_REQ_SOCKET_LISTEN;
	q.a0 = 1024;
	q.len = 0;
	ask_once(s, &q, "listen");
	q.op = RGATE_REQ_SOCKET_NAME;
	q.a0 = 0;
	q.len = sizeof(*addr);
	ask_once(s, &q, "name");
	printf("at http://127.0.0.1:%u/, until ^C\n", addr->port);
	fflush(stdout);
	return handle;
}

static struct rgate_session *open_session(const char *path)
{
	struct rgate_session_opts o = {};
	struct rgate_session *s;

	o.sz = sizeof(o);
	o.where = path ? RGATE_SESSION_DAEMON : RGATE_SESSION_PROCESS;
	o.path = path;
	o.requests = 1024;
	o.memory = WARPS * PART;
	o.spin_us = 50;
	check("rgate_session_", rgate_session_open(&s, &o), "session");
	return s;
}

/* In the device's memory */
static struct server *make_server(struct server *host)
{
	const size_t bytes = SETS * sizeof(struct kv_set);
	void *srv, *sets;

	if (cudaMalloc(&sets, bytes) || cudaMemset(sets, 0, bytes) ||
	    cudaMalloc(&srv, sizeof(*host)))
		check("rgate_gpu_", -ENOMEM, "the GPU's memory");
	host->table.set = (struct kv_set *)sets;
	host->table.sets = SETS;
	host->warps_left = WARPS;
	if (cudaMemcpy(srv, host, sizeof(*host), cudaMemcpyHostToDevice))
		check("rgate_gpu_", -EIO, "the GPU's memory");
	return (struct server *)srv;
}

static void tell(const struct server *srv)
{
	struct counts n;

	cudaMemcpy(&n, &srv->n, sizeof(n), cudaMemcpyDeviceToHost);
	printf("%llu connections, %llu values sent, %llu other answers, %llu refused\n",
	       n.connections, n.found, n.requests, n.refused);
	fflush(stdout);
}

int main(int argc, char **argv)
{
	struct rgate_session_loan loan = {};
	static struct server host;
	struct rgate_session *s;
	struct rgate_gpu *gpu;
	cudaStream_t stream;
	struct server *srv;
	uint64_t *stop;
	unsigned int index;

	check("rgate_gpu_", rgate_gpu_open(&gpu, NULL), "GPU");
	s = open_session(argc > 2 ? argv[2] : NULL);
	host.listener = listen_at(s, argc > 1 ? (uint16_t)atoi(argv[1]) : 8080);
	loan.sz = sizeof(loan);
	check("rgate_session_", rgate_session_lend(s, &loan), "lend");
	check("rgate_gpu_", rgate_gpu_bind_session(gpu, &loan, NULL, &index), "bind");
	check("rgate_gpu_", rgate_gpu_session_view(gpu, index, &host.ask, sizeof(host.ask)), "view");
	if (cudaHostAlloc((void **)&stop, sizeof(*stop), cudaHostAllocMapped) ||
	    cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking))
		check("rgate_gpu_", -ENOMEM, "CUDA");
	*stop = 0;
	host.stop = stop;
	srv = make_server(&host);
	signal(SIGINT, on_signal);
	signal(SIGTERM, on_signal);
	serve<<<WARPS + 1, 32, 0, stream>>>(srv);
	while (!ended && cudaStreamQuery(stream) == cudaErrorNotReady) {
		sleep(1);
		tell(srv);
	}
	__atomic_store_n(stop, 1, __ATOMIC_RELEASE);
	if (cudaStreamSynchronize(stream)) {
		fprintf(stderr, "the kernel failed\n");
		return 1;
	}
	tell(srv);
	rgate_gpu_close(gpu);
	rgate_session_close(s);
	return 0;
}
