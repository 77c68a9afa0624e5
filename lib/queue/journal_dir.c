// SPDX-License-Identifier: MIT OR GPL-2.0
/* The journal's directory: whose it is, and its files. Nothing is opened by more than one name. */
#include "journal_priv.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "log.h"

#define SUFFIX		".journal"
#define DIGITS		16
#define SEGMENTS_MOST	65536U

/* ---- The directory ---- */

/* Anybody else could put other tasks there. */
static int check_owner(const struct journal *j, int fd, const char *what)
{
	struct stat st;

	if (fstat(fd, &st))
		return -errno;
	if ((st.st_uid && st.st_uid != j->uid) || st.st_mode & 0022) {
		rgate_err("journal %s%s%s belongs to another user, or others may write it: chown %u, and chmod go-w",
			  j->name, *what ? "/" : "", what, (unsigned int)j->uid);
		return -EPERM;
	}
	return 0;
}

static int make_dir(const struct journal *j, const char *path)
{
	if (mkdir(path, 0700))
		return errno == EEXIST ? 0 : -errno;
	/* Who writes is another user than the one who starts. */
	if (geteuid() != j->uid && lchown(path, j->uid, (gid_t)-1))
		return -errno;
	return 0;
}

/*
 * Its own name, too, is there after a power cut: also that of one who died before he had said so.
 * Who may not read where it is has not made it.
 */
static int sync_name(const struct journal *j)
{
	const int fd = openat(j->dir, "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int err;

	if (fd < 0)
		return errno == EACCES ? 0 : -errno;
	err = fsync(fd) && errno != EINVAL ? -errno : 0;
	close(fd);
	return err;
}

static int open_dir(struct journal *j, const char *path, bool make)
{
	int err = make ? make_dir(j, path) : 0;

	if (err)
		return err;
	j->dir = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (j->dir < 0)
		return -errno;
	return make ? sync_name(j) : 0;
}

int journal_dir_open(struct journal *j, const char *path, bool make)
{
	int err = open_dir(j, path, make);

	if (err) {
		if (err != -ENOENT || make)
			rgate_err("journal %s: %s", path, strerror(-err));
		return err;
	}
	err = check_owner(j, j->dir, "");
	if (err)
		return err;
	if (!flock(j->dir, LOCK_EX | LOCK_NB))
		return 0;
	err = errno == EWOULDBLOCK ? -EBUSY : -errno;
	if (err == -EBUSY && j->look)
		return err;
	if (err == -EBUSY)
		rgate_err("journal %s is another daemon's, which runs: end that, or name another directory",
			  path);
	else
		rgate_err("journal %s cannot be locked: %s", path, strerror(-err));
	return err;
}

void journal_name(uint64_t number, char name[JOURNAL_NAME_ROOM])
{
	snprintf(name, JOURNAL_NAME_ROOM, "%016" PRIx64 SUFFIX, number);
}

static bool parse_name(const char *name, uint64_t *number)
{
	char again[JOURNAL_NAME_ROOM];

	if (strlen(name) != DIGITS + strlen(SUFFIX))
		return false;
	*number = strtoull(name, NULL, 16);
	journal_name(*number, again);
	return *number && !strcmp(name, again);
}

static int compare(const void *a, const void *b)
{
	const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

static int read_names(DIR *d, uint64_t **numbers, size_t *n)
{
	size_t room = 0;
	struct dirent *e;
	uint64_t number, *more;

	while ((e = readdir(d))) {
		if (!parse_name(e->d_name, &number))
			continue;
		if (*n == SEGMENTS_MOST)
			return -EMFILE;
		if (*n == room) {
			room = room ? room * 2 : 64;
			more = realloc(*numbers, room * sizeof(*more));
			if (!more)
				return -ENOMEM;
			*numbers = more;
		}
		(*numbers)[(*n)++] = number;
	}
	return 0;
}

static int check_numbers(const struct journal *j, const uint64_t *numbers, size_t n)
{
	char name[JOURNAL_NAME_ROOM];
	size_t i;

	for (i = 1; i < n; i++) {
		if (numbers[i] == numbers[0] + i)
			continue;
		journal_name(numbers[i - 1] + 1, name);
		if (j->repair) {
			rgate_warn("journal %s/%s is missing: what it had is lost", j->name, name);
			return 0;
		}
		rgate_err("journal %s/%s is missing, and there are later ones: bring it back, or start once with 'repair'",
			  j->name, name);
		return -EBADMSG;
	}
	if (n && numbers[n - 1] == UINT64_MAX) {
		rgate_err("journal %s: there is no number after the last file's", j->name);
		return -EBADMSG;
	}
	return 0;
}

int journal_dir_list(const struct journal *j, uint64_t **numbers, size_t *n)
{
	const int fd = openat(j->dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = fd < 0 ? NULL : fdopendir(fd);
	int err;

	*numbers = NULL;
	*n = 0;
	if (!d) {
		err = -errno;
		if (fd >= 0)
			close(fd);
		return err;
	}
	err = read_names(d, numbers, n);
	closedir(d);
	if (!err && *n) {
		qsort(*numbers, *n, sizeof(**numbers), compare);
		err = check_numbers(j, *numbers, *n);
	}
	if (err) {
		free(*numbers);
		*numbers = NULL;
	}
	return err;
}

/* ---- Files ---- */

static int check_file(const struct journal *j, int fd, const char *name, size_t *len)
{
	struct stat st;
	int err = check_owner(j, fd, name);

	if (err)
		return err;
	if (fstat(fd, &st))
		return -errno;
	if (!S_ISREG(st.st_mode) || st.st_nlink != 1 || st.st_size > JOURNAL_FILE_MOST) {
		rgate_err("journal %s/%s is no file of a journal: remove it", j->name, name);
		return -EBADMSG;
	}
	*len = (size_t)st.st_size;
	return 0;
}

static int read_all(int fd, char *mem, size_t *len)
{
	size_t got = 0;
	ssize_t n;

	while (got < *len) {
		n = pread(fd, mem + got, *len - got, (off_t)got);
		if (n < 0 && errno != EINTR)
			return -errno;
		if (!n)
			break;
		got += n > 0 ? (size_t)n : 0;
	}
	*len = got;
	return 0;
}

int journal_dir_read(const struct journal *j, uint64_t number, char **mem, size_t *len, int *fd)
{
	char name[JOURNAL_NAME_ROOM];
	int file, err;

	*mem = NULL;
	journal_name(number, name);
	file = openat(j->dir, name, (fd ? O_RDWR : O_RDONLY) | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	err = file < 0 ? -errno : check_file(j, file, name, len);
	if (!err) {
		/* One more, so that there are some */
		*mem = malloc(*len + 1);
		err = *mem ? read_all(file, *mem, len) : -ENOMEM;
	}
	if (err) {
		if (err != -EBADMSG && err != -EPERM)
			rgate_err("journal %s/%s: %s", j->name, name, strerror(-err));
		free(*mem);
		*mem = NULL;
	}
	if (!err && fd)
		*fd = file;
	else if (file >= 0)
		close(file);
	return err;
}

static int write_head(struct segment *s)
{
	struct journal_head head = {
		.magic = JOURNAL_MAGIC, .version = JOURNAL_VERSION, .salt = s->salt,
		.number = s->number,
	};
	ssize_t n;

	head.crc = journal_head_crc(&head);
	n = pwrite(s->fd, &head, sizeof(head), 0);
	if (n != sizeof(head))
		return n < 0 ? -errno : -ENOSPC;
	return fdatasync(s->fd) ? -errno : 0;
}

/*
 * Room for all of it, and for what ends when there is no more room: so that what is full is told to
 * those who would submit, and to nobody else. Not all file systems can.
 */
static int take_room(const struct journal *j, int fd)
{
	if (!fallocate(fd, FALLOC_FL_KEEP_SIZE, 0, (off_t)j->segment + JOURNAL_RESERVE))
		return 0;
	return errno == ENOSPC || errno == EDQUOT || errno == EFBIG ? -errno : 0;
}

static int make_file(struct journal *j, struct segment *s, const char *name)
{
	int err;

	s->fd = openat(j->dir, name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (s->fd < 0)
		return -errno;
	err = geteuid() != j->uid && fchown(s->fd, j->uid, (gid_t)-1) ? -errno : 0;
	if (!err)
		err = take_room(j, s->fd);
	if (!err)
		err = write_head(s);
	/* Its name, too, is there after a power cut. */
	if (!err && fsync(j->dir))
		err = -errno;
	if (err)
		(void)unlinkat(j->dir, name, 0);
	return err;
}

struct segment *journal_segment_new(struct journal *j, uint64_t number, int *err)
{
	struct segment *s = calloc(1, sizeof(*s));
	char name[JOURNAL_NAME_ROOM];

	*err = -ENOMEM;
	if (!s)
		return NULL;
	list_init(&s->of_journal);
	list_init(&s->tasks);
	s->fd = -1;
	s->number = number;
	s->size = s->synced = sizeof(struct journal_head);
	journal_name(number, name);
	*err = getrandom(&s->salt, sizeof(s->salt), 0) == sizeof(s->salt) ? 0 : -EIO;
	if (!*err)
		*err = make_file(j, s, name);
	if (*err) {
		journal_segment_free(s);
		return NULL;
	}
	return s;
}

void journal_segment_free(struct segment *s)
{
	if (s->fd >= 0)
		close(s->fd);
	free(s);
}

int journal_segment_remove(struct journal *j, const struct segment *s)
{
	char name[JOURNAL_NAME_ROOM], aside[JOURNAL_NAME_ROOM + 8];

	journal_name(s->number, name);
	snprintf(aside, sizeof(aside), "%s.wrong", name);
	if (s->bad)
		return renameat(j->dir, name, j->dir, aside) ? -errno : 0;
	return unlinkat(j->dir, name, 0) ? -errno : 0;
}
