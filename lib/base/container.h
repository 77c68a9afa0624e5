/* SPDX-License-Identifier: MIT OR GPL-2.0 */
#ifndef RGATE_BASE_CONTAINER_H
#define RGATE_BASE_CONTAINER_H

#include <stddef.h>

/* The object of @type whose @member is at @ptr */
#define container_of(ptr, type, member) \
	((type *)(void *)((char *)(ptr) - offsetof(type, member)))

#endif
