// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * The module: an agent for all programs of a user. Neither these nor who asks for them are here,
 * but in processes of those users, which ask for requests as others do; ringgate-agent has the
 * rights to make them, and was begun before this process became another user.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent_share.h"
#include "helper.h"
#include "json.h"
#include "listen.h"
#include "requests.h"
#include "util.h"
#include "wire.h"

#define KEEPER_SOCK	3	/* as it has it */
#define ABOVE		10	/* a descriptor is moved here before it goes there */
#define BEGIN_MS	30000
#define END_MS		5000
#define DIR_ROOM	sizeof(AGENT_SHARE_DIRS "/4294967295/ringgate-XXXXXX")

struct agents {
	pid_t pid;
	int sock;
	int listen_fd;		/* until the keeper has it; -1 */
	bool listens;
	char path[sizeof(((struct sockaddr_un *)0)->sun_path)];
};

static const struct rgate_helper helper = { .name = "ringgate-agent", .env = "RGATE_KEEPER" };

static int agents_check(struct daemon *d)
{
	const char *path = requests_path(&d->conf);

	if (!d->conf.agents || !path || strlen(path) + DIR_ROOM <= AGENT_DIR_MAX)
		return 0;
	say("requests agent shared: %s is too long, as its agents have directories there: %u bytes at most",
	    path, (unsigned int)(AGENT_DIR_MAX - DIR_ROOM));
	return -ENAMETOOLONG;
}

/* It has this end as KEEPER_SOCK, and nothing of the environment. */
static int execute(struct agents *a, int theirs, const char *requests)
{
	char path[PATH_MAX], *env[1] = { NULL };
	char *argv[3] = { (char *)rgate_helper_path(&helper, path), (char *)requests, NULL };
	posix_spawn_file_actions_t actions;
	int err;

	err = -posix_spawn_file_actions_init(&actions);
	if (err)
		return err;
	err = -posix_spawn_file_actions_adddup2(&actions, theirs, KEEPER_SOCK);
	if (!err)
		err = -posix_spawn(&a->pid, argv[0], &actions, NULL, argv, env);
	if (err)
		say(RGATE_HELPER_MISSING, argv[0], strerror(-err), helper.env);
	(void)posix_spawn_file_actions_destroy(&actions);
	return err;
}

/* It says its version. */
static int meet(const struct agents *a)
{
	struct pollfd p = { .fd = a->sock, .events = POLLIN };
	char version[64] = "", path[PATH_MAX];
	int n;

	do
		n = poll(&p, 1, BEGIN_MS);
	while (n < 0 && errno == EINTR);
	if (n <= 0)
		return -ETIMEDOUT;
	n = rgate_wire_recv(a->sock, version, sizeof(version) - 1, NULL, NULL, MSG_DONTWAIT);
	if (n < 0)
		return n;
	if (!strcmp(version, rgate_version()))
		return 0;
	say(RGATE_HELPER_VERSION, rgate_helper_path(&helper, path), version, "ringgated",
	    rgate_version());
	return -EPROTONOSUPPORT;
}

/* It ends when it sees the end, and has seen the agents' before. */
static void end_keeper(struct agents *a)
{
	struct pollfd p = { .fd = a->sock, .events = POLLIN };
	const struct timespec nap = { .tv_nsec = 1000000 };
	int i;

	if (a->pid <= 0)
		return;
	(void)shutdown(a->sock, SHUT_WR);
	if (poll(&p, 1, END_MS) <= 0)
		(void)kill(a->pid, SIGKILL);
	/* Not for ever: this process may have become one who cannot kill it. */
	for (i = 0; i < END_MS && !waitpid(a->pid, NULL, WNOHANG); i++)
		nanosleep(&nap, NULL);
	a->pid = 0;
}

static int begin_keeper(struct agents *a, const char *requests)
{
	int pair[2], theirs, err;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair))
		return -errno;
	a->sock = pair[0];
	theirs = fcntl(pair[1], F_DUPFD_CLOEXEC, ABOVE);
	err = theirs < 0 ? -errno : execute(a, theirs, requests);
	if (theirs >= 0)
		close(theirs);
	/* Its end is seen only where nobody else has it. */
	close(pair[1]);
	if (!err) {
		err = meet(a);
		if (err)
			end_keeper(a);
	}
	if (err)
		close(a->sock);
	return err;
}

static int agents_prepare(struct daemon *d)
{
	const char *requests = requests_path(&d->conf);
	struct agents *a;
	int err;

	if (!d->conf.agents || !requests)
		return 0;
	a = calloc(1, sizeof(*a));
	if (!a)
		return -ENOMEM;
	a->listen_fd = -1;
	(void)stpcpy(stpcpy(a->path, requests), AGENT_SHARE_PATH);
	err = begin_keeper(a, requests);
	if (err) {
		say("cannot have agents for users: %s", strerror(-err));
		free(a);
		return err;
	}
	d->agents = a;
	return 0;
}

static void agents_discard(struct daemon *d)
{
	if (!d->agents)
		return;
	end_keeper(d->agents);
	close(d->agents->sock);
	free(d->agents);
	d->agents = NULL;
}

static int agents_open(struct daemon *d)
{
	struct agents *a = d->agents;

	if (!a)
		return 0;
	a->listen_fd = listen_open(a->path, d->conf.requests_group, 0666);
	a->listens = a->listen_fd >= 0;
	if (a->listens)
		return 0;
	say("cannot listen at %s: %s", a->path, strerror(-a->listen_fd));
	return a->listen_fd;
}

static void agents_close(struct daemon *d)
{
	struct agents *a = d->agents;

	if (!a || !a->listens)
		return;
	if (a->listen_fd >= 0)
		close(a->listen_fd);
	a->listen_fd = -1;
	(void)unlink(a->path);
}

/* Now agents can ask for requests. */
static int agents_start(struct daemon *d)
{
	struct agents *a = d->agents;
	int err = a ? rgate_wire_send(a->sock, "", 1, &a->listen_fd, 1, 0) : 0;

	if (err)
		say("the keeper of agents is gone: %s", strerror(-err));
	/* Where it is gone nobody listens. */
	if (a && !err) {
		close(a->listen_fd);
		a->listen_fd = -1;
	}
	return err;
}

/* First: who has been told, by his agent, needs no sockets any more. */
static void agents_stop(struct daemon *d)
{
	if (d->agents)
		end_keeper(d->agents);
}

static bool is_there(const struct agents *a)
{
	struct pollfd p = { .fd = a->sock };

	return poll(&p, 1, 0) == 0;
}

static void agents_json(struct daemon *d, struct json *j)
{
	if (d->agents)
		json_bool(j, "agents", is_there(d->agents));
}

static void agents_text(struct daemon *d, FILE *f)
{
	if (d->agents)
		fprintf(f, "\nagents: %s\n", is_there(d->agents) ?
			"one for all programs of a user" : "gone: start ringgated anew");
}

const struct module agents_module = {
	.check = agents_check,
	.prepare = agents_prepare,
	.discard = agents_discard,
	.open = agents_open,
	.close = agents_close,
	.start = agents_start,
	.stop = agents_stop,
	.status_json = agents_json,
	.status_text = agents_text,
};
