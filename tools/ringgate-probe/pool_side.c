// SPDX-License-Identifier: MIT OR GPL-2.0
#include <errno.h>
#include <stdio.h>
#include <sys/mman.h>

#include "pool_pattern.h"
#include "pool_side.h"

#define ANSWER_MS	4000	/* without one a connection fails */

int side_open(struct pool_side *s, const char *name)
{
	struct rgate_device_opts o = { .sz = sizeof(o), .name = name };
	int err = rgate_device_open(&s->dev, name ? &o : NULL);

	if (err) {
		s->dev = NULL;
		return err;
	}
	s->access = RGATE_ACCESS_REMOTE;
	if (rgate_device_info(s->dev)->atomic == RGATE_ATOMIC_NONE)
		s->access &= ~RGATE_ACCESS_REMOTE_ATOMIC;
	return 0;
}

int side_renew(struct pool_side *s, struct rgate_rc_addr *addr)
{
	struct rgate_rc_opts o = {
		.sz = sizeof(o), .send_wr = 4, .recv_wr = 4, .access = s->access,
		.timeout_ms = ANSWER_MS,
	};
	int err;

	rgate_rc_destroy(s->rc);
	s->rc = NULL;
	err = rgate_rc_create(&s->rc, s->dev, &o);
	if (err) {
		s->rc = NULL;
		return err;
	}
	rgate_rc_addr(s->rc, addr);
	return 0;
}

int side_extra(struct pool_side *s, uint32_t access, uint64_t key, struct rgate_desc *desc)
{
	struct rgate_mem_opts o = { .sz = sizeof(o), .access = access };
	int err;

	s->extra = mmap(NULL, EXTRA_LEN, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (s->extra == MAP_FAILED) {
		s->extra = NULL;
		return -errno;
	}
	pattern_fill(s->extra, EXTRA_LEN, key, 0);
	s->extra_key = key;
	err = rgate_mem_register(&s->extra_mem, s->dev, s->extra + EXTRA_AT, EXTRA_MR, &o);
	if (err)
		goto unmap;
	err = rgate_mem_desc(s->extra_mem, 0, EXTRA_MR, desc);
	if (!err)
		return 0;
	rgate_mem_deregister(s->extra_mem);
unmap:
	s->extra_mem = NULL;
	side_extra_free(s);
	return err;
}

bool side_extra_intact(struct pool_side *s, uint64_t payload, size_t len,
		       char text[CARVE_TEXT])
{
	size_t at, begin = EXTRA_AT + len;
	unsigned char want = 0;

	at = pattern_differs(s->extra + EXTRA_AT, len, payload, 0, &want);
	if (at < len) {
		snprintf(text, CARVE_TEXT, "byte %zu of the region is not what was written", at);
		return false;
	}
	at = pattern_differs(s->extra, EXTRA_AT, s->extra_key, 0, &want);
	if (at == EXTRA_AT)
		at = begin + pattern_differs(s->extra + begin, EXTRA_LEN - begin,
					     s->extra_key, begin, &want);
	if (at < EXTRA_LEN) {
		snprintf(text, CARVE_TEXT, "byte %zd (0: begin of the region) was written",
			 (ssize_t)(at - EXTRA_AT));
		return false;
	}
	pattern_fill(s->extra, EXTRA_LEN, s->extra_key, 0);
	return true;
}

int side_extra_drop(struct pool_side *s)
{
	rgate_mem_deregister(s->extra_mem);
	s->extra_mem = NULL;
	return rgate_device_mr_left(s->dev) ? -EBUSY : rgate_device_check(s->dev);
}

void side_extra_free(struct pool_side *s)
{
	if (s->extra)
		munmap(s->extra, EXTRA_LEN);
	s->extra = NULL;
}

int side_close(struct pool_side *s, uint64_t rng)
{
	int err = 0, ret;

	rgate_rc_destroy(s->rc);
	s->rc = NULL;
	if (s->extra_mem)
		err = side_extra_drop(s);
	side_extra_free(s);
	if (s->carve.pool) {
		ret = carve_free(&s->carve, &rng);
		err = err ?: ret;
		ret = carve_destroy(&s->carve);
		err = err ?: ret;
	}
	rgate_device_close(s->dev);
	s->dev = NULL;
	return err;
}
