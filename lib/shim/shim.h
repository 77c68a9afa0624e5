/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * What `ringgate run` has between programs and its agent, see ../agent/agent_wire.h: calls about
 * TCP and UDP sockets ask the agent. Calls that poll, duplicate or pass on are the kernel's, and
 * for TCP those that move bytes.
 *
 * Into programs that are linked dynamically it is loaded, with all of these. For others the command
 * answers their calls itself (tools/ringgate/super.h), with descriptors that it has of them, and by
 * the first five.
 *
 *	shim_addr.c	addresses of either kind
 *	shim_agent.c	the agent, and whose a descriptor is
 *	shim_mark.c	datagrams' sockets: what they are, and where to
 *	shim_options.c	options
 *	shim_socket.c	sockets made, named and connected
 *
 *	shim.c		what is behind this library
 *	shim_calls.c	the program's calls for these
 *	shim_data.c	calls that move bytes, where they name an address, or are about datagrams
 *	shim_datagram.c	datagrams, with what is in front of each of them
 *	shim_names.c	names that are looked up
 *	shim_syscall.c	the same calls by syscall(2)
 *
 * No call here but those for names takes a lock, allocates, or keeps anything, but that there may
 * be datagrams: each may be made by any thread, in a signal handler, and after fork(2). What is
 * behind this library is looked up once, when it is loaded: dlsym(3) waits while another thread is
 * in dlopen(3), which may wait for this one.
 */
#ifndef RGATE_SHIM_H
#define RGATE_SHIM_H

#include <stdbool.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "agent_wire.h"

#define SHIM_EXPORT __attribute__((visibility("default")))

/* What is called behind this library */
enum shim_call {
	SHIM_CALL_socket,
	SHIM_CALL_bind,
	SHIM_CALL_getsockname,
	SHIM_CALL_getpeername,
	SHIM_CALL_connect,
	SHIM_CALL_listen,
	SHIM_CALL_accept,
	SHIM_CALL_accept4,
	SHIM_CALL_getaddrinfo,
	SHIM_CALL_gethostbyname,
	SHIM_CALL_gethostbyname2,
	SHIM_CALL_gethostbyname2_r,
	SHIM_CALL_setsockopt,
	SHIM_CALL_getsockopt,
	SHIM_CALL_send,
	SHIM_CALL_sendto,
	SHIM_CALL_sendmsg,
	SHIM_CALL_recvfrom,
	SHIM_CALL___recvfrom_chk,
	SHIM_CALL_recvmsg,
	SHIM_CALL_recvmmsg,
	SHIM_CALL_sendmmsg,
	SHIM_CALL_read,
	SHIM_CALL___read_chk,
	SHIM_CALL_readv,
	SHIM_CALL_write,
	SHIM_CALL_writev,
	SHIM_CALL_recv,
	SHIM_CALL___recv_chk,
	SHIM_CALL_shutdown,
	SHIM_CALL_ioctl,
	SHIM_CALL_syscall,
	SHIM_CALLS_N
};

/* The function of that name: which there is, or the program had not started */
void *shim_next(enum shim_call call);
#define NEXT(fn)	((__typeof__(fn) *)shim_next(SHIM_CALL_##fn))

/* ---- shim_agent.c ---- */

/* First; @agent: where to ask it, NULL: the environment names it, or there is none */
void shim_begin(const char *agent);

/* False: no agent is named, all is as without this library */
bool shim_active(void);

/* The name of a socket of the agent's, as it makes them */
void shim_path(uint64_t id, struct sockaddr_un *un);

/* Nobody is asked there any more, and the agent said so by removing that name. errno stays */
bool shim_gone(void);

enum shim_kind {
	SHIM_NONE,	/* none of the agent's */
	SHIM_SOCKET,	/* from socket(2) */
	SHIM_ACCEPTED,	/* and so it has a struct agent_name */
	SHIM_LOCAL,	/* connected to, or accepted from, a program of the same agent */
	SHIM_DATAGRAM,
};

enum shim_kind shim_kind(int fd, struct agent_name *name);

/*
 * shim_ask - the agent's answer about @fd, or about none (-1)
 * @made: -1, out: a descriptor that came, close-on-exec if @cloexec; may be NULL
 * Its result, or -errno: -ENETDOWN: it is gone. errno stays.
 */
int shim_ask(const struct agent_ask *ask, int fd, struct agent_answer *answer, int *made,
	     bool cloexec);

/* ---- shim_addr.c ---- */

/* 0; -EINVAL, -EAFNOSUPPORT */
int shim_addr_get(const struct sockaddr *sa, socklen_t len, struct rgate_socket_addr *to);
/* As much as *@len has room for; *@len becomes its own length */
void shim_addr_put(const struct rgate_socket_addr *a, struct sockaddr *sa, socklen_t *len);

/* ---- shim_options.c ---- */

/* Those of which the program's own socket knows best: how long calls wait, what it is */
bool shim_option_is_kernels(int level, int name);
/* As setsockopt(2), getsockopt(2), but for the result: 0 or -errno. Of streams' sockets */
int shim_option_set(int fd, int level, int name, const void *value, socklen_t len);
int shim_option_get(int fd, int level, int name, void *value, socklen_t *len);
/* As much as *@len has room for */
void shim_option_put(const void *from, socklen_t n, void *value, socklen_t *len);

/* ---- shim_socket.c ---- */

/* SOCK_STREAM, SOCK_DGRAM; -EPROTONOSUPPORT: there is no such socket, shim_refuse() */
int shim_type(int type, int protocol);
/* Tells of one that there is not. -EPROTONOSUPPORT */
int shim_refuse(int family, int type);
/* @type: with SOCK_NONBLOCK or without; @bare: as AGENT_BARE has it; a descriptor, or -errno */
int shim_make(int family, int type, bool bare, bool cloexec);
int shim_bind(int fd, const struct sockaddr *sa, socklen_t len);
/* @kind, @name: shim_kind()'s */
int shim_name(int fd, enum shim_kind kind, const struct agent_name *name,
	      struct rgate_socket_addr *addr);
int shim_peer(int fd, enum shim_kind kind, const struct agent_name *name,
	      struct rgate_socket_addr *addr);
int shim_listen(int fd, int backlog);
/*
 * shim_connect - of a stream; without @wait -EINPROGRESS, and later -EALREADY, or what came of it
 * @id: out, if it is not 0 the agent's listener to which it is to be connected: shim_connect_near()
 */
int shim_connect(int fd, const struct sockaddr *sa, socklen_t len, bool wait, uint64_t *id);
/* Waits as the socket does; -EAGAIN: for that there is no room yet; -errno */
int shim_connect_near(int fd, uint64_t id);
/* The error that the kernel has of a connect is told by that */
void shim_connect_told(int fd);
/*
 * shim_accepted - to be called of each that accept(2) brought, before all else; -errno: it is none,
 * and to be closed. @listener: who accepted it; @peer: out, who it is, family 0: nobody knows; may
 * be NULL
 */
int shim_accepted(int fd, int listener, struct rgate_socket_addr *peer);
/* Nobody is there, and nobody comes any more */
bool shim_accepts_nobody(int fd);

/* One of TCP that is neither connected, nor connects, nor listens */
bool shim_is_idle(int fd);

/* ---- shim_mark.c ---- */

/* Of a socket of datagrams, for the others: AGENT_MARK_* */
int shim_mark(int fd);
bool shim_mark_connected(int mark);
/* What says what kind of socket it is. False: an option that does not */
bool shim_mark_kind(int level, int name, int *number);
/* Bytes that one has at most */
size_t shim_mark_most(int mark);
/* The agent's end is closed */
bool shim_mark_over(int fd);
/* Where one is to go, as the socket's family has it; as shim_addr_get() */
int shim_mark_to(int mark, const struct sockaddr *sa, socklen_t len, struct rgate_socket_addr *to);
/* To nobody by AF_UNSPEC. It waits for nobody */
int shim_mark_connect(int fd, const struct sockaddr *sa, socklen_t len);

/* ---- shim_datagram.c ---- */

/* There may be one from now on */
void shim_datagram_note(void);
/* Looks what the program has inherited */
void shim_datagram_begin(void);
bool shim_datagram_is(int fd);
/* As sendmsg(2) and recvmsg(2), but for the result: -errno */
ssize_t shim_datagram_send(int fd, const struct msghdr *mh, int flags);
ssize_t shim_datagram_recv(int fd, struct msghdr *mh, int flags);
/* Its SO_ERROR, which is told once */
int shim_datagram_error(int fd);
/* Bytes of the next one */
int shim_datagram_there(int fd);

/* -1 and errno of a negative one; else @result */
int shim_return(int result);

#endif
