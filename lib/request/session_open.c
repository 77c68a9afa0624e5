// SPDX-License-Identifier: MIT OR GPL-2.0
/* How a session begins, with the daemon or in this process, and how it ends. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "clock.h"
#include "log.h"
#include "opts.h"
#include "session_at.h"
#include "session_priv.h"

#define TIMEOUT_MS	5000U
/* Pauses between two looks for a daemon that is to come */
#define AGAIN_NS	2000000U
#define AGAIN_MOST_NS	200000000U

static uint32_t places(uint32_t asked, uint32_t otherwise)
{
	uint32_t n = RGATE_REQ_PLACES_MIN;

	if (!asked)
		return otherwise;
	while (n < asked && n < RGATE_REQ_PLACES_MAX)
		n *= 2;
	return n;
}

static int normalize(struct rgate_session_opts *o)
{
	const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);

	if (o->where > RGATE_SESSION_PROCESS || o->reserved ||
	    o->requests > RGATE_REQ_PLACES_MAX || o->completions > RGATE_REQ_PLACES_MAX ||
	    o->memory > INT64_MAX - page)
		return -EINVAL;
	o->requests = places(o->requests, RGATE_REQ_PLACES_DEFAULT);
	o->completions = places(o->completions, o->requests);
	o->memory = (o->memory + page - 1) & ~(page - 1);
	if (!o->timeout_ms)
		o->timeout_ms = TIMEOUT_MS;
	if (!o->path)
		o->path = RGATE_SESSION_SOCKET;
	return 0;
}

/* ---- The daemon ---- */

static int dial(const struct rgate_session_opts *o)
{
	const struct timeval tv = { .tv_sec = o->timeout_ms / 1000,
				    .tv_usec = o->timeout_ms % 1000 * 1000L };
	struct sockaddr_un sun = { .sun_family = AF_UNIX };
	int sock, err;

	if (strlen(o->path) >= sizeof(sun.sun_path))
		return -ENAMETOOLONG;
	memcpy(sun.sun_path, o->path, strlen(o->path) + 1);
	sock = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (sock < 0)
		return -errno;
	if (setsockopt(sock, SOL_SOCKET, SO_RCVTIMEO, &tv, sizeof(tv)) < 0 ||
	    setsockopt(sock, SOL_SOCKET, SO_SNDTIMEO, &tv, sizeof(tv)) < 0 ||
	    connect(sock, (struct sockaddr *)&sun, sizeof(sun)) < 0) {
		err = errno == EAGAIN ? -ETIMEDOUT : -errno;
		close(sock);
		return err;
	}
	return sock;
}

static void close_fds(const int *fds, unsigned int n)
{
	while (n)
		if (fds[--n] >= 0)
			close(fds[n]);
}

/* What a daemon may answer */
static int check_welcome(const struct rgate_session_opts *o, const struct rgate_welcome *w,
			 int len, unsigned int nfds)
{
	if (len < (int)sizeof(*w) || w->magic != RGATE_WELCOME_MAGIC || w->error > 0)
		return -EPROTO;
	if (w->error == -EPROTONOSUPPORT || (!w->error && (w->version != RGATE_REQ_VERSION ||
							   w->features))) {
		rgate_err("%s speaks versions %u to %u of requests, this library %u", o->path,
			  w->version_min, w->version, RGATE_REQ_VERSION);
		return -EPROTONOSUPPORT;
	}
	if (w->error)
		return w->error >= -4095 ? w->error : -EPROTO;
	if (nfds != (w->memory ? RGATE_FDS : RGATE_FD_MEMORY) || w->memory > INT64_MAX ||
	    w->memory_off > INT64_MAX - w->memory)
		return -EPROTO;
	return 0;
}

static int ask_daemon(struct rgate_session *s, const struct rgate_session_opts *o,
		      struct rgate_welcome *w, int fds[RGATE_FDS])
{
	const struct rgate_hello hello = {
		.magic = RGATE_HELLO_MAGIC, .version_min = RGATE_REQ_VERSION,
		.version_max = RGATE_REQ_VERSION, .requests = o->requests,
		.completions = o->completions, .memory = o->memory,
	};
	unsigned int nfds;
	int len, err, sock;

	sock = dial(o);
	if (sock < 0)
		return sock;
	err = rgate_wire_send(sock, &hello, sizeof(hello), NULL, 0, 0);
	if (err)
		goto close;
	len = rgate_wire_recv(sock, w, sizeof(*w), fds, &nfds, 0);
	err = len < 0 ? len : check_welcome(o, w, len, nfds);
	if (err)
		goto close_all;
	if (nfds < RGATE_FDS)
		fds[RGATE_FD_MEMORY] = -1;
	s->sock = sock;
	s->where = RGATE_SESSION_DAEMON;
	return 0;
close_all:
	close_fds(fds, nfds);
close:
	close(sock);
	return err == -EAGAIN ? -ETIMEDOUT : err;
}

/* ---- This process ---- */

static int ask_process(struct rgate_session *s, const struct rgate_session_opts *o,
		       struct rgate_welcome *w, int fds[RGATE_FDS])
{
	const struct rgate_seat_opts so = RGATE_OPTS(rgate_seat_opts, .uid = geteuid(),
						     .requests = o->requests,
						     .completions = o->completions,
						     .memory = o->memory);
	int err = rgate_process_seat(&so, o->spin_us, &s->seat, w, fds);

	if (!err)
		s->where = RGATE_SESSION_PROCESS;
	return err;
}

static int ask(struct rgate_session *s, const struct rgate_session_opts *o,
	       struct rgate_welcome *w, int fds[RGATE_FDS])
{
	int err;

	if (o->where == RGATE_SESSION_PROCESS)
		return ask_process(s, o, w, fds);
	err = ask_daemon(s, o, w, fds);
	if (o->where == RGATE_SESSION_EITHER && (err == -ENOENT || err == -ECONNREFUSED))
		return ask_process(s, o, w, fds);
	return err;
}

/* ---- Both ---- */

static int map_memory(struct rgate_session *s, const struct rgate_welcome *w, int fd)
{
	void *p;
	int err;

	if (!w->memory)
		return 0;
	p = mmap(NULL, w->memory, PROT_READ | PROT_WRITE, MAP_SHARED, fd, (off_t)w->memory_off);
	if (p == MAP_FAILED)
		return -errno;
	if (madvise(p, w->memory, MADV_DONTFORK) < 0) {
		err = -errno;
		munmap(p, w->memory);
		return err;
	}
	s->mem = p;
	s->mem_len = w->memory;
	return 0;
}

/* The descriptor to wait by has to tell of the daemon's end, too. */
static int watch_daemon(struct rgate_session *s)
{
	struct epoll_event ev = { .events = EPOLLRDHUP, .data.u32 = RGATE_WAIT_DAEMON };

	if (s->sock < 0)
		return 0;
	if (!epoll_ctl(s->wait_fd, EPOLL_CTL_ADD, s->sock, &ev))
		return 0;
	return errno == ENOMEM || errno == ENOSPC ? -errno : -EPROTO;
}

/* Takes the descriptors over, also when it fails */
static int set_up(struct rgate_session *s, const struct rgate_welcome *w, int fds[RGATE_FDS])
{
	int err;

	s->owner = w->owner;
	s->kick_fd = fds[RGATE_FD_KICK];
	s->wait_fd = fds[RGATE_FD_WAIT];
	err = watch_daemon(s);
	if (!err)
		err = map_memory(s, w, fds[RGATE_FD_MEMORY]);
	if (!err)
		err = rgate_area_map(&s->area, fds[RGATE_FD_AREA], w->requests, w->completions,
				     w->memory);
	close_fds(&fds[RGATE_FD_AREA], 1);
	close_fds(&fds[RGATE_FD_MEMORY], 1);
	if (err && s->mem)
		munmap(s->mem, s->mem_len);
	if (err)
		close_fds((int[]){ s->kick_fd, s->wait_fd }, 2);
	s->room = w->requests;
	return err;
}

static void leave(struct rgate_session *s)
{
	if (s->seat)
		rgate_process_unseat(s->seat);
	if (s->sock >= 0)
		close(s->sock);
}

static int new_session(struct rgate_session **out, const struct rgate_session_opts *o)
{
	struct rgate_session *s;
	void *mem;
	int err;

	if (posix_memalign(&mem, LINE, sizeof(*s)))
		return -ENOMEM;
	s = memset(mem, 0, sizeof(*s));
	s->sock = -1;
	list_init(&s->of_process);
	err = rgate_spin_init(&s->spin, o->spin_us);
	if (err)
		goto free;
	s->opts = *o;
	s->opts.path = o->path ? strdup(o->path) : NULL;
	if (o->path && !s->opts.path) {
		err = -ENOMEM;
		goto free;
	}
	rgate_session_enlist(s);
	*out = s;
	return 0;
free:
	free(s);
	return err;
}

/* Its memory alone */
static void free_session(struct rgate_session *s)
{
	rgate_session_delist(s);
	free((char *)s->opts.path);
	free(s);
}

/* @o: normalized */
static int open_session(struct rgate_session **session, const struct rgate_session_opts *o)
{
	struct rgate_welcome w = { 0 };
	struct rgate_session *s;
	int err, fds[RGATE_FDS];

	err = new_session(&s, o);
	if (err)
		return err;
	err = ask(s, o, &w, fds);
	if (err)
		goto free;
	err = set_up(s, &w, fds);
	if (err)
		goto leave;
	*session = s;
	return 0;
leave:
	rgate_session_delist(s);
	leave(s);
free:
	free_session(s);
	return err;
}

int rgate_session_open(struct rgate_session **session, const struct rgate_session_opts *opts)
{
	struct rgate_session_opts o;
	int err = rgate_opts_copy(&o, sizeof(o), opts);

	if (!err)
		err = normalize(&o);
	return err ? err : open_session(session, &o);
}

int rgate_session_at(struct rgate_session **session, struct rgate_engine *engine,
		     const struct rgate_seat_opts *opts, struct rgate_seat **seat)
{
	const struct rgate_session_opts o = { .sz = sizeof(o) };
	struct rgate_welcome w = { 0 };
	struct rgate_session *s;
	int err, fds[RGATE_FDS];

	err = new_session(&s, &o);
	if (err)
		return err;
	s->where = RGATE_SESSION_PROCESS;
	err = rgate_seat_add(engine, opts, seat, &w, fds);
	if (err)
		goto free;
	err = set_up(s, &w, fds);
	if (err)
		goto remove;
	*session = s;
	return 0;
remove:
	rgate_seat_remove(*seat);
free:
	free_session(s);
	return err;
}

/* In a child of who opened it: what the parent has stays, mappings were not inherited. */
static void close_copy(struct rgate_session *s)
{
	close(s->kick_fd);
	close(s->wait_fd);
}

static void let_go(struct rgate_session *s)
{
	rgate_area_unmap(&s->area);
	close(s->kick_fd);
	close(s->wait_fd);
	leave(s);
}

void rgate_session_close(struct rgate_session *s)
{
	if (!s)
		return;
	/* first: a child forked meanwhile closes the descriptors of sessions that it finds */
	rgate_session_delist(s);
	if (rgate_session_forked(s)) {
		close_copy(s);
	} else {
		let_go(s);
		if (s->mem)
			munmap(s->mem, s->mem_len);
	}
	free_session(s);
}

/* ---- Once more ---- */

/* A daemon that is not there, or ends while it is asked, may be about to begin. */
static bool may_come(int err)
{
	return err == -ENOENT || err == -ECONNREFUSED || err == -ECONNRESET || err == -EPIPE;
}

static int open_in_time(struct rgate_session **fresh, const struct rgate_session_opts *o,
			int timeout_ms)
{
	const uint64_t from = rgate_clock_now(CLOCK_MONOTONIC);
	uint64_t pause = AGAIN_NS, past;
	struct timespec ts;
	int err;

	for (;;) {
		err = open_session(fresh, o);
		past = rgate_clock_now(CLOCK_MONOTONIC) - from;
		if (!may_come(err) ||
		    (timeout_ms >= 0 && past + pause > (uint64_t)timeout_ms * 1000000))
			return err;
		ts = rgate_clock_timespec(pause);
		if (nanosleep(&ts, NULL) < 0)
			return -EINTR;
		pause = pause * 2 < AGAIN_MOST_NS ? pause * 2 : AGAIN_MOST_NS;
	}
}

/*
 * What @fresh has is @s's; the memory stays where it was. Neither is in the list of sessions
 * meanwhile: a child that was forked would close descriptors that may be another's by then.
 */
static int take_over(struct rgate_session *s, struct rgate_session *fresh)
{
	if (fresh->mem_len != s->mem_len)
		return -EPROTO;
	if (s->mem && mremap(fresh->mem, s->mem_len, s->mem_len, MREMAP_MAYMOVE | MREMAP_FIXED,
			     s->mem) == MAP_FAILED)
		return -errno;
	fresh->mem = NULL;
	rgate_session_delist(fresh);
	rgate_session_delist(s);
	let_go(s);
	s->area = fresh->area;
	s->owner = fresh->owner;
	s->kick_fd = fresh->kick_fd;
	s->wait_fd = fresh->wait_fd;
	s->sock = fresh->sock;
	s->submitted = s->completed = 0;
	s->room = fresh->room;
	s->misses = 0;
	s->armed = false;
	__atomic_store_n(&s->over, 0, __ATOMIC_RELAXED);
	rgate_session_enlist(s);
	free_session(fresh);
	return 0;
}

int rgate_session_reconnect(struct rgate_session *s, int timeout_ms)
{
	struct rgate_session_opts o = s->opts;
	struct rgate_session *fresh;
	int err;

	if (rgate_session_forked(s))
		return -EOWNERDEAD;
	if (s->where != RGATE_SESSION_DAEMON)
		return -EINVAL;
	if (s->lent)
		return -EBUSY;
	if (!rgate_session_gone(s) &&
	    __atomic_load_n(&s->area.server->state, __ATOMIC_ACQUIRE) == RGATE_REQ_OPEN)
		return -EBUSY;
	o.where = RGATE_SESSION_DAEMON;
	err = open_in_time(&fresh, &o, timeout_ms);
	if (err)
		return err;
	err = take_over(s, fresh);
	if (err)
		rgate_session_close(fresh);
	return err;
}
