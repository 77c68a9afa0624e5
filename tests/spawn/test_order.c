// SPDX-License-Identifier: MIT OR GPL-2.0
/* What comes at a bad moment: in the middle of a read, while an answer waits, in a start. */
#include "ended.h"
#include "raw.h"
#include "own_spawner.h"

#include <endian.h>
#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static struct serve s;

/* Shared with the server, whose calls come here */
static struct {
	bool hold;		/* no operation of the server's is over */
	unsigned int posted;	/* by it, */
	unsigned int exposed;	/* of these with memory that peers may write */
} *shared;

int __real_rgate_peer_done(struct rgate_peer *peer, uint64_t ticket);

int __wrap_rgate_peer_done(struct rgate_peer *peer, uint64_t ticket)
{
	if (__atomic_load_n(&shared->hold, __ATOMIC_ACQUIRE) && !s.sock)
		return 0;
	return __real_rgate_peer_done(peer, ticket);
}

static const struct rgate_pool *lent;	/* the server's */

struct rgate_pool *__real_rgate_node_stage(const struct rgate_node *node);
struct rgate_pool *__wrap_rgate_node_stage(const struct rgate_node *node);

struct rgate_pool *__wrap_rgate_node_stage(const struct rgate_node *node)
{
	lent = rgate_node_pool(node);
	return __real_rgate_node_stage(node);
}

static bool is_lent(const void *addr)
{
	struct rgate_pool_region r = { .sz = sizeof(r) };
	unsigned int i;

	for (i = 0; !rgate_pool_region(lent, i, &r); i++)
		if ((const char *)addr >= (const char *)r.addr &&
		    (const char *)addr < (const char *)r.addr + r.length)
			return true;
	return false;
}

int __real_rgate_peer_post(struct rgate_peer *peer, const struct rgate_op *ops, unsigned int n,
			   uint64_t *ticket);
int __wrap_rgate_peer_post(struct rgate_peer *peer, const struct rgate_op *ops, unsigned int n,
			   uint64_t *ticket);

int __wrap_rgate_peer_post(struct rgate_peer *peer, const struct rgate_op *ops, unsigned int n,
			   uint64_t *ticket)
{
	unsigned int i;

	for (i = 0; i < n && !s.sock; i++) {
		shared->posted++;
		shared->exposed += ops[i].nsge && is_lent(ops[i].sge->addr);
	}
	return __real_rgate_peer_post(peer, ops, n, ticket);
}

/* Of the spawner's functions only this is another one. */
static void own_spawner_take(void *memory)
{
	(void)memory;
}

int __real_chdir(const char *path);

/* A directory of a file system that does not answer. Who waits there can be killed. */
int __wrap_chdir(const char *path)
{
	while (!strcmp(path, "/hangs"))
		pause();
	return __real_chdir(path);
}

static void hold(bool on)
{
	__atomic_store_n(&shared->hold, on, __ATOMIC_RELEASE);
}

/* Of a job that is over: those of the next ones follow */
static uint64_t an_id(void)
{
	struct done d = run(&s, "/bin/true");
	const uint64_t id = d.r.id;

	assert_ran(&d, 0, "");
	return id;
}

/* A KILL while the record is being read: it is not started, and nothing is counted twice. */
static void killed_in_read(void **state)
{
	struct raw raw = { .cookie = 100 };
	struct rgate_spawn_start m;
	struct rgate_spawn_ask ask;
	struct rgate_spawnd_stats before, after;
	const struct rgate_spawn_status *st;
	struct rgate_spawn_answer a;
	struct rgate_msg msg;
	uint64_t id;
	struct done d;
	int i;

	(void)state;
	id = an_id();
	assert_int_equal(rgate_pool_alloc(rgate_node_pool(s.node), 65536, &raw.buf), 0);
	memset(raw.buf->addr, 0, 512);
	/* The last one's memory is given back a moment after its end. */
	wait_for(!serve_stats(&s).jobs);
	before = serve_stats(&s);
	hold(true);
	m = raw_start(&s, &raw, raw_true((uint8_t *)raw.buf->addr + 512));
	raw_send(&s, &m, sizeof(m));
	/* It is read from now on, and that does not end. */
	wait_for(serve_stats(&s).jobs == before.jobs + 1);
	serve_stats(&s);
	ask = (struct rgate_spawn_ask){ .h = m.h, .memory = m.memory, .signal = htole32(SIGKILL) };
	ask.h.type = RGATE_SPAWN_KILL;
	ask.h.cookie = htole64(1);
	ask.h.id = htole64(id + 1);
	raw_send(&s, &ask, sizeof(ask));
	do {
		assert_int_equal(rgate_peer_recv(s.peer, &msg, &a, sizeof(a), MS), 0);
	} while (a.h.type != RGATE_SPAWN_DONE);
	assert_int_equal(le32toh(a.error), 0);
	st = raw.buf->addr;
	wait_for((le64toh(__atomic_load_n(&st->state, __ATOMIC_ACQUIRE)) & 0xff) ==
		 RGATE_SPAWN_ERROR);
	assert_int_equal(le32toh(st->error), ECANCELED);
	hold(false);
	/* The server looks what is over whenever something comes, if only nonsense. */
	ask.h.reserved = htole16(1);
	raw_send(&s, &ask, sizeof(ask));
	wait_for(serve_stats(&s).garbage == before.garbage + 1);
	serve_client_down_raw(&s, raw.buf);
	serve_client_up(&s);
	for (i = 0; i < 3; i++) {
		d = run(&s, "/bin/echo", "x");
		assert_ran(&d, 0, "x\n");
	}
	wait_for(!serve_stats(&s).jobs);
	after = serve_stats(&s);
	assert_int_equal(after.queued, 0);
	assert_int_equal(after.started, before.started + 3);
}

static uint64_t used_buffers(void)
{
	struct rgate_pool_stats ps = { .sz = sizeof(ps) };

	assert_int_equal(rgate_pool_stats(rgate_node_pool(s.node), &ps), 0);
	return ps.used_buffers;
}

#define JOBS	120

/* JOBS that run, of which nobody has a handle any more, while the server stands still */
static void close_while_paused(void)
{
	struct rgate_spawn_job *job[JOBS];
	int i;

	for (i = 0; i < JOBS; i++)
		job[i] = start(&s, 0, "/bin/sleep", "100");
	wait_for((rgate_spawn_process(s.spawn), serve_stats(&s).running == JOBS));
	for (i = 0; i < JOBS; i++)
		wait_for((rgate_spawn_process(s.spawn), rgate_spawn_job_id(job[i])));
	kill(s.server, SIGSTOP);
	for (i = 0; i < JOBS; i++)
		rgate_spawn_job_close(job[i]);
	rgate_spawn_process(s.spawn);
}

/* Each is told that its memory is its own again, however many there are at once. */
static void closed_while_paused(void **state)
{
	const uint64_t before = used_buffers();

	(void)state;
	close_while_paused();
	kill(s.server, SIGCONT);
	wait_for((rgate_spawn_process(s.spawn), used_buffers() <= before));
	wait_for(!serve_stats(&s).running);
}

/* The same of a server that does not go on: the memory is taken back. */
static void close_unanswered(void **state)
{
	const uint64_t before = used_buffers();

	(void)state;
	close_while_paused();
	rgate_spawn_close(s.spawn);
	s.spawn = NULL;
	assert_true(used_buffers() <= before);
	rgate_peer_close(s.peer);
	assert_int_equal(node_ended(s.node), 0);
	kill(s.server, SIGCONT);
	serve_client_up(&s);
	wait_for(!serve_stats(&s).jobs);
}

#define ASKED	100

static void awaits_answer(uint64_t cookie)
{
	struct rgate_spawn_answer a;
	struct rgate_msg msg;

	assert_int_equal(rgate_peer_recv(s.peer, &msg, &a, sizeof(a), MS), 0);
	assert_int_equal(a.h.type, RGATE_SPAWN_GONE);
	assert_int_equal(le64toh(a.h.cookie), cookie);
}

/* Questions that come all at once are answered, all of them, in their order. */
static void many_answers(void **state)
{
	struct rgate_spawn_msg m = { .service = htole32(RGATE_SPAWN_SERVICE),
				     .version = RGATE_SPAWN_VERSION,
				     .type = RGATE_SPAWN_RELEASE };
	unsigned int i;

	(void)state;
	/* Who has to ask where the other's memory is cannot when that stands still. */
	raw_send(&s, &m, sizeof(m));
	awaits_answer(0);
	kill(s.server, SIGSTOP);
	for (i = 1; i <= ASKED; i++) {
		m.cookie = htole64(i);
		raw_send(&s, &m, sizeof(m));
	}
	kill(s.server, SIGCONT);
	for (i = 1; i <= ASKED; i++)
		awaits_answer(i);
}

/*
 * Requests, answers and streams pass through memory of the server that no peer can write: a
 * third node changes nothing of what another one asked for.
 */
static void staged_apart(void **state)
{
	struct done d;

	(void)state;
	d = run(&s, "/bin/echo", "x");
	assert_ran(&d, 0, "x\n");
	assert_int_equal(rgate_spawn_kill(s.spawn, 1, SIGTERM, RGATE_SPAWN_TO_TREE, MS), -ENOENT);
	assert_true(shared->posted > 3);
	assert_int_equal(shared->exposed, 0);
}

/* Nothing else comes that would make the server look at what it has posted. */
static void completions_alone(void **state)
{
	struct done d;
	int i;

	(void)state;
	for (i = 0; i < 5; i++) {
		d = run(&s, "/bin/echo", "x");
		assert_ran(&d, 0, "x\n");
	}
}

/* Of a raw KILL: the error it is answered with */
static int killed(uint64_t number, uint64_t id, int signal)
{
	const struct rgate_spawn_ask m = {
		.h = { .service = htole32(RGATE_SPAWN_SERVICE), .version = RGATE_SPAWN_VERSION,
		       .type = RGATE_SPAWN_KILL, .cookie = htole64(number), .id = htole64(id) },
		.signal = htole32((uint32_t)signal), .scope = htole32(RGATE_SPAWN_TO_LEADER),
	};
	struct rgate_spawn_answer a;
	struct rgate_msg msg;

	raw_send(&s, &m, sizeof(m));
	do {
		assert_int_equal(rgate_peer_recv(s.peer, &msg, &a, sizeof(a), MS), 0);
	} while (a.h.type != RGATE_SPAWN_DONE);
	assert_int_equal(le64toh(a.h.cookie), number);
	return -(int)le32toh(a.error);
}

static off_t size_of(const char *path)
{
	struct stat st;

	return stat(path, &st) ? 0 : st.st_size;
}

/*
 * Who did not hear the answer before the connection was lost asks again: what was done is not
 * done a second time. The other signal would show.
 */
static void kill_asked_again(void **state)
{
	char path[] = "/tmp/ringgate-order.XXXXXX", script[200];
	struct rgate_spawn_job *job;
	uint64_t id;
	int fd = mkstemp(path);

	(void)state;
	assert_return_code(fd, errno);
	snprintf(script, sizeof(script),
		 "trap 'echo one >>%s' USR1; trap 'echo another >>%s' USR2; echo begun >>%s; "
		 "while :; do sleep 0.02; done", path, path, path);
	job = start(&s, 0, "/bin/sh", "-c", script);
	wait_for((rgate_spawn_process(s.spawn), size_of(path) == 6));
	wait_for((rgate_spawn_process(s.spawn), rgate_spawn_job_id(job)));
	id = rgate_spawn_job_id(job);
	assert_int_equal(killed(1000, id, SIGUSR1), 0);
	wait_for(size_of(path) == 10);
	assert_int_equal(killed(1016, id + 1, SIGUSR1), -ENOENT);
	rgate_peer_cut(s.peer);
	assert_int_equal(killed(1016, id, SIGUSR2), -ENOENT);
	assert_int_equal(killed(1032, id, SIGUSR1), 0);
	wait_for(size_of(path) == 14);
	/* Another process of that node has numbers of its own. */
	rgate_spawn_job_close(job);
	wait_for((rgate_spawn_process(s.spawn), !serve_stats(&s).running));
	assert_int_equal(size_of(path), 14);
	serve_client_down(&s);
	serve_client_up(&s);
	assert_int_equal(killed(1016, id + 1, SIGUSR1), -ENOENT);
	close(fd);
	unlink(path);
}

static int nothing(void *ctx, const struct rgate_spawn_info *info)
{
	(void)ctx;
	(void)info;
	return 0;
}

/* More than wait for an answer at once, each of which gives up: none of their memory is lost,
 * nor given back while the server may write it. */
static void questions_left(void **state)
{
	const uint64_t before = used_buffers();
	int i;

	(void)state;
	assert_int_equal(rgate_spawn_list(s.spawn, nothing, NULL, MS), 0);
	assert_true(used_buffers() == before);
	kill(s.server, SIGSTOP);
	for (i = 0; i < 20; i++)
		assert_int_equal(rgate_spawn_list(s.spawn, nothing, NULL, 1), -ETIMEDOUT);
	assert_true(used_buffers() == before + 16);
	kill(s.server, SIGCONT);
	wait_for((rgate_spawn_process(s.spawn), used_buffers() == before));
	assert_int_equal(rgate_spawn_kill(s.spawn, 1, SIGTERM, RGATE_SPAWN_TO_TREE, MS), -ENOENT);
}

/* How often the server wants to be called within @ms */
static unsigned int calls(struct rgate_spawnd *sd, unsigned int ms)
{
	const uint64_t until = unit_now_ns() + ms * 1000000ULL;
	struct pollfd p = { .fd = rgate_spawnd_fd(sd), .events = POLLIN };
	unsigned int n = 0;

	while (unit_now_ns() < until) {
		if (poll(&p, 1, 10) < 1)
			continue;
		assert_int_equal(rgate_spawnd_process(sd), 0);
		n++;
	}
	return n;
}

#define GRACE_MS	300

/* A client that goes, and is given up before its time to come back is over: nothing is due. */
static void removed_while_gone(void **state)
{
	const struct rgate_spawnd_opts o = RGATE_OPTS(rgate_spawnd_opts, .policy = s.policy,
						      .cgroup = "", .reconnect_ms = GRACE_MS,
						      .flags = RGATE_SPAWND_SHARED);
	struct rgate_spawnd *sd;
	struct rgate_node *node;
	struct rgate_peer *peer;

	(void)state;
	/* In the place of the other server, in this process */
	serve_client_down(&s);
	serve_stop(&s, 0);
	assert_int_equal(rgate_spawnd_create(&sd, s.c.conf, &o), 0);
	node = cluster_node(&s.c, 0);
	assert_int_equal(rgate_spawnd_attach(sd, node), 0);
	assert_int_equal(rgate_peer_open(&peer, node, 1), 0);
	assert_int_equal(rgate_spawnd_add_peer(sd, peer), 0);
	assert_int_equal(rgate_spawnd_add_peer(sd, peer), -EBUSY);
	serve_client_up(&s);
	assert_int_equal(rgate_peer_wait_up(peer, MS), 0);
	assert_int_equal(rgate_spawnd_process(sd), 0);
	serve_client_down(&s);
	wait_for(peer_state(peer) != RGATE_PEER_UP);
	assert_int_equal(rgate_spawnd_process(sd), 0);
	rgate_spawnd_remove_peer(sd, peer);
	assert_in_range(calls(sd, 3 * GRACE_MS), 0, 10);
	rgate_spawnd_destroy(sd);
	rgate_peer_close(peer);
	assert_int_equal(node_ended(node), 0);
	serve_start(&s);
}

static struct rgate_spawn_result end_of(struct rgate_spawn_job *job)
{
	struct rgate_spawn_result r = { .sz = sizeof(r) };

	assert_int_equal(rgate_spawn_job_wait(job, &r, MS), 0);
	rgate_spawn_job_close(job);
	return r;
}

/* The process's parent; -1: it is gone */
static int stat_of(int pid, char name[32])
{
	char path[32];
	int ppid = -1;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	f = fopen(path, "re");
	if (!f)
		return -1;
	if (fscanf(f, "%*d (%31[^)]) %*c %d", name, &ppid) != 2)
		ppid = -1;
	fclose(f);
	return ppid;
}

/* 0: it is gone */
static unsigned int files_of(int pid)
{
	unsigned int n = 0;
	char path[32];
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/fd", pid);
	dir = opendir(path);
	while (dir && readdir(dir))
		n++;
	if (dir)
		closedir(dir);
	return n > 2 ? n - 2 : 0;
}

/* Processes of the spawner's that have no more open than their streams, where they say that they
 * cannot be started, and, of the one that was made ahead, what its keeper waits for */
static unsigned int bare_starts(void)
{
	char name[32], parent[32] = "";
	DIR *dir = opendir("/proc");
	struct dirent *e;
	unsigned int n = 0, files;
	int pid, server;

	assert_non_null(dir);
	while ((e = readdir(dir))) {
		pid = atoi(e->d_name);
		if (pid <= 0)
			continue;
		/* started by the spawner of the server, which is a child of ours */
		server = stat_of(stat_of(pid, name), parent);
		if (strncmp(parent, "ringgate-spawn", 14) || stat_of(server, name) != getpid())
			continue;
		files = files_of(pid);
		n += files == 4 || files == 5;
	}
	closedir(dir);
	return n;
}

/* One that cannot be started keeps nobody else from it, and is given up in the end. */
static void start_that_hangs(void **state)
{
	static const char *const argv[] = { "/bin/true", NULL };
	const struct rgate_spawn_request req = RGATE_OPTS(rgate_spawn_request, .argv = argv,
							  .cwd = "/hangs");
	struct rgate_spawn_job *job[40];
	struct rgate_spawn_result r;
	struct done d;
	unsigned int i;

	(void)state;
	/* more than the spawner has slots for */
	for (i = 0; i < ARRAY_LEN(job); i++)
		assert_int_equal(rgate_spawn_start(s.spawn, &req, &job[i]), 0);
	wait_for((rgate_spawn_process(s.spawn), serve_stats(&s).running == ARRAY_LEN(job)));
	wait_for(bare_starts() == ARRAY_LEN(job));
	d = run(&s, "/bin/echo", "x");
	assert_ran(&d, 0, "x\n");
	assert_int_equal(serve_stats(&s).running, ARRAY_LEN(job));
	for (i = 0; i < ARRAY_LEN(job); i++) {
		r = end_of(job[i]);
		assert_int_equal(r.state, RGATE_SPAWN_ERROR);
		assert_int_equal(r.stage, RGATE_SPAWN_AT_SETUP);
		assert_int_equal(r.error, -ETIMEDOUT);
	}
	d = run(&s, "/bin/echo", "y");
	assert_ran(&d, 0, "y\n");
}

/* The policy is asked when its turn comes, not when it was asked for. */
static void forbidden_in_queue(void **state)
{
	struct rgate_spawn_job *first, *second;
	struct rgate_spawn_result r;
	struct done d;

	(void)state;
	assert_int_equal(serve_reload(&s, "node 1 user %s max-running 1\nallow 1 any\n"), 0);
	first = start(&s, 0, "/bin/sleep", "1000");
	wait_for((rgate_spawn_process(s.spawn), serve_stats(&s).running == 1));
	second = start(&s, 0, "/bin/echo", "x");
	wait_for((rgate_spawn_process(s.spawn), serve_stats(&s).queued == 1));
	assert_int_equal(serve_reload(&s, "node 1 user %s max-running 1\nallow 1 /bin/sleep\n"),
			 0);
	assert_int_equal(rgate_spawn_job_kill(first, SIGKILL, RGATE_SPAWN_TO_TREE), 0);
	assert_int_equal(end_of(first).signal, SIGKILL);
	r = end_of(second);
	assert_int_equal(r.state, RGATE_SPAWN_ERROR);
	assert_int_equal(r.stage, RGATE_SPAWN_AT_REQUEST);
	assert_int_equal(r.error, -EACCES);
	/* A file that makes no sense changes nothing. */
	assert_int_equal(serve_reload(&s, "nonsense\n"), -EINVAL);
	d = run(&s, "/bin/sleep", "0");
	assert_ran(&d, 0, "");
}

static int up(void **state)
{
	(void)state;
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
		      -1, 0);
	assert_ptr_not_equal(shared, MAP_FAILED);
	serve_up(&s, NULL);
	return 0;
}

static int up_short(void **state)
{
	s.start_ms = 2000 * unit_patience();
	return up(state);
}

static int up_short_without(void **state)
{
	s.cgroup = "";
	return up_short(state);
}

static int up_hub(void **state)
{
	s.hub = true;
	return up(state);
}

static int up_hub_late(void **state)
{
	setenv("RGATE_LOCAL_LATE", "5000", 1);
	return up_hub(state);
}

static int down(void **state)
{
	(void)state;
	serve_down(&s);
	munmap(shared, sizeof(*shared));
	s.sock = 0;
	s.hub = false;
	unsetenv("RGATE_LOCAL_LATE");
	s.start_ms = 0;
	s.cgroup = NULL;
	return 0;
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test_setup_teardown(killed_in_read, up, down),
	cmocka_unit_test_setup_teardown(closed_while_paused, up, down),
	cmocka_unit_test_setup_teardown(staged_apart, up, down),
	cmocka_unit_test_setup_teardown(removed_while_gone, up, down),
	{ "staged_apart (hub)", staged_apart, up_hub, down, NULL },
	cmocka_unit_test_setup_teardown(completions_alone, up_hub_late, down),
	cmocka_unit_test_setup_teardown(close_unanswered, up, down),
	cmocka_unit_test_setup_teardown(many_answers, up, down),
	cmocka_unit_test_setup_teardown(kill_asked_again, up, down),
	cmocka_unit_test_setup_teardown(questions_left, up, down),
	cmocka_unit_test_setup_teardown(start_that_hangs, up_short, down),
	{ "start_that_hangs (no control groups)", start_that_hangs, up_short_without, down, NULL },
	cmocka_unit_test_setup_teardown(forbidden_in_queue, up, down),
	{ "many_answers (hub)", many_answers, up_hub, down, NULL },
};

OWN_SPAWNER_MAIN(tests)
