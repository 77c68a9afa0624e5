// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * Sends back what it receives, for any number of connections, without waiting for any of them.
 *
 *	echo_server ADDRESS:PORT [SOCKET]
 *
 * With a socket the daemon there has the connections, else this process. Prints where it listens,
 * as port 0 is one of the kernel's choice.
 */
#include <errno.h>
#include <ringgate/ringgate.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#define CONNECTIONS	64
#define ROOM		16384

/* A connection, and its part of the memory: either something comes into it, or goes out of it */
struct connection {
	struct rgate_socket *socket;
	unsigned char *room;
};

static struct connection connections[CONNECTIONS];
static volatile sig_atomic_t stop;

static void on_signal(int number)
{
	(void)number;
	stop = 1;
}

static int receive(struct connection *c)
{
	return rgate_socket_begin(c->socket, &RGATE_OPTS(rgate_socket_io,
		.what = RGATE_SOCKET_DO_RECV, .buf = c->room, .len = ROOM,
		.cookie = (uint64_t)(c - connections)));
}

static int send_back(struct connection *c, uint32_t len)
{
	return rgate_socket_begin(c->socket, &RGATE_OPTS(rgate_socket_io,
		.what = RGATE_SOCKET_DO_SEND, .buf = c->room, .len = len,
		.cookie = (uint64_t)(c - connections)));
}

static int accept_next(struct rgate_socket *listener)
{
	return rgate_socket_begin(listener, &RGATE_OPTS(rgate_socket_io,
		.what = RGATE_SOCKET_DO_ACCEPT));
}

static void on_connection(struct rgate_socket *s)
{
	struct connection *c;

	for (c = connections; c < connections + CONNECTIONS; c++) {
		if (c->socket)
			continue;
		c->socket = s;
		if (!receive(c))
			return;
		c->socket = NULL;
		break;
	}
	rgate_socket_close(s);
}

static void on_data(const struct rgate_socket_end *end)
{
	struct connection *c = &connections[end->cookie];
	int err = end->result > 0 ? 0 : -1;

	if (!err && end->what == RGATE_SOCKET_DO_RECV)
		err = send_back(c, (uint32_t)end->result);
	else if (!err)
		err = receive(c);
	if (!err)
		return;
	rgate_socket_close(c->socket);
	c->socket = NULL;
}

static int serve(struct rgate_sockets *set, struct rgate_socket *listener)
{
	struct rgate_socket_end end = { .sz = sizeof(end) };
	int n, err = accept_next(listener);

	while (!err && !stop) {
		n = rgate_sockets_next(set, &end, 1000);
		if (n < 0 && !stop)
			return n;
		if (n <= 0)
			continue;
		if (end.what != RGATE_SOCKET_DO_ACCEPT) {
			on_data(&end);
			continue;
		}
		/* Who serves has ended: of this set nothing is left. */
		if (end.result == -ECONNRESET)
			return end.result;
		if (end.accepted)
			on_connection(end.accepted);
		err = accept_next(listener);
	}
	return err;
}

static int listen_at(struct rgate_sockets *set, struct rgate_socket_addr *at,
		     struct rgate_socket **listener)
{
	const int32_t one = 1;
	char text[64];
	int err;

	err = rgate_socket_open(set, listener, at->family, RGATE_SOCKET_STREAM);
	if (!err)
		err = rgate_socket_setopt(*listener, RGATE_SOCKET_REUSEADDR, &one, sizeof(one));
	if (!err)
		err = rgate_socket_bind(*listener, at);
	if (!err)
		err = rgate_socket_listen(*listener, 64);
	if (!err)
		err = rgate_socket_name(*listener, at);
	if (!err)
		printf("listens at %s\n", rgate_socket_addr_print(at, text, sizeof(text)));
	fflush(stdout);
	return err;
}

int main(int argc, char **argv)
{
	struct rgate_sockets_opts o = RGATE_OPTS(rgate_sockets_opts,
		.memory = CONNECTIONS * ROOM, .path = argc > 2 ? argv[2] : NULL,
		.where = argc > 2 ? RGATE_SESSION_DAEMON : RGATE_SESSION_PROCESS);
	struct rgate_socket_addr at;
	struct rgate_socket *listener;
	struct rgate_sockets *set;
	unsigned int i;
	int err;

	if (argc < 2 || rgate_socket_addr_parse(argv[1], &at)) {
		fprintf(stderr, "usage: echo_server ADDRESS:PORT [SOCKET]\n");
		return 2;
	}
	signal(SIGINT, on_signal);
	signal(SIGTERM, on_signal);
	err = rgate_sockets_open(&set, &o);
	if (err) {
		fprintf(stderr, "no sockets: %s\n", rgate_strerror("rgate_sockets_open", err));
		return 1;
	}
	for (i = 0; i < CONNECTIONS; i++)
		connections[i].room = (unsigned char *)rgate_sockets_memory(set, NULL) + i * ROOM;
	err = listen_at(set, &at, &listener);
	if (!err)
		err = serve(set, listener);
	if (err)
		fprintf(stderr, "%s\n", rgate_strerror("rgate_socket_", err));
	rgate_sockets_close(set);
	return !!err;
}
