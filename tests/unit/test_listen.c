// SPDX-License-Identifier: MIT OR GPL-2.0
/* The daemon's sockets: who comes before it listens never hears that he may not */
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../tools/ringgated/listen.h"

#define OTHER	65534U	/* a user, and a group */

static char dir[32];
static struct sockaddr_un at = { .sun_family = AF_UNIX };
static unsigned int looks, binds;
static pid_t self;			/* bind(2) may be another one's call */

int __real_chmod(const char *path, mode_t mode);
int __wrap_chmod(const char *path, mode_t mode);
int __real_chown(const char *path, uid_t uid, gid_t gid);
int __wrap_chown(const char *path, uid_t uid, gid_t gid);
int __real_listen(int fd, int backlog);
int __wrap_listen(int fd, int backlog);
int __real_bind(int fd, const struct sockaddr *sa, socklen_t len);
int __wrap_bind(int fd, const struct sockaddr *sa, socklen_t len);

static bool is_root(void)
{
	return geteuid() == 0;
}

/* 0, or -errno; of another user, where there is one to be had */
static int dial(void)
{
	const bool root = is_root();
	int sock = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0), err;

	assert_true(sock >= 0);
	if (root)
		assert_int_equal(seteuid(OTHER), 0);
	err = connect(sock, (struct sockaddr *)&at, sizeof(at)) < 0 ? -errno : 0;
	if (root)
		assert_int_equal(seteuid(0), 0);
	close(sock);
	return err;
}

/* Before each step that follows bind(2) */
static void look(void)
{
	struct stat st;

	assert_int_equal(lstat(at.sun_path, &st), 0);
	assert_int_equal(dial(), -ECONNREFUSED);
	looks++;
}

int __wrap_chmod(const char *path, mode_t mode)
{
	struct stat st;

	assert_int_equal(lstat(at.sun_path, &st), 0);
	assert_int_equal(st.st_mode & 0666, 0666);
	look();
	return __real_chmod(path, mode);
}

int __wrap_chown(const char *path, uid_t uid, gid_t gid)
{
	look();
	return __real_chown(path, uid, gid);
}

int __wrap_listen(int fd, int backlog)
{
	looks++;
	return __real_listen(fd, backlog);
}

/* Of this process, which other threads make files with meanwhile */
static unsigned long mask_of_all(void)
{
	char path[32], text[128] = "";
	const char *at_mask;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/status", (int)self);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return ~0UL;
	(void)!read(fd, text, sizeof(text) - 1);
	close(fd);
	at_mask = strstr(text, "\nUmask:\t");
	return at_mask ? strtoul(at_mask + 8, NULL, 8) : ~0UL;
}

static unsigned long mask_then;

int __wrap_bind(int fd, const struct sockaddr *sa, socklen_t len)
{
	mask_then = mask_of_all();
	binds++;
	return __real_bind(fd, sa, len);
}

static mode_t mode_of(const char *path)
{
	struct stat st;

	assert_int_equal(lstat(path, &st), 0);
	return st.st_mode & 07777;
}

static void for_all(void **state)
{
	const mode_t mask = umask(077);
	int sock;

	(void)state;
	looks = binds = 0;
	self = getpid();
	sock = listen_open(at.sun_path, NULL, 0666);
	assert_true(sock >= 0);
	assert_int_equal(looks, 2);
	assert_int_equal(binds, 1);
	assert_int_equal(mask_then, 077);
	assert_int_equal(mode_of(at.sun_path), 0666);
	assert_int_equal(dial(), 0);
	assert_int_equal(listen_open(at.sun_path, NULL, 0666), -EADDRINUSE);
	/* ... and what it found is as it was */
	assert_int_equal(umask(mask), 077);
	close(sock);
	/* who was killed leaves it, and is followed by another one */
	sock = listen_open(at.sun_path, NULL, 0600);
	assert_true(sock >= 0);
	assert_int_equal(mode_of(at.sun_path), 0600);
	if (is_root())
		assert_int_equal(dial(), -EACCES);
	close(sock);
	assert_int_equal(unlink(at.sun_path), 0);
}

static void for_a_group(void **state)
{
	const struct group *gr = getgrgid(is_root() ? OTHER : getegid());
	char name[64];
	struct stat st;
	int sock;

	(void)state;
	if (!gr)
		unit_skip("the group has no name");
	assert_true(strlen(gr->gr_name) < sizeof(name));
	strcpy(name, gr->gr_name);
	looks = 0;
	sock = listen_open(at.sun_path, name, 0666);
	assert_true(sock >= 0);
	assert_int_equal(looks, 3);
	assert_int_equal(lstat(at.sun_path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0660);
	assert_int_equal(st.st_gid, is_root() ? OTHER : getegid());
	close(sock);
	assert_int_equal(unlink(at.sun_path), 0);
}

static void refused(void **state)
{
	const mode_t mask = umask(027);
	char path[200];
	int fd;

	(void)state;
	assert_int_equal(listen_open(at.sun_path, "none-such-group", 0666), -ENOENT);
	assert_int_equal(access(at.sun_path, F_OK), -1);
	memset(path, 'a', sizeof(path) - 1);
	path[sizeof(path) - 1] = '\0';
	assert_int_equal(listen_open(path, NULL, 0666), -ENAMETOOLONG);
	fd = open(at.sun_path, O_CREAT | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	close(fd);
	assert_int_equal(listen_open(at.sun_path, NULL, 0666), -EEXIST);
	assert_int_equal(unlink(at.sun_path), 0);
	snprintf(path, sizeof(path), "%s/none/s", dir);
	assert_int_equal(listen_open(path, NULL, 0666), -ENOENT);
	/* nothing is left of who has bound it */
	assert_int_equal(waitpid(-1, NULL, WNOHANG | __WALL), -1);
	assert_int_equal(umask(mask), 027);
}

static int up(void **state)
{
	(void)state;
	strcpy(dir, "/tmp/test_listen.XXXXXX");
	if (!mkdtemp(dir) || __real_chmod(dir, 0755))
		return -1;
	return snprintf(at.sun_path, sizeof(at.sun_path), "%s/s", dir) < 0;
}

static int down(void **state)
{
	(void)state;
	(void)unlink(at.sun_path);
	return rmdir(dir);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test_setup_teardown(for_all, up, down),
	cmocka_unit_test_setup_teardown(for_a_group, up, down),
	cmocka_unit_test_setup_teardown(refused, up, down),
};

UNIT_MAIN(tests)
