// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * Asks an HTTP server for one thing, and writes what it says, head and all, to standard output.
 *
 *	http_get ADDRESS:PORT PATH [SOCKET]
 *
 * With a socket the daemon there has the connection, else this process.
 */
#include <ringgate/ringgate.h>
#include <stdio.h>
#include <string.h>

#define TIMEOUT_MS	10000

static int get(struct rgate_sockets *set, const struct rgate_socket_addr *at, const char *host,
	       const char *path)
{
	struct rgate_socket *s;
	size_t room;
	char *mem = rgate_sockets_memory(set, &room);
	int n, err;

	err = rgate_socket_open(set, &s, at->family, RGATE_SOCKET_STREAM);
	if (err)
		return err;
	rgate_socket_timeout(s, TIMEOUT_MS);
	err = rgate_socket_connect(s, at);
	if (err)
		goto close;
	n = snprintf(mem, room, "GET %s HTTP/1.0\r\nHost: %s\r\n\r\n", path, host);
	err = n < 0 || (size_t)n >= room ? -1 : rgate_socket_send(s, mem, (uint32_t)n, 0);
	/* Until the end: what comes lies in the memory when the call returns. */
	while (err > 0) {
		err = rgate_socket_recv(s, mem, (uint32_t)room, 0);
		if (err > 0 && (fwrite(mem, 1, (size_t)err, stdout) != (size_t)err ||
				fflush(stdout)))
			err = -1;
	}
close:
	rgate_socket_close(s);
	return err;
}

int main(int argc, char **argv)
{
	struct rgate_sockets_opts o = RGATE_OPTS(rgate_sockets_opts,
		.path = argc > 3 ? argv[3] : NULL,
		.where = argc > 3 ? RGATE_SESSION_DAEMON : RGATE_SESSION_PROCESS);
	struct rgate_socket_addr at;
	struct rgate_sockets *set;
	int err;

	if (argc < 3 || rgate_socket_addr_parse(argv[1], &at)) {
		fprintf(stderr, "usage: http_get ADDRESS:PORT PATH [SOCKET]\n");
		return 2;
	}
	err = rgate_sockets_open(&set, &o);
	if (err) {
		fprintf(stderr, "no sockets: %s\n", rgate_strerror("rgate_sockets_open", err));
		return 1;
	}
	err = get(set, &at, argv[1], argv[2]);
	if (err)
		fprintf(stderr, "%s\n", rgate_strerror("rgate_socket_", err));
	rgate_sockets_close(set);
	return !!err;
}
