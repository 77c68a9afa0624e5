/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * What an agent and the programs that it has sockets for say to each other.
 *
 * A program asks over a SOCK_SEQPACKET connection of AF_UNIX of its own for each question: one
 * struct agent_ask, the socket that it is about with SCM_RIGHTS, one struct agent_answer. Nothing
 * is kept between two questions, so that fork(2), threads, signal handlers and programs that close
 * descriptors which they do not know have nothing to break.
 *
 * Each TCP socket of a program is an AF_UNIX stream socket that the agent made. Which one it is
 * says the kernel's name of it, which dup(2), fork(2), execve(2) and SCM_RIGHTS leave alone:
 *
 *	DIR/ID			one from socket(2); also those that it accepts are called so
 *	struct agent_name	abstract: the agent's end of one that was accepted
 *	DIR/data		the agent's end of one that was connected; no file is called so
 *
 * DIR is the agent's own directory, which nobody else may search: so nobody else connects there. An
 * ID is a decimal number.
 *
 * As long as a program has its end of a connection, the other end has always one byte unread that
 * the agent knows already: so the kernel says ECONNRESET to the program if the agent closes it, or
 * dies. Who accepts sends it before anything else, a struct agent_hello. The agent has its end
 * open until then: where the hello cannot be sent it has died, and the connection is not whole.
 *
 * Each UDP socket of a program is one end of a SOCK_SEQPACKET pair, from the begin to the end,
 * called DIR/ID as well, and the other one a struct agent_name of AGENT_MAGIC_DATAGRAM. A message
 * there is one datagram behind a struct agent_head. What a program's calls have to know of it
 * without asking is its end's SO_PRIORITY, which only the agent sets: AGENT_MARK_*.
 *
 * A program into which nothing can be loaded reads and writes as ever: of its sockets, AGENT_BARE,
 * a message is the datagram alone. To the program a descriptor comes with it, which a plain read(2)
 * leaves out, of a file that has the struct agent_head. From it, a message with any descriptor has
 * a struct agent_head in front, and one without goes to whom the socket is connected to.
 */
#ifndef RGATE_AGENT_WIRE_H
#define RGATE_AGENT_WIRE_H

#include <stdint.h>

#include <ringgate/assert.h>
#include <ringgate/socket.h>

#define AGENT_VERSION	7U
#define AGENT_ENV	"RGATE_AGENT"	/* DIR, and the control in it */
#define AGENT_CONTROL	"agent"		/* ... and a number: where a member's programs ask */
#define AGENT_DATA	"data"
#define AGENT_DIR_MAX	80U			/* bytes of DIR, so that names in it fit */
#define AGENT_PATH_MAX	(AGENT_DIR_MAX + 24U)	/* of a control's */
#define AGENT_MAGIC	"rgateS1"
#define AGENT_MAGIC_DATAGRAM	"rgateD1"

enum agent_what {
	/* a: family, b: AGENT_NONBLOCK, AGENT_DATAGRAM, AGENT_BARE. The answer brings the socket */
	AGENT_SOCKET = 1,
	AGENT_BIND = 2,		/* addr */
	AGENT_LISTEN = 3,	/* a: backlog */
	/*
	 * addr; a: AGENT_NONBLOCK: -EINPROGRESS instead of waiting. An answer with a value, a
	 * uint64_t, is the ID of a listener to which the program connects the socket itself. One of
	 * datagrams is connected at once, and to nobody by an address of family 0.
	 */
	AGENT_CONNECT = 4,
	AGENT_NAME = 5,		/* the answer has addr */
	AGENT_PEER = 6,
	AGENT_SETOPT = 7,	/* a: enum rgate_socket_option; value, len */
	AGENT_GETOPT = 8,	/* the answer has value, len */
	/* Tells of a socket that there is not: a: family, b: type */
	AGENT_REFUSED = 9,
	/*
	 * a: family, or 0; b: RGATE_SOCKET_RESOLVE_*; value, len: a name. The answer's value is as
	 * many struct rgate_socket_addr as were found, and the name's proper form
	 */
	AGENT_RESOLVE = 10,
};

#define AGENT_ERROR_MAX	4095	/* of the kernel's errors */
/* Where programs that ask a name server find one, on whatever loopback: nobody else's of 127/8 */
#define AGENT_DOMAIN	{ 127, 0, 71, 53 }
#define AGENT_DOMAIN_PORT	53
#define AGENT_NONBLOCK	1U
#define AGENT_DATAGRAM	2U
#define AGENT_BARE	4U

/*
 * SO_SNDBUF of a program's end of a stream. The byte that the agent leaves unread keeps all of the
 * message that it is the last one of, 68 KiB where sendfile(2) sends: at the default of 208 KiB,
 * which is half of this, that is more than the quarter below which the kernel wakes who waits to
 * send.
 */
#define AGENT_ROOM	212992

/* SO_PRIORITY of a program's end of datagrams */
#define AGENT_MARK_CONNECTED	1
#define AGENT_MARK_INET6	2

/* All of both is sent, whatever of it is used. */
struct agent_ask {
	uint32_t version;	/* AGENT_VERSION */
	uint32_t what;		/* enum agent_what */
	uint32_t a, b;
	uint32_t len;
	uint32_t reserved;
	struct rgate_socket_addr addr;
	uint8_t value[RGATE_SOCKET_OPTION_MAX];
};

#define AGENT_ANSWER_MAX	(RGATE_SOCKET_FOUND_MAX * sizeof(struct rgate_socket_addr) + 256)

struct agent_answer {
	int32_t result;		/* 0 or -errno */
	uint32_t len;
	struct rgate_socket_addr addr;
	uint32_t found;
	uint32_t reserved;
	uint8_t value[AGENT_ANSWER_MAX];
};

/* Behind the family in a struct sockaddr_un */
struct agent_name {
	uint8_t zero;
	char magic[7];		/* AGENT_MAGIC */
	uint32_t error;		/* not 0: accept(2) fails with it, and nobody was accepted */
	uint32_t random;	/* so that nobody can guess the name */
	uint64_t agent;		/* one number for each agent */
	uint64_t id;
	struct rgate_socket_addr local, peer;
};

/*
 * In front of each datagram. From a program: where it goes, family 0: to whom the socket is
 * connected to. To a program: from whom it is; family 0: it is none, but tells of an error of the
 * socket's, which is the scope.
 */
struct agent_head {
	struct rgate_socket_addr addr;
};

#define AGENT_DATAGRAM_MAX	65527U	/* bytes of one: of UDP, over IPv6 */

struct agent_hello {
	uint8_t zero;
	char magic[7];		/* AGENT_MAGIC */
	uint64_t id;		/* of the struct agent_name */
};

RGATE_ASSERT(sizeof(struct agent_hello) == 16);
RGATE_ASSERT(sizeof(struct agent_head) == 32);
RGATE_ASSERT(sizeof(struct agent_ask) == 312);
RGATE_ASSERT(sizeof(struct agent_answer) == 2352);
RGATE_ASSERT(AGENT_ANSWER_MAX >= RGATE_SOCKET_OPTION_MAX);
RGATE_ASSERT(RGATE_SOCKET_OPTION_MAX >= RGATE_SOCKET_NAME_MAX);
RGATE_ASSERT(sizeof(struct agent_name) == 96);

#endif
