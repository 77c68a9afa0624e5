/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 *	agent.c		its life and its loop
 *	agent_ask.c	what programs ask
 *	agent_closer.c	what may take its time to be closed
 *	agent_control.c	the connections on which they do
 *	agent_conn.c	their sockets: made, found, forgotten
 *	agent_datagram.c	those of UDP, and their datagrams, either way
 *	agent_domain.c	a name server for programs that ask one
 *	agent_tag.c		from whom these are, where that is not in front of them
 *	agent_address.c	where these come from, and whose they are on the agent's own loopback
 *	agent_flow.c	bytes of a connection, either way
 *	agent_left.c	what one leaves that is killed
 *	agent_lane.c	sessions of the service, and the memory that bytes go through
 *	agent_meet.c	connecting and accepting
 *	agent_member.c	whose programs there are
 *	agent_name.c	what sockets are called
 *	agent_names.c	names that are looked up
 *	agent_renew.c	sockets whose gateway was another one
 */
#ifndef RGATE_AGENT_PRIV_H
#define RGATE_AGENT_PRIV_H

#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/un.h>

#include <ringgate/rgate_socket.h>

#include "agent.h"
#include "agent_wire.h"
#include "events.h"
#include "index.h"

#define CHUNK		(64U << 10)	/* of a datagram at most, or of a stream at a gateway */
#define STREAM_CHUNK	(192U << 10)	/* of a buffer: bytes of a stream that a request moves */
#define SMALL_LEAST	8U		/* sends of CHUNK, before more is tried */
#define SMALL_MOST	4096U
#define RETRY_NS	10000000ULL	/* between attempts of what could not be done */
#define AGENT_LAST_NEWS	16U		/* who may wait in accept(2) at once */
#define CONN_UP		1U		/* in a cookie: of bytes from the program */

/* What an epoll event is about: each begins with one. */
enum source_kind { SOURCE_CONTROL, SOURCE_ASK, SOURCE_LANE, SOURCE_CONN };

struct source {
	enum source_kind kind;
};

/* One session of the service, with the sockets of some connections */
struct lane {
	struct source source;
	struct agent *agent;
	struct link link;
	struct rgate_sockets *set;
	unsigned char *mem;
	uint32_t buffers, free_mask;	/* of STREAM_CHUNK bytes; bit N: the Nth is free */
	uint32_t conns, conns_max;
	uint32_t conns_new;		/* of these programs make so many */
	struct link wants;		/* connections that wait for a buffer, or a place */
	bool turn;			/* it is the turn of one of these */
};

enum conn_state {
	CONN_NEW,		/* from socket(2), or bound */
	CONN_LISTENS,
	CONN_CONNECTING,
	CONN_STREAM,
	CONN_FAILED,		/* to connect */
	CONN_LOCAL,		/* its program connects, or did, to another one of this agent */
	CONN_BROKEN,		/* a listener whose socket at the service is gone */
	CONN_RESET,		/* broke before its program took it: its end waits for the hello */
	CONN_GONE,		/* the program's end is closed; known by name for a while */
	CONN_DATAGRAM,		/* of UDP, from its begin to its end */
};

struct conn {
	struct source source;
	struct agent *agent;
	struct agent_member *member;	/* whose program made it, or whose listener accepted it */
	struct link link;		/* all, or dead */
	struct index_node by_id;
	struct link want;		/* lane.wants */
	struct link retry;		/* agent.retry */
	struct link listens;		/* agent.listeners, while it listens */
	uint64_t id;
	enum conn_state state;
	uint16_t family;
	bool named;			/* it has a file in the agent's directory */
	bool bound, loop;		/* bound; to the agent's own loopback */
	bool chosen;			/* its program said where */
	/* Of datagrams: connected to peer; which is at the agent's own loopback */
	bool joined, near;
	bool inner;			/* its port is the agent's alone */
	bool bare;			/* its datagrams have no head in front, see agent_wire.h */
	struct rgate_socket_linger linger; /* as the program has it */
	bool armed;			/* at the service, a close is a reset */
	bool told;			/* its program knows that it is connected */
	int error;			/* SO_ERROR */
	int backlog;
	int broken;			/* what who accepts is told, while it is CONN_BROKEN */
	int end;			/* the agent's end, or -1 */
	int prog;			/* the program's own, while it connects, or -1 */
	int room;			/* its SO_SNDBUF */
	uint32_t filled;		/* bytes that keep it from being writable yet */
	struct lane *lane;
	struct rgate_socket *socket;
	struct rgate_socket_addr local, peer;
	struct link waiters;		/* questions that wait for the connect */
	struct conn *parked;		/* accepted, for whom the program's backlog has no room */
	uint64_t gone_ns;		/* since when it is */
	struct conn_option *options;	/* that it gets anew with a socket, agent_renew.c's */
	uint64_t lost_ns, tried_ns;	/* since when it has none; last tried; 0: it has one */

	/* Bytes: from the program, ... */
	bool held;			/* one byte at the end is unread, and known */
	bool readable, rdhup, hup;	/* of the end; edges */
	bool up_busy, up_over;		/* a request is under way; the service knows the end */
	bool up_full;			/* the service takes no more now */
	bool up_broke;			/* ... or ever: what the program sends goes nowhere */
	unsigned char *up_buf, *up_left;
	uint32_t up_len, up_left_len, up_off;
	struct rgate_socket_addr up_to;	/* of a datagram; family 0: the peer */
	/* ... and to it */
	bool accepting;
	bool down_watch;		/* it is over, and something was sent behind that */
	bool down_busy, down_over, down_maybe, down_full, down_drop;
	unsigned char *down_buf, *down_left;
	uint32_t down_left_len, down_off;
};

/* A question */
struct asker {
	struct source source;
	struct agent *agent;
	struct agent_member *member;	/* NULL: it waits, and its member may have left */
	struct link link;		/* agent.askers, oldest first; conn.waiters; of names */
	int fd;
	bool waits;			/* for a connect, or a name */
	struct query *query;		/* NULL: for no name */
	struct domain *domain;		/* NULL: it is no datagram's, and has a descriptor */
	struct agent_ask *later;	/* a name that waits for a place; NULL: none */
	uint64_t since;
};

#define TAGS	32U

/* An address as a file, which goes with datagrams */
struct tag {
	struct rgate_socket_addr addr;
	int fd;
	bool made;
};

/* Those programs that ask at one place */
struct agent_member {
	struct source source;		/* of the control */
	struct agent *agent;
	struct link link;
	int fd;
	char path[AGENT_PATH_MAX];
	struct agent_info info;		/* what is counted */
	bool said_refused, said_denied;
};

struct agent {
	char dir[AGENT_DIR_MAX];
	uint64_t number;
	uint64_t last_id, last_member;
	struct rgate_sockets_opts sets;
	uint32_t piece;			/* bytes that a send of a stream has at most; of CHUNK, */
	uint32_t small, small_most;	/* after so many full ones more are tried; the next time */
	bool here;			/* sockets are no gateway's, but the daemon's own */
	uint32_t loopback, conns_max;
	struct events ev;
	int probe_fd;
	int data_fd, data_at;		/* who listens there; its name, which is nobody else's */
	struct closer *closer;
	struct names *names;		/* NULL: nobody has asked for one */
	struct link later;		/* askers that wait for a place there, */
	uint32_t nlater;		/* so many */
	bool control_off;		/* no more questions for now */
	bool failed;
	uint64_t control_off_ns;	/* since when it is, or is not */
	uint64_t reaped_ns, retried_ns;
	uint32_t nconns, naskers, nwaiters;
	uint16_t last_port;
	struct link members, lanes, all, dead, askers, retry, listeners;
	struct index by_id;
	struct tag tags[TAGS];		/* the last ones */
	uint32_t next_tag;
	struct agent_info info;		/* of members that have left, and what is nobody's */
	void (*warn)(void *ctx, const struct agent_member *m, const char *line);
	void *warn_ctx;
	bool (*enough)(void *ctx, uint64_t ns);	/* agent_opts has both */
	void *enough_ctx;
	unsigned char spare[CHUNK];	/* of a datagram that may go nowhere but within */
};

/* ---- agent_name.c ---- */

void agent_path(const struct agent *a, uint64_t id, struct sockaddr_un *un);
/* Where a program's end is connected */
void agent_data_path(const struct agent *a, struct sockaddr_un *un);
/* The id that a path of the agent's has; 0: it is none of those */
uint64_t agent_path_id(const struct agent *a, const struct sockaddr_un *un, socklen_t len);
/* NULL: it is no such name of this agent's */
const struct agent_name *agent_name_of(const struct agent *a, const struct sockaddr_un *un,
				       socklen_t len, struct agent_name *room);
socklen_t agent_name_put(struct sockaddr_un *un, const struct agent_name *name);
/* Gives @fd that name, but for its random part, which it makes; -EIO: it cannot */
int agent_name_bind(int fd, struct agent_name *name);
bool agent_is_loop(const struct rgate_socket_addr *addr);
bool agent_is_any(const struct rgate_socket_addr *addr);
bool agent_is_v4(const struct rgate_socket_addr *addr);
/* 127.0.0.1 and ::ffff:127.0.0.1 are one, 127.0.0.1 and ::1 are not. */
bool agent_same_host(const struct rgate_socket_addr *x, const struct rgate_socket_addr *y);
/* Makes it 127.0.0.1, or ::1 */
void agent_set_loop(struct rgate_socket_addr *addr);
/* As a socket of that family has it */
void agent_set_family(struct rgate_socket_addr *addr, uint16_t family);

/* ---- agent_closer.c ---- */

int closer_open(struct agent *a);
/* Waits for all that is left, but a second at most. There may be none */
void closer_close(struct agent *a);
/* Of anything that a program may have passed, or sent something to: closed after closer_tend() */
void closer_put(struct agent *a, int fd);
/*
 * Likewise, and @asker gets that answer behind it, and is closed: as long as the agent has a
 * program's descriptor open epoll tells the program of it, even if that has closed its own. -ENOMEM
 */
int closer_put_answer(struct agent *a, int fd, int asker, const struct agent_answer *answer);
/* An end of the agent's: closed at once if not more than @known bytes are there, and bytes alone */
void closer_put_end(struct agent *a, int fd, uint32_t known);
/* Enough waits to be closed: nothing more is to be taken from programs */
bool closer_full(struct agent *a);
/* To be called after each step, for all that was put; true: something waits for others */
bool closer_tend(struct agent *a, uint64_t now);
/*
 * What programs had left before is closed after this: their own descriptors may be the last. It
 * waits for some milliseconds, and not if that was in vain a moment ago
 */
void closer_settle(struct agent *a);
/*
 * closer_recv - recvmsg(2) that does not wait, and has nothing closed by the kernel
 * @one: out, the one descriptor that came, or -1; NULL: there may be none
 * Bytes; -EPROTO: others came; -errno
 */
ssize_t closer_recv(struct agent *a, int fd, struct iovec *v, size_t nv, int *one);

/* ---- agent_conn.c ---- */

/* NULL: no memory. It has no socket of the service yet */
struct conn *conn_make(struct agent_member *m, enum conn_state state, uint16_t family);
struct conn *conn_find(struct agent *a, uint64_t id);
/* Its socket of the service; as rgate_socket_open() */
int conn_open_socket(struct conn *c);
/*
 * Until the program has ended it, a stream's end is a reset, whoever makes an end of it: the agent,
 * or the kernel when the agent or a daemon dies. Also of those that it accepts.
 */
void conn_arm(struct conn *c);
/* @reset: the peer sees a reset. What is under way is nobody's any more */
void conn_close_socket(struct conn *c, bool reset);
void conn_close_end(struct conn *c);
/* Is the program's end closed? One that it has only shut down is not. */
bool conn_is_closed(const struct conn *c);
void conn_close_prog(struct conn *c);
/* Forgets it, and closes what it has */
void conn_free(struct conn *c);
/* Its program's end is closed: it is known for a while yet if names may be asked */
void conn_gone(struct conn *c);
/*
 * Looks which programs' ends are closed. Not that of @but, which a question is about: it is open,
 * though its name may be gone; NULL: there is none
 */
void conns_reap(struct agent *a, const struct conn *but);
void conn_answer_waiters(struct conn *c, int result);
/* A port of the agent's loopback that nobody has; 0: there is none */
uint16_t conn_free_port(struct agent *a);
/* Likewise, for a conn.inner: of those that a kernel, as it is mostly set up, chooses for nobody */
uint16_t conn_inner_port(struct agent *a);
bool conn_has_inner(const struct agent *a, uint16_t port);
/* Those that listen at @port and that their program has closed, which the agent is not told */
void conns_reap_at(struct agent *a, uint16_t port);
/* ... and those of datagrams there, of which something may be on its way yet */
void conns_finish_at(struct agent *a, uint16_t port);
/*
 * Who is there on the agent's loopback: CONN_LISTENS: listens, CONN_NEW: listens, or may;
 * CONN_DATAGRAM: has it for datagrams; NULL
 */
struct conn *conn_at(struct agent *a, const struct rgate_socket_addr *addr, enum conn_state as);
void conn_retry(struct conn *c);

/* ---- agent_meet.c ---- */

int meet_listen(struct conn *c, int prog, int backlog);
/* Is it at the agent's own loopback? */
bool meet_is_local(const struct conn *c, const struct rgate_socket_addr *to);
/* Both programs are this agent's: @id is who listens there, to whom the program connects itself */
int meet_local(struct conn *c, const struct rgate_socket_addr *to, uint64_t *id);
/* -EINPROGRESS: @c is CONN_CONNECTING, and @prog is taken; -errno */
int meet_connect(struct conn *c, int prog, const struct rgate_socket_addr *to);
void meet_connected(struct conn *c, int result);
void meet_accepted(struct conn *c, const struct rgate_socket_end *end);
void meet_accept_more(struct conn *c);
/* Another attempt of what could not be done before */
void meet_retry(struct conn *c);
/* The listener is none any more: whoever accepts there is told, each time */
void meet_break(struct conn *c, int error);
/* The agent ends, and can tell nobody later: as many are told now as there may be who wait */
void meet_break_last(struct conn *c);
/* What one was told he has taken */
void meet_told(struct conn *c);

/* ---- agent_flow.c ---- */

int flow_start(struct conn *c);
void flow_pump(struct conn *c);
void flow_event(struct conn *c, uint32_t events);
void flow_end(struct conn *c, const struct rgate_socket_end *end);
/* The connection is broken: its program gets ECONNRESET */
void flow_reset(struct conn *c);

/* ---- agent_tag.c ---- */

/* A file of the agent's with a struct agent_head of @addr, which nobody can change; -errno */
int tag_of(struct agent *a, const struct rgate_socket_addr *addr);
void tags_close(struct agent *a);

/* ---- agent_datagram.c ---- */

/* Both ends, of which it returns the program's; -errno */
int datagram_make(struct conn *c, bool nonblock);
void datagram_pump(struct conn *c);
void datagram_event(struct conn *c, uint32_t events);
void datagram_end(struct conn *c, const struct rgate_socket_end *end);
/* Is it closed? Then it takes no port, and goes when all it has sent is under way */
void datagram_reap(struct conn *c);
/* Likewise, and what it has sent goes before this returns, unless who serves takes no more now */
void datagram_finish(struct conn *c);
/* What it has sent goes to where it is connected now, before it is connected to another one */
void datagram_flush(struct conn *c);
/* Something of what it has sent is not known to have gone; is on its way outside */
bool datagram_pending(const struct conn *c);
bool datagram_goes(const struct conn *c);
/* Where the next one is to go that nobody has seen yet; false: there is none */
bool datagram_next(const struct conn *c, struct rgate_socket_addr *to);
/* To the program; what it does not take is lost */
void datagram_give(struct conn *c, const struct rgate_socket_addr *from, const void *buf,
		   uint32_t len);
/* An error of a socket that is connected; else nobody's */
void datagram_tell(struct conn *c, int error);

/* It gets no socket any more: it is told @error, and is gone */
void datagram_break(struct conn *c, int error);

/* ---- agent_address.c ---- */

/* @fd: the program's end */
int address_connect(struct conn *c, int fd, const struct rgate_socket_addr *to);
void address_mark(const struct conn *c, int fd);
int address_name(struct conn *c, struct rgate_socket_addr *addr);
/* To a program of the same agent; to nobody if none is there */
void address_pass(struct conn *c, const struct rgate_socket_addr *to, const void *buf,
		  uint32_t len);

/* ---- agent_renew.c ---- */

/* Is it one that gets another socket? */
bool renew_may(const struct conn *c);
/* Its gateway was another one. -errno: it has none, and is tried again if it hears or listens */
int renew_now(struct conn *c);
/* Likewise, at once and then for a while; it may be gone after that */
void renew_lost(struct conn *c);
void renew_retry(struct conn *c);
/* Its connect has ended with -ECONNRESET. 0: there is another socket to connect; -errno */
int renew_connecting(struct conn *c);
/* -ENOMEM */
int renew_keep_option(struct conn *c, const struct agent_ask *ask);
void renew_forget_options(struct conn *c);

/* ---- agent_lane.c ---- */

/* One with room for a connection; -errno */
int lane_get(struct agent *a, struct lane **lane);
/* Its gateway was another one: it gets no connections any more */
void lane_lose(struct lane *l);
/* NULL: all are in use, or others wait for one: lane_want() */
unsigned char *lane_buffer(struct lane *l);
void lane_put_buffer(struct lane *l, unsigned char *buf);
void lane_want(struct conn *c);
/* Takes what has ended; -EPIPE */
int lane_take(struct lane *l);
void lane_close(struct lane *l);
/* Those that have nobody, but for one */
void lanes_reap(struct agent *a);

/* ---- agent_names.c ---- */

/* 1: he waits, or was answered; -errno */
int names_ask(struct asker *k, const struct agent_ask *ask);
/* Who asked for a name has gone */
void names_forget(struct asker *k);
/* As lane_take() */
int names_take(struct agent *a);
/* True: there may be an answer */
bool names_arm(struct agent *a);
/*
 * A session that nobody has asked anything for a while is one of others', and who waits for too
 * long for a place waits no more
 */
void names_reap(struct agent *a);
void names_close(struct agent *a);

/* ---- agent_domain.c ---- */

/* Is it the agent's name server? */
bool domain_is(const struct rgate_socket_addr *to);
/* What @c has sent there */
void domain_ask(const struct conn *c, const unsigned char *buf, uint32_t len);
void domain_answer(struct agent *a, struct domain *d, const struct agent_answer *answer);

/* ---- agent_control.c, agent_ask.c ---- */

/* Who connects sockets of programs, and is no member's */
int data_open(struct agent *a);
/* Of a member that has a path: it is there then. -errno */
int control_open(struct agent_member *m);
/* Nobody asks there any more */
void control_close(struct agent_member *m);
void control_event(struct agent_member *m);
void asker_event(struct asker *k, uint32_t events);
void asker_answer(struct asker *k, const struct agent_answer *answer, int fd);
/* When the program's @fd, which it is about, is closed. False: that is the caller's still */
bool asker_answer_closed(struct asker *k, const struct agent_answer *answer, int fd);
void asker_free(struct asker *k);
/* Has it wait among those; -ENOBUFS */
int asker_wait(struct asker *k, struct link *waiters);
void askers_expire(struct agent *a, uint64_t now);
/* Answers, or has it wait. True: @fd is closed, or will be; else it is the caller's */
bool ask_do(struct asker *k, const struct agent_ask *ask, int fd);

/* ---- agent_member.c ---- */

/* A line to who has the member */
void member_warn(const struct agent_member *m, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

int agent_watch(struct agent *a, int fd, uint32_t events, struct source *source);

#endif
