// SPDX-License-Identifier: MIT OR GPL-2.0
#include <errno.h>
#include <fcntl.h>
#include <pcap/pcap.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cmd.h"
#include "replay_file.h"
#include "util.h"

struct replay_file {
	const char *path;
	int fd;			/* the same file for each pass, whoever has its name by then */
	pcap_t *pcap;		/* of this pass */
	uint64_t frames;	/* of this pass, so far */
};

/* What is no capture may be anything, so its name is all that is told of it. */
static int begin(struct replay_file *f)
{
	char why[PCAP_ERRBUF_SIZE] = "";
	int fd = dup(f->fd), link;
	FILE *in = fd < 0 ? NULL : fdopen(fd, "r");
	int ret;

	f->frames = 0;
	if (!in) {
		ret = fail(-errno, "cannot read %s", f->path);
		if (fd >= 0)
			close(fd);
		return ret;
	}
	f->pcap = pcap_fopen_offline_with_tstamp_precision(in, PCAP_TSTAMP_PRECISION_NANO, why);
	if (!f->pcap) {
		fclose(in);
		say("%s is no capture: %s: `file %s` tells what it is", f->path, why, f->path);
		return EXIT_FAIL;
	}
	link = pcap_datalink(f->pcap);
	if (link != DLT_EN10MB) {
		const char *name = pcap_datalink_val_to_name(link);

		say("%s has frames of link type %s, and only those of Ethernet are sent: capture on "
		    "an Ethernet device", f->path, name ?: "unknown");
		return EXIT_FAIL;
	}
	return EXIT_OK;
}

static int open_path(struct replay_file *f, bool again)
{
	struct stat st;

	f->fd = strcmp(f->path, "-") ? open(f->path, O_RDONLY | O_CLOEXEC) :
				       fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 0);
	if (f->fd < 0 || fstat(f->fd, &st))
		return fail_in(WHY_READ, -errno, "cannot read %s", f->path);
	if (S_ISDIR(st.st_mode))
		return fail_in(WHY_READ, -EISDIR, "cannot read %s", f->path);
	if (again && !S_ISREG(st.st_mode)) {
		say("%s can be read once only: for --loop write it into a file", f->path);
		return EXIT_FAIL;
	}
	return EXIT_OK;
}

int replay_file_open(struct replay_file **file, const char *path, bool again)
{
	struct replay_file *f = calloc(1, sizeof(*f));
	int ret;

	if (!f)
		return fail(-ENOMEM, "cannot read %s", path);
	f->path = path;
	ret = open_path(f, again);
	if (!ret)
		ret = begin(f);
	if (ret)
		replay_file_close(f);
	else
		*file = f;
	return ret;
}

int replay_file_next(struct replay_file *f, struct replay_frame *frame)
{
	struct pcap_pkthdr *h;
	const u_char *data;
	int got = pcap_next_ex(f->pcap, &h, &data);

	if (got == PCAP_ERROR_BREAK)
		return 0;
	if (got != 1) {
		say("%s is broken behind frame %llu: %s", f->path, (unsigned long long)f->frames,
		    pcap_geterr(f->pcap));
		return -EBADMSG;
	}
	f->frames++;
	frame->data = data;
	frame->len = h->caplen;
	frame->cut = h->caplen < h->len;
	/* tv_usec has nanoseconds: see begin() */
	frame->time_ns = (uint64_t)h->ts.tv_sec * NSEC + (uint64_t)h->ts.tv_usec;
	return 1;
}

int replay_file_rewind(struct replay_file *f)
{
	pcap_close(f->pcap);
	f->pcap = NULL;
	if (lseek(f->fd, 0, SEEK_SET) < 0)
		return fail(-errno, "cannot read %s once more", f->path);
	return begin(f);
}

void replay_file_close(struct replay_file *f)
{
	if (!f)
		return;
	if (f->pcap)
		pcap_close(f->pcap);
	if (f->fd >= 0)
		close(f->fd);
	free(f);
}
