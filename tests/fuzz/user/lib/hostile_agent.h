/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * An agent of programs' sockets that answers whatever the input says, for fuzz_shim.c and
 * fuzz_super.c: when the library waits for an answer, by syscall(2), which is exchanged for that.
 */
#ifndef HOSTILE_AGENT_H
#define HOSTILE_AGENT_H

#include <sys/socket.h>
#include <sys/un.h>

#include "agent_wire.h"
#include "fuzz.h"

/* What it sends wherever a descriptor goes: of /dev/null */
extern int hostile_junk;
/* What it does; NULL: nothing now */
extern struct fuzz_in *hostile_input;

/* Its directory, which goes with the process */
const char *hostile_begin(void);
struct rgate_socket_addr hostile_addr(struct fuzz_in *in);
/* One that there is, or not */
uint32_t hostile_error(struct fuzz_in *in);
/* One message, with so many descriptors, 4 at most */
void hostile_send(int sock, const void *msg, size_t len, unsigned int nfds);

#endif
