// SPDX-License-Identifier: MIT OR GPL-2.0
/* Memory that a program exports at one node, and others open at another, by two daemons. */
#include "asker.h"
#include "ringgated.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "nodes.h"

#define READ	RGATE_MEMORY_READ
#define WRITE	RGATE_MEMORY_WRITE
#define ATOMIC	RGATE_MEMORY_ATOMIC
#define ALL	RGATE_MEMORY_RIGHTS

/* A session's memory: names first, then a part that is exported, then its own */
#define PART		4096U
#define PART_LEN	(256U << 10)
#define MINE		(PART + PART_LEN)
#define MEMORY		(MINE + PART_LEN)
#define WINNER		8U		/* words of the part: */
#define COUNTER		16U
#define BEGIN		64U
#define MANY		8U		/* processes that count */

static struct ringgated r[2];	/* node 0, whose programs export; node 1 */
static uid_t owner;		/* of what is exported */
static int word[2];		/* [1]: a client's, to say something to the test */
static int go[2];		/* [1]: the test's, for a client that waits */

/* ---- A client, in a child ---- */

static uint64_t value;		/* of the last one */

static int session_at(unsigned int node)
{
	return asker_open(r[node].requests, MEMORY);
}

#define ASK(...) ask((struct rgate_request){ __VA_ARGS__ }, &value)

static int export(const char *name, uint32_t mode)
{
	strcpy((char *)mem, name);
	return ASK(.op = RGATE_REQ_MEMORY_EXPORT, .off = PART, .len = PART_LEN,
		   .a1 = RGATE_MEMORY_EXPORT_A1(mode, strlen(name)));
}

static int open_of(uint64_t node, uid_t owner, const char *name, uint32_t rights, uint32_t *h)
{
	int err;

	strcpy((char *)mem, name);
	err = ASK(.op = RGATE_REQ_MEMORY_OPEN, .a0 = node, .len = (uint32_t)strlen(name),
		  .a1 = RGATE_MEMORY_OPEN_A1(owner, rights));
	*h = RGATE_MEMORY_HANDLE(value);
	return err;
}

static int add(uint32_t h, uint64_t at, uint64_t what)
{
	return ASK(.op = RGATE_REQ_MEMORY_FETCH_ADD, .handle = h, .a0 = at, .a1 = what);
}

static int await_byte(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	char byte;

	return poll(&p, 1, (int)MS) == 1 && read(fd, &byte, 1) == 1 ? 0 : 1;
}

static void kill_client(pid_t pid)
{
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

static void as_client(int (*fn)(void))
{
	ends_well(begin_as(fn, NOBODY));
}

/* ---- Daemons ---- */

static void daemons_up(const char *at_home)
{
	char text[256];

	owner = geteuid() ? geteuid() : NOBODY;
	snprintf(text, sizeof(text), "allow any memory\n%s", at_home);
	ringgated_start(&r[0], text, -1);
	ringgated_start(&r[1], "allow any memory\n", -1);
	wait_for(ringgated_met(r));
	assert_int_equal(pipe(word), 0);
	assert_int_equal(pipe(go), 0);
}

static void daemons_down(void)
{
	close(word[0]);
	close(word[1]);
	close(go[0]);
	close(go[1]);
	assert_int_equal(ringgated_stop(&r[0], SIGTERM), 0);
	assert_int_equal(ringgated_stop(&r[1], SIGTERM), 0);
}

/* ---- What they do ---- */

static uint8_t pattern(uint32_t at)
{
	return (uint8_t)(at * 31 + (at >> 11));
}

/* Exports, says so, and looks at what is there when it is told to. */
static int home(void)
{
	uint64_t counter;
	uint32_t i, h;

	need(!session_at(0));
	need(!export("part", RGATE_MEMORY_MODE(ALL, ALL)));
	h = (uint32_t)value;
	need(write(word[1], "x", 1) == 1);
	need(!await_byte(go[0]));
	for (i = BEGIN; i < PART_LEN; i++)
		need(mem[PART + i] == pattern(i));
	memcpy(&counter, mem + PART + COUNTER, sizeof(counter));
	need(counter == MANY * (MANY + 1) / 2 * 100);
	memcpy(&counter, mem + PART + WINNER, sizeof(counter));
	need(counter >= 1 && counter <= MANY);
	need(!ASK(.op = RGATE_REQ_MEMORY_RELEASE, .handle = h));
	need(write(word[1], "x", 1) == 1);
	/* until the other has seen that it is gone */
	need(!await_byte(go[0]));
	return 0;
}

static int write_and_read(void)
{
	uint32_t h, i;

	need(!session_at(1));
	need(!open_of(0, owner, "part", ALL, &h));
	need(RGATE_MEMORY_LENGTH(value) == PART_LEN);
	for (i = BEGIN; i < PART_LEN; i++)
		mem[MINE + i] = pattern(i);
	need(!ASK(.op = RGATE_REQ_MEMORY_WRITE, .handle = h, .a0 = BEGIN, .off = MINE + BEGIN,
		  .len = PART_LEN - BEGIN));
	need(!ASK(.op = RGATE_REQ_MEMORY_FLUSH, .handle = h));
	memset(mem + MINE, 0, PART_LEN);
	need(!ASK(.op = RGATE_REQ_MEMORY_READ, .handle = h, .a0 = BEGIN, .off = MINE + BEGIN,
		  .len = PART_LEN - BEGIN));
	for (i = BEGIN; i < PART_LEN; i++)
		need(mem[MINE + i] == pattern(i));
	need(ASK(.op = RGATE_REQ_MEMORY_READ, .handle = h, .a0 = 8, .off = MINE,
		 .len = PART_LEN) == -ERANGE);
	need(!ASK(.op = RGATE_REQ_MEMORY_RELEASE, .handle = h));
	need(ASK(.op = RGATE_REQ_MEMORY_FLUSH, .handle = h) == -EBADF);
	return 0;
}

/* Both nodes' programs change the same words. */
static int count_at(unsigned int node, uint64_t me)
{
	uint32_t h, i;

	need(!session_at(node));
	need(!open_of(node ? 0 : RGATE_MEMORY_HERE, owner, "part", ATOMIC, &h));
	for (i = 0; i < 100; i++)
		need(!add(h, COUNTER, me));
	memcpy(mem + MINE, &me, sizeof(me));
	need(!ASK(.op = RGATE_REQ_MEMORY_CMP_SWAP, .handle = h, .a0 = WINNER, .off = MINE,
		  .len = sizeof(me)));
	/* who has won says so */
	need(value || write(word[1], "w", 1) == 1);
	return 0;
}

static unsigned int number;

static int count_some(void)
{
	return count_at(number % 2, number);
}

static int finds_it_gone(void)
{
	uint32_t h;

	need(!session_at(1));
	need(!open_of(0, owner, "part", READ | WRITE, &h));
	need(write(go[1], "g", 1) == 1);
	need(!await_byte(word[0]));
	need(ASK(.op = RGATE_REQ_MEMORY_READ, .handle = h, .off = MINE, .len = 8) == -ESTALE);
	need(ASK(.op = RGATE_REQ_MEMORY_WRITE, .handle = h, .off = MINE, .len = 1000) == -ESTALE);
	need(ASK(.op = RGATE_REQ_MEMORY_FLUSH, .handle = h) == -ESTALE);
	need(open_of(0, owner, "part", READ, &h) == -ENOENT);
	return 0;
}

static unsigned int waiting(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	unsigned int n = 0;
	char byte;

	while (poll(&p, 1, 0) == 1 && read(fd, &byte, 1) == 1)
		n++;
	return n;
}

static void used_by_many(void **state)
{
	pid_t client, many[MANY];
	unsigned int i;

	(void)state;
	daemons_up("node 1 any\n");
	client = begin_as(home, NOBODY);
	assert_int_equal(await_byte(word[0]), 0);
	as_client(write_and_read);
	for (i = 0; i < MANY; i++) {
		number = i + 1;
		many[i] = begin_as(count_some, NOBODY);
	}
	for (i = 0; i < MANY; i++)
		ends_well(many[i]);
	assert_int_equal(waiting(word[0]), 1);
	as_client(finds_it_gone);
	assert_int_equal(write(go[1], "g", 1), 1);
	ends_well(client);
	wait_for(!ringgated_count(&r[0], "handles") && !ringgated_count(&r[1], "handles"));
	daemons_down();
}

/* ---- What they may not ---- */

static int exports_little(void)
{
	need(!session_at(0));
	need(!export("readable", RGATE_MEMORY_MODE(ALL, READ)));
	need(!export("own", RGATE_MEMORY_MODE(ALL, 0)));
	need(export("own", RGATE_MEMORY_MODE(ALL, 0)) == -EEXIST);
	need(export("no name", ALL) == -EINVAL);
	need(write(word[1], "x", 1) == 1);
	for (;;)
		pause();
}

/* Another user of the other node, for whom that may speak */
static int other_user(void)
{
	uint32_t h;

	need(!session_at(1));
	need(!open_of(0, owner, "readable", READ, &h));
	need(!ASK(.op = RGATE_REQ_MEMORY_READ, .handle = h, .off = MINE, .len = 8));
	need(ASK(.op = RGATE_REQ_MEMORY_WRITE, .handle = h, .off = MINE, .len = 8) == -EACCES);
	need(add(h, 0, 1) == -EACCES);
	need(open_of(0, owner, "readable", READ | WRITE, &h) == -EACCES);
	need(open_of(0, owner, "own", READ, &h) == -EACCES);
	need(open_of(0, getuid(), "own", READ, &h) == -ENOENT);
	need(open_of(0, owner, "readable", 0, &h) == -EINVAL);
	need(open_of(5, owner, "readable", READ, &h) == -ENXIO);
	need(open_of(1, owner, "readable", READ, &h) == -ENOENT);
	return 0;
}

/* ... and one for whom it may not */
static int unknown_user(void)
{
	uint32_t h;

	need(!session_at(1));
	need(open_of(0, owner, "readable", READ, &h) == -EACCES);
	return 0;
}

/* What it was allowed it is not when the policy is another one. */
static int until_told(void)
{
	uint32_t h;

	need(!session_at(1));
	need(!open_of(0, owner, "readable", READ, &h));
	need(!ASK(.op = RGATE_REQ_MEMORY_READ, .handle = h, .off = MINE, .len = 8));
	need(write(word[1], "x", 1) == 1);
	need(!await_byte(go[0]));
	need(ASK(.op = RGATE_REQ_MEMORY_READ, .handle = h, .off = MINE, .len = 8) == -EACCES);
	need(write(word[1], "x", 1) == 1);
	return 0;
}

static void refused(void **state)
{
	pid_t client, late;

	(void)state;
	if (geteuid())
		unit_skip("other users: needs root");
	daemons_up("node any user:1234\n");
	client = begin_as(exports_little, NOBODY);
	assert_int_equal(await_byte(word[0]), 0);
	ends_well(begin_as(other_user, 1234));
	ends_well(begin_as(unknown_user, 4321));
	ends_well(begin_as(unknown_user, NOBODY));
	late = begin_as(until_told, 1234);
	assert_int_equal(await_byte(word[0]), 0);
	ringgated_reload(&r[0], "allow any memory\nnode 1 user:1235\n");
	assert_int_equal(write(go[1], "g", 1), 1);
	assert_int_equal(await_byte(word[0]), 0);
	ends_well(late);
	kill_client(client);
	daemons_down();
}

/* ---- Who ends ---- */

static int exports_and_stays(void)
{
	need(!session_at(0));
	need(!export("part", RGATE_MEMORY_MODE(ALL, ALL)));
	need(write(word[1], "x", 1) == 1);
	for (;;)
		pause();
}

/* The program, then the node that has the memory */
static int outlives_home(void)
{
	uint32_t h;
	int err;

	need(!session_at(1));
	need(!open_of(0, owner, "part", ALL, &h));
	need(!add(h, COUNTER, 1));
	need(write(word[1], "x", 1) == 1);
	need(!await_byte(go[0]));
	need(add(h, COUNTER, 1) == -ESTALE);
	need(write(word[1], "x", 1) == 1);
	need(!await_byte(go[0]));
	/* exported anew, and the daemon is killed under it */
	need(!open_of(0, owner, "part", ALL, &h));
	need(!add(h, COUNTER, 1));
	need(write(word[1], "x", 1) == 1);
	do
		err = add(h, COUNTER, 1);
	while (!err);
	need(err == -ECONNRESET || err == -ESTALE);
	/* what it is asked before it serves may be lost */
	need(!await_byte(go[0]));
	need(ASK(.op = RGATE_REQ_MEMORY_READ, .handle = h, .off = MINE, .len = 8) == -ESTALE);
	need(open_of(0, owner, "part", READ, &h) == -ENOENT);
	return 0;
}

static void home_dies(void **state)
{
	pid_t client, other;

	(void)state;
	daemons_up("node 1 any\n");
	client = begin_as(exports_and_stays, NOBODY);
	assert_int_equal(await_byte(word[0]), 0);
	other = begin_as(outlives_home, NOBODY);
	assert_int_equal(await_byte(word[0]), 0);
	kill_client(client);
	wait_for(!ringgated_count(&r[0], "sessions"));
	assert_int_equal(write(go[1], "g", 1), 1);
	assert_int_equal(await_byte(word[0]), 0);
	client = begin_as(exports_and_stays, NOBODY);
	assert_int_equal(await_byte(word[0]), 0);
	assert_int_equal(write(go[1], "g", 1), 1);
	assert_int_equal(await_byte(word[0]), 0);
	(void)ringgated_stop(&r[0], SIGKILL);
	kill_client(client);
	ringgated_start(&r[0], "allow any memory\nnode 1 any\n", -1);
	wait_for(ringgated_met(r));
	assert_int_equal(write(go[1], "g", 1), 1);
	ends_well(other);
	daemons_down();
}

/* A node that is away is waited for, until a deadline, or the client, says otherwise. */
static int asks_who_is_away(void)
{
	struct rgate_request q = {
		.op = RGATE_REQ_MEMORY_OPEN, .cookie = 1, .len = 4,
		.a1 = RGATE_MEMORY_OPEN_A1(owner, READ),
	};
	struct rgate_completion c;
	unsigned int i;

	need(!session_at(1));
	strcpy((char *)mem, "part");
	need(!rgate_session_submit(session, &q) && !rgate_session_cancel(session, 1, 2));
	for (i = 0; i < 2; i++) {
		need(!next_completion(&c));
		need(c.result == (c.cookie == 1 ? -ECANCELED : 0));
	}
	q.deadline_us = 1000;
	need(ask(q, NULL) == -ETIMEDOUT);
	q.deadline_us = 0;
	need(ask(q, NULL) == -ENOTCONN);
	return 0;
}

static void node_away(void **state)
{
	(void)state;
	daemons_up("node 1 any\n");
	(void)ringgated_stop(&r[0], SIGKILL);
	as_client(asks_who_is_away);
	wait_for(!ringgated_count(&r[1], "handles"));
	assert_int_equal(ringgated_stop(&r[1], SIGTERM), 0);
}

/*
 * A million requests for a node that is gone, as many at a time as there are places: each ends in
 * its time, nothing is left of them, and others are served.
 */
static int asks_on_and_on(void)
{
	struct rgate_request q = {
		.op = RGATE_REQ_MEMORY_OPEN, .len = 4, .a1 = RGATE_MEMORY_OPEN_A1(owner, READ),
		.deadline_us = 200,
	};
	const unsigned int n = unit_rounds(1000000);
	unsigned int sent = 0, ended = 0;
	struct rgate_completion c;
	int err = 0;

	need(!session_at(1));
	strcpy((char *)mem, "part");
	while (ended < n) {
		while (sent < n) {
			q.cookie = sent;
			err = rgate_session_submit(session, &q);
			if (err)
				break;
			sent++;
		}
		need(sent == n || err == -EAGAIN);
		need(!next_completion(&c));
		need(c.result == -ETIMEDOUT && c.cookie < sent);
		ended++;
	}
	need(!ASK(.op = RGATE_REQ_NOP));
	/* here it has a home that is there */
	need(open_of(1, owner, "part", READ, &(uint32_t){ 0 }) == -ENOENT);
	rgate_session_close(session);
	return 0;
}

static uint64_t resident(pid_t pid)
{
	char path[64], line[128];
	uint64_t kib = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	f = fopen(path, "re");
	assert_non_null(f);
	while (!kib && fgets(line, sizeof(line), f))
		(void)sscanf(line, "RssAnon: %" SCNu64, &kib);
	fclose(f);
	assert_true(kib);
	return kib << 10;
}

static void million(void **state)
{
	uint64_t before;
	unsigned int fds;

	(void)state;
	daemons_up("node 1 any\n");
	(void)ringgated_stop(&r[0], SIGKILL);
	fds = ringgated_fds(&r[1]);
	before = resident(r[1].pid);
	as_client(asks_on_and_on);
	wait_for(!ringgated_count(&r[1], "sessions"));
	assert_int_equal(ringgated_count(&r[1], "handles"), 0);
	assert_int_equal(ringgated_count(&r[1], "under_way"), 0);
	assert_int_equal(ringgated_count(&r[1], "memory"), 0);
	wait_for(ringgated_fds(&r[1]) <= fds);
	/* A byte of each would be as much. The sanitizer keeps what was freed */
	if (!unit_asan() && !unit_tsan())
		assert_true(resident(r[1].pid) < before + (1 << 20));
	assert_int_equal(ringgated_stop(&r[1], SIGTERM), 0);
}

static int up(void **state)
{
	(void)state;
	if (!ringgated_built())
		unit_skip("ringgated is not built");
	ringgated_make_pair(r);
	return 0;
}

static int down(void **state)
{
	(void)state;
	if (r[1].pid)
		(void)ringgated_stop(&r[1], SIGKILL);
	ringgated_free(&r[0]);
	return 0;
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test_setup_teardown(used_by_many, up, down),
	cmocka_unit_test_setup_teardown(refused, up, down),
	cmocka_unit_test_setup_teardown(home_dies, up, down),
	cmocka_unit_test_setup_teardown(node_away, up, down),
	cmocka_unit_test_setup_teardown(million, up, down),
};

UNIT_MAIN(tests)
