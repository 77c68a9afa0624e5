// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * Fills a memfd ring with known frames for a consumer that is another program.
 *
 *	fill CASE EXPECT consumer [argument...]
 *
 * The consumer gets the ring over a socket, "--fd N" is added to its arguments;
 * "@" among them becomes the consumer's number. EXPECT is written with the lines
 * it has to print. The case "image" writes the ring into the file EXPECT.image
 * instead. Exits with the consumers' status.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <ringgate/ringgate.h>

#define FRAME_MAX	7000
#define CONSUMERS_MAX	2
#define ARGS_MAX	16

struct fill_case {
	const char *name;
	uint32_t slots, slot_size, flags, policy;
	unsigned int frames;	/* in all */
	unsigned int before;	/* of those, before any consumer starts */
	unsigned int drops;	/* counted as lost after those */
	unsigned int max_len;
	unsigned int resize_at;	/* frame, 0: never */
	unsigned int consumers;
	unsigned int dead;	/* 1: a first consumer comes and goes in between */
};

static const struct fill_case cases[] = {
	{ "plain", 64, 256, 0, RGATE_POLICY_DROP, 3000, 0, 0, 192, 0, 1, 0 },
	{ "cut", 64, 256, 0, RGATE_POLICY_DROP, 500, 0, 0, 1000, 0, 1, 0 },
	{ "chain", 128, 256, RGATE_RING_CHAIN, RGATE_POLICY_DROP, 800, 0, 0,
	  FRAME_MAX, 0, 1, 0 },
	{ "gap", 64, 512, 0, RGATE_POLICY_DROP, 200, 64, 10, 300, 0, 1, 0 },
	{ "overwrite", 256, 512, 0, RGATE_POLICY_OVERWRITE, 20000, 0, 0, 448, 0, 1, 0 },
	{ "overwrite-chain", 256, 256, RGATE_RING_CHAIN, RGATE_POLICY_OVERWRITE,
	  10000, 0, 0, 1000, 0, 1, 0 },
	{ "resize", 64, 256, 0, RGATE_POLICY_DROP, 1000, 0, 0, 192, 500, 1, 0 },
	{ "takeover", 256, 256, 0, RGATE_POLICY_DROP, 1000, 200, 0, 192, 0, 1, 1 },
	{ "two", 256, 256, 0, RGATE_POLICY_DROP, 3000, 0, 0, 192, 0, 2, 0 },
	{ "image", 128, 1024, RGATE_RING_CHAIN, RGATE_POLICY_DROP, 30, 30, 0,
	  FRAME_MAX, 0, 0, 0 },
};

static const struct fill_case *fc;
static struct rgate_ring *ring;
static struct rgate_producer prod;
static FILE *expect;
static pid_t pids[CONSUMERS_MAX];

static void die(const char *what, int err)
{
	fprintf(stderr, "fill: %s: %s\n", what, rgate_strerror("rgate_ring_", err));
	exit(1);
}

/* As zlib's, so that the consumer has it in its standard library */
static uint32_t crc32_of(const unsigned char *p, size_t n)
{
	uint32_t c = ~0U;
	int k;

	while (n--) {
		c ^= *p++;
		for (k = 0; k < 8; k++)
			c = c & 1 ? c >> 1 ^ 0xedb88320U : c >> 1;
	}
	return ~c;
}

static size_t make_frame(unsigned int i, struct rgate_slot *hdr,
			 unsigned char *data)
{
	size_t len = (i * 2654435761U >> 8) % (fc->max_len + 1), j;

	for (j = 0; j < len; j++)
		data[j] = (unsigned char)(i * 31 + j * 7 + (j >> 8));
	memset(hdr, 0, sizeof(*hdr));
	hdr->flags = RGATE_SLOT_HASH | (i & 1 ? RGATE_SLOT_VLAN : 0) |
		     (i & 2 ? RGATE_SLOT_QUEUE : 0);
	hdr->ifindex = 1000 + i % 3;
	hdr->hash = i;
	hdr->queue = i % 7;
	hdr->vlan_tci = i % 4095;
	hdr->vlan_proto = i & 4 ? 0x88a8 : 0x8100;
	hdr->protocol = i & 8 ? 0x86dd : 0x0800;
	hdr->dev_type = i % 5;
	hdr->l3_off = 14;
	hdr->l4_off = i & 16 ? RGATE_OFF_NONE : 34;
	hdr->payload_off = 42;
	hdr->ip_proto = 17;
	hdr->pkt_type = i % 4;
	return len;
}

static void expect_frame(unsigned int i, const struct rgate_slot *h,
			 const unsigned char *data, size_t len, uint32_t size,
			 unsigned int gap)
{
	size_t room = size - RGATE_SLOT_HDR, stored = len;
	size_t most = fc->flags & RGATE_RING_CHAIN ? RGATE_CHAIN_MAX * room : room;
	uint32_t flags = h->flags;

	if (stored > most) {
		stored = most;
		flags |= RGATE_SLOT_TRUNC;
	}
	fprintf(expect,
		"frame %zu %zu %zu %x %u %u %u %u %u %x %x %u %u %u %u %u %u %08x\n",
		len, stored, stored ? (stored + room - 1) / room : 1, flags, gap,
		h->ifindex, i, h->queue, h->vlan_tci, h->vlan_proto, h->protocol,
		h->dev_type, h->l3_off, h->l4_off, h->payload_off, h->ip_proto,
		h->pkt_type, crc32_of(data, stored));
}

static void fill_one(unsigned int i, unsigned int gap)
{
	static unsigned char data[FRAME_MAX];
	struct rgate_slot hdr;
	size_t len = make_frame(i, &hdr, data);

	rgate_producer_stamp(&prod);
	while (rgate_producer_write(&prod, &hdr, data, len, len)) {
		rgate_producer_flush(&prod);
		usleep(200);
	}
	expect_frame(i, &hdr, data, len,
		     (uint32_t)rgate_producer_room(&prod) + RGATE_SLOT_HDR, gap);
}

static void fill_range(unsigned int from, unsigned int to)
{
	unsigned int i, gap = from ? fc->drops : 0;
	int err;

	for (i = from; i < to; i++) {
		if (fc->resize_at && i == fc->resize_at) {
			err = rgate_ring_resize(ring, fc->slots * 2, fc->slot_size * 2);
			if (err)
				die("resize", err);
			rgate_producer_flush(&prod);
		}
		fill_one(i, gap);
		gap = 0;
		/* now and then nothing comes, so that consumers fall asleep */
		if (i % 500 == 499) {
			rgate_producer_flush(&prod);
			usleep(20000);
		}
	}
	rgate_producer_flush(&prod);
}

/* The consumer's program with the socket's and the consumer's number */
static void exec_consumer(char **argv, int argc, int fd, unsigned int number)
{
	char *args[ARGS_MAX], fd_text[16], num_text[16];
	int i;

	snprintf(fd_text, sizeof(fd_text), "%d", fd);
	snprintf(num_text, sizeof(num_text), "%u/%u", number, fc->consumers);
	for (i = 0; i < argc && i < ARGS_MAX - 3; i++)
		args[i] = strcmp(argv[i], "@") ? argv[i] : num_text;
	args[i++] = (char *)"--fd";
	args[i++] = fd_text;
	args[i] = NULL;
	execvp(args[0], args);
	_exit(127);
}

static pid_t start_consumer(char **argv, int argc, unsigned int number)
{
	int sv[2], err;
	pid_t pid;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET, 0, sv))
		die("socketpair", errno);
	pid = fork();
	if (pid < 0)
		die("fork", errno);
	if (!pid) {
		close(sv[0]);
		exec_consumer(argv, argc, sv[1], number);
	}
	close(sv[1]);
	err = rgate_ring_send(ring, sv[0]);
	if (err)
		die("send", err);
	/* Not closed: a message under way would be lost on some kernels. */
	return pid;
}

static int reap(pid_t pid)
{
	int status;

	if (waitpid(pid, &status, 0) < 0)
		die("waitpid", errno);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static void write_image(const char *path)
{
	struct rgate_view v;
	char name[4096];
	FILE *f;

	snprintf(name, sizeof(name), "%s.image", path);
	f = fopen(name, "wb");
	rgate_ring_view(ring, &v);
	if (!f || fwrite(v.prod, v.map_len, 1, f) != 1 || fclose(f))
		die(name, errno);
}

static void open_all(const char *name, const char *path)
{
	struct rgate_ring_opts o = RGATE_OPTS(rgate_ring_opts);
	size_t i;
	int err;

	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		if (!strcmp(cases[i].name, name))
			fc = &cases[i];
	if (!fc) {
		fprintf(stderr, "fill: no case %s\n", name);
		exit(2);
	}
	o.slots = fc->slots;
	o.slot_size = fc->slot_size;
	o.flags = fc->flags;
	o.policy = fc->policy;
	err = rgate_ring_open_memfd(&ring, &o);
	if (!err)
		err = rgate_producer_init(&prod, ring);
	if (err)
		die("ring", err);
	expect = fopen(path, "w");
	if (!expect)
		die(path, errno);
}

int main(int argc, char **argv)
{
	unsigned int i;
	int rc = 0, r;

	if (argc < 3) {
		fprintf(stderr, "usage: fill CASE EXPECT consumer [argument...]\n");
		return 2;
	}
	open_all(argv[1], argv[2]);
	fill_range(0, fc->before);
	for (i = 0; i < fc->drops; i++)
		rgate_producer_drop(&prod);
	if (fc->dead) {
		char *first[ARGS_MAX];

		for (r = 0; r < argc - 3 && r < ARGS_MAX - 3; r++)
			first[r] = argv[r + 3];
		first[r++] = (char *)"--stop";
		first[r++] = (char *)"100";
		rc |= reap(start_consumer(first, r, 0));
	}
	for (i = 0; i < fc->consumers; i++)
		pids[i] = start_consumer(argv + 3, argc - 3, i);
	fill_range(fc->before, fc->frames);
	if (!fc->consumers)
		write_image(argv[2]);
	rgate_producer_fini(&prod);
	for (i = 0; i < fc->consumers; i++)
		rc |= reap(pids[i]);
	rgate_ring_close(ring);
	if (fclose(expect))
		die(argv[2], errno);
	return rc;
}
