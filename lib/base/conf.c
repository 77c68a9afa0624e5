// SPDX-License-Identifier: MIT OR GPL-2.0
#include "conf.h"

#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "file.h"
#include "log.h"

#define ROOM_FIRST	4096U		/* bytes for an entry of the users or groups */
#define ROOM_MOST	(16U << 20)

int rgate_conf_bad(const struct rgate_conf *c, const char *fmt, ...)
{
	char text[256];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	if (c->line)
		rgate_err("%s:%u: %s", c->name, c->line, text);
	else
		rgate_err("%s: %s", c->name, text);
	return -EINVAL;
}

static int read_line(struct rgate_conf *c, rgate_conf_fn fn)
{
	const int n = rgate_lex_words(&c->lex, c->word, c->most);

	if (n < 0)
		return rgate_conf_bad(c, "more than %u words", c->most);
	c->n = (unsigned int)n;
	return fn(c);
}

int rgate_conf_read(struct rgate_conf *c, char *text, size_t len, size_t chars, rgate_conf_fn fn)
{
	int err;

	rgate_lex_init(&c->lex, text, len, chars);
	while ((err = rgate_lex_line(&c->lex))) {
		c->line = c->lex.line;
		err = err < 0 ? rgate_conf_bad(c, "%s", c->lex.why) : read_line(c, fn);
		if (err)
			return err;
	}
	c->line = 0;
	return 0;
}

int rgate_conf_load_own(const char *path, size_t most, char **text, size_t *len)
{
	const int err = rgate_file_read_own(path, most, text, len);

	if (err)
		rgate_err("cannot read %s: %s", path, err == -EPERM ?
			  "others may write it, or it is not root's" : strerror(-err));
	return err;
}

/* Digits alone; (uid_t)-1 is nobody's number */
static bool is_number(const char *text, uint32_t *id)
{
	uint64_t v = 0;
	const char *s;

	for (s = text; *s >= '0' && *s <= '9'; s++) {
		v = v * 10 + (uint32_t)(*s - '0');
		if (v >= UINT32_MAX)
			return false;
	}
	*id = (uint32_t)v;
	return s != text && !*s;
}

/*
 * Twice the room as long as an entry does not fit: a group has all its members' names in it.
 * NULL: no memory, or more than that
 */
static char *more_room(char *buf, size_t *size)
{
	char *more = NULL;

	*size = *size ? *size * 2 : ROOM_FIRST;
	if (*size <= ROOM_MOST)
		more = realloc(buf, *size);
	if (!more)
		free(buf);
	return more;
}

int rgate_conf_user(const struct rgate_conf *c, const char *name, uid_t *uid)
{
	struct passwd pw, *found = NULL;
	char *buf = NULL;
	size_t size = 0;
	int err;

	if (is_number(name, uid))
		return 0;
	do {
		buf = more_room(buf, &size);
		if (!buf)
			return -ENOMEM;
		err = getpwnam_r(name, &pw, buf, size, &found);
	} while (err == ERANGE);
	if (found)
		*uid = pw.pw_uid;
	free(buf);
	return found ? 0 : rgate_conf_bad(c, "there is no user '%s'", name);
}

int rgate_conf_group(const struct rgate_conf *c, const char *name, gid_t *gid)
{
	struct group gr, *found = NULL;
	char *buf = NULL;
	size_t size = 0;
	int err;

	if (is_number(name, gid))
		return 0;
	do {
		buf = more_room(buf, &size);
		if (!buf)
			return -ENOMEM;
		err = getgrnam_r(name, &gr, buf, size, &found);
	} while (err == ERANGE);
	if (found)
		*gid = gr.gr_gid;
	free(buf);
	return found ? 0 : rgate_conf_bad(c, "there is no group '%s'", name);
}
