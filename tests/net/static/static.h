/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/* What run_static.sh has run: linked statically, and without an idea of an agent. */
#ifndef STATIC_H
#define STATIC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Ends the program, and says where, if it is not so */
#define CHECK(true_)	do { if (!(true_)) wrong(__FILE__, __LINE__, #true_); } while (0)
/* ... if the call does not fail with that error */
#define FAILS(error, call) do {						\
		errno = 0;						\
		CHECK((call) < 0);					\
		is_error(__FILE__, __LINE__, error);			\
	} while (0)

void wrong(const char *file, int line, const char *what);
void is_error(const char *file, int line, int error);

/* 127.0.0.1 */
struct sockaddr_in at(uint16_t port);
int new_socket(void);
int connect_to(int fd, uint16_t port);
/* Of SOCK_*, at any port of all addresses; its port */
int listener(int flags, int backlog, uint16_t *port);
uint16_t port_of(int fd);
/* To the peer that run_program.py is, who does what that word says */
int ask(uint16_t port, const char *word);
/* All of it */
void put(int fd, const void *buf, size_t len);
/* Until there is no more, or @len; how much */
size_t get(int fd, void *buf, size_t len);
/* Whoever connects to the listener at @to, by that peer; how: see run_peer.py */
int called_back(uint16_t port, uint16_t to, char how);

/* ---- ways.c: servers and clients ---- */

int fetch(uint16_t port, const char *path);
int serve_threads(void);
int serve_forks(void);
/* By the calls, and in the order, that Go's net has */
int serve_events(void);
int fetch_events(uint16_t port, const char *path);
/* Both ends, on a loopback of its own */
int both(void);

/* ---- waits.c; @port: the peer's, of connecting where nobody answers ---- */

void case_interrupted(uint16_t port);
void case_stopped(uint16_t port);
void case_connecting(uint16_t port);
void case_timeout(uint16_t port);
void case_closed(uint16_t port);
void case_shut(uint16_t port);

/* ---- udp.c ---- */

int udp_echo(void);
int udp_echoed(uint16_t port, int count, size_t len);
int udp_resolve(uint16_t port);
int udp_within(void);
/* False: there is none of that name */
bool udp_case(const char *name, uint16_t port);

/* ---- names.c ---- */

int look_up(const char *name);

/* ---- cases.c ---- */

int run_case(const char *name, uint16_t port);

#endif
