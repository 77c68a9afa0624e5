// SPDX-License-Identifier: MIT OR GPL-2.0
#include "vt.h"
#include "vt_rc.h"

#include <dirent.h>
#include <sys/socket.h>
#include <sys/utsname.h>

static char log_text[16384];
static pthread_mutex_t log_lock = PTHREAD_MUTEX_INITIALIZER;

static void log_line(void *ctx, enum rgate_log_level level, const char *msg)
{
	size_t have;

	(void)ctx;
	(void)level;
	pthread_mutex_lock(&log_lock);
	have = strlen(log_text);
	snprintf(log_text + have, sizeof(log_text) - have, "%s\n", msg);
	pthread_mutex_unlock(&log_lock);
}

void vt_log_catch(void)
{
	log_text[0] = '\0';
	rgate_log_set(log_line, NULL);
}

bool vt_log_has(const char *word)
{
	bool has;

	pthread_mutex_lock(&log_lock);
	has = strcasestr(log_text, word);
	pthread_mutex_unlock(&log_lock);
	if (!has)
		vt_note("not in the log: \"%s\"; the log: %.300s", word, log_text);
	return has;
}

struct rgate_device *vt_dev_rdma(unsigned int i)
{
	struct rgate_device_opts o = RGATE_OPTS(rgate_device_opts, .name = vt_rxe_name(i));
	struct rgate_device *dev;
	int err = rgate_device_open(&dev, &o);

	if (err)
		DIE("rgate_device_open(%s): %s", o.name, rgate_strerror("rgate_device_open", err));
	return dev;
}

void vt_dev_close(struct rgate_device *dev)
{
	rgate_device_close(dev);
}

int vt_mem_try(struct rgate_mem **mem, struct rgate_device *dev, void *addr, size_t len,
	       uint32_t access)
{
	struct rgate_mem_opts o = RGATE_OPTS(rgate_mem_opts, .access = access);

	*mem = NULL;
	return rgate_mem_register(mem, dev, addr, len, &o);
}

struct rgate_mem *vt_mem(struct rgate_device *dev, void *addr, size_t len,
			 uint32_t access)
{
	struct rgate_mem *mem;
	int err = vt_mem_try(&mem, dev, addr, len, access);

	if (err)
		DIE("rgate_mem_register of %zu bytes: %s", len,
		    rgate_strerror("rgate_mem_register", err));
	return mem;
}

void vt_mem_drop(struct rgate_mem *mem)
{
	rgate_mem_deregister(mem);
}

static struct rgate_rc *rc_new(struct rgate_device *dev, uint32_t access)
{
	struct rgate_rc_opts o = RGATE_OPTS(rgate_rc_opts, .access = access);
	struct rgate_rc *rc;
	int err = rgate_rc_create(&rc, dev, &o);

	if (err)
		DIE("rgate_rc_create: %s", rgate_strerror("rgate_mem_", err));
	return rc;
}

static void rc_connect(struct rgate_rc *rc, const struct rgate_rc_addr *to)
{
	int err = rgate_rc_connect(rc, to);

	if (err)
		DIE("rgate_rc_connect: %s", rgate_strerror("rgate_mem_", err));
}

struct rgate_rc *vt_rc_loop(struct rgate_device *dev, uint32_t access)
{
	struct rgate_rc *rc = rc_new(dev, access);
	struct rgate_rc_addr addr;

	rgate_rc_addr(rc, &addr);
	rc_connect(rc, &addr);
	return rc;
}

void vt_rc_pair(struct rgate_rc *rc[2], struct rgate_device *a, struct rgate_device *b,
		uint32_t access)
{
	struct rgate_rc_addr addr[2];
	unsigned int i;

	for (i = 0; i < 2; i++) {
		rc[i] = rc_new(i ? b : a, access);
		rgate_rc_addr(rc[i], &addr[i]);
	}
	rc_connect(rc[0], &addr[1]);
	rc_connect(rc[1], &addr[0]);
}

struct rgate_rc *vt_rc_meet(struct rgate_device *dev, int sock, uint32_t access)
{
	struct rgate_rc *rc = rc_new(dev, access);
	struct rgate_rc_addr mine, peer;
	char ready = 'r';

	rgate_rc_addr(rc, &mine);
	vt_put(sock, &mine, sizeof(mine));
	vt_get(sock, &peer, sizeof(peer));
	rc_connect(rc, &peer);
	/* neither end sends before the other can receive */
	vt_put(sock, &ready, 1);
	vt_get(sock, &ready, 1);
	return rc;
}

void vt_put(int sock, const void *data, size_t len)
{
	const char *p = data;

	while (len) {
		ssize_t n = send(sock, p, len, MSG_NOSIGNAL);

		if (n <= 0)
			DIE("send: %s", strerror(errno));
		p += n;
		len -= (size_t)n;
	}
}

void vt_get(int sock, void *data, size_t len)
{
	struct pollfd pfd = { .fd = sock, .events = POLLIN };
	char *p = data;

	while (len) {
		ssize_t n;

		if (poll(&pfd, 1, VT_MS) != 1)
			DIE("the other process says nothing");
		n = recv(sock, p, len, 0);
		if (n <= 0)
			DIE("the other process is gone");
		p += n;
		len -= (size_t)n;
	}
}

struct vt_mem_at vt_here(const struct rgate_mem *mem, size_t off)
{
	/* the device knows its own memory by the same addresses as peers do */
	return (struct vt_mem_at){ rgate_mem_iova(mem) + off, rgate_mem_lkey(mem) };
}

struct vt_mem_at vt_there(const struct rgate_mem *mem, size_t off)
{
	return (struct vt_mem_at){ rgate_mem_iova(mem) + off, rgate_mem_rkey(mem) };
}

static int one(struct rgate_rc *rc, struct rgate_rc_work *w, struct vt_mem_at local,
	       struct vt_mem_at remote)
{
	w->addr = (void *)(uintptr_t)local.addr;
	w->lkey = local.key;
	w->remote = remote.addr;
	w->rkey = remote.key;
	return rgate_rc_do(rc, w, VT_MS);
}

int vt_rc_do(struct rgate_rc *rc, enum rgate_rc_op op, struct vt_mem_at local,
	     struct vt_mem_at remote, size_t len)
{
	struct rgate_rc_work w = { .op = op, .length = (uint32_t)len };

	return one(rc, &w, local, remote);
}

int vt_rc_add(struct rgate_rc *rc, struct vt_mem_at local, struct vt_mem_at remote,
	      uint64_t add)
{
	struct rgate_rc_work w = { .op = RGATE_RC_FETCH_ADD, .length = 8, .operand = add };

	return one(rc, &w, local, remote);
}

int vt_rc_swap(struct rgate_rc *rc, struct vt_mem_at local, struct vt_mem_at remote,
	       uint64_t expect, uint64_t swap)
{
	struct rgate_rc_work w = {
		.op = RGATE_RC_COMPARE_SWAP, .length = 8, .operand = expect, .swap = swap,
	};

	return one(rc, &w, local, remote);
}

bool vt_kernel_before(unsigned int major, unsigned int minor)
{
	unsigned int a, b;
	struct utsname u;

	REQUIRE(!uname(&u));
	REQUIRE(sscanf(u.release, "%u.%u", &a, &b) == 2);
	return a < major || (a == major && b < minor);
}

unsigned int vt_open_files(void)
{
	DIR *dir = opendir("/proc/self/fd");
	unsigned int n = 0;

	REQUIRE(dir);
	while (readdir(dir))
		n++;
	closedir(dir);
	return n;
}
