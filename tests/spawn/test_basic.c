// SPDX-License-Identifier: MIT OR GPL-2.0
/* A process on another node: started, told of, ended; what it gets and what not. */
#include "serve.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/keyctl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static struct serve s;

static void hello(void **state)
{
	struct done d;

	(void)state;
	d = run(&s, "/bin/echo", "hello", "world");
	assert_true(d.r.pid > 0 && d.r.id);
	assert_true(d.r.queued_ns && d.r.started_ns >= d.r.queued_ns);
	assert_true(d.r.exited_ns >= d.r.started_ns && d.r.maxrss);
	assert_int_equal(d.r.produced[0], 12);
	assert_ran(&d, 0, "hello world\n");
	d = run(&s, "echo", "found");
	assert_ran(&d, 0, "found\n");
	d = run(&s, "/bin/sh", "-c", "echo out; echo err >&2; exit 7");
	assert_string_equal(d.out[1].data, "err\n");
	assert_ran(&d, 7, "out\n");
	d = run(&s, "/bin/sh", "-c", "kill -USR1 $$");
	assert_int_equal(d.r.signal, SIGUSR1);
	assert_int_equal(d.r.state, RGATE_SPAWN_COMPLETE);
	done_free(&d);
	d = run(&s, "/bin/sh", "-c", "exit 127");
	assert_ran(&d, 127, "");
}

/* The service ends last, with answers under way and processes that run */
static void ends_last(void **state)
{
	struct rgate_spawn_job *jobs[20];
	unsigned int i;

	(void)state;
	unit_not_for_tsan(UNIT_TSAN_CHILD);
	for (i = 0; i < ARRAY_LEN(jobs); i++)
		jobs[i] = start(&s, 0, "/bin/sleep", "1000");
	wait_for((rgate_spawn_process(s.spawn), serve_stats(&s).started == ARRAY_LEN(jobs)));
	serve_stop(&s, 0);
	for (i = 0; i < ARRAY_LEN(jobs); i++)
		rgate_spawn_job_close(jobs[i]);
	s.early = false;
	serve_start(&s);
}

/* The arguments of a shell as the kernel has them */
static void arguments(void **state)
{
	static const char script[] = "exec cat /proc/$$/cmdline";
	const unsigned int n = 100000;
	const char **argv = calloc(n + 1, sizeof(*argv));
	struct rgate_spawn_request req = RGATE_OPTS(rgate_spawn_request, .exe = "/bin/sh",
		.argv = argv, .stdout_mode = RGATE_SPAWN_OUT_STREAM,
		.stderr_mode = RGATE_SPAWN_OUT_STREAM);
	char all[256], *huge;
	const char *at;
	struct done d;
	size_t i;

	(void)state;
	assert_non_null(argv);
	for (i = 0; i < 255; i++)
		all[i] = (char)(i + 1);
	all[255] = '\0';
	argv[0] = "another name";
	argv[1] = "-c";
	argv[2] = "cat /proc/$$/cmdline";
	argv[3] = "";
	argv[4] = all;
	argv[5] = "";
	argv[6] = "\xe2\x82\xac \xf0\x9f\x92\xa1";
	d = run_request(&s, &req);
	at = d.out[0].data;
	for (i = 0; i < 7; i++) {
		assert_string_equal(at, argv[i]);
		at += strlen(at) + 1;
	}
	assert_ptr_equal(at, d.out[0].data + d.out[0].len);
	assert_ran(&d, 0, NULL);
	/* very many */
	argv[2] = script;
	for (i = 3; i < n; i++)
		argv[i] = "12345678";
	argv[2] = "echo $# $1 ${99996}";
	d = run_request(&s, &req);
	assert_ran(&d, 0, "99996 12345678 12345678\n");
	/* one that is longer than the kernel takes: told as such */
	huge = malloc(200000);
	assert_non_null(huge);
	memset(huge, 'x', 199999);
	huge[199999] = '\0';
	argv[3] = huge;
	argv[4] = NULL;
	d = run_request(&s, &req);
	assert_failed(&d, RGATE_SPAWN_AT_EXEC, -E2BIG);
	free(huge);
	free(argv);
}

static void environment(void **state)
{
	static const char *const argv[] = { "/usr/bin/env", "-0", NULL };
	static const char *const set[] = { "A=1", "EMPTY=", "X=a=b\n", "PATH=/x", NULL };
	static const char *const unset[] = { "LOGNAME", "NEVER_SET", NULL };
	struct rgate_spawn_request req = RGATE_OPTS(rgate_spawn_request, .argv = argv,
		.env = set, .env_mode = RGATE_SPAWN_ENV_REPLACE,
		.stdout_mode = RGATE_SPAWN_OUT_STREAM);
	struct done d;
	char *at;
	int i, n;

	(void)state;
	setenv("OF_THE_CLIENT", "1", 1);
	d = run_request(&s, &req);
	for (i = 0, at = d.out[0].data; set[i]; i++, at += strlen(at) + 1)
		assert_string_equal(at, set[i]);
	/* without control groups there is a mark */
	if (d.r.flags & RGATE_SPAWN_NO_CGROUP) {
		assert_int_equal(strncmp(at, "RINGGATE_SPAWN_ID=", 18), 0);
		at += strlen(at) + 1;
	}
	assert_ptr_equal(at, d.out[0].data + d.out[0].len);
	assert_ran(&d, 0, NULL);
	req.env_mode = RGATE_SPAWN_ENV_MERGE;
	req.unset = unset;
	d = run_request(&s, &req);
	for (at = d.out[0].data, n = 0; *at; at += strlen(at) + 1, n++) {
		assert_true(strncmp(at, "LOGNAME=", 8));
		assert_true(strncmp(at, "OF_", 3));
		if (!strncmp(at, "PATH=", 5))
			assert_string_equal(at, "PATH=/x");
		if (!strncmp(at, "RINGGATE_SPAWN_ID=", 18))
			n--;
	}
	assert_int_equal(n, 7);	/* HOME, USER, SHELL, and four */
	assert_ran(&d, 0, NULL);
}

static void directory(void **state)
{
	static const char *const argv[] = { "/bin/pwd", NULL };
	struct rgate_spawn_request req = RGATE_OPTS(rgate_spawn_request, .argv = argv,
		.cwd = "/usr/lib", .stdout_mode = RGATE_SPAWN_OUT_STREAM);
	struct done d;

	(void)state;
	d = run_request(&s, &req);
	assert_ran(&d, 0, "/usr/lib\n");
	req.cwd = "/no/such/place";
	d = run_request(&s, &req);
	assert_failed(&d, RGATE_SPAWN_AT_SETUP, -ENOENT);
	req.cwd = "/etc/passwd";
	d = run_request(&s, &req);
	assert_failed(&d, RGATE_SPAWN_AT_SETUP, -ENOTDIR);
	req.cwd = NULL;
	d = run_request(&s, &req);
	assert_ran(&d, 0, geteuid() ? NULL : "/root\n");
}

static const char *file_of(const char *name, const char *text, mode_t mode)
{
	static char path[128];
	int fd;

	snprintf(path, sizeof(path), "%s/%s", s.c.dir, name);
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0700);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	assert_int_equal(fchmod(fd, mode), 0);
	close(fd);
	return path;
}

static void executables(void **state)
{
	const char *path;
	struct done d;

	(void)state;
	d = run(&s, "/no/such/file");
	assert_failed(&d, RGATE_SPAWN_AT_EXEC, -ENOENT);
	d = run(&s, "no-such-command");
	assert_failed(&d, RGATE_SPAWN_AT_EXEC, -ENOENT);
	d = run(&s, "/etc");
	assert_failed(&d, RGATE_SPAWN_AT_EXEC, -EACCES);
	path = file_of("script", "#!/bin/sh\necho ran \"$1\"\n", 0700);
	d = run(&s, path, "x y");
	assert_ran(&d, 0, "ran x y\n");
	chmod(path, 0600);
	d = run(&s, path);
	assert_failed(&d, RGATE_SPAWN_AT_EXEC, -EACCES);
	unlink(path);
	path = file_of("headless", "echo no shell is put in between\n", 0700);
	d = run(&s, path);
	assert_failed(&d, RGATE_SPAWN_AT_EXEC, -ENOEXEC);
	unlink(path);
	path = file_of("interpreter", "#!/no/such/interpreter\n", 0700);
	d = run(&s, path);
	assert_failed(&d, RGATE_SPAWN_AT_EXEC, -ENOENT);
	unlink(path);
	path = file_of("empty", "", 0700);
	d = run(&s, path);
	assert_failed(&d, RGATE_SPAWN_AT_EXEC, -ENOEXEC);
	unlink(path);
}

/* What POSIX says that a new process has, and what we add to it */
static void clean(void **state)
{
	static const char *const argv[] = { "/bin/sh", "-c", "umask", NULL };
	struct rgate_spawn_request req = RGATE_OPTS(rgate_spawn_request, .argv = argv,
		.set_umask = true, .umask = 0137, .stdout_mode = RGATE_SPAWN_OUT_STREAM);
	char expect[64];
	struct done d;

	(void)state;
	/* descriptors: the three, and the one that ls has of the directory */
	d = run(&s, "/bin/ls", "/proc/self/fd");
	assert_ran(&d, 0, "0\n1\n2\n3\n");
	d = run(&s, "/usr/bin/readlink", "/proc/self/fd/0");
	assert_ran(&d, 0, "/dev/null\n");
	/* signals: none blocked, none ignored */
	d = run(&s, "/bin/grep", "-E", "^Sig(Blk|Ign)|^ShdPnd", "/proc/self/status");
	assert_ran(&d, 0, "ShdPnd:\t0000000000000000\nSigBlk:\t0000000000000000\n"
			  "SigIgn:\t0000000000000000\n");
	/* a session and group of its own, no terminal */
	d = run(&s, "/bin/sh", "-c", "set -- $(cat /proc/self/stat); [ $5 = $6 ] && "
				     "[ $6 = $$ ] && echo $7");
	assert_ran(&d, 0, "0\n");
	d = run(&s, "/bin/sh", "-c", "umask");
	assert_ran(&d, 0, "0022\n");
	d = run_request(&s, &req);
	assert_ran(&d, 0, "0137\n");
	snprintf(expect, sizeof(expect), "%d\n%d\n", (int)geteuid(), (int)getegid());
	d = run(&s, "/bin/sh", "-c", "id -u; id -g");
	assert_ran(&d, 0, expect);
	d = run(&s, "/usr/bin/nice");
	assert_ran(&d, 0, "0\n");
}

static long session_keyring(void)
{
	return syscall(SYS_keyctl, KEYCTL_GET_KEYRING_ID, KEY_SPEC_SESSION_KEYRING, 0);
}

/* This program as a job */
__attribute__((constructor))
static void say_keyring(int argc, char **argv)
{
	if (argc != 2 || strcmp(argv[1], "session-keyring"))
		return;
	printf("%ld\n", session_keyring());
	exit(0);
}

static int up(void **state);

static int up_keyring(void **state)
{
	syscall(SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, NULL);
	return up(state);
}

/* What the daemon can read of keys its jobs cannot. */
static void keyring(void **state)
{
	char self[256] = "";
	struct done d;
	long other;

	(void)state;
	if (session_keyring() < 0)
		unit_skip("no keys here");
	assert_true(readlink("/proc/self/exe", self, sizeof(self) - 1) > 0);
	d = run(&s, self, "session-keyring");
	assert_int_equal(d.r.exit_code, 0);
	assert_int_equal(sscanf(d.out[0].data, "%ld", &other), 1);
	assert_true(other > 0);
	assert_int_not_equal(other, session_keyring());
	done_free(&d);
}

static void limit(struct rgate_spawn_request *req, const char *out)
{
	struct done d = run_request(&s, req);

	assert_ran(&d, 0, out);
}

static void limits(void **state)
{
	static const char *const script[] = { "/bin/sh", "-c",
		"ulimit -n; ulimit -t; nice", NULL };
	static const char *const open_many[] = { "/bin/sh", "-c",
		"exec 3<&0 4<&0 5<&0 6<&0 7<&0 && echo below; exec 8<&0 && echo beyond", NULL };
	static const char *const burn[] = { "/bin/sh", "-c", "while :; do :; done", NULL };
	static const char *const grow[] = { "/bin/sh", "-c",
		"head -c 200000000 /dev/zero | tail -c 200000000 | wc -c", NULL };
	struct rgate_spawn_request req = RGATE_OPTS(rgate_spawn_request, .argv = script,
		.stdout_mode = RGATE_SPAWN_OUT_STREAM, .stderr_mode = RGATE_SPAWN_OUT_STREAM,
		.files = 77, .cpu_s = 5, .nice = 7);
	struct done d;

	(void)state;
	limit(&req, "77\n5\n7\n");
	req.argv = open_many;
	req.files = 8;
	d = run_request(&s, &req);
	assert_int_equal(d.r.state, RGATE_SPAWN_COMPLETE);
	assert_int_not_equal(d.r.exit_code, 0);
	assert_string_equal(d.out[0].data, "below\n");
	done_free(&d);
	req.files = 0;
	req.argv = burn;
	req.cpu_s = 1;
	d = run_request(&s, &req);
	assert_int_equal(d.r.state, RGATE_SPAWN_COMPLETE);
	assert_true(d.r.signal == SIGXCPU || d.r.signal == SIGKILL);
	/* The kernel counts in ticks, where it has much to do not always its own. */
	assert_true(d.r.utime_us + d.r.stime_us > 400000);
	done_free(&d);
	req.argv = grow;
	req.cpu_s = 0;
	req.memory = 50 << 20;
	d = run_request(&s, &req);
	assert_int_equal(d.r.state, RGATE_SPAWN_COMPLETE);
	assert_true(strcmp(d.out[0].data, "200000000\n"));
	done_free(&d);
}

/* Long enough for it to say that it is ready, however slow the machine is */
static struct done run_until_ready(struct rgate_spawn_request *req)
{
	struct done d = run_request(&s, req);

	while (strncmp(d.out[0].data, "on\n", 3) && req->wall_ms < MS) {
		done_free(&d);
		req->wall_ms *= 2;
		d = run_request(&s, req);
	}
	assert_int_equal(d.r.flags & RGATE_SPAWN_TIMED_OUT, RGATE_SPAWN_TIMED_OUT);
	return d;
}

static void time_is_over(void **state)
{
	static const char *const deaf[] = { "/bin/sh", "-c",
		"trap '' TERM; echo on; sleep 100; sleep 100", NULL };
	static const char *const hears[] = { "/bin/sh", "-c",
		"trap 'echo bye; exit 3' TERM; echo on; sleep 100 & wait", NULL };
	static const char *const stopped[] = { "/bin/sh", "-c", "echo on; kill -STOP $$; echo on",
		NULL };
	struct rgate_spawn_request req = RGATE_OPTS(rgate_spawn_request, .argv = deaf,
		.stdout_mode = RGATE_SPAWN_OUT_STREAM, .wall_ms = 300, .grace_ms = 200);
	struct done d;

	(void)state;
	d = run_until_ready(&req);
	assert_int_equal(d.r.signal, SIGKILL);
	assert_string_equal(d.out[0].data, "on\n");
	assert_true(d.r.exited_ns - d.r.started_ns > (req.wall_ms + 180) * 1000000);
	done_free(&d);
	req.argv = hears;
	req.grace_ms = 10000;
	d = run_until_ready(&req);
	assert_ran(&d, 3, "on\nbye\n");
	req.argv = stopped;
	d = run_until_ready(&req);
	assert_int_equal(d.r.signal, SIGTERM);
	done_free(&d);
}

/* Somebody who cannot be found holds its output: it is not waited for without end. */
static void output_is_cut(void **state)
{
	static const char *const argv[] = { "/bin/sh", "-c", "env -i setsid sh -c "
		"'trap \"\" TERM; echo on; echo $$; exec sleep 60' &", NULL };
	struct rgate_spawn_request req = RGATE_OPTS(rgate_spawn_request, .argv = argv,
		.stdout_mode = RGATE_SPAWN_OUT_STREAM, .wall_ms = 300, .grace_ms = 100);
	struct done d;
	int pid;

	(void)state;
	d = run_until_ready(&req);
	assert_int_equal(d.r.state, RGATE_SPAWN_COMPLETE);
	assert_int_equal(d.r.flags & RGATE_SPAWN_CUT, RGATE_SPAWN_CUT);
	pid = atoi(d.out[0].data + 3);
	assert_true(pid > 1);
	/* it is no leftover, and lives */
	assert_int_equal(d.r.flags & RGATE_SPAWN_LEFTOVERS, 0);
	assert_int_equal(kill(pid, SIGKILL), 0);
	done_free(&d);
	/* what ends by itself is not cut */
	req.argv = (const char *const[]){ "/bin/true", NULL };
	req.wall_ms = 0;
	d = run_request(&s, &req);
	assert_int_equal(d.r.flags & (RGATE_SPAWN_CUT | RGATE_SPAWN_TIMED_OUT), 0);
	done_free(&d);
}

static int up(void **state)
{
	(void)state;
	serve_up(&s, NULL);
	return 0;
}

static int up_without(void **state)
{
	(void)state;
	s.cgroup = "";
	serve_up(&s, NULL);
	return 0;
}

/* A daemon that ignores signals, also one that the C library does not let go of */
static int up_deaf(void **state)
{
	const unsigned long ignore[8] = { (unsigned long)SIG_IGN };

	unit_require(signal(SIGUSR2, SIG_IGN) != SIG_ERR);
	unit_require(!syscall(SYS_rt_sigaction, 32, ignore, NULL, (size_t)NSIG / 8));
	return up(state);
}

static int up_hub(void **state)
{
	(void)state;
	s.hub = true;
	serve_up(&s, NULL);
	return 0;
}

static int up_early(void **state)
{
	if (unit_tsan())
		return up_hub(state);
	setenv("RGATE_LOCAL_LATE", "100000", 1);
	s.early = true;
	return up_hub(state);
}

static int down(void **state)
{
	(void)state;
	serve_down(&s);
	unsetenv("RGATE_LOCAL_LATE");
	s.cgroup = NULL;
	s.hub = s.early = false;
	return 0;
}

#define WITH(f) { #f, f, up, down, NULL }
#define WITHOUT(f) { #f " (no control groups)", f, up_without, down, NULL }

static const struct CMUnitTest tests[] = {
	cmocka_unit_test_setup_teardown(hello, up, down),
	{ "hello (on a hub)", hello, up_hub, down, NULL },
	cmocka_unit_test_setup_teardown(ends_last, up_early, down),
	cmocka_unit_test_setup_teardown(arguments, up, down),
	WITH(environment),
	WITHOUT(environment),
	cmocka_unit_test_setup_teardown(directory, up, down),
	cmocka_unit_test_setup_teardown(executables, up, down),
	{ "clean", clean, up_deaf, down, NULL },
	WITHOUT(clean),
	cmocka_unit_test_setup_teardown(keyring, up_keyring, down),
	WITH(limits),
	WITHOUT(limits),
	WITH(time_is_over),
	WITHOUT(time_is_over),
	WITHOUT(output_is_cut),
};

UNIT_MAIN(tests)
