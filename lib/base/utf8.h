/* SPDX-License-Identifier: MIT OR GPL-2.0 */
#ifndef RGATE_UTF8_H
#define RGATE_UTF8_H

#include <stddef.h>

/* Bytes of the UTF-8 character at @s, which is ended by a NUL; 0 if it is none */
size_t rgate_utf8(const unsigned char *s);

#endif
