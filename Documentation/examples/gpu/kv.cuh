/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * A table of keys and values in a GPU's memory, which any warp looks into: sets of four entries,
 * each with a lock that the one warp has which is at it.
 */
#ifndef KV_CUH
#define KV_CUH

#include <errno.h>

#include <ringgate/gpu/port.cuh>

#define KV_KEY_MAX	64U
#define KV_VALUE_MAX	1024U
#define KV_WAYS		4U

struct kv_entry {
	uint32_t key_len;	/* 0: free */
	uint32_t len;
	unsigned char key[KV_KEY_MAX];
	unsigned char value[KV_VALUE_MAX];
};

struct kv_set {
	uint64_t lock;
	uint64_t pad;
	struct kv_entry entry[KV_WAYS];
};

/* All of it zeros at first */
struct kv_table {
	struct kv_set *set;
	uint32_t sets;		/* a power of two */
};

struct kv_key {
	const unsigned char *at;	/* near */
	uint32_t len;			/* 1 to KV_KEY_MAX */
};

/* The whole warp, to copy */
RGATE_DEV void kv_copy(unsigned char *to, const unsigned char *from, uint32_t n)
{
	uint32_t i;

	for (i = rgate_dlane(); i < n; i += RGATE_DWARP)
		to[i] = from[i];
}

/* FNV-1a */
RGATE_DEV struct kv_set *kv_set_of(const struct kv_table *t, struct kv_key key)
{
	uint32_t h = 2166136261U, i;

	for (i = 0; i < key.len; i++)
		h = (h ^ key.at[i]) * 16777619U;
	return &t->set[(h ^ h >> 16) & (t->sets - 1)];
}

/* The barriers hand the lock's acquire on to all lanes, and their reads and writes to its release */
RGATE_DEV struct kv_set *kv_lock(const struct kv_table *t, struct kv_key key)
{
	struct kv_set *s = kv_set_of(t, key);

	if (rgate_dlane() == 0)
		while (rgate_dgpu_cas(&s->lock, 0, 1))
			rgate_dpause(50);
	rgate_dwarp_sync();
	return s;
}

RGATE_DEV void kv_unlock(struct kv_set *s)
{
	rgate_dwarp_sync();
	if (rgate_dlane() == 0)
		rgate_dgpu_release(&s->lock, 0);
}

/* The whole warp: does the entry have that key? A free one has the one of no bytes. */
RGATE_DEV uint32_t kv_same(const struct kv_entry *e, struct kv_key key)
{
	uint32_t i, differs = e->key_len != key.len;

	for (i = rgate_dlane(); i < key.len && !differs; i += RGATE_DWARP)
		differs = e->key[i] != key.at[i];
	return !rgate_dwarp_or(differs);
}

/* Which entry; KV_WAYS: none */
RGATE_DEV uint32_t kv_find(const struct kv_set *s, struct kv_key key)
{
	uint32_t i;

	for (i = 0; i < KV_WAYS && !kv_same(&s->entry[i], key);)
		i++;
	return i;
}

/* kv_get - the whole warp: @to has KV_VALUE_MAX bytes, near; how many there are; -ENOENT */
RGATE_DEV int kv_get(const struct kv_table *t, struct kv_key key, unsigned char *to)
{
	struct kv_set *s = kv_lock(t, key);
	const uint32_t i = kv_find(s, key);
	int len = -ENOENT;

	if (i < KV_WAYS) {
		len = (int)s->entry[i].len;
		kv_copy(to, s->entry[i].value, (uint32_t)len);
	}
	kv_unlock(s);
	return len;
}

/* kv_put - the whole warp: 1: it is new; 0: it had another value; -ENOSPC: its set is full */
RGATE_DEV int kv_put(const struct kv_table *t, struct kv_key key, const unsigned char *value,
		     uint32_t len)
{
	const struct kv_key none = { key.at, 0 };
	struct kv_set *s = kv_lock(t, key);
	uint32_t i = kv_find(s, key);
	const int is_new = i == KV_WAYS;

	if (is_new)
		i = kv_find(s, none);
	if (i < KV_WAYS) {
		struct kv_entry *e = &s->entry[i];

		kv_copy(e->key, key.at, key.len);
		kv_copy(e->value, value, len);
		if (rgate_dlane() == 0) {
			e->key_len = key.len;
			e->len = len;
		}
	}
	kv_unlock(s);
	return i == KV_WAYS ? -ENOSPC : is_new;
}

/* kv_delete - the whole warp: 0, -ENOENT */
RGATE_DEV int kv_delete(const struct kv_table *t, struct kv_key key)
{
	struct kv_set *s = kv_lock(t, key);
	const uint32_t i = kv_find(s, key);

	if (i < KV_WAYS && rgate_dlane() == 0)
		s->entry[i].key_len = 0;
	kv_unlock(s);
	return i < KV_WAYS ? 0 : -ENOENT;
}

#endif
