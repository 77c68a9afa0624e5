// SPDX-License-Identifier: MIT OR GPL-2.0
/* Its commands are lines, and are pipelined, as many as a batch has tasks. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "bench.h"
#include "rival.h"

#define LINE	128U

struct end {
	int fd;
	FILE *in;
};

static struct end join(const char *address)
{
	struct sockaddr_un to = { .sun_family = AF_UNIX };
	struct end e;

	snprintf(to.sun_path, sizeof(to.sun_path), "%s", address);
	e.fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (e.fd < 0 || connect(e.fd, (struct sockaddr *)&to, sizeof(to)))
		bench_die(errno, "beanstalkd at %s", address);
	e.in = fdopen(dup(e.fd), "r");
	if (!e.in)
		bench_die(errno, "beanstalkd");
	return e;
}

static void leave(struct end *e)
{
	fclose(e->in);
	close(e->fd);
}

static void tell(const struct end *e, const char *text, size_t len)
{
	if (write(e->fd, text, len) != (ssize_t)len)
		bench_die(errno, "beanstalkd");
}

/* A line, which begins as it should */
static void hear(struct end *e, char *line, const char *what)
{
	if (!fgets(line, LINE, e->in) || strncmp(line, what, strlen(what)))
		bench_die(0, "beanstalkd: not %s", what);
}

static void submit(const char *address, uint32_t tasks)
{
	static const char put[] = "put 1 0 60 0\r\n\r\n";
	struct end e = join(address);
	char all[BATCH_MOST * sizeof(put)], line[LINE];
	uint32_t i, n;
	size_t len;

	for (; tasks; tasks -= n) {
		n = tasks < batch ? tasks : batch;
		for (i = 0, len = 0; i < n; i++, len += sizeof(put) - 1)
			memcpy(all + len, put, sizeof(put) - 1);
		tell(&e, all, len);
		for (i = 0; i < n; i++)
			hear(&e, line, "INSERTED ");
	}
	leave(&e);
}

static void work(const char *address, uint32_t tasks)
{
	static const char reserve[] = "reserve\r\n";
	char all[BATCH_MOST * 32], line[LINE];
	struct end e = join(address);
	unsigned long long id;
	uint32_t i, n;
	size_t len;

	for (; tasks; tasks -= n) {
		n = tasks < batch ? tasks : batch;
		for (i = 0, len = 0; i < n; i++, len += sizeof(reserve) - 1)
			memcpy(all + len, reserve, sizeof(reserve) - 1);
		tell(&e, all, len);
		for (i = 0, len = 0; i < n; i++) {
			hear(&e, line, "RESERVED ");
			if (sscanf(line, "RESERVED %llu", &id) != 1)
				bench_die(0, "beanstalkd: %s", line);
			hear(&e, line, "\r\n");
			len += (size_t)snprintf(all + len, sizeof(all) - len, "delete %llu\r\n",
						id);
		}
		tell(&e, all, len);
		for (i = 0; i < n; i++)
			hear(&e, line, "DELETED");
	}
	leave(&e);
}

static void prepare(const char *address)
{
	struct end e = join(address);

	leave(&e);
}

const struct rival beanstalkd = { "beanstalkd", prepare, submit, work };
