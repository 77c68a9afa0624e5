// SPDX-License-Identifier: MIT OR GPL-2.0
#include "udp.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <signal.h>
#include <unistd.h>

#include "mem.h"

static uint64_t blast(int sock, uint32_t len, uint64_t until)
{
	static unsigned char buf[UDP_BATCH][MEM_LEN_MAX];
	struct mmsghdr m[UDP_BATCH];
	struct iovec io[UDP_BATCH];
	uint64_t n = 0;
	unsigned int i;
	int r;

	memset(m, 0, sizeof(m));
	for (i = 0; i < UDP_BATCH; i++) {
		io[i].iov_base = buf[i];
		io[i].iov_len = len;
		m[i].msg_hdr.msg_iov = &io[i];
		m[i].msg_hdr.msg_iovlen = 1;
	}
	while (bench_now_ns() < until) {
		for (i = 0; i < UDP_BATCH; i++)
			mem_put(buf[i], n + i, len);
		r = sendmmsg(sock, m, UDP_BATCH, 0);
		if (r > 0)
			n += (uint64_t)r;
		else if (errno != ENOBUFS && errno != ECONNREFUSED)
			bench_die(errno, "sendmmsg");
	}
	return n;
}

static void sender_main(const struct sockaddr_in *to, uint32_t len,
			unsigned int ms, int cpu, int out)
{
	uint64_t n;
	int sock;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	bench_pin(cpu);
	sock = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (sock < 0 || connect(sock, (const struct sockaddr *)to, sizeof(*to)))
		bench_die(errno, "sender's socket");
	n = blast(sock, len, bench_now_ns() + (uint64_t)ms * 1000000);
	if (write(out, &n, sizeof(n)) != sizeof(n))
		_exit(1);
	_exit(0);
}

void udp_sender_start(struct udp_sender *s, const struct sockaddr_in *to,
		      uint32_t len, unsigned int ms, int cpu)
{
	int p[2];

	if (pipe(p))
		bench_die(errno, "pipe");
	s->pid = fork();
	if (s->pid < 0)
		bench_die(errno, "fork");
	if (!s->pid) {
		close(p[0]);
		sender_main(to, len, ms, cpu, p[1]);
	}
	close(p[1]);
	s->fd = p[0];
}

int udp_sender_ended(const struct udp_sender *s)
{
	struct pollfd p = { .fd = s->fd, .events = POLLIN };

	return poll(&p, 1, 0) != 0;
}

uint64_t udp_sender_wait(struct udp_sender *s)
{
	uint64_t n = 0;
	int status;

	if (read(s->fd, &n, sizeof(n)) != sizeof(n))
		bench_die(0, "the sender failed");
	close(s->fd);
	if (waitpid(s->pid, &status, 0) < 0 || status)
		bench_die(0, "the sender failed");
	return n;
}
