// SPDX-License-Identifier: MIT OR GPL-2.0
#include "regions.h"

#include <errno.h>
#include <string.h>
#include <sys/random.h>

#define WORD	sizeof(uint64_t)	/* of atomics */

int regions_init(struct regions *t)
{
	memset(t, 0, sizeof(*t));
	if (getrandom(&t->serial, sizeof(t->serial), 0) != sizeof(t->serial))
		return -errno;
	/* So far from its end that it is not reached */
	t->serial >>= REGIONS_BITS + 2;
	return 0;
}

bool regions_name_ok(const char *name, size_t len)
{
	static const char allowed[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
				      "0123456789._-/";
	size_t i;

	for (i = 0; i < len; i++)
		if (!memchr(allowed, name[i], sizeof(allowed) - 1))
			return false;
	return len && len <= RGATE_MEMORY_NAME_MAX;
}

static struct region *find(const struct regions *t, uid_t owner, const char *name)
{
	const struct region *r;

	for (r = t->table; r < t->table + REGIONS_MAX; r++)
		if (r->id && r->owner == owner && !strcmp(r->name, name))
			return (struct region *)r;
	return NULL;
}

/* A free place, if the user may have one more */
static int place_for(struct regions *t, uid_t owner, struct region **out)
{
	unsigned int own = 0;
	struct region *r;

	*out = NULL;
	for (r = t->table; r < t->table + REGIONS_MAX; r++) {
		if (!r->id)
			*out = *out ? *out : r;
		else if (r->owner == owner)
			own++;
	}
	if (own >= REGIONS_UID)
		return -EDQUOT;
	return *out ? 0 : -ENOSPC;
}

int regions_add(struct regions *t, const struct region *as, struct region **out)
{
	int err;

	if (as->mode & ~RGATE_MEMORY_MODES || !as->mode || (uintptr_t)as->addr % WORD ||
	    !as->len || !regions_name_ok(as->name, strnlen(as->name, sizeof(as->name))))
		return -EINVAL;
	if (find(t, as->owner, as->name))
		return -EEXIST;
	err = place_for(t, as->owner, out);
	if (err)
		return err;
	**out = *as;
	(*out)->id = ++t->serial << REGIONS_BITS | (uint64_t)(*out - t->table);
	return 0;
}

void regions_remove(struct region *r)
{
	memset(r, 0, sizeof(*r));
}

static bool allows(const struct region *r, uid_t uid, uint32_t rights)
{
	const uint32_t mode = uid == r->owner ? r->mode : r->mode >> RGATE_MEMORY_OTHERS_SHIFT;

	return (mode & rights) == rights;
}

int regions_open(const struct regions *t, uid_t uid, uid_t owner, const char *name,
		 uint32_t rights, const struct region **out)
{
	const struct region *r;

	if (!rights || rights & ~RGATE_MEMORY_RIGHTS)
		return -EINVAL;
	r = find(t, owner, name);
	if (!r)
		return -ENOENT;
	if (!allows(r, uid, rights))
		return -EACCES;
	*out = r;
	return 0;
}

uint32_t memory_right(enum memory_op op)
{
	switch (op) {
	case MEMORY_READ:
		return RGATE_MEMORY_READ;
	case MEMORY_WRITE:
		return RGATE_MEMORY_WRITE;
	case MEMORY_FETCH_ADD:
	case MEMORY_CMP_SWAP:
		return RGATE_MEMORY_ATOMIC;
	default:
		return 0;
	}
}

/* The bytes, if they are inside of it */
static void *bytes_of(const struct region *r, uint64_t off, uint64_t len)
{
	return off <= r->len && len <= r->len - off ? r->addr + off : NULL;
}

/* By the CPU of the memory's owner, so atomic to his own atomics, too */
static int change_word(const struct region *r, const struct memory_access *a, uint64_t *value)
{
	uint64_t *word = bytes_of(r, a->off, WORD);

	if (!word)
		return -ERANGE;
	if (a->off % WORD)
		return -EINVAL;
	*value = a->operand;
	if (a->op == MEMORY_FETCH_ADD)
		*value = __atomic_fetch_add(word, a->operand, __ATOMIC_SEQ_CST);
	else	/* a failure puts there what was found */
		(void)__atomic_compare_exchange_n(word, value, a->swap, false, __ATOMIC_SEQ_CST,
						  __ATOMIC_SEQ_CST);
	return 0;
}

static int copy(const struct region *r, const struct memory_access *a)
{
	void *at = bytes_of(r, a->off, a->len);

	if (!at)
		return -ERANGE;
	/* A session may have exported what it copies from. */
	if (a->op == MEMORY_READ)
		memmove(a->data, at, a->len);
	else
		memmove(at, a->data, a->len);
	/* Who sees what comes after it sees these bytes. */
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	return 0;
}

int regions_access(const struct regions *t, const struct memory_access *a, uint64_t *value)
{
	const struct region *r = &t->table[a->region % REGIONS_MAX];

	if (!a->region || r->id != a->region)
		return -ESTALE;
	if (!allows(r, a->uid, memory_right(a->op)))
		return -EACCES;
	switch (a->op) {
	case MEMORY_READ:
	case MEMORY_WRITE:
		return copy(r, a);
	case MEMORY_FETCH_ADD:
	case MEMORY_CMP_SWAP:
		return change_word(r, a, value);
	case MEMORY_FLUSH:
		__atomic_thread_fence(__ATOMIC_SEQ_CST);
		return 0;
	default:
		return -EOPNOTSUPP;
	}
}
