// SPDX-License-Identifier: MIT OR GPL-2.0
/* The kernel's packet generator. */
#include "tx.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench.h"
#include "rx.h"

#define PKTGEN_DIR "/proc/net/pktgen/"

static void __attribute__((format(printf, 2, 3)))
put(const char *file, const char *fmt, ...)
{
	char path[128], line[128];
	va_list ap;
	int fd, n;

	va_start(ap, fmt);
	n = vsnprintf(line, sizeof(line), fmt, ap);
	va_end(ap);
	snprintf(path, sizeof(path), PKTGEN_DIR "%s", file);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0 || write(fd, line, (size_t)n) != n)
		bench_die(errno, "%s: %s", path, line);
	close(fd);
}

static void pktgen_setup(const struct tx_flow *f)
{
	put("pgctrl", "reset\n");
	put("kpktgend_0", "add_device %s\n", f->dev);
	put(f->dev, "count %u\n", f->count);
	put(f->dev, "pkt_size %u\n", f->len);
	put(f->dev, "delay 0\n");
	put(f->dev, "dst_mac %s\n", f->dst_mac);
	put(f->dev, "src_min %s\n", f->src_ip);
	put(f->dev, "src_max %s\n", f->src_ip);
	put(f->dev, "dst %s\n", f->dst_ip);
	put(f->dev, "udp_src_min 4000\n");
	put(f->dev, "udp_src_max 4000\n");
	put(f->dev, "udp_dst_min %d\n", RX_PORT);
	put(f->dev, "udp_dst_max %d\n", RX_PORT);
}

/* "Result: OK: 123(c100+d23) usec, 2048 (64byte,0frags)" */
static uint64_t pktgen_run(const struct tx_flow *f)
{
	char path[128], text[4096];
	unsigned long long usec, count;
	ssize_t n;
	char *at;
	int fd;

	put("pgctrl", "start\n");
	snprintf(path, sizeof(path), PKTGEN_DIR "%s", f->dev);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
	if (n < 0)
		bench_die(errno, "%s", path);
	close(fd);
	text[n] = '\0';
	at = strstr(text, "Result: OK: ");
	if (!at || sscanf(at, "Result: OK: %llu(%*[^)]) usec, %llu", &usec, &count) != 2)
		bench_die(0, "pktgen says: %s", at ? at : text);
	if (count != f->count)
		bench_die(0, "pktgen sent %llu of %u frames", count, f->count);
	return usec * 1000;
}

const struct tx_ops tx_pktgen = {
	.name = "pktgen",
	.setup = pktgen_setup,
	.run = pktgen_run,
};
