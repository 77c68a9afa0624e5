// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * The local provider: memory that is taken back in the middle of a peer's question for it.
 * The number of its descriptor is another file's from then on. The peer gets the memory that
 * it asked for, or none, and what has the number now stays open.
 */
#include "ended.h"
#include "ends.h"
#include "local.h"
#include "pool.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#define BYTES	65536
/* How long an owner that is not kept waiting may need, in ms */
#define LEAVE_MS	50

/* Who takes the memory back, and when; the owner's thread and the one that answers share it. */
static struct {
	struct end *end;
	struct rgate_prov_share *share;
	struct rgate_pool *pool;	/* unless NULL, this one's first region is it instead */
	pthread_t main, owner;
	bool ready;		/* atomic; in the thread that answers it is time ... */
	bool at_dup;		/* ... before it duplicates descriptors; else before it answers */
	bool begun;
	bool done;		/* atomic */
	int number[2];		/* of the memory and of its bell; -1: none */
	int other[2];		/* what gets these numbers */
} back;

static _Thread_local bool owns;

static bool answers(void)
{
	return !owns && __atomic_load_n(&back.ready, __ATOMIC_ACQUIRE) &&
	       !pthread_equal(pthread_self(), back.main);
}

/* The memory goes, and its descriptors' numbers are used at once. */
static void *take_back(void *arg)
{
	unsigned int i;

	(void)arg;
	owns = true;
	if (back.pool) {
		unit_require(!back.end->prov->use_pool(back.end->ep, RGATE_PROV_READABLE, NULL));
		unit_require(!pool_ended(back.pool));
	} else {
		back.end->prov->unshare(back.end->ep, back.share);
	}
	for (i = 0; i < ARRAY_LEN(back.number); i++)
		unit_require(back.number[i] < 0 || fcntl(back.other[i], F_DUPFD_CLOEXEC,
							 back.number[i]) == back.number[i]);
	__atomic_store_n(&back.done, true, __ATOMIC_RELEASE);
	return NULL;
}

/* The owner has begun, and is done if nothing keeps him waiting. */
static void let_owner(void)
{
	const uint64_t until = unit_now_ns() + LEAVE_MS * 1000000ULL;

	if (!back.begun)
		unit_require(!pthread_create(&back.owner, NULL, take_back, NULL));
	back.begun = true;
	while (!__atomic_load_n(&back.done, __ATOMIC_ACQUIRE) && unit_now_ns() < until)
		nodes_nap();
}

int __real_fcntl(int fd, int cmd, ...);
int __wrap_fcntl(int fd, int cmd, ...);
int __wrap_fcntl(int fd, int cmd, ...)
{
	va_list ap;
	int arg;

	va_start(ap, cmd);
	arg = cmd == F_GETFL || cmd == F_GET_SEALS ? 0 : va_arg(ap, int);
	va_end(ap);
	if (cmd == F_DUPFD_CLOEXEC && answers() && back.at_dup)
		let_owner();
	return __real_fcntl(fd, cmd, arg);
}

extern __typeof__(local_send) __real_local_send, __wrap_local_send;
int __wrap_local_send(int sock, const struct local_packet *p, const struct iovec *iov,
		      unsigned int n, const int *fds, unsigned int nfds)
{
	if (nfds && answers()) {
		let_owner();
		/* Nothing keeps the owner waiting any more. */
		unit_require(!pthread_join(back.owner, NULL));
		__atomic_store_n(&back.ready, false, __ATOMIC_RELEASE);
	}
	return __real_local_send(sock, p, iov, n, fds, nfds);
}

static const char mine[] = "what was asked for", others[] = "what nobody asked for";

/* What is to be taken back. The thread that answers may still look whether it is time, and it is
 * not: so that word is let be. */
static void takes_back(struct end *e, struct rgate_prov_share *share, struct rgate_pool *pool,
		       const int number[2])
{
	assert_false(__atomic_load_n(&back.ready, __ATOMIC_ACQUIRE));
	back.end = e;
	back.share = share;
	back.pool = pool;
	back.begun = false;
	__atomic_store_n(&back.done, false, __ATOMIC_RELAXED);
	memcpy(back.number, number, sizeof(back.number));
}

/* Asks for @rkey at @off, while back's owner takes it back */
static void ask(struct end *e, uint32_t rkey, uint64_t off, bool at_dup, uint8_t flags)
{
	struct rgate_sge s = end_sge(e, 0, 64);
	struct rgate_op op = {
		.kind = RGATE_OP_READ, .nsge = 1, .sge = &s, .remote = off, .rkey = rkey,
	};
	void *not_it;

	back.main = pthread_self();
	back.other[0] = nodes_memfd(BYTES, &not_it);
	back.other[1] = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	assert_true(back.other[1] >= 0);
	strcpy((char *)not_it + off, others);
	back.at_dup = at_dup;
	__atomic_store_n(&back.ready, true, __ATOMIC_RELEASE);
	assert_int_equal(end_do(e, &op), 0);
	assert_false(__atomic_load_n(&back.ready, __ATOMIC_ACQUIRE));
	assert_true(back.begun && back.done);
	assert_string_equal(s.addr, mine);
	op.kind = RGATE_OP_WRITE;
	op.flags = flags;
	assert_int_equal(end_do(e, &op), 0);
	end_flush(e, e->other);
	assert_string_equal((char *)not_it + off, others);
	munmap(not_it, BYTES);
}

/* What has the numbers now is what took them, and is open. */
static void numbers_are_others(void)
{
	unsigned int i;
	char text[2][64], path[64];
	int fd;

	for (i = 0; i < ARRAY_LEN(back.number); i++) {
		for (fd = 0; fd < 2 && back.number[i] >= 0; fd++) {
			snprintf(path, sizeof(path), "/proc/self/fd/%d",
				 fd ? back.number[i] : back.other[i]);
			memset(text[fd], 0, sizeof(text[fd]));
			assert_true(readlink(path, text[fd], sizeof(text[fd]) - 1) > 0);
		}
		if (back.number[i] >= 0) {
			assert_string_equal(text[0], text[1]);
			assert_int_equal(close(back.number[i]), 0);
		}
		assert_int_equal(close(back.other[i]), 0);
	}
}

static void share_goes(struct end e[2], bool at_dup)
{
	const struct local_share *s;
	struct rgate_prov_share sh;
	eventfd_t v;
	int fd, bell;
	void *at;

	fd = nodes_memfd(BYTES, &at);
	bell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	assert_true(bell >= 0);
	strcpy(at, mine);
	assert_int_equal(e[1].prov->share(e[1].ep, at, BYTES, fd, 0, RGATE_ACCESS_REMOTE, &sh), 0);
	assert_int_equal(e[1].prov->bell(e[1].ep, &sh, bell), 0);
	s = sh.priv;
	takes_back(&e[1], &sh, NULL, (int[2]){ s->fd, s->bell });
	ask(&e[0], sh.rkey, 0, at_dup, RGATE_OP_BELL);
	assert_int_equal(eventfd_read(bell, &v), 0);
	assert_int_equal(eventfd_read(back.other[1], &v), -1);
	numbers_are_others();
	assert_int_equal(close(fd) | close(bell), 0);
	munmap(at, BYTES);
}

/* Nobody holds it as a buffer, so that AddressSanitizer takes this for a mistake. */
static __attribute__((no_sanitize_address)) void put_text(volatile char *to, const char *text)
{
	size_t i;

	for (i = 0; i <= strlen(text); i++)
		to[i] = text[i];
}

static void pool_goes(struct end e[2], bool at_dup)
{
	const struct rgate_pool_opts opts = RGATE_OPTS(rgate_pool_opts, .region_size = 4 << 20,
						       .access = RGATE_ACCESS_REMOTE,
						       .flags = RGATE_POOL_NO_HUGE);
	struct rgate_pool_region r = { .sz = sizeof(r) };
	const struct rgate_buf *buf;
	struct rgate_pool *pool;

	assert_int_equal(rgate_pool_create_keyed(&pool, NULL, &opts, READABLE_BASE + !at_dup), 0);
	assert_int_equal(rgate_pool_alloc(pool, 4096, &buf), 0);
	assert_int_equal(rgate_pool_region(pool, 0, &r), 0);
	assert_int_equal(rgate_pool_free(pool, buf), 0);
	put_text((char *)r.addr + BYTES - 64, mine);
	assert_int_equal(e[1].prov->use_pool(e[1].ep, RGATE_PROV_READABLE, pool), 0);
	takes_back(&e[1], NULL, pool, (int[2]){ r.fd, -1 });
	ask(&e[0], READABLE_BASE + !at_dup, BYTES - 64, at_dup, 0);
	numbers_are_others();
}

/* Both ends of that time: while descriptors are looked up, and when the answer is sent */
static void meanwhile(void **state)
{
	unsigned int before;
	struct cluster c;
	struct end e[2];

	(void)state;
	ends_open(&c, e, MS);
	if (!c.local) {
		ends_down(&c, e);
		unit_skip("a device reaches memory without asking for it");
	}
	ends_connect(e, RGATE_ACCESS_REMOTE);
	before = open_files();
	share_goes(e, true);
	share_goes(e, false);
	pool_goes(e, true);
	pool_goes(e, false);
	/* the bells of what is mapped; the other thread closes the last after its answer */
	wait_for(open_files() == before + 2);
	ends_down(&c, e);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(meanwhile),
};

UNIT_MAIN(tests)
