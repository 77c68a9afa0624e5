/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/* Clients of the service of sockets, and the other end of their connections */
#ifndef SOCKET_BED_H
#define SOCKET_BED_H

#include "req_bed.h"

#include <ringgate/socket.h>

#include "socket_service.h"

#define NET_MEM		(8U << 20)	/* of a client */
#define NET_PLACES	1024U
#define NET_ADDR	(NET_MEM - 4096)	/* where addresses are, in its memory */

struct net_done {
	bool there;
	int result;
	uint64_t value;
};

struct net_client {
	struct client c;
	uint64_t last;				/* cookie */
	struct net_done done[4096];		/* by cookie */
};

extern struct rgate_engine *net_eng;		/* with a thread of its own */
extern struct socket_service *net_sv;
extern struct net_client net_a, net_b;		/* of users 1 and 2 */
extern uint64_t net_value;			/* of net_ask(), net_end() */

/* @policy: text, or NULL: all is allowed; @most: sockets in all */
void net_up(const char *policy, uint32_t most);
/* For cmocka: without a policy, and its end */
int net_setup(void **state);
int net_teardown(void **state);
/* Nothing is left: no socket, no descriptor */
void net_down(void);
void net_new_policy(const char *text);

void net_join(struct net_client *c, uid_t uid);
void net_part(struct net_client *c);		/* its session is over when this returns */

/* The request's cookie; it is under way */
uint64_t net_post(struct net_client *c, struct rgate_request q);
/* Its result, when it has ended; and not before @ms, -ETIME: it has not */
int net_end(struct net_client *c, uint64_t cookie);
int net_end_in(struct net_client *c, uint64_t cookie, unsigned int ms);
int net_ask(struct net_client *c, struct rgate_request q);
int net_cancel(struct net_client *c, uint64_t cookie);

#define POST(client, o, ...) \
	net_post(client, (struct rgate_request){ .op = RGATE_REQ_SOCKET_##o, ##__VA_ARGS__ })
#define ASK(client, o, ...) \
	net_ask(client, (struct rgate_request){ .op = RGATE_REQ_SOCKET_##o, ##__VA_ARGS__ })

/* What must come to be; family 4 or 6 */
uint32_t net_socket(struct net_client *c, int family, uint32_t type);
/* Listens at loopback, at a port of the kernel's */
uint32_t net_listen(struct net_client *c, int family, uint16_t *port);
/* An address of loopback in the client's memory, at NET_ADDR; where that is */
uint32_t net_addr(struct net_client *c, int family, uint16_t port);
void net_addr_put(struct net_client *c, const char *host, uint16_t port);
struct rgate_socket_addr net_addr_get(const struct net_client *c);
int net_bind(struct net_client *c, uint32_t sock, int family, uint16_t port);
int net_connect(struct net_client *c, uint32_t sock, int family, uint16_t port);
uint32_t net_accept(struct net_client *c, uint32_t sock);
uint16_t net_port(struct net_client *c, uint32_t sock);
int net_close(struct net_client *c, uint32_t sock);
/* A connection: the service's socket, and the kernel's at the other end */
uint32_t net_pair(struct net_client *c, int *fd);

/* The kernel's own */
int raw_listen(int backlog, uint16_t *port);
int raw_accept(int fd);
int raw_connect(uint16_t port);
int raw_udp(uint16_t *port);
void raw_write(int fd, const void *data, size_t len);
size_t raw_read(int fd, void *data, size_t len);	/* until it is there, or the end */

/* So many open descriptors has this process */
unsigned int net_fds(void);

#endif
