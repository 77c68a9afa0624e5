// SPDX-License-Identifier: MIT OR GPL-2.0
#include <errno.h>
#include <grp.h>
#include <pthread.h>
#include <sched.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "listen.h"
#include "thread.h"

#define SOCKET_DIR	"/run/ringgate"	/* of RGATE_DAEMON_SOCKET and RGATE_SESSION_SOCKET */
#define BACKLOG		128

#if !defined(SO_PASSRIGHTS) && (defined(__x86_64__) || defined(__aarch64__))
#define SO_PASSRIGHTS	83
#endif

/*
 * Clients have no descriptors to send, and to get rid of one can take long (hurry.h). Before
 * Linux 6.16 the kernel takes them all the same. Holds for those who connect, too.
 */
static void refuse_descriptors(int sock)
{
#ifdef SO_PASSRIGHTS
	(void)setsockopt(sock, SOL_SOCKET, SO_PASSRIGHTS, &(int){ 0 }, sizeof(int));
#else
	(void)sock;
#endif
}

static int allow_group(const char *path, const char *name, mode_t mode)
{
	const struct group *gr = name ? getgrnam(name) : NULL;

	if (name && !gr)
		return -ENOENT;
	if (gr && chown(path, (uid_t)-1, gr->gr_gid) < 0)
		return -errno;
	return chmod(path, gr ? 0660 : mode) < 0 ? -errno : 0;
}

/* A socket that nobody listens on any more is in the way; another one is not ours. */
static int clear_path(const char *path)
{
	struct sockaddr_un sun = { .sun_family = AF_UNIX };
	struct stat st;
	int sock, ret;

	if (lstat(path, &st) < 0)
		return errno == ENOENT ? 0 : -errno;
	if (!S_ISSOCK(st.st_mode))
		return -EEXIST;
	memcpy(sun.sun_path, path, strlen(path) + 1);
	sock = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (sock < 0)
		return -errno;
	ret = connect(sock, (struct sockaddr *)&sun, sizeof(sun)) < 0 && errno == ECONNREFUSED ?
	      0 : -EADDRINUSE;
	close(sock);
	return ret ? ret : unlink(path) < 0 ? -errno : 0;
}

struct binding {
	int sock;
	const struct sockaddr_un *sun;
	int err;
};

static void *bind_unmasked(void *arg)
{
	struct binding *b = arg;
	mode_t mask;

	/* Where that is not allowed, as in some containers, others have its umask for a moment. */
	(void)unshare(CLONE_FS);
	mask = umask(0);
	b->err = bind(b->sock, (const struct sockaddr *)b->sun, sizeof(*b->sun)) < 0 ? -errno : 0;
	(void)umask(mask);
	return NULL;
}

/*
 * Who may connect is said by the file's mode, which nobody can set before it is there. A client
 * that waits for the daemon may come in between, and must not hear that he may not; so until then
 * the mode is for all, and whoever comes hears that nobody listens yet.
 *
 * The mode is less the umask, which fchmod(2) of the socket cannot help, and which all threads of a
 * process have in common but for who wants one of his own: so another thread binds it. A file that
 * is linked to its place when it is ready would do as well, but who looks for the daemon by the
 * socket's path would find another one.
 */
static int bind_for_all(int sock, const struct sockaddr_un *sun)
{
	struct binding b = { .sock = sock, .sun = sun };
	pthread_t thread;
	int err = rgate_thread_start(&thread, NULL, bind_unmasked, &b);

	if (err)
		return err;
	pthread_join(thread, NULL);
	return b.err;
}

int listen_open(const char *path, const char *group, mode_t mode)
{
	struct sockaddr_un sun = { .sun_family = AF_UNIX };
	int sock, err;

	if (strlen(path) >= sizeof(sun.sun_path))
		return -ENAMETOOLONG;
	if (!strncmp(path, SOCKET_DIR "/", sizeof(SOCKET_DIR)) && mkdir(SOCKET_DIR, 0755) < 0 &&
	    errno != EEXIST)
		return -errno;
	err = clear_path(path);
	if (err)
		return err;
	memcpy(sun.sun_path, path, strlen(path) + 1);
	sock = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (sock < 0)
		return -errno;
	refuse_descriptors(sock);
	err = bind_for_all(sock, &sun);
	if (err)
		goto close_sock;
	err = allow_group(path, group, mode);
	if (!err && listen(sock, BACKLOG) < 0)
		err = -errno;
	if (!err)
		return sock;
	(void)unlink(path);
close_sock:
	close(sock);
	return err;
}
