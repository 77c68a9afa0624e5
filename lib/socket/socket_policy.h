/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * Which users may reach what, and be reached at what, by the sockets of who serves them: a
 * file; Documentation/sockets.rst has its lines.
 */
#ifndef RGATE_SOCKET_POLICY_H
#define RGATE_SOCKET_POLICY_H

#include <sys/types.h>

#include "socket_addr.h"

#define SOCKET_POLICY_MAX	(256U << 10)	/* bytes of the file */

enum socket_act {
	SOCKET_ACT_CONNECT,	/* and send a datagram to */
	SOCKET_ACT_LISTEN,	/* and receive datagrams at a port that was chosen */
};

/* What somebody wants */
struct socket_wish {
	uid_t uid;
	enum socket_act act;
	uint32_t type;		/* enum rgate_socket_type */
	struct socket_host host;
	uint16_t port;
	bool own;		/* connect: it is this machine's, or reaches several machines */
};

struct socket_policy;

/* -ENOENT, -EPERM: others may write it, -EFBIG, -EINVAL: malformed; the log says where and what.
 * @path: NULL: allows nobody but who always may
 */
int socket_policy_load(struct socket_policy **policy, const char *path);
/* @name: for messages; @text is changed */
int socket_policy_parse(struct socket_policy **policy, const char *name, char *text, size_t len);
void socket_policy_free(struct socket_policy *policy);

/* Root, and the user that this process is, always may. */
bool socket_policy_may(const struct socket_policy *policy, const struct socket_wish *w);

/*
 * socket_policy_resolve - may the user ask for that name? Likewise. "": for a service alone, which
 * whoever has any such line may
 */
bool socket_policy_resolve(const struct socket_policy *policy, uid_t uid, const char *name);

/* Sockets that the user may have at once; and all together. 0: no limit */
uint32_t socket_policy_most(const struct socket_policy *policy, uid_t uid);
uint32_t socket_policy_most_all(const struct socket_policy *policy);

#endif
