/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * Lines of configuration, and their words: the same rules in every file. Words are separated
 * by blanks, tabs and carriage returns; a word that begins with a double quote reaches to the
 * next one, and keeps blanks and #; there is no escape. A # where a word would begin makes
 * the rest of the line a comment.
 */
#ifndef RGATE_LEX_H
#define RGATE_LEX_H

#include <stddef.h>

#define RGATE_LEX_LINE	4095	/* characters of a line, where a file has no other limit */

struct rgate_lex {
	char *next;		/* what is behind this line */
	char *end;		/* of the text */
	char *at;		/* what is left of the line: no comment, no blanks around it */
	size_t most;		/* characters of a line */
	unsigned int line;	/* its number, from 1; 0: none yet */
	char why[64];		/* what is wrong with it */
};

/*
 * rgate_lex_init - of a text of lines
 * @text: @len bytes, and room for one more; it is changed, and words point into it
 * @most: characters that a line may have
 */
void rgate_lex_init(struct rgate_lex *lex, char *text, size_t len, size_t most);

/*
 * rgate_lex_line - the next line that has words
 * Return: 1; 0: there is none; -EINVAL: the line is too long, has a NUL, or a quote that is
 * not closed, and lex->why says so. Its words can be had without another look for errors.
 */
int rgate_lex_line(struct rgate_lex *lex);

/* The next word of the line, without its quotes; NULL: there is none */
char *rgate_lex_word(struct rgate_lex *lex);

/* All words that are left, into @words. How many, or -E2BIG: more than @most */
int rgate_lex_words(struct rgate_lex *lex, char **words, unsigned int most);

/* @word, which is the last one that was taken, with all behind it, a blank between two */
char *rgate_lex_join(struct rgate_lex *lex, char *word);

/* What is left of the line as it stands there, and nothing is left then */
char *rgate_lex_rest(struct rgate_lex *lex);

#endif
