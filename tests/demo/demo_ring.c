// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * Owns a ring: fills it by the userspace source or attaches it to a device,
 * starts demo_consume, hands it the ring, runs the command that sends, and tells
 * what arrived.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <limits.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <ringgate/ringgate.h>

#include "report.h"

#define GRACE_MS	30000	/* at most for the last frames, after the sender's end */
#define READY_MS	20000
#define SAMPLES_MAX	200000

struct options {
	struct rgate_ring_opts ring;
	struct rgate_attach_opts attach;
	const char *dev;	/* NULL: the userspace source at this port */
	uint16_t port;
	const char *remote;	/* the cluster's gateway, by ringgated at this socket */
	uint32_t rcvbuf;
	enum result_kind kind;
	bool sha;
	bool polls;
	unsigned long want;
	char **cmd;
};

struct demo {
	struct rgate_ring *ring;
	struct rgate_source *src;
	struct result *res;
	int mem;
	pid_t consumer;
	struct report_cpu cpu;
};

static void open_source(struct demo *d, const struct options *o)
{
	struct rgate_source_opts so = RGATE_OPTS(rgate_source_opts,
						 .rcvbuf = o->rcvbuf);
	struct sockaddr_in at = {
		.sin_family = AF_INET,
		.sin_port = htons(o->port),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
	int err;

	err = rgate_ring_open_memfd(&d->ring, &o->ring);
	if (err)
		demo_die(err, "rgate_ring_open_memfd");
	err = rgate_source_start_udp(&d->src, &d->ring, 1, (struct sockaddr *)&at,
				     sizeof(at), &so);
	if (err)
		demo_die(err, "rgate_source_start_udp");
}

static void open_module(struct demo *d, const struct options *o)
{
	int err = rgate_ring_open(&d->ring, &o->ring);

	if (err)
		demo_die(err, "rgate_ring_open");
	err = rgate_ring_attach(d->ring, o->dev, &o->attach, NULL);
	if (err)
		demo_die(err, "attaching to %s", o->dev);
}

static void open_result(struct demo *d, const struct options *o)
{
	size_t size = result_size(SAMPLES_MAX);

	d->mem = memfd_create("demo result", MFD_CLOEXEC);
	if (d->mem < 0 || ftruncate(d->mem, (off_t)size))
		demo_die(errno, "memfd");
	d->res = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, d->mem, 0);
	if (d->res == MAP_FAILED)
		demo_die(errno, "mmap");
	d->res->kind = o->kind;
	d->res->sha = o->sha;
	d->res->polls = o->polls;
	d->res->want = o->want;
	d->res->max_samples = SAMPLES_MAX;
}

/* demo_consume lies beside this program */
static void exec_consumer(int sock, int mem, pid_t parent)
{
	char path[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", path, sizeof(path) - 16);
	char *slash;

	if (n < 0)
		demo_die(errno, "/proc/self/exe");
	path[n] = '\0';
	slash = strrchr(path, '/');
	strcpy(slash + 1, "demo_consume");
	/* out of the way first: one may be the other's number */
	sock = fcntl(sock, F_DUPFD, 10);
	mem = fcntl(mem, F_DUPFD, 10);
	if (dup2(sock, RESULT_FD_SOCK) < 0 || dup2(mem, RESULT_FD_MEM) < 0)
		demo_die(errno, "dup2");
	close(sock);
	close(mem);
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) || getppid() != parent)
		_exit(1);
	execl(path, "demo_consume", NULL);
	demo_die(errno, "%s", path);
}

static void wait_word(const uint32_t *word, unsigned int ms, pid_t pid)
{
	uint64_t until = demo_now_ns() + ms * 1000000ULL;

	while (!__atomic_load_n(word, __ATOMIC_ACQUIRE) &&
	       demo_now_ns() < until && !demo_ended(pid))
		usleep(1000);
}

static void start_consumer(struct demo *d)
{
	pid_t me = getpid();
	int sv[2], err;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sv))
		demo_die(errno, "socketpair");
	d->consumer = fork();
	if (d->consumer < 0)
		demo_die(errno, "fork");
	if (!d->consumer)
		exec_consumer(sv[1], d->mem, me);
	close(sv[1]);
	err = d->ring ? rgate_ring_send(d->ring, sv[0]) : 0;
	if (err)
		demo_die(err, "rgate_ring_send");
	wait_word(&d->res->ready, READY_MS, d->consumer);
	close(sv[0]);
	if (!d->res->ready)
		demo_die(0, "the consumer did not start");
}

static uint64_t us_of(const struct timeval *tv)
{
	return (uint64_t)tv->tv_sec * 1000000 + (uint64_t)tv->tv_usec;
}

static void end_consumer(struct demo *d)
{
	struct rusage used;
	int status;

	wait_word(&d->res->done, GRACE_MS, d->consumer);
	__atomic_store_n(&d->res->stop, 1, __ATOMIC_RELEASE);
	d->cpu.all_us[1] = demo_cpu_all();
	if (wait4(d->consumer, &status, 0, &used) != d->consumer)
		demo_die(errno, "wait4");
	d->cpu.own_us[1] = demo_cpu_us() + us_of(&used.ru_utime) + us_of(&used.ru_stime);
	if (WIFSIGNALED(status) && WTERMSIG(status) == SIGSYS)
		demo_die(0, "the consumer made a system call");
	if (status)
		demo_die(0, "the consumer failed (status %#x)", status);
}

/* The consumer asks for the ring itself; it stays as long as that process. */
static void name_remote(const struct options *o)
{
	char geometry[32];

	snprintf(geometry, sizeof(geometry), "%u %u", o->ring.slots, o->ring.slot_size);
	if (setenv(RESULT_REMOTE, o->remote, 1) || setenv(RESULT_GEOMETRY, geometry, 1))
		demo_die(errno, "setenv");
}

/* Until the gateway fills the ring */
static void wait_remote(const char *socket)
{
	static char text[RGATE_DAEMON_ANSWER];
	uint64_t until = demo_now_ns() + READY_MS * 1000000ULL;

	unsetenv(RESULT_REMOTE);
	for (;;) {
		int err = rgate_daemon_call(socket, "status json", text, sizeof(text));

		if (err)
			demo_die(err, "ringgated at %s", socket);
		if (strstr(text, "\"filled\": true"))
			return;
		if (demo_now_ns() > until)
			demo_die(0, "the gateway does not fill the ring");
		usleep(10000);
	}
}

static void run(const struct options *o)
{
	struct rgate_source_stats ss = { .received = 0 };
	struct rgate_stats st;
	struct demo d = { .consumer = 0 };

	open_result(&d, o);
	/* the consumer first: a source starts as soon as it is made */
	if (o->remote)
		name_remote(o);
	else if (o->dev)
		open_module(&d, o);
	else
		open_source(&d, o);
	start_consumer(&d);
	if (o->remote)
		wait_remote(o->remote);
	d.cpu.own_us[0] = demo_cpu_us() + demo_cpu_of(d.consumer);
	d.cpu.all_us[0] = demo_cpu_all();
	demo_reap(demo_spawn(o->cmd), o->cmd[0]);
	end_consumer(&d);
	demo_clock_read(&d.res->clock, 1);
	st = d.res->stats;
	if (d.ring)
		rgate_ring_stats(d.ring, &st);
	if (d.src) {
		rgate_source_stats(d.src, &ss);
		rgate_source_stop(d.src);
	}
	report_ring(d.res, &st, d.src ? &ss : NULL, &d.cpu);
	rgate_ring_close(d.ring);
}

static enum result_kind parse_kind(const char *text)
{
	if (!strcmp(text, "stream"))
		return RESULT_STREAM;
	if (!strcmp(text, "tcp"))
		return RESULT_TCP;
	if (!strcmp(text, "frames"))
		return RESULT_FRAMES;
	demo_die(0, "kind %s: stream, tcp or frames", text);
}

static const char usage[] =
	"usage: demo_ring (-i DEVICE [-f FILTER] [-m] | -u PORT [-b RCVBUF] | -R SOCKET)\n"
	"                 [-k stream|tcp|frames] [-n FRAMES] [-S SLOTS] [-Z SLOT_SIZE]\n"
	"                 [-c] [-s] [-p] -- COMMAND...\n"
	"  -m mirror: the stack gets the frames too    -c chain long frames\n"
	"  -s SHA-256 rather than a plain sum          -n 0: until a TCP FIN\n"
	"  -p the consumer polls and never sleeps, without any system call\n";

int main(int argc, char **argv)
{
	struct options o = {
		.ring = RGATE_OPTS(rgate_ring_opts, .name = "demo"),
		.attach = RGATE_OPTS(rgate_attach_opts, .action = RGATE_ACTION_STEAL),
	};
	int c;

	while ((c = getopt(argc, argv, "+i:f:mu:b:k:n:S:Z:cspR:")) != -1) {
		switch (c) {
		case 'i':
			o.dev = optarg;
			break;
		case 'f':
			o.attach.filter = optarg;
			break;
		case 'm':
			o.attach.action = RGATE_ACTION_MIRROR;
			break;
		case 'u':
			o.port = (uint16_t)demo_number(optarg, 1, 65535);
			break;
		case 'R':
			o.remote = optarg;
			break;
		case 'b':
			o.rcvbuf = (uint32_t)demo_number(optarg, 1, 1U << 30);
			break;
		case 'k':
			o.kind = parse_kind(optarg);
			break;
		case 'n':
			o.want = demo_number(optarg, 0, 100000000);
			break;
		case 'S':
			o.ring.slots = (uint32_t)demo_number(optarg, 1, UINT_MAX);
			break;
		case 'Z':
			o.ring.slot_size = (uint32_t)demo_number(optarg, 1, UINT_MAX);
			break;
		case 'c':
			o.ring.flags |= RGATE_RING_CHAIN;
			break;
		case 's':
			o.sha = true;
			break;
		case 'p':
			o.polls = true;
			break;
		default:
			fputs(usage, stderr);
			return 2;
		}
	}
	o.cmd = argv + optind;
	if (optind == argc || !!o.dev + !!o.port + !!o.remote != 1) {
		fputs(usage, stderr);
		return 2;
	}
	run(&o);
	return 0;
}
