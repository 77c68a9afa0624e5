/* SPDX-License-Identifier: MIT OR GPL-2.0 */
#ifndef DAEMON_H
#define DAEMON_H

/*
 * daemon_ask - a request to ringgated
 * @socket: NULL: the usual one; @text: out, the answer, to be freed; NULL on failure
 * Returns an exit code, after having said what is wrong.
 */
int daemon_ask(const char *socket, const char *request, char **text);

#endif
