// SPDX-License-Identifier: MIT OR GPL-2.0
#include "home.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "agent_share.h"
#include "left_watch.h"
#include "util.h"

#define ANSWER_MS	10000	/* for the agent to begin, or to answer */
#define TRIES		30	/* ... one that is not there yet, or not any more */
#define NAP_NS		(NSEC / 10)

int home_open(struct home *h, const struct agent_opts *opts)
{
	int err;

	*h = (struct home){ .sock = -1, .left_watch = -1, .info.sz = sizeof(h->info) };
	err = left_watch_begin(&h->left_watch);
	if (!err)
		err = agent_open(&h->agent, opts);
	if (!err)
		err = agent_join(h->agent, &h->member);
	if (!err)
		err = left_watch_tell(h->left_watch, agent_member_path(h->member));
	if (err) {
		home_close(h);
		return err;
	}
	(void)snprintf(h->path, sizeof(h->path), "%s", agent_member_path(h->member));
	return 0;
}

bool home_is_group(const char *name)
{
	static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				      "0123456789._-";

	return *name && strlen(name) < AGENT_GROUP_MAX && !name[strspn(name, allowed)];
}

/* ---- The shared one ---- */

static int call_agent(const char *path)
{
	struct sockaddr_un un = { .sun_family = AF_UNIX };
	const struct timeval most = { .tv_sec = ANSWER_MS / 1000 };
	const size_t len = strlen(path);
	int sock, err;

	if (len + sizeof(AGENT_SHARE_PATH) > sizeof(un.sun_path))
		return -ENOENT;
	(void)stpcpy(stpcpy(un.sun_path, path), AGENT_SHARE_PATH);
	sock = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (sock < 0)
		return -errno;
	/* Also for room among those who wait */
	(void)setsockopt(sock, SOL_SOCKET, SO_SNDTIMEO, &most, sizeof(most));
	if (!connect(sock, (struct sockaddr *)&un, sizeof(un)))
		return sock;
	err = -errno;
	close(sock);
	/* A file that a daemon has left is none. */
	return err == -ECONNREFUSED ? -ENOENT : err;
}

/* One message; lines are said. 1: it is an answer; 0: it was none; -EAGAIN; -EPIPE */
static int hear(struct home *h, struct agent_share_answer *answer)
{
	const ssize_t n = recv(h->sock, answer, sizeof(*answer), MSG_DONTWAIT);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return -EAGAIN;
	if (n <= 0)
		return -EPIPE;
	if (n != sizeof(*answer) || answer->version != AGENT_VERSION)
		return -EPROTONOSUPPORT;
	if (answer->what != AGENT_SHARE_LINE)
		return 1;
	answer->text[sizeof(answer->text) - 1] = '\0';
	say("%s", answer->text);
	return 0;
}

static int hear_answer(struct home *h, uint32_t what, struct agent_share_answer *answer)
{
	const uint64_t until = util_now() + ANSWER_MS * 1000000ULL;
	struct pollfd p = { .fd = h->sock, .events = POLLIN };
	uint64_t now;
	int ret;

	do {
		ret = hear(h, answer);
		now = util_now();
		if (ret == -EAGAIN && now < until)
			(void)poll(&p, 1, (int)((until - now) / 1000000) + 1);
	} while ((!ret || ret == -EAGAIN) && now < until);
	if (ret != 1)
		return ret && ret != -EAGAIN ? ret : -ETIMEDOUT;
	return answer->what == what ? 0 : -EPROTONOSUPPORT;
}

static int ask(struct home *h, uint32_t what, const char *group, struct agent_share_answer *answer)
{
	struct agent_share_ask q = { .version = AGENT_VERSION, .what = what };

	(void)snprintf(q.group, sizeof(q.group), "%s", group);
	if (send(h->sock, &q, sizeof(q), MSG_NOSIGNAL | MSG_DONTWAIT) != sizeof(q))
		return errno == EAGAIN ? -ETIMEDOUT : -EPIPE;
	return hear_answer(h, what, answer);
}

/* -EAGAIN: it ended when this one came */
static int join(struct home *h, const char *path, const char *group)
{
	struct agent_share_answer answer;
	int err;

	h->sock = call_agent(path);
	if (h->sock < 0)
		return h->sock;
	err = hear_answer(h, AGENT_SHARE_HELLO, &answer);
	if (!err)
		err = answer.result;
	if (!err)
		err = ask(h, AGENT_SHARE_JOIN, group, &answer);
	if (!err)
		err = answer.result;
	if (!err && !memchr(answer.text, '\0', sizeof(h->path)))
		err = -EPROTONOSUPPORT;
	if (!err) {
		memcpy(h->path, answer.text, sizeof(h->path));
		return 0;
	}
	home_close(h);
	return err == -EPIPE ? -EAGAIN : err == -EOPNOTSUPP ? -ENOENT : err;
}

int home_join(struct home *h, const char *path, const char *group)
{
	unsigned int tries = TRIES;
	int err;

	*h = (struct home){ .sock = -1, .left_watch = -1, .info.sz = sizeof(h->info) };
	while ((err = join(h, path, group)) == -EAGAIN && --tries)
		util_sleep(util_now() + NAP_NS);
	return err;
}

/* ---- Either ---- */

void home_close(struct home *h)
{
	agent_close(h->agent);
	if (h->sock >= 0)
		close(h->sock);
	/* It finds nothing. */
	if (h->left_watch >= 0)
		close(h->left_watch);
	h->agent = NULL;
	h->member = NULL;
	h->sock = h->left_watch = -1;
}

bool home_is_open(const struct home *h)
{
	return h->agent || h->sock >= 0;
}

int home_fd(const struct home *h)
{
	return h->agent ? agent_fd(h->agent) : h->sock;
}

int home_timeout(const struct home *h)
{
	return h->agent ? agent_timeout(h->agent) : 1000;
}

int home_step(struct home *h)
{
	struct agent_share_answer answer;
	int ret;

	if (h->agent)
		return agent_step(h->agent);
	do
		ret = hear(h, &answer);
	while (ret >= 0);
	if (ret == -EAGAIN)
		return 0;
	/* Not if this one alone was sent away */
	agent_left(h->path);
	return ret;
}

void home_info(struct home *h, struct agent_info *info)
{
	struct agent_share_answer answer;

	if (h->member)
		(void)agent_member_info(h->member, &h->info);
	else if (h->sock >= 0 && !ask(h, AGENT_SHARE_INFO, "", &answer))
		h->info = answer.info;
	*info = h->info;
}
