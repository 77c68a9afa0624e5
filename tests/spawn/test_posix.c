// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * What POSIX says of a process that posix_spawn() makes with all of its flags, and of
 * exec, case by case; and how it ends. That no other descriptor is open is a matter of
 * test_basic.c: a shell has some itself.
 */
#include "serve.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static struct serve s;

/* Each of them prints "yes" if it is so. */
static const struct {
	const char *says;
	const char *script;
} cases[] = {
	{ "arguments are those that were given, empty ones too",
	  "[ $# = 3 ] && [ \"$1\" = a ] && [ -z \"$2\" ] && [ \"$3\" = 'b c' ]" },
	{ "stdin, stdout and stderr are open",
	  "[ -e /proc/self/fd/0 ] && [ -e /proc/self/fd/1 ] && [ -e /proc/self/fd/2 ]" },
	{ "no signal is blocked", "grep -q '^SigBlk:\t0*$' /proc/self/status" },
	{ "no signal is ignored", "grep -q '^SigIgn:\t0*$' /proc/self/status" },
	{ "no signal is caught", "cat /proc/self/status | grep -q '^SigCgt:\t0*$'" },
	{ "no signal is pending", "! grep -q '^S[a-z]*Pnd:\t.*[1-9a-f]' /proc/self/status" },
	{ "its group is its own", "[ $(cut -d' ' -f5 /proc/$$/stat) = $$ ]" },
	{ "its session is its own", "[ $(cut -d' ' -f6 /proc/$$/stat) = $$ ]" },
	{ "it has no terminal", "[ $(cut -d' ' -f7 /proc/$$/stat) = 0 ] && ! true </dev/tty" },
	{ "it is nobody's but the spawner's child",
	  "[ \"$(cat /proc/$PPID/comm)\" = ringgate-spawn ]" },
	{ "real and effective user are the same",
	  "set -- $(grep ^Uid: /proc/self/status); [ $2 = $3 ] && [ $3 = $4 ]" },
	{ "real and effective group are the same",
	  "set -- $(grep ^Gid: /proc/self/status); [ $2 = $3 ] && [ $3 = $4 ]" },
	{ "its mask of new files is the usual one", "[ $(umask) = 0022 ]" },
	{ "its root is the machine's", "[ /proc/self/root/. -ef /. ]" },
	{ "its directory is the user's home, which is there", "[ . -ef \"$HOME\" ]" },
	{ "its environment has what a login has",
	  "[ -n \"$HOME\" ] && [ -n \"$USER\" ] && [ \"$LOGNAME\" = \"$USER\" ] && "
	  "[ -n \"$SHELL\" ] && [ -n \"$PATH\" ]" },
	{ "... and nothing of the server's", "[ -z \"$RGATE_TEST_OF_SERVER\" ]" },
	{ "its times begin at zero", "[ $(cut -d' ' -f14 /proc/$$/stat) -lt 100 ]" },
	{ "it has one thread", "[ $(ls /proc/$$/task | wc -l) = 1 ]" },
	{ "it is not the first to be killed for memory, nor spared",
	  "[ $(cat /proc/self/oom_score_adj) -ge 0 ]" },
	{ "it does not keep its parent's memory locked",
	  "grep -q '^VmLck:\t *0 kB' /proc/self/status" },
};

static void table(void **state)
{
	unsigned int i, wrong = 0;
	char script[512];
	struct done d;

	(void)state;
	for (i = 0; i < ARRAY_LEN(cases); i++) {
		snprintf(script, sizeof(script), "{ %s; } 2>/dev/null && echo yes",
			 cases[i].script);
		d = run(&s, "/bin/sh", "-c", script, "sh", "a", "", "b c");
		if (d.r.exit_code || strcmp(d.out[0].data, "yes\n")) {
			print_message("# not so: %s\n", cases[i].says);
			wrong++;
		}
		done_free(&d);
	}
	assert_int_equal(wrong, 0);
}

static void exit_codes(void **state)
{
	char script[32];
	struct done d;
	int code;

	(void)state;
	/* Eight bits are what a parent sees. */
	for (code = 0; code < 512; code += code < 4 || code > 250 ? 1 : 25) {
		snprintf(script, sizeof(script), "exit %d", code);
		d = run(&s, "/bin/sh", "-c", script);
		assert_ran(&d, code & 0xff, "");
		if (code > 260)
			break;
	}
}

/* Of those whose default is to end a process */
static void ends_by_signal(void **state)
{
	static const int deadly[] = {
		SIGHUP, SIGINT, SIGQUIT, SIGILL, SIGTRAP, SIGABRT, SIGBUS, SIGFPE, SIGKILL,
		SIGUSR1, SIGSEGV, SIGUSR2, SIGPIPE, SIGALRM, SIGTERM, SIGXCPU, SIGXFSZ,
		SIGVTALRM, SIGPROF, SIGSYS, SIGIO, SIGPWR, SIGSTKFLT,
	};
	char script[48];
	struct done d;
	unsigned int i;

	(void)state;
	for (i = 0; i < ARRAY_LEN(deadly); i++) {
		snprintf(script, sizeof(script), "ulimit -c 0; kill -%d $$; echo lives", deadly[i]);
		d = run(&s, "/bin/sh", "-c", script);
		assert_int_equal(d.r.state, RGATE_SPAWN_COMPLETE);
		assert_int_equal(d.r.signal, deadly[i]);
		assert_int_equal(d.r.exit_code, 0);
		done_free(&d);
	}
	/* and of those whose is not */
	d = run(&s, "/bin/sh", "-c", "kill -CHLD $$; kill -URG $$; kill -WINCH $$; kill -CONT $$; "
				     "echo lives");
	assert_ran(&d, 0, "lives\n");
}

static void errors_of_exec(void **state)
{
	char path[128], command[160], name[300];
	struct done d;
	int fd;

	(void)state;
	d = run(&s, "/etc/passwd/x");
	assert_failed(&d, RGATE_SPAWN_AT_EXEC, -ENOTDIR);
	d = run(&s, "/etc/passwd");
	assert_failed(&d, RGATE_SPAWN_AT_EXEC, -EACCES);
	snprintf(path, sizeof(path), "%s/loop", s.c.dir);
	assert_int_equal(symlink(path, path), 0);
	d = run(&s, path);
	assert_failed(&d, RGATE_SPAWN_AT_EXEC, -ELOOP);
	unlink(path);
	memset(name, 'n', sizeof(name));
	name[0] = '/';
	name[sizeof(name) - 1] = '\0';
	d = run(&s, name);
	assert_failed(&d, RGATE_SPAWN_AT_EXEC, -ENAMETOOLONG);
	/* somebody writes it */
	snprintf(path, sizeof(path), "%s/busy", s.c.dir);
	snprintf(command, sizeof(command), "cp /bin/true %s", path);
	assert_int_equal(system(command), 0);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	d = run(&s, path);
	assert_failed(&d, RGATE_SPAWN_AT_EXEC, -ETXTBSY);
	close(fd);
	d = run(&s, path);
	assert_ran(&d, 0, "");
	unlink(path);
}

/* So many at the same time, and no more; of another user, as root has no such limit */
static void processes(void **state)
{
	static const char *const argv[] = { "/bin/sh", "-c",
		"for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do sleep 2 & done "
		"2>/dev/null; echo all", NULL };
	struct rgate_spawn_request req = RGATE_OPTS(rgate_spawn_request, .argv = argv,
		.stdout_mode = RGATE_SPAWN_OUT_STREAM);
	struct done d;

	(void)state;
	if (geteuid())
		unit_skip("needs root");
	serve_down(&s);
	serve_up(&s, "node 1 user nobody\nallow 1 any\n# %s\n");
	d = run_request(&s, &req);
	assert_ran(&d, 0, "all\n");
	req.processes = 10;
	d = run_request(&s, &req);
	assert_int_equal(d.r.state, RGATE_SPAWN_COMPLETE);
	assert_string_equal(d.out[0].data, "");
	assert_int_not_equal(d.r.exit_code, 0);
	done_free(&d);
}

static int up(void **state)
{
	(void)state;
	setenv("RGATE_TEST_OF_SERVER", "1", 1);
	serve_up(&s, NULL);
	return 0;
}

static int down(void **state)
{
	(void)state;
	serve_down(&s);
	return 0;
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test_setup_teardown(table, up, down),
	cmocka_unit_test_setup_teardown(exit_codes, up, down),
	cmocka_unit_test_setup_teardown(ends_by_signal, up, down),
	cmocka_unit_test_setup_teardown(errors_of_exec, up, down),
	cmocka_unit_test_setup_teardown(processes, up, down),
};

UNIT_MAIN(tests)
