// SPDX-License-Identifier: MIT OR GPL-2.0
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fds.h"
#include "local.h"
#include "log.h"
#include "pool.h"
#include "pool_debug.h"

static const struct local_share *find_share(const struct rgate_ep *ep, uint32_t rkey)
{
	const struct local_share *s;

	for (s = ep->shares; s && s->rkey != rkey; s = s->next)
		;
	return s;
}

/* @fds: of what is described and of its bell, with the endpoint's lock only */
static int describe_share(struct rgate_ep *ep, uint32_t rkey, struct local_answer *a,
			  unsigned char **addr, int fds[2])
{
	const struct local_share *s = find_share(ep, rkey);

	if (!s)
		return -ENOENT;
	*a = (struct local_answer){ .access = s->access, .offset = s->fd_off, .len = s->len };
	*addr = s->addr;
	fds[0] = s->fd;
	fds[1] = s->bell;
	return 0;
}

static int describe_region(struct rgate_ep *ep, uint32_t rkey, struct local_answer *a,
			   unsigned char **addr, int fds[2])
{
	struct rgate_pool_region r = { .sz = sizeof(r) };
	const struct rgate_pool *pool;
	unsigned int i;

	for (i = 0; i < RGATE_PROV_POOLS; i++) {
		pool = ep->pool[i];
		/* A key below its first one is of a region far beyond the last. */
		if (!pool || rgate_pool_region(pool, rkey - pool->first_key, &r))
			continue;
		*a = (struct local_answer){ .access = pool->access, .len = r.length };
		*addr = r.addr;
		fds[0] = r.fd;
		return 0;
	}
	return -ENOENT;
}

static int dup_of(int fd)
{
	fd = fcntl(fd, F_DUPFD_CLOEXEC, 3);
	return fd < 0 ? -errno : fd;
}

int local_describe(struct rgate_ep *ep, uint32_t rkey, struct local_answer *a,
		   unsigned char **addr, int fds[2])
{
	int of_it[2] = { -1, -1 }, err;

	pthread_mutex_lock(&ep->lock);
	err = rkey >= SHARE_BASE && rkey < READABLE_BASE ?
	      describe_share(ep, rkey, a, addr, of_it) :
	      describe_region(ep, rkey, a, addr, of_it);
	/*
	 * Once the lock is dropped the memory may be taken back, and its descriptor's
	 * number be another file's.
	 */
	if (!err && fds) {
		fds[0] = dup_of(of_it[0]);
		err = fds[0] < 0 ? fds[0] : 0;
		/* Without it the peer is woken by notices alone, which it gets in any case. */
		if (!err && of_it[1] >= 0)
			fds[1] = dup_of(of_it[1]);
	}
	pthread_mutex_unlock(&ep->lock);
	return err;
}

static bool writable(uint32_t access)
{
	return access & (RGATE_ACCESS_REMOTE_WRITE | RGATE_ACCESS_REMOTE_ATOMIC);
}

/* The peer's answer to what it was asked, and its descriptors or -1 */
static int hear(struct rgate_conn *conn, struct local_answer *a, int fds[2])
{
	union {
		struct cmsghdr align;
		char buf[CMSG_SPACE(2 * sizeof(int))];
	} control;
	struct local_packet p;
	struct iovec iov[2] = { { &p, sizeof(p) }, { a, sizeof(*a) } };
	struct msghdr msg = {
		.msg_iov = iov, .msg_iovlen = 2,
		.msg_control = control.buf, .msg_controllen = sizeof(control.buf),
	};
	ssize_t n;
	int err;

	fds[0] = fds[1] = -1;
	err = local_wait(conn->ask_sock, POLLIN, conn->ep->opts.timeout_ms);
	if (err)
		return err;
	conn->asking = false;
	n = recvmsg(conn->ask_sock, &msg, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	if (n <= 0)
		return -ECONNRESET;
	(void)rgate_take_fds(&msg, fds, 2);
	if (n != sizeof(p) + sizeof(*a))
		return -EPROTO;
	if (a->err)
		return -EACCES;
	return fds[0] < 0 ? -EPROTO : 0;
}

static bool has_answered(const struct rgate_conn *conn)
{
	struct pollfd p = { .fd = conn->ask_sock, .events = POLLIN };

	return poll(&p, 1, 0) == 1;
}

static void close_both(const int fds[2])
{
	if (fds[0] >= 0)
		close(fds[0]);
	if (fds[1] >= 0)
		close(fds[1]);
}

/* What the peer is asked is one region at a time; -EAGAIN: it has not answered, unless @wait */
static int ask(struct rgate_conn *conn, uint32_t rkey, bool wait, struct local_answer *a,
	       int fds[2])
{
	const struct local_question q = { .rkey = rkey };
	int err;

	fds[0] = fds[1] = -1;
	if (conn->asking && conn->asked != rkey) {
		/* Whoever wanted that asks again. */
		if (!wait && !has_answered(conn))
			return -EAGAIN;
		err = hear(conn, a, fds);
		close_both(fds);
		if (err && conn->asking)
			return err;
		fds[0] = fds[1] = -1;
	}
	if (!conn->asking) {
		if (send(conn->ask_sock, &q, sizeof(q), MSG_NOSIGNAL | MSG_DONTWAIT) != sizeof(q))
			return -ECONNRESET;
		conn->asking = true;
		conn->asked = rkey;
	}
	return wait || has_answered(conn) ? hear(conn, a, fds) : -EAGAIN;
}

/*
 * An eventfd that does not block. Who gave it may change that, but is of our user, or root,
 * and could stop this process otherwise as well.
 */
static bool is_bell(int fd)
{
	static const char eventfd[] = "anon_inode:[eventfd]";
	char path[64], to[sizeof(eventfd)];
	const int flags = fcntl(fd, F_GETFL);

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	return flags >= 0 && flags & O_NONBLOCK &&
	       readlink(path, to, sizeof(to)) == sizeof(eventfd) - 1 &&
	       !memcmp(to, eventfd, sizeof(eventfd) - 1);
}

/* Memory that could shrink under us would kill us when we touch it. */
static int check_fd(int fd, const struct local_answer *a)
{
	const int seals = fcntl(fd, F_GET_SEALS);
	struct stat st;

	if (seals < 0 || !(seals & F_SEAL_SHRINK) || fstat(fd, &st))
		return -EPROTO;
	if (!a->len || a->len > PTRDIFF_MAX || a->offset > (uint64_t)st.st_size ||
	    a->len > (uint64_t)st.st_size - a->offset || a->offset % 4096)
		return -EPROTO;
	return 0;
}

static int map_it(struct rgate_conn *conn, uint32_t rkey, bool wait, struct local_map *m)
{
	struct local_answer a;
	int fds[2], err;
	void *at;

	err = ask(conn, rkey, wait, &a, fds);
	if (!err)
		err = check_fd(fds[0], &a);
	if (err)
		goto close_fds;
	at = mmap(NULL, a.len, writable(a.access) ? PROT_READ | PROT_WRITE : PROT_READ,
		  MAP_SHARED, fds[0], (off_t)a.offset);
	if (at == MAP_FAILED) {
		err = -errno;
		goto close_fds;
	}
	rgate_mark_mapped(at, a.len);
	(void)madvise(at, a.len, MADV_DONTFORK);
	*m = (struct local_map){ rkey, a.access, at, a.len, -1 };
	if (fds[1] >= 0 && is_bell(fds[1])) {
		m->bell = fds[1];
		fds[1] = -1;
	}
close_fds:
	close_both(fds);
	return err;
}

static void unmap(const struct local_map *m)
{
	munmap(m->addr, m->len);
	if (m->bell >= 0)
		close(m->bell);
}

/* A node's own memory is there already, and may be gone the next time. */
static int own_memory(struct rgate_conn *conn, uint32_t rkey, struct local_map *m)
{
	struct local_answer a;
	unsigned char *addr;
	int err;

	err = local_describe(conn->ep, rkey, &a, &addr, NULL);
	if (!err)
		*m = (struct local_map){ rkey, a.access & conn->allow, addr, a.len, -1 };
	return err;
}

static int find_map(struct rgate_conn *conn, uint32_t rkey, bool wait, struct local_map *found)
{
	struct local_map *m;
	uint32_t i;
	int err;

	if (conn->ask_sock < 0)
		return own_memory(conn, rkey, found);
	for (i = 0; i < conn->maps && conn->map[i].rkey != rkey; i++)
		;
	if (i == PEER_MAPS) {
		/* Each in its turn makes room, and is asked for again when it is needed. */
		m = &conn->map[conn->next_map++ % PEER_MAPS];
		unmap(m);
		i = --conn->maps;
		*m = conn->map[i];
	}
	if (i == conn->maps) {
		err = map_it(conn, rkey, wait, &conn->map[i]);
		if (err)
			return err;
		conn->maps++;
	}
	*found = conn->map[i];
	return 0;
}

int local_reach(struct rgate_conn *conn, uint32_t rkey, uint64_t remote, uint64_t len,
		uint32_t access, bool wait, struct local_place *place)
{
	struct local_map m;
	int err;

	err = find_map(conn, rkey, wait, &m);
	if (err == -EAGAIN)
		return err;
	if (err) {
		rgate_info("memory %#x of the peer: %s", rkey, strerror(-err));
		return err == -ETIMEDOUT || err == -ECONNRESET ? err : -EREMOTEIO;
	}
	if ((m.access & access) != access || remote > m.len || len > m.len - remote)
		return -EREMOTEIO;
	*place = (struct local_place){ m.addr + remote, m.bell };
	return 0;
}

void local_unmap_all(struct rgate_conn *conn)
{
	while (conn->maps)
		unmap(&conn->map[--conn->maps]);
}

int local_share_add(struct rgate_ep *ep, void *addr, size_t len, int fd, uint64_t fd_off,
		    uint32_t access, struct rgate_prov_share *share)
{
	struct local_share *s;
	int err;

	/* A process reads and writes its own without being told where it is. */
	if (!(access & RGATE_ACCESS_REMOTE)) {
		*share = (struct rgate_prov_share){ 0 };
		return 0;
	}
	if (fd < 0) {
		rgate_err("processes of one machine share memory by a memfd: none was given");
		return -EOPNOTSUPP;
	}
	s = calloc(1, sizeof(*s));
	if (!s)
		return -ENOMEM;
	*s = (struct local_share){
		.addr = addr, .len = len, .fd = fcntl(fd, F_DUPFD_CLOEXEC, 3),
		.fd_off = fd_off, .access = access, .bell = -1,
	};
	err = s->fd < 0 ? -errno :
	      check_fd(s->fd, &(struct local_answer){ .offset = fd_off, .len = len });
	if (err) {
		rgate_err("this memory cannot be shared: a memfd with F_SEAL_SHRINK, mapped from a whole page of it on");
		goto free_share;
	}
	pthread_mutex_lock(&ep->lock);
	s->rkey = SHARE_BASE + ep->next_rkey++;
	s->next = ep->shares;
	ep->shares = s;
	pthread_mutex_unlock(&ep->lock);
	*share = (struct rgate_prov_share){ .rkey = s->rkey, .priv = s };
	return 0;

free_share:
	if (s->fd >= 0)
		close(s->fd);
	free(s);
	return err == -EPROTO ? -EINVAL : err;
}

void local_share_del(struct rgate_ep *ep, struct rgate_prov_share *share)
{
	struct local_share **at = &ep->shares, *s = share->priv;

	if (!s)
		return;
	/* Who has it mapped keeps it; new connections do not get it. */
	pthread_mutex_lock(&ep->lock);
	while (*at != s)
		at = &(*at)->next;
	*at = s->next;
	pthread_mutex_unlock(&ep->lock);
	close(s->fd);
	if (s->bell >= 0)
		close(s->bell);
	free(s);
}

int local_share_bell(struct rgate_ep *ep, struct rgate_prov_share *share, int fd)
{
	struct local_share *s = share->priv;

	if (!s || s->bell >= 0)
		return -EINVAL;
	fd = dup_of(fd);
	if (fd < 0)
		return fd;
	pthread_mutex_lock(&ep->lock);
	s->bell = fd;
	pthread_mutex_unlock(&ep->lock);
	return 0;
}
