/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * Text of others: peers, other users, configuration. All that is printed or logged goes
 * through clean_put() (messages, tables, lines) or json_str(), so that nobody's name moves
 * the cursor, changes colours, or makes a second line of a log.
 */
#ifndef CLEAN_H
#define CLEAN_H

#include <stdio.h>

/*
 * clean_put - writes @text as printable UTF-8
 * Control characters, also those of C1 and for the direction of writing, and bytes that
 * are no UTF-8 become \xNN, a byte each.
 */
void clean_put(FILE *f, const char *text);

/* The same as a string, to be freed; NULL: no memory */
char *clean_dup(const char *text);

#endif
