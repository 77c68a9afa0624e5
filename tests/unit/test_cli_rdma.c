// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * The commands that need RDMA devices, with those of mock_verbs.c: what memory can be
 * registered, how much of it, and what the device refuses.
 */
#include "unit.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "mock_verbs.h"
#include "probe_why.h"

/* Two devices, so that each side of a connection has a domain of its own */
static int begin(void **state)
{
	if (mock_setup(state))
		return -1;
	mock.dev[1] = mock.dev[0];
	mock.dev[1].name = "mock1";
	mock.dev[1].gid[2].addr = mock.dev[1].gid[3].addr = "192.0.2.2";
	return cli_begin(state);
}

#define NO_DEVICE	"there is no RDMA device 'nosuch'; `ibv_devices` lists them (ENODEV)\n"

static void list(void **state)
{
	(void)state;
	mock.dev[1].down = mock.dev[1].no_atomics = true;
	mock.dev[1].gid[2].addr = mock.dev[1].gid[3].addr = NULL;
	mock.dev[1].max_mr = 77;
	cli_is("probe --list", 0,
	       "DEVICE  PORT  STATE   NETDEV  ADDRESS    GID               TYPE     MTU  BIT/S  MAX-MR   "
	       "MR-SIZE  MAX-QP  ATOMIC  ODP  DRIVER\n"
	       "mock0      1  active  -       192.0.2.1  ::ffff:192.0.2.1  RoCEv2  1024   100G    1000  "
	       "16.0 EiB      64  device  no   -\n"
	       "mock1      1  down    -       fe80::1    fe80::1           RoCEv2  1024   100G      77  "
	       "16.0 EiB      64  none    no   -\n", "");
	cli_says("probe --list -j", 0, "{\"name\": \"mock0\", \"port\": 1, \"active\": true, \"link\": "
		 "\"ethernet\", \"driver\": \"\", \"netdev\": \"\", \"address\": \"192.0.2.1\", "
		 "\"firmware\": \"1.2.3\", \"gid_type\": \"roce-v2\", \"gid_index\": 3, \"gid\": "
		 "\"0000:0000:0000:0000:0000:ffff:c000:0201\", \"lid\": 0, \"numa_node\": -1, "
		 "\"vendor\": \"0x1234\", \"part\": 0, \"mtu\": 1024, \"max_mtu\": 4096, \"speed\": "
		 "100000000000, \"atomic\": \"hca\", \"on_demand\": false, \"max_mr\": 1000, ");
	cli_says("probe --list -j", 0, "\"atomic\": \"none\"");
	mock.list_errno = ENOSYS;
	cli_is("probe --list", 0, "", "ringgate probe: there is no RDMA device; see `ringgate doctor`\n");
	cli_is("probe --list -j", 0, "{\n  \"devices\": [],\n  \"error\": \"ENOSYS\"\n}\n", "");
	mock.list_errno = 0;
	mock.dev[0].name = NULL;
	cli_is("probe --list -j", 0, "{\n  \"devices\": [],\n  \"error\": null\n}\n", "");
}

static void table(void **state)
{
	static const char head[] = "RDMA: mock0 port 1, unknown driver, 192.0.2.1\n";

	(void)state;
	cli_says("probe -d mock0 -m malloc", 0, head);
	cli_says("probe -d mock0 -m malloc", 0,
		 "MEMORY  LOCAL  READ  WRITE  ATOMIC  RELAXED  RDONLY  ODP  TRANSFER  KERNEL  COPY  CPU  GPU\n"
		 "malloc     ok    ok     ok      ok       ok      ok    -        ok      ok    ok   ok    -\n");
	cli_says("probe -d mock0 -m file-readonly", 0,
		 "MEMORY          LOCAL    READ   WRITE  ATOMIC  RELAXED  RDONLY  ODP  TRANSFER  KERNEL  COPY  "
		 "CPU  GPU\n"
		 "file-readonly  EFAULT  EFAULT  EFAULT  EFAULT   EFAULT      ok    -        ok      ok    ok   "
		 "ok    -\n\n"
		 "file-readonly: LOCAL, READ, WRITE, ATOMIC, RELAXED: EFAULT: the mapping is read-only: "
		 "register it with RGATE_ACCESS_READONLY, which older kernels (6.1) refuse too: there map it "
		 "writable, or copy\n");
	cli_says("probe -d mock0 -m malloc -j", 0,
		 "      \"name\": \"malloc\",\n      \"what\": \"heap, not at a page boundary\",\n"
		 "      \"probed\": true,\n      \"error\": null,\n      \"note\": null,\n"
		 "      \"ended\": null,\n");
	mock.dev[0].no_atomics = true;
	cli_says("probe -d mock0 -m malloc", 0,
		 "malloc     ok    ok     ok       -       ok      ok    -        ok      ok    ok   ok    -\n");
	mock.dev[0].max_mr_size = 4096;
	cli_says("probe -d mock0 -m malloc", 0, "malloc: LOCAL, READ, WRITE, RELAXED, RDONLY, TRANSFER: "
		 "ENOSPC: the device's limit of memory regions (or of the size of one) is reached: use one pool "
		 "instead of many regions, or raise RGATE_MAX_MR\n");
	mock.dev[0].max_mr_size = 0;
	mock.silent = true;
	cli_says("probe -d mock0 -m malloc", 0, "TRANSFER: ETIMEDOUT: no answer: the device cannot reach "
		 "itself; is the address of its network device there, and up?\n");
	mock.silent = false;
	mock.dev[0].open_errno = EMFILE;
	cli_says("probe -d mock0 -m malloc", 1, "EMFILE");
	cli_is("probe -d nosuch -m malloc", 1, "", "ringgate probe: nosuch: " NO_DEVICE);
	mock.dev[0].name = NULL;
	cli_says("probe -m malloc", 0, "RDMA: no device (ENODEV)\n");
	cli_says("probe -m malloc", 0, "MEMORY       RDMA  KERNEL  COPY  CPU  GPU\n"
		 "malloc  no device      ok    ok    -    -\n\n"
		 "RDMA: there is no RDMA device; for soft-RoCE: `rdma link add rxe0 type rxe netdev DEVICE`\n");
}

/* A GPU copies what it has mapped, and what it has allocated. */
static void gpu(void **state)
{
	(void)state;
	cli_says("probe -d mock0 -m malloc", 0, "GPU: no NVIDIA driver (libcuda.so.1)\n");
	cli.cuda = true;
	cli_says("probe -d mock0 -m malloc", 0, "GPU: GPU 0 of the test\n");
	cli_says("probe -d mock0 -m malloc", 0, "ok    ok   ok   ok\n");
	cli_says("probe -d mock0 -m cuda-host", 0, "ok    ok   ok   ok\n");
	cli_says("probe -d mock0 -m cuda-dmabuf", 0,
		 "cuda-dmabuf: not probed: the driver has no cuMemGetHandleForAddressRange: too "
		 "old\n");
}

/* The words for what went wrong in a column */
static void why(void **state)
{
	static const struct probe_type heap = { .name = "malloc" };
	static const struct probe_type file = { .name = "file", .refused = "map it writable" };
	static const struct probe_type dma = { .name = "udmabuf-dmabuf" };
	static const struct {
		const struct probe_type *type;
		enum probe_col col;
		int err;
		const char *why;
	} cases[] = {
		{ &heap, COL_TRANSFER, -EBADMSG, "other bytes arrived than were sent" },
		{ &heap, COL_TRANSFER, -ETIMEDOUT, "no answer: the device cannot reach itself" },
		{ &heap, COL_TRANSFER, -EREMOTEIO,
		  "the device refused an access that was registered" },
		{ &heap, COL_TRANSFER, -EPERM, "the device refused an access that was registered" },
		{ &heap, COL_TRANSFER, -ENOBUFS, "locked" },
		{ &heap, COL_CPU, -EBADMSG, "not the same bytes" },
		{ &heap, COL_PIN, -EFAULT, "Bad address" },
		{ &file, COL_PIN, -EFAULT, "map it writable" },
		{ &file, COL_COPY, -EIO, "Input/output error" },
		{ &heap, COL_GPU, -EINVAL, "the driver cannot map" },
		{ &heap, COL_GPU, -EPERM, "the driver cannot map" },
		{ &heap, COL_GPU, -EOPNOTSUPP, "the driver cannot map" },
		{ &file, COL_GPU, -EINVAL, "map it writable" },
		{ &heap, COL_GPU, -ENOMEM, "the driver could not pin it" },
		{ &heap, COL_GPU, -EBADMSG, "not the same bytes" },
		{ &heap, COL_GPU, -EIO, "Input/output error" },
		{ &heap, COL_LOCAL, -EBADMSG, "it registers, but other bytes arrived" },
		{ &file, COL_WRITE, -EFAULT, "map it writable" },
		{ &heap, COL_WRITE, -ENOBUFS, "RLIMIT_MEMLOCK is too small" },
		{ &heap, COL_ODP, -EOPNOTSUPP, "cannot do this on demand" },
		{ &dma, COL_LOCAL, -EOPNOTSUPP, "driver or exporter cannot do dma-bufs" },
	};
	static const struct {
		enum probe_end end;
		int value;
		const char *doing, *text;
	} ends[] = {
		{ END_DONE, 0, "x", "" },
		{ END_SIGNAL, 11, "registering", "SIGSEGV while registering" },
		{ END_SIGNAL, 11, NULL, "SIGSEGV while starting" },
		{ END_SIGNAL, 99, "x", "SIG? while x" },
		{ END_TIMEOUT, 0, "x", "no end of x" },
		{ END_STUCK, 0, "x", "stuck in the kernel while x" },
		{ END_EXIT, 3, "x", "exit(3) while x" },
		{ END_STOPPED, 0, "x", "interrupted while x" },
	};
	struct probe_env env = { .device.driver = "mlx5_core" };
	struct probe_row row = { 0 };
	struct probe_cell c = { 0 };
	char text[128];
	const char *got;
	unsigned int i;

	(void)state;
	for (i = 0; i < ARRAY_LEN(cases); i++) {
		c.err = cases[i].err;
		got = probe_why(cases[i].type, &env, cases[i].col, &c);
		if (!got || !strstr(got, cases[i].why))
			fail_msg("case %u: '%s' has no '%s'", i, got, cases[i].why);
	}
	snprintf(env.device.driver, sizeof(env.device.driver), "rdma_rxe");
	c.err = -EOPNOTSUPP;
	assert_non_null(strstr(probe_why(&dma, &env, COL_LOCAL, &c),
			       "Soft-RoCE registers no dma-bufs"));
	for (i = 0; i < ARRAY_LEN(ends); i++) {
		row.end = ends[i].end;
		row.end_value = ends[i].value;
		row.doing = ends[i].doing;
		probe_why_ended(&row, text, sizeof(text));
		assert_string_equal(text, ends[i].text);
	}
}

#define NO_ROOM	"mock0 has no room for another memory region (50 here, 50 in all): use a pool, " \
		"rgate_pool_create()"
#define NOT_MORE "\nkernel memory per region: 0 B slab, 0 B less available\n"

static void limit(void **state)
{
	(void)state;
	cli.still = true;
	cli.tick = 1000;
	mock.dev[0].max_mr = 50;
	cli_is("probe --mr-limit -d mock0", 0,
	       "mock0: 50 regions of 512.0 KiB registered in 0.0 s, all of the same memory\n"
	       "refused with ENOSPC: " NO_ROOM "\nlimit found: 50; the device states 50\n\n"
	       "US          MIN  MEDIAN   P99   MAX\n"
	       "register    1.0     2.7   6.7   6.9\n"
	       "deregister  7.4    15.6  31.0  32.0\n" NOT_MORE
	       "50 of 50 regions taken back, 0 left\n", "");
	cli_is("probe --mr-limit -d mock0 -j", 0,
	       "{\n  \"device\": \"mock0\",\n  \"port\": 1,\n  \"size\": 524288,\n  \"distinct\": false,\n"
	       "  \"registered\": 50,\n  \"stopped_by\": \"device\",\n  \"limit_found\": true,\n"
	       "  \"error\": \"ENOSPC\",\n  \"said\": \"" NO_ROOM "\",\n  \"set_limit\": 50,\n"
	       "  \"device_max_mr\": 50,\n  \"seconds\": 0.001,\n"
	       "  \"register_us\": {\n    \"min\": 1.030,\n    \"median\": 2.698,\n    \"p99\": 6.668,\n"
	       "    \"max\": 6.937\n  },\n"
	       "  \"deregister_us\": {\n    \"min\": 7.434,\n    \"median\": 15.632,\n"
	       "    \"p99\": 31.013,\n    \"max\": 31.952\n  },\n"
	       "  \"slab_bytes_per_region\": 0.000,\n  \"memory_bytes_per_region\": 0.000,\n"
	       "  \"deregistered\": 50,\n  \"left\": 0\n}\n", "");
	cli_is("probe --mr-limit -d mock0 --max 7 -s 1M --distinct", 0,
	       "mock0: 7 regions of 1.0 MiB registered in 0.0 s, each of its own memory\n"
	       "no limit found up to --max 7; the device states 50\n\n"
	       "US          MIN  MEDIAN  P99  MAX\n"
	       "register    1.0     1.2  1.2  1.3\n"
	       "deregister  1.4     1.5  1.6  1.6\n" NOT_MORE
	       "7 of 7 regions taken back, 0 left\n", "");
	cli.tick = 1000000;
	cli_says("probe --mr-limit -d mock0 --seconds 0.01", 0, "no limit found");
	cli_says("probe --mr-limit -d mock0 --seconds 0.01 -j", 0, "\"limit_found\": false");
	cli.tick = 1000;
	setenv("RGATE_MAX_MR", "20", 1);
	cli_says("probe --mr-limit -d mock0", 0,
		 "mock0: 20 regions of 512.0 KiB registered in 0.0 s, all of the same memory\n"
		 "limit found: 20, set in software (RGATE_MAX_MR), with ENOSPC; the device states 50\n");
	unsetenv("RGATE_MAX_MR");
}

/* How far it is: on a terminal a line that is renewed, and is gone at the end */
static void progress(void **state)
{
	(void)state;
	cli.still = true;
	cli.tty_err = true;
	cli.tick = 20000000;
	cli_run("probe --mr-limit -d mock0 --max 3 -s 4K");
	assert_int_equal(cli.status, 0);
	assert_string_equal(cli.err, "\r\033[K1 regions registered\r\033[K3 regions registered\r\033[K"
			    "\r\033[K2 regions left to take back\r\033[K0 regions left to take back\r\033[K");
	/* elsewhere a line now and then, and none for what takes less */
	cli.tty_err = false;
	cli.tick = 1000;
	cli_run("probe --mr-limit -d mock0 --max 9 -s 4K");
	assert_string_equal(cli.err, "");
	cli.tick = 1000000000;
	cli_run("probe --mr-limit -d mock0 --max 4 -s 4K");
	assert_string_equal(cli.err, "ringgate probe: 3 regions registered\n"
			    "ringgate probe: 1 regions left to take back\n");
}

/* A tenth of all memory stays free. */
static void limit_of_memory(void **state)
{
	(void)state;
	cli_file("/proc/meminfo", "MemTotal: 16000000 kB\nMemAvailable: 1601023 kB\n");
	cli_is("probe --mr-limit -d mock0 -s 1M", 1, "", "ringgate probe: a region of 1.0 MiB does not fit in "
	       "the memory that is available (1.5 GiB, of which a tenth of all stays free): give a smaller "
	       "--size\n");
	cli_file("/proc/meminfo", "MemTotal: 16000000 kB\nMemAvailable: 1601024 kB\n");
	cli_says("probe --mr-limit -d mock0 -s 1M --max 1", 0, "1 of 1 regions taken back, 0 left\n");
	cli_file("/proc/meminfo", "MemTotal: 1000 kB\nMemAvailable: 1000 kB\n");
	cli_is("probe --mr-limit -d mock0 -s 4K", 1, "", "ringgate probe: a region of 4.0 KiB does not fit in "
	       "the memory that is available (1000.0 KiB, of which a tenth of all stays free): give a "
	       "smaller --size\n");
	cli_file("/proc/meminfo", "MemAvailable: 1000 kB\n");
	cli_says("probe --mr-limit -d mock0", 1, "/proc/meminfo: No data available\n");
	cli_gone("/proc/meminfo");
	cli_says("probe --mr-limit -d mock0", 1, "/proc/meminfo: No such file or directory\n");
	cli_file("/proc/meminfo", "MemTotal: 16000000 kB\nMemAvailable: 8000000 kB\n");
	mock.dev[0].max_mr_size = 1 << 20;
	cli_is("probe --mr-limit -d mock0 -s 8M", 1, "", "ringgate probe: not one region could be "
	       "registered: mock0 takes regions of 1048576 bytes at most (ENOSPC)\n");
	cli_is("probe --mr-limit -d nosuch", 1, "", "ringgate probe: nosuch: " NO_DEVICE);
}

static void plan(void **state)
{
	(void)state;
	mock.dev[0].max_mr = 50;
	cli_is("pool plan -d mock0 --peers 3", 0,
	       "a region per buffer:   96 = 8 sizes x 4 buffers x 3 peers x 1 direction\n"
	       "limit:                 50 (mock0)\n"
	       "headroom:              -46 (-92.0 %): does not fit\n"
	       "most peers that fit:   1\n"
	       "a pool:                1\n\n"
	       "PEERS  REGIONS  HEADROOM  PERCENT  FITS\n"
	       "    2       64       -14    -28.0  no\n"
	       "    3       96       -46    -92.0  no\n"
	       "    4      128       -78   -156.0  no\n"
	       "    5      160      -110   -220.0  no\n"
	       "    6      192      -142   -284.0  no\n"
	       "    7      224      -174   -348.0  no\n"
	       "    8      256      -206   -412.0  no\n", "");
}

#define VERIFY	"pool verify -d mock0 --peer-device mock1 --size 4M --buffer 64K --seed 5"
#define CARVED \
	"carved completely                           2       0  ok\n" \
	"buffers apart                             128       0  ok\n" \
	"patterns intact                             2       0  ok\n" \
	"released in random order                    1       0  ok\n" \
	"all is back                                 1       0  ok\n" \
	"carved again                                1       0  ok\n"

static void verify(void **state)
{
	(void)state;
	unit_not_for_tsan("both ends are threads here, and a device's writes are no accesses of theirs");
	cli_is(VERIFY, 0,
	       "region of 4.0 MiB, buffers of 64.0 KiB, seed 0x5\ntwo processes, on mock0 and mock1\n\n"
	       "CHECK                                   COUNT  FAILED  RESULT\n" CARVED
	       "send                                       48       0  ok\n"
	       "contents and red zones                    498       0  ok\n"
	       "send with immediate                        48       0  ok\n"
	       "write                                      48       0  ok\n"
	       "write with immediate                       48       0  ok\n"
	       "read                                       48       0  ok\n"
	       "fetch-add                                  18       0  ok\n"
	       "compare-swap                               18       0  ok\n"
	       "compare-swap, other value                  18       0  ok\n"
	       "other buffers intact                        2       0  ok\n"
	       "refused: byte before the region             8       0  ok\n"
	       "refused: across the begin                   8       0  ok\n"
	       "refused: byte past the end                 12       0  ok\n"
	       "refused: across the end                     8       0  ok\n"
	       "refused: wrong key                          9       0  ok\n"
	       "refused: no remote write                    3       0  ok\n"
	       "refused: no remote read                     3       0  ok\n"
	       "refused: no remote atomic                   3       0  ok\n"
	       "refused: after deregistration               9       0  ok\n"
	       "not refused: next buffer of the region      2       0  ok\n"
	       "pool destroyed                              2       0  ok\n\n"
	       "The device refuses what leaves a region, and what the region is not registered for.\n"
	       "It does not refuse a peer that stays in the region and leaves its buffer: buffers of\n"
	       "a pool are kept apart by protocol, not by hardware.\n\npassed\n", "");
	cli_says(VERIFY " --json", 0,
		 "{\n  \"passed\": true,\n  \"local\": false,\n  \"device\": \"mock0\",\n"
		 "  \"peer_device\": \"mock1\",\n  \"size\": 4194304,\n  \"buffer\": 65536,\n"
		 "  \"buffers\": 64,\n  \"rounds\": 4,\n  \"seed\": 5,\n  \"isolation\": \"protocol\",\n"
		 "  \"checks\": [\n    {\n      \"name\": \"carved completely\",\n      \"count\": 2,\n"
		 "      \"failed\": 0,\n      \"result\": \"ok\",\n      \"text\": null\n    },\n");
	mock.dev[1].down = true;
	cli_says(VERIFY, 1, "ringgate pool verify: the peer cannot make its pool: the port of the RDMA "
		 "device is not active; see `rdma link` (ENETDOWN)\n");
	mock.dev[1].down = false;
	mock.dev[0].no_atomics = mock.dev[1].no_atomics = true;
	cli_says(VERIFY, 0,
		 "read                                       48       0  ok\n"
		 "fetch-add                                   0       0  skipped: the device has no atomics\n"
		 "compare-swap                                0       0  skipped: the device has no atomics\n"
		 "compare-swap, other value                   0       0  skipped: the device has no atomics\n"
		 "other buffers intact                        2       0  ok\n");
	cli_says("pool verify -d nosuch --size 4M --buffer 64K", 1,
		 "cannot open the RDMA device (--local goes without): no such RDMA device, or none at all; "
		 "`ringgate probe --list`, and for soft-RoCE `rdma link add rxe0 type rxe netdev DEVICE` "
		 "(ENODEV)\n");
}

/* A device that does less, or more, than it may is found out. */
static void verify_finds(void **state)
{
	(void)state;
	unit_not_for_tsan("both ends are threads here, and a device's writes are no accesses of theirs");
	mock.lets = 5;
	cli_says(VERIFY, 1, "refused: wrong key                          7       2  failed: write ended in: "
		 "success\n");
	cli_says(VERIFY, 1, "\nFAILED; the same again: --seed 0x5\n");
	mock.lets = 0;
	mock.spoils = 40;
	cli_says(VERIFY, 1, "contents and red zones                    498       2  failed: 65536 bytes, peer: "
		 "contents: byte 0x3dffff of the region is 0xe7 instead of 0xe6\n");
	mock.spoils = 0;
	/* a key of this process is good there, as both sides are this process */
	cli_says("pool verify -d mock0 --size 4M --buffer 64K --seed 5", 1,
		 "refused: key of another process             3       3  failed: write ended in: success\n");
}

static void doctor(void **state)
{
	(void)state;
	cli_says("doctor", 1, "warn     RDMA               no device: needed for several machines only "
		 "(no RDMA in this kernel, or not loaded)\n");
	cli_file("/sys/class/infiniband/x/y", "");
	cli_gone("/sys/class/infiniband/x");
	cli_says("doctor", 1, "warn     RDMA               no device: needed for several machines only\n");
	cli_file("/sys/class/infiniband/mock0/x", "");
	cli_file("/sys/class/infiniband/mock1/x", "");
	cli_says("doctor", 1, "ok       RDMA               mock0 mock1\n"
		 "warn     RDMA verbs         no /dev/infiniband/uverbs*: no program can use the devices\n"
		 "                            -> modprobe ib_uverbs\n"
		 "ok       RDMA address       2 ports active, with an address\n");
	cli_file("/sys/module/ib_uverbs/x", "");
	cli_says("doctor", 1, "-> install rdma-core (its udev rules), or start the container with "
		 "--device=/dev/infiniband\n");
	cli_file("/dev/infiniband/uverbs0", "");
	cli_says("doctor", 1, "ok       RDMA verbs         may be opened\n");
	cli_link("/dev/infiniband/uverbs1", "/nowhere");
	cli_says("doctor", 1, "warn     RDMA verbs         no permission on 1 of 2 of "
		 "/dev/infiniband/uverbs*\n");
	mock.dev[1].down = true;
	cli_says("doctor", 1, "warn     RDMA address       1 of 2 ports are not active\n"
		 "                            -> ip link set DEVICE up (ringgate probe --list shows which)\n");
	mock.dev[1].gid[2].addr = mock.dev[1].gid[3].addr = NULL;
	cli_says("doctor", 1, "warn     RDMA address       mock1 has no RoCE v2 address of IPv4\n"
		 "                            -> ip addr add ADDRESS/24 dev DEVICE && ip link set DEVICE up\n");
	mock.list_errno = ENOSYS;
	cli_says("doctor", 1, "warn     RDMA address       the devices cannot be asked (ENOSYS)\n");
	mock.list_errno = 0;
	mock.dev[0].open_errno = mock.dev[1].open_errno = EACCES;
	cli_says("doctor", 1, "the devices cannot be asked (");
	mock.dev[0].open_errno = 0;
	mock.dev[1].name = NULL;
	cli_says("doctor", 1, "ok       RDMA address       1 port active, with an address\n");
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, begin, cli_end)
static const struct CMUnitTest tests[] = {
	TEST(list), TEST(table), TEST(gpu), TEST(why), TEST(limit), TEST(progress),
	TEST(limit_of_memory), TEST(plan), TEST(verify), TEST(verify_finds), TEST(doctor),
};

UNIT_MAIN(tests)
