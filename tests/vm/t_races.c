// SPDX-License-Identifier: MIT OR GPL-2.0
/* Everything at once: create, resize, mmap, query, attach, receive, close. */
#include "lib/vt.h"

#define RUN_MS 6000

/* Files that threads open, use and close under each other's feet */
#define FILES 4

static int fds[FILES];
static int stop;
static uint64_t done[8];

static int some_fd(void)
{
	return __atomic_load_n(&fds[vt_rand() % FILES], __ATOMIC_RELAXED);
}

static bool running(void)
{
	return !__atomic_load_n(&stop, __ATOMIC_RELAXED);
}

static void *creator(void *arg)
{
	(void)arg;
	while (running()) {
		unsigned int i = (unsigned int)(vt_rand() % FILES);
		int fd = open(RGATE_DEVICE, O_RDWR | O_CLOEXEC);
		struct rgate_create c = vt_create_req();
		int old;

		c.slots = 64U << vt_rand() % 4;
		c.slot_size = 256U << vt_rand() % 4;
		c.flags = (uint32_t)vt_rand() & (RGATE_RING_RW_SLOTS | RGATE_RING_CHAIN);
		c.policy = (uint32_t)(vt_rand() % RGATE_POLICY_COUNT);
		if (fd < 0)
			continue;
		/* sometimes the file is seen before it has its ring */
		if (vt_rand() & 1) {
			old = __atomic_exchange_n(&fds[i], fd, __ATOMIC_ACQ_REL);
			(void)ioctl(fd, RGATE_IOC_CREATE, &c);
		} else {
			(void)ioctl(fd, RGATE_IOC_CREATE, &c);
			old = __atomic_exchange_n(&fds[i], fd, __ATOMIC_ACQ_REL);
		}
		if (old >= 0)
			close(old);
		done[0]++;
	}
	return NULL;
}

static void *resizer(void *arg)
{
	(void)arg;
	while (running())
		done[1] += !vt_ring_resize(some_fd(), 64U << vt_rand() % 5,
					   256U << vt_rand() % 4, NULL);
	return NULL;
}

/* Reads all slots and returns all batches, as any lap */
static void touch(struct vt_ring *r)
{
	uint64_t head = vt_ring_head(r);
	uint32_t i;

	for (i = 0; i < r->geo.slots; i++)
		EXPECT(__atomic_load_n(&vt_ring_slot(r, i)->seq, __ATOMIC_ACQUIRE) <=
		       vt_ring_head(r) / r->geo.slots + 1);
	for (i = 0; i < r->geo.slots / RGATE_BATCH; i++)
		__atomic_store_n(&r->credits[i], vt_ring_lap(r, head) - (vt_rand() & 1),
				 __ATOMIC_RELEASE);
}

static void *mapper(void *arg)
{
	(void)arg;
	while (running()) {
		struct vt_ring r = { .fd = some_fd() };
		struct rgate_query q;

		if (vt_ring_query(r.fd, &q))
			continue;
		r.geo = q.geo;
		/* resized meanwhile: too long, or a shape that is not the one told */
		if (vt_ring_try_map(&r))
			continue;
		EXPECT_EQ(r.prod->magic, RGATE_MAGIC);
		if (r.prod->slots == r.geo.slots && r.prod->slot_size == r.geo.slot_size &&
		    r.prod->ring_id == q.ring_id && !(q.flags & RGATE_RING_RW_SLOTS))
			touch(&r);
		if (vt_rand() & 1)
			(void)madvise(r.map, r.geo.map_len, MADV_DONTNEED);
		EXPECT_EQ(r.prod->magic, RGATE_MAGIC);
		munmap(r.map, r.geo.map_len);
		done[2]++;
	}
	return NULL;
}

static void *attacher(void *arg)
{
	struct vt_nl nl;

	(void)arg;
	vt_nl_open(&nl);
	while (running()) {
		struct rgate_query q;
		struct vt_att a = {
			.ifname = vt_rand() & 1 ? "vb" : "wb", .n = 1,
			.action = (uint32_t)(vt_rand() & 1),
			.prio = (int32_t)(vt_rand() % 5),
		};
		struct vt_att_info info;
		int id;

		if (vt_ring_query(some_fd(), &q))
			continue;
		a.rings[0] = q.ring_id;
		id = vt_att_new(&nl, &a);
		if (id < 0)
			continue;
		if (!vt_ring_query(some_fd(), &q))
			(void)vt_att_join(&nl, (uint32_t)id, q.ring_id);
		(void)vt_att_get(&nl, (uint32_t)id, &info);
		if (vt_rand() & 1)
			(void)vt_att_leave(&nl, (uint32_t)id, q.ring_id);
		(void)vt_att_del(&nl, (uint32_t)id);
		done[3]++;
	}
	vt_nl_close(&nl);
	return NULL;
}

static void *handles(void *arg)
{
	(void)arg;
	while (running()) {
		struct rgate_attach a = { .fd = some_fd() };
		int fd = open(RGATE_DEVICE, O_RDWR | O_CLOEXEC);
		struct pollfd p = { .fd = fd, .events = POLLIN };

		if (fd < 0)
			continue;
		if (!ioctl(fd, RGATE_IOC_ATTACH, &a)) {
			poll(&p, 1, (int)(vt_rand() & 1));
			done[4]++;
		}
		close(fd);
	}
	return NULL;
}

static void *dumper(void *arg)
{
	struct vt_nl nl;

	(void)arg;
	vt_nl_open(&nl);
	while (running()) {
		EXPECT_GE(vt_nl_count(&nl, RGATE_CMD_RING_GET), 0);
		EXPECT_GE(vt_nl_count(&nl, RGATE_CMD_ATT_GET), 0);
		done[5]++;
	}
	vt_nl_close(&nl);
	return NULL;
}

static void everything_at_once(void)
{
	static void *(*const fn[])(void *) = {
		creator, resizer, mapper, attacher, handles, dumper,
	};
	struct vt_traffic t[2] = {
		{ .ifname = "va", .len = 900, .cpu = 0, .pause_us = 300 },
		{ .ifname = "wa", .len = 90, .cpu = 1, .pause_us = 300 },
	};
	pthread_t th[VT_COUNT(fn)];
	struct vt_nl nl;
	size_t i;

	vt_veth("va", "vb", 0);
	vt_veth("wa", "wb", 0);
	for (i = 0; i < FILES; i++)
		fds[i] = -1;
	vt_traffic_start(&t[0]);
	vt_traffic_start(&t[1]);
	for (i = 0; i < VT_COUNT(fn); i++)
		REQUIRE(!pthread_create(&th[i], NULL, fn[i], NULL));
	vt_usleep(RUN_MS * 1000);
	__atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
	for (i = 0; i < VT_COUNT(fn); i++)
		pthread_join(th[i], NULL);
	vt_traffic_stop(&t[0]);
	vt_traffic_stop(&t[1]);
	for (i = 0; i < FILES; i++)
		if (fds[i] >= 0)
			close(fds[i]);
	vt_note("created %llu, resized %llu, mapped %llu, attached %llu, handles %llu, dumps %llu",
		(unsigned long long)done[0], (unsigned long long)done[1],
		(unsigned long long)done[2], (unsigned long long)done[3],
		(unsigned long long)done[4], (unsigned long long)done[5]);
	for (i = 0; i < VT_COUNT(fn); i++)
		EXPECT_GE(done[i], 1);
	vt_nl_open(&nl);
	EXPECT_EQ(vt_nl_count(&nl, RGATE_CMD_RING_GET), 0);
	EXPECT_EQ(vt_nl_count(&nl, RGATE_CMD_ATT_GET), 0);
}

/* One file, its CREATE raced by CREATE, ATTACH, mmap and QUERY */
static int race_fd, other_fd, won;
static pthread_barrier_t gate;

static void *try_once(void *arg)
{
	long how = (long)arg;
	struct rgate_create c = vt_create_req();
	struct rgate_attach a = { .fd = other_fd };
	struct rgate_query q;
	int ok = 0;

	pthread_barrier_wait(&gate);
	switch (how) {
	case 0:
	case 1:
		ok = !ioctl(race_fd, RGATE_IOC_CREATE, &c);
		break;
	case 2:
		ok = !ioctl(race_fd, RGATE_IOC_ATTACH, &a);
		break;
	default:
		if (!vt_ring_query(race_fd, &q)) {
			void *p = mmap(NULL, q.geo.map_len, PROT_READ, MAP_SHARED,
				       race_fd, 0);

			if (p == MAP_FAILED)
				FAIL("mmap as QUERY said: %s", strerror(errno));
			else if (((struct rgate_prod *)p)->magic != RGATE_MAGIC)
				FAIL("no magic in a ring that QUERY knows");
			munmap(p, q.geo.map_len);
		}
	}
	__atomic_fetch_add(&won, ok, __ATOMIC_RELAXED);
	return NULL;
}

static void one_create_wins(void)
{
	struct vt_ring other;
	pthread_t th[4];
	unsigned int i;
	long k;

	vt_ring_open(&other, 64, 256, 0, 0);
	other_fd = other.fd;
	for (i = 0; i < 300; i++) {
		race_fd = vt_dev_open();
		won = 0;
		pthread_barrier_init(&gate, NULL, 4);
		for (k = 0; k < 4; k++)
			REQUIRE(!pthread_create(&th[k], NULL, try_once, (void *)k));
		for (k = 0; k < 4; k++)
			pthread_join(th[k], NULL);
		pthread_barrier_destroy(&gate);
		EXPECT_EQ(won, 1);
		close(race_fd);
	}
	{
		struct rgate_query q;

		REQUIRE(!vt_ring_query(other.fd, &q));
		EXPECT_EQ(q.handles, 1);
	}
}

/* Resizes from several threads follow one another: every generation once */
static void *resize_many(void *arg)
{
	uint8_t *seen = arg;
	unsigned int i;

	for (i = 0; i < 100; i++) {
		struct rgate_geometry g;

		if (vt_ring_resize(race_fd, 64U << vt_rand() % 3, 256, &g))
			FAIL("resize");
		else if (g.generation < 402)
			__atomic_fetch_add(&seen[g.generation], 1, __ATOMIC_RELAXED);
	}
	return NULL;
}

static void resizes_in_line(void)
{
	uint8_t seen[402] = { 0 };
	struct rgate_query q;
	struct vt_ring r;
	pthread_t th[4];
	unsigned int i;

	vt_ring_open(&r, 64, 256, 0, 0);
	race_fd = r.fd;
	for (i = 0; i < 4; i++)
		REQUIRE(!pthread_create(&th[i], NULL, resize_many, seen));
	for (i = 0; i < 4; i++)
		pthread_join(th[i], NULL);
	for (i = 2; i < 402; i++)
		EXPECT_EQ(seen[i], 1);
	REQUIRE(!vt_ring_query(r.fd, &q));
	EXPECT_EQ(q.geo.generation, 401);
}

/* Processes that fork, map and die at random with a ring open */
static int dies(void *arg)
{
	struct vt_ring *r = arg, h;
	struct vt_nl nl;

	vt_nl_open(&nl);
	vt_ring_attach(&h, r->fd);
	(void)vt_att_simple(&nl, "vb", r->id);
	while (vt_ring_state(&h) == RGATE_STATE_ACTIVE) {
		(void)vt_ring_wait(&h, 1);
		h.pos = vt_ring_head(&h);
	}
	return 1;
}

static void dying_processes(void)
{
	struct vt_traffic t = { .ifname = "va", .len = 200, .cpu = 1, .pause_us = 200 };
	struct vt_ring r;
	struct vt_nl nl;
	unsigned int i;

	vt_veth("va", "vb", 0);
	vt_nl_open(&nl);
	vt_traffic_start(&t);
	for (i = 0; i < 20; i++) {
		pid_t pid[3];
		int k;

		vt_ring_open(&r, 128, 512, 0, RGATE_POLICY_OVERWRITE);
		for (k = 0; k < 3; k++)
			pid[k] = vt_fork(dies, &r);
		vt_usleep((unsigned int)(vt_rand() % 60000));
		vt_ring_close(&r);
		for (k = 0; k < 3; k++) {
			kill(pid[k], SIGKILL);
			waitpid(pid[k], NULL, 0);
		}
		EXPECT_EQ(vt_nl_count(&nl, RGATE_CMD_RING_GET), 0);
		EXPECT_EQ(vt_nl_count(&nl, RGATE_CMD_ATT_GET), 0);
	}
	vt_traffic_stop(&t);
}

static uint64_t sets, set_ns;

/* One request after the other, each with the longest filter there may be */
static void *compiler(void *arg)
{
	static struct sock_filter code[RGATE_FILTER_LEN_MAX];
	static char buf[VT_NL_BUF];
	uint32_t id = *(uint32_t *)arg;
	struct vt_nl nl;
	uint64_t cookie, t;
	unsigned int i;

	for (i = 0; i < VT_COUNT(code) - 1; i++)
		code[i] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, i % 64);
	code[i] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, 65535);
	vt_nl_open(&nl);
	cookie = vt_att_cookie(&nl, id);
	while (running()) {
		struct nlmsghdr *nlh = vt_nl_req(&nl, buf, RGATE_CMD_ATT_SET, 0);

		vt_nl_put_att(nlh, id, cookie);
		mnl_attr_put(nlh, RGATE_A_ATT_FILTER, sizeof(code), code);
		t = vt_now();
		EXPECT_EQ(vt_nl_talk(&nl, nlh, NULL, NULL), 0);
		set_ns += vt_now() - t;
		sets++;
	}
	vt_nl_close(&nl);
	return NULL;
}

static int later(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

/*
 * Who compiles a filter holds nobody up: a question that takes no time is answered in
 * a fraction of what the filter takes, most times at least.
 */
static void compiling_aside(void)
{
	static uint64_t took[300];
	struct vt_att_info info;
	struct vt_ring r;
	struct vt_nl nl;
	pthread_t th;
	uint32_t id;
	size_t i;

	vt_veth("va", "vb", 0);
	vt_nl_open(&nl);
	vt_ring_open(&r, 64, 256, 0, 0);
	id = vt_att_simple(&nl, "vb", r.id);
	stop = 0;
	REQUIRE(!pthread_create(&th, NULL, compiler, &id));
	for (i = 0; i < VT_COUNT(took); i++) {
		uint64_t t;

		vt_usleep(2000 + (unsigned int)(vt_rand() % 5000));
		t = vt_now();
		REQUIRE(!vt_att_get(&nl, id, &info));
		took[i] = vt_now() - t;
	}
	__atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
	pthread_join(th, NULL);
	REQUIRE(sets);
	qsort(took, VT_COUNT(took), sizeof(took[0]), later);
	vt_note("a filter takes %llu us, a question meanwhile %llu us (median)",
		(unsigned long long)(set_ns / sets / 1000),
		(unsigned long long)took[VT_COUNT(took) / 2] / 1000);
	EXPECT_LE(took[VT_COUNT(took) / 2], set_ns / sets / 6);
}

static const struct vt_case cases[] = {
	{ .name = "six kinds of threads and two senders", .fn = everything_at_once },
	{ .name = "of four racing CREATEs and ATTACHes one wins", .fn = one_create_wins },
	{ .name = "resizes follow one another", .fn = resizes_in_line },
	{ .name = "processes die with the ring open", .fn = dying_processes },
	{ .name = "filters are compiled aside", .fn = compiling_aside },
};

VT_MAIN(cases)
