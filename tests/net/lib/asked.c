// SPDX-License-Identifier: MIT OR GPL-2.0
#include "asked.h"

#include <endian.h>
#include <errno.h>
#include <poll.h>
#include <pwd.h>
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

/* ---- The daemons ---- */

struct ringgated r;
pid_t runner;
int word[2];

void asked_write_file(const char *name, const char *text)
{
	char path[128];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", r.dir, name);
	f = fopen(path, "we");
	assert_non_null(f);
	assert_true(fputs(text, f) >= 0);
	assert_int_equal(fclose(f), 0);
	assert_int_equal(chmod(path, 0600), 0);
}

static void tools_dir(char *path, size_t len)
{
	ssize_t n = readlink("/proc/self/exe", path, len - 1);

	assert_true(n > 0);
	path[n] = '\0';
	strcpy(strstr(path, "/tests/net/"), "/tools");
}

/* Node 1 gets a key, too. */
static void two_nodes(void)
{
	char text[512], tools[256], command[1200];

	tools_dir(tools, sizeof(tools));
	snprintf(text, sizeof(text), "provider local\nnode 0 gateway %s/n0\n"
		 "node 1 compute %s/n1\n", r.dir, r.dir);
	asked_write_file("cluster", text);
	snprintf(command, sizeof(command), "cd %s && rm -f *.key && for n in 0 1; do "
		 "%s/ringgate cluster keygen -C cluster -n $n >pub$n || exit 1; done; "
		 "cat pub0 pub1 >>cluster; chmod 644 cluster", r.dir, tools);
	assert_int_equal(system(command), 0);
}

static _Noreturn void run_node(void)
{
	char path[300], cluster[96], socket[96], spawn[128], log[96];

	tools_dir(path, sizeof(path) - 16);
	strcat(path, "/ringgated");
	snprintf(cluster, sizeof(cluster), "%s/cluster", r.dir);
	snprintf(socket, sizeof(socket), "%s/control1", r.dir);
	snprintf(spawn, sizeof(spawn), "policy %s/spawn", r.dir);
	snprintf(log, sizeof(log), "%s/log1", r.dir);
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) || !freopen(log, "a", stderr))
		_exit(120);
	execl(path, "ringgated", "-c", "/dev/null", "-C", cluster, "-n", "1", "-s", socket,
	      "--pool", "16M", "--spawn", spawn, NULL);
	_exit(121);
}

static bool sees_other(const char *control)
{
	char text[RGATE_DAEMON_ANSWER];

	return !rgate_daemon_call(control, "status json", text, sizeof(text)) &&
	       strstr(text, "\"state\": \"up\"");
}

void start_runner(void)
{
	char control[96];

	runner = fork();
	assert_true(runner >= 0);
	if (!runner)
		run_node();
	snprintf(control, sizeof(control), "%s/control1", r.dir);
	wait_for(sees_other(control) && sees_other(r.control));
}

int stop_runner(int sig)
{
	const pid_t pid = runner;
	int status = 0;

	runner = 0;
	if (!pid)
		return 0;
	kill(pid, sig);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return status;
}

void daemons_up(const char *requests)
{
	const struct passwd *pw = getpwuid(geteuid());
	char text[512];

	assert_non_null(pw);
	snprintf(text, sizeof(text), "node 0 user %s\nallow 0 /bin/cat\nallow 0 /bin/sh\n"
		 "allow 0 /bin/sleep\nallow 0 /bin/there-is-none\nmax-running 1000\n",
		 pw->pw_name);
	asked_write_file("spawn", text);
	ringgated_start(&r, requests, -1);
	start_runner();
	assert_int_equal(pipe(word), 0);
}

void daemons_down(void)
{
	close(word[0]);
	close(word[1]);
	assert_int_equal(ringgated_stop(&r, SIGTERM), 0);
	assert_int_equal(stop_runner(SIGTERM), 0);
}

/* ---- A client, in a child ---- */

int session_open(void)
{
	return asker_open(r.requests, MEMORY);
}

static int start(uint64_t node, const struct rgate_spawn_request *req, uint32_t *handle)
{
	const int64_t len = rgate_spawn_record_encode(req, mem + RECORD, STATUS - RECORD);
	const struct rgate_request q = { .op = RGATE_REQ_SPAWN_START, .a0 = node,
					 .off = RECORD, .len = (uint32_t)len };
	uint64_t value = 0;
	int err;

	if (len < 0)
		return (int)len;
	err = ask(q, &value);
	*handle = (uint32_t)value;
	return err;
}

int start_request(const struct rgate_spawn_request *req, uint32_t *handle)
{
	return start(1, req, handle);
}

int start_with(uint64_t node, const char *const *argv, uint32_t output, uint32_t *handle)
{
	const struct rgate_spawn_request req = RGATE_OPTS(rgate_spawn_request, .argv = argv,
		.cwd = "/", .stdin_mode = RGATE_SPAWN_IN_STREAM, .stdout_mode = output,
		.stderr_mode = output);

	return start(node, &req, handle);
}

int start_at(uint64_t node, const char *const *argv, uint32_t *handle)
{
	return start_with(node, argv, RGATE_SPAWN_OUT_STREAM, handle);
}

const struct rgate_spawn_status *status_at(uint32_t off)
{
	return (const void *)(mem + off);
}

int wait_end(uint32_t handle)
{
	memset(mem + STATUS, 0, sizeof(struct rgate_spawn_status));
	return ASK(.op = RGATE_REQ_SPAWN_WAIT, .handle = handle, .off = STATUS,
		   .len = sizeof(struct rgate_spawn_status));
}

int read_some(uint32_t handle, int stream)
{
	return ASK(.op = RGATE_REQ_SPAWN_READ, .handle = handle, .a0 = (uint64_t)stream,
		   .off = FROM, .len = PIECE);
}

int write_some(uint32_t handle, const char *text)
{
	strcpy((char *)mem + TO, text);
	return ASK(.op = RGATE_REQ_SPAWN_WRITE, .handle = handle, .off = TO,
		   .len = (uint32_t)strlen(text));
}

int wait_running(uint32_t handle)
{
	const uint64_t end = unit_now_ns() + MS * 1000000ULL;

	while (unit_now_ns() < end) {
		need(!ASK(.op = RGATE_REQ_SPAWN_STATUS, .handle = handle, .off = STATUS,
			  .len = sizeof(struct rgate_spawn_status)));
		if (le64toh(status_at(STATUS)->state) == RGATE_SPAWN_RUNNING)
			return 0;
		usleep(1000);
	}
	return 1;
}

pid_t begin_client(int (*fn)(void))
{
	return begin_as(fn, NOBODY);
}

void as_client(int (*fn)(void))
{
	ends_well(begin_client(fn));
}

pid_t hear_pid(void)
{
	struct pollfd p = { .fd = word[0], .events = POLLIN };
	char text[16] = "";
	pid_t pid;

	assert_int_equal(poll(&p, 1, (int)MS), 1);
	assert_true(read(word[0], text, sizeof(text) - 1) > 1);
	pid = atoi(text);
	assert_true(pid > 1);
	return pid;
}

bool process_gone(pid_t pid)
{
	return kill(pid, 0) && errno == ESRCH;
}

int asked_up(void **state)
{
	(void)state;
	if (!ringgated_built())
		unit_skip("ringgated is not built");
	ringgated_make(&r);
	two_nodes();
	return 0;
}

int asked_down(void **state)
{
	(void)state;
	(void)stop_runner(SIGKILL);
	ringgated_free(&r);
	return 0;
}
