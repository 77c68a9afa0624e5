// SPDX-License-Identifier: MIT OR GPL-2.0
/* Who is signalled in a control group: whoever is in it, and not who has the number by now. */
#include "unit.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cgroup.h"

#define LINES	20000	/* more than 64 KiB of them */

/* A directory that says what a group with number 1 would */
static char dir[32];

static struct rgate_cgroups pretend(const char *file, const char *text)
{
	struct rgate_cgroups cg = { .parent_fd = -1, .name = "ringgate-spawn.1" };
	char path[80];
	FILE *f;

	strcpy(dir, "/tmp/ringgate-test-XXXXXX");
	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/1", dir);
	assert_int_equal(mkdir(path, 0700), 0);
	snprintf(path, sizeof(path), "%s/1/%s", dir, file);
	f = fopen(path, "w");
	assert_non_null(f);
	fputs(text, f);
	assert_int_equal(fclose(f), 0);
	cg.fd = open(dir, O_RDONLY | O_DIRECTORY);
	assert_true(cg.fd >= 0);
	return cg;
}

static void end(struct rgate_cgroups *cg)
{
	char text[80];

	close(cg->fd);
	snprintf(text, sizeof(text), "rm -r %s", dir);
	assert_int_equal(system(text), 0);
}

/* One that left the group, or that has the number of one that did, is let alone. */
static void stranger(void **state)
{
	struct rgate_cgroups cg;
	sigset_t set;
	char text[32];
	int status, which;
	pid_t pid;

	(void)state;
	/* It takes them in the order of their numbers: SIGTERM is 15, SIGCHLD 17. */
	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGCHLD);
	sigprocmask(SIG_BLOCK, &set, NULL);
	pid = fork();
	if (!pid) {
		while (sigwait(&set, &which))
			;
		_exit(which);
	}
	sigprocmask(SIG_UNBLOCK, &set, NULL);
	snprintf(text, sizeof(text), "%d\n", (int)pid);
	cg = pretend("cgroup.procs", text);
	assert_int_equal(rgate_cgroup_signal(&cg, 1, SIGTERM), 1);
	kill(pid, SIGCHLD);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(WEXITSTATUS(status), SIGCHLD);
	end(&cg);
}

/* All of them are looked at, and none that was cut. */
static void whole_lines(void **state)
{
	char *text = malloc((size_t)LINES * 8 + 1), *at = text;
	struct rgate_cgroups cg;
	int i;

	(void)state;
	assert_non_null(text);
	/* Numbers that no process has */
	for (i = 0; i < LINES; i++)
		at += sprintf(at, "%d\n", 5000000 + i % 10);
	cg = pretend("cgroup.procs", text);
	assert_int_equal(rgate_cgroup_signal(&cg, 1, SIGTERM), LINES);
	end(&cg);
	/* half a number */
	cg = pretend("cgroup.procs", "5000001\n500");
	assert_int_equal(rgate_cgroup_signal(&cg, 1, SIGTERM), 1);
	end(&cg);
	free(text);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(stranger),
	cmocka_unit_test(whole_lines),
};

UNIT_MAIN(tests)
