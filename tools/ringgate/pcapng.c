// SPDX-License-Identifier: MIT OR GPL-2.0
#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "pcapng.h"

#define BLOCK_SECTION		0x0a0d0d0aU
#define BLOCK_INTERFACE		1U
#define BLOCK_STATS		5U
#define BLOCK_PACKET		6U
#define BYTE_ORDER_MAGIC	0x1a2b3c4dU

#define OPT_END			0
#define SHB_HARDWARE		2
#define SHB_OS			3
#define SHB_USERAPPL		4
#define IF_NAME			2
#define IF_DESCRIPTION		3
#define IF_TSRESOL		9
#define IF_FILTER		11
#define EPB_FLAGS		2
#define EPB_DROPCOUNT		4
#define EPB_QUEUE		6
#define ISB_STARTTIME		2
#define ISB_ENDTIME		3
#define ISB_IFRECV		4
#define ISB_IFDROP		5
#define ISB_FILTERACCEPT	6
#define ISB_USRDELIV		8

#define BUFFER_SIZE	(256U << 10)
#define OPT_LEN_MAX	4096	/* of a text: names are short, filters may not be */

struct pcapng {
	int fd;
	int err;		/* first failure of writing; stays */
	uint32_t interfaces;
	size_t len;		/* bytes in buf */
	size_t block;		/* where the open block begins in buf */
	uint64_t written;
	unsigned char *buf;
	size_t cap;
};

int pcapng_flush(struct pcapng *p)
{
	size_t done = 0;

	while (!p->err && done < p->len) {
		ssize_t n = write(p->fd, p->buf + done, p->len - done);

		if (n >= 0) {
			done += n;
		} else if (errno == EAGAIN) {
			/* somebody else's non-blocking pipe */
			struct pollfd pfd = { .fd = p->fd, .events = POLLOUT };

			poll(&pfd, 1, -1);
		} else if (errno != EINTR) {
			p->err = -errno;
		}
	}
	p->written += done;
	p->len = 0;
	return p->err;
}

/* Room for a block of up to @need bytes */
static int reserve(struct pcapng *p, size_t need)
{
	unsigned char *buf;

	if (p->err)
		return p->err;
	if (p->cap - p->len >= need)
		return 0;
	if (pcapng_flush(p))
		return p->err;
	if (p->cap >= need)
		return 0;
	buf = realloc(p->buf, need);
	if (!buf)
		return -ENOMEM;
	p->buf = buf;
	p->cap = need;
	return 0;
}

static void put(struct pcapng *p, const void *data, size_t len)
{
	if (len)
		memcpy(p->buf + p->len, data, len);
	p->len += len;
}

static void put32(struct pcapng *p, uint32_t v)
{
	put(p, &v, sizeof(v));
}

static void put16(struct pcapng *p, uint16_t v)
{
	put(p, &v, sizeof(v));
}

/* Everything is padded to 32 bits with zeroes. */
static void pad(struct pcapng *p)
{
	while ((p->len - p->block) & 3)
		p->buf[p->len++] = 0;
}

static void block_begin(struct pcapng *p, uint32_t type)
{
	p->block = p->len;
	put32(p, type);
	put32(p, 0);		/* length, known at the end */
}

static void block_end(struct pcapng *p)
{
	uint32_t len = p->len - p->block + sizeof(len);

	put32(p, len);
	memcpy(p->buf + p->block + 4, &len, sizeof(len));
}

static void option(struct pcapng *p, uint16_t code, const void *v, uint16_t len)
{
	put16(p, code);
	put16(p, len);
	put(p, v, len);
	pad(p);
}

static void option_text(struct pcapng *p, uint16_t code, const char *text)
{
	if (text)
		option(p, code, text, strnlen(text, OPT_LEN_MAX));
}

static void option_u64(struct pcapng *p, uint16_t code, uint64_t v)
{
	option(p, code, &v, sizeof(v));
}

/* Timestamps have their upper half first, whatever the byte order. */
static void option_time(struct pcapng *p, uint16_t code, uint64_t ns)
{
	uint32_t v[2] = { ns >> 32, (uint32_t)ns };

	option(p, code, v, sizeof(v));
}

static void options_end(struct pcapng *p)
{
	put32(p, OPT_END);
}

static void section(struct pcapng *p, const char *hardware, const char *os,
		    const char *application)
{
	block_begin(p, BLOCK_SECTION);
	put32(p, BYTE_ORDER_MAGIC);
	put16(p, 1);		/* version 1.0 */
	put16(p, 0);
	put32(p, UINT32_MAX);	/* section length: not known yet */
	put32(p, UINT32_MAX);
	option_text(p, SHB_HARDWARE, hardware);
	option_text(p, SHB_OS, os);
	option_text(p, SHB_USERAPPL, application);
	options_end(p);
	block_end(p);
}

int pcapng_new(struct pcapng **out, int fd, const char *hardware,
	       const char *os, const char *application)
{
	struct pcapng *p = calloc(1, sizeof(*p));

	if (!p)
		return -ENOMEM;
	p->fd = fd;
	p->cap = BUFFER_SIZE;
	p->buf = malloc(p->cap);
	if (!p->buf) {
		free(p);
		return -ENOMEM;
	}
	section(p, hardware, os, application);
	*out = p;
	return 0;
}

/* The first byte tells the kind of filter: 0 is text for libpcap. */
static void option_filter(struct pcapng *p, const char *filter)
{
	char text[OPT_LEN_MAX];
	size_t n;

	if (!filter)
		return;
	n = strnlen(filter, sizeof(text) - 1);
	text[0] = 0;
	memcpy(text + 1, filter, n);
	option(p, IF_FILTER, text, n + 1);
}

int pcapng_interface(struct pcapng *p, const struct pcapng_interface *i)
{
	const unsigned char resolution = 9;	/* 10^-9 s */
	int err = reserve(p, (size_t)4 * OPT_LEN_MAX);

	if (err)
		return err;
	block_begin(p, BLOCK_INTERFACE);
	put16(p, i->link);
	put16(p, 0);
	put32(p, i->snaplen);
	option_text(p, IF_NAME, i->name);
	option_text(p, IF_DESCRIPTION, i->description);
	option(p, IF_TSRESOL, &resolution, sizeof(resolution));
	option_filter(p, i->filter);
	options_end(p);
	block_end(p);
	return p->interfaces++;
}

static void packet_options(struct pcapng *p, const struct pcapng_packet *pkt)
{
	uint32_t queue = pkt->queue;

	if (!pkt->flags && !pkt->dropped && pkt->queue < 0)
		return;
	if (pkt->flags)
		option(p, EPB_FLAGS, &pkt->flags, sizeof(pkt->flags));
	if (pkt->dropped)
		option_u64(p, EPB_DROPCOUNT, pkt->dropped);
	if (pkt->queue >= 0)
		option(p, EPB_QUEUE, &queue, sizeof(queue));
	options_end(p);
}

int pcapng_packet(struct pcapng *p, const struct pcapng_packet *pkt)
{
	size_t len = 0;
	unsigned int i;
	int err;

	if (pkt->interface >= p->interfaces)
		return -EINVAL;
	for (i = 0; i < pkt->iovcnt; i++)
		len += pkt->iov[i].iov_len;
	err = reserve(p, len + 128);	/* fixed part and options: 80 at most */
	if (err)
		return err;
	block_begin(p, BLOCK_PACKET);
	put32(p, pkt->interface);
	put32(p, pkt->time_ns >> 32);
	put32(p, (uint32_t)pkt->time_ns);
	put32(p, len);
	put32(p, pkt->orig_len);
	for (i = 0; i < pkt->iovcnt; i++)
		put(p, pkt->iov[i].iov_base, pkt->iov[i].iov_len);
	pad(p);
	packet_options(p, pkt);
	block_end(p);
	return 0;
}

int pcapng_stats(struct pcapng *p, uint32_t interface,
		 const struct pcapng_stats *s)
{
	int err;

	if (interface >= p->interfaces)
		return -EINVAL;
	err = reserve(p, 256);
	if (err)
		return err;
	block_begin(p, BLOCK_STATS);
	put32(p, interface);
	put32(p, s->time_ns >> 32);
	put32(p, (uint32_t)s->time_ns);
	option_time(p, ISB_STARTTIME, s->start_ns);
	option_time(p, ISB_ENDTIME, s->time_ns);
	option_u64(p, ISB_IFRECV, s->received);
	option_u64(p, ISB_IFDROP, s->dropped);
	option_u64(p, ISB_FILTERACCEPT, s->accepted);
	option_u64(p, ISB_USRDELIV, s->delivered);
	options_end(p);
	block_end(p);
	return 0;
}

uint64_t pcapng_bytes(const struct pcapng *p)
{
	return p->written + p->len;
}

int pcapng_free(struct pcapng *p)
{
	int err;

	if (!p)
		return 0;
	err = pcapng_flush(p);
	free(p->buf);
	free(p);
	return err;
}
