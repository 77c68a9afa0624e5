// SPDX-License-Identifier: MIT OR GPL-2.0
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "fds.h"
#include "log.h"
#include "spawner.h"

#define LARGE	(64U << 10)	/* of a record: its pages are given back */
#define END_MS	8000		/* for the spawner to end */

static int make_child(struct rgate_spawner *s, const struct rgate_spawner_opts *opts, int theirs)
{
	sigset_t all, old;

	/* No handler of the caller's runs in the child. */
	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, &old);
	s->pid = fork();
	if (!s->pid)
		_exit(rgate_spawner_main(theirs, s, opts));
	sigprocmask(SIG_SETMASK, &old, NULL);
	return s->pid < 0 ? -errno : 0;
}

#define ORDERS_LEN	(RGATE_ORDERS * sizeof(struct rgate_order))

static void *share(size_t len)
{
	return mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE,
		    -1, 0);
}

int rgate_spawner_create(struct rgate_spawner *s, const struct rgate_spawner_opts *opts)
{
	int socks[2], err;

	s->null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	if (s->null_fd < 0)
		return -errno;
	s->orders = share(ORDERS_LEN);
	if (s->orders == MAP_FAILED) {
		err = -errno;
		goto close_null;
	}
	s->policy = share(sizeof(*s->policy));
	if (s->policy == MAP_FAILED) {
		err = -errno;
		goto unmap_orders;
	}
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, socks)) {
		err = -errno;
		goto unmap;
	}
	err = make_child(s, opts, socks[1]);
	close(socks[1]);
	if (err)
		goto close_sock;
	s->sock = socks[0];
	return 0;

close_sock:
	close(socks[0]);
unmap:
	munmap(s->policy, sizeof(*s->policy));
unmap_orders:
	munmap(s->orders, ORDERS_LEN);
close_null:
	close(s->null_fd);
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
	munmap(s->policy, sizeof(*s->policy));
	munmap(s->orders, ORDERS_LEN);
	close(s->null_fd);
	s->pid = 0;
}

static void free_slot(struct rgate_spawner *s, unsigned int slot)
{
	struct rgate_order *order = &s->orders[slot];

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
		    __atomic_load_n(&s->orders[slot].taken, __ATOMIC_ACQUIRE))
			free_slot(s, slot);
	if (s->used == UINT32_MAX)
		return NULL;
	slot = (unsigned int)__builtin_ctz(~s->used);
	s->used |= 1U << slot;
	s->orders[slot].taken = 0;
	return &s->orders[slot];
}

void rgate_spawner_cancel(struct rgate_spawner *s, const struct rgate_order *order)
{
	free_slot(s, (unsigned int)(order - s->orders));
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
		.type = RGATE_SPAWNER_START, .slot = (uint32_t)(order - s->orders),
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
