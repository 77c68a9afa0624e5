// SPDX-License-Identifier: MIT OR GPL-2.0
/* Names that are looked up by requests, with a getaddrinfo() that answers when the test says so */
#include "socket_bed.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#include <ringgate/rgate_socket.h>

#include "socket_query.h"
#include "socket_resolve.h"

#define STREAM	RGATE_SOCKET_STREAM
#define ADDR	((uint32_t)sizeof(struct rgate_socket_addr))
#define ROOM	4096U
#define AT	8192U		/* where questions are, in a client's memory */
#define SLOW_AT	(AT + ROOM)	/* and those of "slow..." */
#define A	(&net_a)
#define B	(&net_b)
#define FAKE	4711		/* ai_protocol of what is freed here */

/* ---- What names there are ---- */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static unsigned int asked, back, let_go;	/* of "slow..." */
static bool go;
static _Atomic int fake_error, fake_errno;
static _Atomic unsigned int fake_many, fake_types;
static const char *_Atomic fake_canon;
static unsigned int threads;	/* that this process has without any of this */
static uint32_t slow_at;	/* where the last one is */

int __real_getaddrinfo(const char *name, const char *service, const struct addrinfo *hints,
		       struct addrinfo **list);
void __real_freeaddrinfo(struct addrinfo *list);
int __wrap_getaddrinfo(const char *name, const char *service, const struct addrinfo *hints,
		       struct addrinfo **list);
void __wrap_freeaddrinfo(struct addrinfo *list);

static struct addrinfo *fake(unsigned int i, int type)
{
	struct addrinfo *ai = calloc(1, sizeof(*ai) + sizeof(struct sockaddr_in));
	struct sockaddr_in *in;

	assert_non_null(ai);
	in = (struct sockaddr_in *)(ai + 1);
	in->sin_family = AF_INET;
	in->sin_addr.s_addr = htonl(0x0a000000 + i);
	*ai = (struct addrinfo){
		.ai_family = AF_INET, .ai_socktype = type, .ai_protocol = FAKE,
		.ai_addr = (struct sockaddr *)in, .ai_addrlen = sizeof(*in),
	};
	return ai;
}

/* Each for some types, as getaddrinfo() does */
static void fake_list(struct addrinfo **list)
{
	static const int types[] = { SOCK_STREAM, SOCK_DGRAM, SOCK_RAW };
	unsigned int i, t;

	*list = NULL;
	for (i = 0; i < fake_many; i++)
		for (t = 0; t < fake_types; t++) {
			*list = fake(i, types[t]);
			if (!i && !t && fake_canon)
				(*list)->ai_canonname = strdup(fake_canon);
			list = &(*list)->ai_next;
		}
}

static void wait_to_go(void)
{
	pthread_mutex_lock(&lock);
	asked++;
	pthread_cond_broadcast(&changed);
	while (!go && !let_go)
		pthread_cond_wait(&changed, &lock);
	if (!go)
		let_go--;
	back++;
	pthread_cond_broadcast(&changed);
	pthread_mutex_unlock(&lock);
}

int __wrap_getaddrinfo(const char *name, const char *service, const struct addrinfo *hints,
		       struct addrinfo **list)
{
	if (!name || (strncmp(name, "slow", 4) && strncasecmp(name, "fake", 4)))
		return __real_getaddrinfo(name, service, hints, list);
	if (*name == 's')
		wait_to_go();
	if (fake_error) {
		errno = fake_errno;
		return fake_error;
	}
	fake_list(list);
	return 0;
}

void __wrap_freeaddrinfo(struct addrinfo *list)
{
	struct addrinfo *next;

	if (list->ai_protocol != FAKE) {
		__real_freeaddrinfo(list);
		return;
	}
	for (; list; list = next) {
		next = list->ai_next;
		free(list->ai_canonname);
		free(list);
	}
}

/* Until so many have been asked for, or have come back */
static void wait_until(const unsigned int *what, unsigned int n)
{
	pthread_mutex_lock(&lock);
	while (*what < n)
		pthread_cond_wait(&changed, &lock);
	pthread_mutex_unlock(&lock);
}

static void let(unsigned int n)
{
	pthread_mutex_lock(&lock);
	let_go = n;
	go = !n;
	pthread_cond_broadcast(&changed);
	pthread_mutex_unlock(&lock);
}

/* ---- Questions ---- */

static void reset(void)
{
	asked = back = let_go = 0;
	go = false;
	fake_error = fake_errno = 0;
	fake_many = fake_types = 1;
	fake_canon = NULL;
}

/* Threads that are left to themselves come to their end. */
static void no_threads(void)
{
	const uint64_t until = unit_now_ns() + 20000000000ULL * unit_patience();

	wait_until(&back, asked);
	while (unit_entries("/proc/self/task") != threads && unit_now_ns() < until)
		usleep(1000);
	assert_int_equal(unit_entries("/proc/self/task"), threads);
}

static int up(void **state)
{
	(void)state;
	if (!threads) {
		/* A sanitizer has one of its own as soon as there are several. */
		net_up(NULL, 0);
		net_down();
		threads = unit_entries("/proc/self/task");
	}
	reset();
	net_up(NULL, 0);
	return 0;
}

static int down(void **state)
{
	(void)state;
	let(0);
	net_down();
	no_threads();
	return 0;
}

static uint64_t post(struct net_client *c, const char *name, const char *service, uint64_t a0)
{
	const size_t n = strlen(name), s = strlen(service);
	uint32_t at = AT;

	/* Those that are under way together have a part each. */
	if (*name == 's')
		at = slow_at = SLOW_AT + (uint32_t)(c->last % 512) * ROOM;
	memcpy(c->c.mem + at, name, n);
	memcpy(c->c.mem + at + n, service, s);
	return POST(c, RESOLVE, .a0 = a0, .a1 = RGATE_SOCKET_RESOLVE_A1(n, s), .off = at,
		    .len = ROOM);
}

static int ask(struct net_client *c, const char *name, const char *service, uint64_t a0)
{
	return net_end(c, post(c, name, service, a0));
}

static struct rgate_socket_addr found(const struct net_client *c, unsigned int i)
{
	struct rgate_socket_addr a;

	memcpy(&a, c->c.mem + AT + i * ADDR, sizeof(a));
	return a;
}

static const char *text_of(const struct net_client *c, unsigned int i)
{
	static char text[64];
	const struct rgate_socket_addr a = found(c, i);

	return rgate_socket_addr_print(&a, text, sizeof(text));
}

#define A0(family, flags) RGATE_SOCKET_RESOLVE_A0(family, STREAM, flags)

/* What needs no network: numbers, and the machine's own name for itself */
static void plain(void **state)
{
	int n, i;

	(void)state;
	assert_int_equal(ask(A, "10.1.2.3", "80", A0(0, RGATE_SOCKET_RESOLVE_NUMERIC)), ADDR);
	assert_int_equal(net_value, 1);
	assert_string_equal(text_of(A, 0), "10.1.2.3:80");
	assert_int_equal(ask(A, "::1", "", A0(0, 0)), ADDR);
	assert_string_equal(text_of(A, 0), "[::1]:0");
	assert_int_equal(ask(A, "", "8080", A0(RGATE_SOCKET_INET, RGATE_SOCKET_RESOLVE_PASSIVE |
					       RGATE_SOCKET_RESOLVE_PORT)), ADDR);
	assert_string_equal(text_of(A, 0), "0.0.0.0:8080");
	n = ask(A, "localhost", "443", A0(0, 0));
	assert_true(n > 0 && n % (int)ADDR == 0);
	assert_int_equal(net_value, n / (int)ADDR);
	for (i = 0; i < n / (int)ADDR; i++)
		assert_true(!strcmp(text_of(A, (unsigned int)i), "127.0.0.1:443") ||
			    !strcmp(text_of(A, (unsigned int)i), "[::1]:443"));
	assert_int_equal(ask(A, "localhost", "", A0(RGATE_SOCKET_INET, 0)), ADDR);
	assert_string_equal(text_of(A, 0), "127.0.0.1:0");
	assert_int_equal(ask(A, "localhost", "", A0(0, RGATE_SOCKET_RESOLVE_NUMERIC)), -ENOENT);
	assert_int_equal(ask(A, "10.1.2.3", "", A0(RGATE_SOCKET_INET6, 0)), -EADDRNOTAVAIL);
	assert_int_equal(ask(A, "10.1.2.3", "", A0(RGATE_SOCKET_INET6,
						   RGATE_SOCKET_RESOLVE_V4MAPPED)), ADDR);
	assert_string_equal(text_of(A, 0), "[::ffff:10.1.2.3]:0");
	assert_int_equal(ask(A, "", "80x", A0(0, RGATE_SOCKET_RESOLVE_PORT)), -ENOENT);
	assert_int_equal(ask(A, "", "80", A0(0, RGATE_SOCKET_RESOLVE_CANON)), -EINVAL);
}

static void errors(void **state)
{
	static const struct {
		int eai, err, result;
	} e[] = {
		{ EAI_NONAME, 0, -ENOENT }, { EAI_NODATA, 0, -ENODATA },
		{ EAI_ADDRFAMILY, 0, -EADDRNOTAVAIL }, { EAI_AGAIN, 0, -EHOSTUNREACH },
		{ EAI_FAIL, 0, -EREMOTEIO }, { EAI_SERVICE, 0, -EPROTONOSUPPORT },
		{ EAI_SOCKTYPE, 0, -ESOCKTNOSUPPORT }, { EAI_FAMILY, 0, -EAFNOSUPPORT },
		{ EAI_MEMORY, 0, -ENOMEM }, { EAI_BADFLAGS, 0, -EINVAL },
	};
	unsigned int i;

	(void)state;
	for (i = 0; i < ARRAY_LEN(e); i++) {
		fake_error = e[i].eai;
		assert_int_equal(ask(A, "fake", "", 0), e[i].result);
		assert_int_equal(net_value, 0);
		assert_int_equal(rgate_socket_eai(e[i].result), e[i].eai);
	}
	fake_error = EAI_SYSTEM;
	fake_errno = EMFILE;
	assert_int_equal(ask(A, "fake", "", 0), -EMFILE);
	assert_int_equal(rgate_socket_eai(-EMFILE), EAI_SYSTEM);
	assert_int_equal(errno, EMFILE);
	/* what would mean something else */
	fake_errno = ENOENT;
	assert_int_equal(ask(A, "fake", "", 0), -EIO);
	fake_errno = 0;
	assert_int_equal(ask(A, "fake", "", 0), -EIO);
	fake_error = -12345;
	assert_int_equal(ask(A, "fake", "", 0), -EIO);
	assert_int_equal(rgate_socket_eai(0), 0);
	assert_int_equal(rgate_socket_eai(-ETIMEDOUT), EAI_AGAIN);
	assert_int_equal(rgate_socket_eai(-EDQUOT), EAI_AGAIN);
	assert_int_equal(rgate_socket_eai(-ENAMETOOLONG), EAI_NONAME);
	/* a name without an address */
	fake_error = 0;
	fake_many = 0;
	assert_int_equal(ask(A, "fake", "", 0), -ENODATA);
}

static void fields(void **state)
{
	char longest[RGATE_SOCKET_NAME_MAX + 2], port[RGATE_SOCKET_SERVICE_MAX + 2];
	unsigned int c;

	(void)state;
	assert_int_equal(ask(A, "", "", 0), -EINVAL);
	assert_int_equal(ask(A, "fake", "", A0(5, 0)), -EAFNOSUPPORT);
	assert_int_equal(ask(A, "fake", "", RGATE_SOCKET_RESOLVE_A0(0, 3, 0)), -ESOCKTNOSUPPORT);
	assert_int_equal(ask(A, "fake", "", A0(0, RGATE_SOCKET_RESOLVE_FLAGS + 1)), -EINVAL);
	assert_int_equal(ask(A, "fake", "", A0(0, 1U << 31)), -EINVAL);
	assert_int_equal(ASK(A, RESOLVE, .a1 = 4 | 1ULL << 32, .off = AT, .len = ROOM), -EINVAL);
	assert_int_equal(ASK(A, RESOLVE, .a1 = 4, .off = AT, .len = ADDR - 1), -EINVAL);
	assert_int_equal(ASK(A, RESOLVE, .a1 = 40, .off = AT, .len = 39), -EINVAL);
	assert_int_equal(ASK(A, RESOLVE, .a1 = 0xffffffff, .off = AT, .len = ROOM), -EINVAL);
	assert_int_equal(ASK(A, RESOLVE, .a1 = 4), -EINVAL);
	assert_int_equal(ASK(A, RESOLVE, .a1 = 4, .off = NET_MEM, .len = ADDR), -ERANGE);
	assert_int_equal(ASK(A, RESOLVE, .a1 = 4, .off = AT, .len = ROOM, .handle = 1), -EINVAL);
	memset(longest, 'f', sizeof(longest));
	longest[RGATE_SOCKET_NAME_MAX + 1] = '\0';
	memcpy(longest, "fake", 4);
	assert_int_equal(ask(A, longest, "", 0), -ENAMETOOLONG);
	longest[RGATE_SOCKET_NAME_MAX] = '\0';
	assert_int_equal(ask(A, longest, "", 0), ADDR);
	memset(port, 'p', sizeof(port));
	port[RGATE_SOCKET_SERVICE_MAX + 1] = '\0';
	assert_int_equal(ask(A, "fake", port, 0), -ENAMETOOLONG);
	port[RGATE_SOCKET_SERVICE_MAX] = '\0';
	assert_int_equal(ask(A, "fake", port, 0), ADDR);
	/* Each byte that no name has, at its end, and none reaches getaddrinfo(). */
	for (c = 0; c < 256; c++) {
		const bool good = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') ||
				  (c >= 'A' && c <= 'Z') || (c && strchr(".-_:%", (int)c));

		memcpy(A->c.mem + AT, "fake", 4);
		A->c.mem[AT + 4] = (unsigned char)c;
		assert_int_equal(ASK(A, RESOLVE, .a1 = 5, .off = AT, .len = ROOM),
				 good ? (int)ADDR : -EILSEQ);
	}
	assert_int_equal(ask(A, "fake", "a/b", 0), -EILSEQ);
}

/* As many as there is room for, and not a byte behind it */
static void room(void **state)
{
	const uint64_t canon = A0(0, RGATE_SOCKET_RESOLVE_CANON);
	unsigned int i;

	(void)state;
	fake_many = 100;
	fake_types = 3;
	memset(A->c.mem + AT, 0x5a, ROOM);
	assert_int_equal(ask(A, "fake", "", 0), RGATE_SOCKET_FOUND_MAX * ADDR);
	assert_int_equal(net_value, 100);
	for (i = 0; i < RGATE_SOCKET_FOUND_MAX; i++)
		assert_int_equal(found(A, i).addr[3], i);
	assert_int_equal(A->c.mem[AT + RGATE_SOCKET_FOUND_MAX * ADDR], 0x5a);
	memset(A->c.mem + AT, 0x5a, ROOM);
	memcpy(A->c.mem + AT, "fake", 4);
	assert_int_equal(ASK(A, RESOLVE, .a1 = 4, .off = AT, .len = 3 * ADDR - 1), 2 * ADDR);
	assert_int_equal(net_value, 100);
	for (i = 2 * ADDR; i < ROOM; i++)
		assert_int_equal(A->c.mem[AT + i], 0x5a);
	/* with the name's proper form, if it has room, with its end */
	fake_many = 2;
	fake_canon = "proper.example";
	assert_int_equal(ask(A, "fake", "", canon), 2 * ADDR + 15);
	assert_int_equal(RGATE_SOCKET_FOUND(net_value), 2);
	assert_int_equal(RGATE_SOCKET_CANON(net_value), 14);
	assert_string_equal((char *)A->c.mem + AT + 2 * ADDR, "proper.example");
	assert_int_equal(ASK(A, RESOLVE, .a0 = canon, .a1 = 4, .off = AT,
			     .len = 2 * ADDR + 14), -EILSEQ);	/* what lies there now is no name */
	memcpy(A->c.mem + AT, "fake", 4);
	assert_int_equal(ASK(A, RESOLVE, .a0 = canon, .a1 = 4, .off = AT, .len = 2 * ADDR + 14),
			 2 * ADDR);
	assert_int_equal(RGATE_SOCKET_CANON(net_value), 0);
	memcpy(A->c.mem + AT, "fake", 4);
	assert_int_equal(ASK(A, RESOLVE, .a0 = canon, .a1 = 4, .off = AT, .len = 2 * ADDR + 15),
			 2 * ADDR + 15);
}

/* What a name server says the name is */
static void lies(void **state)
{
	char longest[300];

	(void)state;
	fake_canon = "\033[2J.example";
	assert_int_equal(ask(A, "fake", "", A0(0, RGATE_SOCKET_RESOLVE_CANON)), ADDR);
	assert_int_equal(net_value, 1);
	memset(longest, 'a', sizeof(longest));
	longest[256] = '\0';
	fake_canon = longest;
	assert_int_equal(ask(A, "fake", "", A0(0, RGATE_SOCKET_RESOLVE_CANON)), ADDR);
	longest[255] = '\0';
	fake_canon = longest;
	assert_int_equal(ask(A, "fake", "", A0(0, RGATE_SOCKET_RESOLVE_CANON)), ADDR + 256);
	assert_int_equal(socket_found_count(2 * ADDR + 3, 2ULL << 32 | 2), 2);
	assert_int_equal(socket_found_count(2 * ADDR + 3, 3ULL << 32 | 2), -EPROTO);
	assert_int_equal(socket_found_count(2 * ADDR, 1), -EPROTO);
	assert_int_equal(socket_found_count(0, UINT64_MAX), -EPROTO);
	assert_int_equal(socket_found_count(2, 2ULL << 32 | 2), -EPROTO);
	assert_int_equal(socket_found_count(0, 5), 0);
}

/* ---- In the middle ---- */

static void cancelled(void **state)
{
	uint64_t running, own, waits[4];
	unsigned int i;

	(void)state;
	running = post(A, "slow", "", 0);
	wait_until(&asked, 1);
	assert_int_equal(net_end_in(A, running, 20), -ETIME);
	/* Sockets go on meanwhile. */
	assert_int_equal(net_close(A, net_socket(A, 4, STREAM)), 0);
	assert_int_equal(net_cancel(A, running), 0);
	assert_int_equal(net_end(A, running), -ECANCELED);
	/* Its answer comes late: nothing is written, and nobody is told. */
	memset(A->c.mem + slow_at, 0x5a, ROOM);
	let(1);
	wait_until(&back, 1);
	assert_int_equal(net_cancel(A, running), -ENOENT);
	own = post(A, "fake", "", 0);
	assert_int_equal(net_end(A, own), ADDR);
	for (i = 0; i < ROOM; i++)
		assert_int_equal(A->c.mem[slow_at + i], 0x5a);
	/* One that waits for a thread has never been asked for. */
	for (i = 0; i < ARRAY_LEN(waits); i++)
		waits[i] = post(A, "slow", "", 0);
	wait_until(&asked, 5);
	own = post(A, "slow", "", 0);
	assert_int_equal(net_end_in(A, own, 20), -ETIME);
	assert_int_equal(net_cancel(A, own), 0);
	assert_int_equal(net_end(A, own), -ECANCELED);
	let(0);
	for (i = 0; i < ARRAY_LEN(waits); i++)
		assert_int_equal(net_end(A, waits[i]), ADDR);
	assert_int_equal(asked, 5);
	assert_int_equal(net_cancel(A, waits[0]), -ENOENT);
}

static void in_time(void **state)
{
	uint64_t late;

	(void)state;
	memcpy(A->c.mem + AT, "slow", 4);
	late = POST(A, RESOLVE, .a1 = 4, .off = AT, .len = ROOM, .deadline_us = 20000);
	assert_int_equal(net_end(A, late), -ETIMEDOUT);
}

/* A session ends while its names are looked up, and while they wait; then the service. */
static void ends(void **state)
{
	unsigned int i;

	(void)state;
	for (i = 0; i < 10; i++)
		(void)post(B, "slow", "", 0);
	wait_until(&asked, RESOLVE_SHARED);
	net_part(B);
	net_join(B, 2);
	/* What is still asked for counts: of this user two more at most wait on others. */
	for (i = 0; i < 3; i++)
		(void)post(B, "slow", "", 0);
	(void)post(A, "slow", "", 0);
	wait_until(&asked, RESOLVE_SHARED + 1);
	net_down();
	assert_int_equal(asked, RESOLVE_SHARED + 1);
	let(0);
	no_threads();
	assert_int_equal(back, RESOLVE_SHARED + 1);
}

/* ---- Many ---- */

/* A user who asks for much waits for itself: others have their turn. */
static void full(void **state)
{
	static struct net_client more[RESOLVE_WAIT_ALL / RESOLVE_WAIT];
	uint64_t id[RESOLVE_SHARED + RESOLVE_WAIT], other, last;
	unsigned int i, k;

	(void)state;
	for (i = 0; i < RESOLVE_SHARED; i++)
		id[i] = post(A, "slow", "", 0);
	wait_until(&asked, RESOLVE_SHARED);
	for (; i < ARRAY_LEN(id); i++)
		id[i] = post(A, "slow", "", 0);
	assert_int_equal(ask(A, "fake", "", 0), -EDQUOT);
	for (i = 0; i < 5; i++)
		assert_int_equal(ask(B, "fake", "", 0), ADDR);
	other = post(B, "slow", "", 0);
	wait_until(&asked, RESOLVE_SHARED + 1);
	last = post(B, "slow", "", 0);
	wait_until(&asked, RESOLVE_SHARED + RESOLVE_OWN);
	assert_int_equal(net_end_in(B, post(B, "fake", "", 0), 20), -ETIME);
	for (k = 0; k < ARRAY_LEN(more); k++)
		net_join(&more[k], 100 + k);
	/* The first of these has the last two threads; then all wait, until there is no room. */
	for (k = 0; k < ARRAY_LEN(more) - 1; k++)
		for (i = 0; i < RESOLVE_WAIT; i++)
			(void)post(&more[k], "slow", "", 0);
	wait_until(&asked, RESOLVE_THREADS);
	do
		other = post(&more[k], "slow", "", 0);
	while (net_end_in(&more[k], other, 20) == -ETIME);
	assert_int_equal(net_end(&more[k], other), -ENOBUFS);
	for (k = 0; k < ARRAY_LEN(more); k++)
		net_part(&more[k]);
	/* All at once, each once */
	let(0);
	for (i = 0; i < ARRAY_LEN(id); i++)
		assert_int_equal(net_end(A, id[i]), ADDR);
	assert_int_equal(net_end(B, last), ADDR);
	assert_int_equal(ask(A, "fake", "", 0), ADDR);
}

/* ---- Who may ---- */

static int up_policy(void **state)
{
	(void)state;
	reset();
	net_up("allow user:1 resolve fake.example\nallow user:1 resolve .slow.Example.\n", 0);
	return 0;
}

static void policy(void **state)
{
	uint64_t id;

	(void)state;
	assert_int_equal(ask(A, "fake.example", "", 0), ADDR);
	assert_int_equal(ask(A, "FAKE.example.", "80", 0), ADDR);
	assert_int_equal(ask(A, "fake.example.org", "", 0), -EACCES);
	assert_int_equal(ask(A, "fakefake.example", "", 0), -EACCES);
	assert_int_equal(ask(A, "fake.slow.example", "", 0), ADDR);
	assert_int_equal(ask(A, "slow.example", "", 0), -EACCES);
	assert_int_equal(ask(A, ".slow.example", "", 0), -EACCES);
	assert_int_equal(ask(B, "fake.example", "", 0), -EACCES);
	/* What asks nobody */
	assert_int_equal(ask(B, "10.0.0.1", "80", A0(0, RGATE_SOCKET_RESOLVE_NUMERIC |
						     RGATE_SOCKET_RESOLVE_PORT)), ADDR);
	assert_int_equal(ask(B, "10.0.0.1", "80", A0(0, RGATE_SOCKET_RESOLVE_NUMERIC)), -EACCES);
	assert_int_equal(ask(A, "10.0.0.1", "80", A0(0, RGATE_SOCKET_RESOLVE_NUMERIC)), ADDR);
	assert_int_equal(ask(B, "10.0.0.1", "", 0), -EACCES);
	assert_int_equal(ask(B, "", "http", 0), -EACCES);
	assert_true(ask(A, "", "80", 0) > 0);
	/* One that is under way when it is not allowed any more */
	id = post(A, "slow.slow.example", "", 0);
	wait_until(&asked, 1);
	net_new_policy("allow any resolve any\nlimit any sockets 4\n");
	let(1);
	assert_int_equal(net_end(A, id), ADDR);
	assert_int_equal(ask(B, "fake.org", "", 0), ADDR);
	id = post(A, "slow.slow.example", "", 0);
	wait_until(&asked, 2);
	net_new_policy("allow user:2 resolve any\nallow user:1 connect tcp any any\n");
	memset(A->c.mem + slow_at, 0x5a, ADDR);
	let(1);
	assert_int_equal(net_end(A, id), -EACCES);
	assert_int_equal(A->c.mem[slow_at], 0x5a);
}

static int parse(const char *line)
{
	struct socket_policy *p = NULL;
	char text[400];
	int err;

	snprintf(text, sizeof(text), "%s\n", line);
	err = socket_policy_parse(&p, "test", text, strlen(text));
	socket_policy_free(p);
	return err;
}

static void lines(void **state)
{
	(void)state;
	assert_int_equal(parse("allow any resolve any"), 0);
	assert_int_equal(parse("allow user:1 resolve .example.com"), 0);
	assert_int_equal(parse("allow any resolve"), -EINVAL);
	assert_int_equal(parse("allow any resolve a b"), -EINVAL);
	assert_int_equal(parse("allow any resolve ."), -EINVAL);
	assert_int_equal(parse("allow any resolve .."), -EINVAL);
	assert_int_equal(parse("allow any resolve *.example.com"), -EINVAL);
	assert_int_equal(parse("allow any resolve \"\""), -EINVAL);
}

#define BED(name)	cmocka_unit_test_setup_teardown(name, up, down)

static const struct CMUnitTest tests[] = {
	BED(plain), BED(errors), BED(fields), BED(room), BED(lies), BED(cancelled), BED(in_time),
	cmocka_unit_test_setup(ends, up), BED(full),
	cmocka_unit_test_setup_teardown(policy, up_policy, down), cmocka_unit_test(lines),
};

UNIT_MAIN(tests)
