// SPDX-License-Identifier: MIT OR GPL-2.0
/* What has to be as without an agent; the port is that of the peer outside, see run_peer.py. */
#define _GNU_SOURCE
#include "static.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#define TIMES	300

static int error_of(int fd)
{
	int error = -1;
	socklen_t len = sizeof(error);

	CHECK(!getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &len) && len == sizeof(error));
	return error;
}

/* ---- Names and errors ---- */

static void names(uint16_t port)
{
	struct sockaddr_in in, to = at(port);
	socklen_t len = sizeof(in);
	int s = ask(port, "echo"), n = new_socket();

	CHECK(!getpeername(s, (struct sockaddr *)&in, &len) && len == sizeof(in));
	CHECK(!memcmp(&in, &to, sizeof(in)));
	CHECK(!getsockname(s, (struct sockaddr *)&in, &len));
	CHECK(in.sin_addr.s_addr == htonl(INADDR_LOOPBACK) && in.sin_port);
	/* As much as there is room for, and how much it is */
	memset(&in, 0xff, sizeof(in));
	len = 3;
	CHECK(!getsockname(s, (struct sockaddr *)&in, &len) && len == sizeof(in));
	CHECK(in.sin_family == AF_INET && ((unsigned char *)&in)[3] == 0xff);
	len = sizeof(in);
	FAILS(ENOTCONN, getpeername(n, (struct sockaddr *)&in, &len));
	CHECK(!getsockname(n, (struct sockaddr *)&in, &len));
	CHECK(in.sin_family == AF_INET && !in.sin_port);
}

static void errors(uint16_t port)
{
	struct sockaddr_in to = at(port);
	socklen_t len = sizeof(to);
	int s = new_socket(), other = open("/dev/null", O_RDONLY), value = 1;
	void *hole = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	FAILS(EINVAL, accept(s, NULL, NULL));
	FAILS(EADDRINUSE, bind(s, (struct sockaddr *)&to, sizeof(to)));
	FAILS(EINVAL, connect(s, (struct sockaddr *)&to, 4));
	FAILS(EINVAL, connect(s, (struct sockaddr *)&to, 4096));
	FAILS(EFAULT, connect(s, hole == MAP_FAILED ? NULL : (void *)0x10, sizeof(to)));
	FAILS(EFAULT, bind(s, (void *)-16, sizeof(to)));
	FAILS(EFAULT, getsockname(s, (struct sockaddr *)&to, (void *)0x10));
	FAILS(EBADF, listen(999, 1));
	FAILS(EBADF, connect(999, (struct sockaddr *)&to, sizeof(to)));
	FAILS(ENOTSOCK, listen(other, 1));
	FAILS(ENOTSOCK, connect(other, (struct sockaddr *)&to, sizeof(to)));
	FAILS(ENOPROTOOPT, setsockopt(s, SOL_SOCKET, 9999, &value, sizeof(value)));
	FAILS(EINVAL, setsockopt(s, SOL_SOCKET, SO_REUSEADDR, &value, 1));
	len = (socklen_t)-1;
	FAILS(EINVAL, getsockopt(s, SOL_SOCKET, SO_REUSEADDR, &value, &len));
	FAILS(EINVAL, (int)syscall(SYS_accept4, s, NULL, NULL, 1));
	FAILS(EPROTONOSUPPORT, socket(AF_INET, SOCK_RAW, IPPROTO_ICMP));
}

static void refused(uint16_t port)
{
	int s = new_socket();

	(void)port;
	FAILS(ECONNREFUSED, connect_to(s, 1));
	CHECK(!error_of(s));
}

static void refused_later(uint16_t port)
{
	int s = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
	struct pollfd p = { .fd = s, .events = POLLIN | POLLOUT };

	(void)port;
	FAILS(EINPROGRESS, connect_to(s, 1));
	CHECK(poll(&p, 1, 10000) == 1 && p.revents & POLLERR);
	CHECK(error_of(s) == ECONNREFUSED);
	CHECK(!error_of(s));
}

/* ---- Ends ---- */

/* Prints what the peer has made of them */
static void sum(uint16_t port)
{
	static unsigned char data[3000000], digest[64];
	int s = ask(port, "sum");
	size_t i, n;

	for (i = 0; i < sizeof(data); i++)
		data[i] = (unsigned char)(i * 7 + i / 251);
	put(s, data, sizeof(data));
	CHECK(!shutdown(s, SHUT_WR));
	n = get(s, digest, sizeof(digest));
	for (i = 0; i < n; i++)
		printf("%02x", digest[i]);
	printf(" ");
	signal(SIGPIPE, SIG_IGN);
	FAILS(EPIPE, (int)write(s, "x", 1));
}

static void reset_unread(uint16_t port)
{
	int s = ask(port, "reset");
	char c;

	FAILS(ECONNRESET, (int)read(s, &c, 1));
}

static void reset_read(uint16_t port)
{
	int s = ask(port, "last");
	char words[10];

	CHECK(get(s, words, 10) == 10 && !memcmp(words, "last words", 10));
	put(s, "x", 1);
	FAILS(ECONNRESET, (int)read(s, words, 1));
	CHECK(!read(s, words, 1));
}

static void reset_polled(uint16_t port)
{
	int s = ask(port, "reset");
	struct pollfd p = { .fd = s, .events = POLLIN };

	CHECK(poll(&p, 1, 10000) == 1 && p.revents & POLLERR);
	CHECK(error_of(s) == ECONNRESET);
}

static void reset_accepted(uint16_t port)
{
	uint16_t own;
	int l = listener(0, 4, &own), p = called_back(port, own, 'r'), s;
	char word[2];

	CHECK(get(p, word, 2) == 2);
	usleep(300000);
	s = accept(l, NULL, NULL);
	CHECK(s >= 0);
	FAILS(ECONNRESET, (int)read(s, word, 1));
}

static void received(uint16_t port)
{
	struct sockaddr_in from;
	socklen_t len = sizeof(from);
	int s = ask(port, "echo");
	char buf[16] = "";

	put(s, "named", 5);
	CHECK(recvfrom(s, buf, sizeof(buf), 0, (struct sockaddr *)&from, &len) == 5 && !len);
	CHECK(!memcmp(buf, "named", 5));
	CHECK(!recvfrom(s, buf, sizeof(buf), 0, (struct sockaddr *)&from, &len));
	s = ask(port, "last");
	CHECK(recvfrom(s, buf, 10, MSG_WAITALL, (struct sockaddr *)&from, &len) == 10);
	FAILS(EAGAIN, (int)recvfrom(s, buf, 1, MSG_DONTWAIT, (struct sockaddr *)&from, &len));
}

/* ---- Limits, processes, threads ---- */

static void limit(uint16_t port)
{
	struct rlimit was, none;
	uint16_t own;
	int l = listener(0, 4, &own), low = open("/dev/null", O_RDONLY);

	called_back(port, own, 'e');
	close(low);
	low = open("/dev/null", O_RDONLY);
	close(low);
	CHECK(!getrlimit(RLIMIT_NOFILE, &was));
	none = was;
	none.rlim_cur = (rlim_t)low;
	CHECK(!setrlimit(RLIMIT_NOFILE, &none));
	FAILS(EMFILE, socket(AF_INET, SOCK_STREAM, 0));
	usleep(300000);
	FAILS(EMFILE, accept(l, NULL, NULL));
	CHECK(!setrlimit(RLIMIT_NOFILE, &was));
	/* Who waited is there yet, and gets the lowest number. */
	CHECK(accept(l, NULL, NULL) == low);
	put(low, "here", 4);
}

/* Runs this program again, with a connection of this one's, by its number in place of the port */
static void execute(uint16_t port)
{
	int s = ask(port, "echo"), status;
	char number[16];
	pid_t pid;

	(void)snprintf(number, sizeof(number), "%d", s);
	pid = fork();
	if (!pid) {
		/* One name is enough. */
		dup2(open("/dev/null", O_WRONLY), 1);
		execl("/proc/self/exe", "again", "case", "executed", number, NULL);
		_exit(1);
	}
	CHECK(waitpid(pid, &status, 0) == pid && !status);
}

static void executed(uint16_t fd)
{
	struct sockaddr_in in;
	socklen_t len = sizeof(in);
	char buf[8];
	uint16_t own;

	CHECK(!getpeername(fd, (struct sockaddr *)&in, &len) && in.sin_family == AF_INET);
	put(fd, "executed", 8);
	CHECK(get(fd, buf, 8) == 8 && !memcmp(buf, "executed", 8));
	close(listener(0, 4, &own));
}

static void passed(uint16_t port)
{
	union {
		struct cmsghdr align;
		char buf[CMSG_SPACE(sizeof(int))];
	} room = { .buf = { 0 } };
	struct iovec v = { .iov_base = (char[]){ 'x' }, .iov_len = 1 };
	struct msghdr mh = { .msg_iov = &v, .msg_iovlen = 1, .msg_control = room.buf,
			     .msg_controllen = sizeof(room.buf) };
	struct sockaddr_in in;
	socklen_t len = sizeof(in);
	int s = ask(port, "echo"), pair[2], fd;
	char buf[6];

	CHECK(!socketpair(AF_UNIX, SOCK_STREAM, 0, pair));
	*CMSG_FIRSTHDR(&mh) = (struct cmsghdr){ .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS,
						.cmsg_len = CMSG_LEN(sizeof(int)) };
	memcpy(CMSG_DATA(CMSG_FIRSTHDR(&mh)), &s, sizeof(s));
	CHECK(sendmsg(pair[0], &mh, 0) == 1);
	close(s);
	CHECK(recvmsg(pair[1], &mh, 0) == 1);
	memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&mh)), sizeof(fd));
	CHECK(!getpeername(fd, (struct sockaddr *)&in, &len) && ntohs(in.sin_port) == port);
	put(fd, "passed", 6);
	CHECK(get(fd, buf, 6) == 6 && !memcmp(buf, "passed", 6));
}

static void *one_of_many(void *arg)
{
	char buf[4];
	int i, s;

	for (i = 0; i < 10; i++) {
		s = ask((uint16_t)(uintptr_t)arg, "echo");
		put(s, "many", 4);
		CHECK(get(s, buf, 4) == 4 && !memcmp(buf, "many", 4) && !read(s, buf, 1));
		close(s);
	}
	return NULL;
}

static void many(uint16_t port)
{
	pthread_t thread[40];
	int i, fd;

	for (i = 0; i < 40; i++)
		CHECK(!pthread_create(&thread[i], NULL, one_of_many, (void *)(uintptr_t)port));
	for (i = 0; i < 40; i++)
		CHECK(!pthread_join(thread[i], NULL));
	fd = new_socket();
	CHECK(fd == 3);
}

/* A port is free as soon as who had it is closed, or killed, also while he waits. */
static void reuse(uint16_t port)
{
	struct sockaddr_in in = { .sin_family = AF_INET };
	uint16_t own;
	int i, s, l = listener(0, 4, &own), status;
	pid_t pid;

	(void)port;
	for (i = 0; i < 10; i++) {
		pid = fork();
		if (!pid) {
			(void)accept(l, NULL, NULL);
			_exit(0);
		}
		close(l);
		usleep(i % 2 ? 0 : 50000);
		kill(pid, SIGKILL);
		CHECK(waitpid(pid, &status, 0) == pid);
		in.sin_port = htons(own);
		l = s = new_socket();
		CHECK(!bind(s, (struct sockaddr *)&in, sizeof(in)) && !listen(s, 4));
	}
}

/* ---- Against who answers the calls ---- */

static volatile struct sockaddr_in shared;
static volatile bool over;

static void *change(void *arg)
{
	const struct sockaddr_in a = at((uint16_t)(uintptr_t)arg), b = at(1);

	while (!over) {
		shared = a;
		shared = b;
		shared.sin_family = 99;
	}
	return NULL;
}

/* The address is another one each time that it is looked at. */
static void changed(uint16_t port)
{
	struct sockaddr_in in;
	socklen_t len = sizeof(in);
	int i, s, ret, reached = 0;
	pthread_t thread;

	CHECK(!pthread_create(&thread, NULL, change, (void *)(uintptr_t)port));
	for (i = 0; i < TIMES; i++) {
		s = new_socket();
		ret = connect(s, (struct sockaddr *)(uintptr_t)&shared, sizeof(shared));
		CHECK(!ret || errno == ECONNREFUSED || errno == EAFNOSUPPORT);
		if (!ret)
			CHECK(!getpeername(s, (struct sockaddr *)&in, &len) &&
			      ntohs(in.sin_port) == port);
		reached += !ret;
		close(s);
	}
	over = true;
	pthread_join(thread, NULL);
	CHECK(reached > 0 && reached < TIMES);
}

#ifdef __x86_64__
/* socketcall(2), which has its arguments where that finds none; many kernels have no such calls */
static bool has_no_i386(void)
{
	int a, status;
	pid_t pid = fork();

	if (!pid) {
		__asm__ volatile("int $0x80" : "=a"(a) : "a"(102), "b"(1), "c"(0) : "memory");
		_exit(a != -ENOSYS);
	}
	CHECK(waitpid(pid, &status, 0) == pid);
	return !status || (WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV);
}
#endif

static void others(uint16_t port)
{
	struct sockaddr_un un = { .sun_family = AF_UNIX };
	int l = socket(AF_UNIX, SOCK_STREAM, 0), s = socket(AF_UNIX, SOCK_STREAM, 0), a;
	socklen_t len = sizeof(un);
	char c;

	(void)port;
	/* The kernel's own are as ever. */
	CHECK(!bind(l, (struct sockaddr *)&un, sizeof(un.sun_family)) && !listen(l, 1));
	CHECK(!getsockname(l, (struct sockaddr *)&un, &len));
	CHECK(!connect(s, (struct sockaddr *)&un, len));
	a = accept(l, NULL, NULL);
	CHECK(a >= 0);
	put(a, "x", 1);
	CHECK(get(s, &c, 1) == 1);
	CHECK(socket(AF_NETLINK, SOCK_RAW, 0) >= 0);
	/* What could make sockets past the filter is not there. */
	FAILS(ENOSYS, (int)syscall(SYS_io_uring_setup, 1, NULL));
#ifdef __x86_64__
	FAILS(ENOSYS, (int)syscall(0x40000000 | SYS_socket, AF_INET, SOCK_STREAM, 0));
	CHECK(has_no_i386());
#endif
}

/* Descriptor 5 is a connection of this machine's own network. */
static void inherited(uint16_t port)
{
	int domain = 0;
	socklen_t len = sizeof(domain);

	CHECK(!getsockopt(5, SOL_SOCKET, SO_DOMAIN, &domain, &len) && domain == AF_INET);
	FAILS(ENETUNREACH, connect_to(5, port));
}

/* Nobody but root may look at it. */
static void hidden(uint16_t port)
{
	struct sockaddr_in to = at(port);
	int s = new_socket();

	CHECK(!prctl(PR_SET_DUMPABLE, 0));
	FAILS(EPERM, bind(s, (struct sockaddr *)&to, sizeof(to)));
	FAILS(EPERM, connect_to(s, port));
	CHECK(!prctl(PR_SET_DUMPABLE, 1));
	FAILS(ECONNREFUSED, connect_to(s, 1));
}

/* Waits to be killed: for a connection, an answer, or what was connected */
static void waits(uint16_t port)
{
	uint16_t own;
	int l = listener(0, 4, &own);

	if (!fork())
		(void)connect_to(new_socket(), port);
	printf("waits %d\n", getpid());
	fflush(stdout);
	(void)accept(l, NULL, NULL);
}

static const struct {
	const char *name;
	void (*run)(uint16_t port);
} cases[] = {
#define CASE(name)	{ #name, name }
#define WAITS(name)	{ #name, case_##name }
	CASE(names), CASE(errors), CASE(refused), CASE(refused_later), CASE(sum),
	CASE(reset_unread), CASE(reset_read), CASE(reset_polled), CASE(reset_accepted),
	CASE(received), WAITS(interrupted), WAITS(stopped), WAITS(connecting), WAITS(timeout),
	WAITS(closed), WAITS(shut), CASE(limit), CASE(execute), CASE(executed), CASE(passed),
	CASE(many), CASE(reuse), CASE(changed), CASE(others), CASE(inherited), CASE(hidden),
	CASE(waits),
};

int run_case(const char *name, uint16_t port)
{
	size_t i;

	if (udp_case(name, port)) {
		puts(name);
		return 0;
	}
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		if (strcmp(name, cases[i].name))
			continue;
		cases[i].run(port);
		puts(name);
		return 0;
	}
	return 2;
}
