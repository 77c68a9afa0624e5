// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * A program of node 1 accepts many at the gateway by one request, receives often by one, and sends
 * and receives much, by two daemons, whose connection breaks, and which end.
 */
#include "asker.h"
#include "ringgated.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <ringgate/socket.h>

#include "nodes.h"

#define MEMORY	(128U << 10)
#define SLOTS	31U
#define SLOT	2048U
#define AT	4096U		/* where they are */
#define ADDR	((uint32_t)sizeof(struct rgate_socket_addr))
#define MANY	100U

static struct ringgated r[2];
static uint32_t listens;
static uint16_t port;

#define ASK(op_, value, ...) \
	ask((struct rgate_request){ .op = RGATE_REQ_SOCKET_##op_, ##__VA_ARGS__ }, value)

static void begin(struct rgate_request q)
{
	assert_int_equal(rgate_session_submit(session, &q), 0);
}

#define ACCEPTS(cookie_, n, ...) \
	begin((struct rgate_request){ .op = RGATE_REQ_SOCKET_ACCEPT, .cookie = (cookie_), \
				      .handle = listens, .a1 = (n), .flags = RGATE_REQ_MULTI, \
				      ##__VA_ARGS__ })

/* The next completion, which is that one's */
static struct rgate_completion next_of(uint64_t cookie)
{
	struct rgate_completion c;

	assert_int_equal(next_completion(&c), 0);
	assert_int_equal(c.cookie, cookie);
	return c;
}

static uint32_t came(uint64_t cookie)
{
	const struct rgate_completion c = next_of(cookie);

	assert_int_equal(c.result, 0);
	assert_int_equal(c.flags, RGATE_COMP_MORE);
	return (uint32_t)c.value;
}

static void ends(uint64_t cookie, int result)
{
	const struct rgate_completion c = next_of(cookie);

	assert_int_equal(c.result, result);
	assert_int_equal(c.flags, 0);
}

/* Somebody of outside, who says who he is */
static int connects(uint32_t who)
{
	const struct sockaddr_in in = { .sin_family = AF_INET, .sin_port = htons(port),
					.sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_true(fd >= 0);
	assert_int_equal(connect(fd, (const struct sockaddr *)&in, sizeof(in)), 0);
	assert_int_equal(send(fd, &who, sizeof(who), MSG_NOSIGNAL), sizeof(who));
	return fd;
}

static uint32_t who_is(uint32_t handle)
{
	uint32_t who;

	assert_int_equal(ASK(RECV, NULL, .handle = handle, .a0 = RGATE_SOCKET_ALL,
			     .len = sizeof(who)), sizeof(who));
	memcpy(&who, mem, sizeof(who));
	return who;
}

static void listen_there(void)
{
	struct rgate_socket_addr a = { .family = RGATE_SOCKET_INET, .addr = { 127, 0, 0, 1 } };
	uint64_t value;

	assert_int_equal(asker_open(r[1].requests, MEMORY), 0);
	assert_int_equal(ASK(OPEN, &value, .a0 = RGATE_SOCKET_A0(RGATE_SOCKET_INET,
								 RGATE_SOCKET_STREAM)), 0);
	listens = (uint32_t)value;
	memcpy(mem, &a, sizeof(a));
	assert_int_equal(ASK(BIND, NULL, .handle = listens, .len = ADDR), 0);
	assert_int_equal(ASK(LISTEN, NULL, .handle = listens, .a0 = 128), 0);
	assert_int_equal(ASK(NAME, NULL, .handle = listens, .len = ADDR), 0);
	memcpy(&a, mem, sizeof(a));
	port = a.port;
}

static int up(void **state)
{
	char text[128];

	(void)state;
	if (!ringgated_built())
		unit_skip("ringgated is not built");
	ringgated_make_pair(r);
	r[1].more = "sockets-at gateway";
	snprintf(text, sizeof(text), "allow any socket\nnode 1 user:%u\n", geteuid());
	ringgated_start(&r[0], text, -1);
	ringgated_start(&r[1], "allow any socket\n", -1);
	wait_for(ringgated_met(r));
	listen_there();
	return 0;
}

static int down(void **state)
{
	unsigned int i;

	(void)state;
	rgate_session_close(session);
	session = NULL;
	for (i = 0; i < 2; i++)
		if (r[i].pid)
			(void)ringgated_stop(&r[i], SIGKILL);
	ringgated_free(&r[0]);
	return 0;
}

static void closed(int fd)
{
	char byte;

	assert_true(recv(fd, &byte, 1, 0) <= 0);
	close(fd);
}

/* All, each once, with the port that he came from, in the order in which they came */
static void many(void **state)
{
	struct sockaddr_in in;
	struct rgate_socket_addr a;
	socklen_t len = sizeof(in);
	uint32_t h[MANY], i;
	int fd[MANY];

	(void)state;
	ACCEPTS(7, MANY + 1, .off = 64, .len = MANY * ADDR);
	for (i = 0; i < MANY; i++)
		fd[i] = connects(i);
	for (i = 0; i < MANY; i++)
		h[i] = came(7);
	ends(7, -ENOBUFS);
	for (i = 0; i < MANY; i++) {
		assert_int_equal(who_is(h[i]), i);
		assert_int_equal(getsockname(fd[i], (struct sockaddr *)&in, &len), 0);
		memcpy(&a, mem + 64 + (size_t)i * ADDR, sizeof(a));
		assert_int_equal(a.port, ntohs(in.sin_port));
		assert_int_equal(ASK(CLOSE, NULL, .handle = h[i]), 0);
		closed(fd[i]);
	}
	wait_for(ringgated_count(&r[0], "handles") == 1);
	/* and those that it did not come to are its user's again */
	ACCEPTS(8, 200);
	wait_for(ringgated_count(&r[0], "handles") == 200);
	assert_int_equal(rgate_session_cancel(session, 8, 9), 0);
	assert_int_equal(next_of(9).result, -EALREADY);
	ends(8, -ECANCELED);
	wait_for(ringgated_count(&r[0], "handles") == 1);
}

/* The connection of the nodes breaks, and is there again: who came meanwhile is told of, too. */
static void goes_on(void **state)
{
	uint32_t h[4], i;
	int fd[4];

	(void)state;
	ACCEPTS(7, 5);
	fd[0] = connects(0);
	h[0] = came(7);
	assert_int_equal(kill(r[1].pid, SIGSTOP), 0);
	fd[1] = connects(1);
	wait_for(!ringgated_sees(&r[0]));
	fd[2] = connects(2);
	assert_int_equal(kill(r[1].pid, SIGCONT), 0);
	h[1] = came(7);
	h[2] = came(7);
	fd[3] = connects(3);
	h[3] = came(7);
	ends(7, -ENOBUFS);
	for (i = 0; i < 4; i++) {
		assert_int_equal(who_is(h[i]), i);
		close(fd[i]);
	}
}

static uint8_t pattern(uint32_t at)
{
	return (uint8_t)(at * 31 + (at >> 9));
}

static void sends(int fd, uint32_t from, uint32_t n)
{
	uint8_t bytes[8192];
	uint32_t i;

	assert_true(n <= sizeof(bytes));
	for (i = 0; i < n; i++)
		bytes[i] = pattern(from + i);
	assert_int_equal(send(fd, bytes, n, MSG_NOSIGNAL), n);
}

/* The next slot's bytes, which follow @from; how many */
static uint32_t takes(uint64_t cookie, uint32_t slot, uint32_t from)
{
	const struct rgate_completion c = next_of(cookie);
	uint32_t i;

	assert_int_equal(c.flags, RGATE_COMP_MORE);
	assert_in_range(c.result, 1, SLOT);
	for (i = 0; i < (uint32_t)c.result; i++)
		assert_int_equal(mem[AT + slot * SLOT + i], pattern(from + i));
	return (uint32_t)c.result;
}

/* A stream into slots: as it was sent, whatever becomes of the connection meanwhile */
static void receives(void **state)
{
	uint32_t h, slot = 0, sent, got = 0;
	int fd;

	(void)state;
	ACCEPTS(7, 2);
	fd = connects(0);
	h = came(7);
	ends(7, -ENOBUFS);
	assert_int_equal(who_is(h), 0);
	begin((struct rgate_request){
		.op = RGATE_REQ_SOCKET_RECV, .cookie = 8, .handle = h, .a1 = SLOTS + 1,
		.flags = RGATE_REQ_MULTI, .off = AT, .len = SLOTS * SLOT });
	sends(fd, 0, 5000);
	got += takes(8, slot++, got);
	assert_int_equal(kill(r[1].pid, SIGSTOP), 0);
	sends(fd, 5000, 8000);
	wait_for(!ringgated_sees(&r[0]));
	sends(fd, 13000, 3000);
	assert_int_equal(kill(r[1].pid, SIGCONT), 0);
	sent = 16000;
	while (got < sent)
		got += takes(8, slot++, got);
	sends(fd, sent, 100);
	got += takes(8, slot++, got);
	close(fd);
	ends(8, 0);
	assert_int_equal(got, sent + 100);
}

/* What is sent there, which is a part of it at least */
static uint32_t gets(int fd, uint32_t from, uint32_t most)
{
	static uint8_t bytes[60000];
	ssize_t n, i;

	n = recv(fd, bytes, most < sizeof(bytes) ? most : sizeof(bytes), 0);
	assert_true(n > 0);
	for (i = 0; i < n; i++)
		assert_int_equal(bytes[i], pattern(from + (uint32_t)i));
	return (uint32_t)n;
}

/* The connection of the nodes breaks, with whatever is under way. */
static void breaks(void)
{
	assert_int_equal(kill(r[1].pid, SIGSTOP), 0);
	wait_for(!ringgated_sees(&r[0]));
	assert_int_equal(kill(r[1].pid, SIGCONT), 0);
}

/* Each of them takes far more than a message has room for, both ways. */
static void moves(void **state)
{
	uint32_t h, sent = 0, got = 0, came_back = 0, i, b;
	int fd, n;

	(void)state;
	ACCEPTS(7, 2);
	fd = connects(0);
	h = came(7);
	ends(7, -ENOBUFS);
	assert_int_equal(who_is(h), 0);
	for (i = 0; i < 20; i++) {
		if (i == 10)
			breaks();
		for (b = 0; b < 50000; b++)
			mem[AT + b] = pattern(sent + b);
		begin((struct rgate_request){
			.op = RGATE_REQ_SOCKET_SEND, .cookie = 8, .handle = h, .off = AT,
			.len = 50000 });
		if (i == 15)
			breaks();
		n = next_of(8).result;
		assert_in_range(n, 1, 50000);
		for (sent += (uint32_t)n; got < sent;)
			got += gets(fd, got, sent - got);
		begin((struct rgate_request){
			.op = RGATE_REQ_SOCKET_RECV, .cookie = 9, .handle = h, .off = AT,
			.a0 = RGATE_SOCKET_ALL, .len = 48000 });
		for (b = 0; b < 48000; b += 8000)
			sends(fd, came_back + b, 8000);
		if (i == 5)
			breaks();
		assert_int_equal(next_of(9).result, 48000);
		for (b = 0; b < 48000; b++)
			assert_int_equal(mem[AT + b], pattern(came_back + b));
		came_back += 48000;
	}
	close(fd);
}

/* The program ends: all that it had accepted, and heard of or not, is closed. */
static void program_ends(void **state)
{
	int fd[2];

	(void)state;
	ACCEPTS(7, 50);
	fd[0] = connects(0);
	(void)came(7);
	fd[1] = connects(1);
	rgate_session_close(session);
	session = NULL;
	closed(fd[0]);
	closed(fd[1]);
	wait_for(!ringgated_count(&r[0], "handles"));
}

static void node_ends(void **state)
{
	struct rgate_completion c;
	int fd[2];

	(void)state;
	ACCEPTS(7, 50);
	fd[0] = connects(0);
	(void)came(7);
	fd[1] = connects(1);
	(void)ringgated_stop(&r[1], SIGKILL);
	closed(fd[0]);
	closed(fd[1]);
	wait_for(!ringgated_count(&r[0], "handles"));
	/* what had come is there, and then nothing is */
	while (!next_completion(&c))
		assert_int_equal(c.flags, RGATE_COMP_MORE);
	assert_int_equal(next_completion(&c), -EPIPE);
}

static void gateway_ends(void **state)
{
	char text[128];
	int fd[2];

	(void)state;
	ACCEPTS(7, 50);
	fd[0] = connects(0);
	(void)came(7);
	fd[1] = connects(1);
	(void)came(7);
	(void)ringgated_stop(&r[0], SIGKILL);
	closed(fd[0]);
	closed(fd[1]);
	snprintf(text, sizeof(text), "allow any socket\nnode 1 user:%u\n", geteuid());
	ringgated_start(&r[0], text, -1);
	ends(7, -ECONNRESET);
	ACCEPTS(8, 50);
	ends(8, -ECONNRESET);
}

#define BED(name)	cmocka_unit_test_setup_teardown(name, up, down)

static const struct CMUnitTest tests[] = {
	BED(many), BED(goes_on), BED(receives), BED(moves), BED(program_ends), BED(node_ends),
	BED(gateway_ends),
};

UNIT_MAIN(tests)
