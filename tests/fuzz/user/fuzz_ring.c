// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * A ring got from a process that is not trusted: files whose geometry the input
 * says, then steps, in any order, of a producer that writes any word and of a
 * consumer that does what the API allows. The consumer has to come to an end in each
 * step, and to stay inside the mapping whatever it reads: no page before and behind
 * it may be touched.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <ringgate/ringgate.h>

#include "fuzz.h"
#include "geometry.h"
#include "handover.h"
#include "life.h"
#include "ring_memfd.h"

#define FILE_MAX	(1U << 20)
#define STEPS		400
#define MEMORIES	4	/* that one input may make */

/* What the producer has of one mapping */
struct memory {
	int fd[2];		/* producer area and slots, consumer area */
	unsigned char *at[2];
	size_t len[2];
};

struct stage {
	struct fuzz_in in;
	struct memory mem[MEMORIES];
	unsigned int nmem;
	const struct memory *cur;	/* what the consumer has mapped */
	int sock;		/* of the producer; -1: closed */
	struct rgate_ring *ring;
	struct rgate_view view;
	struct rgate_consumer c;
	unsigned int held;	/* slots the consumer may release */
	bool frame;		/* these are one frame: next(), not peek() */
};

/* Guards around the reservation of a mapping: see -Wl,--wrap in the Makefile */

void *__real_mmap(void *addr, size_t len, int prot, int flags, int fd, off_t off);
int __real_munmap(void *addr, size_t len);

static unsigned char *guarded[2 * MEMORIES];

void *__wrap_mmap(void *addr, size_t len, int prot, int flags, int fd, off_t off)
{
	size_t page = rgate_page_size();
	unsigned char *p;
	size_t i;

	if (addr || prot != PROT_NONE)
		return __real_mmap(addr, len, prot, flags, fd, off);
	FUZZ_CHECK(len <= 2 * FILE_MAX);
	p = __real_mmap(NULL, len + 2 * page, PROT_NONE, flags, fd, off);
	if (p == MAP_FAILED)
		return p;
	for (i = 0; guarded[i]; i++)
		FUZZ_CHECK(i + 1 < 2 * MEMORIES);
	guarded[i] = p + page;
	return p + page;
}

int __wrap_munmap(void *addr, size_t len)
{
	size_t page = rgate_page_size(), i;

	for (i = 0; i < 2 * MEMORIES; i++) {
		if (guarded[i] && guarded[i] == addr) {
			guarded[i] = NULL;
			return __real_munmap((char *)addr - page, len + 2 * page);
		}
	}
	return __real_munmap(addr, len);
}

/* The files */

static int make_file(size_t len, bool sealed)
{
	int fd = memfd_create("fuzz", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	FUZZ_CHECK(fd >= 0 && !ftruncate(fd, (off_t)len));
	if (sealed)
		FUZZ_CHECK(!fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW));
	return fd;
}

static size_t change_len(struct fuzz_in *in, size_t len)
{
	size_t page = rgate_page_size();

	len += (size_t)((int8_t)fuzz_u8(in)) * page;
	return len > FILE_MAX ? page : len;
}

/* @number: which of the memories this is; the input cannot change that word */
static void write_prod(struct rgate_prod *prod, const struct rgate_geometry *geo,
		       uint32_t number)
{
	*prod = (struct rgate_prod){
		.magic = RGATE_MAGIC, .version = RGATE_ABI_VERSION,
		.slot_hdr = RGATE_SLOT_HDR, .features = RGATE_FEAT_CHAIN,
		.slots = geo->slots, .slot_size = geo->slot_size,
		.batch = RGATE_BATCH, .generation = 1, .handles = RGATE_HANDLES_MAX,
		.map_len = geo->map_len, .cons_off = geo->cons_off,
		.credits_off = geo->credits_off, .slots_off = geo->slots_off,
		.state = RGATE_STATE_ACTIVE,
		.reserved3 = { number },
	};
}

/* A good one, unless the input says otherwise */
static struct memory *make_memory(struct stage *st, bool *good)
{
	struct memory *m = &st->mem[st->nmem];
	uint8_t how = fuzz_u8(&st->in);
	struct rgate_geometry geo;
	struct rgate_prod prod;
	unsigned int n;
	int i;

	if (st->nmem == MEMORIES)
		return NULL;
	FUZZ_CHECK(!rgate_geometry_compute(64U << (how & 3), 256U << (how >> 2 & 1),
					   rgate_page_size(), &geo));
	write_prod(&prod, &geo, st->nmem);
	prod.policy = how >> 3 & 1 ? RGATE_POLICY_OVERWRITE : RGATE_POLICY_DROP;
	if (how >> 4 & 1) {
		prod.features |= RGATE_FEAT_OWNERS;
		prod.owners_off = rgate_geometry_owners(&geo);
		for (i = 0; i < (int)RGATE_HANDLES_MAX; i++)
			prod.life[i] = fuzz_u8(&st->in);
	}
	prod.generation += st->nmem;
	m->len[0] = geo.cons_off + geo.map_len - geo.slots_off;
	m->len[1] = geo.slots_off - geo.cons_off;
	*good = true;
	if (how & 128) {
		m->len[0] = change_len(&st->in, m->len[0]);
		m->len[1] = change_len(&st->in, m->len[1]);
		for (n = fuzz_u8(&st->in) & 7; n; n--) {
			unsigned int at = fuzz_u8(&st->in) % RGATE_PROD_CONST;

			((uint8_t *)&prod)[at] = fuzz_u8(&st->in);
		}
		*good = false;
	}
	for (i = 0; i < 2; i++) {
		m->fd[i] = make_file(m->len[i], (how & 0xc0) != 0xc0);
		m->at[i] = m->len[i] ? __real_mmap(NULL, m->len[i], PROT_READ | PROT_WRITE,
						   MAP_SHARED, m->fd[i], 0) : NULL;
		FUZZ_CHECK(m->at[i] != MAP_FAILED);
	}
	if (m->len[0] >= sizeof(prod))
		memcpy(m->at[0], &prod, sizeof(prod));
	st->nmem++;
	return m;
}

static void free_memory(struct memory *m)
{
	int i;

	for (i = 0; i < 2; i++) {
		close(m->fd[i]);
		if (m->at[i])
			__real_munmap(m->at[i], m->len[i]);
	}
}

/* The areas lie in order inside the mapping, and the files are as large as it is. */
static void check_view(struct stage *st)
{
	const struct rgate_view *v = &st->view;
	const unsigned char *base;
	size_t bytes;

	rgate_ring_view(st->ring, &st->view);
	base = (const unsigned char *)v->prod;
	bytes = (size_t)v->nslots * v->slot_size;
	FUZZ_CHECK(v->nslots >= RGATE_SLOTS_MIN && !(v->nslots & (v->nslots - 1)));
	FUZZ_CHECK(v->slot_size >= RGATE_SLOT_SIZE_MIN &&
		   v->slot_size <= RGATE_SLOT_SIZE_MAX);
	FUZZ_CHECK((unsigned char *)v->cons >= base + sizeof(*v->prod));
	FUZZ_CHECK((unsigned char *)v->credits >=
		   (unsigned char *)v->cons + sizeof(*v->cons));
	FUZZ_CHECK((const unsigned char *)v->slots >=
		   (unsigned char *)(v->credits + v->nslots / RGATE_BATCH));
	FUZZ_CHECK((const unsigned char *)v->slots + bytes <= base + v->map_len);
	FUZZ_CHECK(v->handle < RGATE_HANDLES_MAX);
	st->cur = &st->mem[v->prod->reserved3[0]];
	FUZZ_CHECK(st->cur->len[0] + st->cur->len[1] == v->map_len);
}

/* The consumer's side */

static void check_slot(const struct stage *st, const struct rgate_slot *s)
{
	const unsigned char *p = (const unsigned char *)s, *slots = st->view.slots;

	FUZZ_CHECK(p >= slots);
	FUZZ_CHECK(p + st->view.slot_size <=
		   slots + (size_t)st->view.nslots * st->view.slot_size);
	FUZZ_CHECK(!((size_t)(p - slots) & (st->view.slot_size - 1)));
}

static void check_consumer(const struct stage *st)
{
	FUZZ_CHECK(st->c.end - st->c.done <= RGATE_BATCH);
	FUZZ_CHECK(st->c.mask == st->view.nslots - 1);
	if (st->c.done != st->c.end)
		check_slot(st, (const struct rgate_slot *)st->c.cur);
}

static void take_next(struct stage *st)
{
	const struct rgate_slot *s = rgate_consumer_next(&st->c);
	unsigned int i;

	st->held = 0;
	if (!s)
		return;
	st->frame = true;
	st->held = rgate_consumer_parts(&st->c);
	FUZZ_CHECK(st->held >= 1 && st->held <= RGATE_CHAIN_MAX);
	FUZZ_CHECK(s == rgate_consumer_part(&st->c, 0));
	for (i = 0; i < st->held; i++)
		check_slot(st, rgate_consumer_part(&st->c, i));
	FUZZ_CHECK(rgate_consumer_next(&st->c) == s);
	FUZZ_CHECK(rgate_consumer_parts(&st->c) == st->held);
}

static void take_peek(struct stage *st)
{
	const struct rgate_slot *v[2 * RGATE_BATCH];
	unsigned int i, max = fuzz_u8(&st->in) % (2 * RGATE_BATCH), n;

	n = rgate_consumer_peek(&st->c, v, max);
	FUZZ_CHECK(n <= max && n <= RGATE_BATCH);
	for (i = 0; i < n; i++)
		check_slot(st, v[i]);
	st->held = n;
	st->frame = false;
}

static void give_back(struct stage *st)
{
	unsigned int n = st->held;

	if (st->frame && n)
		rgate_consumer_release(&st->c);
	else if (n)
		rgate_consumer_release_n(&st->c, fuzz_u8(&st->in) % (n + 1));
	st->held = 0;
}

static void take_copy(struct stage *st)
{
	size_t len = fuzz_u16(&st->in) % 4096;
	unsigned char *buf = malloc(len ? len : 1);
	struct rgate_slot hdr;
	long n;

	FUZZ_CHECK(buf);
	n = rgate_consumer_copy(&st->c, &hdr, buf, len);
	FUZZ_CHECK(n == -EAGAIN || (n >= 0 && n <= RGATE_CHAIN_MAX *
				    (long)(st->view.slot_size - RGATE_SLOT_HDR)));
	free(buf);
	st->held = 0;
}

static void wait_or_arm(struct stage *st, bool arm)
{
	int r;

	give_back(st);
	if (arm) {
		r = rgate_consumer_arm(&st->c);
		rgate_consumer_disarm(&st->c);
	} else {
		/* sleeping takes its time */
		r = rgate_consumer_wait(&st->c, fuzz_u8(&st->in) > 252);
	}
	FUZZ_CHECK(r == 0 || r == 1 || (r < 0 && r > -4096));
	check_view(st);
}

static void begin_anew(struct stage *st)
{
	struct rgate_consumer_opts o = { .sz = sizeof(o) };
	uint8_t how = fuzz_u8(&st->in);

	o.take = how & 3;
	o.index = how >> 2 & 7;
	o.count = how >> 5 & 7;
	o.orphans = how >> 7;
	st->held = 0;
	if (rgate_consumer_init(&st->c, st->ring, &o)) {
		FUZZ_CHECK(o.take > RGATE_TAKE_STRIDE || o.index >= o.count);
		FUZZ_CHECK(!rgate_consumer_init(&st->c, st->ring, NULL));
	}
}

/* The producer's side: it writes through mappings of its own. */

static struct rgate_prod *prod_of(const struct stage *st)
{
	return (struct rgate_prod *)st->cur->at[0];
}

static struct rgate_slot *slot_of(const struct stage *st, uint64_t pos)
{
	const struct rgate_view *v = &st->view;
	size_t at = (size_t)((unsigned char *)v->cons - (const unsigned char *)v->prod);

	return (struct rgate_slot *)(st->cur->at[0] + at +
				     (pos & (v->nslots - 1)) * v->slot_size);
}

static uint64_t *cons_word(const struct stage *st, size_t off)
{
	return (uint64_t *)(st->cur->at[1] + (off * 8) % st->cur->len[1]);
}

/* Any value, or one that is near what would be right */
static uint64_t value(struct fuzz_in *in, uint64_t right)
{
	uint8_t how = fuzz_u8(in);

	if (how < 64)
		return right + how - 32;
	if (how < 96)
		return (1ULL << (how - 32)) - 1 + fuzz_u8(in);
	if (how < 128)
		return right + ((uint64_t)fuzz_u8(in) << (how & 31) << 8);
	return fuzz_u64(in);
}

static void publish(struct stage *st)
{
	struct rgate_prod *prod = prod_of(st);
	uint64_t pos = prod->head, lap = pos / st->view.nslots + 1;
	uint8_t how = fuzz_u8(&st->in), chain = how & 64 ? fuzz_u8(&st->in) : 1;
	unsigned int n = how % 40 + 1;
	struct rgate_slot *s;

	while (n--) {
		s = slot_of(st, pos);
		s->len = fuzz_u16(&st->in);
		s->wire_len = s->len;
		s->flags = s->chain_idx = 0;
		s->chain_cnt = chain;
		s->seq = lap;
		chain = 1;
		pos++;
		lap = pos / st->view.nslots + 1;
	}
	prod->head = pos;
}

static void lie_in_slot(struct stage *st)
{
	struct rgate_slot *s = slot_of(st, fuzz_u8(&st->in));
	uint8_t what = fuzz_u8(&st->in);

	if (what < 64)
		((uint8_t *)s)[8 + what % 56] = fuzz_u8(&st->in);
	else if (what < 128)
		s->chain_cnt = fuzz_u8(&st->in);
	else if (what < 192)
		s->flags = fuzz_u32(&st->in);
	else
		s->len = fuzz_u32(&st->in);
}

static void lie_in_seq(struct stage *st)
{
	uint8_t at = fuzz_u8(&st->in), n = fuzz_u8(&st->in);
	uint64_t v = value(&st->in, prod_of(st)->head / st->view.nslots + 1);

	for (n %= RGATE_BATCH; n < RGATE_BATCH; n++)
		slot_of(st, (uint64_t)at + n)->seq = v;
}

/* New memory, which the consumer maps once this is retired and drained */
static void send_memory(struct stage *st)
{
	struct memory *m;
	bool good;

	if (st->sock < 0)
		return;
	m = make_memory(st, &good);
	if (!m)
		return;
	rgate_handover_send(st->sock, RGATE_HANDOVER_MEMORY, 0, m->fd, 2, MSG_DONTWAIT);
	if (good)
		prod_of(st)->state = RGATE_STATE_RETIRED;
}

static void send_raw(struct stage *st)
{
	unsigned char msg[32];
	int fds[3] = { 0, 1, 2 };
	uint8_t how = fuzz_u8(&st->in);

	fuzz_bytes(&st->in, msg, sizeof(msg));
	if (st->sock < 0)
		return;
	if (how & 1)
		rgate_handover_send(st->sock, msg[0], msg[1], fds, msg[2] % 4,
				    MSG_DONTWAIT);
	else
		send(st->sock, msg, how % sizeof(msg), MSG_DONTWAIT | MSG_NOSIGNAL);
}

static void close_sock(struct stage *st)
{
	if (st->sock >= 0)
		close(st->sock);
	st->sock = -1;
}

static void step(struct stage *st)
{
	struct rgate_prod *prod = prod_of(st);

	switch (fuzz_u8(&st->in) % 22) {
	case 0:
		take_next(st);
		break;
	case 1:
		give_back(st);
		break;
	case 2:
		take_peek(st);
		break;
	case 3:
		take_copy(st);
		break;
	case 4:
		wait_or_arm(st, true);
		break;
	case 5:
		wait_or_arm(st, false);
		break;
	case 6:
		if (st->held && st->frame && !rgate_consumer_intact(&st->c)) {
			rgate_consumer_resync(&st->c);
			st->held = 0;
		}
		break;
	case 7:
		begin_anew(st);
		break;
	case 8:
		rgate_consumer_reset_claim(st->ring);
		break;
	case 9:
	case 10:
		publish(st);
		break;
	case 11:
		lie_in_slot(st);
		break;
	case 12:
		lie_in_seq(st);
		break;
	case 13:
		prod->head = value(&st->in, prod->head);
		break;
	case 14:
		prod->state = fuzz_u8(&st->in) % 5;
		break;
	case 15:	/* credits and owner words of small rings */
		*cons_word(st, 512 + fuzz_u8(&st->in) % 16) =
			value(&st->in, prod->head / st->view.nslots);
		break;
	case 19:
		*cons_word(st, 520 + fuzz_u8(&st->in) % 8) =
			(prod->head / st->view.nslots + fuzz_u8(&st->in) % 3)
			<< RGATE_OWNER_LAP_SHIFT | fuzz_u16(&st->in);
		break;
	case 20:
		prod->life[fuzz_u8(&st->in) % RGATE_HANDLES_MAX]++;
		prod->closed = value(&st->in, prod->closed);
		break;
	case 16:
		*cons_word(st, fuzz_u8(&st->in) & 31) =
			value(&st->in, prod->head / RGATE_BATCH);
		break;
	case 17:
		send_memory(st);
		break;
	case 18:
		send_raw(st);
		break;
	default:
		if (fuzz_u8(&st->in) == 255)
			close_sock(st);
	}
	check_consumer(st);
}

static int adopt(struct stage *st, const struct memory *m, bool good)
{
	int fds[3], sv[2], err, life;

	FUZZ_CHECK(!socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sv));
	st->sock = sv[0];
	fds[0] = dup(m->fd[0]);
	fds[1] = dup(m->fd[1]);
	fds[2] = sv[1];
	life = rgate_life_new();
	FUZZ_CHECK(life >= 0);
	FUZZ_CHECK(!rgate_handover_send(sv[0], RGATE_HANDOVER_LIFE, 0, &life, 1, 0));
	close(life);
	err = rgate_memfd_adopt(&st->ring, fds, fuzz_u8(&st->in) % RGATE_HANDLES_MAX);
	FUZZ_CHECK(!err || err == -EPROTO || err == -EPROTONOSUPPORT);
	FUZZ_CHECK(!err || !good);
	return err;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct stage st = { .in = { data, size } };
	const struct memory *m;
	unsigned int n;
	bool good;

	m = make_memory(&st, &good);
	if (!adopt(&st, m, good)) {
		check_view(&st);
		FUZZ_CHECK(!rgate_consumer_init(&st.c, st.ring, NULL));
		for (n = 0; st.in.len && n < STEPS; n++)
			step(&st);
		rgate_ring_close(st.ring);
	}
	close_sock(&st);
	while (st.nmem)
		free_memory(&st.mem[--st.nmem]);
	/* neither a mapping nor a descriptor is left behind */
	for (n = 0; n < 2 * MEMORIES; n++)
		FUZZ_CHECK(!guarded[n]);
	return 0;
}
