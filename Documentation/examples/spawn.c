// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * A node that runs processes, and one that asks it to.
 *
 *	spawn					both here, over shared memory
 *	spawn FILE SELF NODE COMMAND...		as node SELF of the cluster that FILE describes:
 *						a command on NODE, where ringgated has a policy
 */
#include <ringgate/ringgate.h>
#include <poll.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define PATIENCE 10000 /* ms */

static uint8_t keys[2][RGATE_KEY_LEN];	/* private ones, where both are here */

/* All that the process wrote, and how it ended */
static int tell(struct rgate_spawn_job *job)
{
	struct rgate_spawn_result r = RGATE_OPTS(rgate_spawn_result);
	struct rgate_spawn_output_buf out[2] = { { 0 }, { 0 } };
	int err, i;

	err = rgate_spawn_job_collect(job, out, 1 << 20, &r, PATIENCE);
	for (i = 0; i < 2; i++) {
		if (out[i].data)
			fwrite(out[i].data, 1, out[i].len, i ? stderr : stdout);
		free(out[i].data);
	}
	if (err)
		fprintf(stderr, "%s\n", rgate_strerror("rgate_spawn_job_collect", err));
	else if (r.state == RGATE_SPAWN_ERROR)
		fprintf(stderr, "%s: %s %s\n", rgate_spawn_stage_name(r.stage),
			strerror(-r.error), r.reason);
	else
		printf("process %d: exit code %d, signal %d, %llu us of CPU\n", r.pid, r.exit_code,
		       r.signal, (unsigned long long)(r.utime_us + r.stime_us));
	return err || r.state == RGATE_SPAWN_ERROR ? 1 : r.exit_code;
}

static int ask(struct rgate_node *node, struct rgate_peer *peer, const char *const *argv)
{
	const struct rgate_spawn_request req = RGATE_OPTS(rgate_spawn_request, .argv = argv,
		.stdin_mode = RGATE_SPAWN_IN_STREAM, .stdout_mode = RGATE_SPAWN_OUT_STREAM,
		.stderr_mode = RGATE_SPAWN_OUT_STREAM, .wall_ms = PATIENCE);
	static const char input[] = "from the other node\n";
	struct rgate_spawn_job *job;
	struct rgate_spawn *spawn;
	int err, ret = 1;

	err = rgate_spawn_open(&spawn, node, peer, NULL);
	if (err)
		return 1;
	err = rgate_spawn_start(spawn, &req, &job);
	if (!err) {
		/* It may end without reading: that is no error here. */
		(void)rgate_spawn_job_write(job, input, sizeof(input) - 1, PATIENCE);
		(void)rgate_spawn_job_close_stdin(job);
		ret = tell(job);
		rgate_spawn_job_close(job);
	}
	rgate_spawn_close(spawn);
	return ret;
}

static int client(const struct rgate_cluster *cluster, uint32_t id, uint32_t to,
		  const uint8_t *key, const char *const *argv)
{
	const struct rgate_pool_opts pool = RGATE_OPTS(rgate_pool_opts, .region_size = 8 << 20,
						       .access = RGATE_ACCESS_REMOTE);
	const struct rgate_node_opts opts = RGATE_OPTS(rgate_node_opts, .pool = &pool, .key = key);
	struct rgate_peer *peer = NULL;
	struct rgate_node *node;
	int err, ret = 1;

	err = rgate_node_create(&node, cluster, id, &opts);
	if (err) {
		fprintf(stderr, "node %u: %s\n", id, rgate_strerror("rgate_node_create", err));
		return 1;
	}
	err = rgate_peer_open(&peer, node, to);
	if (!err)
		err = rgate_peer_wait_up(peer, PATIENCE);
	if (!err)
		ret = ask(node, peer, argv);
	else
		fprintf(stderr, "node %u: %s\n", to, rgate_strerror("rgate_peer_wait_up", err));
	rgate_peer_close(peer);
	rgate_node_destroy(node);
	return ret;
}

/* Node 0, until it is killed; as ringgated does it */
static int server(const struct rgate_cluster *cluster, const char *policy)
{
	const struct rgate_spawnd_opts so = RGATE_OPTS(rgate_spawnd_opts, .policy = policy);
	const struct rgate_pool_opts pool = RGATE_OPTS(rgate_pool_opts, .region_size = 32 << 20,
						       .access = RGATE_ACCESS_REMOTE);
	const struct rgate_node_opts opts = RGATE_OPTS(rgate_node_opts, .pool = &pool,
						       .key = keys[0]);
	struct rgate_spawnd *spawnd;
	struct rgate_node *node;
	struct pollfd p = { .events = POLLIN };
	int err;

	/* first of all: it forks */
	err = rgate_spawnd_create(&spawnd, cluster, &so);
	if (!err)
		err = rgate_node_create(&node, cluster, 0, &opts);
	if (!err)
		err = rgate_spawnd_attach(spawnd, node);
	if (err)
		return 1;
	for (p.fd = rgate_spawnd_fd(spawnd);;) {
		(void)poll(&p, 1, -1);
		(void)rgate_spawnd_process(spawnd);
	}
}

static int write_policy(const char *path)
{
	const struct passwd *pw = getpwuid(geteuid());
	FILE *f = fopen(path, "w");

	if (!f || !pw)
		return 1;
	fprintf(f, "node 1 user %s\nallow 1 /usr/bin/wc args -c\n", pw->pw_name);
	return fclose(f) || chmod(path, 0600);
}

/* The keys of both, for this once, and a cluster of them in @dir */
static int make_cluster(struct rgate_cluster **cluster, const char *dir)
{
	char text[512], base64[2][RGATE_KEY_TEXT];
	uint8_t public[RGATE_KEY_LEN];
	int i, n;

	for (i = 0; i < 2; i++) {
		if (rgate_key_generate(keys[i]) || rgate_key_public(public, keys[i]))
			return 1;
		rgate_key_to_text(base64[i], public);
	}
	n = snprintf(text, sizeof(text), "provider local\n"
		     "node 0 gateway %s/0\npublic-key 0 %s\n"
		     "node 1 compute %s/1\npublic-key 1 %s\n", dir, base64[0], dir, base64[1]);
	return rgate_cluster_parse(cluster, "example", text, (size_t)n);
}

static int both_here(void)
{
	static const char *const argv[] = { "wc", "-c", NULL };
	char dir[] = "/tmp/ringgate-example-XXXXXX", path[64];
	struct rgate_cluster *cluster;
	int i, ret = 1;
	pid_t pid;

	if (!mkdtemp(dir))
		return 1;
	snprintf(path, sizeof(path), "%s/policy", dir);
	if (write_policy(path) || make_cluster(&cluster, dir))
		return 1;
	pid = fork();		/* before there is a node */
	if (!pid)
		exit(server(cluster, path));
	if (pid > 0) {
		ret = client(cluster, 1, 0, keys[1], argv);
		kill(pid, SIGTERM);
		waitpid(pid, NULL, 0);
	}
	rgate_cluster_destroy(cluster);
	unlink(path);
	for (i = 0; i < 4; i++) {
		snprintf(path, sizeof(path), i % 2 ? "%s/%d.lock" : "%s/%d", dir, i / 2);
		unlink(path);
	}
	rmdir(dir);
	return ret;
}

int main(int argc, char **argv)
{
	struct rgate_cluster *cluster;
	int ret;

	if (argc == 1)
		return both_here();
	if (argc < 5)
		return 2;
	if (rgate_cluster_load(&cluster, argv[1]))
		return 1;
	/* the private key is read from the file that the cluster file names */
	ret = client(cluster, (uint32_t)atoi(argv[2]), (uint32_t)atoi(argv[3]), NULL,
		     (const char *const *)argv + 4);
	rgate_cluster_destroy(cluster);
	return ret;
}
