// SPDX-License-Identifier: MIT OR GPL-2.0
/* What the agent of programs' sockets is asked, by programs that lie, and take all there is. */
#include <sys/resource.h>

#include "agent_bed.h"

/* What the kernel says of its own sockets is said of these. */
static void as_the_kernel(void **state)
{
	const struct rgate_socket_linger odd = { .on = 7, .seconds = 8 };
	struct rgate_socket_linger linger;
	struct rgate_socket_addr any;
	struct agent_answer answer;
	struct agent_ask q = { .what = AGENT_SETOPT, .a = RGATE_SOCKET_LINGER,
			       .len = sizeof(odd) };
	uint16_t port;
	int fd = listening(&port), to = new_socket();

	(void)state;
	/* One that listens is as good as connected. */
	assert_int_equal(ASK(fd, NULL, NULL, .what = AGENT_CONNECT, .addr = loop_at(port)),
			 -EISCONN);
	/* Whom it is connected to has an address. */
	any = loop_at(port);
	memset(any.addr, 0, 4);
	assert_int_equal(ASK(to, NULL, NULL, .what = AGENT_CONNECT, .addr = any), 0);
	assert_int_equal(ASK(to, &answer, NULL, .what = AGENT_PEER), 0);
	any = loop_at(port);
	assert_memory_equal(&answer.addr, &any, sizeof(any));
	/* A switch is on, or off. */
	memcpy(q.value, &odd, sizeof(odd));
	assert_int_equal(ask(q, fd, NULL, NULL), 0);
	assert_int_equal(ASK(fd, &answer, NULL, .what = AGENT_GETOPT, .a = RGATE_SOCKET_LINGER,
			     .len = sizeof(linger)), 0);
	memcpy(&linger, answer.value, sizeof(linger));
	assert_int_equal(linger.on, 1);
	assert_int_equal(linger.seconds, 8);
	close(to);
	close(fd);
	eventually(info_now().now == 0);
}

static int option_of(int fd, uint32_t which)
{
	struct agent_answer answer;
	int value, err = ASK(fd, &answer, NULL, .what = AGENT_GETOPT, .a = which,
			     .len = sizeof(int));

	if (err)
		return err;
	assert_int_equal(answer.len, sizeof(int));
	memcpy(&value, answer.value, sizeof(value));
	return value;
}

static int set_option(int fd, uint32_t which, int value, uint32_t len)
{
	struct agent_ask q = { .what = AGENT_SETOPT, .a = which, .len = len };

	memcpy(q.value, &value, sizeof(value));
	return ask(q, fd, NULL, NULL);
}

/* Of a socket's, and of what is not connected yet */
static void options(void **state)
{
	static const uint32_t switches[] = {
		RGATE_SOCKET_TCP_NODELAY, RGATE_SOCKET_TCP_CORK, RGATE_SOCKET_TCP_QUICKACK,
		RGATE_SOCKET_KEEPALIVE,
	};
	uint16_t port;
	int peer = -1, listener = server(&port), fd = new_socket(), six, udp;
	unsigned int i;

	(void)state;
	assert_int_equal(ASK(-1, NULL, &six, .what = AGENT_SOCKET, .a = AF_INET6), 0);
	assert_int_equal(ASK(-1, NULL, &udp, .what = AGENT_SOCKET, .a = AF_INET,
			     .b = AGENT_DATAGRAM), 0);
	assert_int_equal(option_of(fd, RGATE_SOCKET_DOMAIN), AF_INET);
	assert_int_equal(option_of(six, RGATE_SOCKET_DOMAIN), AF_INET6);
	assert_int_equal(option_of(udp, RGATE_SOCKET_DOMAIN), AF_INET);
	for (i = 0; i < 2; i++) {
		unsigned int k;

		for (k = 0; k < ARRAY_LEN(switches); k++) {
			assert_int_equal(set_option(fd, switches[k], 1, sizeof(int)), 0);
			assert_true(option_of(fd, switches[k]) > 0);
			/* a byte too few is told, whoever knows it */
			assert_int_equal(set_option(fd, switches[k], 1, sizeof(int) - 1), -EINVAL);
		}
		assert_int_equal(set_option(fd, RGATE_SOCKET_TCP_NODELAY, 0, sizeof(int)), 0);
		assert_int_equal(set_option(fd, RGATE_SOCKET_TCP_CORK, 0, sizeof(int)), 0);
		assert_int_equal(option_of(fd, RGATE_SOCKET_TCP_NODELAY), 0);
		assert_true(set_option(fd, 9999, 1, sizeof(int)) < 0);
		assert_true(option_of(fd, 9999) < 0);
		assert_int_equal(set_option(fd, RGATE_SOCKET_LINGER, 1, sizeof(int)), -EINVAL);
		/* what is not for UDP is told by whoever has it */
		assert_true(set_option(udp, RGATE_SOCKET_TCP_NODELAY, 1, sizeof(int)) < 0);
		if (i)
			break;
		assert_int_equal(ASK(fd, NULL, NULL, .what = AGENT_CONNECT,
				     .addr = loop_at(port)), 0);
		peer = accept(listener, NULL, NULL);
		assert_true(peer >= 0);
	}
	close(listener);
	assert_int_equal(option_of(fd, RGATE_SOCKET_ERROR_CODE), 0);
	close(six);
	close(udp);
	close(fd);
	close(peer);
	eventually(info_now().now == 0);
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

/* At each bound of what could be a question, and one beyond: -EINVAL is a lie, and counted */
static void bounds(void **state)
{
	struct agent_ask q = { .what = AGENT_REFUSED, .a = AF_PACKET, .b = SOCK_RAW };
	struct agent_answer answer;
	uint64_t lies;

	(void)state;
	lies = info_now().lies;
	q.len = sizeof(q.value);
	assert_int_equal(ask(q, -1, NULL, NULL), 0);
	q.len++;
	assert_int_equal(ask(q, -1, NULL, NULL), -EINVAL);
	q.len = 0;
	q.what = AGENT_SOCKET - 1;
	assert_int_equal(ask(q, -1, NULL, NULL), -EINVAL);
	q.what = AGENT_RESOLVE + 1;
	assert_int_equal(ask(q, -1, NULL, NULL), -EINVAL);
	q = (struct agent_ask){ .version = AGENT_VERSION + 1, .what = AGENT_REFUSED };
	assert_int_equal(ask_raw(&q, sizeof(q), NULL, 0, &answer, NULL), sizeof(answer));
	assert_int_equal(answer.result, -EPROTONOSUPPORT);
	/* no descriptor, or one that is not its */
	assert_int_equal(ASK(-1, NULL, NULL, .what = AGENT_NAME), -ENOTSOCK);
	eventually(info_now().lies >= lies + 5);
	assert_int_equal(info_now().lies, lies + 5);
}

static atomic_uint warned;

static void on_log(void *ctx, enum rgate_log_level level, const char *text)
{
	(void)ctx;
	(void)level;
	warned += !strcmp(text, "a program asked for a socket of family 17 and type 3, and was refused: there are TCP and UDP alone");
}

/* What there is no socket for is counted each time, and told once. */
static void told_once(void **state)
{
	unsigned int i;

	(void)state;
	warned = 0;
	rgate_log_set(on_log, NULL);
	for (i = 0; i < 3; i++) {
		assert_int_equal(ASK(-1, NULL, NULL, .what = AGENT_REFUSED, .a = 17, .b = 3), 0);
		assert_int_equal(warned, 1);
	}
	eventually(info_now().refused == 3);
	rgate_log_set(NULL, NULL);
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
	snprintf(un.sun_path, sizeof(un.sun_path), "%s/65535", agent_dir(agent));
	assert_int_equal(bind(fd, (struct sockaddr *)&un, sizeof(un)), 0);
	assert_int_equal(ASK(fd, NULL, NULL, .what = AGENT_LISTEN, .a = 1), -EINVAL);
	assert_int_equal(ASK(fd, NULL, NULL, .what = AGENT_NAME), -ENOTCONN);
	close(fd);
	unlink(un.sun_path);
	still_works();
}

/* Each has one name, and what only reads like it is another one's. */
static void near_names(void **state)
{
	static const char *const near[] = {
		"0x%llx", "0X%llX", "+%llu", " %llu", "0%llu", "%llu ", "%llu.", "-%llu", "%llu/",
		"9%019llu",
	};
	struct sockaddr_un un;
	socklen_t len = sizeof(un);
	struct agent_answer answer;
	unsigned long long id;
	uint16_t port;
	int mine = listening(&port), fd;
	size_t i, dir = strlen(agent_dir(agent)) + 1;

	(void)state;
	assert_int_equal(getsockname(mine, (struct sockaddr *)&un, &len), 0);
	id = strtoull(un.sun_path + dir, NULL, 10);
	assert_int_not_equal(id, 0);
	for (i = 0; i < sizeof(near) / sizeof(near[0]); i++) {
		fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
		memset(un.sun_path + dir, 0, sizeof(un.sun_path) - dir);
		snprintf(un.sun_path + dir, sizeof(un.sun_path) - dir, near[i], id);
		if (!bind(fd, (struct sockaddr *)&un, sizeof(un)))
			assert_int_equal(ASK(fd, &answer, NULL, .what = AGENT_NAME), -ENOTSOCK);
		close(fd);
		unlink(un.sun_path);
	}
	assert_int_equal(ASK(mine, &answer, NULL, .what = AGENT_NAME), 0);
	assert_int_equal(answer.addr.port, port);
	close(mine);
	eventually(info_now().now == 0);
}

/* Its name is gone, but it is open: looking for those that are closed does not take it away. */
static void unnamed(void **state)
{
	struct sockaddr_un un;
	socklen_t len = sizeof(un);
	uint16_t port;
	int taken = listening(&port), fd = new_socket(), err;

	(void)state;
	assert_int_equal(getsockname(fd, (struct sockaddr *)&un, &len), 0);
	assert_int_equal(unlink(un.sun_path), 0);
	/* The agent may have looked for sockets that nobody has any more, and found this one. */
	err = ASK(fd, NULL, NULL, .what = AGENT_BIND, .addr = loop_at(port));
	assert_true(err == -EADDRINUSE || err == -EINVAL);
	close(taken);
	close(fd);
	eventually(info_now().now == 0);
}

static void silent_askers(void **state)
{
	int fds[300], n, i;

	(void)state;
	for (n = 0; n < 300; n++)
		fds[n] = call_at(AGENT_CONTROL "1", SOCK_SEQPACKET);
	still_works();
	for (i = 0; i < n; i++)
		close(fds[i]);
}

/* Connects may take minutes: who waits for one keeps nobody else from asking. */
static void waiting_askers(void **state)
{
	struct agent_ask q = { .version = AGENT_VERSION, .what = AGENT_CONNECT };
	int fd = new_socket(), full = -1, other = -1, socks[300], i, made;
	uint16_t port;

	(void)state;
	full = server(&port);
	assert_int_equal(listen(full, 0), 0);
	/* Its backlog is full: what comes then has no answer. */
	other = outside(port);
	q.addr = loop_at(port);
	for (i = 0; i < 300; i++) {
		socks[i] = call_at(AGENT_CONTROL "1", SOCK_SEQPACKET);
		assert_int_equal(rgate_wire_send(socks[i], &q, sizeof(q), &fd, 1, 0), 0);
	}
	made = new_socket();
	close(made);
	for (i = 0; i < 300; i++)
		close(socks[i]);
	close(fd);
	close(full);
	close(other);
	eventually(info_now().now == 0);
	still_works();
}

/* There is no descriptor to accept one: that is waited for, and not asked over and over. */
static void asker_comes_late(void **state)
{
	struct agent_ask q = { .version = AGENT_VERSION, .what = AGENT_SOCKET, .a = AF_INET };
	int sock = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0), probe = dup(0);
	int got[RGATE_FDS];
	struct sockaddr_un un = { .sun_family = AF_UNIX };
	struct agent_answer answer;
	struct rlimit before, few;
	unsigned int then, n = 0;

	(void)state;
	close(probe);
	snprintf(un.sun_path, sizeof(un.sun_path), "%s/" AGENT_CONTROL "1", agent_dir(agent));
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	few = before;
	few.rlim_cur = (rlim_t)probe;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
	assert_int_equal(connect(sock, (struct sockaddr *)&un, sizeof(un)), 0);
	then = turns;
	usleep(500000);
	then = turns - then;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
	assert_true(then < 300);
	assert_int_equal(rgate_wire_send(sock, &q, sizeof(q), NULL, 0, 0), 0);
	answers_in_time(sock);
	assert_int_equal(rgate_wire_recv(sock, &answer, sizeof(answer), got, &n, 0),
			 sizeof(answer));
	assert_int_equal(n, 1);
	close(got[0]);
	close(sock);
	eventually(info_now().now == 0);
}

/* A message of no bytes has nothing that is kept, either. */
static void empty_message(void **state)
{
	int pair[2], sock = call_at(AGENT_CONTROL "1", SOCK_SEQPACKET);
	struct pollfd p;

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
	assert_int_equal(rgate_wire_send(sock, "", 0, &pair[0], 1, 0), 0);
	close(pair[0]);
	p = (struct pollfd){ .fd = pair[1], .events = POLLIN };
	assert_int_equal(poll(&p, 1, 10000), 1);
	assert_true(p.revents & POLLHUP);
	close(pair[1]);
	close(sock);
	still_works();
}

/* Where only the agent's own connections are nobody else can come. */
static void no_strangers(void **state)
{
	struct sockaddr_un un = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), i;

	(void)state;
	snprintf(un.sun_path, sizeof(un.sun_path), "%s/" AGENT_DATA, agent_dir(agent));
	assert_int_equal(connect(fd, (struct sockaddr *)&un, sizeof(un)), -1);
	assert_int_equal(errno, ENOENT);
	/* Who is there instead is nothing to the agent, nor does who waits there wait for it. */
	assert_int_equal(bind(fd, (struct sockaddr *)&un, sizeof(un)), 0);
	assert_int_equal(listen(fd, 0), 0);
	for (i = 0; i < 3; i++)
		still_works();
	close(fd);
	unlink(un.sun_path);
}

/* Nobody accepts: that is waited for by who connects, if he wants to, and never by the agent. */
static void full_backlog(void **state)
{
	struct sockaddr_un un = { .sun_family = AF_UNIX };
	struct agent_answer answer;
	int waits, fds[8], n, err = 0;
	uint16_t port;
	uint64_t id;

	(void)state;
	waits = listening(&port);
	for (n = 0; n < 8 && !err; n++) {
		fds[n] = new_socket();
		assert_int_equal(ASK(fds[n], &answer, NULL, .what = AGENT_CONNECT,
				     .addr = loop_at(port)), 0);
		assert_int_equal(answer.len, sizeof(id));
		memcpy(&id, answer.value, sizeof(id));
		snprintf(un.sun_path, sizeof(un.sun_path), "%s/%llu", agent_dir(agent),
			 (unsigned long long)id);
		assert_int_equal(fcntl(fds[n], F_SETFL, O_NONBLOCK), 0);
		err = connect(fds[n], (struct sockaddr *)&un, sizeof(un)) < 0 ? errno : 0;
		assert_int_equal(ASK(fds[n], &answer, NULL, .what = AGENT_PEER),
				 err ? -ENOTCONN : 0);
	}
	assert_int_equal(err, EAGAIN);
	close(accept(waits, NULL, NULL));
	/* He may ask again. */
	assert_int_equal(ASK(fds[n - 1], &answer, NULL, .what = AGENT_CONNECT,
			     .addr = loop_at(port)), 0);
	assert_int_equal(connect(fds[n - 1], (struct sockaddr *)&un, sizeof(un)), 0);
	assert_int_equal(ASK(fds[n - 1], NULL, NULL, .what = AGENT_CONNECT, .addr = loop_at(port)),
			 -EISCONN);
	while (n)
		close(fds[--n]);
	close(waits);
	eventually(info_now().now == 0);
}

/* ---- Names ---- */

static struct agent_ask name_ask(const char *name)
{
	struct agent_ask q = { .version = AGENT_VERSION, .what = AGENT_RESOLVE,
			       .len = (uint32_t)strlen(name) };

	memcpy(q.value, name, q.len);
	return q;
}

static bool is_loop(const struct agent_answer *answer)
{
	struct rgate_socket_addr a;
	uint32_t i;

	assert_int_equal(answer->found * sizeof(a) <= answer->len, true);
	for (i = 0; i < answer->found; i++) {
		memcpy(&a, answer->value + i * sizeof(a), sizeof(a));
		if (a.family == AF_INET && !memcmp(a.addr, loop_at(0).addr, 16))
			return true;
	}
	return false;
}

static void names(void **state)
{
	struct agent_answer answer;
	struct agent_ask q = name_ask("127.0.0.1");

	(void)state;
	assert_int_equal(ask(q, -1, &answer, NULL), 0);
	assert_true(is_loop(&answer));
	assert_int_equal(answer.found, 1);
	assert_int_equal(answer.len, sizeof(answer.addr));
	q.b = RGATE_SOCKET_RESOLVE_CANON;
	assert_int_equal(ask(q, -1, &answer, NULL), 0);
	assert_int_equal(answer.len, sizeof(answer.addr) + 9);
	assert_memory_equal(answer.value + sizeof(answer.addr), "127.0.0.1", 9);
	q.a = AF_INET6;
	assert_int_equal(ask(q, -1, &answer, NULL), -EADDRNOTAVAIL);
	assert_int_equal(ask(name_ask("localhost"), -1, &answer, NULL), 0);
	assert_true(is_loop(&answer));
	still_works();
}

static void no_names(void **state)
{
	struct agent_ask q = name_ask("");
	struct agent_answer answer;

	(void)state;
	assert_int_equal(ask(q, -1, &answer, NULL), -EINVAL);
	memset(q.value, 'a', sizeof(q.value));
	q.len = sizeof(q.value);
	assert_int_equal(ask(q, -1, &answer, NULL), -ENAMETOOLONG);
	q.len = 8;
	q.value[3] = 0;
	assert_int_equal(ask(q, -1, &answer, NULL), -EILSEQ);
	q.value[3] = '!';
	assert_int_equal(ask(q, -1, &answer, NULL), -EILSEQ);
	q = name_ask("localhost");
	q.b = UINT32_MAX;
	assert_int_equal(ask(q, -1, &answer, NULL), -EINVAL);
	q = name_ask("localhost");
	q.a = 77;
	assert_true(ask(q, -1, &answer, NULL) < 0);
	still_works();
}

/* More than there are places: all of them have their turn, and some go before they are answered */
static void many_names(void **state)
{
	const struct agent_ask q = name_ask("127.0.0.1");
	struct agent_answer answer;
	int socks[200], i, known = 0;

	(void)state;
	pthread_mutex_lock(&turn);
	for (i = 0; i < 200; i++) {
		socks[i] = call_at(AGENT_CONTROL "1", SOCK_SEQPACKET);
		assert_int_equal(rgate_wire_send(socks[i], &q, sizeof(q), NULL, 0, 0), 0);
	}
	pthread_mutex_unlock(&turn);
	for (i = 0; i < 200; i++) {
		if (i % 3) {
			answers_in_time(socks[i]);
			assert_int_equal(rgate_wire_recv(socks[i], &answer, sizeof(answer), NULL,
							 NULL, 0), sizeof(answer));
			assert_int_equal(answer.result, 0);
			assert_true(is_loop(&answer));
			known++;
		}
		close(socks[i]);
	}
	assert_int_equal(known, 133);
	still_works();
}

/* The agent ends while one waits. */
static void names_end(void **state)
{
	const struct agent_ask q = name_ask("nobody.invalid");
	int sock = call_at(AGENT_CONTROL "1", SOCK_SEQPACKET);

	assert_int_equal(rgate_wire_send(sock, &q, sizeof(q), NULL, 0, 0), 0);
	(void)down(state);
	close(sock);
	(void)up(state);
	still_works();
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

/* Sessions come with many sockets, with places left for whom these accept; and go with them. */
static void sessions(void **state)
{
	static int fds[3100];
	struct rlimit before, most;
	int i;

	(void)state;
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	most = before;
	most.rlim_cur = most.rlim_max;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &most), 0);
	if (most.rlim_cur < 8000)
		unit_skip("there are not enough descriptors");
	for (i = 0; i < 3100; i++)
		fds[i] = new_socket();
	eventually(info_now().sessions == 2);
	still_works();
	for (i = 0; i < 3100; i++)
		close(fds[i]);
	eventually(info_now().now == 0);
	eventually(info_now().sessions == 1);
	still_works();
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
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

static const struct CMUnitTest tests[] = {
	cmocka_unit_test_setup_teardown(as_the_kernel, up, down),
	cmocka_unit_test_setup_teardown(options, up, down),
	cmocka_unit_test_setup_teardown(garbage, up, down),
	cmocka_unit_test_setup_teardown(bounds, up, down),
	cmocka_unit_test_setup_teardown(told_once, up, down),
	cmocka_unit_test_setup_teardown(others_descriptors, up, down),
	cmocka_unit_test_setup_teardown(forged_name, up, down),
	cmocka_unit_test_setup_teardown(near_names, up, down),
	cmocka_unit_test_setup_teardown(unnamed, up, down),
	cmocka_unit_test_setup_teardown(unnamed, up_own, down),
	cmocka_unit_test_setup_teardown(silent_askers, up, down),
	cmocka_unit_test_setup_teardown(waiting_askers, up, down),
	cmocka_unit_test_setup_teardown(asker_comes_late, up, down),
	cmocka_unit_test_setup_teardown(empty_message, up, down),
	cmocka_unit_test_setup_teardown(no_strangers, up, down),
	cmocka_unit_test_setup_teardown(full_backlog, up_own, down),
	cmocka_unit_test_setup_teardown(names, up, down),
	cmocka_unit_test_setup_teardown(no_names, up, down),
	cmocka_unit_test_setup_teardown(many_names, up, down),
	cmocka_unit_test_setup_teardown(names_end, up, down),
	cmocka_unit_test_setup_teardown(too_many, up_own, down),
	cmocka_unit_test_setup_teardown(sessions, up, down),
	cmocka_unit_test_setup_teardown(no_descriptors, up, down),
};

UNIT_MAIN(tests)
