// SPDX-License-Identifier: MIT OR GPL-2.0
#include "vt.h"

int vt_dev_open(void)
{
	int fd = open(RGATE_DEVICE, O_RDWR | O_CLOEXEC);

	if (fd < 0)
		DIE("%s: %s", RGATE_DEVICE, strerror(errno));
	return fd;
}

struct rgate_create vt_create_req(void)
{
	return (struct rgate_create){ .slots = 256, .slot_size = 2048, .node = -1 };
}

int vt_ring_query(int fd, struct rgate_query *q)
{
	memset(q, 0, sizeof(*q));
	return ioctl(fd, RGATE_IOC_QUERY, q) ? -errno : 0;
}

int vt_ring_resize(int fd, uint32_t slots, uint32_t slot_size,
		   struct rgate_geometry *geo)
{
	struct rgate_resize rs = { .slots = slots, .slot_size = slot_size };

	if (ioctl(fd, RGATE_IOC_RESIZE, &rs))
		return -errno;
	if (geo)
		*geo = rs.geo;
	return 0;
}

int vt_ring_try_map(struct vt_ring *r)
{
	const struct rgate_geometry *g = &r->geo;
	struct rgate_query q;
	size_t rw;
	void *p;

	if (vt_ring_query(r->fd, &q))
		return -errno;
	p = mmap(NULL, g->map_len, PROT_READ, MAP_SHARED, r->fd, 0);
	if (p == MAP_FAILED)
		return -errno;
	rw = g->slots_off - g->cons_off;
	if (q.flags & RGATE_RING_RW_SLOTS)
		rw = g->map_len - g->cons_off;
	if (mmap((char *)p + g->cons_off, rw, PROT_READ | PROT_WRITE,
		 MAP_SHARED | MAP_FIXED, r->fd, (off_t)g->cons_off) == MAP_FAILED) {
		int err = -errno;

		munmap(p, g->map_len);
		return err;
	}
	r->map = p;
	r->prod = p;
	r->cons = (void *)(r->map + g->cons_off);
	r->credits = (void *)(r->map + g->credits_off);
	r->slots = r->map + g->slots_off;
	r->policy = q.policy;
	return 0;
}

void vt_ring_map(struct vt_ring *r)
{
	int err = vt_ring_try_map(r);

	if (err)
		DIE("mmap of the ring: %s", strerror(-err));
}

void vt_ring_create(struct vt_ring *r, struct rgate_create *req)
{
	memset(r, 0, sizeof(*r));
	r->fd = vt_dev_open();
	if (ioctl(r->fd, RGATE_IOC_CREATE, req))
		DIE("RGATE_IOC_CREATE: %s", strerror(errno));
	r->id = req->ring_id;
	r->cookie = req->cookie;
	r->geo = req->geo;
	vt_ring_map(r);
}

void vt_ring_open(struct vt_ring *r, uint32_t slots, uint32_t slot_size,
		  uint32_t flags, uint32_t policy)
{
	struct rgate_create req = vt_create_req();

	req.slots = slots;
	req.slot_size = slot_size;
	req.flags = flags;
	req.policy = policy;
	vt_ring_create(r, &req);
}

void vt_ring_attach(struct vt_ring *r, int from)
{
	struct rgate_attach a = { .fd = from };

	memset(r, 0, sizeof(*r));
	r->fd = vt_dev_open();
	if (ioctl(r->fd, RGATE_IOC_ATTACH, &a))
		DIE("RGATE_IOC_ATTACH: %s", strerror(errno));
	r->id = a.ring_id;
	r->cookie = a.cookie;
	r->geo = a.geo;
	vt_ring_map(r);
}

void vt_ring_unmap(struct vt_ring *r)
{
	if (r->map)
		munmap(r->map, r->geo.map_len);
	r->map = NULL;
}

void vt_ring_close(struct vt_ring *r)
{
	vt_ring_unmap(r);
	if (r->fd >= 0)
		close(r->fd);
	r->fd = -1;
}

uint64_t vt_ring_lap(const struct vt_ring *r, uint64_t pos)
{
	return pos / r->geo.slots + 1;
}

const struct rgate_slot *vt_ring_slot(const struct vt_ring *r, uint64_t pos)
{
	return (const void *)(r->slots +
			      (pos & (r->geo.slots - 1)) * r->geo.slot_size);
}

uint64_t vt_ring_head(const struct vt_ring *r)
{
	return __atomic_load_n(&r->prod->head, __ATOMIC_ACQUIRE);
}

uint32_t vt_ring_state(const struct vt_ring *r)
{
	return __atomic_load_n(&r->prod->state, __ATOMIC_ACQUIRE);
}

struct rgate_stats vt_ring_stats(const struct vt_ring *r)
{
	const volatile struct rgate_stats *from = &r->prod->stats;

	/* the counters go on while they are read: each is whole for itself */
	return *from;
}

static void give_back(struct vt_ring *r, uint32_t n)
{
	while (n--) {
		uint64_t pos = r->pos++;

		if ((r->pos & (RGATE_BATCH - 1)) == 0)
			__atomic_store_n(&r->credits[(pos & (r->geo.slots - 1)) / RGATE_BATCH],
					 vt_ring_lap(r, pos), __ATOMIC_RELEASE);
	}
}

static uint64_t seq_of(const struct vt_ring *r, uint64_t pos)
{
	return __atomic_load_n(&vt_ring_slot(r, pos)->seq, __ATOMIC_ACQUIRE);
}

const struct rgate_slot *vt_ring_next(struct vt_ring *r)
{
	for (;;) {
		const struct rgate_slot *s = vt_ring_slot(r, r->pos);
		uint64_t seq = seq_of(r, r->pos), lap = vt_ring_lap(r, r->pos);
		uint32_t cnt;

		if (seq > lap && r->policy == RGATE_POLICY_OVERWRITE) {
			/* overtaken: the oldest that may be whole is a lap behind head */
			uint64_t head = vt_ring_head(r);
			uint64_t to = (head - r->geo.slots + 2 * RGATE_BATCH) &
				      ~(uint64_t)(RGATE_BATCH - 1);

			if (to <= r->pos)
				to = (r->pos + RGATE_BATCH) &
				     ~(uint64_t)(RGATE_BATCH - 1);
			r->lost += to - r->pos;
			r->pos = to;
			continue;
		}
		if (seq != lap)
			return NULL;
		if (s->flags & RGATE_SLOT_PAD) {
			give_back(r, 1);
			continue;
		}
		cnt = s->chain_cnt;
		if (cnt == 0 || cnt > RGATE_CHAIN_MAX) {
			FAIL("slot %llu: chain_cnt %u", (unsigned long long)r->pos,
			     cnt);
			cnt = 1;
		}
		if (cnt > 1 && seq_of(r, r->pos + cnt - 1) !=
			       vt_ring_lap(r, r->pos + cnt - 1))
			return NULL;
		r->cnt = cnt;
		return s;
	}
}

void vt_ring_done(struct vt_ring *r)
{
	give_back(r, r->cnt);
	r->cnt = 0;
}

size_t vt_ring_join(const struct vt_ring *r, const struct rgate_slot *s,
		    uint8_t *buf, size_t size)
{
	size_t n = 0;
	uint32_t i;

	for (i = 0; i < r->cnt; i++) {
		const struct rgate_slot *p = vt_ring_slot(r, r->pos + i);

		if (p->chain_idx != i || p->chain_cnt != r->cnt ||
		    p->wire_len != s->wire_len ||
		    !(p->flags & RGATE_SLOT_CONT) != !i)
			FAIL("chain slot %u of %u: idx %u cnt %u wire %u flags %x",
			     i, r->cnt, p->chain_idx, p->chain_cnt, p->wire_len,
			     p->flags);
		if (p->len > r->geo.slot_size - RGATE_SLOT_HDR || n + p->len > size) {
			FAIL("slot length %u", p->len);
			return n;
		}
		memcpy(buf + n, vt_slot_data(p), p->len);
		n += p->len;
	}
	return n;
}

bool vt_ring_arm(struct vt_ring *r)
{
	__u64 *want = &r->cons->waiter[r->geo.handle].want;

	__atomic_store_n(want, r->pos + 1, __ATOMIC_SEQ_CST);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	if (vt_ring_head(r) > r->pos || vt_ring_state(r) != RGATE_STATE_ACTIVE) {
		vt_ring_disarm(r);
		return true;
	}
	return false;
}

void vt_ring_disarm(struct vt_ring *r)
{
	__atomic_store_n(&r->cons->waiter[r->geo.handle].want, 0, __ATOMIC_RELEASE);
}

const struct rgate_slot *vt_ring_wait(struct vt_ring *r, int ms)
{
	uint64_t end = vt_now() + (uint64_t)ms * 1000000;
	const struct rgate_slot *s;

	while (!(s = vt_ring_next(r))) {
		struct pollfd p = { .fd = r->fd, .events = POLLIN };
		uint64_t now = vt_now();

		if (now >= end)
			return NULL;
		if (vt_ring_arm(r)) {
			s = vt_ring_next(r);
			if (s || vt_ring_state(r) != RGATE_STATE_ACTIVE)
				return s;
			/* head is past us, the slot is not: only a chain's rest */
			continue;
		}
		poll(&p, 1, (int)((end - now) / 1000000) + 1);
		vt_ring_disarm(r);
	}
	return s;
}

unsigned int vt_ring_drain(struct vt_ring *r)
{
	unsigned int n = 0;

	while (vt_ring_next(r)) {
		vt_ring_done(r);
		n++;
	}
	return n;
}

unsigned int vt_ring_verify(struct vt_ring *r, struct vt_seen *seen,
			    unsigned int n, int ms)
{
	static __thread uint8_t buf[65536];
	const struct rgate_slot *s;
	unsigned int got = 0;

	while (got < n && (s = vt_ring_wait(r, ms))) {
		size_t have = vt_ring_join(r, s, buf, sizeof(buf));
		uint64_t seq;

		if (!vt_pkt_check_cut(buf, have, s->wire_len, &seq))
			FAIL("frame at %llu is not as sent (%zu of %u bytes)",
			     (unsigned long long)r->pos, have, s->wire_len);
		else if (seen)
			vt_seen_add(seen, seq);
		vt_ring_done(r);
		got++;
	}
	return got;
}
