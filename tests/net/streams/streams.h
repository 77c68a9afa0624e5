/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * What faults.sh and soak.sh have run, linked dynamically and statically, without an idea of an
 * agent: streams whose every byte is looked at, and calls that wait, with what ended each of them.
 */
#ifndef STREAMS_H
#define STREAMS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Ends the program, and says where, if it is not so */
#define CHECK(true_)	do { if (!(true_)) wrong(__FILE__, __LINE__, #true_); } while (0)

void __attribute__((noreturn)) wrong(const char *file, int line, const char *what);

/* The byte of a stream at @at; streams of other numbers have others */
uint8_t byte_at(uint32_t stream, uint64_t at);
/* Of a connection to 127.0.0.1; -errno */
int connect_to(uint16_t port, int flags);
/* At any port of all addresses, which it says */
int listen_at(int backlog, uint16_t *port);
/* One line, at once */
void say(const char *format, ...) __attribute__((format(printf, 1, 2)));
const char *error_name(int error);

/* ---- serve.c: the other end; each stream begins with a letter that says what is done ---- */

enum serve_how {
	SERVE_ECHO = 'e',
	SERVE_RESET = 'r',	/* in some time */
	SERVE_POUR = 'p',	/* some bytes, and a reset in some time */
	SERVE_DEAF = 'd',	/* reads nothing, and a reset in some time */
	SERVE_ENDED = 'f',	/* ends its stream at once, and a reset in some time */
	SERVE_SILENT = 's',	/* reads, and says nothing */
	SERVE_STUCK = 'x',	/* reads nothing, and says nothing, for ever */
};

/* Until SIGTERM. Says how many have ended, and how, when there are none for now */
int serve(void);

/* ---- ask.c ---- */

/* @n streams of @len bytes at once that are echoed; 0: without an end */
int ask(uint16_t port, uint32_t n, uint64_t len, uint32_t first);

/* ---- states.c ---- */

/* A peer's reset in each state of a stream */
int states(uint16_t port);
/*
 * Calls of each kind that wait, until each ended; @full: nobody accepts there; @more: 1: one of
 * accept(2), too; 2: and one of a datagram's receive
 */
int waits(uint16_t port, uint16_t full, unsigned int more);

/* ---- made.c ---- */

/*
 * Sockets of each kind that are made now, and are bound, listen and are connected when SIGUSR1
 * comes. It has to be blocked. @datagrams: those of UDP, too; there is one at the peer's
 * port who echoes
 */
int made(uint16_t port, bool datagrams);

#endif
