// SPDX-License-Identifier: MIT OR GPL-2.0
/* rgate_device_*: finding, opening, describing; and what stands in the way. */
#include "unit.h"
#include "mock_verbs.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char said[2048];

static void on_log(void *ctx, enum rgate_log_level level, const char *msg)
{
	(void)ctx;
	if (level <= RGATE_LOG_WARN)
		strncat(said, msg, sizeof(said) - strlen(said) - 1);
}

static int setup(void **state)
{
	said[0] = '\0';
	rgate_log_set(on_log, NULL);
	return mock_setup(state);
}

static int open_by(struct rgate_device **dev, const char *name, const char *addr)
{
	const struct rgate_device_opts o = RGATE_OPTS(rgate_device_opts, .name = name,
						      .addr = addr);

	*dev = NULL;
	return rgate_device_open(dev, &o);
}

/* A second and a third device: an idle port, and a faster one */
static void more_devices(void)
{
	mock.dev[1] = (struct mock_device){
		.name = "mock1", .down = true, .speed = 128,
		.gid = { { "192.0.2.2", IBV_GID_TYPE_ROCE_V2 } },
	};
	mock.dev[2] = (struct mock_device){
		.name = "mock2", .speed = 64,
		.gid = { { "192.0.2.3", IBV_GID_TYPE_ROCE_V2 },
			 { "2001:db8::3", IBV_GID_TYPE_ROCE_V2 } },
	};
}

static void the_best(void **state)
{
	struct rgate_device *dev;

	(void)state;
	assert_int_equal(rgate_device_open(&dev, NULL), 0);
	assert_string_equal(rgate_device_info(dev)->name, "mock0");
	rgate_device_close(dev);
	more_devices();
	/* the faster of those that are up */
	assert_int_equal(rgate_device_open(&dev, NULL), 0);
	assert_string_equal(rgate_device_info(dev)->name, "mock2");
	rgate_device_close(dev);
	/* atomics come before speed */
	mock.dev[2].no_atomics = true;
	assert_int_equal(rgate_device_open(&dev, NULL), 0);
	assert_string_equal(rgate_device_info(dev)->name, "mock0");
	rgate_device_close(dev);
}

static void by_name_and_address(void **state)
{
	struct rgate_device *dev;

	(void)state;
	more_devices();
	assert_int_equal(open_by(&dev, "mock0", NULL), 0);
	assert_string_equal(rgate_device_info(dev)->addr, "192.0.2.1");
	assert_int_equal(rgate_device_info(dev)->gid_index, 3);
	assert_int_equal(rgate_device_info(dev)->gid_type, RGATE_GID_ROCE_V2);
	rgate_device_close(dev);
	assert_int_equal(open_by(&dev, NULL, "192.0.2.3"), 0);
	assert_string_equal(rgate_device_info(dev)->name, "mock2");
	rgate_device_close(dev);
	assert_int_equal(open_by(&dev, NULL, "2001:db8::3"), 0);
	assert_int_equal(rgate_device_info(dev)->gid_index, 1);
	rgate_device_close(dev);
	/* name and address have to be of one device */
	assert_int_equal(open_by(&dev, "mock0", "192.0.2.3"), -ENODEV);
	setenv("RGATE_RDMA_DEVICE", "mock0", 1);
	assert_int_equal(rgate_device_open(&dev, NULL), 0);
	assert_string_equal(rgate_device_info(dev)->name, "mock0");
	rgate_device_close(dev);
}

static void nothing_there(void **state)
{
	struct rgate_device *dev;

	(void)state;
	assert_int_equal(open_by(&dev, "mlx9", NULL), -ENODEV);
	assert_non_null(strstr(said, "mlx9"));
	assert_int_equal(open_by(&dev, NULL, "192.0.2.77"), -ENODEV);
	assert_non_null(strstr(said, "192.0.2.77"));
	assert_int_equal(open_by(&dev, NULL, "not-an-address"), -EINVAL);
	assert_non_null(strstr(said, "'not-an-address' is not an IP address"));
	mock.dev[0].name = NULL;
	assert_int_equal(rgate_device_open(&dev, NULL), -ENODEV);
	assert_non_null(strstr(said, "rdma link add"));
	mock.list_errno = ENOSYS;
	assert_int_equal(rgate_device_open(&dev, NULL), -ENOSYS);
	assert_non_null(strstr(said, "modprobe"));
}

static void not_usable(void **state)
{
	struct rgate_device *dev;

	(void)state;
	mock.dev[0].open_errno = EACCES;
	assert_int_equal(rgate_device_open(&dev, NULL), -EACCES);
	assert_non_null(strstr(said, "/dev/infiniband"));
	mock.dev[0].open_errno = 0;
	mock.dev[0].down = true;
	assert_int_equal(rgate_device_open(&dev, NULL), -ENETDOWN);
	mock.dev[0].down = false;
	memset(mock.dev[0].gid, 0, sizeof(mock.dev[0].gid));
	assert_int_equal(rgate_device_open(&dev, NULL), -ENETUNREACH);
	/* one that may not be opened does not hide one that may */
	mock.dev[0].open_errno = EACCES;
	more_devices();
	assert_int_equal(rgate_device_open(&dev, NULL), 0);
	assert_string_equal(rgate_device_info(dev)->name, "mock2");
	rgate_device_close(dev);
}

static void bad_options(void **state)
{
	struct {
		struct rgate_device_opts o;
		int later;
	} big = { .o = { .sz = sizeof(big) } };
	struct rgate_device *dev;

	(void)state;
	big.o.port = 2;
	assert_int_equal(rgate_device_open(&dev, &big.o), -ENODEV);
	big.o.port = 0;
	big.o.gid_index_plus1 = 100;
	assert_int_equal(rgate_device_open(&dev, &big.o), -ENODEV);
	big.o.gid_index_plus1 = 0;
	big.later = 1;
	assert_int_equal(rgate_device_open(&dev, &big.o), -E2BIG);
	assert_int_equal(rgate_device_open(NULL, NULL), -EINVAL);
}

static void one_context(void **state)
{
	struct rgate_device *a, *b;

	(void)state;
	assert_int_equal(rgate_device_open(&a, NULL), 0);
	assert_int_equal(open_by(&b, "mock0", NULL), 0);
	assert_ptr_equal(a, b);
	assert_int_equal(mock.contexts, 1);
	assert_int_equal(mock.pds, 1);
	rgate_device_close(a);
	assert_int_equal(mock.contexts, 1);
	rgate_device_close(b);
	assert_int_equal(mock.contexts, 0);
	rgate_device_close(NULL);
}

static void failing_calls(void **state)
{
	struct rgate_device *dev;

	(void)state;
	mock.fail_pd = 1;
	mock.fail_errno = ENOSPC;
	assert_int_equal(rgate_device_open(&dev, NULL), -ENOSPC);
	assert_int_equal(mock.contexts, 0);
	/* without completion queue: only the inline size is not found out */
	mock.fail_cq = 1;
	assert_int_equal(rgate_device_open(&dev, NULL), 0);
	assert_int_equal(rgate_device_info(dev)->max_inline, 0);
	rgate_device_close(dev);
	assert_int_equal(rgate_device_open(&dev, NULL), 0);
	assert_int_equal(rgate_device_info(dev)->max_inline, 128);
	rgate_device_close(dev);
}

static int count_ports(void *ctx, const struct rgate_device_info *info)
{
	assert_int_equal(info->sz, sizeof(*info));
	return ++*(int *)ctx == 3 ? 42 : 0;
}

static void walk(void **state)
{
	int n = 0;

	(void)state;
	assert_int_equal(rgate_device_each(count_ports, &n), 0);
	assert_int_equal(n, 1);
	more_devices();
	n = 0;
	assert_int_equal(rgate_device_each(count_ports, &n), 42);
	assert_int_equal(n, 3);
	mock.dev[0].open_errno = mock.dev[1].open_errno = mock.dev[2].open_errno = EACCES;
	assert_int_equal(rgate_device_each(count_ports, &n), -EACCES);
	mock.dev[0].name = NULL;
	assert_int_equal(rgate_device_each(count_ports, &n), 0);
	assert_int_equal(rgate_device_each(NULL, NULL), -EINVAL);
}

static void described(void **state)
{
	struct rgate_device_info info;
	struct rgate_device *dev;
	char text[4096], part[64];
	int len, i;

	(void)state;
	assert_int_equal(rgate_device_open(&dev, NULL), 0);
	info = *rgate_device_info(dev);
	assert_int_equal(info.mtu, 1024);
	assert_int_equal(info.max_mtu, 4096);
	assert_int_equal(info.speed, 100000000000ULL);
	assert_int_equal(info.atomic, RGATE_ATOMIC_HCA);
	assert_true(info.active && info.ethernet);
	snprintf(info.name, sizeof(info.name), "a\"b\\c\n");
	len = rgate_device_json(&info, text, sizeof(text));
	assert_int_equal(len, strlen(text));
	assert_non_null(strstr(text, "\"name\": \"a\\\"b\\\\c\\u000a\""));
	assert_non_null(strstr(text, "\"address\": \"192.0.2.1\""));
	assert_non_null(strstr(text, "\"max_mr\": 1000"));
	assert_int_equal(text[0], '{');
	assert_int_equal(text[len - 1], '}');
	/* as snprintf: what fits, and how long it would be */
	for (i = 0; i < (int)sizeof(part); i++) {
		memset(part, 'x', sizeof(part));
		assert_int_equal(rgate_device_json(&info, part, (size_t)i), len);
		if (i)
			assert_int_equal(memcmp(part, text, (size_t)i - 1) || part[i - 1], 0);
		assert_int_equal(part[i], 'x');
	}
	assert_int_equal(rgate_device_json(NULL, text, 1), -EINVAL);
	rgate_device_close(dev);
}

/* All of it, each of another value */
static void in_json(void **state)
{
	static const char want[] = "{\"name\": \"dev\", \"port\": 2, \"active\": true, "
		"\"link\": \"infiniband\", \"driver\": \"drv\", \"netdev\": \"eth7\", "
		"\"address\": \"192.0.2.9\", \"firmware\": \"9.8\", \"gid_type\": \"roce-v1\", "
		"\"gid_index\": 3, \"gid\": \"0001:0203:0405:0607:0809:0a0b:0c0d:0e0f\", "
		"\"lid\": 4, \"numa_node\": -1, \"vendor\": \"0x02c9\", \"part\": 5, "
		"\"mtu\": 6, \"max_mtu\": 7, \"speed\": 8, \"atomic\": \"global\", "
		"\"on_demand\": true, \"max_mr\": 9, \"max_mr_size\": 10, \"max_qp\": 11, "
		"\"max_qp_wr\": 12, \"max_sge\": 13, \"max_cq\": 14, \"max_cqe\": 15, "
		"\"max_pd\": 16, \"max_rd_atomic\": 17, \"max_inline\": 18}";
	struct rgate_device_info info = {
		.sz = sizeof(info), .name = "dev", .port = 2, .active = true, .driver = "drv",
		.netdev = "eth7", .addr = "192.0.2.9", .firmware = "9.8",
		.gid_type = RGATE_GID_ROCE_V1, .gid_index = 3, .lid = 4, .numa_node = -1,
		.vendor = 0x2c9, .part = 5, .mtu = 6, .max_mtu = 7, .speed = 8,
		.atomic = RGATE_ATOMIC_GLOBAL, .odp = true, .max_mr = 9, .max_mr_size = 10,
		.max_qp = 11, .max_qp_wr = 12, .max_sge = 13, .max_cq = 14, .max_cqe = 15,
		.max_pd = 16, .max_rd_atomic = 17, .max_inline = 18,
	};
	char text[1024];
	uint8_t i;

	(void)state;
	for (i = 0; i < sizeof(info.gid); i++)
		info.gid[i] = i;
	assert_int_equal(rgate_device_json(&info, text, sizeof(text)), sizeof(want) - 1);
	assert_string_equal(text, want);
	strcpy(info.name, "\x7f ~\x1f");
	info.active = info.odp = false;
	rgate_device_json(&info, text, sizeof(text));
	assert_non_null(strstr(text, "\"name\": \"\\u007f ~\\u001f\","));
	assert_non_null(strstr(text, "\"active\": false"));
	assert_non_null(strstr(text, "\"on_demand\": false"));
	/* a name in UTF-8 stays one, and what is none is shown to be none */
	strcpy(info.name, "\xc3\xa4 \xe4");
	rgate_device_json(&info, text, sizeof(text));
	assert_non_null(strstr(text, "\"name\": \"\xc3\xa4 \\ufffd\","));
	assert_int_equal(rgate_device_json(&info, NULL, 0), strlen(text));
	assert_int_equal(rgate_device_json(&info, NULL, 1), -EINVAL);
}

/* What the device says, as it is told */
static void attributes(void **state)
{
	const struct rgate_device_info *info;
	struct rgate_device *dev;

	(void)state;
	assert_int_equal(rgate_device_open(&dev, NULL), 0);
	info = rgate_device_info(dev);
	assert_string_equal(info->firmware, "1.2.3");
	assert_int_equal(info->port, 1);
	assert_int_equal(info->max_mr_size, UINT64_MAX);
	assert_int_equal(info->max_mr, 1000);
	assert_int_equal(info->max_qp, 64);
	assert_int_equal(info->max_sge, 4);
	assert_int_equal(info->max_cq, 64);
	assert_int_equal(info->max_cqe, 2 * info->max_qp_wr);
	assert_int_equal(info->max_pd, 8);
	assert_int_equal(info->max_rd_atomic, 16);
	assert_int_equal(info->numa_node, -1);
	assert_string_equal(info->driver, "");
	assert_false(info->odp);
	assert_int_equal(info->lid, 0);
	rgate_device_close(dev);
}

/* By the codes of the port, lanes and of each of them */
static void speeds(void **state)
{
	static const struct {
		uint8_t width, speed;
		uint64_t mbit;
	} of[] = {
		{ 1, 1, 2500 }, { 1, 2, 5000 }, { 1, 4, 10000 }, { 1, 8, 10000 },
		{ 1, 16, 14000 }, { 1, 32, 25000 }, { 1, 64, 50000 }, { 1, 128, 100000 },
		{ 2, 1, 10000 }, { 4, 1, 20000 }, { 8, 1, 30000 }, { 16, 1, 5000 },
		{ 3, 1, 0 }, { 1, 3, 0 },
	};
	struct rgate_device *dev;
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_LEN(of); i++) {
		mock.dev[0].width = of[i].width;
		mock.dev[0].speed = of[i].speed;
		assert_int_equal(rgate_device_open(&dev, NULL), 0);
		assert_int_equal(rgate_device_info(dev)->speed, of[i].mbit * 1000000);
		rgate_device_close(dev);
	}
}

/* The address of InfiniBand is none of IP. */
static void infiniband(void **state)
{
	const struct rgate_device_info *info;
	struct rgate_device *dev;

	(void)state;
	memset(mock.dev[0].gid, 0, sizeof(mock.dev[0].gid));
	mock.dev[0].infiniband = true;
	mock.dev[0].gid[0] = (struct mock_gid){ "fe80::1", IBV_GID_TYPE_IB };
	assert_int_equal(rgate_device_open(&dev, NULL), 0);
	info = rgate_device_info(dev);
	assert_false(info->ethernet);
	assert_int_equal(info->lid, 7);
	assert_int_equal(info->gid_type, RGATE_GID_IB);
	assert_int_equal(info->gid[0], 0xfe);
	assert_string_equal(info->addr, "");
	assert_string_equal(info->netdev, "");
	rgate_device_close(dev);
}

/* The best of the entries, and of devices that are alike the first by name */
static void the_best_address(void **state)
{
	static const struct mock_gid gids[] = {
		{ "fe80::1", IBV_GID_TYPE_ROCE_V1 }, { "fe80::1", IBV_GID_TYPE_ROCE_V2 },
		{ "2001:db8::1", IBV_GID_TYPE_ROCE_V2 }, { "192.0.2.1", IBV_GID_TYPE_ROCE_V2 },
		{ "192.0.2.2", IBV_GID_TYPE_ROCE_V2 },
	};
	struct rgate_device *dev;
	int i;

	(void)state;
	for (i = 0; i < 4; i++) {
		memset(mock.dev[0].gid, 0, sizeof(mock.dev[0].gid));
		memcpy(mock.dev[0].gid, gids, (size_t)(i + 1) * sizeof(gids[0]));
		assert_int_equal(rgate_device_open(&dev, NULL), 0);
		assert_int_equal(rgate_device_info(dev)->gid_index, i);
		assert_string_equal(rgate_device_info(dev)->addr, gids[i].addr);
		rgate_device_close(dev);
	}
	/* of equals the first */
	mock.dev[0].gid[4] = gids[4];
	assert_int_equal(rgate_device_open(&dev, NULL), 0);
	assert_int_equal(rgate_device_info(dev)->gid_index, 3);
	rgate_device_close(dev);
	mock.dev[1] = mock.dev[0];
	mock.dev[1].name = "mock00";
	assert_int_equal(rgate_device_open(&dev, NULL), 0);
	assert_string_equal(rgate_device_info(dev)->name, "mock0");
	rgate_device_close(dev);
	/* One that has an address comes before a faster one that has none. */
	memset(mock.dev[0].gid, 0, sizeof(mock.dev[0].gid));
	mock.dev[0].speed = 128;
	assert_int_equal(rgate_device_open(&dev, NULL), 0);
	assert_string_equal(rgate_device_info(dev)->name, "mock00");
	rgate_device_close(dev);
}

static void limit(void **state)
{
	struct rgate_device *dev;

	(void)state;
	setenv("RGATE_MAX_MR", "7", 1);
	assert_int_equal(rgate_device_open(&dev, NULL), 0);
	assert_int_equal(rgate_device_mr_limit(dev), 7);
	rgate_device_set_mr_limit(dev, 5000);
	assert_int_equal(rgate_device_mr_limit(dev), 1000);
	rgate_device_set_mr_limit(dev, 0);
	assert_int_equal(rgate_device_mr_limit(dev), 1000);
	rgate_device_close(dev);
	setenv("RGATE_MAX_MR", "7x", 1);
	assert_int_equal(rgate_device_open(&dev, NULL), 0);
	assert_non_null(strstr(said, "RGATE_MAX_MR"));
	assert_int_equal(rgate_device_mr_limit(dev), 1000);
	rgate_device_close(dev);
}

static void removed(void **state)
{
	struct rgate_device *dev;

	(void)state;
	assert_int_equal(rgate_device_open(&dev, NULL), 0);
	assert_int_equal(rgate_device_check(dev), 0);
	mock.gone = true;
	assert_int_equal(rgate_device_check(dev), -EIO);
	mock.gone = false;
	/* it does not come back */
	assert_int_equal(rgate_device_check(dev), -EIO);
	rgate_device_close(dev);
}

static int level_of_event = -1;

static void on_event(void *ctx, enum rgate_log_level level, const char *msg)
{
	(void)ctx;
	level_of_event = (int)level;
	snprintf(said, sizeof(said), "%s", msg);
}

/* What a port does is told; that the device itself is done with makes it one that is gone. */
static void told_events(void **state)
{
	struct rgate_device *dev;

	(void)state;
	assert_int_equal(rgate_device_open(&dev, NULL), 0);
	rgate_log_set(on_event, NULL);
	mock.event = IBV_EVENT_PORT_ERR;
	assert_int_equal(rgate_device_check(dev), 0);
	assert_string_equal(said, "mock0: event 10");
	assert_int_equal(level_of_event, RGATE_LOG_INFO);
	mock.event = IBV_EVENT_DEVICE_FATAL;
	assert_int_equal(rgate_device_check(dev), -EIO);
	rgate_device_close(dev);
}

static int in_child(int sock, void *arg)
{
	struct rgate_device *dev = arg, *own;

	(void)sock;
	rgate_device_close(dev);
	unit_require(mock.contexts == 1);
	unit_require(rgate_device_check(dev) == -EPERM);
	unit_require(!rgate_device_open(&own, NULL));
	unit_require(own != dev);
	rgate_device_close(own);
	return 0;
}

static void after_fork(void **state)
{
	struct rgate_device *dev;
	int sock, pid;

	(void)state;
	assert_int_equal(rgate_device_open(&dev, NULL), 0);
	pid = unit_fork(in_child, dev, &sock);
	unit_reap(pid, 0);
	close(sock);
	assert_int_equal(rgate_device_check(dev), 0);
	rgate_device_close(dev);
}

/* Where memory would move to a child libibverbs is told, once; that it cannot is said. */
static void forks(void **state)
{
	struct rgate_device *dev;

	(void)state;
	assert_int_equal(rgate_device_open(&dev, NULL), 0);
	rgate_device_close(dev);
	assert_int_equal(mock.fork_inits, 0);
	mock.fork_disabled = true;
	assert_int_equal(rgate_device_open(&dev, NULL), 0);
	rgate_device_close(dev);
	assert_int_equal(mock.fork_inits, 1);
	assert_string_equal(said, "");
	mock.fork_errno = ENOSYS;
	assert_int_equal(rgate_device_open(&dev, NULL), 0);
	rgate_device_close(dev);
	assert_string_equal(said, "fork() may separate registered memory from this process: set "
			    "RDMAV_FORK_SAFE=1, or use Linux 5.12 or later");
}

static void *open_and_close(void *arg)
{
	unsigned int i, n = unit_rounds(2000);
	struct rgate_device *dev;

	(void)arg;
	for (i = 0; i < n; i++) {
		if (rgate_device_open(&dev, NULL))
			return (void *)1;
		rgate_device_close(dev);
	}
	return NULL;
}

static void threads(void **state)
{
	pthread_t t[4];
	void *bad;
	int i;

	(void)state;
	for (i = 0; i < 4; i++)
		assert_int_equal(pthread_create(&t[i], NULL, open_and_close, NULL), 0);
	for (i = 0; i < 4; i++) {
		assert_int_equal(pthread_join(t[i], &bad), 0);
		assert_null(bad);
	}
	assert_int_equal(mock.contexts, 0);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test_setup_teardown(the_best, setup, mock_teardown),
	cmocka_unit_test_setup_teardown(by_name_and_address, setup, mock_teardown),
	cmocka_unit_test_setup_teardown(nothing_there, setup, mock_teardown),
	cmocka_unit_test_setup_teardown(not_usable, setup, mock_teardown),
	cmocka_unit_test_setup_teardown(bad_options, setup, mock_teardown),
	cmocka_unit_test_setup_teardown(one_context, setup, mock_teardown),
	cmocka_unit_test_setup_teardown(failing_calls, setup, mock_teardown),
	cmocka_unit_test_setup_teardown(walk, setup, mock_teardown),
	cmocka_unit_test_setup_teardown(described, setup, mock_teardown),
	cmocka_unit_test_setup_teardown(in_json, setup, mock_teardown),
	cmocka_unit_test_setup_teardown(attributes, setup, mock_teardown),
	cmocka_unit_test_setup_teardown(speeds, setup, mock_teardown),
	cmocka_unit_test_setup_teardown(infiniband, setup, mock_teardown),
	cmocka_unit_test_setup_teardown(the_best_address, setup, mock_teardown),
	cmocka_unit_test_setup_teardown(limit, setup, mock_teardown),
	cmocka_unit_test_setup_teardown(removed, setup, mock_teardown),
	cmocka_unit_test_setup_teardown(told_events, setup, mock_teardown),
	cmocka_unit_test_setup_teardown(after_fork, setup, mock_teardown),
	cmocka_unit_test_setup_teardown(forks, setup, mock_teardown),
	cmocka_unit_test_setup_teardown(threads, setup, mock_teardown),
};

UNIT_MAIN(tests)
