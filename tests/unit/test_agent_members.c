// SPDX-License-Identifier: MIT OR GPL-2.0
/* An agent that has programs of several members: one loopback, and each breaks its own alone */
#include "agent_bed.h"

static struct agent_member *second;

static int up_two(uint32_t loopback)
{
	int ret = up_with(loopback, 16);

	place = AGENT_CONTROL "1";
	pthread_mutex_lock(&turn);
	assert_int_equal(agent_join(agent, &second), 0);
	pthread_mutex_unlock(&turn);
	return ret;
}

static int up_near(void **state)
{
	(void)state;
	return up_two(AGENT_LOOPBACK_OWN);
}

static int up_far(void **state)
{
	(void)state;
	return up_two(AGENT_LOOPBACK_SERVED);
}

static struct agent_info info_of(struct agent_member *m)
{
	struct agent_info info = { .sz = sizeof(info) };

	pthread_mutex_lock(&turn);
	assert_int_equal(agent_member_info(m, &info), 0);
	pthread_mutex_unlock(&turn);
	return info;
}

static void leave(struct agent_member *m)
{
	pthread_mutex_lock(&turn);
	agent_leave(m);
	pthread_mutex_unlock(&turn);
}

/* To a listener of the agent's, as the library does; the end that accepts */
static int near(int fd, int listener, uint16_t port)
{
	struct sockaddr_un un = { .sun_family = AF_UNIX };
	struct agent_answer answer;
	uint64_t id;

	assert_int_equal(ASK(fd, &answer, NULL, .what = AGENT_CONNECT, .addr = loop_at(port)), 0);
	assert_int_equal(answer.len, sizeof(id));
	memcpy(&id, answer.value, sizeof(id));
	snprintf(un.sun_path, sizeof(un.sun_path), "%s/%llu", agent_dir(agent),
		 (unsigned long long)id);
	assert_int_equal(connect(fd, (struct sockaddr *)&un, sizeof(un)), 0);
	return accept(listener, NULL, NULL);
}

static void one_loopback(void **state)
{
	struct agent_answer answer;
	uint16_t port;
	int fd, other, accepted, listener = listening(&port);
	char word[4] = "";

	(void)state;
	assert_string_equal(strrchr(agent_member_path(second), '/') + 1, AGENT_CONTROL "2");
	place = AGENT_CONTROL "2";
	other = new_socket();
	assert_int_equal(ASK(other, NULL, NULL, .what = AGENT_BIND, .addr = loop_at(port)),
			 -EADDRINUSE);
	fd = new_socket();
	accepted = near(fd, listener, port);
	assert_true(accepted >= 0);
	assert_int_equal(write(fd, "abc", 3), 3);
	assert_int_equal(read(accepted, word, 3), 3);
	assert_string_equal(word, "abc");
	/* Either member may ask about either end. */
	assert_int_equal(ASK(accepted, &answer, NULL, .what = AGENT_NAME), 0);
	assert_int_equal(answer.addr.port, port);
	place = AGENT_CONTROL "1";
	assert_int_equal(ASK(fd, &answer, NULL, .what = AGENT_PEER), 0);
	assert_int_equal(answer.addr.port, port);
	assert_int_equal(info_of(member).sockets, 1);
	assert_int_equal(info_of(member).local, 0);
	assert_int_equal(info_of(second).sockets, 2);
	assert_int_equal(info_of(second).local, 1);
	eventually(info_now().sockets == 3);
	/* What is connected between two programs stays. */
	leave(second);
	assert_int_equal(write(fd, "def", 3), 3);
	assert_int_equal(read(accepted, word, 3), 3);
	assert_string_equal(word, "def");
	eventually(info_now().sockets == 3 && info_now().now == 1);
	close(fd);
	close(other);
	close(accepted);
	close(listener);
}

static void only_its_own_break(void **state)
{
	uint16_t port;
	int peer, left_peer, outer = server(&port), fd = connected(outer, port, &peer), left, said;
	char byte;

	(void)state;
	place = AGENT_CONTROL "2";
	left = connected(outer, port, &left_peer);
	eventually(info_of(second).moving == 1 && info_of(member).moving == 1);
	assert_int_equal(info_of(member).now, 1);
	/* Somebody who has connected, and asks when it is too late */
	said = call_at(place, SOCK_SEQPACKET);
	eventually(info_now().now == 2);
	leave(second);
	assert_int_equal(recv(left, &byte, 1, 0), -1);
	assert_int_equal(errno, ECONNRESET);
	assert_int_equal(recv(left_peer, &byte, 1, 0), -1);
	assert_int_equal(errno, ECONNRESET);
	answers_in_time(said);
	assert_true(recv(said, &byte, 1, 0) <= 0);
	assert_int_equal(access(agent_member_path(member), F_OK), 0);
	place = AGENT_CONTROL "1";
	still_works();
	assert_int_equal(write(fd, "x", 1), 1);
	assert_int_equal(read(peer, &byte, 1), 1);
	close(fd);
	close(peer);
	close(left);
	close(left_peer);
	close(said);
	close(outer);
}

/* Its programs look whether the name is there, and a place is nobody else's later. */
static void its_place_is_gone(void **state)
{
	char path[AGENT_PATH_MAX];
	struct agent_member *third;

	(void)state;
	snprintf(path, sizeof(path), "%s", agent_member_path(second));
	assert_int_equal(access(path, F_OK), 0);
	leave(second);
	assert_int_equal(access(path, F_OK), -1);
	pthread_mutex_lock(&turn);
	assert_int_equal(agent_join(agent, &third), 0);
	pthread_mutex_unlock(&turn);
	assert_string_not_equal(path, agent_member_path(third));
	assert_int_equal(access(agent_member_path(third), F_OK), 0);
}

/* Who accepts at its listener is told, and its port is free; another one's listener is there. */
static void listeners(void **state)
{
	uint16_t port, kept_port;
	int kept = listening(&kept_port), listener, told, fd;
	char name[sizeof(struct sockaddr_un)];
	socklen_t len = sizeof(name);

	(void)state;
	place = AGENT_CONTROL "2";
	listener = listening(&port);
	/* One of the other member's is connected there, and known by name for a while. */
	place = AGENT_CONTROL "1";
	fd = new_socket();
	told = near(fd, listener, port);
	assert_true(told >= 0);
	leave(second);
	close(told);
	told = accept(listener, (struct sockaddr *)name, &len);
	assert_true(told >= 0);
	assert_memory_equal(name + 3, AGENT_MAGIC, 7);
	assert_int_equal(name[10], ENETDOWN);
	close(told);
	close(fd);
	fd = new_socket();
	assert_int_equal(ASK(fd, NULL, NULL, .what = AGENT_CONNECT, .addr = loop_at(port)),
			 -ECONNREFUSED);
	assert_int_equal(ASK(fd, NULL, NULL, .what = AGENT_BIND, .addr = loop_at(port)), 0);
	close(fd);
	fd = new_socket();
	told = near(fd, kept, kept_port);
	assert_true(told >= 0);
	close(told);
	close(fd);
	close(kept);
	close(listener);
}

/* A question of one member about a socket of another one waits, and that leaves. */
static void waits_elsewhere(void **state)
{
	const struct rgate_socket_addr silent = { .family = AF_INET, .port = 9,
						  .addr = { 192, 0, 2, 1 } };
	struct agent_ask q = { .version = AGENT_VERSION, .what = AGENT_CONNECT, .addr = silent };
	struct agent_answer answer = { .result = 1 };
	int sock, fd, err;

	(void)state;
	place = AGENT_CONTROL "2";
	fd = new_socket();
	err = ASK(fd, NULL, NULL, .what = AGENT_CONNECT, .a = AGENT_NONBLOCK, .addr = silent);
	if (err != -EINPROGRESS) {
		close(fd);
		skip();
	}
	place = AGENT_CONTROL "1";
	sock = call_at(place, SOCK_SEQPACKET);
	assert_int_equal(rgate_wire_send(sock, &q, sizeof(q), &fd, 1, 0), 0);
	/* It is asked, and not answered. */
	usleep(200000);
	leave(second);
	answers_in_time(sock);
	if (recv(sock, &answer, sizeof(answer), 0) == (ssize_t)sizeof(answer))
		assert_true(answer.result < 0);
	close(sock);
	/* Of a member that leaves while its own question waits */
	pthread_mutex_lock(&turn);
	assert_int_equal(agent_join(agent, &second), 0);
	pthread_mutex_unlock(&turn);
	close(fd);
	fd = new_socket();
	assert_int_equal(ASK(fd, NULL, NULL, .what = AGENT_CONNECT, .a = AGENT_NONBLOCK,
			     .addr = silent), -EINPROGRESS);
	sock = call_at(AGENT_CONTROL "3", SOCK_SEQPACKET);
	assert_int_equal(rgate_wire_send(sock, &q, sizeof(q), &fd, 1, 0), 0);
	usleep(200000);
	leave(second);
	close(sock);
	usleep(100000);
	close(fd);
	still_works();
}

#define NEAR(f)	cmocka_unit_test_setup_teardown(f, up_near, down)
#define FAR(f)	cmocka_unit_test_setup_teardown(f, up_far, down)

static const struct CMUnitTest tests[] = {
	NEAR(one_loopback), FAR(only_its_own_break), NEAR(its_place_is_gone), NEAR(listeners),
	FAR(waits_elsewhere),
};

UNIT_MAIN(tests)
