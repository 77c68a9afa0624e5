/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/* A table whose columns become as wide as what stands in them. */
#ifndef TABLE_H
#define TABLE_H

#include <stddef.h>
#include <stdio.h>

struct table {
	unsigned int ncols;
	size_t ncells, cap;
	char **cells;		/* header first, row by row */
};

/*
 * table_init - @head: column titles, divided by blanks; a title that begins with
 * '<' makes a column that is flush left (the rest is flush right)
 * 0 or -ENOMEM
 */
int table_init(struct table *t, const char *head);
/* The next cell, from left to right, row by row. 0 or -ENOMEM */
int table_cell(struct table *t, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
void table_print(const struct table *t, FILE *f);
void table_free(struct table *t);

#endif
