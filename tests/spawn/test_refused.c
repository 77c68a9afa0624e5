// SPDX-License-Identifier: MIT OR GPL-2.0
/* What is not run: against the policy, malformed, from who lies; and what is then as before. */
#include "raw.h"

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static struct serve s;

static void policy(void **state)
{
	static const char *const argv[] = { "/bin/echo", "x", NULL };
	static const char *const preload[] = { "LD_PRELOAD=/x", NULL };
	static const char *const lang[] = { "LANG=C", NULL };
	struct rgate_spawn_request req = RGATE_OPTS(rgate_spawn_request, .argv = argv,
		.stdout_mode = RGATE_SPAWN_OUT_STREAM, .env = preload);
	struct done d;

	(void)state;
	d = run(&s, "/bin/echo", "x");
	assert_ran(&d, 0, "x\n");
	d = run(&s, "/bin/echo", "y");
	assert_true(strlen(d.r.reason));
	assert_failed(&d, RGATE_SPAWN_AT_REQUEST, -EACCES);
	d = run(&s, "/bin/sh", "-c", "echo x");
	assert_failed(&d, RGATE_SPAWN_AT_REQUEST, -EACCES);
	/* is it there? not told */
	d = run(&s, "/no/such/thing");
	assert_failed(&d, RGATE_SPAWN_AT_REQUEST, -EACCES);
	d = run(&s, "/bin/../bin/echo", "x");
	assert_failed(&d, RGATE_SPAWN_AT_REQUEST, -EINVAL);
	d = run(&s, "bin/echo", "x");
	assert_failed(&d, RGATE_SPAWN_AT_REQUEST, -EINVAL);
	d = run_request(&s, &req);
	assert_failed(&d, RGATE_SPAWN_AT_REQUEST, -EACCES);
	req.env = lang;
	d = run_request(&s, &req);
	assert_ran(&d, 0, "x\n");
}

static void off(void **state)
{
	struct done d;

	(void)state;
	d = run(&s, "/bin/true");
	assert_failed(&d, RGATE_SPAWN_AT_REQUEST, -EACCES);
}

static void hash_of(const char *path, char hex[65])
{
	char command[128];
	FILE *f;

	snprintf(command, sizeof(command), "sha256sum %s", path);
	f = popen(command, "r");
	assert_non_null(f);
	assert_int_equal(fscanf(f, "%64s", hex), 1);
	pclose(f);
}

static void hashes(void **state)
{
	char dir[] = "/tmp/ringgate-test-XXXXXX";
	char tool[80], text[512], hex[65], script[80], script_hex[65];
	const char *const argv[] = { tool, "-m", "/x", NULL };
	const struct rgate_spawn_request req = RGATE_OPTS(rgate_spawn_request, .argv = argv,
							  .files = 5, .memory = 16 << 20);
	struct rgate_spawn_result r = { .sz = sizeof(r) };
	struct rgate_spawn_job *job;
	struct done d;
	FILE *f;

	(void)state;
	assert_non_null(mkdtemp(dir));
	snprintf(tool, sizeof(tool), "%s/tool", dir);
	snprintf(script, sizeof(script), "%s/script", dir);
	snprintf(text, sizeof(text),
		 "cp /bin/readlink %s; echo '#!/bin/sh' > %s; chmod +x %s", tool,
		 script, script);
	assert_int_equal(system(text), 0);
	hash_of(tool, hex);
	hash_of(script, script_hex);
	snprintf(text, sizeof(text), "node 1 user %%s\nallow 1 %s sha256 %s\nallow 1 %s sha256 %s\n",
		 tool, hex, script, script_hex);
	serve_up(&s, text);
	d = run(&s, tool, "-m", "/is/it");
	assert_ran(&d, 0, "/is/it\n");
	d = run(&s, tool, "-m", "/and/again");
	assert_ran(&d, 0, "/and/again\n");
	/* also where it may open hardly any */
	assert_int_equal(rgate_spawn_start(s.spawn, &req, &job), 0);
	assert_int_equal(rgate_spawn_job_wait(job, &r, MS), 0);
	assert_int_equal(r.error, 0);
	assert_int_equal(r.exit_code, 0);
	rgate_spawn_job_close(job);
	/* It is a copy that is executed, which nobody can write to meanwhile. */
	d = run(&s, tool, "/proc/self/exe");
	assert_ran(&d, 0, "/memfd:executed (deleted)\n");
	d = run(&s, script);
	assert_failed(&d, RGATE_SPAWN_AT_EXEC, -ENOEXEC);
	f = fopen(tool, "a");
	assert_non_null(f);
	fputc('x', f);
	fclose(f);
	d = run(&s, tool, "another");
	assert_failed(&d, RGATE_SPAWN_AT_EXEC, -EACCES);
	unlink(tool);
	d = run(&s, tool, "none");
	assert_failed(&d, RGATE_SPAWN_AT_EXEC, -ENOENT);
	serve_down(&s);
	unlink(script);
	rmdir(dir);
}

/* As another user: groups, home and capabilities are his */
static void other_user(void **state)
{
	static const char *const nice[] = { "/usr/bin/nice", NULL };
	struct rgate_spawn_request fast = RGATE_OPTS(rgate_spawn_request, .nice = -5,
		.argv = nice, .stdout_mode = RGATE_SPAWN_OUT_STREAM);
	static const gid_t mine[] = { 0, 4711 };
	gid_t were[256];
	struct done d;
	int ngroups;

	(void)state;
	if (geteuid())
		unit_skip("needs root");
	/* the daemon has groups of its own, which are not the user's */
	ngroups = getgroups(ARRAY_LEN(were), were);
	assert_true(ngroups >= 0);
	assert_int_equal(setgroups(2, mine), 0);
	serve_up(&s, "node 1 user nobody\nallow 1 any\n# %s\n");
	d = run(&s, "/bin/sh", "-c", "id -un; id -Gn; grep -E 'Cap[^B]' "
				     "/proc/self/status | cut -f2 | sort -u; echo $USER");
	assert_ran(&d, 0, "nobody\nnogroup\n0000000000000000\nnobody\n");
	d = run(&s, "/bin/cat", "/etc/shadow");
	assert_ran(&d, 1, "");
	d = run(&s, "/bin/sh", "-c", "kill -0 $PPID 2>/dev/null || echo cannot");
	assert_ran(&d, 0, "cannot\n");
	/* nobody is sped up */
	d = run_request(&s, &fast);
	assert_ran(&d, 0, "0\n");
	serve_down(&s);
	/* Not earlier: the kernel refuses what a process that has changed its credentials
	 * since writes to a descriptor of rdma_cm (ucma_write).
	 */
	assert_int_equal(setgroups((size_t)ngroups, were), 0);
}

static void malformed_messages(void **state)
{
	struct raw raw = { .cookie = 100 };
	struct rgate_spawn_start m;
	struct rgate_spawn_control c;
	uint64_t seed = 17;
	uint32_t len;
	uint8_t junk[200];
	struct done d;
	size_t n, k;
	int i;

	(void)state;
	assert_int_equal(rgate_pool_alloc(rgate_node_pool(s.node), 65536, &raw.buf), 0);
	len = raw_true((uint8_t *)raw.buf->addr + 512);
	m = raw_start(&s, &raw, len);
	raw_send(&s, &m, sizeof(m));
	assert_int_equal(raw_answer(&s, &raw), 0);
#define REFUSED(change, err)						\
	do {								\
		m = raw_start(&s, &raw, len);				\
		change;							\
		raw_send(&s, &m, sizeof(m));				\
		assert_int_equal(raw_answer(&s, &raw), err);		\
	} while (0)
	REFUSED(m.record = htole32(UINT32_MAX), -EPROTO);
	REFUSED(m.record_len = htole32(UINT32_MAX), -EPROTO);
	REFUSED(m.record_len = 0, -EPROTO);
	REFUSED(m.record = htole32(65530), -EPROTO);
	REFUSED(m.record_len = htole32(len - 1), -EPROTO);
	REFUSED(m.record_len = htole32(len + 1), -EPROTO);
	REFUSED(m.record = htole32(516), -EPROTO);
	REFUSED(m.ring_len[1] = htole32(4097), -EPROTO);
	REFUSED(m.ring_len[1] = htole32(2048), -EPROTO);
	REFUSED(m.ring_len[1] = htole32(1U << 31), -EPROTO);
	REFUSED((m.ring_len[2] = htole32(4096), m.ring[2] = htole32(65536 - 4095)), -EPROTO);
	REFUSED((m.ring_len[0] = htole32(4096), m.ring[0] = htole32(UINT32_MAX)), -EPROTO);
	REFUSED((m.ring_len[1] = htole32(4096), m.ring[1] = htole32(8)), -EPROTO);
	REFUSED((m.ring_len[0] = htole32(4096), m.ring[0] = htole32(65536 - 4095)), -EPROTO);
	REFUSED(m.memory.magic ^= 1, -EPROTO);
	REFUSED(m.memory.access = RGATE_ACCESS_REMOTE_READ, -EACCES);
	REFUSED(m.lent.magic ^= 1, -EPROTO);
	REFUSED(m.lent.access = RGATE_ACCESS_REMOTE_WRITE, -EACCES);
	REFUSED(m.lent.length = htole64(512 + len - 1), -EPROTO);
	REFUSED(m.memory.length = htole64(100), -EACCES);
	REFUSED(m.memory.addr = htole64(le64toh(m.memory.addr) + 4), -EACCES);
	REFUSED(m.h.type = RGATE_SPAWN_ATTACH, -ENOENT);
	REFUSED((m.h.type = RGATE_SPAWN_ATTACH, m.h.id = 77), -ENOENT);
	/* to a process that is not there */
	memset(&c, 0, sizeof(c));
	c.h = m.h;
	c.h.type = RGATE_SPAWN_CONTROL;
	raw_send(&s, &c, sizeof(c));
	/* anything at all */
	for (i = 0; i < (int)unit_rounds(2000); i++) {
		n = unit_random(&seed) % sizeof(junk);
		for (k = 0; k < n; k++)
			junk[k] = (uint8_t)unit_random(&seed);
		m.h.type = (uint8_t)(unit_random(&seed) % 10);
		memcpy(junk, &m.h, n < 6 ? n : 6);
		raw_send(&s, junk, n ? n : 1);
		/* Who takes no answers is not heard for long. */
		while (!rgate_peer_recv(s.peer, &(struct rgate_msg){ 0 }, junk, sizeof(junk), 0))
			;
	}
	/* the same with what was a good one, its memory taken out of bounds */
	for (i = 0; i < (int)unit_rounds(2000); i++) {
		m = raw_start(&s, &raw, len);
		for (k = 0; k <= unit_random(&seed) % 3; k++)
			((uint8_t *)&m)[offsetof(struct rgate_spawn_start, record) +
					unit_random(&seed) % (sizeof(m) - 8 -
						offsetof(struct rgate_spawn_start, record))] ^=
				(uint8_t)(1 << unit_random(&seed) % 8);
		raw_send_at_risk(&s, &m, sizeof(m));
		while (!rgate_peer_recv(s.peer, &(struct rgate_msg){ 0 }, junk, sizeof(junk), 0))
			;
	}
	assert_true(serve_stats(&s).garbage > 0);
	/* It serves as before; the garbage of others is not this one's. */
	serve_client_down_raw(&s, raw.buf);
	serve_client_up(&s);
	d = run(&s, "/bin/echo", "x");
	assert_ran(&d, 0, "x\n");
}

#define GIVEN	(1U << 20)	/* more than what a pipe and a chunk take of it */

/* Who attaches again says where its streams are; what is in them must fit. */
static void other_rings(void **state)
{
	struct raw raw = { .cookie = 100 };
	const struct rgate_spawn_status *st;
	struct rgate_spawn_control c;
	struct rgate_spawn_start m;
	uint64_t taken;
	struct done d;
	uint32_t len;

	(void)state;
	assert_int_equal(rgate_pool_alloc(rgate_node_pool(s.node), GIVEN + 65536, &raw.buf), 0);
	memset(raw.buf->addr, 0, GIVEN + 65536);
	st = raw.buf->addr;
	/* which reads nothing of its stdin */
	len = raw_record((uint8_t *)raw.buf->addr + 512, "/bin/sleep\0/bin/sleep\099", 25, 11, 2,
			 RGATE_SPAWN_IN_STREAM);
	m = raw_start(&s, &raw, len);
	m.ring[0] = htole32(65536);
	m.ring_len[0] = htole32(GIVEN);
	raw_send(&s, &m, sizeof(m));
	wait_for((le64toh(__atomic_load_n(&st->state, __ATOMIC_ACQUIRE)) & 0xff) ==
		 RGATE_SPAWN_RUNNING);
	c = (struct rgate_spawn_control){ .h = m.h, .given = htole64(GIVEN) };
	c.h.type = RGATE_SPAWN_CONTROL;
	c.h.id = st->id;
	raw_send(&s, &c, sizeof(c));
	/* Its pipe is full, and nothing is under way. */
	do {
		taken = serve_stats(&s).bytes_in;
		usleep(200000 * unit_patience());
	} while (!taken || serve_stats(&s).bytes_in != taken);

	m.h.type = RGATE_SPAWN_ATTACH;
	m.h.id = st->id;
	m.ring_len[0] = 0;
	raw_send(&s, &m, sizeof(m));
	assert_int_equal(raw_answer(&s, &raw), -EPROTO);
	m.ring_len[0] = htole32(4096);
	raw_send(&s, &m, sizeof(m));
	assert_int_equal(raw_answer(&s, &raw), -EPROTO);
	m.ring_len[0] = htole32(GIVEN);
	m.consumed[0] = htole64(1);
	raw_send(&s, &m, sizeof(m));
	assert_int_equal(raw_answer(&s, &raw), -EPROTO);
	/* It is attached as before, and obeys. */
	c.signals = htole32(1);
	c.signal = htole32(SIGKILL);
	raw_send(&s, &c, sizeof(c));
	assert_int_equal(raw_answer(&s, &raw), 0);
	assert_int_equal(le32toh(st->signal), SIGKILL);
	serve_client_down_raw(&s, raw.buf);
	serve_client_up(&s);
	d = run(&s, "/bin/echo", "x");
	assert_ran(&d, 0, "x\n");
}

/* Memory that is not there: the connection is lost with that, and comes again */
static void bad_memory(void **state)
{
	struct raw raw = { .cookie = 100 };
	struct rgate_spawn_start m;
	struct done d;
	uint32_t len;

	(void)state;
	assert_int_equal(rgate_pool_alloc(rgate_node_pool(s.node), 65536, &raw.buf), 0);
	len = raw_true((uint8_t *)raw.buf->addr + 512);
	m = raw_start(&s, &raw, len);
	m.lent.rkey = htole32(0x5a5a00);
	raw_send_at_risk(&s, &m, sizeof(m));
	wait_for(serve_stats(&s).requests == 1);
	wait_for(peer_state(s.peer) == RGATE_PEER_UP);
	serve_client_down_raw(&s, raw.buf);
	serve_client_up(&s);
	d = run(&s, "/bin/echo", "x");
	assert_ran(&d, 0, "x\n");
	assert_int_equal(serve_stats(&s).started, 1);
}

/* Records garbled on their way: no process, or one that was meant */
static void garbled_records(void **state)
{
	struct raw raw = { .cookie = 100 };
	struct rgate_spawn_start m;
	uint64_t seed = 4;
	uint32_t len;
	struct done d;
	int i, k, fine = 0, err;

	(void)state;
	assert_int_equal(rgate_pool_alloc(rgate_node_pool(s.node), 65536, &raw.buf), 0);
	for (i = 0; i < (int)unit_rounds(1000); i++) {
		uint8_t *record = (uint8_t *)raw.buf->addr + 512;

		len = raw_true(record);
		for (k = 0; k < 2; k++)
			record[unit_random(&seed) % len] ^= (uint8_t)(1 << unit_random(&seed) % 8);
		m = raw_start(&s, &raw, len);
		raw_send(&s, &m, sizeof(m));
		err = raw_answer(&s, &raw);
		assert_int_not_equal(err, -ETIMEDOUT);
		fine += !err;
	}
	assert_true(fine < i);
	serve_client_down_raw(&s, raw.buf);
	serve_client_up(&s);
	d = run(&s, "/bin/echo", "x");
	assert_ran(&d, 0, "x\n");
}

static void reloaded(void **state)
{
	struct rgate_spawnd *sd;
	struct rgate_spawnd_opts o = RGATE_OPTS(rgate_spawnd_opts, .cgroup = "");
	char path[96];
	struct cluster c;
	FILE *f;

	(void)state;
	cluster_make(&c, 2, 0);
	snprintf(path, sizeof(path), "%s/policy", c.dir);
	o.policy = path;
	f = fopen(path, "w");
	assert_non_null(f);
	fputs("nonsense\n", f);
	fclose(f);
	assert_int_equal(chmod(path, 0600), 0);
	assert_int_equal(rgate_spawnd_create(&sd, c.conf, &o), -EINVAL);
	unlink(path);
	assert_int_equal(rgate_spawnd_create(&sd, c.conf, &o), 0);
	assert_int_equal(rgate_spawnd_reload(sd), 0);
	f = fopen(path, "w");
	assert_non_null(f);
	fputs("nonsense\n", f);
	fclose(f);
	chmod(path, 0600);
	assert_int_equal(rgate_spawnd_reload(sd), -EINVAL);
	chmod(path, 0666);
	assert_int_equal(rgate_spawnd_reload(sd), -EPERM);
	rgate_spawnd_destroy(sd);
	unlink(path);
	cluster_free(&c);
}

/* A name without a directory is of the one that the server was made in. */
static void beside(void **state)
{
	struct rgate_spawnd_opts o = RGATE_OPTS(rgate_spawnd_opts, .cgroup = "",
						.policy = "policy");
	struct rgate_spawnd *sd;
	char here[4096];
	struct cluster c;
	FILE *f;

	(void)state;
	assert_non_null(getcwd(here, sizeof(here)));
	cluster_make(&c, 2, 0);
	assert_int_equal(chdir(c.dir), 0);
	f = fopen("policy", "w");
	assert_non_null(f);
	assert_int_equal(fclose(f), 0);
	assert_int_equal(chmod("policy", 0600), 0);
	assert_int_equal(rgate_spawnd_create(&sd, c.conf, &o), 0);
	/* One that is not found is none, and no error. */
	f = fopen("policy", "w");
	assert_non_null(f);
	fputs("nonsense\n", f);
	assert_int_equal(fclose(f), 0);
	assert_int_equal(chdir("/"), 0);
	assert_int_equal(rgate_spawnd_reload(sd), -EINVAL);
	rgate_spawnd_destroy(sd);
	assert_int_equal(chdir(c.dir), 0);
	unlink("policy");
	assert_int_equal(chdir(here), 0);
	cluster_free(&c);
}

/* Lines that ask more of what is run */
static void demands(void **state)
{
	static const char *const argv[] = { "/bin/true", NULL };
	const struct rgate_spawn_request req = RGATE_OPTS(rgate_spawn_request, .argv = argv,
							  .memory = 64 << 20);
	struct done d;

	(void)state;
	s.cgroup = "";
	serve_up(&s, "node 1 user %s\nallow 1 any\nno-new-privs *\n");
	d = run(&s, "/bin/grep", "NoNewPrivs", "/proc/self/status");
	assert_ran(&d, 0, "NoNewPrivs:\t1\n");
	d = run_request(&s, (struct rgate_spawn_request *)&req);
	assert_true(d.r.flags & RGATE_SPAWN_NO_CGROUP);
	assert_ran(&d, 0, "");
	assert_int_equal(serve_reload(&s, "node 1 user %s\nallow 1 any\nneed-cgroup 1\n"), 0);
	d = run(&s, "/bin/true");
	assert_true(strlen(d.r.reason));
	assert_failed(&d, RGATE_SPAWN_AT_REQUEST, -EOPNOTSUPP);
	assert_int_equal(serve_reload(&s, "node 1 user %s\nallow 1 any\n"), 0);
	d = run(&s, "/bin/grep", "NoNewPrivs", "/proc/self/status");
	assert_ran(&d, 0, "NoNewPrivs:\t0\n");
	serve_down(&s);
	s.cgroup = NULL;
}

/* A limit of the policy's alone is one of the group's, or nothing is run */
static void demanded_by_policy(void **state)
{
	struct done d;

	(void)state;
	serve_up(&s, "node 1 user %s\nallow 1 any\nlimit 1 memory 64M\nneed-cgroup 1\n");
	d = run(&s, "/bin/sh", "-c",
		"cat /sys/fs/cgroup$(sed -n s/^0:://p /proc/self/cgroup)/memory.max");
	if (d.r.state == RGATE_SPAWN_COMPLETE)
		assert_ran(&d, 0, "67108864\n");
	else
		assert_failed(&d, RGATE_SPAWN_AT_REQUEST, -EOPNOTSUPP);
	serve_down(&s);
}

static int up(void **state)
{
	(void)state;
	serve_up(&s, "node 1 user %s\nallow 1 /bin/echo args x\nallow 1 /bin/true\n"
		     "allow 1 /bin/sleep args 99\npath /bin\n");
	return 0;
}

static int up_off(void **state)
{
	(void)state;
	serve_up(&s, "# nothing for %s\nnode 1 user nobody\n");
	return 0;
}

static int down(void **state)
{
	(void)state;
	serve_down(&s);
	return 0;
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test_setup_teardown(policy, up, down),
	cmocka_unit_test_setup_teardown(off, up_off, down),
	cmocka_unit_test(hashes),
	cmocka_unit_test(other_user),
	cmocka_unit_test_setup_teardown(malformed_messages, up, down),
	cmocka_unit_test_setup_teardown(other_rings, up, down),
	cmocka_unit_test_setup_teardown(bad_memory, up, down),
	cmocka_unit_test_setup_teardown(garbled_records, up, down),
	cmocka_unit_test(reloaded),
	cmocka_unit_test(beside),
	cmocka_unit_test(demands),
	cmocka_unit_test(demanded_by_policy),
};

UNIT_MAIN(tests)
