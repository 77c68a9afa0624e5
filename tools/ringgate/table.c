// SPDX-License-Identifier: MIT OR GPL-2.0
#define _GNU_SOURCE
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "clean.h"
#include "table.h"

static int add(struct table *t, char *cell)
{
	char **cells;

	if (!cell)
		return -ENOMEM;
	if (t->ncells == t->cap) {
		cells = reallocarray(t->cells, t->cap + 64, sizeof(*cells));
		if (!cells) {
			free(cell);
			return -ENOMEM;
		}
		t->cells = cells;
		t->cap += 64;
	}
	t->cells[t->ncells++] = cell;
	return 0;
}

int table_init(struct table *t, const char *head)
{
	int err = 0;

	*t = (struct table){ 0 };
	while (!err && *head) {
		size_t n = strcspn(head, " ");

		err = add(t, strndup(head, n));
		head += n + strspn(head + n, " ");
	}
	t->ncols = t->ncells;
	return err;
}

int table_cell(struct table *t, const char *fmt, ...)
{
	char *text, *cell;
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vasprintf(&text, fmt, ap);
	va_end(ap);
	cell = n < 0 ? NULL : clean_dup(text);
	if (n >= 0)
		free(text);
	return add(t, cell);
}

static int width(const struct table *t, unsigned int col)
{
	size_t i, w = 0;

	for (i = col; i < t->ncells; i += t->ncols) {
		size_t n = strlen(t->cells[i]);

		/* the mark of a title that is flush left is not printed */
		if (i < t->ncols && *t->cells[i] == '<')
			n--;
		if (n > w)
			w = n;
	}
	return w;
}

void table_print(const struct table *t, FILE *f)
{
	int w[t->ncols];
	size_t i;

	for (i = 0; i < t->ncols; i++)
		w[i] = width(t, i);
	for (i = 0; i < t->ncells; i++) {
		size_t col = i % t->ncols;
		const char *cell = t->cells[i];
		int left = *t->cells[col] == '<';

		if (i == col && left)
			cell++;
		if (col == t->ncols - 1 && left)
			fprintf(f, "%s\n", cell);
		else
			fprintf(f, "%*s%s", left ? -w[col] : w[col], cell,
				col == t->ncols - 1 ? "\n" : "  ");
	}
}

void table_free(struct table *t)
{
	size_t i;

	for (i = 0; i < t->ncells; i++)
		free(t->cells[i]);
	free(t->cells);
	*t = (struct table){ 0 };
}
