// SPDX-License-Identifier: MIT OR GPL-2.0
/* Random calls on the device file: open, ioctl, poll, passing on, close. */
#include "fuzz.h"

#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <ringgate/ioctl.h>

uint64_t fuzz_rand(struct fuzz *f)
{
	/* xorshift64* (Vigna, 2016) */
	f->rnd ^= f->rnd >> 12;
	f->rnd ^= f->rnd << 25;
	f->rnd ^= f->rnd >> 27;
	return f->rnd * 0x2545f4914f6cdd1dULL;
}

uint32_t fuzz_below(struct fuzz *f, uint32_t n)
{
	return (uint32_t)((fuzz_rand(f) >> 32) * n >> 32);
}

bool fuzz_one_in(struct fuzz *f, uint32_t n)
{
	return !fuzz_below(f, n);
}

uint64_t fuzz_number(struct fuzz *f)
{
	switch (fuzz_below(f, 6)) {
	case 0: return fuzz_below(f, 4);
	case 1: return 1ULL << fuzz_below(f, 64);
	case 2: return (1ULL << fuzz_below(f, 64)) - 1;
	case 3: return ~0ULL - fuzz_below(f, 4096);
	case 4: return fuzz_below(f, 1 << 20) << 12;
	default: return fuzz_rand(f);
	}
}

void fuzz_mutate(struct fuzz *f, void *buf, size_t len)
{
	uint32_t n = fuzz_one_in(f, 2) ? 0 : 1 + fuzz_below(f, 3);
	uint8_t *b = buf;

	while (n--)
		b[fuzz_below(f, (uint32_t)len)] = (uint8_t)fuzz_number(f);
}

static int *any_fd(struct fuzz *f)
{
	return &f->p->fds[fuzz_below(f, FUZZ_FDS)];
}

static void put_fd(struct fuzz *f, int fd)
{
	int old;

	if (!fuzz_note(f, fd))
		return;
	old = __atomic_exchange_n(any_fd(f), fd, __ATOMIC_ACQ_REL);
	if (old >= 0)
		close(old);
}

/* Mostly small, so that many fit; now and then whatever */
static void geometry(struct fuzz *f, uint32_t *slots, uint32_t *size)
{
	*slots = 64U << fuzz_below(f, 4);
	*size = 256U << fuzz_below(f, 4);
	if (fuzz_one_in(f, 8))
		*slots = (uint32_t)fuzz_number(f);
	if (fuzz_one_in(f, 8))
		*size = (uint32_t)fuzz_number(f);
}

static void create(struct fuzz *f, int fd)
{
	struct rgate_create c = {
		.flags = fuzz_below(f, RGATE_RING_FLAGS + 1),
		.policy = fuzz_below(f, RGATE_POLICY_COUNT),
		.clock = fuzz_below(f, RGATE_CLOCK_COUNT),
		.node = fuzz_one_in(f, 4) ? 0 : -1,
	};

	geometry(f, &c.slots, &c.slot_size);
	/* which by chance are hardly ever in line */
	if (fuzz_one_in(f, 3)) {
		c.flags = RGATE_RING_TRANSMIT | RGATE_RING_RW_SLOTS;
		c.policy = RGATE_POLICY_DROP;
	}
	fuzz_mutate(f, &c, sizeof(c));
	fuzz_note(f, ioctl(fd, RGATE_IOC_CREATE, &c));
}

/* A frame that may be one, and then anything */
static void any_frame(struct fuzz *f, struct rgate_tx_slot *slot, uint32_t room)
{
	struct rgate_tx_slot s = {
		.len = fuzz_below(f, room < 1600 ? room : 1600),
		.flags = fuzz_below(f, 4) ? 0 : (uint32_t)fuzz_rand(f) & RGATE_SLOT_TX_FLAGS,
		.vlan_tci = (uint16_t)fuzz_rand(f), .vlan_proto = 0x8100,
		.vnet_flags = 1, .gso_type = (uint8_t)fuzz_below(f, 6),
		.gso_size = (uint16_t)fuzz_below(f, 1500), .csum_start = 34, .csum_offset = 16,
	};
	uint64_t head[6] = { 0x0202020202020202, 0x0045000802020202, 0x06400000 };
	unsigned int i;

	for (i = 3; i < 6; i++)
		head[i] = fuzz_rand(f);
	fuzz_mutate(f, &s, sizeof(s));
	fuzz_mutate(f, head, sizeof(head));
	memcpy(slot + 1, head, sizeof(head));
	memcpy((char *)slot + 8, (char *)&s + 8, sizeof(s) - 8);
}

static void kick(struct fuzz *f, int fd)
{
	struct rgate_send s = { .budget = fuzz_below(f, 100) };

	fuzz_mutate(f, &s, sizeof(s));
	fuzz_note(f, ioctl(fd, RGATE_IOC_SEND, &s));
}

/* Frames into a transmit ring, for itself or in the middle of another's kick */
static void transmit(struct fuzz *f, int fd)
{
	struct rgate_query q;
	uint32_t n = fuzz_below(f, 40), i;
	uint64_t pos;
	uint8_t *p;

	memset(&q, 0, sizeof(q));
	if (fd < 0 || ioctl(fd, RGATE_IOC_QUERY, &q) || !(q.flags & RGATE_RING_TRANSMIT))
		return;
	p = mmap(NULL, q.geo.map_len - q.geo.slots_off, PROT_READ | PROT_WRITE, MAP_SHARED, fd,
		 (off_t)q.geo.slots_off);
	if (p == MAP_FAILED)
		return;
	/* what was sent and what was not, as the module last knew */
	pos = q.stats.delivered + q.stats.dropped_fault + q.stats.dropped_full;
	for (i = 0; i < n; i++, pos++) {
		struct rgate_tx_slot *slot = (void *)(p + (pos & (q.geo.slots - 1)) *
						      q.geo.slot_size);

		any_frame(f, slot, q.geo.slot_size - RGATE_SLOT_HDR);
		__atomic_store_n(&slot->seq, pos / q.geo.slots + 1, __ATOMIC_RELEASE);
	}
	kick(f, fd);
	munmap(p, q.geo.map_len - q.geo.slots_off);
}

static void attach(struct fuzz *f, int fd)
{
	struct rgate_attach a = { .fd = *any_fd(f) };

	fuzz_mutate(f, &a, sizeof(a));
	fuzz_note(f, ioctl(fd, RGATE_IOC_ATTACH, &a));
}

static void resize(struct fuzz *f, int fd)
{
	struct rgate_resize r = { 0 };

	geometry(f, &r.slots, &r.slot_size);
	fuzz_mutate(f, &r, sizeof(r));
	fuzz_note(f, ioctl(fd, RGATE_IOC_RESIZE, &r));
}

/* The dma-buf is one more file, for mappings and for calls that it does not have. */
static void export(struct fuzz *f, int fd)
{
	struct rgate_export e = { .area = fuzz_below(f, RGATE_AREA_COUNT) };

	fuzz_mutate(f, &e, sizeof(e));
	if (!ioctl(fd, RGATE_IOC_EXPORT, &e))
		put_fd(f, e.fd);
}

static void query(struct fuzz *f, int fd)
{
	struct rgate_query q;

	memset(&q, 0, sizeof(q));
	fuzz_note(f, ioctl(fd, RGATE_IOC_QUERY,
			   fuzz_one_in(f, 16) ? (void *)fuzz_number(f) : &q));
}

/* Any command with any argument; a few of them are the device's own */
static void junk(struct fuzz *f, int fd)
{
	uint8_t buf[512];
	unsigned long cmd;
	size_t i;

	for (i = 0; i < sizeof(buf); i += 8)
		memcpy(buf + i, &(uint64_t){ fuzz_rand(f) }, 8);
	cmd = _IOC(fuzz_below(f, 4), fuzz_one_in(f, 4) ? fuzz_below(f, 256) : RGATE_IOC_MAGIC,
		   fuzz_below(f, 8), fuzz_below(f, 300));
	fuzz_note(f, ioctl(fd, cmd, fuzz_one_in(f, 8) ? (void *)fuzz_number(f) : buf));
}

static void send_fd(struct fuzz *f, int fd)
{
	union {
		char buf[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} u = { 0 };
	struct iovec iov = { "x", 1 };
	struct msghdr m = {
		.msg_iov = &iov, .msg_iovlen = 1,
		.msg_control = u.buf, .msg_controllen = sizeof(u.buf),
	};
	struct cmsghdr *c = CMSG_FIRSTHDR(&m);

	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(c), &fd, sizeof(int));
	fuzz_note(f, sendmsg(f->p->sock, &m, MSG_DONTWAIT | MSG_NOSIGNAL));
}

static void recv_fd(struct fuzz *f)
{
	union {
		char buf[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} u;
	char c1;
	struct iovec iov = { &c1, 1 };
	struct msghdr m = {
		.msg_iov = &iov, .msg_iovlen = 1,
		.msg_control = u.buf, .msg_controllen = sizeof(u.buf),
	};
	struct cmsghdr *c;
	int fd;

	if (recvmsg(f->p->sock, &m, MSG_DONTWAIT | MSG_CMSG_CLOEXEC) <= 0)
		return;
	c = CMSG_FIRSTHDR(&m);
	if (!c || c->cmsg_type != SCM_RIGHTS)
		return;
	memcpy(&fd, CMSG_DATA(c), sizeof(int));
	put_fd(f, fd);
}

static void wait_for(struct fuzz *f, int fd)
{
	struct pollfd p = { .fd = fd, .events = (short)fuzz_below(f, 1 << 10) };

	fuzz_note(f, poll(&p, 1, (int)fuzz_below(f, 3)));
}

void fuzz_file_op(struct fuzz *f)
{
	char buf[64] = { 0 };
	int fd = *any_fd(f);

	switch (fuzz_below(f, 17)) {
	case 0:
	case 1:
		put_fd(f, open(RGATE_DEVICE, (int)fuzz_below(f, 3) | O_CLOEXEC));
		break;
	case 2:
	case 3:
		create(f, fd);
		break;
	case 4:
		attach(f, fd);
		break;
	case 5:
		resize(f, fd);
		break;
	case 6:
		query(f, fd);
		break;
	case 7:
		junk(f, fd);
		break;
	case 8:
		wait_for(f, fd);
		break;
	case 9:
		if (fd >= 0)
			send_fd(f, fd);
		break;
	case 14:
		transmit(f, fd);
		break;
	case 15:
		kick(f, fd);
		break;
	case 16:
		export(f, fd);
		break;
	case 10:
		recv_fd(f);
		break;
	case 11:
		put_fd(f, fcntl(fd, F_DUPFD_CLOEXEC, 3));
		break;
	case 12:
		fuzz_note(f, fuzz_one_in(f, 2) ? read(fd, buf, sizeof(buf)) :
			  pwrite(fd, buf, sizeof(buf), (off_t)fuzz_number(f)));
		break;
	default:
		fd = __atomic_exchange_n(any_fd(f), -1, __ATOMIC_ACQ_REL);
		if (fd >= 0)
			fuzz_note(f, close(fd));
	}
}
