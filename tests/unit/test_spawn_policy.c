// SPDX-License-Identifier: MIT OR GPL-2.0
/* Who may run what: the policy's lines, what is wrong with them, what they let through. */
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "policy.h"
#include "refuse.h"

static bool refuse_mine(void)
{
	return true;
}

REFUSES(void *, reallocarray, ENOMEM, NULL, (void *p, size_t n, size_t size), (p, n, size))

static struct rgate_cluster *cluster;
static char last[512];

static void on_log(void *ctx, enum rgate_log_level level, const char *msg)
{
	(void)ctx;
	(void)level;
	snprintf(last, sizeof(last), "%s", msg);
}

static void setup(void)
{
	static const char text[] = "provider local\n"
				   "node 0 gateway /tmp/g gate\nnode 1 compute /tmp/a one\n"
				   "node 2 compute /tmp/b two\n"
				   UNIT_KEY_LINE(0) UNIT_KEY_LINE(1) UNIT_KEY_LINE(2);

	if (cluster)
		return;
	assert_int_equal(rgate_cluster_parse(&cluster, "test", text, strlen(text)), 0);
	rgate_log_set(on_log, NULL);
}

static struct rgate_spawn_policy *parse(const char *text)
{
	struct rgate_spawn_policy *policy = NULL;

	setup();
	last[0] = '\0';
	if (rgate_policy_parse(&policy, cluster, "conf", text, strlen(text))) {
		print_message("%s\n", last);
		fail();
	}
	return policy;
}

static void wrong(const char *text, const char *where)
{
	struct rgate_spawn_policy *policy = NULL;

	setup();
	last[0] = '\0';
	assert_int_equal(rgate_policy_parse(&policy, cluster, "conf", text, strlen(text)),
			 -EINVAL);
	assert_null(policy);
	if (strncmp(last, where, strlen(where)))
		fail_msg("'%s' does not begin with '%s'", last, where);
}

static void errors(void **state)
{
	char name[sizeof(((struct rgate_policy_user *)NULL)->name)], line[80];

	(void)state;
	wrong("node", "conf:1: node NODE user USER");
	wrong("\n\nnode 7 user nobody", "conf:3: the cluster has no node '7'");
	wrong("node one user who-is-that", "conf:1: there is no user");
	wrong("node one user 0", "conf:1: there is no user '0'");
	/* of as many bytes as there are for it, and of one less */
	memset(name, 'x', sizeof(name));
	snprintf(line, sizeof(line), "node one user %.*s", (int)sizeof(name), name);
	wrong(line, "conf:1: the name of the user is too long");
	snprintf(line, sizeof(line), "node one user %.*s", (int)sizeof(name) - 1, name);
	wrong(line, "conf:1: there is no user 'xx");
	wrong("node one user nobody\nnode 1 user root", "conf:2: node '1' has a user already");
	wrong("node one user nobody what", "conf:1: what is 'what'?");
	wrong("node one user nobody what 1", "conf:1: what is 'what'?");
	wrong("node one user nobody max-running 0", "conf:1: max-running is '0'");
	wrong("node one user nobody max-running 1x", "conf:1: max-running is '1x'");
	wrong("node one user nobody max-running", "conf:1: what is");
	wrong("allow one", "conf:1: allow NODE PATH");
	wrong("allow one bin/x", "conf:1: 'bin/x' is neither");
	wrong("allow three /x", "conf:1: the cluster has no node 'three'");
	wrong("allow one /x sha256 abc", "conf:1: sha256 has 64");
	wrong("allow one /x arguments", "conf:1: what is 'arguments'?");
	wrong("allow one /x sha256", "conf:1: what is 'sha256'?");
	wrong("env one", "conf:1: env NODE");
	wrong("limit one wall", "conf:1: limit NODE");
	wrong("limit one walls 1", "conf:1: there is no limit 'walls'");
	wrong("limit one memory 8X", "conf:1: '8X' is not a size");
	wrong("limit one memory -1", "conf:1: '-1' is not a size");
	wrong("limit one memory 99999999999T", "conf:1: '99999999999T' is not a size");
	wrong("limit one nice 20", "conf:1: nice is '20'");
	wrong("limit one wall 0", "conf:1: wall is '0'");
	wrong("no-new-privs", "conf:1: no-new-privs NODE");
	wrong("need-cgroup three", "conf:1: the cluster has no node 'three'");
	wrong("path", "conf:1: path DIRECTORY:DIRECTORY...");
	wrong("path /bin /x", "conf:1: path DIRECTORY:DIRECTORY...");
	wrong("path bin", "conf:1: a directory of the path");
	wrong("path /bin::/x", "conf:1: a directory of the path");
	wrong("max-running", "conf:1: max-running NUMBER");
	wrong("max-queued x", "conf:1: max-queued is 'x'");
	wrong("# fine\n  bogus 1", "conf:2: what is 'bogus'?");
	wrong("allow one \"/x", "conf:1: a quote that does not end");
	wrong("allow one \"/x\"y", "conf:1: a quote that ends within a word");
}

static void limits_of_text(void **state)
{
	struct rgate_spawn_policy *policy;
	char *big = malloc(RGATE_POLICY_MAX + 1);
	char words[400] = "allow one /x args";
	int i;

	(void)state;
	setup();
	assert_non_null(big);
	memset(big, '\n', RGATE_POLICY_MAX + 1);
	assert_int_equal(rgate_policy_parse(&policy, cluster, "conf", big, RGATE_POLICY_MAX + 1),
			 -EFBIG);
	assert_int_equal(rgate_policy_parse(&policy, cluster, "conf", big, RGATE_POLICY_MAX), 0);
	rgate_policy_free(policy);
	free(big);
	assert_int_equal(rgate_policy_parse(&policy, cluster, "conf", "max-running 1\0", 14),
			 -EINVAL);
	for (i = 0; i < 130; i++)
		strcat(words, " x");
	wrong(words, "conf:1: more than 128 words");
	rgate_policy_free(parse(""));
	rgate_policy_free(parse("# nothing\r\n\t \r\n"));
}

static char *args[8];

static struct rgate_spawn_parsed request(const char *exe, const char *arg1, const char *arg2)
{
	args[0] = (char *)exe;
	args[1] = (char *)arg1;
	args[2] = arg1 ? (char *)arg2 : NULL;
	args[3] = NULL;
	return (struct rgate_spawn_parsed){
		.exe = exe, .argv = args, .argc = 1 + !!arg1 + (arg1 && arg2),
	};
}

static int check(const struct rgate_spawn_policy *policy, uint32_t id, const char *exe,
		 const char *arg1, const char *arg2)
{
	struct rgate_spawn_parsed req = request(exe, arg1, arg2);
	struct rgate_policy_grant grant;
	char why[RGATE_POLICY_WHY] = "";
	int err = rgate_policy_check(policy, id, &req, &grant, why);

	assert_true(!err == !*why);
	return err;
}

/* Under another name than its own */
static int check_named(const struct rgate_spawn_policy *policy, uint32_t id, const char *exe,
		       const char *name)
{
	struct rgate_spawn_parsed req = request(exe, NULL, NULL);
	struct rgate_policy_grant grant;
	char why[RGATE_POLICY_WHY];

	args[0] = (char *)name;
	return rgate_policy_check(policy, id, &req, &grant, why);
}

static void who_and_what(void **state)
{
	struct rgate_spawn_policy *p = parse("node one user nobody max-running 3 max-queued 9\n"
				       "node gate user root admin\n"
				       "allow one /bin/true args\n"
				       "allow one /opt/*/run args job-? ...\n"
				       "allow * /bin/echo\n"
				       "allow gate any\n"
				       "allow one \"/opt/a b\" args \"x y\"\n"
				       "max-queued 7\n");
	char longest[PATH_MAX + 2];

	(void)state;
	assert_int_equal(check(p, 1, "/bin/true", NULL, NULL), 0);
	assert_int_equal(check(p, 1, "/bin/true", "x", NULL), -EACCES);
	assert_int_equal(check(p, 1, "/bin/false", NULL, NULL), -EACCES);
	assert_int_equal(check(p, 1, "/bin/echo", "x", "y"), 0);
	assert_int_equal(check(p, 1, "/opt/a/run", "job-1", NULL), 0);
	assert_int_equal(check(p, 1, "/opt/a/run", "job-1", "more"), 0);
	assert_int_equal(check(p, 1, "/opt/a/run", "job-12", NULL), -EACCES);
	assert_int_equal(check(p, 1, "/opt/a/run", NULL, NULL), -EACCES);
	assert_int_equal(check(p, 1, "/opt/a/b/run", "job-1", NULL), -EACCES);
	assert_int_equal(check(p, 1, "/opt/../run", "job-1", NULL), -EINVAL);
	assert_int_equal(check(p, 1, "/opt/./run", "job-1", NULL), -EINVAL);
	assert_int_equal(check(p, 1, "/opt//run", "job-1", NULL), -EINVAL);
	assert_int_equal(check(p, 1, "/bin/true/", NULL, NULL), -EINVAL);
	assert_int_equal(check(p, 1, "bin/true", NULL, NULL), -EINVAL);
	assert_int_equal(check(p, 1, "./true", NULL, NULL), -EINVAL);
	assert_int_equal(check(p, 1, "/", NULL, NULL), -EINVAL);
	assert_int_equal(check(p, 1, "..", NULL, NULL), -EACCES);
	assert_int_equal(check(p, 1, "/opt/a b", "x y", NULL), 0);
	assert_int_equal(check(p, 1, "/opt/a b", "x", "y"), -EACCES);
	assert_int_equal(check_named(p, 1, "/bin/true", "true"), 0);
	assert_int_equal(check_named(p, 1, "/bin/true", "/usr/bin/true"), 0);
	assert_int_equal(check_named(p, 1, "/bin/true", "-true"), -EACCES);
	assert_int_equal(check_named(p, 1, "/bin/true", "sh"), -EACCES);
	assert_int_equal(check_named(p, 1, "/bin/true", ""), -EACCES);
	assert_int_equal(check_named(p, 1, "/bin/echo", "cat"), 0);
	/* a node without a user, one that there is not */
	assert_int_equal(check(p, 2, "/bin/echo", NULL, NULL), -EACCES);
	assert_int_equal(check(p, 8, "/bin/echo", NULL, NULL), -EACCES);
	assert_int_equal(check(p, 99, "/bin/echo", NULL, NULL), -EACCES);
	assert_int_equal(check(p, 0, "/anything", "x", NULL), 0);
	memset(longest, 'x', sizeof(longest));
	longest[0] = '/';
	longest[PATH_MAX] = '\0';
	assert_int_equal(check(p, 0, longest, NULL, NULL), -ENAMETOOLONG);
	longest[PATH_MAX - 1] = '\0';
	assert_int_equal(check(p, 0, longest, NULL, NULL), 0);

	assert_int_equal(rgate_policy_node(p, 1)->max_running, 3);
	assert_int_equal(rgate_policy_max_queued(p, 1), 9);
	assert_int_equal(rgate_policy_max_queued(p, 0), 7);
	assert_true(rgate_policy_node(p, 0)->admin && !rgate_policy_node(p, 1)->admin);
	assert_int_equal(rgate_policy_node(p, 0)->user.uid, 0);
	assert_string_equal(rgate_policy_node(p, 1)->user.name, "nobody");
	assert_true(rgate_policy_node(p, 1)->user.uid && rgate_policy_node(p, 1)->user.ngroups);
	assert_null(rgate_policy_node(p, 2));
	rgate_policy_free(p);

	assert_int_equal(rgate_policy_nothing(&p), 0);
	assert_int_equal(check(p, 0, "/bin/true", NULL, NULL), -EACCES);
	rgate_policy_free(p);
}

/* Arguments that are paths do not lead out of what the pattern names */
static void path_arguments(void **state)
{
	struct rgate_spawn_policy *p = parse("node one user nobody\n"
				       "allow one /bin/py args /opt/jobs/*.py\n"
				       "allow one /bin/ls args /srv/../x/\n"
				       "allow one /bin/cat args /opt/*/x\n"
				       "allow one /bin/url args *.html\n");

	(void)state;
	assert_int_equal(check(p, 1, "/bin/py", "/opt/jobs/a.py", NULL), 0);
	assert_int_equal(check(p, 1, "/bin/py", "/opt/jobs/../../tmp/a.py", NULL), -EACCES);
	assert_int_equal(check(p, 1, "/bin/py", "/opt/jobs/deep/a.py", NULL), -EACCES);
	assert_int_equal(check(p, 1, "/bin/py", "/opt/jobs/./a.py", NULL), -EACCES);
	assert_int_equal(check(p, 1, "/bin/py", "/opt/jobs//a.py", NULL), -EACCES);
	assert_int_equal(check(p, 1, "/bin/py", "", NULL), -EACCES);
	/* .. is what * matches */
	assert_int_equal(check(p, 1, "/bin/cat", "/opt/a/x", NULL), 0);
	assert_int_equal(check(p, 1, "/bin/cat", "/opt/../x", NULL), -EACCES);
	assert_int_equal(check(p, 1, "/bin/cat", "/opt/./x", NULL), -EACCES);
	assert_int_equal(check(p, 1, "/bin/cat", "/opt/.../x", NULL), 0);
	assert_int_equal(check(p, 1, "/bin/cat", "/opt/.a/x", NULL), 0);
	assert_int_equal(check(p, 1, "/bin/cat", "/opt/..a/x", NULL), 0);
	assert_int_equal(check(p, 1, "/bin/ls", "/srv/../x/", NULL), 0);
	assert_int_equal(check(p, 1, "/bin/ls", "/x", NULL), -EACCES);
	assert_int_equal(check(p, 1, "/bin/url", "a/b/c.html", NULL), 0);
	rgate_policy_free(p);
}

static void searched(void **state)
{
	struct rgate_spawn_policy *p = parse("node one user nobody\nallow one /usr/bin/env\n"
				       "allow one /bin/no-such-thing\npath /nowhere:/bin:/usr/bin\n");
	struct rgate_spawn_parsed req = request("env", NULL, NULL);
	struct rgate_policy_grant grant;
	char why[RGATE_POLICY_WHY];

	(void)state;
	/* /bin/env may be there, but is not allowed */
	assert_int_equal(rgate_policy_check(p, 1, &req, &grant, why), 0);
	assert_string_equal(grant.path, "/usr/bin/env");
	assert_false(grant.with_hash);
	assert_int_equal(check(p, 1, "no-such-thing", NULL, NULL), -ENOENT);
	/* is there, is not there: not told */
	assert_int_equal(check(p, 1, "true", NULL, NULL), -EACCES);
	assert_int_equal(check(p, 1, "neither-this", NULL, NULL), -EACCES);
	rgate_policy_free(p);
}

static int with_env(const struct rgate_spawn_policy *p, uint32_t id, const char *entry)
{
	struct rgate_spawn_parsed req = request("/x", NULL, NULL);
	struct rgate_policy_grant grant;
	char *env[2] = { (char *)entry };
	char why[RGATE_POLICY_WHY];

	req.env = env;
	req.envc = 1;
	return rgate_policy_check(p, id, &req, &grant, why);
}

static void environment(void **state)
{
	struct rgate_spawn_policy *p = parse("node 0 user nobody\nnode 1 user nobody\n"
				       "node 2 user nobody\nallow * /x\n"
				       "env 1 OMP_* A\nenv 1 B\nenv 2 *\n");
	char name[400];

	(void)state;
	assert_int_equal(with_env(p, 0, "LANG=C"), 0);
	assert_int_equal(with_env(p, 0, "LC_ALL=C"), 0);
	assert_int_equal(with_env(p, 0, "LD_PRELOAD=/x"), -EACCES);
	assert_int_equal(with_env(p, 0, "A=1"), -EACCES);
	assert_int_equal(with_env(p, 1, "A=1"), 0);
	assert_int_equal(with_env(p, 1, "AA=1"), -EACCES);
	assert_int_equal(with_env(p, 1, "B=1"), 0);
	assert_int_equal(with_env(p, 1, "OMP_NUM_THREADS=1"), 0);
	assert_int_equal(with_env(p, 1, "LANG=C"), -EACCES);
	assert_int_equal(with_env(p, 2, "LD_PRELOAD=/x"), 0);
	memset(name, 'n', sizeof(name));
	strcpy(name + sizeof(name) - 3, "=1");
	assert_int_equal(with_env(p, 2, name), -EACCES);
	rgate_policy_free(p);
}

static void limits(void **state)
{
	static const char hash[] =
		"000102030405060708090a0b0c0d0e0f101112131415161718191A1B1C1D1eff";
	struct rgate_spawn_parsed req = request("/x", NULL, NULL);
	struct rgate_policy_grant grant;
	struct rgate_spawn_policy *p;
	char text[512], why[RGATE_POLICY_WHY];

	(void)state;
	snprintf(text, sizeof(text), "node 1 user nobody\nallow 1 /x sha256 %s args\n"
		 "limit * wall 60 memory 2G processes 5\nlimit 1 files 9 cpu 3 nice 4 memory 1M\n",
		 hash);
	p = parse(text);
	assert_int_equal(rgate_policy_check(p, 1, &req, &grant, why), 0);
	assert_true(req.wall_ms == 60000 && req.memory == 1 << 20 && req.processes == 5);
	assert_true(req.files == 9 && req.cpu_s == 3 && req.nice == 4);
	assert_true(grant.with_hash);
	assert_true(grant.sha256[1] == 1 && grant.sha256[31] == 0xff && grant.sha256[26] == 0x1a);
	req = request("/x", NULL, NULL);
	req.wall_ms = 70000;
	req.files = 8;
	req.nice = 10;
	req.cpu_s = 2;
	assert_int_equal(rgate_policy_check(p, 1, &req, &grant, why), 0);
	assert_true(req.wall_ms == 60000 && req.files == 8 && req.nice == 10 && req.cpu_s == 2);
	rgate_policy_free(p);
	/* nobody is sped up unless the policy says so */
	p = parse("node 1 user nobody\nnode 2 user nobody\nallow * /x\nlimit 2 nice -5\n");
	req = request("/x", NULL, NULL);
	req.nice = -10;
	assert_int_equal(rgate_policy_check(p, 1, &req, &grant, why), 0);
	assert_int_equal(req.nice, 0);
	req.nice = -10;
	assert_int_equal(rgate_policy_check(p, 2, &req, &grant, why), 0);
	assert_int_equal(req.nice, -5);
	rgate_policy_free(p);
}

static void from_file(void **state)
{
	char path[] = "/tmp/ringgate-policy-XXXXXX", said[128];
	struct rgate_spawn_policy *p;
	int fd = mkstemp(path);

	(void)state;
	setup();
	assert_true(fd >= 0);
	assert_int_equal(write(fd, "max-running 5\n", 14), 14);
	assert_int_equal(rgate_policy_load(&p, cluster, path), 0);
	assert_int_equal(rgate_policy_max_running(p), 5);
	rgate_policy_free(p);
	assert_int_equal(fchmod(fd, 0620), 0);
	assert_int_equal(rgate_policy_load(&p, cluster, path), -EPERM);
	snprintf(said, sizeof(said),
		 "%s: others may write it, or it is not root's: not read", path);
	assert_string_equal(last, said);
	assert_int_equal(fchmod(fd, 0602), 0);
	assert_int_equal(rgate_policy_load(&p, cluster, path), -EPERM);
	assert_int_equal(fchmod(fd, 0644), 0);
	if (!geteuid()) {
		/* another user's, though nobody else may write it */
		assert_int_equal(fchown(fd, 4711, 0), 0);
		assert_int_equal(rgate_policy_load(&p, cluster, path), -EPERM);
		assert_int_equal(fchown(fd, 0, 4711), 0);
		assert_int_equal(rgate_policy_load(&p, cluster, path), 0);
		rgate_policy_free(p);
	} else {
		/* root's: that of somebody else, but not a stranger */
		assert_int_equal(rgate_policy_load(&p, cluster, "/etc/passwd"), -EINVAL);
	}
	assert_int_equal(ftruncate(fd, RGATE_POLICY_MAX + 1), 0);
	assert_int_equal(rgate_policy_load(&p, cluster, path), -EFBIG);
	unlink(path);
	assert_int_equal(rgate_policy_load(&p, cluster, path), -ENOENT);
	assert_int_equal(rgate_policy_load(&p, cluster, "/dev/null"), -EPERM);
	close(fd);
}

/* No memory for a part of it: there is nothing of it. */
static void no_memory(void **state)
{
	static const char text[] = "node 1 user root max-running 3\n"
				   "allow 1 /bin/echo args a b ...\nenv 1 X Y\n";
	struct rgate_spawn_policy *policy = NULL;
	unsigned int n = 0;
	int err, injected;

	(void)state;
	setup();
	refuse_setup();
	do {
		assert_null(policy);
		refuse(++n);
		err = rgate_policy_parse(&policy, cluster, "conf", text, strlen(text));
		injected = refusal->injected;
		refuse(0);
		assert_int_equal(err, -injected);
	} while (err);
	assert_true(n > 8);
	rgate_policy_free(policy);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(errors),
	cmocka_unit_test(limits_of_text),
	cmocka_unit_test(who_and_what),
	cmocka_unit_test(path_arguments),
	cmocka_unit_test(searched),
	cmocka_unit_test(environment),
	cmocka_unit_test(limits),
	cmocka_unit_test(from_file),
	cmocka_unit_test(no_memory),
};

UNIT_MAIN_ALONE(tests)
