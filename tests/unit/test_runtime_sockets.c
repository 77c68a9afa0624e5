// SPDX-License-Identifier: MIT OR GPL-2.0
/* Warps that use sockets, on this CPU: each is a thread, of one lane; sockets are the kernel's */
#include "unit.h"

#include <arpa/inet.h>
#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "fake_cuda.h"
#include "runtime.h"

#include <ringgate/gpu/sockets.cuh>
#include <ringgate/rgate_session.h>

#define PART	4096U
/* As in test_runtime_tasks: ThreadSanitizer does not see the engine give places back */
#ifdef __SANITIZE_THREAD__
#define WARPS	1U
#else
#define WARPS	4U
#endif
#define CLIENTS	12U
#define BYTES	100000U
#define LONG	(10000000U * unit_patience())	/* us */

struct bed {
	struct runtime r;
	struct rgate_session *session;
	struct rgate_session_loan loan;
	int daemon[2];			/* the second is closed: the session is over */
	unsigned int index;
	uint32_t socket;		/* the host's: a listener, or one for datagrams */
	struct sockaddr_in addr;
	struct rgate_dask dask;
};

static uint64_t ask(struct bed *b, struct rgate_request q)
{
	struct rgate_completion c;

	assert_int_equal(rgate_session_submit(b->session, &q), 0);
	assert_int_equal(rgate_session_wait(b->session, 30000), 1);
	assert_int_equal(rgate_session_poll(b->session, &c, 1), 1);
	assert_int_equal(c.result, 0);
	return c.value;
}

/* A socket of that type at a port of its own */
static void make_socket(struct bed *b, uint32_t type)
{
	struct rgate_socket_addr *a = rgate_session_memory(b->session, NULL);

	b->socket = (uint32_t)ask(b, (struct rgate_request){
		.op = RGATE_REQ_SOCKET_OPEN, .a0 = RGATE_SOCKET_A0(RGATE_SOCKET_INET, type) });
	*a = (struct rgate_socket_addr){ .family = RGATE_SOCKET_INET, .addr = { 127, 0, 0, 1 } };
	ask(b, (struct rgate_request){
		.op = RGATE_REQ_SOCKET_BIND, .handle = b->socket, .len = sizeof(*a) });
	if (type == RGATE_SOCKET_STREAM)
		ask(b, (struct rgate_request){
			.op = RGATE_REQ_SOCKET_LISTEN, .handle = b->socket, .a0 = 64 });
	ask(b, (struct rgate_request){
		.op = RGATE_REQ_SOCKET_NAME, .handle = b->socket, .len = sizeof(*a) });
	b->addr.sin_family = AF_INET;
	b->addr.sin_port = htons(a->port);
	b->addr.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
}

static void bed_open(struct bed *b, uint32_t type)
{
	struct rgate_session_opts so = {
		.sz = sizeof(so), .where = RGATE_SESSION_PROCESS, .memory = WARPS * PART,
	};

	memset(b, 0, sizeof(*b));
	runtime_open(&b->r, 0, 0, 64);
	assert_int_equal(rgate_session_open(&b->session, &so), 0);
	make_socket(b, type);
	b->loan.sz = sizeof(b->loan);
	assert_int_equal(rgate_session_lend(b->session, &b->loan), 0);
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, b->daemon), 0);
	b->loan.gone_fd = b->daemon[0];
	assert_int_equal(rgate_gpu_bind_session(b->r.gpu, &b->loan, NULL, &b->index), 0);
	assert_int_equal(rgate_gpu_session_view(b->r.gpu, b->index, &b->dask, sizeof(b->dask)), 0);
}

static void bed_close(struct bed *b)
{
	runtime_close(&b->r);
	rgate_session_close(b->session);
	close(b->daemon[0]);
	if (b->daemon[1] >= 0)
		close(b->daemon[1]);
}

static void warp_init(struct rgate_dsocket *s, const struct bed *b, unsigned int number)
{
	unit_require(!rgate_dsocket_init(s, &b->dask, number * PART, PART));
}

static int client(const struct bed *b, int type)
{
	struct timeval limit = { .tv_sec = 60 };
	int fd = socket(AF_INET, type | SOCK_CLOEXEC, 0);

	unit_require(fd >= 0);
	unit_require(!setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit)));
	unit_require(!connect(fd, (const struct sockaddr *)&b->addr, sizeof(b->addr)));
	return fd;
}

struct warp {
	struct bed *b;
	unsigned int number, served;
	pthread_t thread;
};

/* Sends back what comes, until a connection begins with an end */
static void *echo(void *arg)
{
	struct warp *w = arg;
	struct rgate_dsocket s;
	uint64_t bytes;
	int n, err;

	warp_init(&s, w->b, w->number);
	do {
		bytes = 0;
		err = rgate_dsocket_accept(&s, w->b->socket, LONG);
		unit_require(!err && s.handle);
		while ((n = rgate_dsocket_recv(&s, 0, PART, 0, LONG)) > 0) {
			unit_require(rgate_dsocket_send(&s, 0, (uint32_t)n, LONG) == n);
			bytes += (uint64_t)n;
		}
		unit_require(!n);
		unit_require(!rgate_dsocket_shutdown(&s, RGATE_SOCKET_SHUT_SEND, LONG));
		unit_require(!rgate_dsocket_close(&s) && !s.handle);
		w->served += bytes > 0;
	} while (bytes);
	rgate_dsocket_fini(&s);
	return NULL;
}

static void *talk(void *arg)
{
	unsigned char text[BYTES], back[4096];
	struct warp *w = arg;
	size_t sent = 0, got = 0;
	int fd = client(w->b, SOCK_STREAM);
	ssize_t n;

	for (n = 0; n < (ssize_t)BYTES; n++)
		text[n] = (unsigned char)(n * 7 + n / 251 + w->number);
	while (got < BYTES) {
		if (sent < BYTES) {
			n = send(fd, text + sent, BYTES - sent > 5000 ? 5000 : BYTES - sent, 0);
			unit_require(n > 0);
			sent += (size_t)n;
			if (sent == BYTES)
				unit_require(!shutdown(fd, SHUT_WR));
		}
		n = recv(fd, back, sizeof(back), 0);
		unit_require(n > 0 && !memcmp(back, text + got, (size_t)n));
		got += (size_t)n;
	}
	unit_require(recv(fd, back, sizeof(back), 0) == 0);
	close(fd);
	return NULL;
}

static void streams(void **state)
{
	struct warp warp[WARPS], talker[CLIENTS];
	unsigned int i, served = 0;
	struct bed b;

	(void)state;
	bed_open(&b, RGATE_SOCKET_STREAM);
	for (i = 0; i < WARPS; i++) {
		warp[i] = (struct warp){ .b = &b, .number = i };
		assert_int_equal(pthread_create(&warp[i].thread, NULL, echo, &warp[i]), 0);
	}
	for (i = 0; i < CLIENTS; i++) {
		talker[i] = (struct warp){ .b = &b, .number = i };
		assert_int_equal(pthread_create(&talker[i].thread, NULL, talk, &talker[i]), 0);
	}
	for (i = 0; i < CLIENTS; i++)
		pthread_join(talker[i].thread, NULL);
	for (i = 0; i < WARPS; i++)
		close(client(&b, SOCK_STREAM));
	for (i = 0; i < WARPS; i++) {
		pthread_join(warp[i].thread, NULL);
		served += warp[i].served;
	}
	assert_int_equal(served, CLIENTS);
	bed_close(&b);
}

/* Two senders, each gets his own back; one that is too long is cut, and told */
static void datagrams(void **state)
{
	const uint32_t at = sizeof(struct rgate_socket_addr);
	unsigned char text[1000], back[1000];
	struct rgate_dsocket s;
	unsigned int i, len;
	uint64_t whole;
	struct bed b;
	int fd[2];

	(void)state;
	bed_open(&b, RGATE_SOCKET_DGRAM);
	warp_init(&s, &b, WARPS - 1);
	rgate_dsocket_use(&s, b.socket);
	fd[0] = client(&b, SOCK_DGRAM);
	fd[1] = client(&b, SOCK_DGRAM);
	for (i = 0; i < 40; i++) {
		len = i * 17;
		memset(text, (int)i, sizeof(text));
		assert_int_equal(send(fd[i % 2], text, len, 0), len);
		assert_int_equal(rgate_dsocket_recvfrom(&s, at, PART - at, 0, LONG, &whole), len);
		assert_int_equal(whole, len);
		assert_int_equal(rgate_dsocket_sendto(&s, at, len, 0, LONG), len);
		assert_int_equal(recv(fd[i % 2], back, sizeof(back), 0), len);
		assert_memory_equal(back, text, len);
	}
	assert_int_equal(send(fd[0], text, 1000, 0), 1000);
	assert_int_equal(rgate_dsocket_recvfrom(&s, at, 10, 0, LONG, &whole), 10);
	assert_int_equal(whole, 1000);
	assert_int_equal(rgate_dsocket_recvfrom(&s, at, 10, 0, 1000, &whole), -ETIMEDOUT);
	rgate_dsocket_fini(&s);
	close(fd[0]);
	close(fd[1]);
	bed_close(&b);
}

/* Nothing comes, or what is asked for cannot be; the part is as long as it is */
static void refused(void **state)
{
	struct rgate_dsocket s, other;
	struct bed b;
	uint64_t whole;
	int fd;

	(void)state;
	bed_open(&b, RGATE_SOCKET_STREAM);
	assert_int_equal(rgate_dsocket_init(&s, &b.dask, 8, 64), -EINVAL);
	assert_int_equal(rgate_dsocket_init(&s, &b.dask, 16, (uint32_t)b.dask.memory_len), -EINVAL);
	assert_int_equal(rgate_dsocket_init(&s, &b.dask, 1ULL << 40, 64), -EINVAL);
	warp_init(&s, &b, 0);
	assert_int_equal(rgate_dsocket_close(&s), 0);
	assert_int_equal(rgate_dsocket_accept(&s, b.socket, 1000), -ETIMEDOUT);
	assert_int_equal(rgate_dsocket_accept(&s, 12345, LONG), -EBADF);
	assert_int_equal(s.handle, 0);
	assert_int_equal(rgate_dsocket_recv(&s, 0, 1, 0, LONG), -EBADF);
	fd = client(&b, SOCK_STREAM);
	assert_int_equal(rgate_dsocket_accept(&s, b.socket, LONG), 0);
	assert_int_equal(rgate_dsocket_recv(&s, 0, PART + 1, 0, LONG), -ERANGE);
	assert_int_equal(rgate_dsocket_recv(&s, 1, PART, 0, LONG), -ERANGE);
	assert_int_equal(rgate_dsocket_send(&s, PART + 1, 0, LONG), -ERANGE);
	assert_int_equal(rgate_dsocket_send(&s, ~0U, 2, LONG), -ERANGE);
	assert_int_equal(rgate_dsocket_recvfrom(&s, 0, 1, PART - 8, LONG, &whole), -ERANGE);
	assert_int_equal(rgate_dsocket_sendto(&s, 0, 1, 0, LONG), -EOPNOTSUPP);
	assert_int_equal(rgate_dsocket_recv(&s, 0, 1, RGATE_SOCKET_NOW, LONG), -EAGAIN);
	assert_int_equal(rgate_dsocket_recv(&s, 0, 1, 0, 1000), -ETIMEDOUT);
	assert_int_equal(send(fd, "ab", 2, 0), 2);
	assert_int_equal(rgate_dsocket_recv(&s, PART - 1, 1, RGATE_SOCKET_PEEK, LONG), 1);
	assert_int_equal(rgate_dsocket_recv(&s, PART - 2, 2, RGATE_SOCKET_ALL, LONG), 2);
	assert_memory_equal(b.dask.memory + PART - 2, "ab", 2);
	assert_int_equal(rgate_dsocket_send(&s, PART - 1, 1, LONG), 1);
	/* what has not been read is a reset for the peer */
	assert_int_equal(send(fd, "c", 1, 0), 1);
	assert_int_equal(rgate_dsocket_recv(&s, 0, 1, RGATE_SOCKET_PEEK, LONG), 1);
	assert_int_equal(rgate_dsocket_close(&s), 0);
	assert_int_equal(rgate_dsocket_close(&s), 0);
	warp_init(&other, &b, 0);
	rgate_dsocket_use(&other, b.socket);
	assert_int_equal(rgate_dsocket_recv(&other, 0, 1, 0, LONG), -ENOTCONN);
	rgate_dsocket_fini(&other);
	rgate_dsocket_fini(&s);
	close(fd);
	bed_close(&b);
}

/* Who waits when the session ends hears of it, and so does who asks later */
static void *waits(void *arg)
{
	struct warp *w = arg;
	struct rgate_dsocket s;

	warp_init(&s, w->b, w->number);
	unit_require(rgate_dsocket_accept(&s, w->b->socket, LONG) == -EPIPE);
	unit_require(rgate_dsocket_accept(&s, w->b->socket, LONG) == -EPIPE);
	unit_require(!s.handle);
	rgate_dsocket_fini(&s);
	return NULL;
}

static void over(void **state)
{
	struct warp w;
	struct bed b;

	(void)state;
	bed_open(&b, RGATE_SOCKET_STREAM);
	w = (struct warp){ .b = &b };
	assert_int_equal(pthread_create(&w.thread, NULL, waits, &w), 0);
	usleep(20000);
	close(b.daemon[1]);
	b.daemon[1] = -1;
	pthread_join(w.thread, NULL);
	bed_close(&b);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(streams),
	cmocka_unit_test(datagrams),
	cmocka_unit_test(refused),
	cmocka_unit_test(over),
};

UNIT_MAIN(tests)
