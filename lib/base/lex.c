// SPDX-License-Identifier: MIT OR GPL-2.0
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "lex.h"

#define BLANKS	" \t\r"

__attribute__((format(printf, 2, 3)))
static int wrong(struct rgate_lex *lex, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(lex->why, sizeof(lex->why), fmt, ap);
	va_end(ap);
	return -EINVAL;
}

void rgate_lex_init(struct rgate_lex *lex, char *text, size_t len, size_t most)
{
	*lex = (struct rgate_lex){ .next = text, .end = text + len, .at = text + len,
				   .most = most };
	text[len] = '\0';
}

/* Cuts what is no word at the end of lex->at, and looks whether all quotes are closed */
static int check_words(struct rgate_lex *lex)
{
	char *s, *end = lex->at;	/* of the last word */

	for (s = lex->at + strspn(lex->at, BLANKS); *s && *s != '#'; s += strspn(s, BLANKS)) {
		if (*s == '"') {
			s = strchr(s + 1, '"');
			if (!s)
				return wrong(lex, "a quote that does not end");
			s++;
			if (*s && !strchr(BLANKS, *s))
				return wrong(lex, "a quote that ends within a word");
		} else {
			s += strcspn(s, BLANKS);
		}
		end = s;
	}
	*end = '\0';
	lex->at += strspn(lex->at, BLANKS);
	return 0;
}

int rgate_lex_line(struct rgate_lex *lex)
{
	size_t len;
	char *nl;
	int err;

	while (lex->next < lex->end) {
		lex->at = lex->next;
		nl = memchr(lex->at, '\n', (size_t)(lex->end - lex->at));
		len = (size_t)((nl ? nl : lex->end) - lex->at);
		lex->next = lex->at + len + 1;
		lex->line++;
		if (len > lex->most)
			return wrong(lex, "the line is longer than %zu characters", lex->most);
		if (memchr(lex->at, '\0', len))
			return wrong(lex, "the line has a NUL: is this a text file?");
		lex->at[len] = '\0';
		err = check_words(lex);
		if (err || *lex->at)
			return err ? err : 1;
	}
	lex->at = lex->end;
	return 0;
}

char *rgate_lex_word(struct rgate_lex *lex)
{
	char *word = lex->at, *end;

	if (!*word)
		return NULL;
	if (*word == '"') {
		word++;
		end = word + strcspn(word, "\"");
	} else {
		end = word + strcspn(word, BLANKS);
	}
	lex->at = end;
	if (*end) {
		*end = '\0';
		lex->at = end + 1 + strspn(end + 1, BLANKS);
	}
	return word;
}

int rgate_lex_words(struct rgate_lex *lex, char **words, unsigned int most)
{
	unsigned int n = 0;
	char *word;

	while ((word = rgate_lex_word(lex))) {
		if (n == most)
			return -E2BIG;
		words[n++] = word;
	}
	return (int)n;
}

char *rgate_lex_join(struct rgate_lex *lex, char *word)
{
	char *to = word + strlen(word), *more;
	size_t len;

	/* A word begins behind a blank at least, so what is written never overtakes it. */
	while ((more = rgate_lex_word(lex))) {
		len = strlen(more);
		*to++ = ' ';
		memmove(to, more, len + 1);
		to += len;
	}
	return word;
}

char *rgate_lex_rest(struct rgate_lex *lex)
{
	char *rest = lex->at;

	lex->at = rest + strlen(rest);
	return rest;
}
