// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * Processes that are run one after the other or some at a time, and output or input of one:
 * by posix_spawn(3), or on the node at the other end of a connection. One run of one way;
 * tests/bench/spawn.sh takes turns.
 *
 *	bench_spawn [-r [-p]] [-k IN_FLIGHT] [-n TIMES] [-o | -i MIB] [--] COMMAND ARGUMENT...
 *
 *	-r	by lib/spawn; else by posix_spawn
 *	-p	who asked looks for the end without sleeping, as one does who has a CPU for it
 *	-o	how fast its output comes: TIMES one after the other, read to their ends
 *	-i	how fast it is given so much input, which it reads to the end
 *
 * Of a round trip all is counted: the request, the process, its exit, and that it is known.
 * Environment: RGATE_BENCH_ADDRS=A,B addresses of RDMA devices for nodes 0 and 1; without it
 * processes share memory.
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <pwd.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <poll.h>
#include <unistd.h>

#include <ringgate/ringgate.h>

#include "bench.h"

#define IN_FLIGHT_MAX	64U
#define WARM		32U
#define WAIT_MS		60000
#define PIECE		(1U << 20)

struct options {
	bool remote;
	bool polls;
	bool output;
	unsigned int input;	/* MiB */
	unsigned int in_flight;
	unsigned int times;
	char **argv;
};

/* Parts of a round trip on another node, by their ends: the node has the request, its
 * spawner has it, and has seen the exit, which is known here */
enum part { ASKED, BEGUN, EXITED, KNOWN, PARTS };

struct turn {			/* one that runs */
	uint64_t began;
	uint64_t asked_ns;	/* CLOCK_REALTIME, as the node has it */
	pid_t pid;
	struct rgate_spawn_job *job;
	struct rgate_spawn_result r;
};

static struct options o = { .in_flight = 1, .times = 1000 };
static struct turn turns[IN_FLIGHT_MAX];
static double *parts[PARTS];		/* microseconds of each, of all that ended */
static char dir[32] = "/tmp/ringgate-bench-XXXXXX";
static char policy[64];
static struct rgate_cluster *cluster;
static struct rgate_node *node;
static struct rgate_peer *peer;
static struct rgate_spawn *spawn;
static pid_t server;
extern char **environ;

static void make_cluster(void)
{
	const char *addrs = getenv("RGATE_BENCH_ADDRS");
	const char *comma = addrs ? strchr(addrs, ',') : NULL;
	const struct passwd *pw = getpwuid(geteuid());
	char text[512];
	FILE *f;
	int n;

	if (addrs && !comma)
		bench_die(0, "RGATE_BENCH_ADDRS=A,B");

	if (!mkdtemp(dir) || !pw)
		bench_die(errno, "%s", dir);
	snprintf(policy, sizeof(policy), "%s/policy", dir);
	f = fopen(policy, "w");
	if (!f || fprintf(f, "node 1 user %s\nallow 1 any\n", pw->pw_name) < 0 || fclose(f) ||
	    chmod(policy, 0600))
		bench_die(errno, "%s", policy);
	if (addrs)
		n = snprintf(text, sizeof(text), "provider verbs\n"
			     "node 0 gateway %.*s\nnode 1 compute %s\n", (int)(comma - addrs),
			     addrs, comma + 1);
	else
		n = snprintf(text, sizeof(text), "provider local\n"
			     "node 0 gateway %s/0\nnode 1 compute %s/1\n", dir, dir);
	n = rgate_cluster_parse(&cluster, "bench", text,
				bench_public_keys(text, (size_t)n, sizeof(text), 2));
	if (n)
		bench_die(-n, "cluster");
}

static struct rgate_node *make_node(unsigned int id)
{
	const struct rgate_pool_opts pool = RGATE_OPTS(rgate_pool_opts, .region_size = 32 << 20,
						       .access = RGATE_ACCESS_REMOTE);
	const struct rgate_node_opts no = RGATE_OPTS(rgate_node_opts, .pool = &pool,
						     .key = bench_key(id));
	struct rgate_node *made;
	int err = rgate_node_create(&made, cluster, id, &no);

	if (err)
		bench_die(-err, "node %u", id);
	return made;
}

/* Ends with its parent */
static void serve(int ready)
{
	const struct rgate_spawnd_opts so = RGATE_OPTS(rgate_spawnd_opts, .policy = policy);
	struct rgate_spawnd *sd;
	struct pollfd p;
	int err;

	err = rgate_spawnd_create(&sd, cluster, &so);
	if (!err)
		err = rgate_spawnd_attach(sd, make_node(0));
	if (err)
		bench_die(-err, "server");
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	if (write(ready, "", 1) != 1)
		_exit(1);
	p = (struct pollfd){ .fd = rgate_spawnd_fd(sd), .events = POLLIN };
	for (;;) {
		(void)poll(&p, 1, -1);
		(void)rgate_spawnd_process(sd);
	}
}

static void connect_to_server(void)
{
	int fds[2], err;
	char c;

	make_cluster();
	if (pipe(fds))
		bench_die(errno, "pipe");
	server = fork();
	if (!server)
		serve(fds[1]);
	close(fds[1]);
	if (read(fds[0], &c, 1) != 1)
		bench_die(0, "no server");
	close(fds[0]);
	node = make_node(1);
	err = rgate_peer_open(&peer, node, 0);
	if (!err)
		err = rgate_peer_wait_up(peer, WAIT_MS);
	if (!err)
		err = rgate_spawn_open(&spawn, node, peer, NULL);
	if (err)
		bench_die(-err, "connection");
}

static void disconnect(void)
{
	char path[64];
	unsigned int i;

	rgate_spawn_close(spawn);
	rgate_peer_close(peer);
	rgate_node_destroy(node);
	kill(server, SIGTERM);
	(void)waitpid(server, NULL, 0);
	(void)unlink(policy);
	for (i = 0; i < 2; i++) {
		snprintf(path, sizeof(path), "%s/%u", dir, i);
		(void)unlink(path);
		snprintf(path, sizeof(path), "%s/%u.lock", dir, i);
		(void)unlink(path);
	}
	(void)rmdir(dir);
}

static void begin(struct turn *t, uint32_t mode)
{
	const struct rgate_spawn_request req = RGATE_OPTS(rgate_spawn_request,
		.argv = (const char *const *)o.argv, .stdout_mode = mode,
		.stdin_mode = o.input ? RGATE_SPAWN_IN_STREAM : RGATE_SPAWN_IN_NONE,
		.ring_bytes = o.output || o.input ? PIECE : 4096);
	int err;

	t->began = bench_now_ns();
	t->asked_ns = bench_clock_ns(CLOCK_REALTIME);
	if (o.remote)
		err = rgate_spawn_start(spawn, &req, &t->job);
	else
		err = -posix_spawnp(&t->pid, o.argv[0], NULL, NULL, o.argv, environ);
	if (err)
		bench_die(-err, "%s", o.argv[0]);
}

static void must_be_good(const struct rgate_spawn_result *r)
{
	if (r->state != RGATE_SPAWN_COMPLETE || r->exit_code || r->signal)
		bench_die(0, "%s: state %u, %s %s, exit code %d", o.argv[0], r->state,
			  strerror(-r->error), r->reason, r->exit_code);
}

static int next_job(struct rgate_spawn_job **job)
{
	const uint64_t end = bench_now_ns() + WAIT_MS * 1000000ULL;
	int err;

	if (!o.polls)
		return rgate_spawn_next(spawn, job, WAIT_MS);
	do
		err = rgate_spawn_next(spawn, job, 0);
	while (err == -ETIMEDOUT && bench_now_ns() < end);
	return err;
}

static struct turn *next_remote(void)
{
	struct rgate_spawn_result r = { .sz = sizeof(r) };
	struct rgate_spawn_job *job;
	struct turn *t;

	do {
		if (next_job(&job))
			bench_die(0, "nothing ends");
		(void)rgate_spawn_job_result(job, &r);
	} while (r.state < RGATE_SPAWN_COMPLETE);
	must_be_good(&r);
	for (t = turns; t->job != job; t++)
		;
	t->r = r;
	rgate_spawn_job_close(job);
	t->job = NULL;
	return t;
}

static struct turn *next_local(void)
{
	struct turn *t;
	int status;
	pid_t pid;

	pid = waitpid(-1, &status, 0);
	if (pid < 0 || status)
		bench_die(pid < 0 ? errno : 0, "%s: status %#x", o.argv[0], status);
	for (t = turns; t->pid != pid; t++)
		;
	return t;
}

static double *make_results(void)
{
	double *us = calloc(o.times, sizeof(*us));

	if (!us)
		bench_die(ENOMEM, "results");
	return us;
}

static void note_parts(const struct turn *t, unsigned int i)
{
	const uint64_t at[PARTS + 1] = { t->asked_ns, t->r.queued_ns, t->r.started_ns,
					 t->r.exited_ns, bench_clock_ns(CLOCK_REALTIME) };
	unsigned int p;

	for (p = 0; p < PARTS; p++)
		parts[p][i] = ((double)at[p + 1] - (double)at[p]) / 1000;
}

static void print_parts(void)
{
	unsigned int p;

	printf(", \"parts_us\": [");
	for (p = 0; p < PARTS; p++)
		printf("%s%.1f", p ? ", " : "", bench_median(parts[p], o.times));
	printf("]");
}

static void run_many(void)
{
	unsigned int begun = 0, ended = 0, p;
	double *us = make_results();
	uint64_t first = 0;
	struct turn *t;

	for (p = 0; p < PARTS; p++)
		parts[p] = make_results();
	for (; begun < o.in_flight; begun++)
		begin(&turns[begun], RGATE_SPAWN_OUT_NONE);
	while (ended < o.times + WARM) {
		t = o.remote ? next_remote() : next_local();
		if (ended >= WARM) {
			us[ended - WARM] = (double)(bench_now_ns() - t->began) / 1000;
			note_parts(t, ended - WARM);
		}
		if (++ended == WARM)
			first = bench_now_ns();
		if (begun < o.times + WARM) {
			begin(t, RGATE_SPAWN_OUT_NONE);
			begun++;
		}
	}
	printf("{\"in_flight\": %u, \"times\": %u, \"per_s\": %.1f, \"p50_us\": %.1f, "
	       "\"p99_us\": %.1f", o.in_flight, o.times,
	       o.times * 1e9 / (double)(bench_now_ns() - first),
	       bench_quantile(us, o.times, 0.5), bench_quantile(us, o.times, 0.99));
	if (o.remote)
		print_parts();
	printf("}\n");
	for (p = 0; p < PARTS; p++)
		free(parts[p]);
	free(us);
}

static size_t piece(uint64_t left)
{
	return left < PIECE ? (size_t)left : PIECE;
}

static uint64_t stream_remote(char *buf)
{
	struct rgate_spawn_result r = { .sz = sizeof(r) };
	struct turn *t = &turns[0];
	const uint64_t all = (uint64_t)o.input << 20;
	uint64_t sum = 0;
	ssize_t n = 1;

	begin(t, o.output ? RGATE_SPAWN_OUT_STREAM : RGATE_SPAWN_OUT_NONE);
	while (o.output && (n = rgate_spawn_job_read(t->job, 1, buf, PIECE, WAIT_MS)) > 0)
		sum += (uint64_t)n;
	for (; n > 0 && sum < all; sum += (uint64_t)n)
		n = rgate_spawn_job_write(t->job, buf, piece(all - sum), WAIT_MS);
	if (n < 0 || (o.input && rgate_spawn_job_close_stdin(t->job)) ||
	    rgate_spawn_job_wait(t->job, &r, WAIT_MS))
		bench_die(0, "it does not end");
	must_be_good(&r);
	rgate_spawn_job_close(t->job);
	return sum;
}

static uint64_t stream_local(char *buf)
{
	const uint64_t all = (uint64_t)o.input << 20;
	posix_spawn_file_actions_t actions;
	int fds[2], err, status, ours;
	uint64_t sum = 0;
	ssize_t n = 1;

	if (pipe2(fds, O_CLOEXEC))
		bench_die(errno, "pipe");
	/* As large as the pipes of the others */
	(void)fcntl(fds[0], F_SETPIPE_SZ, 256 << 10);
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_adddup2(&actions, fds[o.output], o.output);
	err = posix_spawnp(&turns[0].pid, o.argv[0], &actions, NULL, o.argv, environ);
	posix_spawn_file_actions_destroy(&actions);
	close(fds[o.output]);
	if (err)
		bench_die(err, "%s", o.argv[0]);
	ours = fds[!o.output];
	while (o.output && (n = read(ours, buf, PIECE)) > 0)
		sum += (uint64_t)n;
	for (; n > 0 && sum < all; sum += (uint64_t)n)
		n = write(ours, buf, piece(all - sum));
	close(ours);
	if (n < 0 || waitpid(turns[0].pid, &status, 0) < 0 || status)
		bench_die(0, "%s: it does not end as it should", o.argv[0]);
	return sum;
}

static void run_stream(void)
{
	char *buf = calloc(1, PIECE);
	uint64_t sum = 0, began;
	unsigned int i;

	if (!buf)
		bench_die(ENOMEM, "buffer");
	(void)(o.remote ? stream_remote(buf) : stream_local(buf));
	began = bench_now_ns();
	for (i = 0; i < o.times; i++)
		sum += o.remote ? stream_remote(buf) : stream_local(buf);
	printf("{\"bytes\": %llu, \"bytes_per_s\": %.0f}\n", (unsigned long long)sum,
	       (double)sum * 1e9 / (double)(bench_now_ns() - began));
	free(buf);
}

int main(int argc, char **argv)
{
	int c;

	while ((c = getopt(argc, argv, "+rpoi:k:n:")) != -1) {
		if (c == 'r')
			o.remote = true;
		else if (c == 'p')
			o.polls = true;
		else if (c == 'o')
			o.output = true;
		else if (c == 'i')
			o.input = (unsigned int)atoi(optarg);
		else if (c == 'k')
			o.in_flight = (unsigned int)atoi(optarg);
		else if (c == 'n')
			o.times = (unsigned int)atoi(optarg);
		else
			return 2;
	}
	o.argv = argv + optind;
	if (!*o.argv || !o.in_flight || o.in_flight > IN_FLIGHT_MAX || !o.times ||
	    o.times > 1000000 || (o.output && o.input))
		bench_die(0, "-k 1 to %u, -n 1 to 1000000, -o or -i, and a command",
			  IN_FLIGHT_MAX);
	if (o.remote)
		connect_to_server();
	if (o.output || o.input)
		run_stream();
	else
		run_many();
	if (o.remote)
		disconnect();
	return 0;
}
