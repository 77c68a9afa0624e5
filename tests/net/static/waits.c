// SPDX-License-Identifier: MIT OR GPL-2.0
/* Calls that wait, and what ends that */
#define _GNU_SOURCE
#include "static.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static volatile sig_atomic_t ran;

static void note(int sig)
{
	(void)sig;
	ran++;
}

static void on(int sig, int flags)
{
	const struct sigaction sa = { .sa_handler = note, .sa_flags = flags };

	CHECK(!sigaction(sig, &sa, NULL));
}

static void alarm_in(long us)
{
	const struct itimerval t = { .it_value.tv_usec = us };

	CHECK(!setitimer(ITIMER_REAL, &t, NULL));
}

struct later {
	uint16_t port, own;
};

static void *call_later(void *arg)
{
	const struct later *l = arg;
	sigset_t all;

	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, NULL);
	usleep(1000000);
	called_back(l->port, l->own, 'n');
	return NULL;
}

/* A handler runs while it waits, which it goes on doing or not, as that is to be */
void case_interrupted(uint16_t port)
{
	struct later later = { .port = port };
	int l = listener(0, 4, &later.own);
	pthread_t thread;

	on(SIGALRM, 0);
	alarm_in(100000);
	FAILS(EINTR, accept(l, NULL, NULL));
	CHECK(ran == 1);
	if (!fork()) {
		call_later(&later);
		_exit(0);
	}
	on(SIGALRM, SA_RESTART);
	alarm_in(100000);
	CHECK(accept(l, NULL, NULL) >= 0);
	CHECK(ran == 2);
	/* ... also where the process has two threads */
	on(SIGALRM, 0);
	CHECK(!pthread_create(&thread, NULL, call_later, &later));
	alarm_in(100000);
	FAILS(EINTR, accept(l, NULL, NULL));
	CHECK(ran == 3);
	on(SIGALRM, SA_RESTART);
	alarm_in(100000);
	CHECK(accept(l, NULL, NULL) >= 0);
	CHECK(ran == 4);
}

/* Are all its threads? */
static bool has_stopped(pid_t pid)
{
	char path[64], text[512];
	struct dirent *e;
	bool all = true;
	FILE *f;
	DIR *d;

	(void)snprintf(path, sizeof(path), "/proc/%d/task", pid);
	d = opendir(path);
	CHECK(d);
	while ((e = readdir(d)) != NULL) {
		if (e->d_name[0] == '.')
			continue;
		(void)snprintf(path, sizeof(path), "/proc/%d/task/%.10s/stat", pid, e->d_name);
		f = fopen(path, "r");
		CHECK(f && fgets(text, sizeof(text), f));
		fclose(f);
		all = all && strstr(text, ") T ");
	}
	closedir(d);
	return all;
}

/* Nobody is accepted by who is stopped: who comes waits for another one, or until it goes on. */
static void stop_it(pid_t pid, uint16_t port, uint16_t own, int l)
{
	struct pollfd p = { .fd = l, .events = POLLIN };
	char word[2];
	int i;

	usleep(200000);
	CHECK(!kill(pid, SIGSTOP));
	for (i = 0; i < 500 && !has_stopped(pid); i++)
		usleep(10000);
	CHECK(has_stopped(pid));
	CHECK(get(called_back(port, own, 'n'), word, 2) == 2);
	CHECK(poll(&p, 1, 10000) == 1);
	usleep(200000);
	CHECK(poll(&p, 1, 0) == 1);
	CHECK(!kill(pid, SIGCONT));
}

static void *accept_one(void *arg)
{
	CHECK(accept((int)(intptr_t)arg, NULL, NULL) >= 0);
	return NULL;
}

static void *pause_all(void *arg)
{
	for (;;)
		pause();
	return arg;
}

/* @waiting: one thread more, that waits; @other: that does something else */
static void stopped_while(uint16_t port, bool waiting, bool other)
{
	const pid_t self = getpid();
	uint16_t own;
	int l = listener(0, 4, &own), status;
	pthread_t thread;
	pid_t pid = fork();

	if (!pid) {
		stop_it(self, port, own, l);
		_exit(0);
	}
	if (other)
		CHECK(!pthread_create(&thread, NULL, pause_all, NULL));
	if (waiting)
		CHECK(!pthread_create(&thread, NULL, accept_one, (void *)(intptr_t)l) &&
		      !pthread_join(thread, NULL));
	else
		accept_one((void *)(intptr_t)l);
	CHECK(waitpid(pid, &status, 0) == pid && !status);
	close(l);
}

void case_stopped(uint16_t port)
{
	stopped_while(port, false, false);
	stopped_while(port, true, false);
	stopped_while(port, false, true);
}

/* @port: where nobody answers */
void case_connecting(uint16_t port)
{
	const struct timeval some = { .tv_usec = 200000 };
	const double begin = now();
	int s = new_socket();

	on(SIGALRM, 0);
	alarm_in(100000);
	FAILS(EINTR, connect_to(s, port));
	CHECK(ran == 1);
	s = new_socket();
	CHECK(!setsockopt(s, SOL_SOCKET, SO_SNDTIMEO, &some, sizeof(some)));
	FAILS(EINPROGRESS, connect_to(s, port));
	FAILS(EALREADY, connect_to(s, port));
	CHECK(now() - begin < 5);
	/* One that does not wait says the same at once. */
	CHECK(!fcntl(s, F_SETFL, O_NONBLOCK));
	FAILS(EALREADY, connect_to(s, port));
}

void case_timeout(uint16_t port)
{
	const struct timeval some = { .tv_usec = 100000 };
	const double begin = now();
	uint16_t own;
	int l = listener(0, 4, &own);

	(void)port;
	CHECK(!setsockopt(l, SOL_SOCKET, SO_RCVTIMEO, &some, sizeof(some)));
	FAILS(EAGAIN, accept(l, NULL, NULL));
	CHECK(now() - begin > 0.09 && now() - begin < 5);
}

static void *close_later(void *arg)
{
	usleep(200000);
	close((int)(intptr_t)arg);
	return NULL;
}

/* Its number is closed while it waits, which goes on */
void case_closed(uint16_t port)
{
	struct later later = { .port = port };
	int l = listener(0, 4, &later.own);
	pthread_t closer, caller;

	CHECK(!pthread_create(&closer, NULL, close_later, (void *)(intptr_t)l));
	CHECK(!pthread_create(&caller, NULL, call_later, &later));
	CHECK(accept(l, NULL, NULL) >= 0);
}

static void *shut_later(void *arg)
{
	usleep(200000);
	(void)shutdown((int)(intptr_t)arg, SHUT_RD);
	return NULL;
}

void case_shut(uint16_t port)
{
	uint16_t own;
	int l = listener(0, 4, &own);
	pthread_t thread;

	(void)port;
	CHECK(!pthread_create(&thread, NULL, shut_later, (void *)(intptr_t)l));
	FAILS(EINVAL, accept(l, NULL, NULL));
}
