/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/* A sender of numbered datagrams, as a process of its own. */
#ifndef UDP_H
#define UDP_H

#include <netinet/in.h>
#include <stdint.h>
#include <sys/types.h>

#define UDP_BATCH 32U

struct udp_sender {
	pid_t pid;
	int fd;			/* the number sent is read from here at the end */
};

/* Sends datagrams of @len bytes (mem_put()) to @to for @ms, from CPU @cpu */
void udp_sender_start(struct udp_sender *s, const struct sockaddr_in *to,
		      uint32_t len, unsigned int ms, int cpu);

/* Waits for its end; returns how many were sent */
uint64_t udp_sender_wait(struct udp_sender *s);

/* Has it ended? Never waits. */
int udp_sender_ended(const struct udp_sender *s);

#endif
