// SPDX-License-Identifier: MIT OR GPL-2.0
#include "sync_later.h"

#include <errno.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

void sync_later_begin(struct sync_client *sc, uint64_t cookie)
{
	sc->later.cookie = cookie;
	sc->later.there = false;
}

bool sync_later_keep(struct sync_client *sc, const struct rgate_completion *c)
{
	if (!sc->later.cookie || sc->later.there || c->cookie != sc->later.cookie)
		return false;
	sc->later.end = *c;
	sc->later.there = true;
	return true;
}

static void ring(struct sync_client *sc)
{
	const uint64_t one = 1;

	(void)!write(sc->later.bell, &one, sizeof(one));
}

static void silence(struct sync_client *sc)
{
	uint64_t rings;

	(void)!read(sc->later.bell, &rings, sizeof(rings));
}

/* Others that were waited for have taken the edge, or have left one behind. */
void sync_later_settle(struct sync_client *sc)
{
	if (!sc->later.has_fd)
		return;
	if (sc->later.cookie) {
		if (sc->later.there || rgate_session_arm(sc->session))
			ring(sc);
	} else if (!rgate_session_arm(sc->session)) {
		rgate_session_disarm(sc->session);
	}
}

/* 1: it has ended, as later.end says; 0: it is under way; or as rgate_session_poll() */
static int look(struct sync_client *sc)
{
	struct sync_later *l = &sc->later;
	int ret;

	do {
		ret = l->there ? 1 : sync_client_take(sc, l->cookie, &l->end);
		/* 1: something came meanwhile */
	} while (!ret && l->has_fd && (ret = rgate_session_arm(sc->session)) == 1);
	l->there = ret == 1;
	return ret;
}

static int over(struct sync_client *sc, int ret)
{
	sc->later.cookie = 0;
	sc->later.there = false;
	if (sc->later.has_fd)
		silence(sc);
	sync_later_settle(sc);
	return ret;
}

int sync_later_take(struct sync_client *sc, uint64_t *value)
{
	int ret;

	if (!sc->later.cookie)
		return -EINVAL;
	if (sc->later.has_fd)
		silence(sc);
	ret = look(sc);
	if (!ret)
		return -EINPROGRESS;
	if (ret < 0)
		return over(sc, ret);
	*value = sc->later.end.value;
	return over(sc, sc->later.end.result);
}

int sync_later_quit(struct sync_client *sc)
{
	struct sync_later *l = &sc->later;
	int ret;

	if (!l->cookie)
		return -EINVAL;
	ret = look(sc);
	if (!ret)
		ret = sync_client_give_up(sc, l->cookie, &l->end);
	if (ret < 0)
		return over(sc, ret);
	if (l->end.result == -ECANCELED)
		return over(sc, 0);
	l->there = true;
	sync_later_settle(sc);
	return 1;
}

static int watch(int fd, int other)
{
	struct epoll_event ev = { .events = EPOLLIN };

	return epoll_ctl(fd, EPOLL_CTL_ADD, other, &ev) ? -errno : 0;
}

int sync_later_fd(struct sync_client *sc)
{
	struct sync_later *l = &sc->later;
	int err = -EMFILE;

	if (l->has_fd)
		return l->fd;
	l->fd = epoll_create1(EPOLL_CLOEXEC);
	l->bell = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	if (l->fd >= 0 && l->bell >= 0)
		err = watch(l->fd, l->bell);
	if (!err)
		err = watch(l->fd, rgate_session_fd(sc->session));
	l->has_fd = !err;
	sync_later_settle(sc);
	if (!err)
		return l->fd;
	if (l->fd >= 0)
		close(l->fd);
	if (l->bell >= 0)
		close(l->bell);
	return err;
}

void sync_later_close(struct sync_client *sc)
{
	if (!sc->later.has_fd)
		return;
	close(sc->later.fd);
	close(sc->later.bell);
	sc->later.has_fd = false;
}
