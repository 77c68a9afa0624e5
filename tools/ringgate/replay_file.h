/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/* The frames of a capture file, one after the other. */
#ifndef REPLAY_FILE_H
#define REPLAY_FILE_H

#include <stdbool.h>
#include <stdint.h>

struct replay_file;

struct replay_frame {
	const void *data;	/* until the next one is read */
	uint32_t len;
	bool cut;		/* it was longer on the wire */
	uint64_t time_ns;	/* since 1970 */
};

/*
 * replay_file_open - a pcap or pcapng file of Ethernet frames
 * @path: - for standard input
 * @again: it will be read more than once
 * Says what is wrong with it, then or later. Returns an exit code, EXIT_OK with @f set.
 */
int replay_file_open(struct replay_file **f, const char *path, bool again);

/* The next frame: 1; 0: that was the last; -EBADMSG: the file is broken, which was said */
int replay_file_next(struct replay_file *f, struct replay_frame *frame);

/* To the first frame again. An exit code */
int replay_file_rewind(struct replay_file *f);

/* NULL is allowed */
void replay_file_close(struct replay_file *f);

#endif
