// SPDX-License-Identifier: MIT OR GPL-2.0
/* etcd's own lock, by the JSON form of its API over one connection. An address is a port. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "bench.h"
#include "rival.h"

#define NAME64	"YmVuY2g="	/* "bench" in base64, as all bytes are there */

struct one {
	int sock;
	char lease[32], key[256];
	char answer[4096];
};

static size_t body_length(const char *head)
{
	const char *at = strcasestr(head, "content-length:");

	if (strncmp(head, "HTTP/1.1 200", 12) || !at)
		bench_die(0, "etcd: %.200s", head);
	return (size_t)strtoul(at + 15, NULL, 10);
}

static void ask(struct one *o, const char *path, const char *body)
{
	char request[1024], *end = NULL;
	size_t got = 0, whole = 0;
	ssize_t n;
	int len;

	len = snprintf(request, sizeof(request), "POST %s HTTP/1.1\r\nHost: e\r\n"
		       "Content-Type: application/json\r\nContent-Length: %zu\r\n\r\n%s", path,
		       strlen(body), body);
	if (send(o->sock, request, (size_t)len, MSG_NOSIGNAL) != len)
		bench_die(errno, "etcd");
	while (!end || got < whole) {
		n = recv(o->sock, o->answer + got, sizeof(o->answer) - 1 - got, 0);
		if (n <= 0)
			bench_die(n ? errno : EPIPE, "etcd");
		got += (size_t)n;
		o->answer[got] = '\0';
		end = end ? end : strstr(o->answer, "\r\n\r\n");
		if (end && !whole)
			whole = (size_t)(end + 4 - o->answer) + body_length(o->answer);
	}
}

/* The string called @name in the last answer */
static void string_of(const struct one *o, const char *name, char *buf, size_t cap)
{
	const char *at = strstr(o->answer, name);
	size_t len;

	at = at ? at + strlen(name) : "";
	len = strcspn(at, "\"");
	if (!len || len >= cap)
		bench_die(0, "etcd: no %s in %s", name, o->answer);
	memcpy(buf, at, len);
	buf[len] = '\0';
}

static void prepare(const char *address)
{
	(void)address;
}

static void *join(const char *address, unsigned int i, unsigned int members)
{
	const struct sockaddr_in at = {
		.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
		.sin_port = htons((uint16_t)atoi(address)),
	};
	struct one *o = calloc(1, sizeof(*o));
	const int on = 1;

	(void)i;
	(void)members;
	if (!o)
		bench_die(ENOMEM, "a lock");
	o->sock = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (o->sock < 0 || connect(o->sock, (const void *)&at, sizeof(at)) ||
	    setsockopt(o->sock, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)))
		bench_die(errno, "etcd at port %s", address);
	ask(o, "/v3/lease/grant", "{\"TTL\":60}");
	string_of(o, "\"ID\":\"", o->lease, sizeof(o->lease));
	return o;
}

static void acquire(void *h)
{
	struct one *o = h;
	char body[128];

	snprintf(body, sizeof(body), "{\"name\":\"" NAME64 "\",\"lease\":\"%s\"}", o->lease);
	ask(o, "/v3/lock/lock", body);
	string_of(o, "\"key\":\"", o->key, sizeof(o->key));
}

static void release(void *h)
{
	struct one *o = h;
	char body[512];

	snprintf(body, sizeof(body), "{\"key\":\"%s\"}", o->key);
	ask(o, "/v3/lock/unlock", body);
}

static void leave(void *h)
{
	struct one *o = h;

	close(o->sock);
	free(o);
}

const struct rival etcd_lock = { "etcd", prepare, join, acquire, release, NULL, leave };
