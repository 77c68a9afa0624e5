/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/* What ringgated is told: a file of "key value" lines, and options. */
#ifndef CONFIG_H
#define CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SOURCES_MAX	8
#define CONFIG_RING_MEMORY	(1ULL << 30)

enum source_kind {
	SOURCE_MODULE,		/* a ring of ringgate.ko on a device */
	SOURCE_PACKET,		/* a packet socket on a device */
	SOURCE_UDP,		/* a UDP socket */
};

struct source_conf {
	enum source_kind kind;
	char at[128];		/* device, or ADDRESS:PORT */
	uint32_t slots, slot_size;
	uint32_t policy;
	bool steal;		/* module: the network stack does not get the frames */
	bool all;		/* ... none of the device's */
	char *filter;		/* tcpdump expression, or NULL */
};

struct config {
	char *cluster;		/* path; NULL: the library's */
	char *cluster_text;	/* what such a file has, line by line; NULL: a file */
	char *node;		/* name, number or address; NULL: from the addresses here */
	char *socket;
	char *steer;		/* file of rules, kept up to date; NULL: none */
	char *user;		/* to become; NULL: stay */
	char *group;		/* that may talk to the socket; NULL: the process's */
	char *spawn_policy;	/* file; NULL: runs no processes for others */
	char *spawn_cgroup;	/* directory; "": none; NULL: the process's own */
	char *requests_socket;	/* "none": none; NULL: as requests_path() says */
	char *requests_group;	/* that may connect to it; NULL: all may */
	char *requests_policy;	/* file; NULL: for root and the daemon's user alone */
	char *requests_sockets;	/* file: policy of sockets; NULL: likewise */
	bool sockets_there;	/* sockets of programs are the gateway's */
	bool agents;		/* one for all programs of a user, whoever ran them */
	char *journal;		/* directory; NULL: queues go with the daemon */
	uint32_t journal_sync_ms; /* or JOURNAL_SYNC_* */
	uint32_t journal_segment; /* bytes; 0: the default */
	bool journal_repair;
	uint64_t pool;		/* bytes */
	uint64_t ring_memory;	/* bytes of all rings of programs; 0: CONFIG_RING_MEMORY */
	uint32_t spin_us;
	uint32_t pack;		/* enum rgate_pack */
	unsigned int nsources;
	struct source_conf sources[SOURCES_MAX];
};

/* Defaults first, then the file. 0, or -errno after having said where and what */
int config_load(struct config *c, const char *path, bool must_exist);
/* One line of it, as an option gives it; @where for messages */
int config_line(struct config *c, const char *where, const char *line);
void config_free(struct config *c);

#endif
