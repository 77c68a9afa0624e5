// SPDX-License-Identifier: MIT OR GPL-2.0
/* Sockets of programs whose gateway was another one: what they are then, and what is heard. */
#include "datagram_bed.h"

#include "client_quiet.h"

/* ---- What the gateway says ---- */

#define BOUND		1000U	/* in the log, among options */
#define LISTENS		1001U

/* Ends of @lose_what say that it was another one, so many; and so do calls */
static atomic_uint lose, lose_what, lose_bind, lose_name, lose_options;
/* What new sockets cannot be bound for, as often as that */
static atomic_int bind_error;
static atomic_uint bind_fails;
/* What was done with the last one */
static struct {
	uint32_t what;
	int value;
} did[16];
static atomic_uint ndid;

static void log_it(uint32_t what, int value)
{
	const unsigned int n = ndid;

	unit_require(n < ARRAY_LEN(did));
	did[n].what = what;
	did[n].value = value;
	ndid = n + 1;
}

/* One of @left, which has that many */
static bool one_of(atomic_uint *left)
{
	return *left && (*left)--;
}

int __real_rgate_sockets_next(struct rgate_sockets *set, struct rgate_socket_end *end, int ms);
int __wrap_rgate_sockets_next(struct rgate_sockets *set, struct rgate_socket_end *end, int ms);
int __real_rgate_socket_bind(struct rgate_socket *s, const struct rgate_socket_addr *addr);
int __wrap_rgate_socket_bind(struct rgate_socket *s, const struct rgate_socket_addr *addr);
int __real_rgate_socket_listen(struct rgate_socket *s, unsigned int backlog);
int __wrap_rgate_socket_listen(struct rgate_socket *s, unsigned int backlog);
int __real_rgate_socket_name(struct rgate_socket *s, struct rgate_socket_addr *addr);
int __wrap_rgate_socket_name(struct rgate_socket *s, struct rgate_socket_addr *addr);
int __real_rgate_socket_setopt(struct rgate_socket *s, uint32_t option, const void *value,
			       uint32_t len);
int __wrap_rgate_socket_setopt(struct rgate_socket *s, uint32_t option, const void *value,
			       uint32_t len);
bool __real_socket_is_lost(const struct rgate_socket *s);
bool __wrap_socket_is_lost(const struct rgate_socket *s);

int __wrap_rgate_sockets_next(struct rgate_sockets *set, struct rgate_socket_end *end, int ms)
{
	const int ret = __real_rgate_sockets_next(set, end, ms);

	if (ret > 0 && end->what == lose_what && one_of(&lose)) {
		if (end->accepted)
			(void)rgate_socket_close(end->accepted);
		end->accepted = NULL;
		end->result = -ECONNRESET;
	}
	return ret;
}

int __wrap_rgate_socket_bind(struct rgate_socket *s, const struct rgate_socket_addr *addr)
{
	int err;

	if (one_of(&lose_bind))
		return -ECONNRESET;
	err = one_of(&bind_fails) ? bind_error : __real_rgate_socket_bind(s, addr);
	if (err)
		ndid = 0;
	else
		log_it(BOUND, addr->port);
	return err;
}

int __wrap_rgate_socket_listen(struct rgate_socket *s, unsigned int backlog)
{
	const int err = __real_rgate_socket_listen(s, backlog);

	if (!err)
		log_it(LISTENS, (int)backlog);
	return err;
}

int __wrap_rgate_socket_name(struct rgate_socket *s, struct rgate_socket_addr *addr)
{
	return one_of(&lose_name) ? -ECONNRESET : __real_rgate_socket_name(s, addr);
}

int __wrap_rgate_socket_setopt(struct rgate_socket *s, uint32_t option, const void *value,
			       uint32_t len)
{
	int on;

	unit_require(len == sizeof(on));
	memcpy(&on, value, sizeof(on));
	log_it(option, on);
	return __real_rgate_socket_setopt(s, option, value, len);
}

bool __wrap_socket_is_lost(const struct rgate_socket *s)
{
	return one_of(&lose_options) || __real_socket_is_lost(s);
}

static int set_up(void **state)
{
	lose = lose_bind = lose_name = lose_options = bind_fails = ndid = 0;
	return up(state);
}

static void set(int fd, uint32_t option, int value)
{
	struct agent_ask q = { .what = AGENT_SETOPT, .a = option, .len = sizeof(value) };

	memcpy(q.value, &value, sizeof(value));
	assert_int_equal(ask(q, fd, NULL, NULL), 0);
}

static void check_did(unsigned int i, uint32_t what, int value)
{
	assert_true(i < ndid);
	assert_int_equal(did[i].what, what);
	assert_int_equal(did[i].value, value);
}

/* ---- Who listens ---- */

static void readable(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	assert_int_equal(poll(&p, 1, 30000), 1);
}

/* The next connection to @listener, as its program has it: with the error of none */
static int accepted(int listener, uint32_t *error)
{
	struct sockaddr_un un;
	struct agent_name name;
	socklen_t len = sizeof(un);
	int fd;

	readable(listener);
	fd = accept(listener, (struct sockaddr *)&un, &len);
	assert_true(fd >= 0);
	assert_true(len >= offsetof(struct sockaddr_un, sun_path) + sizeof(name));
	memcpy(&name, un.sun_path, sizeof(name));
	*error = name.error;
	return fd;
}

static void serves(int listener, uint16_t port)
{
	int peer = outside(port), got;
	uint32_t error;
	char byte = 0;

	got = accepted(listener, &error);
	assert_int_equal(error, 0);
	assert_int_equal(write(peer, "?", 1), 1);
	readable(got);
	assert_int_equal(read(got, &byte, 1), 1);
	assert_int_equal(byte, '?');
	close(got);
	assert_int_equal(read(peer, &byte, 1), 0);
	close(peer);
}

/* A listener with options, at @port */
static int listening_with(uint16_t *port, int reuse)
{
	int fd = new_socket();

	set(fd, RGATE_SOCKET_KEEPALIVE, 0);
	if (reuse)
		set(fd, RGATE_SOCKET_REUSEADDR, reuse);
	set(fd, RGATE_SOCKET_TCP_NODELAY, 1);
	set(fd, RGATE_SOCKET_KEEPALIVE, 1);
	assert_int_equal(ASK(fd, NULL, NULL, .what = AGENT_BIND, .addr = loop_at(0)), 0);
	assert_int_equal(ASK(fd, NULL, NULL, .what = AGENT_LISTEN, .a = 4), 0);
	*port = port_of(fd);
	return fd;
}

static void lose_listener(uint16_t port)
{
	ndid = 0;
	lose_what = RGATE_SOCKET_DO_ACCEPT;
	lose = 1;
	close(outside(port));
	eventually(!lose);
}

/* At the same port, with the options in the order in which they came, and it accepts again. */
static void listens(void **state)
{
	uint16_t port;
	int reuse, fd;
	unsigned int n;

	(void)state;
	for (reuse = 0; reuse < 2; reuse++) {
		fd = listening_with(&port, reuse);
		/* Linux has the port free of its connections, which are here still, only so. */
		if (reuse)
			serves(fd, port);
		bind_error = -EADDRINUSE;
		bind_fails = 2;
		lose_listener(port);
		eventually(ndid == 6U + (unsigned int)reuse);
		n = 0;
		check_did(n++, RGATE_SOCKET_KEEPALIVE, 1);
		if (reuse)
			check_did(n++, RGATE_SOCKET_REUSEADDR, 1);
		check_did(n++, RGATE_SOCKET_TCP_NODELAY, 1);
		check_did(n++, RGATE_SOCKET_REUSEADDR, 1);
		check_did(n++, BOUND, port);
		check_did(n++, LISTENS, 4);
		check_did(n++, RGATE_SOCKET_REUSEADDR, reuse);
		serves(fd, port);
		serves(fd, port);
		close(fd);
		all_gone();
		ndid = 0;
	}
}

/* Where it cannot be, whoever accepts is told why; what may pass is waited for. */
static void cannot_listen(void **state)
{
	static const int errs[] = { -EACCES, -EADDRNOTAVAIL };
	uint32_t error;
	uint16_t port;
	unsigned int i;
	int fd, got;

	(void)state;
	for (i = 0; i < ARRAY_LEN(errs); i++) {
		fd = listening_with(&port, 0);
		bind_error = errs[i];
		bind_fails = 1;
		lose_listener(port);
		got = accepted(fd, &error);
		assert_int_equal(error, -errs[i]);
		close(got);
		close(fd);
		all_gone();
		ndid = 0;
	}
}

/* ---- Who has no peer yet ---- */

static void is_asked_anew(void **state)
{
	struct agent_answer answer;
	int fd = new_socket();

	(void)state;
	set(fd, RGATE_SOCKET_KEEPALIVE, 1);
	ndid = 0;
	lose_bind = 1;
	assert_int_equal(ASK(fd, NULL, NULL, .what = AGENT_BIND, .addr = loop_at(0)), 0);
	check_did(0, RGATE_SOCKET_KEEPALIVE, 1);
	assert_int_equal(ASK(fd, NULL, NULL, .what = AGENT_LISTEN, .a = 4), 0);
	assert_int_equal(ASK(fd, &answer, NULL, .what = AGENT_NAME), 0);
	serves(fd, answer.addr.port);
	close(fd);
	all_gone();
}

/* It connects once more, if that had not begun before the gateway went. */
static void connects(void **state)
{
	uint16_t port;
	int listener = server(&port), fd = new_socket(), peer;
	char byte = 0;

	(void)state;
	lose_what = RGATE_SOCKET_DO_CONNECT;
	lose = lose_name = lose_options = 1;
	assert_int_equal(ASK(fd, NULL, NULL, .what = AGENT_CONNECT, .addr = loop_at(port)), 0);
	assert_int_equal(lose + lose_name + lose_options, 0);
	/* the one that the lost one had made, and its */
	close(accept(listener, NULL, NULL));
	peer = accept(listener, NULL, NULL);
	assert_int_equal(write(fd, "!", 1), 1);
	assert_int_equal(read(peer, &byte, 1), 1);
	assert_int_equal(byte, '!');
	close(peer);
	close(fd);
	all_gone();
	fd = new_socket();
	lose = lose_name = 1;
	assert_int_equal(ASK(fd, NULL, NULL, .what = AGENT_CONNECT, .addr = loop_at(port)),
			 -ENETDOWN);
	close(fd);
	/* the peer's */
	fd = new_socket();
	lose = 1;
	assert_int_equal(ASK(fd, NULL, NULL, .what = AGENT_CONNECT, .addr = loop_at(port)),
			 -ECONNRESET);
	close(fd);
	close(listener);
	all_gone();
}

/* What it is told then says nothing of before: its answer is waited for. */
static void is_set_meanwhile(void **state)
{
	const struct sockaddr_in any = {
		.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
	int fd = new_socket(), listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), first;
	struct sockaddr_in at;
	socklen_t len = sizeof(at);

	(void)state;
	assert_int_equal(bind(listener, (const struct sockaddr *)&any, sizeof(any)), 0);
	assert_int_equal(listen(listener, 0), 0);
	assert_int_equal(getsockname(listener, (struct sockaddr *)&at, &len), 0);
	/* The only one that there is room for */
	first = outside(ntohs(at.sin_port));
	set(fd, RGATE_SOCKET_TCP_NODELAY, 1);
	assert_int_equal(ndid, 0);
	assert_int_equal(ASK(fd, NULL, NULL, .what = AGENT_CONNECT, .a = AGENT_NONBLOCK,
			     .addr = loop_at(ntohs(at.sin_port))), -EINPROGRESS);
	set(fd, RGATE_SOCKET_TCP_NODELAY, 0);
	assert_int_equal(ndid, 1);
	check_did(0, RGATE_SOCKET_TCP_NODELAY, 0);
	close(fd);
	close(first);
	close(listener);
	all_gone();
}

/* ---- Datagrams ---- */

static uint16_t free_port(void)
{
	uint16_t port;

	close(outer(&port));
	return port;
}

static void lose_receive(int peer, uint16_t port)
{
	lose_what = RGATE_SOCKET_DO_RECV;
	lose = 1;
	outer_send(peer, port, "lost", 4);
	eventually(!lose);
}

/* At the port that its program has chosen; one that nobody has need not be the same. */
static void is_bound(void **state)
{
	uint16_t port = free_port(), at;
	int fd = new_udp(AF_INET), peer = outer(&at);
	struct rgate_socket_addr from;
	char word[8];
	bool chosen;

	(void)state;
	for (chosen = true; ; chosen = false) {
		port = bind_udp(fd, chosen ? port : 0);
		bind_error = -EADDRINUSE;
		bind_fails = chosen;
		lose_receive(peer, port);
		send_to(fd, at, "again", 5);
		if (chosen)
			assert_int_equal(outer_recv(peer, "again", 5), port);
		else
			port = outer_recv(peer, "again", 5);
		assert_int_equal(port_of(fd), port);
		outer_send(peer, port, "yes", 3);
		assert_int_equal(recv_from(fd, &from, word, sizeof(word)), 3);
		assert_int_equal(from.port, at);
		close(fd);
		if (!chosen)
			break;
		fd = new_udp(AF_INET);
	}
	close(peer);
	all_gone();
}

/* To whom it was, and from nobody else; what was on its way is sent. */
static void is_connected(void **state)
{
	uint16_t at, other_at, port;
	int fd = new_udp(AF_INET), peer = outer(&at), other = outer(&other_at);
	char word[8];

	(void)state;
	assert_int_equal(connect_udp(fd, at), 0);
	lose_receive(peer, port_of(fd));
	send_to(fd, 0, "again", 5);
	port = outer_recv(peer, "again", 5);
	eventually(port_of(fd) == port);
	outer_send(other, port, "no", 2);
	outer_send(peer, port, "yes", 3);
	assert_int_equal(recv_from(fd, NULL, word, sizeof(word)), 3);
	lose_what = RGATE_SOCKET_DO_SEND;
	lose = 1;
	send_to(fd, 0, "twice", 5);
	(void)outer_recv(peer, "twice", 5);
	(void)outer_recv(peer, "twice", 5);
	close(fd);
	close(peer);
	close(other);
	all_gone();
}

static void cannot_be_bound(void **state)
{
	uint16_t at, port = free_port();
	int fd = new_udp(AF_INET), peer = outer(&at);
	char word[8];

	(void)state;
	assert_int_equal(bind_udp(fd, port), port);
	bind_error = -EACCES;
	bind_fails = 1;
	lose_receive(peer, port);
	assert_int_equal(recv_from(fd, NULL, word, sizeof(word)), -EACCES);
	assert_int_equal(recv_from(fd, NULL, word, sizeof(word)), -EPIPE);
	close(fd);
	close(peer);
	all_gone();
}

#define TEST(name)	cmocka_unit_test_setup_teardown(name, set_up, down)

static const struct CMUnitTest tests[] = {
	TEST(listens), TEST(cannot_listen), TEST(is_asked_anew), TEST(connects),
	TEST(is_set_meanwhile), TEST(is_bound), TEST(is_connected), TEST(cannot_be_bound),
};

UNIT_MAIN(tests)
