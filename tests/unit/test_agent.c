// SPDX-License-Identifier: MIT OR GPL-2.0
/* The agent of programs' sockets, asked by programs that lie, stop, die and take all there is. */
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
#include <sys/resource.h>
#include <sys/un.h>
#include <unistd.h>

#include "agent.h"
#include "agent_wire.h"
#include "wire.h"

static struct agent *agent;
static pthread_t thread;
static atomic_bool stop;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct agent_info seen;

static void *loop(void *ctx)
{
	struct agent_info info = { .sz = sizeof(info) };

	(void)ctx;
	while (!stop) {
		struct pollfd p = { .fd = agent_fd(agent), .events = POLLIN };
		int ms = agent_timeout(agent);

		(void)poll(&p, 1, ms < 50 ? ms : 50);
		assert_int_equal(agent_step(agent), 0);
		(void)agent_info(agent, &info);
		pthread_mutex_lock(&lock);
		seen = info;
		pthread_mutex_unlock(&lock);
	}
	return NULL;
}

static struct agent_info info_now(void)
{
	struct agent_info info;

	pthread_mutex_lock(&lock);
	info = seen;
	pthread_mutex_unlock(&lock);
	return info;
}

static int up_with(uint32_t loopback, uint32_t conns)
{
	const struct agent_opts o = RGATE_OPTS(agent_opts, .where = RGATE_SESSION_PROCESS,
		.loopback = loopback, .parent = "/tmp", .conns = conns);

	stop = false;
	assert_int_equal(agent_open(&agent, &o), 0);
	memset(&seen, 0, sizeof(seen));
	assert_int_equal(pthread_create(&thread, NULL, loop, NULL), 0);
	return 0;
}

static int up(void **state)
{
	(void)state;
	return up_with(AGENT_LOOPBACK_SERVED, 0);
}

static int up_own(void **state)
{
	(void)state;
	return up_with(AGENT_LOOPBACK_OWN, 16);
}

static int down(void **state)
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

static int call_at(const char *name, int type)
{
	struct sockaddr_un un = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, type | SOCK_CLOEXEC, 0);

	assert_true(fd >= 0);
	snprintf(un.sun_path, sizeof(un.sun_path), "%s/%s", agent_dir(agent), name);
	assert_int_equal(connect(fd, (struct sockaddr *)&un, sizeof(un)), 0);
	return fd;
}

/* An agent that is stuck is not waited for: its thread does not end either. */
static void answers_in_time(int sock)
{
	struct pollfd p = { .fd = sock, .events = POLLIN };

	if (poll(&p, 1, 30000) == 1)
		return;
	fprintf(stderr, "the agent does not answer\n");
	abort();
}

static int ask_raw(const void *msg, size_t len, const int *fds, unsigned int n,
		   struct agent_answer *answer, int *made)
{
	int sock = call_at(AGENT_CONTROL, SOCK_SEQPACKET), got[RGATE_FDS];
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

static int ask(struct agent_ask q, int fd, struct agent_answer *out, int *made)
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

static int new_socket(void)
{
	int fd = -1;

	assert_int_equal(ASK(-1, NULL, &fd, .what = AGENT_SOCKET, .a = AF_INET), 0);
	assert_true(fd >= 0);
	return fd;
}

static struct rgate_socket_addr loop_at(uint16_t port)
{
	return (struct rgate_socket_addr){ .family = AF_INET, .port = port,
					   .addr = { 127, 0, 0, 1 } };
}

/* A server that knows nothing of it, and its port */
static int server(uint16_t *port)
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

static int outside(uint16_t port)
{
	struct sockaddr_in in = { .sin_family = AF_INET, .sin_port = htons(port),
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_int_equal(connect(fd, (struct sockaddr *)&in, sizeof(in)), 0);
	return fd;
}

static void reset(int fd)
{
	const struct linger now = { .l_onoff = 1 };

	assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now)), 0);
	close(fd);
}

/* Both ends of a connection to @listener at @port */
static int connected(int listener, uint16_t port, int *peer)
{
	int fd = new_socket();

	assert_int_equal(ASK(fd, NULL, NULL, .what = AGENT_CONNECT, .addr = loop_at(port)), 0);
	*peer = accept(listener, NULL, NULL);
	assert_true(*peer >= 0);
	return fd;
}

static int listening(uint16_t *port)
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
static void still_works(void)
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

/* ---- Those who lie ---- */

static void garbage(void **state)
{
	unsigned char noise[4096];
	struct agent_answer answer;
	unsigned int i, n;

	(void)state;
	srandom(1);
	for (i = 0; i < 500; i++) {
		for (n = 0; n < sizeof(noise); n++)
			noise[n] = (unsigned char)random();
		n = (unsigned int)random() % sizeof(noise);
		(void)ask_raw(noise, i % 5 ? n : sizeof(struct agent_ask), NULL, 0, &answer, NULL);
	}
	/* What could be, but for one field */
	for (i = 0; i < 500; i++) {
		struct agent_ask q = { .version = AGENT_VERSION, .what = (uint32_t)random() % 12,
				       .a = (uint32_t)random(), .len = (uint32_t)random() };
		int made = -1;

		if (i % 2)
			q.len %= 300;
		(void)ask_raw(&q, sizeof(q), NULL, 0, &answer, &made);
		if (made >= 0)
			close(made);
	}
	eventually(info_now().lies > 100);
	still_works();
	eventually(info_now().now == 0);
}

static void others_descriptors(void **state)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC), pair[2], many[4], tcp;
	uint32_t what;
	uint16_t port;

	(void)state;
	tcp = server(&port);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
	for (what = AGENT_BIND; what <= AGENT_GETOPT; what++) {
		assert_int_equal(ASK(null, NULL, NULL, .what = what), -ENOTSOCK);
		assert_int_equal(ASK(pair[0], NULL, NULL, .what = what), -ENOTSOCK);
		assert_int_equal(ASK(tcp, NULL, NULL, .what = what), -ENOTSOCK);
		assert_int_equal(ASK(-1, NULL, NULL, .what = what), -ENOTSOCK);
	}
	for (what = 0; what < 4; what++)
		many[what] = null;
	{
		struct agent_ask q = { .version = AGENT_VERSION, .what = AGENT_NAME };
		struct agent_answer answer;

		assert_int_equal(ask_raw(&q, sizeof(q), many, 4, &answer, NULL), -EPIPE);
	}
	still_works();
	close(null);
	close(tcp);
	close(pair[0]);
	close(pair[1]);
}

/* One whose name in the kernel looks like the agent's, but that it did not make */
static void forged_name(void **state)
{
	struct sockaddr_un un = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	(void)state;
	snprintf(un.sun_path, sizeof(un.sun_path), "%s/ffff", agent_dir(agent));
	assert_int_equal(bind(fd, (struct sockaddr *)&un, sizeof(un)), 0);
	assert_int_equal(ASK(fd, NULL, NULL, .what = AGENT_LISTEN, .a = 1), -EINVAL);
	assert_int_equal(ASK(fd, NULL, NULL, .what = AGENT_NAME), -ENOTCONN);
	close(fd);
	unlink(un.sun_path);
	still_works();
}

static void silent_askers(void **state)
{
	int fds[300], n, i;

	(void)state;
	for (n = 0; n < 300; n++)
		fds[n] = call_at(AGENT_CONTROL, SOCK_SEQPACKET);
	still_works();
	for (i = 0; i < n; i++)
		close(fds[i]);
}

/* They come where only the agent's own connections should. */
static void strangers(void **state)
{
	int fds[40], i;

	(void)state;
	for (i = 0; i < 40; i++)
		fds[i] = call_at(AGENT_DATA, SOCK_STREAM);
	still_works();
	for (i = 0; i < 40; i++) {
		char byte;

		assert_int_equal(read(fds[i], &byte, 1), 0);
		close(fds[i]);
	}
}

/* More of them than there is room for, who have gone already */
static void many_strangers(void **state)
{
	struct sockaddr_un un = { .sun_family = AF_UNIX };
	int i, fd, err = 0;

	(void)state;
	snprintf(un.sun_path, sizeof(un.sun_path), "%s/" AGENT_DATA, agent_dir(agent));
	for (i = 0; i < 10000 && !err; i++) {
		fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
		assert_true(fd >= 0);
		err = connect(fd, (struct sockaddr *)&un, sizeof(un)) < 0 ? errno : 0;
		close(fd);
	}
	assert_int_equal(err, EAGAIN);
	still_works();
}

/* Nobody accepts, and the agent does not wait for that in a connect of its programs. */
static void full_backlog(void **state)
{
	struct rgate_socket_addr at;
	int waits, fds[8], n, err = 0;
	uint16_t port;

	(void)state;
	waits = listening(&port);
	at = loop_at(port);
	for (n = 0; n < 8 && !err; n++) {
		fds[n] = new_socket();
		err = ASK(fds[n], NULL, NULL, .what = AGENT_CONNECT, .addr = at);
		assert_int_equal(fcntl(fds[n], F_GETFL) & O_NONBLOCK, 0);
	}
	assert_int_equal(err, -EAGAIN);
	close(accept(waits, NULL, NULL));
	assert_int_equal(ASK(fds[n - 1], NULL, NULL, .what = AGENT_CONNECT, .addr = at), 0);
	while (n)
		close(fds[--n]);
	close(waits);
	eventually(info_now().now == 0);
}

static void too_many(void **state)
{
	int fds[16], i, made = -1;

	(void)state;
	for (i = 0; i < 16; i++)
		fds[i] = new_socket();
	assert_int_equal(ASK(-1, NULL, &made, .what = AGENT_SOCKET, .a = AF_INET), -ENFILE);
	assert_int_equal(made, -1);
	/* Room is found as soon as one is closed: the next who asks has it. */
	close(fds[7]);
	fds[7] = new_socket();
	for (i = 0; i < 16; i++)
		close(fds[i]);
	eventually(info_now().now == 0);
}

static void no_descriptors(void **state)
{
	struct rlimit before, few;
	struct agent_answer answer;
	int fds[64], n = 0, i, result = 0, made, probe = dup(0);

	(void)state;
	close(probe);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	few = before;
	few.rlim_cur = (rlim_t)probe + 24;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
	while (n < 64 && !result) {
		int sock = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

		if (sock < 0)
			break;
		close(sock);
		made = -1;
		result = ASK(-1, &answer, &made, .what = AGENT_SOCKET, .a = AF_INET);
		if (made >= 0)
			fds[n++] = made;
	}
	/* Told, or not even asked; but no call hangs, and all of it is as before then. */
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
	assert_true(n < 64);
	still_works();
	for (i = 0; i < n; i++)
		close(fds[i]);
	eventually(info_now().now == 0);
}

/* ---- Those who are gone, or slow ---- */

static void reset_nothing_unread(void **state)
{
	uint16_t port;
	int peer, listener = server(&port), fd = connected(listener, port, &peer);
	char byte;

	(void)state;
	assert_int_equal(write(fd, "ab", 2), 2);
	assert_int_equal(recv(peer, &byte, 1, 0), 1);
	assert_int_equal(recv(peer, &byte, 1, 0), 1);
	reset(peer);
	assert_int_equal(read(fd, &byte, 1), -1);
	assert_int_equal(errno, ECONNRESET);
	close(fd);
	close(listener);
	eventually(info_now().now == 0);
	assert_int_equal(info_now().resets, 1);
}

/* Who accepts past the library sends no hello: nothing of him stays when he goes. */
static void no_hello(void **state)
{
	uint16_t port;
	int fd = listening(&port), peer = outside(port), got;

	(void)state;
	got = accept(fd, NULL, NULL);
	assert_true(got >= 0);
	reset(peer);
	eventually(info_now().resets == 1);
	assert_int_equal(info_now().now, 2);
	close(got);
	close(fd);
	eventually(info_now().now == 0);
}

static void reset_before_accept(void **state)
{
	uint16_t port;
	int fd = listening(&port), got;
	char byte = AGENT_HELLO;

	(void)state;
	reset(outside(port));
	eventually(info_now().resets == 1);
	got = accept(fd, NULL, NULL);
	(void)send(got, &byte, 1, MSG_NOSIGNAL);
	assert_int_equal(read(got, &byte, 1), -1);
	assert_int_equal(errno, ECONNRESET);
	close(got);
	close(fd);
	eventually(info_now().now == 0);
}

/* Its port is free, though nobody told that it was closed. */
static void closed_listener(void **state)
{
	struct rgate_socket_addr at;
	uint16_t port;
	int fd = listening(&port), again;

	(void)state;
	at = loop_at(port);
	again = new_socket();
	assert_int_equal(ASK(again, NULL, NULL, .what = AGENT_BIND, .addr = at), -EADDRINUSE);
	close(fd);
	assert_int_equal(ASK(again, NULL, NULL, .what = AGENT_BIND, .addr = at), 0);
	close(again);
	eventually(info_now().now == 0);
}

/* The agent ends: whoever waits to accept is told, and connections are broken. */
static void agent_ends(void **state)
{
	uint16_t port, at;
	int peer, listener = server(&port), fd = connected(listener, port, &peer);
	int waits = listening(&at), got;
	struct agent_name name;
	struct sockaddr_un un;
	socklen_t len = sizeof(un);
	char byte;

	(void)down(state);
	assert_int_equal(read(fd, &byte, 1), -1);
	assert_int_equal(errno, ECONNRESET);
	got = accept(waits, (struct sockaddr *)&un, &len);
	assert_true(got >= 0);
	memcpy(&name, un.sun_path, sizeof(name));
	assert_memory_equal(name.magic, AGENT_MAGIC, sizeof(name.magic));
	assert_int_equal(name.error, ENETDOWN);
	close(got);
	close(waits);
	close(fd);
	close(peer);
	close(listener);
	(void)up(state);
}

/* Reads nothing for a while: what is on its way is bounded, and another one goes on at once. */
static void full_window(void **state)
{
	static char chunk[1U << 16];
	uint16_t port;
	int peer, other_peer, listener = server(&port), fd = connected(listener, port, &peer);
	int other = connected(listener, port, &other_peer);
	uint64_t poured = 0, got = 0;
	ssize_t n;
	int i;

	(void)state;
	memset(chunk, 0x5a, sizeof(chunk));
	for (i = 0; i < 200; i++) {
		n = send(peer, chunk, sizeof(chunk), MSG_DONTWAIT);
		if (n > 0)
			poured += (uint64_t)n;
		else
			usleep(5000);
	}
	assert_true(info_now().received < poured);
	for (i = 0; i < 100; i++) {
		char word[4];

		assert_int_equal(write(other_peer, "ping", 4), 4);
		assert_int_equal(recv(other, word, 4, MSG_WAITALL), 4);
	}
	close(peer);
	while ((n = read(fd, chunk, sizeof(chunk))) > 0) {
		for (i = 0; i < n; i++)
			assert_int_equal(chunk[i], 0x5a);
		got += (uint64_t)n;
	}
	assert_int_equal(n, 0);
	assert_int_equal(got, poured);
	close(fd);
	close(other);
	close(other_peer);
	close(listener);
	eventually(info_now().now == 0);
}

static uint32_t mix(uint32_t x)
{
	x ^= x << 13;
	x ^= x >> 17;
	return x ^ x << 5;
}

/* In pieces of any size, one by one: what arrives is what went, to the last byte. */
static void pieces(void **state)
{
	static unsigned char out[70000], in[70000];
	uint16_t port;
	int peer, listener = server(&port), fd = connected(listener, port, &peer);
	uint32_t x = 12345, i, n, done;

	(void)state;
	for (i = 0; i < sizeof(out); i++)
		out[i] = (unsigned char)(x = mix(x));
	for (i = 0; i < 400; i++) {
		x = mix(x);
		n = i % 4 ? x % 5 + 1 : x % sizeof(out) + 1;
		for (done = 0; done < n; ) {
			ssize_t k = write(fd, out + done, n - done > 9000 ? 9000 : n - done);

			assert_true(k > 0);
			done += (uint32_t)k;
		}
		assert_int_equal(recv(peer, in, n, MSG_WAITALL), n);
		assert_memory_equal(in, out, n);
	}
	assert_int_equal(shutdown(fd, SHUT_WR), 0);
	assert_int_equal(read(peer, in, 1), 0);
	assert_int_equal(write(peer, "end", 3), 3);
	close(peer);
	assert_int_equal(recv(fd, in, 10, MSG_WAITALL), 3);
	assert_int_equal(read(fd, in, 1), 0);
	close(fd);
	close(listener);
	eventually(info_now().now == 0);
	assert_int_equal(info_now().resets, 0);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test_setup_teardown(garbage, up, down),
	cmocka_unit_test_setup_teardown(others_descriptors, up, down),
	cmocka_unit_test_setup_teardown(forged_name, up, down),
	cmocka_unit_test_setup_teardown(silent_askers, up, down),
	cmocka_unit_test_setup_teardown(strangers, up, down),
	cmocka_unit_test_setup_teardown(many_strangers, up, down),
	cmocka_unit_test_setup_teardown(full_backlog, up_own, down),
	cmocka_unit_test_setup_teardown(too_many, up_own, down),
	cmocka_unit_test_setup_teardown(no_descriptors, up, down),
	cmocka_unit_test_setup_teardown(reset_nothing_unread, up, down),
	cmocka_unit_test_setup_teardown(no_hello, up, down),
	cmocka_unit_test_setup_teardown(reset_before_accept, up, down),
	cmocka_unit_test_setup_teardown(closed_listener, up, down),
	cmocka_unit_test_setup_teardown(agent_ends, up, down),
	cmocka_unit_test_setup_teardown(full_window, up, down),
	cmocka_unit_test_setup_teardown(pieces, up, down),
};

UNIT_MAIN(tests)
