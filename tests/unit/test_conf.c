// SPDX-License-Identifier: MIT OR GPL-2.0
/* Files of lines that begin with a word: what is read, and what is said of it. */
#include "unit.h"

#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <ringgate/rgate.h>

#include "conf.h"

/* What was read: lines with their numbers, and what was logged */
struct seen {
	char lines[1024];
	char logged[512];
	unsigned int stop_at;	/* at this line the reader returns -ENOSPC; 0: never */
};

static void on_log(void *ctx, enum rgate_log_level level, const char *line)
{
	struct seen *s = ctx;

	assert_int_equal(level, RGATE_LOG_ERROR);
	assert_true(strlen(s->logged) + strlen(line) + 2 < sizeof(s->logged));
	strcat(strcat(s->logged, line), ";");
}

static int on_line(struct rgate_conf *c)
{
	struct seen *s = c->ctx;
	size_t at = strlen(s->lines);
	unsigned int i;

	assert_true(c->n >= 1);
	assert_int_equal(c->line, c->lex.line);
	at += (size_t)snprintf(s->lines + at, sizeof(s->lines) - at, "%u", c->line);
	for (i = 0; i < c->n; i++)
		at += (size_t)snprintf(s->lines + at, sizeof(s->lines) - at, "<%s", c->word[i]);
	if (c->line == s->stop_at)
		return -ENOSPC;
	return strcmp(c->word[0], "bad") ? 0 : rgate_conf_bad(c, "no '%s' here", c->word[0]);
}

/* Reads a copy of its own size, so that a sanitizer sees a read behind it */
static int reads(struct seen *s, struct rgate_conf *c, const char *text, size_t chars)
{
	const size_t len = strlen(text);
	char *copy = malloc(len + 1);
	int err;

	assert_non_null(copy);
	memcpy(copy, text, len);
	rgate_log_set(on_log, s);
	c->ctx = s;
	c->name = "F";
	err = rgate_conf_read(c, copy, len, chars, on_line);
	rgate_log_set(NULL, NULL);
	free(copy);
	return err;
}

static void lines(void **state)
{
	struct rgate_conf c = { .most = 3 };
	struct seen s = { 0 };

	(void)state;
	assert_int_equal(reads(&s, &c, "a b\n\n# c\n d \"e f\" g\nh", RGATE_LEX_LINE), 0);
	assert_string_equal(s.lines, "1<a<b4<d<e f<g5<h");
	assert_string_equal(s.logged, "");
	/* what is said then is about the whole */
	assert_int_equal(c.line, 0);
	rgate_log_set(on_log, &s);
	assert_int_equal(rgate_conf_bad(&c, "%s", "no end"), -EINVAL);
	rgate_log_set(NULL, NULL);
	assert_string_equal(s.logged, "F: no end;");
}

/* The first mistake ends the reading, is told once, and with its line */
static void mistakes(void **state)
{
	static const struct {
		const char *text, *logged, *lines;
	} wrong[] = {
		{ "a\nb c d e\nf", "F:2: more than 3 words;", "1<a" },
		{ "a\n\nbad\nf", "F:3: no 'bad' here;", "1<a3<bad" },
		{ "\"a", "F:1: a quote that does not end;", "" },
		{ "a\n123456789", "F:2: the line is longer than 8 characters;", "1<a" },
	};
	struct rgate_conf c = { .most = 3 };
	struct seen s;
	unsigned int i;

	(void)state;
	for (i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		memset(&s, 0, sizeof(s));
		assert_int_equal(reads(&s, &c, wrong[i].text, 8), -EINVAL);
		assert_string_equal(s.logged, wrong[i].logged);
		assert_string_equal(s.lines, wrong[i].lines);
	}
	/* the reader's own error, of which it says what there is to say */
	s = (struct seen){ .stop_at = 2 };
	assert_int_equal(reads(&s, &c, "a\nb\nc", 8), -ENOSPC);
	assert_string_equal(s.logged, "");
	assert_string_equal(s.lines, "1<a2<b");
}

static void users(void **state)
{
	struct rgate_conf c = { .name = "F", .line = 7 };
	struct passwd *pw = getpwuid(0);
	struct group *gr = getgrgid(0);
	struct seen s = { 0 };
	uid_t uid = 1;
	gid_t gid = 1;

	(void)state;
	rgate_log_set(on_log, &s);
	assert_int_equal(rgate_conf_user(&c, "4294967294", &uid), 0);
	assert_int_equal(uid, 4294967294U);
	assert_int_equal(rgate_conf_group(&c, "0", &gid), 0);
	assert_int_equal(gid, 0);
	assert_non_null(pw);
	assert_int_equal(rgate_conf_user(&c, pw->pw_name, &uid), 0);
	assert_int_equal(uid, 0);
	gid = 1;
	assert_non_null(gr);
	assert_int_equal(rgate_conf_group(&c, gr->gr_name, &gid), 0);
	assert_int_equal(gid, 0);
	assert_string_equal(s.logged, "");
	/* (uid_t)-1 is nobody, and what is beyond it would be somebody else */
	assert_int_equal(rgate_conf_user(&c, "4294967295", &uid), -EINVAL);
	assert_int_equal(rgate_conf_user(&c, "4294967296", &uid), -EINVAL);
	assert_int_equal(rgate_conf_user(&c, "", &uid), -EINVAL);
	assert_int_equal(rgate_conf_user(&c, "0x0", &uid), -EINVAL);
	assert_string_equal(s.logged, "F:7: there is no user '4294967295';"
			    "F:7: there is no user '4294967296';F:7: there is no user '';"
			    "F:7: there is no user '0x0';");
	s.logged[0] = '\0';
	assert_int_equal(rgate_conf_group(&c, "none-such", &gid), -EINVAL);
	assert_string_equal(s.logged, "F:7: there is no group 'none-such';");
	assert_int_equal(uid, 0);
	assert_int_equal(gid, 0);
	rgate_log_set(NULL, NULL);
}

static size_t needed;		/* bytes for an entry; 0: as many as it has */
static size_t most_seen;

int __real_getgrnam_r(const char *name, struct group *gr, char *buf, size_t size,
		      struct group **found);
int __wrap_getgrnam_r(const char *name, struct group *gr, char *buf, size_t size,
		      struct group **found);

int __wrap_getgrnam_r(const char *name, struct group *gr, char *buf, size_t size,
		      struct group **found)
{
	if (!needed)
		return __real_getgrnam_r(name, gr, buf, size, found);
	memset(buf, 'x', size);
	most_seen = size;
	*found = NULL;
	if (size < needed)
		return ERANGE;
	*gr = (struct group){ .gr_gid = 71 };
	*found = gr;
	return 0;
}

/* With the names of all its members an entry may be large, but not without an end. */
static void large_groups(void **state)
{
	struct rgate_conf c = { .name = "F", .line = 7 };
	gid_t gid = 1;

	(void)state;
	for (needed = 1; needed <= 16U << 20; needed *= 8) {
		gid = 1;
		assert_int_equal(rgate_conf_group(&c, "many", &gid), 0);
		assert_int_equal(gid, 71);
		assert_in_range(most_seen, needed, 2 * needed + 4096);
	}
	needed = SIZE_MAX;
	assert_int_equal(rgate_conf_group(&c, "many", &gid), -ENOMEM);
	assert_int_equal(most_seen, 16U << 20);
	needed = 0;
}

static void own_files(void **state)
{
	char path[] = "/tmp/rgate-conf-XXXXXX", wanted[128];
	int fd = mkstemp(path);
	struct seen s = { 0 };
	char *text = NULL;
	size_t len;

	(void)state;
	assert_true(fd >= 0);
	assert_int_equal(write(fd, "a b\n", 4), 4);
	rgate_log_set(on_log, &s);
	assert_int_equal(rgate_conf_load_own(path, 4, &text, &len), 0);
	assert_int_equal(len, 4);
	assert_memory_equal(text, "a b\n", 5);
	free(text);
	assert_string_equal(s.logged, "");
	assert_int_equal(rgate_conf_load_own(path, 3, &text, &len), -EFBIG);
	snprintf(wanted, sizeof(wanted), "cannot read %s: File too large;", path);
	assert_string_equal(s.logged, wanted);
	s.logged[0] = '\0';
	assert_int_equal(fchmod(fd, 0622), 0);
	assert_int_equal(rgate_conf_load_own(path, 4, &text, &len), -EPERM);
	snprintf(wanted, sizeof(wanted),
		 "cannot read %s: others may write it, or it is not root's;", path);
	assert_string_equal(s.logged, wanted);
	s.logged[0] = '\0';
	assert_int_equal(unlink(path), 0);
	assert_int_equal(rgate_conf_load_own(path, 4, &text, &len), -ENOENT);
	snprintf(wanted, sizeof(wanted), "cannot read %s: No such file or directory;", path);
	assert_string_equal(s.logged, wanted);
	rgate_log_set(NULL, NULL);
	close(fd);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(lines),
	cmocka_unit_test(mistakes),
	cmocka_unit_test(users),
	cmocka_unit_test(large_groups),
	cmocka_unit_test(own_files),
};

UNIT_MAIN_ALONE(tests)
