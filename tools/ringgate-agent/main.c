// SPDX-License-Identifier: MIT OR GPL-2.0
/* ringgate-agent: the keeper of agents, see keeper.h */
#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include <ringgate/ringgate.h>

#include "agent_share.h"
#include "clock.h"
#include "host.h"
#include "hurry.h"
#include "keeper.h"
#include "wire.h"

#define AGAIN_NS	1000000000ULL	/* from one process of a user to the next one */
#define NO_DESCRIPTOR_US 100000
#define END_MS		3000		/* for agents to end */
#define FILES		65536		/* descriptors of a user's agents */
#define ROOM		16384		/* bytes on their way to a process that takes none */

struct kept {
	int sock;			/* -1: none, or there was one a moment ago */
	struct keeper_who who;
	uint64_t born_ns;		/* 0: never */
	uint64_t given;
};

static struct keeper {
	const char *requests;		/* the daemon's socket of requests */
	char path[sizeof(((struct sockaddr_un *)0)->sun_path)];
	char dirs[256];			/* directories of users lie there */
	int listen_fd;
	struct kept kept[KEEPER_HOSTS];
	unsigned int n;			/* places that were ever used */
} keeper;

/* ---- A user's process ---- */

static bool is_over(const struct kept *k)
{
	return k->sock < 0 && rgate_clock_now(CLOCK_MONOTONIC) - k->born_ns >= AGAIN_NS;
}

static void forget(struct kept *k)
{
	hurry_close(k->sock);
	k->sock = -1;
}

/* The user's, also if it is to be made; NULL: there are too many */
static struct kept *find(uid_t uid)
{
	struct kept *k, *room = NULL;

	for (k = keeper.kept; k < keeper.kept + keeper.n; k++) {
		if (k->who.uid == uid && (k->sock >= 0 || !is_over(k)))
			return k;
		if (!room && is_over(k))
			room = k;
	}
	if (!room && keeper.n < KEEPER_HOSTS)
		room = &keeper.kept[keeper.n++];
	if (room)
		*room = (struct kept){ .sock = -1 };
	return room;
}

static int dir_of(uid_t uid, char dir[300])
{
	return snprintf(dir, 300, "%s/%u", keeper.dirs, uid) < 300 ? 0 : -ENAMETOOLONG;
}

/* Where nobody else may look */
static int make_dir(const struct keeper_who *who, char dir[300])
{
	struct stat st;
	int err = dir_of(who->uid, dir);

	if (err)
		return err;
	if ((mkdir(keeper.dirs, 0711) < 0 && errno != EEXIST) || lstat(keeper.dirs, &st) < 0)
		return -errno;
	/* One that another user made where all may make some */
	if (!S_ISDIR(st.st_mode) || st.st_uid != geteuid() || st.st_mode & 022)
		return -EACCES;
	if (mkdir(dir, 0700) < 0 && errno != EEXIST)
		return -errno;
	return geteuid() || !lchown(dir, who->uid, who->gid) ? 0 : -errno;
}

static void limit_files(void)
{
	struct rlimit r;

	if (getrlimit(RLIMIT_NOFILE, &r))
		return;
	r.rlim_max = r.rlim_max < FILES ? r.rlim_max : FILES;
	r.rlim_cur = r.rlim_max;
	(void)setrlimit(RLIMIT_NOFILE, &r);
}

static int be_host(int sock, const struct keeper_who *who, const char *dir)
{
	if (dup2(sock, KEEPER_SOCK) < 0 ||
	    syscall(SYS_close_range, KEEPER_SOCK + 1, ~0U, 0) < 0)
		return 1;
	(void)fcntl(KEEPER_SOCK, F_SETFD, FD_CLOEXEC);
	/* No terminal of the daemon's is this user's. */
	(void)setsid();
	(void)umask(077);
	(void)signal(SIGCHLD, SIG_DFL);
	limit_files();
	if (keeper_become(who))
		return 1;
	return host_run(KEEPER_SOCK, keeper.requests, dir);
}

static int make(struct kept *k, const struct keeper_who *who)
{
	char dir[300];
	int pair[2], err = make_dir(who, dir);
	pid_t pid;

	if (err)
		return err;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair))
		return -errno;
	(void)setsockopt(pair[0], SOL_SOCKET, SO_SNDBUF, &(int){ ROOM }, sizeof(int));
	pid = fork();
	if (!pid)
		_exit(be_host(pair[1], who, dir));
	err = pid < 0 ? -errno : 0;
	close(pair[1]);
	if (err) {
		close(pair[0]);
		return err;
	}
	*k = (struct kept){ .sock = pair[0], .who = *who,
			    .born_ns = rgate_clock_now(CLOCK_MONOTONIC) };
	return 0;
}

/* ---- Who connects ---- */

static void refuse(int sock, int result)
{
	const struct agent_share_answer answer = { .version = AGENT_VERSION,
		.what = AGENT_SHARE_HELLO, .result = result };

	(void)rgate_wire_send(sock, &answer, sizeof(answer), NULL, 0, MSG_DONTWAIT);
}

/* 0: he is with that user's process */
static int give(int sock)
{
	struct keeper_who who;
	struct kept *k;
	int err = keeper_who_is(sock, &who);

	if (err)
		return err;
	/* Without the rights to become him */
	if (geteuid() && geteuid() != who.uid)
		return -EOPNOTSUPP;
	k = find(who.uid);
	if (!k)
		return -EUSERS;
	if (k->sock < 0 && k->born_ns)
		return -EAGAIN;
	if (k->sock < 0)
		err = make(k, &who);
	else if (!keeper_has_all(&who, &k->who))
		err = -EPERM;
	if (err)
		return err;
	err = rgate_wire_send(k->sock, "", 1, &sock, 1, MSG_DONTWAIT);
	if (!err)
		k->given++;
	else if (err == -EPIPE || err == -ECONNRESET)
		forget(k);
	return err ? -EAGAIN : 0;
}

static void on_listen(void)
{
	int sock = accept4(keeper.listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK), err;

	if (sock < 0) {
		/* Who waits would wake this one at once again. */
		if (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS)
			usleep(NO_DESCRIPTOR_US);
		return;
	}
	err = give(sock);
	if (err)
		refuse(sock, err);
	hurry_close(sock);
}

/* It has ended; or it has nobody, and nobody is on his way to it. */
static void on_host(struct kept *k)
{
	struct host_idle idle = { .taken = 0 };
	struct hurry hurry;
	int n;

	hurry_begin(&hurry);
	n = rgate_wire_recv(k->sock, &idle, sizeof(idle), NULL, NULL, MSG_DONTWAIT);
	hurry_end(&hurry);
	if (n == -EAGAIN || n == -EINTR)
		return;
	if (n != (int)sizeof(idle) || idle.taken == k->given)
		forget(k);
}

/* ---- Its life ---- */

/* A path that is another one's by now stays. */
static void unlink_path(void)
{
	struct sockaddr_un un = { .sun_family = AF_UNIX };
	int sock = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	(void)stpcpy(un.sun_path, keeper.path);
	if (sock < 0)
		return;
	if (connect(sock, (struct sockaddr *)&un, sizeof(un)) < 0 && errno == ECONNREFUSED)
		(void)unlink(keeper.path);
	close(sock);
}

/* What each of them says; there is room for all */
static void poll_all(struct pollfd *p, unsigned int more, int ms)
{
	const unsigned int n = keeper.n;
	unsigned int i;

	for (i = 0; i < n; i++)
		p[more + i] = (struct pollfd){ .fd = keeper.kept[i].sock, .events = POLLIN };
	if (poll(p, more + n, ms) <= 0)
		for (i = 0; i < more; i++)
			p[i].revents = 0;
	else
		for (i = 0; i < n; i++)
			if (p[more + i].revents)
				on_host(&keeper.kept[i]);
}

static void wait_for_all(void)
{
	const uint64_t until = rgate_clock_now(CLOCK_MONOTONIC) + END_MS * 1000000ULL;
	struct pollfd p[KEEPER_HOSTS];
	unsigned int i, left;

	do {
		poll_all(p, 0, 50);
		for (i = left = 0; i < keeper.n; i++)
			left += keeper.kept[i].sock >= 0;
	} while (left && rgate_clock_now(CLOCK_MONOTONIC) < until);
}

static void end(void)
{
	char dir[300];
	unsigned int i;

	if (keeper.listen_fd >= 0) {
		close(keeper.listen_fd);
		unlink_path();
	}
	for (i = 0; i < keeper.n; i++)
		if (keeper.kept[i].sock >= 0)
			(void)shutdown(keeper.kept[i].sock, SHUT_WR);
	wait_for_all();
	for (i = 0; i < keeper.n; i++)
		if (!dir_of(keeper.kept[i].who.uid, dir))
			(void)rmdir(dir);
	(void)rmdir(keeper.dirs);
}

/* False: the daemon has ended, or wants this to end */
static bool on_daemon(void)
{
	int fds[RGATE_FDS], n;
	unsigned int nfds;
	char byte;

	n = rgate_wire_recv(KEEPER_SOCK, &byte, sizeof(byte), fds, &nfds, MSG_DONTWAIT);
	if (n == -EAGAIN || n == -EINTR)
		return true;
	if (n < 0 || nfds != 1 || keeper.listen_fd >= 0)
		return false;
	keeper.listen_fd = fds[0];
	return true;
}

static bool turn(void)
{
	struct pollfd p[2 + KEEPER_HOSTS] = {
		{ .fd = KEEPER_SOCK, .events = POLLIN },
		{ .fd = keeper.listen_fd, .events = POLLIN },
	};

	poll_all(p, 2, -1);
	if (p[0].revents && !on_daemon())
		return false;
	if (p[1].revents)
		on_listen();
	return true;
}

/* What is behind the path of the daemon's socket */
static bool set_paths(const char *requests)
{
	keeper.requests = requests;
	return snprintf(keeper.path, sizeof(keeper.path), "%s" AGENT_SHARE_PATH, requests) <
	       (int)sizeof(keeper.path) &&
	       snprintf(keeper.dirs, sizeof(keeper.dirs), "%s" AGENT_SHARE_DIRS, requests) <
	       (int)sizeof(keeper.dirs);
}

int main(int argc, char **argv)
{
	const char *version = rgate_version();

	keeper.listen_fd = -1;
	if (argc != 2 || !set_paths(argv[1]))
		return 2;
	(void)signal(SIGCHLD, SIG_IGN);
	(void)signal(SIGPIPE, SIG_IGN);
	(void)umask(0);
	if (rgate_wire_send(KEEPER_SOCK, version, strlen(version) + 1, NULL, 0, 0))
		return 1;
	while (turn())
		;
	end();
	return 0;
}
