// SPDX-License-Identifier: MIT OR GPL-2.0
/* A gateway whose sockets receive many times by one request of another node */
#include "serves_bed.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#define SLOT	500U

#define RECEIVES(op_, h, n, ...) \
	QUESTION(GATE_SUBMIT_MANY, .op = RGATE_REQ_SOCKET_##op_, .handle = (h), .a1 = (n) + 1, \
		 .len = (n) * SLOT, ##__VA_ARGS__)

/* A completion of so many bytes, from message @n on: they are @want */
static uint64_t hear_bytes(uint64_t of, uint64_t n, uint32_t front, const void *want, uint32_t len)
{
	uint8_t bytes[SLOT + GATE_ADDR];
	struct gate_result r;
	uint32_t at = 0;

	do {
		r = hear_of(of);
		assert_int_equal(r.kind, GATE_MORE);
		assert_int_equal(r.number, n++);
		assert_int_equal(r.result, len);
		assert_int_equal(r.len, front + len);
		assert_true(at + r.data_len <= front + len);
		if (r.data_len)
			memcpy(bytes + at, r.data, r.data_len);
		at += r.data_len;
	} while (at < front + len);
	assert_memory_equal(bytes + front, want, len);
	return n;
}

/* So many messages of the request of ticket 2 */
static int has_heard(uint64_t of, uint64_t n)
{
	return asks_of(of, QUESTION(GATE_HEARD, .ticket = 2, .a0 = n));
}

static void receives(void **state)
{
	struct gate_result r;
	uint8_t bytes[2000];
	uint32_t h, i;
	uint64_t c, n;
	int fd;

	(void)state;
	h = serves_connected(&fd);
	for (i = 0; i < sizeof(bytes); i++)
		bytes[i] = (uint8_t)(i * 13 + (i >> 8));
	c = begin(RECEIVES(RECV, h, 4), 2);
	raw_write(fd, bytes, 10);
	n = hear_bytes(c, 0, 0, bytes, 10);
	raw_write(fd, bytes, SLOT);
	n = hear_bytes(c, n, 0, bytes, SLOT);
	assert_int_equal(n, 4);
	/* what comes then, and is lost in the middle of a slot */
	other_goes_down();
	raw_write(fd, bytes, 200);
	usleep(20000);
	other_comes_up(7);
	assert_int_equal(has_heard(c, 3), 0);
	r = hear_of(c);
	assert_int_equal(r.number, 3);
	assert_int_equal(r.len, SLOT);
	assert_int_equal(r.data_len, SLOT - 2 * GATE_PIECE);
	assert_memory_equal(r.data, bytes + 2 * GATE_PIECE, r.data_len);
	n = hear_bytes(c, n, 0, bytes, 200);
	other_goes_down();
	other_comes_up(7);
	/* there is room for the answer, and for the first ones */
	peer_say_most(PEER, 4);
	serial = c;
	ask_only(QUESTION(GATE_HEARD, .ticket = 2));
	serial += 100;
	assert_int_equal(o.peer.said.n, 4);
	other_goes_down();
	while (other_heard(&heard))
		;
	peer_say_most(PEER, 0);
	other_comes_up(7);
	assert_int_equal(has_heard(c, 7), -EINVAL);
	assert_int_equal(has_heard(c, 0), 0);
	n = hear_bytes(c, 0, 0, bytes, 10);
	n = hear_bytes(c, n, 0, bytes, SLOT);
	n = hear_bytes(c, n, 0, bytes, 200);
	/* the stream ends */
	close(fd);
	hear_end(c, n, 0);
	/* of a stream the peer's address, if it is asked for; and its end has none */
	h = serves_connected(&fd);
	c = begin(RECEIVES(RECVFROM, h, 4), 2);
	raw_write(fd, bytes, 300);
	n = hear_bytes(c, 0, GATE_ADDR, bytes, 300);
	close(fd);
	hear_end(c, n, 0);
	/* what can not be */
	h = serves_connected(&fd);
	assert_int_equal(done_of(RECEIVES(RECV, h, 4, .a0 = RGATE_SOCKET_PEEK)).result, -EINVAL);
	close(fd);
}

static void receives_datagrams(void **state)
{
	const uint32_t h = serves_socket(RGATE_SOCKET_DGRAM);
	struct rgate_socket_addr a = serves_loopback(0);
	struct sockaddr_in in = { .sin_family = AF_INET };
	struct gate_result r;
	uint16_t port;
	uint64_t c, n;
	int fd;

	(void)state;
	fd = raw_udp(&port);
	assert_int_equal(done_of(SUBMIT(BIND, .handle = h, .len = GATE_ADDR, .data = &a,
					.data_len = GATE_ADDR)).result, 0);
	r = done_of(SUBMIT(NAME, .handle = h, .len = GATE_ADDR));
	memcpy(&a, r.data, sizeof(a));
	in.sin_port = htons(a.port);
	in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	assert_int_equal(connect(fd, (struct sockaddr *)&in, sizeof(in)), 0);
	c = begin(RECEIVES(RECVFROM, h, 3), 2);
	raw_write(fd, "one", 3);
	n = hear_bytes(c, 0, GATE_ADDR, "one", 3);
	memcpy(&a, heard.data + sizeof(struct gate_answer), sizeof(a));
	assert_int_equal(a.port, port);
	assert_int_equal(send(fd, "", 0, 0), 0);
	n = hear_bytes(c, n, GATE_ADDR, "", 0);
	assert_int_equal(ask(QUESTION(GATE_CANCEL, .ticket = 2)).result, 0);
	hear_end(c, n, -ECANCELED);
	c = begin(RECEIVES(RECV, h, 3), 2);
	assert_int_equal(send(fd, "", 0, 0), 0);
	n = hear_bytes(c, 0, 0, "", 0);
	raw_write(fd, "two", 3);
	n = hear_bytes(c, n, 0, "two", 3);
	raw_write(fd, "three", 5);
	n = hear_bytes(c, n, 0, "three", 5);
	hear_end(c, n, -ENOBUFS);
	close(fd);
}

/* The policy does not allow it any more, while there is no room for the rest of one. */
static void revoked(void **state)
{
	uint8_t bytes[SLOT] = { 1 };
	struct gate_result r;
	uint32_t h;
	uint64_t c;
	int fd;

	(void)state;
	h = serves_connected(&fd);
	c = begin(RECEIVES(RECV, h, 4), 2);
	/* its first piece, then one message more */
	peer_say_most(PEER, 1);
	raw_write(fd, bytes, SLOT);
	r = hear_of(c);
	assert_int_equal(r.number, 0);
	assert_int_equal(r.data_len, GATE_PIECE);
	serves_banned = ME;
	gate_service_review(serves_sv);
	hear_end(c, 1, -EACCES);
	serves_become(0);
	close(fd);
}

/* With fewer descriptors than it needs, from none at all, it does not come to be, and says so. */
static void scarce(void **state)
{
	const struct gate_opts opts = RGATE_OPTS(gate_opts, .role = &gate_sockets, .hub = HUB,
						 .gateway = SELF, .may = gate_bed_may);
	struct gate_opts all = opts;
	struct gate_service *sv;
	struct rlimit was, few;
	unsigned int n, open;
	int top, err = -EMFILE;

	(void)state;
	gate_bed_init(&gate_sockets, serves_turn);
	net_up(NULL, 0);
	all.engine = net_eng;
	open = unit_entries("/proc/self/fd");
	top = dup(0);
	assert_true(top > 0);
	close(top);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &was), 0);
	for (n = 0; err && n < 8; n++) {
		few = (struct rlimit){ (rlim_t)top + n, was.rlim_max };
		assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
		err = gate_service_create(&sv, &all);
		assert_int_equal(setrlimit(RLIMIT_NOFILE, &was), 0);
		if (err) {
			assert_int_equal(err, -EMFILE);
			assert_int_equal(unit_entries("/proc/self/fd"), open);
		}
	}
	/* what it waits with, and what ends that */
	assert_int_equal(err, 0);
	assert_true(n > 2);
	serves_sv = sv;
	assert_int_equal(serves_teardown(NULL), 0);
}

#define BED(name)	cmocka_unit_test_setup_teardown(name, serves_setup, serves_teardown)

static const struct CMUnitTest tests[] = {
	BED(receives), BED(receives_datagrams), BED(revoked), cmocka_unit_test(scarce),
};

UNIT_MAIN(tests)
