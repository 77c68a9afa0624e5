/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/* Where captured frames go: a pcapng file, lines on the terminal, or both. */
#ifndef OUTPUT_H
#define OUTPUT_H

#include "input.h"
#include "pcapng.h"
#include "sieve.h"

/* An interface of the file: a device */
struct output_if {
	uint32_t ifindex;
	char name[80];		/* printable */
	int number;		/* in the file */
	uint64_t delivered;
};

struct output {
	const struct capture_opts *o;
	struct inputs *in;
	struct pcapng *file;	/* NULL: lines only */
	int fd;
	uint16_t link;		/* LINK_*: of all the file's frames; 0: not known yet */
	struct sieve *sieve;	/* NULL: what comes was filtered before */
	struct output_if *ifs;
	unsigned int nifs;
	uint64_t start_ns;	/* CLOCK_REALTIME */
	uint64_t frames;
	uint64_t bytes;		/* captured */
	uint64_t lost;		/* gaps told by the frames */
	uint64_t cut;		/* frames shorter than on the wire */
	uint64_t filtered;	/* frames that the sieve does not take */
	uint64_t misfits;	/* frames that cannot be of the file's link type */
};

/* Opens the file. Says what fails; an exit code */
int output_open(struct output *out, const struct capture_opts *o);

/* Once @in is open: the file's interfaces are described from it. 0 or -errno */
int output_begin(struct output *out, struct inputs *in);

/* The frame that @r has in hand. 0 or -errno; -EPIPE: nobody reads any more */
int output_frame(struct output *out, struct input_ring *r,
		 const struct rgate_slot *s);

/* Nothing more at hand now: out with what is buffered. As output_frame() */
int output_flush(struct output *out);

/* Interface statistics, and the end of the file. As output_frame() */
int output_close(struct output *out);

#endif
