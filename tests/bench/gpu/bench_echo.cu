// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * UDP echo over loopback sockets: answered by the GPU, out of a ring or by requests for a
 * socket, by a CPU thread out of the same ring, and by a plain thread with recvmmsg and
 * sendmmsg. Round trips one at a time, then
 * CPU time at a given rate, beside a thread that does nothing but recvmmsg.
 */
#include <ringgate/gpu/kernel.cuh>
#include <ringgate/gpu/sockets.cuh>
#include <ringgate/rgate_responder.h>
#include <ringgate/rgate_session.h>
#include <ringgate/rgate_source.h>

#include <arpa/inet.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "clocks.cuh"
#include "gbench.h"

#define FRAME	192U
#define PAYLOAD	64U
#define ROUNDS	20000U
#define BURST	32U

#define ASKERS	16U		/* warps that ask */
#define PART	1024U		/* of their memory, each */

#define CLIENT_CPU	2U

#define SPIN_LATENCY	1000U	/* us that the answering thread looks before it sleeps */
#define SPIN_LOAD	10U

enum echoer { PLAIN, RING_CPU, RING_GPU, ASK_GPU, RECEIVE, ECHOERS };

static const char *const latency_names[] = {
	"echo_latency_plain", "echo_latency_ring_cpu", "echo_latency_ring_gpu",
	"echo_latency_ask_gpu",
};

static const char *const load_names[ECHOERS] = {
	"echo_load_plain", "echo_load_ring_cpu", "echo_load_ring_gpu", "echo_load_ask_gpu",
	"echo_load_receive_only",
};

static __device__ void swap4(unsigned char *a, unsigned char *b, uint32_t n)
{
	while (n--) {
		unsigned char c = a[n];

		a[n] = b[n];
		b[n] = c;
	}
}

static __device__ uint32_t echo(const struct rgate_dpkt *pkt, void *result, void *arg)
{
	unsigned char *out = (unsigned char *)result;
	struct rgate_dlayers l;
	uint32_t i;

	rgate_dpkt_layers(pkt, &l);
	if (l.ip_proto != RGATE_DPROTO_UDP || l.protocol != RGATE_DETH_IPV4 || pkt->len > FRAME)
		return 0;
	for (i = 0; i < pkt->near_len; i += 16)
		*(uint4 *)(out + i) = *(const uint4 *)(pkt->near + i);
	swap4(out + l.l3 + 12, out + l.l3 + 16, 4);
	swap4(out + l.l4, out + l.l4 + 2, 2);
	return pkt->len;
}

/* The same, and in the answer's header: when it began, and how long it took */
static __device__ uint32_t echo_timed(const struct rgate_dpkt *pkt, void *result, void *arg)
{
	uint64_t began = rgate_dnow();
	uint32_t len = echo(pkt, result, arg);
	struct rgate_slot *h = rgate_dreply_header(result);

	asm volatile("" ::: "memory");
	h->ifindex = (uint32_t)began;
	h->hash = (uint32_t)(rgate_dnow() - began);
	return len;
}

RGATE_GPU_LANES(echo_kernel, echo, FRAME, FRAME)
RGATE_GPU_LANES(timed_kernel, echo_timed, FRAME, FRAME)

struct server {
	enum echoer who;
	const struct rgate_gpu_kernel *kernel;
	int sock;		/* of the plain one */
	struct sockaddr_in addr;
	bool stop;
	pthread_t thread;
	struct rgate_source *src;
	struct rgate_ring *in, *out;
	struct rgate_gpu *gpu;
	struct rgate_responder *resp;
	struct rgate_session *session;
	uint64_t *gpu_stop;	/* the kernel's that asks */
};

static bool stopped(const struct server *s)
{
	return __atomic_load_n(&s->stop, __ATOMIC_ACQUIRE);
}

static void *plain_main(void *arg)
{
	static char buf[BURST][2048];
	struct server *s = (struct server *)arg;
	struct sockaddr_in from[BURST];
	struct mmsghdr m[BURST];
	struct iovec iov[BURST];
	unsigned int i;
	int n;

	pthread_setname_np(pthread_self(), "plain-echo");
	b_pin(3);
	while (!stopped(s)) {
		for (i = 0; i < BURST; i++) {
			memset(&m[i], 0, sizeof(m[i]));
			iov[i].iov_base = buf[i];
			iov[i].iov_len = sizeof(buf[i]);
			m[i].msg_hdr.msg_iov = &iov[i];
			m[i].msg_hdr.msg_iovlen = 1;
			m[i].msg_hdr.msg_name = &from[i];
			m[i].msg_hdr.msg_namelen = sizeof(from[i]);
		}
		n = recvmmsg(s->sock, m, BURST, MSG_WAITFORONE, NULL);
		for (i = 0; (int)i < n; i++)
			iov[i].iov_len = m[i].msg_len;
		if (n > 0 && s->who == PLAIN)
			sendmmsg(s->sock, m, (unsigned int)n, 0);
	}
	return NULL;
}

/* The same work as the GPU's, by a CPU, from ring to ring */
static void *ring_main(void *arg)
{
	struct server *s = (struct server *)arg;
	struct rgate_consumer c;
	struct rgate_producer p;
	const struct rgate_slot *in;

	pthread_setname_np(pthread_self(), "ring-echo");
	b_pin(5);
	b_require(!rgate_consumer_init(&c, s->in, NULL) && !rgate_producer_init(&p, s->out));
	while (!stopped(s)) {
		struct rgate_slot *out;
		unsigned char *f;
		uint32_t a;

		in = rgate_consumer_next(&c);
		if (!in) {
			rgate_producer_flush(&p);
			__builtin_ia32_pause();
			continue;
		}
		while (!(out = rgate_producer_reserve(&p)) && !stopped(s))
			;
		if (!out)
			break;
		f = (unsigned char *)rgate_producer_data(out);
		memcpy(f, rgate_slot_data(in), in->len);
		rgate_producer_fill(&p, out, in->len, in->len);
		out->l3_off = in->l3_off;
		out->l4_off = in->l4_off;
		out->tstamp = in->tstamp;
		memcpy(&a, f + 12, 4);
		memcpy(f + 12, f + 16, 4);
		memcpy(f + 16, &a, 4);
		memcpy(&a, f + 20, 2);
		memcpy(f + 20, f + 22, 2);
		memcpy(f + 22, &a, 2);
		rgate_producer_publish(&p);
		rgate_consumer_release(&c);
	}
	rgate_producer_fini(&p);
	return NULL;
}

static void open_ring_server(struct server *s, uint32_t spin_us)
{
	struct rgate_source_opts so;
	struct rgate_responder_opts ro;
	struct rgate_gpu_start_opts o;
	socklen_t len = sizeof(s->addr);

	memset(&so, 0, sizeof(so));
	memset(&ro, 0, sizeof(ro));
	memset(&o, 0, sizeof(o));
	so.sz = sizeof(so);
	so.cpu_plus1 = 1 + 3 % (int)b_cpus();
	ro.sz = sizeof(ro);
	ro.cpu_plus1 = 1 + 4 % (int)b_cpus();
	ro.spin_us = spin_us;
	o.sz = sizeof(o);
	o.blocks = 2;
	s->in = b_ring(4096, 512);
	s->out = b_ring(4096, 512);
	b_require(!rgate_source_start_udp(&s->src, &s->in, 1, (struct sockaddr *)&s->addr,
					  sizeof(s->addr), &so));
	b_require(!rgate_source_addr(s->src, (struct sockaddr *)&s->addr, &len));
	if (s->who == RING_GPU) {
		b_ok(NULL, rgate_gpu_open(&s->gpu, NULL));
		b_ok(s->gpu, rgate_gpu_bind(s->gpu, s->in, NULL));
		b_ok(s->gpu, rgate_gpu_bind_output(s->gpu, s->out, RGATE_GPU_FULL_DROP));
		b_ok(s->gpu, rgate_gpu_start(s->gpu, s->kernel, &o));
	} else {
		b_require(!pthread_create(&s->thread, NULL, ring_main, s));
	}
	ro.udp_socket_plus1 = rgate_source_socket(s->src) + 1;
	b_require(!rgate_responder_start(&s->resp, s->out, &ro));
}

/*
 * By requests
 */

/* One datagram after the other, to where it came from, which lies before it */
static __global__ void ask_kernel(struct rgate_dask ask, uint32_t socket, const uint64_t *stop)
{
	const uint32_t at = sizeof(struct rgate_socket_addr);
	struct rgate_dsocket s;
	uint64_t whole;
	int n = rgate_dsocket_init(&s, &ask, blockIdx.x * PART, PART);

	rgate_dsocket_use(&s, socket);
	while (!n && !rgate_dwarp_first(rgate_dsys_load(stop))) {
		n = rgate_dsocket_recvfrom(&s, at, PART - at, 0, 50000, &whole);
		n = n > 0 ? n - rgate_dsocket_sendto(&s, at, n, 0, 50000) : n;
		if (n == -ETIMEDOUT)
			n = 0;
	}
	rgate_dsocket_fini(&s);
}

static uint64_t ask_once(struct server *s, struct rgate_request *q)
{
	struct rgate_completion c;

	b_require(!rgate_session_submit(s->session, q));
	b_require(rgate_session_wait(s->session, 10000) == 1);
	b_require(rgate_session_poll(s->session, &c, 1) == 1 && !c.result);
	return c.value;
}

/* Its handle; s->addr: out */
static uint32_t ask_socket(struct server *s)
{
	struct rgate_socket_addr *a =
		(struct rgate_socket_addr *)rgate_session_memory(s->session, NULL);
	struct rgate_request q;

	memset(&q, 0, sizeof(q));
	q.op = RGATE_REQ_SOCKET_OPEN;
	q.a0 = RGATE_SOCKET_A0(RGATE_SOCKET_INET, RGATE_SOCKET_DGRAM);
	q.handle = (uint32_t)ask_once(s, &q);
	memset(a, 0, sizeof(*a));
	a->family = RGATE_SOCKET_INET;
	a->addr[0] = 127;
	a->addr[3] = 1;
	q.op = RGATE_REQ_SOCKET_BIND;
	q.a0 = 0;
	q.len = sizeof(*a);
	ask_once(s, &q);
	q.op = RGATE_REQ_SOCKET_NAME;
	ask_once(s, &q);
	s->addr.sin_port = htons(a->port);
	return q.handle;
}

static void open_ask_server(struct server *s, uint32_t spin_us)
{
	struct rgate_session_loan loan;
	struct rgate_session_opts o;
	struct rgate_dask ask;
	unsigned int index;
	uint32_t socket;

	memset(&o, 0, sizeof(o));
	o.sz = sizeof(o);
	o.where = RGATE_SESSION_PROCESS;
	o.memory = ASKERS * PART;
	o.spin_us = spin_us;
	memset(&loan, 0, sizeof(loan));
	loan.sz = sizeof(loan);
	/* threads of the library's are where who makes them is */
	b_unpin();
	b_require(!rgate_session_open(&s->session, &o));
	socket = ask_socket(s);
	b_require(!rgate_session_lend(s->session, &loan));
	b_ok(NULL, rgate_gpu_open(&s->gpu, NULL));
	b_ok(s->gpu, rgate_gpu_bind_session(s->gpu, &loan, NULL, &index));
	b_pin(CLIENT_CPU);
	b_ok(s->gpu, rgate_gpu_session_view(s->gpu, index, &ask, sizeof(ask)));
	b_require(!cudaHostAlloc((void **)&s->gpu_stop, sizeof(*s->gpu_stop), cudaHostAllocMapped));
	*s->gpu_stop = 0;
	ask_kernel<<<ASKERS, 32, 0, (cudaStream_t)rgate_gpu_stream(s->gpu)>>>(ask, socket,
									      s->gpu_stop);
	b_require(!cudaGetLastError());
}

static void close_ask_server(struct server *s)
{
	__atomic_store_n(s->gpu_stop, 1, __ATOMIC_RELEASE);
	b_require(!cudaStreamSynchronize((cudaStream_t)rgate_gpu_stream(s->gpu)));
	rgate_gpu_close(s->gpu);
	rgate_session_close(s->session);
	cudaFreeHost(s->gpu_stop);
}

static bool has_ring(const struct server *s)
{
	return s->who == RING_CPU || s->who == RING_GPU;
}

static void server_open(struct server *s, enum echoer who, uint32_t spin_us)
{
	socklen_t len = sizeof(s->addr);

	memset(s, 0, sizeof(*s));
	s->who = who;
	s->kernel = &echo_kernel;
	s->addr.sin_family = AF_INET;
	s->addr.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	if (has_ring(s)) {
		open_ring_server(s, spin_us);
		return;
	}
	if (who == ASK_GPU) {
		open_ask_server(s, spin_us);
		return;
	}
	s->sock = socket(AF_INET, SOCK_DGRAM, 0);
	b_require(!bind(s->sock, (struct sockaddr *)&s->addr, len));
	b_require(!getsockname(s->sock, (struct sockaddr *)&s->addr, &len));
	b_require(!pthread_create(&s->thread, NULL, plain_main, s));
}

static void server_close(struct server *s, int client)
{
	if (s->who == ASK_GPU) {
		close_ask_server(s);
		return;
	}
	__atomic_store_n(&s->stop, true, __ATOMIC_RELEASE);
	if (!has_ring(s))
		b_require(send(client, "end", 3, 0) == 3);	/* wakes it */
	if (s->thread)
		pthread_join(s->thread, NULL);
	if (!has_ring(s)) {
		close(s->sock);
		return;
	}
	if (s->gpu)
		b_ok(s->gpu, rgate_gpu_stop(s->gpu, 5000));
	rgate_responder_stop(s->resp);
	rgate_source_stop(s->src);
	rgate_gpu_close(s->gpu);
	rgate_ring_close(s->in);
	rgate_ring_close(s->out);
}

static int client_open(const struct server *s)
{
	int fd = socket(AF_INET, SOCK_DGRAM, 0), size = 4 << 20;

	b_require(fd >= 0);
	setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &size, sizeof(size));
	b_require(!connect(fd, (const struct sockaddr *)&s->addr, sizeof(s->addr)));
	return fd;
}

/* CPU time of this process's thread of that name, from the scheduler */
static uint64_t thread_cpu_ns(const char *name)
{
	DIR *d = opendir("/proc/self/task");
	uint64_t ns = 0, v;
	struct dirent *e;

	b_require(d);
	while ((e = readdir(d))) {
		char path[300], comm[32] = "";
		FILE *f;

		snprintf(path, sizeof(path), "/proc/self/task/%s/comm", e->d_name);
		f = fopen(path, "r");
		if (!f)
			continue;
		if (fscanf(f, "%31s", comm) != 1)
			comm[0] = 0;
		fclose(f);
		if (strcmp(comm, name))
			continue;
		snprintf(path, sizeof(path), "/proc/self/task/%s/schedstat", e->d_name);
		f = fopen(path, "r");
		if (f && fscanf(f, "%lu", &v) == 1)
			ns += v;
		if (f)
			fclose(f);
	}
	closedir(d);
	return ns;
}

static void latency(enum echoer who)
{
	static uint64_t took[ROUNDS];
	char buf[PAYLOAD], back[2048] = {};
	struct b_quantiles q;
	struct server s;
	uint64_t t0, lost = 0;
	uint32_t n, k = 0;
	int fd;

	server_open(&s, who, SPIN_LATENCY);
	fd = client_open(&s);
	for (n = 0; n < ROUNDS; n++) {
		long got = -1;

		memset(buf, (int)n, sizeof(buf));
		memcpy(buf, &n, sizeof(n));
		t0 = b_now_ns();
		b_require(send(fd, buf, sizeof(buf), 0) == (long)sizeof(buf));
		/* one that was given up may still come */
		while ((got < 0 || memcmp(buf, back, sizeof(n))) && b_now_ns() - t0 < 200000000)
			got = recv(fd, back, sizeof(back), MSG_DONTWAIT);
		if (got < 0 || memcmp(buf, back, sizeof(n))) {
			lost++;
			continue;
		}
		took[k++] = b_now_ns() - t0;
		b_require(got == (long)sizeof(buf) && !memcmp(buf, back, sizeof(buf)));
	}
	server_close(&s, fd);
	close(fd);
	b_require(k > ROUNDS / 2);
	b_quantiles(took, k, &q);
	b_line(latency_names[who], "p50_ns", q.p50, "p90_ns", q.p90, "p99_ns",
	       q.p99, "min_ns", q.min, "lost", (double)lost, NULL);
}

/* Bursts at a rate for two seconds; another thread of the client takes the answers */
struct taker {
	int fd;
	uint64_t got;
	bool stop;
};

static void *take_main(void *arg)
{
	struct taker *t = (struct taker *)arg;
	char back[2048];

	b_pin(7);
	while (!__atomic_load_n(&t->stop, __ATOMIC_ACQUIRE))
		if (recv(t->fd, back, sizeof(back), MSG_DONTWAIT) == (long)PAYLOAD)
			__atomic_fetch_add(&t->got, 1, __ATOMIC_RELAXED);
	return NULL;
}

static void load(enum echoer who, double rate)
{
	static const char *const threads[ECHOERS][3] = {
		{ "plain-echo" }, { "rgate-source", "rgate-respond", "ring-echo" },
		{ "rgate-source", "rgate-respond", "rgate-gpu" },
		{ "rgate-engine", NULL, "rgate-gpu-ask" }, { "plain-echo" },
	};
	uint64_t t0, cpu[3], n, sent = 0, batches = (uint64_t)(rate * 2 / 16);
	struct taker t = {};
	char buf[PAYLOAD] = {};
	struct mmsghdr m[16] = {};
	struct iovec iov = { buf, sizeof(buf) };
	struct server s;
	pthread_t th;
	uint32_t i;
	double sec;

	for (i = 0; i < 16; i++) {
		m[i].msg_hdr.msg_iov = &iov;
		m[i].msg_hdr.msg_iovlen = 1;
	}
	server_open(&s, who, SPIN_LOAD);
	t.fd = client_open(&s);
	b_require(!pthread_create(&th, NULL, take_main, &t));
	b_sleep_ms(50);
	for (i = 0; i < 3; i++)
		cpu[i] = threads[who][i] ? thread_cpu_ns(threads[who][i]) : 0;
	t0 = b_now_ns();
	for (n = 0; n < batches; n++) {
		int k = sendmmsg(t.fd, m, 16, 0);

		sent += k > 0 ? (uint64_t)k : 0;
		while (b_now_ns() - t0 < (uint64_t)((double)(n + 1) * 16e9 / rate))
			;
	}
	sec = (double)(b_now_ns() - t0) / 1e9;
	for (i = 0; i < 3; i++)
		cpu[i] = threads[who][i] ? thread_cpu_ns(threads[who][i]) - cpu[i] : 0;
	b_sleep_ms(50);
	__atomic_store_n(&t.stop, true, __ATOMIC_RELEASE);
	pthread_join(th, NULL);
	b_line(load_names[who], "rate", rate, "sent", (double)sent, "answered",
	       (double)t.got, "receive_core_share", (double)cpu[0] / 1e9 / sec, "receive_ns_a_packet",
	       (double)cpu[0] / (double)sent, "send_core_share", (double)cpu[1] / 1e9 / sec,
	       "send_ns_a_packet", (double)cpu[1] / (double)sent, "third_core_share",
	       (double)cpu[2] / 1e9 / sec, NULL);
	server_close(&s, t.fd);
	close(t.fd);
}

/*
 * How a round trip divides: the client's send to the source's reading of its message; on
 * to the function's first instruction, with the copy into the ring, the GPU's seeing and
 * fetching it; the function; on to the answer's being seen in the output ring; on to the
 * client.
 */
enum part { KERNEL_IN, HAND_OVER, PROCESS, REPLY, KERNEL_OUT, PARTS };

struct trip {
	uint64_t sent, read, answered, back;
	uint32_t began, took;	/* the GPU's clock */
};

/* Sends the answer that is in the output ring, as the responder would */
static void answer(const struct server *s, int fd, const struct rgate_slot *slot)
{
	struct sockaddr_in to;
	socklen_t len = sizeof(to);

	b_require(!getsockname(fd, (struct sockaddr *)&to, &len));
	b_require(sendto(rgate_source_socket(s->src), (const char *)rgate_slot_data(slot) + 28,
			 slot->len - 28, 0, (struct sockaddr *)&to, len) == (long)PAYLOAD);
}

static void trip(const struct server *s, struct rgate_consumer *c, int fd, struct trip *t)
{
	char buf[PAYLOAD] = {}, back[2048];
	const struct rgate_slot *slot;

	t->sent = b_now_ns();
	b_require(send(fd, buf, sizeof(buf), 0) == (long)sizeof(buf));
	do {
		slot = rgate_consumer_next(c);
		b_require(b_now_ns() - t->sent < 1000000000);
	} while (!slot);
	t->answered = b_now_ns();
	t->read = slot->tstamp;
	t->began = slot->ifindex;
	t->took = slot->hash;
	answer(s, fd, slot);
	rgate_consumer_release(c);
	while (recv(fd, back, sizeof(back), MSG_DONTWAIT) < 0)
		b_require(b_now_ns() - t->sent < 1000000000);
	t->back = b_now_ns();
}

static void tell_parts(const struct trip *t, const struct b_clocks *a, const struct b_clocks *b)
{
	static uint64_t took[PARTS][ROUNDS];
	struct b_quantiles q[PARTS];
	uint32_t n, i;

	for (n = 0; n < ROUNDS; n++) {
		uint32_t offset = (uint32_t)b_clocks_offset(a, b, t[n].answered);
		/* less than 4 s: the lower half of the clocks says it */
		uint32_t began = t[n].began + offset - (uint32_t)t[n].read;

		took[KERNEL_IN][n] = t[n].read - t[n].sent;
		took[HAND_OVER][n] = began;
		took[PROCESS][n] = t[n].took;
		took[REPLY][n] = t[n].answered - t[n].read - began - t[n].took;
		took[KERNEL_OUT][n] = t[n].back - t[n].answered;
	}
	for (i = 0; i < PARTS; i++)
		b_quantiles(took[i], ROUNDS, &q[i]);
	b_line("echo_split", "kernel_in_ns", q[KERNEL_IN].p50, "hand_over_ns", q[HAND_OVER].p50,
	       "process_ns", q[PROCESS].p50, "reply_ns", q[REPLY].p50, "kernel_out_ns",
	       q[KERNEL_OUT].p50, "clock_error_ns",
	       (double)(a->error > b->error ? a->error : b->error), NULL);
}

static void split(void)
{
	static struct trip t[ROUNDS];
	struct b_clocks before, after;
	struct rgate_consumer c;
	struct server s;
	uint32_t n;
	int fd;

	memset(&s, 0, sizeof(s));
	s.addr.sin_family = AF_INET;
	s.addr.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	s.who = RING_GPU;
	s.kernel = &timed_kernel;
	before = b_clocks_compare();
	open_ring_server(&s, SPIN_LATENCY);
	rgate_responder_stop(s.resp);
	s.resp = NULL;
	b_require(!rgate_consumer_init(&c, s.out, NULL));
	fd = client_open(&s);
	for (n = 0; n < ROUNDS; n++)
		trip(&s, &c, fd, &t[n]);
	server_close(&s, fd);
	close(fd);
	after = b_clocks_compare();
	tell_parts(t, &before, &after);
}

int main(void)
{
	static const double rates[] = { 100000, 400000 };
	uint32_t who, i;

	b_pin(CLIENT_CPU);
	for (who = 0; who < RECEIVE; who++)
		latency((enum echoer)who);
	split();
	for (i = 0; i < 2; i++)
		for (who = 0; who < ECHOERS; who++)
			load((enum echoer)who, rates[i]);
	return 0;
}
