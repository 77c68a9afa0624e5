// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * Processes on another node that outlive who asked for them: whose they are, who may come back
 * to them, and what others see of them.
 */
#include "asked.h"

#include <endian.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "nodes.h"

#define OTHER		4711U	/* a user */
#define SEVERAL		70U	/* more than a node lists at once */

static uint64_t id;		/* for the next client */

static const struct rgate_spawn_entry *entry(uint32_t i)
{
	return (const struct rgate_spawn_entry *)(mem + STATUSES) + i;
}

/* How many were listed behind @after, of those there are */
static int list(uint64_t after, uint32_t room, uint64_t *total)
{
	return ask((struct rgate_request){
		.op = RGATE_REQ_SPAWN_LIST, .a0 = 1, .a1 = after, .off = STATUSES,
		.len = room * (uint32_t)sizeof(struct rgate_spawn_entry) }, total);
}

static int kill_id(uint64_t which, int sig)
{
	return ASK(.op = RGATE_REQ_SPAWN_KILL, .a1 = which,
		   .a0 = RGATE_REQ_SPAWN_TO(1, sig, RGATE_SPAWN_TO_TREE));
}

/* Its handle; why there is none is told by its end. */
static int attach(uint64_t which, uint32_t *handle)
{
	uint64_t value = 0;
	const int err = ask((struct rgate_request){ .op = RGATE_REQ_SPAWN_ATTACH, .a0 = 1,
						    .a1 = which }, &value);

	*handle = (uint32_t)value;
	return err;
}

static int detach(uint32_t handle, uint64_t *which)
{
	return ask((struct rgate_request){ .op = RGATE_REQ_SPAWN_DETACH, .handle = handle }, which);
}

static int keep(uint32_t *handle, const char *script)
{
	const char *const argv[] = { "/bin/sh", "-c", script, NULL };
	const struct rgate_spawn_request req = RGATE_OPTS(rgate_spawn_request, .argv = argv,
		.cwd = "/", .stdin_mode = RGATE_SPAWN_IN_STREAM,
		.stdout_mode = RGATE_SPAWN_OUT_STREAM, .flags = RGATE_SPAWN_KEEP);

	return start_request(&req, handle);
}

static int tell_id(uint64_t which)
{
	need(write(word[1], &which, sizeof(which)) == sizeof(which));
	return 0;
}

static void hear_id(void)
{
	struct pollfd p = { .fd = word[0], .events = POLLIN };

	assert_int_equal(poll(&p, 1, (int)MS), 1);
	assert_int_equal(read(word[0], &id, sizeof(id)), sizeof(id));
	assert_true(id);
}

/* ---- One user ---- */

static int leaves(void)
{
	struct rgate_completion c;
	uint64_t which = 0;
	uint32_t h;

	need(!session_open());
	need(!keep(&h, "read a; echo $a; read b; echo $b; exit 3"));
	need(write_some(h, "one\n") == 4);
	need(read_some(h, 1) == 4 && !memcmp(mem + FROM, "one\n", 4));
	/* what waits for it is cancelled */
	need(!rgate_session_submit(session, &(struct rgate_request){
		.op = RGATE_REQ_SPAWN_WAIT, .cookie = 5, .handle = h }));
	need(!rgate_session_submit(session, &(struct rgate_request){
		.op = RGATE_REQ_SPAWN_DETACH, .cookie = 6, .handle = h }));
	need(!next_completion(&c) && c.cookie == 5 && c.result == -ECANCELED);
	need(!next_completion(&c) && c.cookie == 6 && !c.result);
	which = c.value;
	need(detach(h, &which) == -EBADF && wait_end(h) == -EBADF);
	return tell_id(c.value);
}

static int comes_back(void)
{
	uint32_t h, second;
	uint64_t total = 0;

	need(!session_open());
	need(list(0, 4, &total) == 1 && total == 1);
	need(le64toh(entry(0)->id) == id && !entry(0)->attached);
	need(le32toh(entry(0)->state) == RGATE_SPAWN_RUNNING && le32toh(entry(0)->pid) > 1);
	need(le32toh(entry(0)->owner) == (getuid() ? getuid() + 1 : 0U) || !getuid());
	need(!attach(id, &h));
	need(write_some(h, "two\n") == 4);
	/* one at a time */
	need(!attach(id, &second));
	need(wait_end(second) == -EBUSY);
	need(read_some(h, 1) == 4 && !memcmp(mem + FROM, "two\n", 4));
	need(!wait_end(h) && le32toh(status_at(STATUS)->exit_code) == 3);
	need(!ASK(.op = RGATE_REQ_SPAWN_CLOSE, .handle = h));
	/* it is forgotten then */
	need(!attach(id, &h));
	need(wait_end(h) == -ENOENT);
	need(list(0, 4, &total) == 0 && !total);
	need(kill_id(id, SIGTERM) == -ENOENT);
	return 0;
}

static void left_and_found(void **state)
{
	(void)state;
	daemons_up("allow any spawn\n");
	as_client(leaves);
	hear_id();
	as_client(comes_back);
	wait_for(!ringgated_count(&r, "handles"));
	daemons_down();
}

static int keeps_and_waits(void)
{
	uint32_t h;
	int n;

	need(!session_open());
	need(!keep(&h, "echo $$; exec sleep 1000"));
	n = read_some(h, 1);
	need(n > 1 && write(word[1], mem + FROM, (size_t)n) == n);
	for (;;)
		pause();
}

static int kills_what_is_there(void)
{
	uint64_t total;
	uint32_t h;

	need(!session_open());
	need(list(0, 4, &total) == 1);
	id = le64toh(entry(0)->id);
	need(!attach(id, &h));
	/* by its number although somebody is attached */
	need(!wait_running(h));
	need(!kill_id(id, SIGTERM));
	need(!wait_end(h) && le32toh(status_at(STATUS)->signal) == SIGTERM);
	need(kill_id(id, SIGTERM) == -ESRCH);
	/* else its end would be there for the next one */
	need(!ASK(.op = RGATE_REQ_SPAWN_CLOSE, .handle = h));
	return 0;
}

/* With RGATE_SPAWN_KEEP it goes on when who asked is killed, and even when the daemon is. */
static void survivors(void **state)
{
	pid_t client, pid;

	(void)state;
	daemons_up("allow any spawn\n");
	client = begin_client(keeps_and_waits);
	pid = hear_pid();
	kill(client, SIGKILL);
	assert_int_equal(waitpid(client, NULL, 0), client);
	wait_for(!ringgated_count(&r, "handles"));
	assert_int_equal(kill(pid, 0), 0);
	as_client(kills_what_is_there);
	wait_for(process_gone(pid));
	client = begin_client(keeps_and_waits);
	pid = hear_pid();
	(void)ringgated_stop(&r, SIGKILL);
	kill(client, SIGKILL);
	assert_int_equal(waitpid(client, NULL, 0), client);
	ringgated_start(&r, "allow any spawn\n", -1);
	wait_for(ringgated_count(&r, "sessions") == 0);
	assert_int_equal(kill(pid, 0), 0);
	as_client(kills_what_is_there);
	wait_for(process_gone(pid));
	daemons_down();
}

static int never_reads(void)
{
	struct rgate_request q = { .op = RGATE_REQ_SPAWN_DETACH, .cookie = 1,
				   .deadline_us = 100000 };
	struct rgate_completion c;
	uint64_t total, which;
	int n;

	need(!session_open());
	need(!keep(&q.handle, "exec sleep 1000"));
	need(!wait_running(q.handle));
	which = le64toh(status_at(STATUS)->id);
	/* until its pipe and what is on the way to it are full */
	memset(mem + TO, 'x', PIECE);
	do {
		n = ASK(.op = RGATE_REQ_SPAWN_WRITE, .handle = q.handle, .off = TO, .len = PIECE,
			.deadline_us = 300000);
	} while (n > 0);
	need(n == -ETIMEDOUT);
	need(!rgate_session_submit(session, &q));
	need(!next_completion(&c) && c.result == -ETIMEDOUT);
	/* it is left all the same */
	need(ASK(.op = RGATE_REQ_SPAWN_STATUS, .handle = q.handle, .off = STATUS,
		 .len = sizeof(struct rgate_spawn_status)) == -EBADF);
	do {
		need(list(0, 4, &total) == 1 && le64toh(entry(0)->id) == which);
	} while (entry(0)->attached);
	need(!kill_id(which, SIGKILL));
	need(!attach(which, &q.handle));
	need(!wait_end(q.handle) && le32toh(status_at(STATUS)->signal) == SIGKILL);
	need(!ASK(.op = RGATE_REQ_SPAWN_CLOSE, .handle = q.handle));
	return 0;
}

static int bad_fields(void)
{
	uint32_t h;

	need(!session_open());
	need(ASK(.op = RGATE_REQ_SPAWN_ATTACH, .a0 = 1) == -EINVAL);
	need(ASK(.op = RGATE_REQ_SPAWN_ATTACH, .a0 = 0, .a1 = 1) == -ENXIO);
	need(ASK(.op = RGATE_REQ_SPAWN_ATTACH, .a0 = 1ULL << 32, .a1 = 1) == -ENXIO);
	need(ASK(.op = RGATE_REQ_SPAWN_DETACH) == -EBADF);
	need(ASK(.op = RGATE_REQ_SPAWN_LIST, .a0 = 7, .off = STATUSES, .len = 4096) == -ENXIO);
	need(ASK(.op = RGATE_REQ_SPAWN_LIST, .a0 = 1, .off = STATUSES, .len = 8) == -EINVAL);
	need(kill_id(0, SIGTERM) == -EINVAL);
	need(kill_id(1, 0) == -EINVAL);
	need(kill_id(1, 65) == -EINVAL);
	need(ASK(.op = RGATE_REQ_SPAWN_KILL, .a1 = 1, .a0 = RGATE_REQ_SPAWN_TO(1, 9, 3)) ==
	     -EINVAL);
	need(ASK(.op = RGATE_REQ_SPAWN_KILL, .a1 = 1, .a0 = RGATE_REQ_SPAWN_TO(8, 9, 0)) ==
	     -ENXIO);
	/* one that does not even begin is none that goes on */
	need(!keep(&h, ""));
	need(!wait_end(h));
	need(!ASK(.op = RGATE_REQ_SPAWN_CLOSE, .handle = h));
	need(!START(&h, "/bin/ls"));
	need(detach(h, &id) == -EACCES);
	return 0;
}

static int nodes(uint32_t room, uint64_t *total)
{
	const struct rgate_request q = { .op = RGATE_REQ_SPAWN_NODES,
					 .off = room ? STATUSES : 0, .len = room };

	return ask(q, total);
}

static int knows_nodes(void)
{
	const struct rgate_spawn_node *n;
	uint64_t total = 0;

	need(!session_open());
	need(nodes(4096, &total) == 2 && total == 2);
	n = (const void *)(mem + STATUSES);
	need(le32toh(n[0].node) == 0 && le32toh(n[0].flags) ==
	     (RGATE_SPAWN_NODE_SELF | RGATE_SPAWN_NODE_GATEWAY));
	need(le32toh(n[1].node) == 1 && le32toh(n[1].flags) == RGATE_SPAWN_NODE_UP);
	need(!strcmp((const char *)n[1].name, "node1"));
	need(nodes(sizeof(*n), &total) == 1 && total == 2);
	need(nodes(0, &total) == 0 && total == 2);
	return 0;
}

/* All of them, some at a time */
static int pages(void)
{
	uint32_t h, seen = 0;
	uint64_t last = 0, total, which;
	unsigned int i;
	int n, j;

	need(!session_open());
	for (i = 0; i < SEVERAL; i++) {
		need(!keep(&h, "exec sleep 1000"));
		need(!detach(h, &which) && which);
	}
	do {
		n = list(last, seen ? 33 : 100, &total);
		need(n > 0 && n <= (seen ? 33 : 64));
		need(total == SEVERAL - seen);
		for (j = 0; j < n; j++) {
			need(le64toh(entry((uint32_t)j)->id) > last);
			last = le64toh(entry((uint32_t)j)->id);
			need(!kill_id(last, SIGKILL));
		}
		seen += (uint32_t)n;
	} while (seen < SEVERAL);
	return 0;
}

static void by_number(void **state)
{
	(void)state;
	daemons_up("allow any spawn\n");
	as_client(knows_nodes);
	as_client(bad_fields);
	as_client(never_reads);
	as_client(pages);
	wait_for(!ringgated_count(&r, "handles"));
	daemons_down();
}

/* ---- Others ---- */

static int begins(void)
{
	uint64_t which = 0;
	uint32_t h;

	need(!session_open());
	need(!keep(&h, "exec sleep 1000"));
	need(!detach(h, &which));
	return tell_id(which);
}

/* Whoever it is that tries: there is nothing, whatever number he names. */
static int sees_nothing(void)
{
	uint64_t total = 1, which;
	uint32_t h;

	need(!session_open());
	need(!list(0, 100, &total) && !total);
	need(!list(id - 1, 100, &total) && !total);
	for (which = id - 200; which < id + 200; which++) {
		need(!attach(which, &h));
		need(wait_end(h) == -ENOENT);
		need(read_some(h, 1) <= 0);
		need(ASK(.op = RGATE_REQ_SPAWN_SIGNAL, .handle = h, .a0 = SIGKILL) == -ESRCH);
		need(!ASK(.op = RGATE_REQ_SPAWN_CLOSE, .handle = h));
		need(kill_id(which, SIGKILL) == -ENOENT);
	}
	return 0;
}

/* As many as there are handles, none of them closed: that is all that he gets. */
static int holds_all(void)
{
	unsigned int n = 0;
	uint32_t h;
	int err;

	need(!session_open());
	while (!(err = attach(id + n, &h)) && n < 10000)
		n++;
	need(err == -EDQUOT || err == -ENOBUFS);
	return 0;
}

static int root_sees(void)
{
	uint64_t total = 0;
	uint32_t h;

	need(!session_open());
	need(list(0, 100, &total) == 1 && le64toh(entry(0)->id) == id);
	need(le32toh(entry(0)->owner) == NOBODY + 1);
	need(!attach(id, &h));
	need(!wait_running(h));
	need(!kill_id(id, SIGTERM));
	need(!wait_end(h) && le32toh(status_at(STATUS)->signal) == SIGTERM);
	return 0;
}

static int its_own(void)
{
	uint64_t total = 0;

	need(!session_open());
	need(list(0, 100, &total) == 1 && le64toh(entry(0)->id) == id);
	need(le32toh(entry(0)->state) == RGATE_SPAWN_RUNNING && !entry(0)->attached);
	return 0;
}

static void other_users(void **state)
{
	(void)state;
	if (geteuid())
		unit_skip("needs root");
	daemons_up("allow any spawn\n");
	as_client(begins);
	hear_id();
	ends_well(begin_as(sees_nothing, OTHER));
	ends_well(begin_as(holds_all, OTHER));
	as_client(its_own);
	/* also when who asked is another process by now */
	(void)ringgated_stop(&r, SIGKILL);
	ringgated_start(&r, "allow any spawn\n", -1);
	ends_well(begin_as(sees_nothing, OTHER));
	as_client(its_own);
	ends_well(begin_as(root_sees, 0));
	daemons_down();
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, asked_up, asked_down)

static const struct CMUnitTest tests[] = {
	TEST(left_and_found),
	TEST(survivors),
	TEST(by_number),
	TEST(other_users),
};

UNIT_MAIN(tests)
