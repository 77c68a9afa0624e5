/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * Files of lines that begin with a word that says what they are, as policies and the cluster
 * file have them: who reads one gets a call for each line, with its words. Errors are logged
 * with the file's name and the line's number.
 */
#ifndef RGATE_CONF_H
#define RGATE_CONF_H

#include <stddef.h>
#include <sys/types.h>

#include "lex.h"

#define RGATE_CONF_WORDS	128	/* of a line, at most */

struct rgate_conf {
	void *ctx;		/* the reader's own */
	const char *name;	/* of the file, for messages */
	unsigned int most;	/* words that a line may have: 1 to RGATE_CONF_WORDS */
	unsigned int line;	/* that messages are about; 0: the file as a whole */
	unsigned int n;		/* words of it */
	char *word[RGATE_CONF_WORDS];	/* in the text that is read */
	struct rgate_lex lex;
};

/* A line with at least one word. 0, or an error that ends the reading */
typedef int (*rgate_conf_fn)(struct rgate_conf *c);

/*
 * rgate_conf_read - all lines of a text
 * @text: @len bytes, and room for one more; it is changed, and words point into it
 * @chars: characters that a line may have
 * Return: 0; what @fn said; -EINVAL: no such line, and the log says why.
 */
int rgate_conf_read(struct rgate_conf *c, char *text, size_t len, size_t chars, rgate_conf_fn fn);

/*
 * rgate_conf_load_own - the text of a file that says who may do what, see rgate_file_read_own()
 * Return: as that; the log says what is wrong.
 */
int rgate_conf_load_own(const char *path, size_t most, char **text, size_t *len);

/* Logs what is wrong with the line. -EINVAL */
int rgate_conf_bad(const struct rgate_conf *c, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/* By name or number. 0; -EINVAL: there is no such one, and the log says so */
int rgate_conf_user(const struct rgate_conf *c, const char *name, uid_t *uid);
int rgate_conf_group(const struct rgate_conf *c, const char *name, gid_t *gid);

#endif
