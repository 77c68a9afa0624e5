/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/* Where a socket is bound, from text; and whose an address is. */
#ifndef ADDRESS_H
#define ADDRESS_H

#include <stdbool.h>
#include <sys/socket.h>

/*
 * address_parse - ADDRESS:PORT, [ADDRESS]:PORT, :PORT or PORT, for a UDP socket
 * @text: without an address it is any; a name is looked up; the port is a number from
 *	1 to 65535
 * @addr, @len: out
 * @why: out, on failure: words for what is wrong, static; NULL is not allowed
 * Returns 0 or -EINVAL. Thread-safe.
 */
int address_parse(const char *text, struct sockaddr_storage *addr, socklen_t *len,
		  const char **why);

/*
 * address_is_here - @addr, as inet_ntop() writes it, is one of this machine's
 * False also where the kernel does not tell.
 */
bool address_is_here(const char *addr);

#endif
