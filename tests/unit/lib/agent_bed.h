/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/* An agent with a thread of its own, and what asks it as the library in a program does */
#ifndef RGATE_TEST_AGENT_BED_H
#define RGATE_TEST_AGENT_BED_H

#include "unit.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>
#include <unistd.h>

#include "agent.h"
#include "agent_wire.h"
#include "wire.h"

static struct agent *agent;
static struct agent_member *member;
/* Where ask() asks */
static const char *place = AGENT_CONTROL "1";
static pthread_t thread;
static atomic_bool stop;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct agent_info seen;
static atomic_uint turns;
/* Who has it holds the agent. */
static pthread_mutex_t turn = PTHREAD_MUTEX_INITIALIZER;

static inline void *loop(void *ctx)
{
	struct agent_info info = { .sz = sizeof(info) };

	(void)ctx;
	while (!stop) {
		struct pollfd p = { .fd = agent_fd(agent), .events = POLLIN };
		int ms;

		pthread_mutex_lock(&turn);
		ms = agent_timeout(agent);
		pthread_mutex_unlock(&turn);
		(void)poll(&p, 1, ms < 50 ? ms : 50);
		pthread_mutex_lock(&turn);
		assert_int_equal(agent_step(agent), 0);
		(void)agent_info(agent, &info);
		pthread_mutex_unlock(&turn);
		turns++;
		pthread_mutex_lock(&lock);
		seen = info;
		pthread_mutex_unlock(&lock);
	}
	return NULL;
}

static inline struct agent_info info_now(void)
{
	struct agent_info info;

	pthread_mutex_lock(&lock);
	info = seen;
	pthread_mutex_unlock(&lock);
	return info;
}

static inline int up_with(uint32_t loopback, uint32_t conns)
{
	const struct agent_opts o = RGATE_OPTS(agent_opts, .where = RGATE_SESSION_PROCESS,
		.loopback = loopback, .parent = "/tmp", .conns = conns);

	stop = false;
	assert_int_equal(agent_open(&agent, &o), 0);
	assert_int_equal(agent_join(agent, &member), 0);
	memset(&seen, 0, sizeof(seen));
	assert_int_equal(pthread_create(&thread, NULL, loop, NULL), 0);
	return 0;
}

static inline int up(void **state)
{
	(void)state;
	return up_with(AGENT_LOOPBACK_SERVED, 0);
}

static inline int up_own(void **state)
{
	(void)state;
	return up_with(AGENT_LOOPBACK_OWN, 16);
}

static inline int down(void **state)
{
	char dir[AGENT_DIR_MAX];

	(void)state;
	stop = true;
	pthread_join(thread, NULL);
	snprintf(dir, sizeof(dir), "%s", agent_dir(agent));
	agent_close(agent);
	/* It leaves nothing. */
	assert_int_equal(access(dir, F_OK), -1);
	return 0;
}

/* Until it is so, of the agent's numbers */
#define eventually(what)	do { \
	unsigned int tries_; \
	for (tries_ = 0; tries_ < 2000 && !(what); tries_++) \
		usleep(10000); \
	assert_true(what); \
} while (0)

/* ---- Asking, as the library in a program does ---- */

static inline int call_at(const char *name, int type)
{
	struct sockaddr_un un = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, type | SOCK_CLOEXEC, 0);

	assert_true(fd >= 0);
	snprintf(un.sun_path, sizeof(un.sun_path), "%s/%s", agent_dir(agent), name);
	assert_int_equal(connect(fd, (struct sockaddr *)&un, sizeof(un)), 0);
	return fd;
}

/* An agent that is stuck is not waited for: its thread does not end either. */
static inline void answers_in_time(int sock)
{
	struct pollfd p = { .fd = sock, .events = POLLIN };

	if (poll(&p, 1, 30000) == 1)
		return;
	fprintf(stderr, "the agent does not answer\n");
	abort();
}

static inline int ask_raw(const void *msg, size_t len, const int *fds, unsigned int n,
			  struct agent_answer *answer, int *made)
{
	int sock = call_at(place, SOCK_SEQPACKET), got[RGATE_FDS];
	unsigned int ngot = 0;
	int ret;

	ret = rgate_wire_send(sock, msg, len, fds, n, 0);
	answers_in_time(sock);
	if (!ret)
		ret = rgate_wire_recv(sock, answer, sizeof(*answer), got, &ngot, 0);
	close(sock);
	if (made)
		*made = ngot ? got[0] : -1;
	else
		assert_int_equal(ngot, 0);
	return ret;
}

static inline int ask(struct agent_ask q, int fd, struct agent_answer *out, int *made)
{
	struct agent_answer answer = { .result = 0 };
	int ret;

	q.version = AGENT_VERSION;
	ret = ask_raw(&q, sizeof(q), &fd, fd >= 0, &answer, made);
	if (out)
		*out = answer;
	return ret < 0 ? ret : answer.result;
}

#define ASK(fd, out, made, ...)	ask((struct agent_ask){ __VA_ARGS__ }, fd, out, made)

static inline int new_socket(void)
{
	int fd = -1;

	assert_int_equal(ASK(-1, NULL, &fd, .what = AGENT_SOCKET, .a = AF_INET), 0);
	assert_true(fd >= 0);
	return fd;
}

static inline struct rgate_socket_addr loop_at(uint16_t port)
{
	return (struct rgate_socket_addr){ .family = AF_INET, .port = port,
					   .addr = { 127, 0, 0, 1 } };
}

/* A server that knows nothing of it, and its port */
static inline int server(uint16_t *port)
{
	struct sockaddr_in in = { .sin_family = AF_INET,
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof(in);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_int_equal(bind(fd, (struct sockaddr *)&in, sizeof(in)), 0);
	assert_int_equal(listen(fd, 64), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&in, &len), 0);
	*port = ntohs(in.sin_port);
	return fd;
}

static inline int outside(uint16_t port)
{
	struct sockaddr_in in = { .sin_family = AF_INET, .sin_port = htons(port),
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_int_equal(connect(fd, (struct sockaddr *)&in, sizeof(in)), 0);
	return fd;
}

static inline void reset(int fd)
{
	const struct linger now = { .l_onoff = 1 };

	assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now)), 0);
	close(fd);
}

/* Both ends of a connection to @listener at @port */
static inline int connected(int listener, uint16_t port, int *peer)
{
	int fd = new_socket();

	assert_int_equal(ASK(fd, NULL, NULL, .what = AGENT_CONNECT, .addr = loop_at(port)), 0);
	*peer = accept(listener, NULL, NULL);
	assert_true(*peer >= 0);
	return fd;
}

static inline int listening(uint16_t *port)
{
	struct agent_answer answer;
	int fd = new_socket();

	assert_int_equal(ASK(fd, NULL, NULL, .what = AGENT_BIND, .addr = loop_at(0)), 0);
	assert_int_equal(ASK(fd, NULL, NULL, .what = AGENT_LISTEN, .a = 4), 0);
	assert_int_equal(ASK(fd, &answer, NULL, .what = AGENT_NAME), 0);
	*port = answer.addr.port;
	assert_true(*port);
	return fd;
}

/* It works as if nothing had been. */
static inline void still_works(void)
{
	uint16_t port;
	int peer, listener = server(&port), fd = connected(listener, port, &peer);
	char word[8] = "";

	assert_int_equal(write(fd, "hello", 5), 5);
	assert_int_equal(recv(peer, word, 5, MSG_WAITALL), 5);
	assert_int_equal(write(peer, word, 5), 5);
	assert_int_equal(recv(fd, word, 5, MSG_WAITALL), 5);
	assert_string_equal(word, "hello");
	close(fd);
	assert_int_equal(read(peer, word, 1), 0);
	close(peer);
	close(listener);
}

#endif
