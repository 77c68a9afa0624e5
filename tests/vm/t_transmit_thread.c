// SPDX-License-Identifier: MIT OR GPL-2.0
/* The thread that sends for who makes no system call. */
#include "lib/vt.h"
#include "lib/vt_send.h"

#include <dirent.h>

#define PM_TEST	"/sys/power/pm_test"

/* The kernel's, in /proc/PID/stat */
#ifndef PF_EXITING
#define PF_EXITING	0x00000004
#endif
#ifndef PF_NOFREEZE
#define PF_NOFREEZE	0x00008000
#endif

static struct vt_nl nl;
static struct vt_send s;
static uint32_t att;

static void setup(uint32_t slots, uint32_t share)
{
	vt_veth("va", "vb", 0);
	vt_nl_open(&nl);
	vt_send_open(&s, slots, 256);
	att = vt_send_bind_thread(&nl, &s, "va", share);
}

/* The first line of /proc/@pid/@file */
static bool line_of(const char *pid, const char *file, char *line, int size)
{
	char path[300];
	FILE *f;
	bool ok;

	snprintf(path, sizeof(path), "/proc/%s/%s", pid, file);
	f = fopen(path, "re");
	if (!f)
		return false;
	ok = fgets(line, size, f);
	fclose(f);
	return ok;
}

/*
 * PF_EXITING: it has begun to end. kthread_stop() returns when the thread runs nothing of the
 * module any more; it is in /proc for a moment longer, until the kernel has taken it apart.
 */
static unsigned int flags_of(const char *pid)
{
	char line[128], *state;
	unsigned int flags;

	if (!line_of(pid, "stat", line, sizeof(line)))
		return PF_EXITING;
	state = strrchr(line, ')');
	REQUIRE(state && sscanf(state, ") %*c %*d %*d %*d %*d %*d %u", &flags) == 1);
	return flags;
}

/* CPU time of the ring's thread, ns; -1: it has none */
static long long thread_ns(uint32_t ring)
{
	long long ns = -1;
	char want[32], line[128];
	struct dirent *e;
	DIR *d = opendir("/proc");

	REQUIRE(d);
	snprintf(want, sizeof(want), "rgate_tx/%u\n", ring);
	while (ns < 0 && (e = readdir(d)))
		if (*e->d_name >= '0' && *e->d_name <= '9' &&
		    line_of(e->d_name, "comm", line, sizeof(line)) && !strcmp(line, want) &&
		    !(flags_of(e->d_name) & PF_EXITING))
			ns = line_of(e->d_name, "schedstat", line, sizeof(line)) ?
				atoll(line) : 0;
	closedir(d);
	return ns;
}

/* Is all taken that was published? */
static bool taken(void)
{
	return __atomic_load_n(&s.r.prod->head, __ATOMIC_ACQUIRE) == s.pos;
}

/* Can the ring's thread be frozen? Who stops it would wait until it is thawed. */
static bool freezable(uint32_t ring)
{
	char path[64], line[16];
	FILE *f;
	bool ok;

	snprintf(path, sizeof(path), "pgrep -x 'rgate_tx/%u'", ring);
	f = popen(path, "re");
	REQUIRE(f);
	ok = fgets(line, sizeof(line), f);
	pclose(f);
	REQUIRE(ok);
	line[strcspn(line, "\n")] = '\0';
	return !(flags_of(line) & PF_NOFREEZE);
}

static void asked_for(void)
{
	struct vt_att a = { .ifname = "va", .n = 1, .kind = RGATE_KIND_TRANSMIT, .thread = 101 };
	struct vt_att_info info;
	struct vt_send s2;
	struct vt_ring rx;

	vt_veth("va", "vb", 0);
	vt_nl_open(&nl);
	vt_send_open(&s, 64, 256);
	EXPECT(vt_send_need_wakeup(&s));
	a.rings[0] = s.r.id;
	EXPECT_EQ(vt_att_new(&nl, &a), -ERANGE);
	vt_ring_open(&rx, 64, 256, 0, 0);
	EXPECT_EQ(rx.prod->need_wakeup, 0);
	a = (struct vt_att){ .ifname = "va", .n = 1, .rings = { rx.id }, .thread = 1 };
	EXPECT_EQ(vt_att_new(&nl, &a), -EOPNOTSUPP);
	EXPECT_EQ(thread_ns(s.r.id), -1);
	att = vt_send_bind_thread(&nl, &s, "va", 40);
	EXPECT_EQ(vt_att_get(&nl, att, &info), 0);
	EXPECT_EQ(info.thread, 40);
	EXPECT_GE(thread_ns(s.r.id), 0);
	EXPECT(!freezable(s.r.id));
	/* one for each ring, for as long as it is bound */
	vt_send_open(&s2, 64, 256);
	EXPECT_EQ(vt_att_join(&nl, att, s2.r.id), 0);
	EXPECT_GE(thread_ns(s2.r.id), 0);
	EXPECT_EQ(vt_att_leave(&nl, att, s2.r.id), 0);
	EXPECT_EQ(thread_ns(s2.r.id), -1);
	EXPECT(vt_send_need_wakeup(&s2));
	EXPECT_GE(thread_ns(s.r.id), 0);
	/* one that fails with its second ring leaves no thread with the first */
	a = (struct vt_att){
		.ifname = "va", .n = 2, .rings = { s2.r.id, s.r.id },
		.kind = RGATE_KIND_TRANSMIT, .thread = 1,
	};
	EXPECT_EQ(vt_att_new(&nl, &a), -EBUSY);
	EXPECT_EQ(thread_ns(s2.r.id), -1);
	EXPECT_EQ(vt_att_del(&nl, att), 0);
	EXPECT_EQ(thread_ns(s.r.id), -1);
	EXPECT(vt_send_need_wakeup(&s));
}

/* A user's own user and network namespace: he sends in there, on his own time */
static int as_own_netns(void *arg)
{
	struct vt_nl mine;
	struct vt_att a = {
		.ifname = "lo", .n = 1, .kind = RGATE_KIND_TRANSMIT, .thread = 1,
	};
	int id;

	(void)arg;
	REQUIRE(!setgid(12345) && !setuid(12345));
	if (unshare(CLONE_NEWUSER | CLONE_NEWNET)) {
		vt_note("no user namespace for an unprivileged user here: %s", strerror(errno));
		return 0;
	}
	vt_nl_open(&mine);
	vt_send_open(&s, 64, 256);
	a.rings[0] = s.r.id;
	EXPECT_EQ(vt_att_new(&mine, &a), -EPERM);
	EXPECT_EQ(thread_ns(s.r.id), -1);
	a.thread = 0;
	id = vt_att_new(&mine, &a);
	EXPECT_GE(id, 1);
	EXPECT_EQ(vt_att_del(&mine, (uint32_t)id), 0);
	return 0;
}

static void others(void)
{
	EXPECT_EQ(vt_wait(vt_fork(as_own_netns, NULL), 10000), 0);
}

/* What has arrived by now, in order */
static void hear(int fd, struct vt_seen *seen)
{
	static uint8_t buf[2048];
	uint64_t seq;
	ssize_t len;

	while ((len = recv(fd, buf, sizeof(buf), MSG_DONTWAIT)) > 0) {
		REQUIRE(vt_pkt_check(buf, (size_t)len, &seq));
		EXPECT_EQ(seq, seen->got);
		vt_seen_add(seen, seq);
	}
}

/* Laps of a ring, and no system call for any of it */
static void no_call(void)
{
	const unsigned int n = 1000;
	unsigned int sent = 0;
	struct vt_seen seen;
	int fd;

	setup(64, 100);
	fd = vt_stack_open("vb");
	vt_seen_init(&seen, n);
	while (sent < n) {
		REQUIRE(VT_UNTIL(vt_send_next(&s), 3000));
		while (sent < n && vt_send_udp(&s, 60 + sent % 100, sent))
			sent++;
		hear(fd, &seen);
	}
	EXPECT(VT_UNTIL((hear(fd, &seen), seen.got == n), 3000));
	EXPECT(taken());
	EXPECT_EQ(seen.dup + seen.alien, 0);
	EXPECT_EQ(vt_att_stat(&nl, att, RGATE_A_ATT_STATS_DELIVERED), n);
	close(fd);
}

/* Nothing to do: it says so, and takes next to no time */
static void idle(void)
{
	long long before;
	unsigned int i, kicks = 0;

	setup(64, 100);
	EXPECT(VT_UNTIL(vt_send_need_wakeup(&s), 3000));
	before = thread_ns(s.r.id);
	vt_usleep(2000000);
	EXPECT_LE(thread_ns(s.r.id) - before, 200000000);
	EXPECT(vt_send_need_wakeup(&s));
	/* frame by frame, by the rules: ask if it says so */
	for (i = 0; i < 500; i++) {
		REQUIRE(vt_send_udp(&s, 100, i));
		if (vt_send_need_wakeup(&s)) {
			EXPECT_GE(vt_send_kick(&s, 0, NULL), 0);
			kicks++;
		}
		REQUIRE(VT_UNTIL(taken(), 3000));
		vt_usleep((unsigned int)vt_rand() % 700);
	}
	vt_note("%u of 500 frames were asked for", kicks);
	EXPECT_GE(kicks, 1);
	EXPECT(VT_UNTIL(vt_send_need_wakeup(&s), 3000));
}

struct feeder {
	pthread_t th;
	int stop;
};

/* Always more frames, and never a call */
static void *feed(void *arg)
{
	struct feeder *f = arg;
	uint64_t seq = 0;

	vt_pin(1);
	while (!__atomic_load_n(&f->stop, __ATOMIC_RELAXED))
		if (vt_send_udp(&s, 100, seq))
			seq++;
	return NULL;
}

static void feeder_start(struct feeder *f)
{
	f->stop = 0;
	REQUIRE(!pthread_create(&f->th, NULL, feed, f));
}

static void feeder_stop(struct feeder *f)
{
	__atomic_store_n(&f->stop, 1, __ATOMIC_RELAXED);
	pthread_join(f->th, NULL);
}

struct taken {
	unsigned int percent;	/* of a CPU */
	unsigned int at_once;	/* of that, in one go: it can look at its account only between */
};

/* What it takes while there is always more to do */
static struct taken busy(uint32_t share)
{
	long long first, last, now, most = 0;
	uint64_t start, took, head;
	struct feeder f;
	unsigned int i;

	/* so many that there is always one, however the CPUs of a VM take their turns */
	setup(8192, share);
	vt_pin(0);
	feeder_start(&f);
	vt_usleep(300000);
	start = vt_now();
	head = s.r.prod->head;
	first = last = thread_ns(s.r.id);
	for (i = 0; i < 60; i++) {
		vt_usleep(50000);
		now = thread_ns(s.r.id);
		most = now - last > most ? now - last : most;
		last = now;
	}
	took = vt_now() - start;
	EXPECT_GE(s.r.prod->head, head + 10);
	feeder_stop(&f);
	vt_ring_close(&s.r);
	vt_nl_close(&nl);
	vt_must("ip link del va");
	vt_note("share %u: %lld of %llu ms, at most %lld at once", share, (last - first) / 1000000,
		(unsigned long long)took / 1000000, most / 1000000);
	return (struct taken){ .percent = (unsigned int)((uint64_t)(last - first) * 100 / took),
			       .at_once = (unsigned int)((uint64_t)most * 100 / took) };
}

static void share(void)
{
	struct taken all, some;
	char line[128];

	if (!line_of("self", "schedstat", line, sizeof(line)) || !atoll(line))
		vt_skip("this kernel does not count what a task takes (CONFIG_SCHEDSTATS)");
	all = busy(100);
	some = busy(15);
	/* What it took in one go, when its CPU of the VM stood still, it sleeps for later. */
	EXPECT_LE(some.percent - some.at_once, 20);
	if (vt_cpus() > 1)
		EXPECT_GE(all.percent, some.percent - some.at_once + 15);
	EXPECT_GE(some.percent, 2);
}

/* A queue that is full, a device that is down: it goes on when they do */
static void waits(void)
{
	unsigned int i;

	setup(64, 100);
	if (vt_sh("tc qdisc add dev va root tbf rate 8kbit burst 2000 limit 4000000"))
		vt_skip("no tbf here");
	for (i = 0; i < 64; i++)
		REQUIRE(vt_send_udp(&s, 150, i));
	EXPECT(VT_UNTIL(taken(), 3000));
	for (i = 0; i < 64; i++)
		REQUIRE(vt_send_udp(&s, 150, i));
	vt_usleep(200000);
	EXPECT(!taken());
	EXPECT_LE(thread_ns(s.r.id), 1000000000);
	vt_must("tc qdisc del dev va root");
	EXPECT(VT_UNTIL(taken(), 3000));
	vt_must("ip link set va down");
	REQUIRE(vt_send_udp(&s, 150, i));
	vt_usleep(100000);
	EXPECT(!taken());
	/* who asks hears why */
	EXPECT(VT_UNTIL(vt_send_need_wakeup(&s), 1000));
	EXPECT_EQ(vt_send_kick(&s, 0, NULL), -ENETDOWN);
	vt_must("ip link set va up");
	EXPECT(VT_UNTIL(taken(), 3000));
}

/* The device, or the attachment, goes while the thread is busy */
static void ends(void)
{
	struct feeder f;
	unsigned int i;

	vt_nl_open(&nl);
	vt_send_open(&s, 64, 256);
	feeder_start(&f);
	for (i = 0; i < 12; i++) {
		uint64_t head = s.r.prod->head;

		vt_veth("va", "vb", 0);
		att = vt_send_bind_thread(&nl, &s, "va", 100);
		if (i % 4 != 3)
			EXPECT(VT_UNTIL(s.r.prod->head != head, 3000));
		if (i % 2)
			EXPECT_EQ(vt_att_del(&nl, att), 0);
		vt_must("ip link del %s", i & 2 ? "va" : "vb");
		EXPECT_EQ(thread_ns(s.r.id), -1);
		EXPECT(vt_send_need_wakeup(&s));
		EXPECT_EQ(vt_send_kick(&s, 0, NULL), -ENOTCONN);
	}
	feeder_stop(&f);
}

/* The namespace goes, the ring goes; then the module can */
static void all_ends(void)
{
	int mine = vt_netns_self(), ns = vt_netns_new(), err;
	struct feeder f;

	vt_netns_enter(ns);
	setup(64, 100);
	vt_nl_close(&nl);
	vt_netns_enter(mine);
	feeder_start(&f);
	EXPECT(VT_UNTIL(s.r.prod->head > 64, 3000));
	err = vt_rmmod();
	EXPECT(err == -EWOULDBLOCK || err == -EBUSY);
	close(ns);
	EXPECT(VT_UNTIL(thread_ns(s.r.id) < 0, 10000));
	feeder_stop(&f);
	vt_ring_close(&s.r);
	/* frames in hand, and nobody waits for them */
	setup(64, 100);
	while (vt_send_udp(&s, 100, s.pos))
		;
	vt_ring_close(&s.r);
	vt_nl_close(&nl);
	EXPECT(VT_UNTIL(!vt_rmmod(), 10000));
	EXPECT(!vt_loaded());
	REQUIRE(!vt_insmod(""));
}

static int put(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC), r;

	if (fd < 0)
		return -errno;
	r = write(fd, text, strlen(text)) < 0 ? -errno : 0;
	close(fd);
	return r;
}

/* As for a suspend, without one: all tasks are frozen for seconds, kernel threads too */
static void frozen(void)
{
	struct feeder f;
	uint64_t head;

	if (put(PM_TEST, "freezer"))
		vt_skip("this kernel has no %s", PM_TEST);
	setup(64, 100);
	feeder_start(&f);
	EXPECT(VT_UNTIL(s.r.prod->head > 64, 3000));
	EXPECT_EQ(put("/sys/power/state", "freeze"), 0);
	head = s.r.prod->head;
	EXPECT(VT_UNTIL(s.r.prod->head > head + 64, 3000));
	feeder_stop(&f);
	/* and while it sleeps */
	EXPECT(VT_UNTIL(taken() && vt_send_need_wakeup(&s), 3000));
	EXPECT_EQ(put("/sys/power/state", "freeze"), 0);
	REQUIRE(vt_send_udp(&s, 100, 0));
	EXPECT(VT_UNTIL(taken(), 3000));
	put(PM_TEST, "none");
}

static const struct vt_case cases[] = {
	{ .name = "who has a thread, and how long", .fn = asked_for },
	{ .name = "not for everybody", .fn = others },
	{ .name = "frames without a system call", .fn = no_call },
	{ .name = "it sleeps, and says so", .fn = idle },
	{ .name = "no more than its share", .fn = share },
	{ .name = "it waits for the device", .fn = waits },
	{ .name = "device or attachment end while it sends", .fn = ends },
	{ .name = "namespace, ring and module end", .fn = all_ends },
	{ .name = "frozen", .fn = frozen },
};

VT_MAIN(cases)
