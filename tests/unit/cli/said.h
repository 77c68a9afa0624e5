/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/* What the commands say of the rings and attachments of module.c. */
#ifndef MODULE_SAID_H
#define MODULE_SAID_H

#define SAID_STATUS \
	"module: loaded, version 0.1.0, 2 references\n" \
	"tool and library: version 0.1.0\n" \
	"\n" \
	"RING  NAME  SLOTS  SIZE   MEMORY  POLICY  CLOCK     FLAGS     HANDLES  NODE   UID  DELIVERED\n" \
	"   1  web    4096  2048  9.0 MiB  drop    realtime  chain           3   any  1001        100\n" \
	"   2  dns    8192  2048  9.0 MiB  spill   tai       chain,rw        3     0  1002        200\n" \
	"\n" \
	"ATTACHMENT  DEVICE  RINGS  ACTION  FANOUT  SAMPLE  FILTER           PRIORITY  SEEN  DELIVERED\n" \
	"         7  eth0    1,2    steal   hash      1/10  12 instructions        -5    20         23\n" \
	"         8  lo      1      mirror  cpu        all  none                   -5    20         23\n"

#define SAID_STATUS_JSON \
	"{\n" \
	"  \"version\": \"0.1.0\",\n" \
	"  \"module\": {\n" \
	"    \"loaded\": true,\n" \
	"    \"version\": \"0.1.0\",\n" \
	"    \"srcversion\": \"ABCDEF\",\n" \
	"    \"references\": 2,\n" \
	"    \"parameters\": {\n" \
	"      \"max_rings\": \"64\"\n" \
	"    }\n" \
	"  },\n"

#define SAID_ALL_JSON \
	"  \"rings\": [\n" \
	"    {\n" \
	"      \"id\": 1,\n" \
	"      \"cookie\": \"00000000c0ffee01\",\n" \
	"      \"name\": \"web\",\n" \
	"      \"slots\": 4096,\n" \
	"      \"slot_size\": 2048,\n" \
	"      \"rw_slots\": false,\n" \
	"      \"chain\": true,\n" \
	"      \"transmit\": false,\n" \
	"      \"policy\": \"drop\",\n" \
	"      \"clock\": \"realtime\",\n" \
	"      \"coarse\": false,\n" \
	"      \"generation\": 5,\n" \
	"      \"handles\": 3,\n" \
	"      \"node\": -1,\n" \
	"      \"uid\": 1001,\n" \
	"      \"mem_bytes\": 9437184,\n" \
	"      \"head\": 12345,\n" \
	"      \"stats\": {\n" \
	"        \"delivered\": 100,\n" \
	"        \"bytes\": 101,\n" \
	"        \"dropped_full\": 102,\n" \
	"        \"dropped_fault\": 103,\n" \
	"        \"overwritten\": 104,\n" \
	"        \"passed\": 105,\n" \
	"        \"spilled\": 106,\n" \
	"        \"truncated\": 107,\n" \
	"        \"chained\": 108,\n" \
	"        \"padded\": 109,\n" \
	"        \"wakeups\": 110,\n" \
	"        \"full_events\": 111\n" \
	"      }\n" \
	"    },\n" \
	"    {\n" \
	"      \"id\": 2,\n" \
	"      \"cookie\": \"00000000c0ffee02\",\n" \
	"      \"name\": \"dns\",\n" \
	"      \"slots\": 8192,\n" \
	"      \"slot_size\": 2048,\n" \
	"      \"rw_slots\": true,\n" \
	"      \"chain\": true,\n" \
	"      \"transmit\": false,\n" \
	"      \"policy\": \"spill\",\n" \
	"      \"clock\": \"tai\",\n" \
	"      \"coarse\": false,\n" \
	"      \"generation\": 5,\n" \
	"      \"handles\": 3,\n" \
	"      \"node\": 0,\n" \
	"      \"uid\": 1002,\n" \
	"      \"mem_bytes\": 9437184,\n" \
	"      \"head\": 12345,\n" \
	"      \"stats\": {\n" \
	"        \"delivered\": 200,\n" \
	"        \"bytes\": 201,\n" \
	"        \"dropped_full\": 202,\n" \
	"        \"dropped_fault\": 203,\n" \
	"        \"overwritten\": 204,\n" \
	"        \"passed\": 205,\n" \
	"        \"spilled\": 206,\n" \
	"        \"truncated\": 207,\n" \
	"        \"chained\": 208,\n" \
	"        \"padded\": 209,\n" \
	"        \"wakeups\": 210,\n" \
	"        \"full_events\": 211\n" \
	"      }\n" \
	"    }\n" \
	"  ],\n" \
	"  \"attachments\": [\n" \
	"    {\n" \
	"      \"id\": 7,\n" \
	"      \"cookie\": \"0000000000a77007\",\n" \
	"      \"ifindex\": 1,\n" \
	"      \"ifname\": \"eth0\",\n" \
	"      \"kind\": \"hook\",\n" \
	"      \"thread\": 0,\n" \
	"      \"priority\": -5,\n" \
	"      \"action\": \"steal\",\n" \
	"      \"fanout\": \"hash\",\n" \
	"      \"sample\": 10,\n" \
	"      \"filter_len\": 12,\n" \
	"      \"rings\": [\n" \
	"        1,\n" \
	"        2\n" \
	"      ],\n" \
	"      \"stats\": {\n" \
	"        \"seen\": 20,\n" \
	"        \"filtered\": 21,\n" \
	"        \"sampled_out\": 22,\n" \
	"        \"delivered\": 23,\n" \
	"        \"bytes\": 24,\n" \
	"        \"dropped_full\": 25,\n" \
	"        \"dropped_fault\": 26,\n" \
	"        \"passed\": 27,\n" \
	"        \"spilled\": 28,\n" \
	"        \"bad_length\": 29,\n" \
	"        \"bad_flags\": 30,\n" \
	"        \"refused\": 31\n" \
	"      }\n" \
	"    },\n" \
	"    {\n" \
	"      \"id\": 8,\n" \
	"      \"cookie\": \"0000000000a77008\",\n" \
	"      \"ifindex\": 1,\n" \
	"      \"ifname\": \"lo\",\n" \
	"      \"kind\": \"hook\",\n" \
	"      \"thread\": 0,\n" \
	"      \"priority\": -5,\n" \
	"      \"action\": \"mirror\",\n" \
	"      \"fanout\": \"cpu\",\n" \
	"      \"sample\": 1,\n" \
	"      \"filter_len\": 0,\n" \
	"      \"rings\": [\n" \
	"        1\n" \
	"      ],\n" \
	"      \"stats\": {\n" \
	"        \"seen\": 20,\n" \
	"        \"filtered\": 21,\n" \
	"        \"sampled_out\": 22,\n" \
	"        \"delivered\": 23,\n" \
	"        \"bytes\": 24,\n" \
	"        \"dropped_full\": 25,\n" \
	"        \"dropped_fault\": 26,\n" \
	"        \"passed\": 27,\n" \
	"        \"spilled\": 28,\n" \
	"        \"bad_length\": 29,\n" \
	"        \"bad_flags\": 30,\n" \
	"        \"refused\": 31\n" \
	"      }\n" \
	"    }\n" \
	"  ]\n" \
	"}\n"

#define SAID_STATS \
	"RING  NAME  DELIVERED  BYTES  FULL-DROP  FAULT-DROP  OVERWRITTEN  PASSED  SPILLED  TRUNCATED  CHAINED  PADDED  WAKEUPS  FULL-EVENTS\n" \
	"   1  web         100    101        102         103          104     105      106        107      108     109      110          111\n" \
	"   2  dns         200    201        202         203          204     205      206        207      208     209      210          211\n" \
	"\n" \
	"ATTACHMENT  DEVICE  SEEN  FILTERED  SAMPLED-OUT  DELIVERED  BYTES  FULL-DROP  FAULT-DROP  PASSED  SPILLED  BAD-LENGTH  BAD-FLAGS  REFUSED\n" \
	"         7  eth0      20        21           22         23     24         25          26      27       28          29         30       31\n" \
	"         8  lo        20        21           22         23     24         25          26      27       28          29         30       31\n"

#define SAID_STATS_OF_2 \
	"RING  NAME  DELIVERED  BYTES  FULL-DROP  FAULT-DROP  OVERWRITTEN  PASSED  SPILLED  TRUNCATED  CHAINED  PADDED  WAKEUPS  FULL-EVENTS\n" \
	"   2  dns         200    201        202         203          204     205      206        207      208     209      210          211\n" \
	"\n" \
	"ATTACHMENT  DEVICE  SEEN  FILTERED  SAMPLED-OUT  DELIVERED  BYTES  FULL-DROP  FAULT-DROP  PASSED  SPILLED  BAD-LENGTH  BAD-FLAGS  REFUSED\n" \
	"         7  eth0      20        21           22         23     24         25          26      27       28          29         30       31\n"

#define SAID_TOP \
	"ringgate 22:13:20  rings: 2  attachments: 2  per second over 2.0 s:\n" \
	"RING  NAME  DEVICES  SLOTS  SIZE  POLICY  FRAMES  BYTES  DROPPED  OVERWRITTEN  PASSED  WAKEUPS  TOTAL\n" \
	"   1  web   eth0,lo   4096  2048  drop       500  1.00k    3.50k        2.50k   3.00k    5.50k  1.10k\n" \
	"   2  dns   eth0      8192  2048  spill      500  1.00k    3.50k        2.50k   3.00k    5.50k  1.20k\n" \
	"      all                                  1.00k  2.00k    7.00k        5.00k   6.00k    11.0k       \n" \
	"\n" \
	"ringgate 22:13:20  rings: 2  attachments: 2  per second over 2.0 s:\n" \
	"RING  NAME  DEVICES  SLOTS  SIZE  POLICY  FRAMES  BYTES  DROPPED  OVERWRITTEN  PASSED  WAKEUPS  TOTAL\n" \
	"   1  web   eth0,lo   4096  2048  drop       500  1.00k    3.50k        2.50k   3.00k    5.50k  2.10k\n" \
	"   2  dns   eth0      8192  2048  spill      500  1.00k    3.50k        2.50k   3.00k    5.50k  2.20k\n" \
	"      all                                  1.00k  2.00k    7.00k        5.00k   6.00k    11.0k       \n"

#endif
