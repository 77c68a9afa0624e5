// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * Memory under a name: exports some of it, opens it, counts in it, and reads what is there.
 *
 *	memory [SOCKET [NODE OWNER]]
 *
 * Without arguments this process serves itself; with a socket the daemon there does. With a
 * node nothing is exported: it counts in what the user OWNER, by number, has exported there.
 */
#include <ringgate/ringgate.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define NAME	"demo/counter"
#define LEN	(sizeof(NAME) - 1)
#define PART	4096	/* what is exported of the session's memory */
#define MINE	2048	/* and what is not */

/* One request and its completion */
static int ask(struct rgate_session *s, struct rgate_request q, uint64_t *value)
{
	struct rgate_completion c;
	int n = rgate_session_submit(s, &q);

	if (!n)
		n = rgate_session_wait(s, 30000);
	if (n <= 0 || rgate_session_poll(s, &c, 1) != 1)
		return n < 0 ? n : -1;
	*value = c.value;
	return c.result;
}

static int export(struct rgate_session *s, uint64_t *handle)
{
	char *mem = rgate_session_memory(s, NULL);

	/* The owner may everything, others may count and read. */
	const uint32_t mode = RGATE_MEMORY_MODE(RGATE_MEMORY_RIGHTS,
						RGATE_MEMORY_READ | RGATE_MEMORY_ATOMIC);

	memcpy(mem, NAME, LEN);
	return ask(s, (struct rgate_request){
		.op = RGATE_REQ_MEMORY_EXPORT, .off = PART, .len = 64, .a0 = 0,
		.a1 = RGATE_MEMORY_EXPORT_A1(mode, LEN) }, handle);
}

static int count(struct rgate_session *s, uint64_t node, uint32_t owner)
{
	char *mem = rgate_session_memory(s, NULL);
	uint64_t value, now;
	uint32_t handle;
	int err;

	memcpy(mem, NAME, LEN);
	err = ask(s, (struct rgate_request){
		.op = RGATE_REQ_MEMORY_OPEN, .a0 = node, .off = 0, .len = LEN,
		.a1 = RGATE_MEMORY_OPEN_A1(owner, RGATE_MEMORY_READ | RGATE_MEMORY_ATOMIC) },
		  &value);
	if (err)
		return err;
	handle = RGATE_MEMORY_HANDLE(value);
	printf("opened: %u bytes\n", RGATE_MEMORY_LENGTH(value));
	err = ask(s, (struct rgate_request){
		.op = RGATE_REQ_MEMORY_FETCH_ADD, .handle = handle, .a0 = 0, .a1 = 5 }, &value);
	if (err)
		return err;
	printf("there was: %llu\n", (unsigned long long)value);
	err = ask(s, (struct rgate_request){
		.op = RGATE_REQ_MEMORY_READ, .handle = handle, .a0 = 0, .off = MINE,
		.len = sizeof(now) }, &value);
	if (err)
		return err;
	memcpy(&now, mem + MINE, sizeof(now));
	printf("there is: %llu\n", (unsigned long long)now);
	return ask(s, (struct rgate_request){
		.op = RGATE_REQ_MEMORY_RELEASE, .handle = handle }, &value);
}

int main(int argc, char **argv)
{
	struct rgate_session_opts o = RGATE_OPTS(rgate_session_opts, .memory = 8192,
		.where = argc > 1 ? RGATE_SESSION_DAEMON : RGATE_SESSION_PROCESS,
		.path = argc > 1 ? argv[1] : NULL);
	struct rgate_session *s;
	uint64_t value;
	int err;

	err = rgate_session_open(&s, &o);
	if (err) {
		fprintf(stderr, "no session: %s\n", rgate_strerror("rgate_session_open", err));
		return 1;
	}
	if (argc > 3) {
		err = count(s, strtoull(argv[2], NULL, 0), (uint32_t)strtoul(argv[3], NULL, 0));
	} else {
		err = export(s, &value);
		if (!err)
			err = count(s, RGATE_MEMORY_HERE, geteuid());
	}
	if (err)
		fprintf(stderr, "%s\n", rgate_strerror(NULL, err));
	rgate_session_close(s);
	return !!err;
}
