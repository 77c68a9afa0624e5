// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * An agent of programs' sockets against programs that ask anything, pass any descriptors, and write
 * to, close and leave anything, while who serves answers late, out of order, or not. Whatever they
 * do: another program is answered, and its connection goes on; who serves gets no byte that a
 * program has not sent on that socket, in its order, and no end before the last; no program hears
 * another's bytes, or an end that is none; a datagram is whole, and its sender's, or it is lost;
 * nothing is left under way, and no descriptor.
 */
#include <dirent.h>
#include <errno.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "agent_program.h"
#include "agent_raw.h"

#define STEPS		192U
#define TURNS		1500U		/* in which an agent has done what there is */
#define MS		1000000ULL
#define FEW		8U		/* sockets that an agent may have */
#define BEGIN		1000000000000ULL

/* The first byte of an input */
#define HOW_OWN_LOOPBACK	(1U << 0)
#define HOW_FEW			(1U << 1)
#define HOW_DAEMON		(1U << 2)
#define HOW_CUT			(1U << 3)	/* the agent ends in the midst of it */
#define HOW_REFUSED		(1U << 4)	/* there is no session */

static struct agent *agent;
static struct agent_member *member;
static struct agent_member *other;	/* NULL: there is none now */
static uint64_t clock_ns = BEGIN;
static unsigned int poor;		/* descriptors that the agent may open; 0: any */
static struct program_fd good;

int __real_clock_gettime(clockid_t id, struct timespec *ts);
int __wrap_clock_gettime(clockid_t id, struct timespec *ts);

int __wrap_clock_gettime(clockid_t id, struct timespec *ts)
{
	if (id != CLOCK_MONOTONIC)
		return __real_clock_gettime(id, ts);
	*ts = (struct timespec){ .tv_sec = (time_t)(clock_ns / 1000000000),
				 .tv_nsec = (long)(clock_ns % 1000000000) };
	return 0;
}

/* ---- The agent's turns ---- */

static void limit_fds(rlim_t most)
{
	struct rlimit lim;

	FUZZ_CHECK(!getrlimit(RLIMIT_NOFILE, &lim));
	lim.rlim_cur = most ? most : lim.rlim_max;
	FUZZ_CHECK(!setrlimit(RLIMIT_NOFILE, &lim));
}

/* False: the sessions are over, and so is the agent */
static bool turn(void)
{
	int err, lowest;

	if (poor) {
		lowest = dup(raw_fd(0));
		close(lowest);
		limit_fds((rlim_t)lowest + poor - 1);
	}
	FUZZ_CHECK(agent_timeout(agent) >= 0);
	err = agent_step(agent);
	if (poor)
		limit_fds(0);
	FUZZ_CHECK(!err || (err == -EPIPE && served.gone));
	return !err;
}

static struct agent_info info_now(void)
{
	struct agent_info info = { .sz = sizeof(info) };

	FUZZ_CHECK(!agent_info(agent, &info));
	return info;
}

static void check_counters(void)
{
	const struct agent_info info = info_now();

	FUZZ_CHECK(info.sent == served.sent && info.received == served.received);
	FUZZ_CHECK(info.connected <= served.connected && info.accepted <= served.accepted);
	FUZZ_CHECK(info.now <= info.sockets && info.moving <= info.now);
}

/* ---- The one that behaves ---- */

/* Until it is answered, in as many turns as there may be; -1: there is no agent any more */
static int good_ask(uint32_t what, const struct rgate_socket_addr *addr)
{
	struct agent_ask q = { .version = AGENT_VERSION, .what = what, .a = AGENT_NONBLOCK };
	struct agent_answer answer = { .result = 0 };
	int sock = program_call(AGENT_CONTROL "1", SOCK_SEQPACKET), i;

	FUZZ_CHECK(sock >= 0);
	if (addr)
		q.addr = *addr;
	program_say(sock, &q, sizeof(q), &good.fd, 1);
	for (i = 0; i < (int)TURNS && recv(sock, &answer, sizeof(answer), MSG_DONTWAIT) < 0; i++) {
		clock_ns += 10 * MS;
		if (!turn())
			i = TURNS;
	}
	close(sock);
	FUZZ_CHECK(i < (int)TURNS || served.gone);
	FUZZ_CHECK(i > (int)TURNS || answer.result == 0 || answer.result == -EINPROGRESS);
	return i > (int)TURNS ? -1 : 0;
}

static void good_begin(void)
{
	const struct rgate_socket_addr to = { .family = RGATE_SOCKET_INET, .port = 80,
					      .addr = { 10, 0, 0, 2 } };
	const struct agent_ask q = { .version = AGENT_VERSION, .what = AGENT_SOCKET,
				     .a = RGATE_SOCKET_INET };
	unsigned int asker = program_asker(program_call(AGENT_CONTROL "1", SOCK_SEQPACKET));

	program_say(program_asker_fd(asker), &q, sizeof(q), NULL, 0);
	turn();
	program_hear();
	program_asker_close(asker);
	good = program_fds[0];
	program_fds[0].fd = -1;
	FUZZ_CHECK(good.fd >= 0 && good.s);
	served.good = good.s;
	FUZZ_CHECK(!good_ask(AGENT_CONNECT, &to));
	served_end_well(good.s, true);
	turn();
	FUZZ_CHECK(good.s->stream);
}

/* It is served, though others are not, and what they ask waits. */
static void good_goes_on(void)
{
	const uint64_t got = good.got;
	unsigned int i;

	if (served.gone)
		return;
	served.refuses = 0;
	poor = 0;
	if (good_ask(AGENT_NAME, NULL))
		return;
	program_write(&good, 1);
	for (i = 0; i < TURNS; i++) {
		served_end_well(good.s, false);
		clock_ns += 10 * MS;
		FUZZ_CHECK(turn());
		program_read(&good, 1);
		if (good.s->sent == good.s->written && good.got > got)
			break;
	}
	FUZZ_CHECK(i < TURNS);
}

/* ---- Questions ---- */

static struct rgate_socket_addr some_addr(struct fuzz_in *in)
{
	static const struct rgate_socket_addr known[] = {
		{ .family = RGATE_SOCKET_INET, .addr = { 10, 0, 0, 2 } },
		{ .family = RGATE_SOCKET_INET, .addr = { 127, 0, 0, 1 } },
		{ .family = RGATE_SOCKET_INET },
		{ .family = RGATE_SOCKET_INET6, .addr = { [15] = 1 } },
		{ .family = RGATE_SOCKET_INET6 },
		{ .family = RGATE_SOCKET_INET6, .addr = { [10] = 255, 255, 127, 0, 0, 1 } },
		{ .family = 0 },
	};
	const uint8_t which = fuzz_u8(in) & 7, port = fuzz_u8(in);
	struct rgate_socket_addr a;

	if (which < 7) {
		a = known[which];
		a.port = port & 4 ? 0 : 5000 + (port & 3);
		return a;
	}
	(void)fuzz_bytes(in, &a, sizeof(a));
	return a;
}

static struct agent_ask near_right(struct fuzz_in *in)
{
	static const uint32_t lens[] = { 4, 8, 0, 1, 16, 256, 257, UINT32_MAX };
	struct agent_ask q = { .version = AGENT_VERSION };
	const uint8_t how = fuzz_u8(in);

	q.what = fuzz_u8(in) % 12;
	q.a = fuzz_u8(in);
	q.b = (how & 1) | (how >> 6 & AGENT_DATAGRAM) | (how & 64 ? AGENT_BARE : 0);
	q.len = lens[how >> 1 & 7];
	if (how & 16)
		q.version = fuzz_u32(in);
	if (how & 32)
		q.a = fuzz_u32(in);
	if (how & 64)
		(void)fuzz_bytes(in, q.value, 8);
	else
		memset(q.value, 'a', 8);
	q.addr = some_addr(in);
	return q;
}

/* Where programs of the first member ask, or of the other one */
static const char *place(bool others)
{
	return strrchr(agent_member_path(others && other ? other : member), '/') + 1;
}

/* It comes, or goes with all that its programs have. */
static void join_or_leave(void)
{
	if (other) {
		agent_leave(other);
		other = NULL;
	} else {
		FUZZ_CHECK(!agent_join(agent, &other));
	}
}

static void ask(struct fuzz_in *in)
{
	const struct agent_ask q = near_right(in);
	const uint8_t whom = fuzz_u8(in);
	struct program_fd *p = program_fd(whom);
	int fd = whom & 64 ? raw_fd(whom) : p ? p->fd : -1;
	const unsigned int asker = program_asker(program_call(place(whom & 128), SOCK_SEQPACKET));

	if (program_asker_fd(asker) < 0)
		return;
	program_say(program_asker_fd(asker), &q, sizeof(q), &fd, fd >= 0);
	if (p && fd == p->fd && q.what == AGENT_CONNECT)
		program_asker_connects(asker, p);
}

/* Any bytes, or what could be but is too short or too long, with any descriptors */
static void say_raw(struct fuzz_in *in)
{
	const uint8_t how = fuzz_u8(in), to = fuzz_u8(in);
	unsigned char msg[2 * sizeof(struct agent_ask)];
	int fds[RAW_FDS_MAX], sock = program_asker_fd(to);
	unsigned int n = raw_fds(in, fds, how & RAW_FDS_MAX);
	size_t len = fuzz_u16(in) % (sizeof(msg) + 1);
	struct agent_ask q;

	if (sock < 0)
		sock = program_asker_fd(program_asker(program_call(place(how & 32),
								   SOCK_SEQPACKET)));
	if (sock < 0)
		return;
	memset(msg, 0, sizeof(msg));
	if (how & 64) {
		q = near_right(in);
		memcpy(msg, &q, sizeof(q));
		memcpy(msg + sizeof(q), &q, sizeof(q));
	} else {
		(void)fuzz_bytes(in, msg, len);
	}
	program_say(sock, msg, how & 128 ? sizeof(q) : len, fds, n);
}

static void stop_asking(struct fuzz_in *in)
{
	const uint8_t which = fuzz_u8(in), how = fuzz_u8(in);
	const int fd = program_asker_fd(which);

	if (fd < 0)
		return;
	if (how & 1)
		program_asker_close(which);
	else
		(void)shutdown(fd, how >> 1 & 1 ? SHUT_WR : SHUT_RD);
}

/* Who connects, and says nothing, or tries to where nobody can */
static void strangers(struct fuzz_in *in)
{
	const uint8_t how = fuzz_u8(in);
	unsigned int i, n = how & 128 ? 300 : how >> 2 & 15;
	int fd;

	for (i = 0; i < n; i++) {
		fd = how & 1 ? program_call(AGENT_DATA, SOCK_STREAM) :
			       program_call(AGENT_CONTROL "1", SOCK_SEQPACKET);
		if (fd < 0)
			return;
		if (how & 2)
			close(fd);
		else
			(void)program_asker(fd);
	}
}

static void stream(struct fuzz_in *in, uint8_t what)
{
	struct program_fd *p = program_fd(fuzz_u8(in));
	const uint16_t n = fuzz_u16(in);

	if (!p)
		return;
	switch (what) {
	case 0:
		program_write(p, n & 0x8000 ? (n & 0x7fffU) << 2 : n);
		break;
	case 1:
		program_read(p, n & 0x8000 ? (n & 0x7fffU) << 2 : n);
		break;
	case 2:
		if (n & 4)
			program_close(p);
		else
			program_shutdown(p, n % 3);
		break;
	case 3:
		program_accept(p, n % (sizeof(struct agent_hello) + 1));
		break;
	default:
		program_greet(p, n & 31, n & 128);
	}
}

/* ---- The input ---- */

static void serve_otherwise(struct fuzz_in *in)
{
	static const int errors[] = { -EACCES, -EADDRINUSE, -EMFILE, -EDQUOT, -EUSERS, -ENOMEM };

	served.refuses = fuzz_u8(in) & 63;
	served.error = errors[fuzz_u8(in) % 6];
	if (fuzz_u8(in) == 0xee)
		served.gone = true;
}

static void step(struct fuzz_in *in, uint8_t what)
{
	switch (what) {
	case 0:
	case 1:
	case 2:
		ask(in);
		break;
	case 3:
		say_raw(in);
		break;
	case 4:
		stop_asking(in);
		break;
	case 5:
	case 6:
	case 7:
	case 8:
	case 9:
		stream(in, what - 5);
		break;
	case 10:
		served_end(in);
		break;
	case 11:
		served_end_well(NULL, fuzz_u8(in) & 1);
		break;
	case 12:
		serve_otherwise(in);
		break;
	case 13:
		clock_ns += MS << fuzz_u8(in) % 20;
		break;
	case 14:
		raw_step(in);
		break;
	case 15:
		strangers(in);
		break;
	case 16:
		poor = fuzz_u8(in) % 6;
		break;
	case 17:
		join_or_leave();
		break;
	default:
		good_goes_on();
	}
}

/* Of what they have nothing reads as if it had come to its end. */
static void read_all(void)
{
	unsigned int i, n;

	for (i = 0; i < PROGRAM_FDS; i++)
		for (n = 0; n < 32 && program_fds[i].fd >= 0 && !program_fds[i].deaf; n++)
			program_read(&program_fds[i], 65536);
	for (n = 0; n < 32 && !good.deaf; n++)
		program_read(&good, 65536);
}

/* All programs have gone, and are served well to the end: nothing is left of them. */
static void all_go(void)
{
	unsigned int i;

	served.refuses = 0;
	poor = 0;
	program_hush();
	program_end();
	program_close(&good);
	for (i = 0; i < TURNS && info_now().now; i++) {
		served_end_well(NULL, true);
		clock_ns += 500 * MS;
		FUZZ_CHECK(turn());
	}
	FUZZ_CHECK(i < TURNS && !served.under_way);
}

static void clear(const char *path)
{
	char name[600];
	struct dirent *e;
	DIR *dir = opendir(path);

	FUZZ_CHECK(dir);
	while ((e = readdir(dir))) {
		(void)snprintf(name, sizeof(name), "%s/%s", path, e->d_name);
		(void)unlink(name);
	}
	closedir(dir);
	FUZZ_CHECK(!rmdir(path));
}

static void begin(uint8_t how)
{
	const struct agent_opts o = RGATE_OPTS(agent_opts,
		.where = how & HOW_DAEMON ? RGATE_SESSION_DAEMON : RGATE_SESSION_PROCESS,
		.loopback = how & HOW_OWN_LOOPBACK ? AGENT_LOOPBACK_OWN : AGENT_LOOPBACK_SERVED,
		.parent = "/tmp", .conns = how & HOW_FEW ? FEW : 0);

	clock_ns = BEGIN;
	poor = 0;
	served_begin();
	if (how & HOW_REFUSED) {
		served.refuses = SERVED_NO_SET;
		FUZZ_CHECK(agent_open(&agent, &o) == -EACCES);
		served.refuses = 0;
	}
	FUZZ_CHECK(!agent_open(&agent, &o));
	FUZZ_CHECK(!agent_join(agent, &member));
	other = NULL;
	program_begin(agent);
	raw_littered = false;
	good_begin();
}

static void finish(uint8_t how)
{
	char dir[AGENT_DIR_MAX];

	if (!(how & HOW_CUT) && !served.gone) {
		good_goes_on();
		check_counters();
		all_go();
	}
	(void)snprintf(dir, sizeof(dir), "%s", agent_dir(agent));
	check_counters();
	agent_close(agent);
	served_check();
	if (good.fd >= 0) {
		read_all();
		program_hush();
		program_end();
		program_close(&good);
	}
	if (raw_littered && !access(dir, F_OK))
		clear(dir);
	FUZZ_CHECK(access(dir, F_OK));
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc;
	(void)argv;
	limit_fds(0);
	raw_init();
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_in in = { .p = data, .len = size };
	const uint8_t how = fuzz_u8(&in);
	const unsigned int before = fuzz_open_fds();
	unsigned int i;

	begin(how);
	for (i = 0; in.len && i < STEPS && !served.gone; i++) {
		const uint8_t what = fuzz_u8(&in);

		step(&in, (what & 31) % 19);
		/* What one does may meet what is not done yet, or not heard. */
		if (!(what & 128))
			(void)turn();
		if (!(what & 64))
			program_hear();
		check_counters();
	}
	finish(how);
	FUZZ_CHECK(fuzz_open_fds() == before);
	return 0;
}
