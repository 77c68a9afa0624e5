// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * What a queue's journal has. The input is a segment, with a head of its own or made for it; in the
 * second case its records' sums are made right, too, so that what is behind them is looked at. It
 * is read, then loaded as the only file of a directory, with repair and without.
 */
#include "fuzz.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "journal_priv.h"

static char dir[64];

static uint64_t wall_now(void)
{
	return 1700000000000000000ULL;
}

static void remove_all(void)
{
	char path[160], name[JOURNAL_NAME_ROOM];
	uint64_t i;

	for (i = 1; i < 8; i++) {
		journal_name(i, name);
		snprintf(path, sizeof(path), "%s/%s", dir, name);
		(void)unlink(path);
		snprintf(path, sizeof(path), "%s/%s.wrong", dir, name);
		(void)unlink(path);
	}
}

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc;
	(void)argv;
	strcpy(dir, access("/dev/shm", W_OK) ? "/tmp/fuzz_journal.XXXXXX" :
	       "/dev/shm/fuzz_journal.XXXXXX");
	FUZZ_CHECK(mkdtemp(dir));
	return 0;
}

/* A head, and what follows it as records of the sizes that they say, in their places */
static void make_right(unsigned char *mem, size_t len)
{
	struct journal_head head = {
		.magic = JOURNAL_MAGIC, .version = JOURNAL_VERSION, .salt = 7, .number = 1,
	};
	struct journal_record r;
	size_t at;

	head.crc = journal_head_crc(&head);
	memcpy(mem, &head, sizeof(head));
	for (at = sizeof(head); len - at >= sizeof(r); at += r.len) {
		memcpy(&r, mem + at, sizeof(r));
		r.len = (r.len & 0xff8) | 24;
		if (r.len > len - at)
			r.len = (uint32_t)(len - at) & ~7U;
		r.at = (uint32_t)at;
		r.sure &= 0xff;
		r.kind = 1 + r.kind % (JOURNAL_KINDS - 1);
		memcpy(mem + at, &r, sizeof(r));
		r.crc = journal_record_crc(head.salt, mem + at, r.len);
		memcpy(mem + at, &r, sizeof(r));
	}
}

static void read_it(const unsigned char *mem, size_t len)
{
	struct journal_reader r;
	struct journal_got got;
	bool sure;
	size_t at;
	int more;

	if (journal_read_head(&r, mem, len))
		return;
	for (;;) {
		at = r.at;
		more = journal_read_next(&r, &got);
		if (more == 1) {
			FUZZ_CHECK(r.at > at && r.at <= len && r.at % 8 == 0);
			FUZZ_CHECK(!got.data || (got.data >= mem && got.end <= mem + len));
			continue;
		}
		FUZZ_CHECK(r.at == at);
		if (!more)
			return;
		at = journal_read_find(&r, &sure);
		FUZZ_CHECK(!at || (at > r.at && at < len));
		if (!at)
			return;
		r.at = at;
	}
}

static void check(const struct queues *home)
{
	const struct queue *q;
	const struct link *l, *t;
	uint64_t last, bytes;
	uint32_t n;

	for (l = home->all.next; l != &home->all; l = l->next) {
		q = container_of(l, struct queue, of_home);
		FUZZ_CHECK(q->n || q->rules.flags & RGATE_QUEUE_KEEP);
		FUZZ_CHECK(!q->handles);
		last = bytes = n = 0;
		for (t = q->tasks.next; t != &q->tasks; t = t->next) {
			const struct task *task = container_of(t, struct task, of_queue);

			FUZZ_CHECK(task->id > last && task->id <= q->last);
			FUZZ_CHECK(queue_find(q, task->id) == task && task->seg);
			last = task->id;
			bytes += task->len;
			n++;
		}
		FUZZ_CHECK(n == q->n && bytes == q->count.bytes);
	}
}

static int load(bool repair)
{
	const struct journal_opts o = RGATE_OPTS(journal_opts, .dir = dir, .uid = geteuid(),
		.sync_ms = JOURNAL_SYNC_NEVER, .segment = 64 << 10, .wall = wall_now,
		.repair = repair);
	struct queues home;
	struct journal *j = NULL;
	int err;

	queues_init(&home);
	home.now = 1000;
	err = journal_open(&j, &home, &o);
	FUZZ_CHECK(!err || err == -EBADMSG || err == -EPROTONOSUPPORT);
	FUZZ_CHECK(!err || !repair || err == -EPROTONOSUPPORT);
	if (!err) {
		check(&home);
		(void)queues_tick(&home, home.now);
	}
	journal_close(j);
	queues_fini(&home);
	FUZZ_CHECK(!home.bytes && !home.ntasks);
	return err;
}

static void write_it(const unsigned char *mem, size_t len)
{
	char path[160], name[JOURNAL_NAME_ROOM];
	int fd;

	remove_all();
	journal_name(1, name);
	snprintf(path, sizeof(path), "%s/%s", dir, name);
	fd = open(path, O_WRONLY | O_CREAT | O_EXCL, 0600);
	FUZZ_CHECK(fd >= 0 && write(fd, mem, len) == (ssize_t)len);
	close(fd);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	unsigned char *mem;
	int err;

	if (len < 1)
		return 0;
	mem = malloc(len + sizeof(struct journal_head));
	if (data[0] & 1) {
		memcpy(mem + sizeof(struct journal_head), data + 1, len - 1);
		len += sizeof(struct journal_head) - 1;
		make_right(mem, len);
	} else {
		memcpy(mem, data + 1, --len);
	}
	read_it(mem, len);
	write_it(mem, len);
	err = load(false);
	/* What was well, or was cut off, is well from then on. */
	if (!err)
		FUZZ_CHECK(!load(false));
	else
		(void)load(true);
	remove_all();
	free(mem);
	return 0;
}
