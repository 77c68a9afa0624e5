// SPDX-License-Identifier: MIT OR GPL-2.0
#include "vt.h"

#include <stdarg.h>
#include <arpa/inet.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <sys/socket.h>

static int shell(const char *fmt, va_list ap)
{
	char cmd[1024];
	int st;

	vsnprintf(cmd, sizeof(cmd), fmt, ap);
	st = system(cmd);
	return WIFEXITED(st) ? WEXITSTATUS(st) : -1;
}

int vt_sh(const char *fmt, ...)
{
	va_list ap;
	int r;

	va_start(ap, fmt);
	r = shell(fmt, ap);
	va_end(ap);
	return r;
}

void vt_must(const char *fmt, ...)
{
	va_list ap;
	int r;

	va_start(ap, fmt);
	r = shell(fmt, ap);
	va_end(ap);
	if (r)
		DIE("command failed with %d: %s", r, fmt);
}

static void put(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);

	if (fd < 0)
		return;
	if (write(fd, text, strlen(text)) < 0)
		vt_note("%s: %s", path, strerror(errno));
	close(fd);
}

static void lo_up(void)
{
	struct ifreq ifr = { .ifr_name = "lo", .ifr_flags = IFF_UP };
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	REQUIRE(fd >= 0);
	REQUIRE(!ioctl(fd, SIOCSIFFLAGS, &ifr));
	close(fd);
}

void vt_ipv6_off(void)
{
	put("/proc/sys/net/ipv6/conf/default/disable_ipv6", "1");
}

void vt_netns_fresh(void)
{
	if (unshare(CLONE_NEWNET))
		DIE("unshare: %s", strerror(errno));
	put("/proc/sys/net/ipv6/conf/all/disable_ipv6", "1");
	vt_ipv6_off();
	lo_up();
}

int vt_netns_self(void)
{
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "/proc/self/task/%d/ns/net", gettid());
	fd = open(path, O_RDONLY | O_CLOEXEC);
	REQUIRE(fd >= 0);
	return fd;
}

void vt_netns_enter(int fd)
{
	if (setns(fd, CLONE_NEWNET))
		DIE("setns: %s", strerror(errno));
}

int vt_netns_new(void)
{
	int old = vt_netns_self(), fd;

	vt_netns_fresh();
	fd = vt_netns_self();
	vt_netns_enter(old);
	close(old);
	return fd;
}

void vt_netns_must(int fd, const char *fmt, ...)
{
	int old = vt_netns_self(), r;
	va_list ap;

	vt_netns_enter(fd);
	va_start(ap, fmt);
	r = shell(fmt, ap);
	va_end(ap);
	vt_netns_enter(old);
	close(old);
	if (r)
		DIE("command failed with %d: %s", r, fmt);
}

const char *vt_netns_path(int fd)
{
	static __thread char path[64];

	snprintf(path, sizeof(path), "/proc/%d/fd/%d", getpid(), fd);
	return path;
}

unsigned int vt_ifindex(const char *ifname)
{
	unsigned int i = if_nametoindex(ifname);

	if (!i)
		DIE("no device %s", ifname);
	return i;
}

void vt_mac(const char *ifname, uint8_t mac[6])
{
	struct ifreq ifr = { 0 };
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	REQUIRE(fd >= 0);
	strncpy(ifr.ifr_name, ifname, IFNAMSIZ - 1);
	REQUIRE(!ioctl(fd, SIOCGIFHWADDR, &ifr));
	memcpy(mac, ifr.ifr_hwaddr.sa_data, 6);
	close(fd);
}

/* The end of a veth that was up first gets its carrier from the other one, for example. */
void vt_wait_active(const char *ifname)
{
	struct ifreq ifr = { 0 };
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	REQUIRE(fd >= 0);
	strncpy(ifr.ifr_name, ifname, IFNAMSIZ - 1);
	if (!VT_UNTIL(!ioctl(fd, SIOCGIFFLAGS, &ifr) && ifr.ifr_flags & IFF_RUNNING, 20000))
		DIE("%s does not run", ifname);
	/* Its queue comes behind the flag, under a lock that a change takes; so does none. */
	REQUIRE(!ioctl(fd, SIOCSIFFLAGS, &ifr));
	close(fd);
}

void vt_veth(const char *a, const char *b, unsigned int mtu)
{
	if (!mtu)
		mtu = 1500;
	vt_must("ip link add %s mtu %u type veth peer name %s mtu %u && "
		"ip link set %s up && ip link set %s up", a, mtu, b, mtu, a, b);
	vt_wait_active(a);
}

void vt_veth_ns(const char *a, const char *b, int ns, unsigned int mtu)
{
	if (!mtu)
		mtu = 1500;
	vt_must("ip link add %s mtu %u type veth peer name %s mtu %u && "
		"ip link set %s netns %s && ip addr add 10.9.0.1/24 dev %s && "
		"ip link set %s up", a, mtu, b, mtu, b, vt_netns_path(ns), a, a);
	vt_netns_must(ns, "ip addr add 10.9.0.2/24 dev %s && ip link set %s up",
		      b, b);
	vt_wait_active(a);
}

int vt_tx_open(const char *ifname)
{
	struct sockaddr_ll ll = {
		.sll_family = AF_PACKET,
		.sll_ifindex = (int)vt_ifindex(ifname),
	};
	int size = 1 << 22;
	int fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0);

	REQUIRE(fd >= 0);
	setsockopt(fd, SOL_SOCKET, SO_SNDBUFFORCE, &size, sizeof(size));
	REQUIRE(!bind(fd, (struct sockaddr *)&ll, sizeof(ll)));
	return fd;
}

int vt_tx_send(int fd, const void *frame, size_t len)
{
	unsigned int tries;

	for (tries = 0; tries < 1000; tries++) {
		if (send(fd, frame, len, 0) == (ssize_t)len)
			return 0;
		if (errno != ENOBUFS && errno != EINTR && errno != EAGAIN)
			return -errno;
		vt_usleep(1000);
	}
	return -ENOBUFS;
}

unsigned int vt_tx_burst(int fd, size_t len, uint64_t seq, unsigned int n)
{
	static __thread uint8_t buf[65536];
	unsigned int i;

	for (i = 0; i < n; i++) {
		vt_pkt_udp(buf, len, seq + i, 0);
		if (vt_tx_send(fd, buf, len))
			break;
	}
	return i;
}

int vt_stack_open(const char *ifname)
{
	/*
	 * Bound to one ethertype, so it is called behind the ingress hook; a
	 * socket for ETH_P_ALL would be called before it.
	 */
	struct sockaddr_ll ll = {
		.sll_family = AF_PACKET,
		.sll_protocol = htons(ETH_P_IP),
		.sll_ifindex = (int)vt_ifindex(ifname),
	};
	int size = 1 << 24;
	int fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	REQUIRE(fd >= 0);
	setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &size, sizeof(size));
	REQUIRE(!bind(fd, (struct sockaddr *)&ll, sizeof(ll)));
	return fd;
}

unsigned int vt_stack_drain(int fd, unsigned int ms)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	unsigned int n = 0;
	char c;

	if (poll(&p, 1, (int)ms) <= 0)
		return 0;
	while (recv(fd, &c, 1, MSG_TRUNC) >= 0)
		n++;
	return n;
}

static void *traffic_thread(void *arg)
{
	struct vt_traffic *t = arg;
	uint8_t buf[65536];

	vt_pin(t->cpu);
	while (!__atomic_load_n(&t->stop, __ATOMIC_RELAXED)) {
		int r;

		vt_pkt_udp(buf, t->len, t->sent, 0);
		r = vt_tx_send(t->fd, buf, t->len);
		if (r) {
			t->err = r;
			break;
		}
		__atomic_store_n(&t->sent, t->sent + 1, __ATOMIC_RELEASE);
		if (t->pause_us && !(t->sent & 15))
			vt_usleep(t->pause_us);
	}
	return NULL;
}

void vt_traffic_start(struct vt_traffic *t)
{
	pthread_t th;

	t->stop = 0;
	t->err = 0;
	if (!t->len)
		t->len = 128;
	t->fd = vt_tx_open(t->ifname);
	REQUIRE(!pthread_create(&th, NULL, traffic_thread, t));
	t->thread = th;
}

void vt_traffic_stop(struct vt_traffic *t)
{
	__atomic_store_n(&t->stop, 1, __ATOMIC_RELAXED);
	pthread_join(t->thread, NULL);
	close(t->fd);
}

int vt_tun_open(const char *ifname, int flags, unsigned int mtu)
{
	struct ifreq ifr = { 0 };
	int fd;

	vt_sh("modprobe -q tun");
	fd = open("/dev/net/tun", O_RDWR | O_CLOEXEC);
	if (fd < 0)
		vt_skip("/dev/net/tun: %s", strerror(errno));
	strncpy(ifr.ifr_name, ifname, IFNAMSIZ - 1);
	ifr.ifr_flags = (short)flags;
	if (ioctl(fd, TUNSETIFF, &ifr))
		DIE("TUNSETIFF: %s", strerror(errno));
	vt_must("ip link set %s mtu %u up", ifname, mtu ? mtu : 1500);
	return fd;
}
