// SPDX-License-Identifier: MIT OR GPL-2.0
/* What an agent that was killed has left: who accepts there is told, and it goes. */
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "agent_priv.h"

#define LONG	(AGENT_DIR_MAX - 1)	/* of a directory's name, at most */

static char dir[64];

/* A socket at @name in @in, which listens */
static int bound(const char *in, const char *name, int type)
{
	struct sockaddr_un un = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, type | SOCK_CLOEXEC, 0);

	assert_true(fd >= 0);
	assert_in_range(snprintf(un.sun_path, sizeof(un.sun_path), "%s/%s", in, name), 1,
			sizeof(un.sun_path) - 1);
	assert_int_equal(bind(fd, (struct sockaddr *)&un, sizeof(un)), 0);
	assert_int_equal(listen(fd, AGENT_LAST_NEWS + 4), 0);
	return fd;
}

static bool is_there(const char *in, const char *name)
{
	char path[256];

	(void)snprintf(path, sizeof(path), "%s/%s", in, name);
	return !access(path, F_OK);
}

static void leaves(const char *in)
{
	char path[256];

	(void)snprintf(path, sizeof(path), "%s/" AGENT_CONTROL "1", in);
	agent_left(path);
}

static int setup(void **state)
{
	(void)state;
	(void)snprintf(dir, sizeof(dir), "/tmp/ringgate-left.XXXXXX");
	return mkdtemp(dir) ? 0 : -1;
}

static int teardown(void **state)
{
	(void)state;
	(void)rmdir(dir);
	return 0;
}

/* Each of those that may wait for one hears that the network is down. */
static void hears(int listener)
{
	struct pollfd p = { .fd = listener, .events = POLLIN };
	struct sockaddr_un un;
	struct agent_name name;
	unsigned int n;

	for (n = 0; poll(&p, 1, 0) == 1; n++) {
		socklen_t len = sizeof(un);
		int fd = accept(listener, (struct sockaddr *)&un, &len);

		assert_true(fd >= 0);
		memcpy(&name, un.sun_path, sizeof(name));
		assert_int_equal(name.error, ENETDOWN);
		close(fd);
	}
	assert_int_equal(n, AGENT_LAST_NEWS);
}

static void is_told(void **state)
{
	int listener, other, control;

	(void)state;
	control = bound(dir, AGENT_CONTROL "1", SOCK_SEQPACKET);
	other = bound(dir, AGENT_CONTROL "2", SOCK_SEQPACKET);
	listener = bound(dir, "17", SOCK_STREAM);
	/* as long as it answers */
	leaves(dir);
	assert_true(is_there(dir, AGENT_CONTROL "1") && is_there(dir, "17"));
	close(control);
	leaves(dir);
	hears(listener);
	assert_int_equal(access(dir, F_OK), -1);
	/* what is gone is none's any more */
	leaves(dir);
	close(other);
	close(listener);
}

/* A name of no directory, and one that is longer than an agent's can be: another is not cleared. */
static void is_no_name(void **state)
{
	char longer[LONG + 2], cut[LONG + 1], path[256];
	size_t n = strlen(dir);
	int listener, control;

	(void)state;
	agent_left(AGENT_CONTROL "1");
	agent_left("/" AGENT_CONTROL "1");
	memset(longer, 'x', sizeof(longer));
	memcpy(longer, dir, n);
	longer[n] = '/';
	longer[LONG + 1] = '\0';
	memcpy(cut, longer, LONG);
	cut[LONG] = '\0';
	assert_int_equal(mkdir(longer, 0700) | mkdir(cut, 0700), 0);
	control = bound(longer, AGENT_CONTROL "1", SOCK_SEQPACKET);
	close(control);
	listener = bound(cut, "17", SOCK_STREAM);
	leaves(longer);
	assert_true(is_there(longer, AGENT_CONTROL "1") && is_there(cut, "17"));
	close(listener);
	/* as long as it can be */
	control = bound(cut, AGENT_CONTROL "1", SOCK_SEQPACKET);
	close(control);
	leaves(cut);
	assert_int_equal(access(cut, F_OK), -1);
	assert_true(is_there(longer, AGENT_CONTROL "1"));
	(void)snprintf(path, sizeof(path), "%s/" AGENT_CONTROL "1", longer);
	assert_int_equal(unlink(path) | rmdir(longer), 0);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test_setup_teardown(is_told, setup, teardown),
	cmocka_unit_test_setup_teardown(is_no_name, setup, teardown),
};

UNIT_MAIN_ALONE(tests)
