// SPDX-License-Identifier: MIT OR GPL-2.0
/* A daemon stands still, and is killed then: what waits for it ends, at the latest with it. */
#include "ringgated.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <ringgate/rgate_queue.h>
#include <ringgate/rgate_socket.h>

#include "client_quiet.h"

#define SOON_US		300000
#define SOON_NS		300000000ULL
#define MANY		200U		/* more than a session has places */

static struct ringgated r;
static struct rgate_sockets *set;

static void start(void)
{
	const struct rgate_sockets_opts o = RGATE_OPTS(rgate_sockets_opts, .path = r.requests,
		.where = RGATE_SESSION_DAEMON, .requests = 64);

	ringgated_start(&r, "allow any socket\nallow any queue\n", -1);
	assert_int_equal(rgate_sockets_open(&set, &o), 0);
}

static struct rgate_socket *socket_of_it(void)
{
	struct rgate_socket *s;

	assert_int_equal(rgate_socket_open(set, &s, RGATE_SOCKET_INET, RGATE_SOCKET_STREAM), 0);
	return s;
}

static void stop(void)
{
	assert_int_equal(kill(r.pid, SIGSTOP), 0);
	assert_int_equal(waitpid(r.pid, NULL, WUNTRACED), r.pid);
}

static void *kill_soon(void *arg)
{
	(void)arg;
	usleep(SOON_US);
	kill(r.pid, SIGKILL);
	return NULL;
}

/* What @call comes to, during which the daemon is killed */
#define UNTIL_KILLED(call) ({ \
	pthread_t thread_; \
	int ret_; \
	assert_int_equal(pthread_create(&thread_, NULL, kill_soon, NULL), 0); \
	ret_ = (call); \
	pthread_join(thread_, NULL); \
	ringgated_stop(&r, SIGKILL); \
	ret_; \
})

static void settles(void **state)
{
	struct rgate_socket *s;

	(void)state;
	start();
	s = socket_of_it();
	stop();
	assert_int_equal(socket_close_quiet(s), 0);
	assert_false(sockets_settled(set));
	assert_int_equal(UNTIL_KILLED(sockets_settle(set)), -EPIPE);
	rgate_sockets_close(set);
}

static int bind_it(struct rgate_socket *s)
{
	const struct rgate_socket_addr any = { .family = RGATE_SOCKET_INET };

	return rgate_socket_bind(s, &any);
}

static void asks(void **state)
{
	struct rgate_socket *s;

	(void)state;
	start();
	s = socket_of_it();
	stop();
	assert_int_equal(UNTIL_KILLED(bind_it(s)), -EPIPE);
	rgate_sockets_close(set);
}

static int set_many(struct rgate_socket *s)
{
	const struct rgate_socket_linger linger = { .on = 1 };
	unsigned int i;
	int err = 0;

	for (i = 0; i < MANY && !err; i++)
		err = socket_setopt_quiet(s, RGATE_SOCKET_LINGER, &linger, sizeof(linger));
	return err;
}

/* All places are taken by what nobody is told of. */
static void finds_no_place(void **state)
{
	struct rgate_socket *s;

	(void)state;
	start();
	s = socket_of_it();
	stop();
	assert_int_equal(UNTIL_KILLED(set_many(s)), -EPIPE);
	rgate_sockets_close(set);
}

/* Who is about to close it waits for so long, whether it goes on or not. */
static void has_an_end(void **state)
{
	struct rgate_socket *s, *other;
	uint64_t from;
	int err;

	(void)state;
	start();
	s = socket_of_it();
	other = socket_of_it();
	stop();
	from = unit_now_ns();
	sockets_end_by(set, from + SOON_NS);
	assert_int_equal(bind_it(s), -ETIMEDOUT);
	assert_true(unit_now_ns() - from >= SOON_NS);
	err = set_many(s);
	assert_true(err == -ETIMEDOUT || err == -EAGAIN);
	assert_int_equal(sockets_settle(set), -ETIMEDOUT);
	assert_int_equal(rgate_socket_close(s), -ETIMEDOUT);
	assert_int_equal(rgate_socket_close(other), -ETIMEDOUT);
	/* A full ring is waited for as well, a second each. */
	assert_true(unit_now_ns() - from < unit_patience() * 20000000000ULL);
	rgate_sockets_close(set);
	ringgated_stop(&r, SIGKILL);
}

/* One that knows nothing of it, and where it is */
static int receiver(struct rgate_socket_addr *at)
{
	const struct timeval most = { .tv_sec = 20 };
	struct sockaddr_in in = { .sin_family = AF_INET,
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof(in);
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	assert_int_equal(bind(fd, (struct sockaddr *)&in, sizeof(in)), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&in, &len), 0);
	assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &most, sizeof(most)), 0);
	*at = (struct rgate_socket_addr){ .family = RGATE_SOCKET_INET,
					  .port = ntohs(in.sin_port), .addr = { 127, 0, 0, 1 } };
	return fd;
}

/* What was not waited for is done when it goes on: as it was asked, whatever was asked later. */
static void goes_on(void **state)
{
	struct rgate_socket_addr to[2];
	struct rgate_sockets_opts o;
	struct rgate_socket *s[2];
	const int wanted = receiver(&to[0]), other = receiver(&to[1]);
	char got[8] = "", *mem;
	unsigned int i;

	(void)state;
	start();
	rgate_sockets_close(set);
	o = RGATE_OPTS(rgate_sockets_opts, .path = r.requests, .where = RGATE_SESSION_DAEMON,
		       .requests = 64, .memory = 4096);
	assert_int_equal(rgate_sockets_open(&set, &o), 0);
	mem = rgate_sockets_memory(set, NULL);
	for (i = 0; i < 2; i++)
		assert_int_equal(rgate_socket_open(set, &s[i], RGATE_SOCKET_INET,
						   RGATE_SOCKET_DGRAM), 0);
	memcpy(mem, "ab", 2);
	stop();
	sockets_end_by(set, unit_now_ns() + SOON_NS);
	for (i = 0; i < 2; i++)
		assert_int_equal(rgate_socket_sendto(s[i], mem + i, 1, 0, &to[i]), -ETIMEDOUT);
	/* Nothing more is asked then, however often. */
	for (i = 0; i < MANY; i++)
		assert_int_equal(bind_it(s[1]), -ETIMEDOUT);
	assert_int_equal(kill(r.pid, SIGCONT), 0);
	assert_int_equal(recv(wanted, got, sizeof(got), 0), 1);
	assert_int_equal(got[0], 'a');
	/* Behind the end of the first one, and of the session */
	rgate_sockets_close(set);
	assert_int_equal(recv(other, got, sizeof(got), MSG_DONTWAIT), -1);
	close(wanted);
	close(other);
	ringgated_stop(&r, SIGKILL);
}

static uint64_t longest;

static bool enough(void *ctx, uint64_t ns)
{
	unsigned int *asked = ctx;

	longest = ns;
	return ++*asked == 4;
}

/* Who waits is asked whether he wants to, and does not when he has had enough. */
static void asks_if_enough(void **state)
{
	struct rgate_sockets_opts o;
	struct rgate_socket *s;
	unsigned int asked = 0;

	(void)state;
	start();
	rgate_sockets_close(set);
	o = RGATE_OPTS(rgate_sockets_opts, .path = r.requests, .where = RGATE_SESSION_DAEMON,
		       .requests = 64);
	assert_int_equal(sockets_open_asking(&set, &o, enough, &asked), 0);
	/* No daemon of a cluster has them elsewhere. */
	assert_true(sockets_are_here(set));
	s = socket_of_it();
	assert_true(asked < 4);
	asked = 0;
	stop();
	assert_int_equal(bind_it(s), -ETIMEDOUT);
	assert_int_equal(asked, 4);
	assert_true(longest >= 100000000 && longest < unit_patience() * 20000000000ULL);
	/* The set has ended, and asks no more. */
	assert_int_equal(bind_it(s), -ETIMEDOUT);
	assert_int_equal(asked, 4);
	rgate_sockets_close(set);
	ringgated_stop(&r, SIGKILL);
}

static void fetches(void **state)
{
	const struct rgate_queue_opts o = RGATE_OPTS(rgate_queue_opts, .path = r.requests,
		.where = RGATE_SESSION_DAEMON, .flags = RGATE_QUEUE_CREATE);
	struct rgate_queue_memory m;
	struct rgate_queue *q;
	char buf[16];

	(void)state;
	start();
	assert_int_equal(rgate_queue_open(&q, "still", &o), 0);
	assert_int_equal(rgate_queue_memory(&m, RGATE_QUEUE_MEMORY_HERE, geteuid(), "none", 0,
					    sizeof(buf)), 0);
	stop();
	assert_true(UNTIL_KILLED(rgate_queue_fetch(q, &m, 0, buf, sizeof(buf), -1)) < 0);
	rgate_queue_close(q);
	rgate_sockets_close(set);
}

static int up(void **state)
{
	(void)state;
	if (!ringgated_built())
		unit_skip("ringgated is not built");
	ringgated_make(&r);
	return 0;
}

static int down(void **state)
{
	(void)state;
	ringgated_free(&r);
	return 0;
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test_setup_teardown(settles, up, down),
	cmocka_unit_test_setup_teardown(asks, up, down),
	cmocka_unit_test_setup_teardown(finds_no_place, up, down),
	cmocka_unit_test_setup_teardown(has_an_end, up, down),
	cmocka_unit_test_setup_teardown(goes_on, up, down),
	cmocka_unit_test_setup_teardown(asks_if_enough, up, down),
	cmocka_unit_test_setup_teardown(fetches, up, down),
};

UNIT_MAIN(tests)
