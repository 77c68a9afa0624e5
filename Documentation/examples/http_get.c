// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * Asks an HTTP server for one thing, and writes what it says, head and all, to standard output.
 *
 *	http_get ADDRESS:PORT PATH [SOCKET]
 *	http_get NAME:PORT PATH [SOCKET]
 *
 * With a socket the daemon there has the connection, and looks the name up, else this process.
 */
#include <errno.h>
#include <ringgate/ringgate.h>
#include <stdio.h>
#include <string.h>

#define TIMEOUT_MS	10000
#define ROOM		1024	/* for what a name is asked by, and for its addresses */

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

/* Of HOST:PORT the addresses that the name has: how many; the memory of the set has them */
static int look_up(struct rgate_sockets *set, const char *text)
{
	char *mem = rgate_sockets_memory(set, NULL), host[256];
	const char *port = strrchr(text, ':');

	if (!port || (size_t)(port - text) >= sizeof(host))
		return -EINVAL;
	memcpy(host, text, (size_t)(port - text));
	host[port - text] = '\0';
	return rgate_sockets_resolve(set, &RGATE_OPTS(rgate_socket_query, .name = host,
		.service = port + 1, .type = RGATE_SOCKET_STREAM, .buf = mem, .len = ROOM,
		.deadline_us = TIMEOUT_MS * 1000), NULL);
}

int main(int argc, char **argv)
{
	struct rgate_sockets_opts o = RGATE_OPTS(rgate_sockets_opts,
		.path = argc > 3 ? argv[3] : NULL,
		.where = argc > 3 ? RGATE_SESSION_DAEMON : RGATE_SESSION_PROCESS);
	struct rgate_socket_addr at[ROOM / sizeof(struct rgate_socket_addr)];
	struct rgate_sockets *set;
	int err = 0, i, n = 1;

	if (argc < 3) {
		fprintf(stderr, "usage: http_get HOST:PORT PATH [SOCKET]\n");
		return 2;
	}
	err = rgate_sockets_open(&set, &o);
	if (err) {
		fprintf(stderr, "no sockets: %s\n", rgate_strerror("rgate_sockets_open", err));
		return 1;
	}
	if (rgate_socket_addr_parse(argv[1], at)) {
		n = look_up(set, argv[1]);
		if (n < 0) {
			fprintf(stderr, "%s: %s\n", argv[1],
				rgate_strerror("rgate_sockets_resolve", n));
			goto close;
		}
		memcpy(at, rgate_sockets_memory(set, NULL), (size_t)n * sizeof(*at));
	}
	for (i = 0; i < n; i++) {
		err = get(set, &at[i], argv[1], argv[2]);
		if (err != -ECONNREFUSED && err != -EHOSTUNREACH && err != -ENETUNREACH &&
		    err != -EACCES)
			break;
	}
	if (err)
		fprintf(stderr, "%s\n", rgate_strerror("rgate_socket_", err));
close:
	rgate_sockets_close(set);
	return n < 0 || err;
}
