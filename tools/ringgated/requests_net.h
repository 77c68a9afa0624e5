/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/* Sockets that programs of this machine have by requests: their policy, and who has which */
#ifndef REQUESTS_NET_H
#define REQUESTS_NET_H

#include "json.h"
#include "ringgated.h"

struct requests;
struct socket_policy;

/* Can the policy be read? What is wrong is said. @path: NULL: there is none */
int net_check(const char *path);
int net_start(void **service, struct requests *rq);
void net_stop(void *service);
/* Reads the policy again; it holds once net_keep() says so, or goes. 0 or -errno, which was said */
int net_reload(const char *path, struct socket_policy **policy);
void net_keep(struct requests *rq, struct socket_policy *policy);

/* False: sockets of programs here are the gateway's. Its requests are there */
bool net_serves(const struct daemon *d);

#define NET_LINES	400U	/* of an answer */

/*
 * net_list - "ID PROTOCOL STATE LOCAL PEER UNREAD UNSENT RECEIVED SENT UNDERWAY UID" of those
 * with an id beyond @after, NET_LINES at most
 */
void net_list(struct daemon *d, FILE *f, uint64_t after);
/* Numbers of all of them, in an object "sockets" */
void net_json(struct daemon *d, struct json *j);
/* -ENOENT: there is no such socket */
int net_kill(struct daemon *d, uint64_t id);

#endif
