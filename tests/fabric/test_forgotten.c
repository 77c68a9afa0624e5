// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * Connections of the local provider whose socket somebody else has, too, by a descriptor of his
 * own: epoll(7) does not forget a file with our descriptor then.
 */
#include "ends.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "local.h"

static void skip_others(void)
{
	const char *provider = getenv("RGATE_FABRIC_PROVIDER");

	if (provider && strcmp(provider, "local"))
		unit_skip("a device has no sockets");
}

/* A descriptor of the connection's socket that stays: as if another process had it */
static int held(const struct rgate_conn *conn)
{
	const int fd = fcntl(conn->sock, F_DUPFD_CLOEXEC, 0);

	assert_true(fd >= 0);
	return fd;
}

/* Whatever comes to that socket: it wakes nobody, and is told of no connection. */
static void no_events(struct end *e)
{
	struct pollfd p = { .fd = e->prov->fd(e->ep), .events = POLLIN };
	struct rgate_prov_event ev;

	assert_int_equal(poll(&p, 1, 50), 0);
	assert_int_equal(e->prov->event(e->ep, &ev), 0);
}

/* We close it first; then its other end goes. */
static void closed(void **state)
{
	struct end e[2];
	struct cluster c;
	int fd[2];

	(void)state;
	skip_others();
	ends_up(&c, e);
	fd[0] = held(e[0].conn);
	fd[1] = held(e[1].conn);
	e[0].prov->destroy(e[0].conn);
	e[1].prov->destroy(e[1].conn);
	e[0].conn = e[1].conn = NULL;
	shutdown(fd[0], SHUT_RDWR);
	no_events(&e[0]);
	no_events(&e[1]);
	close(fd[0]);
	close(fd[1]);
	/* The ends are of use as before. */
	ends_connect(e, RGATE_ACCESS_REMOTE);
	end_flush(&e[0], &e[1]);
	ends_down(&c, e);
}

/* One that was asked for, and came to nothing: what its peer says of it later is not read */
static void unanswered(void **state)
{
	struct rgate_prov_event ev;
	struct end e[2];
	struct cluster c;
	int fd;

	(void)state;
	skip_others();
	ends_open(&c, e, MS);
	assert_int_equal(e[1].prov->connect(e[1].ep, &e[0].self, "x", 1, &e[1], &e[1].conn), 0);
	end_event(&e[0], RGATE_PROV_REQUEST, &ev);
	fd = held(e[1].conn);
	e[1].prov->destroy(e[1].conn);
	e[1].conn = NULL;
	e[0].prov->reject(ev.conn, -EACCES);
	no_events(&e[1]);
	close(fd);
	ends_down(&c, e);
}

/* One that we have refused */
static void refused(void **state)
{
	struct rgate_prov_event ev;
	struct end e[2];
	struct cluster c;
	int fd;

	(void)state;
	skip_others();
	ends_open(&c, e, MS);
	assert_int_equal(e[1].prov->connect(e[1].ep, &e[0].self, "x", 1, &e[1], &e[1].conn), 0);
	end_event(&e[0], RGATE_PROV_REQUEST, &ev);
	fd = held(ev.conn);
	e[0].prov->reject(ev.conn, -EACCES);
	shutdown(fd, SHUT_RDWR);
	no_events(&e[0]);
	close(fd);
	e[1].prov->destroy(e[1].conn);
	e[1].conn = NULL;
	ends_down(&c, e);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(closed),
	cmocka_unit_test(unanswered),
	cmocka_unit_test(refused),
};

UNIT_MAIN(tests)
