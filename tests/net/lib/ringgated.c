// SPDX-License-Identifier: MIT OR GPL-2.0
#include "ringgated.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <ringgate/rgate_daemon.h>

#include "nodes.h"

static char tools[256];

/* The tools lie in the same build as this program. */
bool ringgated_built(void)
{
	ssize_t n = readlink("/proc/self/exe", tools, sizeof(tools) - 16);
	char *at;

	if (n < 0)
		return false;
	tools[n] = '\0';
	at = strstr(tools, "/tests/net/");
	if (!at)
		return false;
	strcpy(at, "/tools");
	snprintf(at + 6, 12, "/ringgated");
	n = access(tools, X_OK);
	at[6] = '\0';
	return !n;
}

static void write_file(const char *path, const char *text, mode_t mode)
{
	FILE *f = fopen(path, "we");

	assert_non_null(f);
	assert_true(fputs(text, f) >= 0);
	assert_int_equal(fclose(f), 0);
	assert_int_equal(chmod(path, mode), 0);
}

static void set_paths(struct ringgated *r)
{
	snprintf(r->log, sizeof(r->log), "%s/log%u", r->dir, r->node);
	snprintf(r->policy, sizeof(r->policy), "%s/policy%u", r->dir, r->node);
	snprintf(r->control, sizeof(r->control), "%s/control%u", r->dir, r->node);
	snprintf(r->requests, sizeof(r->requests), "%s/requests%u", r->dir, r->node);
}

/* The nodes below @keys get keys; @lines: of the others */
static void make_cluster(struct ringgated *r, unsigned int keys, const char *lines)
{
	char path[96], text[512], command[1024];

	*r = (struct ringgated){ .dir = "/tmp/ringgated.XXXXXX" };
	assert_non_null(mkdtemp(r->dir));
	/* for other users, who come to its socket */
	assert_int_equal(chmod(r->dir, 0755), 0);
	set_paths(r);
	snprintf(path, sizeof(path), "%s/cluster", r->dir);
	snprintf(text, sizeof(text), "provider local\nnode 0 gateway %s/n0\n"
		 "node 1 compute %s/n1\n%s", r->dir, r->dir, lines);
	write_file(path, text, 0644);
	snprintf(command, sizeof(command), "cd %s && for n in $(seq 0 %u); do "
		 "%s/ringgate cluster keygen -C cluster -n $n >>key || exit 1; done; "
		 "cat key >>cluster", r->dir, keys - 1, tools);
	assert_int_equal(system(command), 0);
}

void ringgated_make(struct ringgated *r)
{
	make_cluster(r, 1, UNIT_KEY_LINE(1));
}

void ringgated_make_pair(struct ringgated r[2])
{
	make_cluster(&r[0], 2, "");
	r[1] = r[0];
	r[1].node = 1;
	set_paths(&r[1]);
}

static _Noreturn void run(struct ringgated *r, bool policy, int log_fd)
{
	char path[300], node[12], cluster[96], steer[96], socket[128], file[128];
	const char *argv[22] = { "ringgated", "-c", "/dev/null", "-C", cluster, "-n", node, "-s",
				 r->control, "--pool", "16M", "--requests", socket };
	unsigned int n = 13;

	snprintf(path, sizeof(path), "%s/ringgated", tools);
	snprintf(node, sizeof(node), "%u", r->node);
	snprintf(cluster, sizeof(cluster), "%s/cluster", r->dir);
	snprintf(steer, sizeof(steer), "%s/steer", r->dir);
	snprintf(socket, sizeof(socket), "socket %s", r->requests);
	snprintf(file, sizeof(file), "policy %s", r->policy);
	if (policy) {
		argv[n++] = "--requests";
		argv[n++] = file;
	}
	if (r->more) {
		argv[n++] = "--requests";
		argv[n++] = r->more;
	}
	if (r->journal) {
		argv[n++] = "--journal";
		argv[n++] = r->journal;
	}
	/* the gateway's alone */
	if (!r->node) {
		argv[n++] = "-S";
		argv[n++] = steer;
	}
	if (log_fd < 0)
		log_fd = open(r->log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
	/* It does not stay behind a test that was killed. */
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) || dup2(log_fd, STDERR_FILENO) < 0)
		_exit(120);
	execv(path, (char **)argv);
	_exit(121);
}

static bool answers(const struct ringgated *r)
{
	char text[RGATE_DAEMON_ANSWER];

	return !rgate_daemon_call(r->control, "status json", text, sizeof(text));
}

bool ringgated_sees(const struct ringgated *r)
{
	char text[RGATE_DAEMON_ANSWER];

	return !rgate_daemon_call(r->control, "status json", text, sizeof(text)) &&
	       strstr(text, "\"state\": \"up\"");
}

bool ringgated_met(const struct ringgated r[2])
{
	return ringgated_sees(&r[0]) && ringgated_sees(&r[1]);
}

void ringgated_start(struct ringgated *r, const char *policy, int log_fd)
{
	if (policy)
		write_file(r->policy, policy, 0600);
	r->pid = fork();
	assert_true(r->pid >= 0);
	if (!r->pid)
		run(r, policy, log_fd);
	wait_for(answers(r));
}

static unsigned int times_said(const struct ringgated *r, const char *text)
{
	char line[4096];
	unsigned int n = 0;
	FILE *f = fopen(r->log, "re");

	while (f && fgets(line, sizeof(line), f))
		n += strstr(line, text) != NULL;
	if (f)
		fclose(f);
	return n;
}

bool ringgated_said(const struct ringgated *r, const char *text)
{
	return times_said(r, text) > 0;
}

void ringgated_reload(struct ringgated *r, const char *policy)
{
	static const char said[] = "the policy of requests was read again";
	const unsigned int before = times_said(r, said);

	write_file(r->policy, policy, 0600);
	assert_int_equal(kill(r->pid, SIGHUP), 0);
	wait_for(times_said(r, said) > before);
}

int ringgated_stop(struct ringgated *r, int sig)
{
	const uint64_t end = unit_now_ns() + MS * 1000000ULL;
	int status = -1;
	pid_t got;

	assert_int_equal(kill(r->pid, sig), 0);
	while (!(got = waitpid(r->pid, &status, WNOHANG)) && unit_now_ns() < end)
		nodes_nap();
	if (!got) {
		kill(r->pid, SIGKILL);
		waitpid(r->pid, &status, 0);
	}
	r->pid = 0;
	assert_true(got > 0);
	return status;
}

void ringgated_free(struct ringgated *r)
{
	char command[96];

	if (r->pid) {
		kill(r->pid, SIGKILL);
		waitpid(r->pid, NULL, 0);
	}
	if (strncmp(r->dir, "/tmp/ringgated.", 15))
		return;
	snprintf(command, sizeof(command), "rm -rf %s", r->dir);
	assert_int_equal(system(command), 0);
}

unsigned int ringgated_fds(const struct ringgated *r)
{
	char dir[32];

	snprintf(dir, sizeof(dir), "/proc/%d/fd", r->pid);
	return unit_entries(dir);
}

uint64_t ringgated_count(const struct ringgated *r, const char *key)
{
	char text[RGATE_DAEMON_ANSWER], name[64];
	const char *at;

	if (rgate_daemon_call(r->control, "status json", text, sizeof(text)))
		return UINT64_MAX;
	snprintf(name, sizeof(name), "\"%s\": ", key);
	/* "requests" is the object, and a counter in it, which comes later. */
	at = strstr(text, "\"requests\": {");
	at = at ? strstr(at + 1, name) : NULL;
	return at ? strtoull(at + strlen(name), NULL, 10) : UINT64_MAX;
}
