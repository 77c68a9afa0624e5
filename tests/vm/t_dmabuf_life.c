// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * How long dma-bufs keep memory, its charge and the module: in each order of ends, with their
 * owner killed, and when everything happens at once.
 */
#include "lib/vt.h"
#include "lib/vt_dmabuf.h"

#include <sys/resource.h>
#include <sys/syscall.h>

#define UID_A	23480
#define UID_B	23481
#define RUN_MS	4000

#define TO	1	/* the device reads */

static struct vt_ring ring;

/* A user with room for one ring as large as @ring */
static void become(uid_t uid, size_t bytes)
{
	struct rlimit l = { bytes, bytes };

	REQUIRE(!setrlimit(RLIMIT_MEMLOCK, &l));
	REQUIRE(!setgid(uid) && !setuid(uid));
}

static size_t size_of_ring(uint32_t slots)
{
	struct vt_ring r;

	vt_ring_open(&r, slots, 2048, 0, 0);
	vt_ring_close(&r);
	return r.geo.map_len;
}

/* Is there room for a ring of @slots? */
static bool fits(uint32_t slots)
{
	struct rgate_create c = vt_create_req();
	int fd = vt_dev_open(), err;

	c.slots = slots;
	err = ioctl(fd, RGATE_IOC_CREATE, &c) ? errno : 0;
	close(fd);
	EXPECT(!err || err == ENOBUFS);
	return !err;
}

/* All that keeps a ring's memory */
enum end {
	RING_FILE,
	RING_MAP,
	BUF_FILE,
	BUF_MAP,
	IMPORT,
	ENDS
};

struct held {
	void *map;
	int buf, importer;
};

static void hold(struct held *h)
{
	vt_ring_open(&ring, 64, 2048, 0, 0);
	h->buf = vt_exported(ring.fd, RGATE_AREA_SLOTS);
	h->map = mmap(NULL, 8192, PROT_READ, MAP_SHARED, h->buf, 4096);
	REQUIRE(h->map != MAP_FAILED);
	h->importer = vt_importer();
	REQUIRE(!vt_import(h->importer, h->buf, TO, NULL));
}

static void end(struct held *h, enum end what)
{
	switch (what) {
	case RING_FILE:
		close(ring.fd);
		break;
	case RING_MAP:
		vt_ring_unmap(&ring);
		break;
	case BUF_FILE:
		close(h->buf);
		break;
	case BUF_MAP:
		munmap(h->map, 8192);
		break;
	default:
		close(h->importer);
		break;
	}
}

/* The @n-th order of all ends, 0 to 119 */
static void order_of(unsigned int n, enum end *order)
{
	enum end left[ENDS] = { RING_FILE, RING_MAP, BUF_FILE, BUF_MAP, IMPORT };
	unsigned int i, k;

	for (i = 0; i < ENDS; i++) {
		k = n % (ENDS - i);
		n /= ENDS - i;
		order[i] = left[k];
		memmove(left + k, left + k + 1, (ENDS - i - k - 1) * sizeof(*left));
	}
}

static void in_each_order(void)
{
	enum end order[ENDS];
	unsigned int n, i;
	struct held h;

	close(vt_importer());
	become(UID_A, size_of_ring(64));
	for (n = 0; n < 120; n++) {
		order_of(n, order);
		hold(&h);
		for (i = 0; i < ENDS; i++) {
			if (fits(64))
				FAIL("order %u: given back after %u ends", n, i);
			end(&h, order[i]);
		}
		if (!VT_UNTIL(fits(64), 3000))
			DIE("order %u: still charged", n);
	}
}

/* Memory that a resize retired is charged as long as its dma-buf is there. */
static void over_resizes(void)
{
	const size_t one = size_of_ring(64);
	int old, new;

	become(UID_A, 2 * one);
	vt_ring_open(&ring, 64, 2048, 0, 0);
	vt_ring_unmap(&ring);
	old = vt_exported(ring.fd, RGATE_AREA_CONSUMER);
	EXPECT_EQ(vt_ring_resize(ring.fd, 64, 2048, NULL), 0);
	EXPECT(!fits(64));
	EXPECT_EQ(vt_ring_resize(ring.fd, 64, 2048, NULL), -ENOBUFS);
	new = vt_exported(ring.fd, RGATE_AREA_CONSUMER);
	close(old);
	EXPECT(VT_UNTIL(fits(64), 3000));
	/* one that nobody has any more is not kept by the ring after a resize */
	close(new);
	EXPECT_EQ(vt_ring_resize(ring.fd, 64, 2048, NULL), 0);
	EXPECT(VT_UNTIL(fits(64), 3000));
	close(ring.fd);
}

struct owner {
	int pipe[2];
	size_t limit;
};

/* Tells which descriptor the dma-buf is, and waits to be killed */
static int owner(void *arg)
{
	struct owner *o = arg;
	int buf;

	become(UID_A, o->limit);
	vt_ring_open(&ring, 64, 2048, RGATE_RING_RW_SLOTS, 0);
	memset(ring.slots, 0x3c, 64 * 2048);
	buf = vt_exported(ring.fd, RGATE_AREA_SLOTS);
	REQUIRE(write(o->pipe[1], &buf, sizeof(buf)) == sizeof(buf));
	for (;;)
		pause();
}

static int another_fits(void *arg)
{
	struct owner *o = arg;

	become(UID_A, o->limit);
	return !fits(64);
}

static int another_user_fits(void *arg)
{
	struct owner *o = arg;

	become(UID_B, o->limit);
	return !fits(64);
}

static bool fits_for(int (*who)(void *), struct owner *o)
{
	return vt_wait(vt_fork(who, o), 10000) == 0;
}

static void owner_killed(void)
{
	struct owner o = { .limit = size_of_ring(64) };
	int theirs, pidfd, buf, i;
	uint8_t *p;
	pid_t pid;

	REQUIRE(!pipe(o.pipe));
	pid = vt_fork(owner, &o);
	REQUIRE(read(o.pipe[0], &theirs, sizeof(theirs)) == sizeof(theirs));
	pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	REQUIRE(pidfd >= 0);
	buf = (int)syscall(SYS_pidfd_getfd, pidfd, theirs, 0);
	REQUIRE(buf >= 0);
	close(pidfd);
	kill(pid, SIGKILL);
	REQUIRE(waitpid(pid, NULL, 0) == pid);
	p = mmap(NULL, 64 * 2048, PROT_READ | PROT_WRITE, MAP_SHARED, buf, 0);
	REQUIRE(p != MAP_FAILED);
	for (i = 0; i < 64 * 2048; i += 511)
		EXPECT_EQ(p[i], 0x3c);
	memset(p, 0xc3, 64 * 2048);
	/* still on the account of who made the ring, and of no other */
	EXPECT(!fits_for(another_fits, &o));
	EXPECT(fits_for(another_user_fits, &o));
	close(buf);
	EXPECT(!fits_for(another_fits, &o));
	EXPECT_EQ(p[1234], 0xc3);
	munmap(p, 64 * 2048);
	EXPECT(VT_UNTIL(fits_for(another_fits, &o), 5000));
}

/* The ring ends while a device has its slots: it sees what was there last. */
static void ring_gone_while_mapped(void)
{
	uint8_t data[IMPORT_DATA], last[IMPORT_DATA];
	int importer = vt_importer(), buf, tx;
	struct vt_nl nl;

	vt_veth("va", "vb", 0);
	vt_nl_open(&nl);
	vt_ring_open(&ring, 64, 2048, 0, 0);
	vt_att_simple(&nl, "vb", ring.id);
	buf = vt_exported(ring.fd, RGATE_AREA_SLOTS);
	REQUIRE(!vt_import(importer, buf, TO, NULL));
	close(buf);
	tx = vt_tx_open("va");
	vt_tx_burst(tx, 500, 0, 20);
	EXPECT(VT_UNTIL(vt_ring_head(&ring) == 20, 3000));
	memcpy(last, ring.slots + 19 * 2048 + 64, sizeof(last));
	/* nothing reaches it any more after a resize, nor after the ring's end */
	REQUIRE(!vt_ring_resize(ring.fd, 64, 2048, NULL));
	vt_tx_burst(tx, 500, 20, 64);
	vt_ring_close(&ring);
	vt_tx_burst(tx, 500, 84, 10);
	REQUIRE(!vt_import_do(importer, IMPORT_READ, 19 * 2048 + 64, data));
	EXPECT(!memcmp(data, last, sizeof(data)));
	REQUIRE(!vt_import_do(importer, IMPORT_READ, 20 * 2048, data));
	EXPECT_EQ(*(uint64_t *)data, 0);
	/* the module stays as long as that */
	EXPECT_EQ(vt_rmmod(), -EWOULDBLOCK);
	close(importer);
	EXPECT_EQ(vt_rmmod(), 0);
	REQUIRE(!vt_insmod(""));
}

/* Rings and dma-bufs that threads use under each other's feet */
#define FILES	4
static int rings[FILES], bufs[FILES];
static bool stop;
static uint64_t done[5];

static bool running(void)
{
	return !__atomic_load_n(&stop, __ATOMIC_RELAXED);
}

static int pick(int *from)
{
	return __atomic_load_n(&from[vt_rand() % FILES], __ATOMIC_RELAXED);
}

static void replace(int *in, int fd)
{
	int old = __atomic_exchange_n(&in[vt_rand() % FILES], fd, __ATOMIC_ACQ_REL);

	if (old >= 0)
		close(old);
}

static void *creator(void *arg)
{
	(void)arg;
	while (running()) {
		struct rgate_create c = vt_create_req();
		int fd = open(RGATE_DEVICE, O_RDWR | O_CLOEXEC);

		c.slots = 64U << vt_rand() % 3;
		c.flags = (uint32_t)vt_rand() & RGATE_RING_RW_SLOTS;
		if (fd < 0)
			continue;
		done[0] += !ioctl(fd, RGATE_IOC_CREATE, &c);
		replace(rings, fd);
		vt_usleep(500);
	}
	return NULL;
}

static void *resizer(void *arg)
{
	(void)arg;
	while (running())
		done[1] += !vt_ring_resize(pick(rings), 64U << vt_rand() % 3, 2048, NULL);
	return NULL;
}

static void *exporter(void *arg)
{
	(void)arg;
	while (running()) {
		int fd = vt_export(pick(rings), (uint32_t)(vt_rand() % RGATE_AREA_COUNT), NULL);

		if (fd < 0)
			continue;
		done[2]++;
		replace(bufs, fd);
	}
	return NULL;
}

static void *mapper(void *arg)
{
	(void)arg;
	while (running()) {
		int prot = PROT_READ | (vt_rand() & 1 ? PROT_WRITE : 0);
		uint8_t *p = mmap(NULL, 4096, prot, MAP_SHARED, pick(bufs), 0);

		if (p == MAP_FAILED)
			continue;
		(void)*(volatile uint8_t *)p;
		if (prot & PROT_WRITE)
			*(volatile uint8_t *)p = 0xff;
		munmap(p, 4096);
		done[3]++;
	}
	return NULL;
}

static void *importer(void *arg)
{
	int fd = open(IMPORT_DEVICE, O_RDWR | O_CLOEXEC);

	(void)arg;
	while (fd >= 0 && running()) {
		uint8_t data[IMPORT_DATA];

		if (vt_import(fd, pick(bufs), (unsigned int)(vt_rand() % 3), NULL))
			continue;
		(void)vt_import_do(fd, IMPORT_READ, 0, data);
		(void)vt_import_do(fd, IMPORT_VREAD, 0, data);
		ioctl(fd, IMPORT_END);
		done[4]++;
	}
	return NULL;
}

static void at_once(void)
{
	static void *(*const fns[])(void *) = {
		creator, resizer, exporter, exporter, mapper, importer
	};
	pthread_t t[VT_COUNT(fns)];
	unsigned int i;

	for (i = 0; i < FILES; i++)
		rings[i] = bufs[i] = -1;
	/* as anybody can */
	become(UID_A, 16 << 20);
	for (i = 0; i < VT_COUNT(t); i++)
		REQUIRE(!pthread_create(&t[i], NULL, fns[i], NULL));
	vt_usleep(RUN_MS * 1000);
	__atomic_store_n(&stop, true, __ATOMIC_RELAXED);
	for (i = 0; i < VT_COUNT(t); i++)
		pthread_join(t[i], NULL);
	for (i = 0; i < FILES; i++) {
		close(rings[i]);
		close(bufs[i]);
	}
	vt_note("%llu rings, %llu resizes, %llu dma-bufs, %llu mappings, %llu imports",
		(unsigned long long)done[0], (unsigned long long)done[1],
		(unsigned long long)done[2], (unsigned long long)done[3],
		(unsigned long long)done[4]);
	EXPECT_GE(done[0], 10);
	EXPECT_GE(done[1], 10);
	EXPECT_GE(done[2], 100);
	EXPECT_GE(done[3], 10);
	/* all of it was given back: as much fits as at the beginning */
	EXPECT(VT_UNTIL(fits(4096), 5000));
}

static void unloads(void)
{
	int fd;

	vt_ring_open(&ring, 64, 256, 0, 0);
	fd = vt_exported(ring.fd, RGATE_AREA_SLOTS);
	vt_ring_close(&ring);
	EXPECT_EQ(vt_rmmod(), -EWOULDBLOCK);
	close(fd);
	EXPECT_EQ(vt_rmmod(), 0);
	REQUIRE(!vt_insmod(""));
}

static const struct vt_case cases[] = {
	{ .name = "memory and charge end with the last of five, in each order",
	  .fn = in_each_order, .secs = 120 },
	{ .name = "over resizes", .fn = over_resizes },
	{ .name = "the owner is killed", .fn = owner_killed },
	{ .name = "the ring ends while a device has it mapped", .fn = ring_gone_while_mapped },
	{ .name = "everything at once, by a user", .fn = at_once, .secs = 60 },
	{ .name = "a dma-buf keeps the module, its end does not", .fn = unloads },
};

int main(void)
{
	int r;

	vt_importer_load();
	r = vt_run(cases, VT_COUNT(cases));
	vt_importer_unload();
	return r;
}
