/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/* What a program sees of the machine that is not its user's to see, or that it finds elsewhere */
#ifndef ENCLOSE_H
#define ENCLOSE_H

/*
 * This process, and all that it starts, is in a network namespace with nothing in it, as this user;
 * -errno
 */
int enclose_network(void);

/*
 * Behind that: where it finds /etc/resolv.conf there is one that names the agent's name server
 * (AGENT_DOMAIN). 0, also if there is no such file; -errno: it is as it was
 */
int enclose_names(void);

#endif
