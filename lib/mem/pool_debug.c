// SPDX-License-Identifier: MIT OR GPL-2.0
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "log.h"
#include "pool_debug.h"

#if defined(__has_include)
#if __has_include("valgrind/memcheck.h")
#include "valgrind/memcheck.h"
#define HAVE_VALGRIND
#endif
#endif
#if defined(__SANITIZE_ADDRESS__)
#define HAVE_ASAN
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define HAVE_ASAN
#endif
#endif
#ifdef HAVE_ASAN
#include <sanitizer/asan_interface.h>
#endif

#define ZONE	0xbb
#define POISON	0x6b

struct rgate_buf_info *rgate_debug_infos(uint32_t n)
{
	return calloc(n, sizeof(struct rgate_buf_info));
}

void rgate_debug_fresh(struct rgate_slab *s)
{
	memset(s->info, 0, s->n * sizeof(*s->info));
}

static size_t front_of(size_t align)
{
	return align > RGATE_POOL_LINE ? align : RGATE_POOL_LINE;
}

size_t rgate_debug_size(size_t size, size_t align)
{
	size_t sum;

	if (__builtin_add_overflow(size, front_of(align) + RGATE_POOL_LINE, &sum))
		return 0;
	return sum;
}

static uint32_t index_of(const struct rgate_slab *s, const struct rgate_buf *buf)
{
	return (uint32_t)(buf - s->buf);
}

static char *raw_of(const struct rgate_slab *s, uint32_t i)
{
	return s->base + i * s->size;
}

static bool differs(const char *at, size_t len, unsigned char c)
{
	size_t i;

	for (i = 0; i < len; i++)
		if ((unsigned char)at[i] != c)
			return true;
	return false;
}

static bool zones_whole(const struct rgate_slab *s, uint32_t i)
{
	const char *raw = raw_of(s, i), *addr = s->buf[i].addr;
	const char *end = addr + s->info[i].size;

	return !differs(raw, (size_t)(addr - raw), ZONE) &&
	       !differs(end, (size_t)(raw + s->size - end), ZONE);
}

static void tell(const struct rgate_pool *pool, const struct rgate_slab *s, uint32_t i,
		 const char *what)
{
	const struct rgate_buf_info *info = &s->info[i];

	rgate_err("%s: %s: %zu bytes at %p, held by thread %d, from %p%s%s", pool->name, what,
		  info->size, s->buf[i].addr, info->thread, info->site,
		  info->tag ? ", " : "", info->tag ? info->tag : "");
}

static bool poison_whole(struct rgate_pool *pool, const struct rgate_slab *s, uint32_t i)
{
	if (!s->info[i].poisoned || !differs(raw_of(s, i), s->size, POISON))
		return true;
	rgate_count(&pool->overruns);
	tell(pool, s, i, "written after release");
	return false;
}

void rgate_debug_alloc(struct rgate_pool *pool, struct rgate_buf *buf, size_t size, size_t align,
		       const char *tag, const void *site)
{
	struct rgate_slab *s = rgate_buf_slab(buf);
	const uint32_t i = index_of(s, buf);
	struct rgate_buf_info *info = &s->info[i];
	char *raw = raw_of(s, i);

	(void)poison_whole(pool, s, i);
	*info = (struct rgate_buf_info){
		.tag = tag, .site = site, .thread = (int)syscall(SYS_gettid),
		.size = size, .front = (uint32_t)front_of(align),
	};
	buf->addr = raw + info->front;
	memset(raw, ZONE, info->front);
	memset(raw + info->front + size, ZONE, s->size - info->front - size);
}

int rgate_debug_free(struct rgate_pool *pool, struct rgate_buf *buf)
{
	struct rgate_slab *s = rgate_buf_slab(buf);
	const uint32_t i = index_of(s, buf);

	if (!zones_whole(s, i)) {
		s->info[i].set_aside = true;
		rgate_count(&pool->overruns);
		tell(pool, s, i, "a red zone was overwritten");
		return -EOVERFLOW;
	}
	memset(raw_of(s, i), POISON, s->size);
	s->info[i].poisoned = true;
	return 0;
}

bool rgate_debug_known(const struct rgate_pool *pool, const struct rgate_buf *buf)
{
	const struct rgate_slab *s;

	/* Structures are only ever added, in front. */
	for (s = __atomic_load_n(&pool->slabs, __ATOMIC_ACQUIRE); s; s = s->all)
		if (buf >= s->buf && buf < s->buf + s->n &&
		    !((uintptr_t)((const char *)buf - (const char *)s->buf) % sizeof(*buf)))
			return true;
	return false;
}

int rgate_debug_check(struct rgate_pool *pool)
{
	struct rgate_slab *s;
	uint32_t i;
	int bad = 0;

	for (s = __atomic_load_n(&pool->slabs, __ATOMIC_ACQUIRE); s; s = s->all) {
		struct rgate_class *c = &pool->cls[s->cls];

		pthread_mutex_lock(&c->lock);
		for (i = 0; s->bytes && i < s->n; i++) {
			if (s->info[i].set_aside)
				continue;
			if (!rgate_buf_held(&s->buf[i])) {
				bad += !poison_whole(pool, s, i);
			} else if (s->info[i].front && !zones_whole(s, i)) {
				rgate_count(&pool->overruns);
				tell(pool, s, i, "a red zone was overwritten");
				bad++;
			}
		}
		pthread_mutex_unlock(&c->lock);
	}
	return bad;
}

bool rgate_annotated(void)
{
#ifdef HAVE_ASAN
	return true;
#elif defined(HAVE_VALGRIND)
	return RUNNING_ON_VALGRIND != 0;
#else
	return false;
#endif
}

static void mark(const void *addr, size_t len, bool accessible)
{
#ifdef HAVE_ASAN
	if (accessible)
		ASAN_UNPOISON_MEMORY_REGION(addr, len);
	else
		ASAN_POISON_MEMORY_REGION(addr, len);
#endif
#ifdef HAVE_VALGRIND
	if (accessible)
		(void)VALGRIND_MAKE_MEM_UNDEFINED(addr, len);
	else
		(void)VALGRIND_MAKE_MEM_NOACCESS(addr, len);
#endif
	(void)addr;
	(void)len;
	(void)accessible;
}

void rgate_mark_held(const struct rgate_buf *buf, size_t size)
{
	mark(buf->addr, size, true);
}

void rgate_mark_free(const struct rgate_buf *buf, size_t size)
{
	mark(buf->addr, size, false);
}

void rgate_mark_region(const void *addr, size_t len, bool accessible)
{
	mark(addr, len, accessible);
}

void rgate_mark_mapped(const void *addr, size_t len)
{
	/* valgrind sees mmap(), and what others wrote there is defined. */
#ifdef HAVE_ASAN
	ASAN_UNPOISON_MEMORY_REGION(addr, len);
#endif
	(void)addr;
	(void)len;
}
