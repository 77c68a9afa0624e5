// SPDX-License-Identifier: MIT OR GPL-2.0
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "fds.h"
#include "helper.h"
#include "log.h"
#include "spawner.h"

#define LARGE	(64U << 10)	/* of a record: its pages are given back */
#define BEGIN_MS	30000	/* for the spawner to begin, */
#define END_MS		8000	/* and to end */
#define ABOVE		10	/* descriptors are moved here before they go where it has them */

static const struct rgate_helper helper = { .name = "ringgate-spawner", .env = "RGATE_SPAWNER" };

/* Nothing of the environment, no handler of the caller's, and its signals when it asks for them */
static int execute(struct rgate_spawner *s, posix_spawn_file_actions_t *actions,
		   posix_spawnattr_t *attr)
{
	char path[PATH_MAX], *argv[2] = { (char *)rgate_helper_path(&helper, path), NULL };
	char *env[1] = { NULL };
	sigset_t all;
	int err;

	sigfillset(&all);
	(void)posix_spawnattr_setsigmask(attr, &all);
	(void)posix_spawnattr_setflags(attr, POSIX_SPAWN_SETSIGMASK);
	err = -posix_spawn(&s->pid, argv[0], actions, attr, argv, env);
	if (err)
		rgate_err(RGATE_HELPER_MISSING, argv[0], strerror(-err), helper.env);
	return err;
}

int rgate_spawner_check(void)
{
	char path[PATH_MAX];
	const char *program = rgate_helper_path(&helper, path);
	int err = access(program, X_OK) ? -errno : 0;

	if (err)
		rgate_err(RGATE_HELPER_MISSING, program, strerror(-err), helper.env);
	return err;
}

/* @fds: the socket and the memory, as the program is to have them */
static int run(struct rgate_spawner *s, const int fds[2])
{
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attr;
	int err;

	err = -posix_spawn_file_actions_init(&actions);
	if (err)
		return err;
	err = -posix_spawnattr_init(&attr);
	if (err)
		goto destroy_actions;
	err = -posix_spawn_file_actions_adddup2(&actions, fds[0], RGATE_SPAWNER_SOCK);
	if (!err)
		err = -posix_spawn_file_actions_adddup2(&actions, fds[1], RGATE_SPAWNER_MEM);
	if (!err)
		err = execute(s, &actions, &attr);
	(void)posix_spawnattr_destroy(&attr);
destroy_actions:
	(void)posix_spawn_file_actions_destroy(&actions);
	return err;
}

/* Who holds it may read and write it, and punch holes, but not take its end away: where that
 * is missing the other one would get a signal. */
static int make_memory(struct rgate_spawner *s)
{
	const int fd = memfd_create("ringgate-spawner", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	int err;

	if (fd < 0)
		return -errno;
	if (ftruncate(fd, sizeof(*s->shared)) ||
	    fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL))
		goto fail;
	s->shared = mmap(NULL, sizeof(*s->shared), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (s->shared != MAP_FAILED)
		return fd;
fail:
	err = -errno;
	close(fd);
	return err;
}

static int await(const struct rgate_spawner *s)
{
	struct pollfd p = { .fd = s->sock, .events = POLLIN };
	int n;

	do
		n = poll(&p, 1, BEGIN_MS);
	while (n < 0 && errno == EINTR);
	return n > 0 ? 0 : -ETIMEDOUT;
}

static int hear_hello(const struct rgate_spawner *s)
{
	struct rgate_spawner_hello ours, theirs = { .magic = 0 };
	int err = await(s);
	char path[PATH_MAX];
	ssize_t n;

	if (err)
		return err;
	n = recv(s->sock, &theirs, sizeof(theirs), MSG_DONTWAIT);
	if (n <= 0)
		return -EPIPE;
	rgate_spawner_hello(&ours);
	if (n == sizeof(theirs) && !memcmp(&ours, &theirs, sizeof(ours)))
		return 0;
	theirs.version[sizeof(theirs.version) - 1] = '\0';
	rgate_err(RGATE_HELPER_VERSION, rgate_helper_path(&helper, path),
		  n == sizeof(theirs) ? theirs.version : "", "the library", ours.version);
	return -EPROTONOSUPPORT;
}

static int set_path(char to[PATH_MAX], const char *path)
{
	return snprintf(to, PATH_MAX, "%s", path) < PATH_MAX ? 0 : -ENAMETOOLONG;
}

static int tell_birth(const struct rgate_spawner *s, const struct rgate_spawner_opts *opts)
{
	struct rgate_spawner_birth *b = calloc(1, sizeof(*b));
	uint32_t i;
	int err;

	if (!b)
		return -ENOMEM;
	rgate_spawner_hello(&b->hello);
	b->start_ms = opts->start_ms;
	b->files = opts->files;
	b->provider = rgate_cluster_provider(opts->cluster);
	b->nodes = rgate_cluster_nodes(opts->cluster);
	for (i = 0; i < b->nodes; i++) {
		b->node[i].sz = sizeof(b->node[i]);
		(void)rgate_cluster_node(opts->cluster, i, &b->node[i]);
	}
	b->with_cgroup = opts->cgroup;
	err = set_path(b->cgroup, opts->cgroup ? opts->cgroup : "");
	if (!err)
		err = set_path(b->policy_path, opts->policy_path);
	if (!err && send(s->sock, b, sizeof(*b), MSG_NOSIGNAL) < 0)
		err = -errno;
	free(b);
	return err;
}

/* What it says of the policy, once it is all there */
static int hear_policy(struct rgate_spawner *s)
{
	struct rgate_spawner_packet packet;
	int err = await(s);

	if (err)
		return err;
	if (rgate_spawner_recv(s, &packet) <= 0 || packet.type != RGATE_SPAWNER_RELOADED)
		return -EPIPE;
	return packet.a == -ENOENT ? 0 : packet.a;
}

static int meet(struct rgate_spawner *s, const struct rgate_spawner_opts *opts)
{
	int err = hear_hello(s);

	if (!err)
		err = tell_birth(s, opts);
	return err ? err : hear_policy(s);
}

static int begin(struct rgate_spawner *s, int theirs, int mem,
		 const struct rgate_spawner_opts *opts)
{
	int fds[2], err;

	fds[0] = fcntl(theirs, F_DUPFD_CLOEXEC, ABOVE);
	fds[1] = fcntl(mem, F_DUPFD_CLOEXEC, ABOVE);
	err = fds[0] < 0 || fds[1] < 0 ? -EMFILE : run(s, fds);
	if (fds[0] >= 0)
		close(fds[0]);
	if (fds[1] >= 0)
		close(fds[1]);
	/* Its end is seen only where nobody else has it. */
	close(theirs);
	if (err)
		return err;
	err = meet(s, opts);
	if (err) {
		(void)kill(s->pid, SIGKILL);
		(void)waitpid(s->pid, NULL, 0);
	}
	return err;
}

int rgate_spawner_create(struct rgate_spawner *s, const struct rgate_spawner_opts *opts)
{
	int socks[2], mem, err;

	s->null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	if (s->null_fd < 0)
		return -errno;
	mem = make_memory(s);
	if (mem < 0) {
		err = mem;
		goto close_null;
	}
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, socks)) {
		err = -errno;
		goto unmap;
	}
	s->sock = socks[0];
	err = begin(s, socks[1], mem, opts);
	if (err)
		goto close_sock;
	close(mem);
	return 0;

close_sock:
	close(s->sock);
unmap:
	munmap(s->shared, sizeof(*s->shared));
	close(mem);
close_null:
	close(s->null_fd);
	s->pid = 0;
	return err;
}

/* It has closed its socket, or was killed. Not for ever: it may be of another user, whom
 * this process, which has become one without privilege, cannot kill. */
static void reap(const struct rgate_spawner *s)
{
	const struct timespec nap = { .tv_nsec = 1000000 };
	int i;

	for (i = 0; i < END_MS && !waitpid(s->pid, NULL, WNOHANG); i++)
		nanosleep(&nap, NULL);
}

void rgate_spawner_destroy(struct rgate_spawner *s)
{
	struct pollfd p = { .fd = s->sock, .events = POLLIN };
	struct rgate_spawner_packet packet;

	if (s->pid <= 0)
		return;
	/* It ends when it sees the end, and its socket ends with it. */
	s->ending = true;
	(void)shutdown(s->sock, SHUT_WR);
	while (!s->dead && poll(&p, 1, END_MS) > 0)
		while (rgate_spawner_recv(s, &packet) > 0)
			;
	if (!s->dead)
		(void)kill(s->pid, SIGKILL);
	reap(s);
	close(s->sock);
	munmap(s->shared, sizeof(*s->shared));
	close(s->null_fd);
	s->pid = 0;
}

static void free_slot(struct rgate_spawner *s, unsigned int slot)
{
	struct rgate_order *order = &s->shared->orders[slot];

	if (order->record_len > LARGE)
		(void)madvise(order, sizeof(*order), MADV_REMOVE);
	s->used &= ~(1U << slot);
}

struct rgate_order *rgate_spawner_order(struct rgate_spawner *s)
{
	unsigned int slot;

	if (s->dead)
		return NULL;
	for (slot = 0; slot < RGATE_ORDERS; slot++)
		if (s->used & 1U << slot &&
		    __atomic_load_n(&s->shared->orders[slot].taken, __ATOMIC_ACQUIRE))
			free_slot(s, slot);
	if (s->used == UINT32_MAX)
		return NULL;
	slot = (unsigned int)__builtin_ctz(~s->used);
	s->used |= 1U << slot;
	s->shared->orders[slot].taken = 0;
	return &s->shared->orders[slot];
}

void rgate_spawner_cancel(struct rgate_spawner *s, const struct rgate_order *order)
{
	free_slot(s, (unsigned int)(order - s->shared->orders));
}

static int send_packet(struct rgate_spawner *s, const struct rgate_spawner_packet *packet,
		       const int *fds, unsigned int nfds)
{
	struct iovec iov = { (void *)packet, sizeof(*packet) };
	union rgate_fds_room room;
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };

	if (s->dead)
		return -EPIPE;
	rgate_put_fds(&msg, &room, fds, nfds);
	if (sendmsg(s->sock, &msg, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0)
		return 0;
	if (errno == EAGAIN || errno == ENOBUFS || errno == EINTR || errno == ETOOMANYREFS)
		return -EAGAIN;
	return -EPIPE;
}

int rgate_spawner_start(struct rgate_spawner *s, struct rgate_order *order, const int fds[3])
{
	const struct rgate_spawner_packet packet = {
		.type = RGATE_SPAWNER_START, .slot = (uint32_t)(order - s->shared->orders),
		.id = order->id,
	};
	int err = send_packet(s, &packet, fds, 3);

	if (err)
		free_slot(s, packet.slot);
	return err;
}

int rgate_spawner_tell(struct rgate_spawner *s, uint32_t type, uint64_t id, int32_t a, int32_t b)
{
	const struct rgate_spawner_packet packet = { .type = type, .id = id, .a = a, .b = b };

	return send_packet(s, &packet, NULL, 0);
}

int rgate_spawner_recv(struct rgate_spawner *s, struct rgate_spawner_packet *packet)
{
	ssize_t n;

	if (s->dead)
		return -EPIPE;
	n = recv(s->sock, packet, sizeof(*packet), MSG_DONTWAIT);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return 0;
	if (n != sizeof(*packet)) {
		if (!s->ending)
			rgate_err("the spawner (process %d) has ended", (int)s->pid);
		s->dead = true;
		return -EPIPE;
	}
	return 1;
}
