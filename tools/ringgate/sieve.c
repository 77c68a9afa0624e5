// SPDX-License-Identifier: MIT OR GPL-2.0
#include <errno.h>
#include <pcap/pcap.h>
#include <stdlib.h>
#include <string.h>

#include "cmd.h"
#include "pcapng.h"
#include "sieve.h"
#include "util.h"

struct sieve {
	const char *text;
	uint16_t link;			/* that prog is for */
	struct bpf_program prog;
	unsigned char buf[FRAME_SNAPLEN];	/* a frame of several pieces */
};

/* Link types are numbers of files; libpcap has another one for this. */
static int dlt_of(uint16_t link)
{
	return link == LINK_RAW ? DLT_RAW : link;
}

static int compile(struct sieve *v, uint16_t link)
{
	pcap_t *pc = pcap_open_dead(dlt_of(link), FRAME_SNAPLEN);
	int err = 0;

	if (!pc)
		return -ENOMEM;
	pcap_freecode(&v->prog);
	v->link = 0;
	if (pcap_compile(pc, &v->prog, v->text, 1, PCAP_NETMASK_UNKNOWN) < 0) {
		say("filter: %s", pcap_geterr(pc));
		err = -EINVAL;
	} else {
		v->link = link;
	}
	pcap_close(pc);
	return err;
}

int sieve_new(struct sieve **out, const char *text)
{
	struct sieve *v = calloc(1, sizeof(*v));
	int err;

	if (!v)
		return fail(-ENOMEM, "cannot begin");
	v->text = text;
	err = compile(v, LINK_ETHERNET);
	if (err) {
		sieve_free(v);
		return EXIT_FAIL;
	}
	*out = v;
	return EXIT_OK;
}

int sieve_match(struct sieve *v, const struct frame *f)
{
	const unsigned char *data = f->iov[0].iov_base;
	size_t len = 0;
	unsigned int i;
	int err;

	if (f->link != v->link) {
		err = compile(v, f->link);
		if (err)
			return err;
	}
	if (f->iovcnt > 1) {
		for (i = 0; i < f->iovcnt; i++) {
			memcpy(v->buf + len, f->iov[i].iov_base, f->iov[i].iov_len);
			len += f->iov[i].iov_len;
		}
		data = v->buf;
	}
	return bpf_filter(v->prog.bf_insns, data, f->orig_len, f->cap_len) != 0;
}

void sieve_free(struct sieve *v)
{
	if (!v)
		return;
	pcap_freecode(&v->prog);
	free(v);
}
