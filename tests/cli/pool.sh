#!/bin/bash
# SPDX-License-Identifier: MIT OR GPL-2.0
# ringgate pool where there is no RDMA device: the plan, and verify over shared memory.
# With devices: tests/vm/cli_pool.sh.

# shellcheck source=tests/cli/lib/tap.sh
. "$(dirname "$0")/lib/tap.sh"

unset RGATE_MAX_MR RGATE_RDMA_DEVICE RGATE_POOL_DEBUG

# plan ARGUMENT...: sets out to the JSON
plan()
{
	run "$ringgate" pool plan --json "$@"
}

# figures NAME...: of the plan before
figures()
{
	json "tuple(j[k] for k in '$*'.split())" <<<"$out"
}

plan --peers 2 --sizes 8 --buffers 4 --limit 100
is "plan: 2 peers x 4 buffers x 8 sizes: 64 of 100" \
	"$rc $(figures regions limit headroom headroom_percent fits max_peers)" \
	"0 (64, 100, 36, 36.0, True, 3)"
is "plan: a pool needs one" "$(json '(j["pool"]["regions"], j["pool"]["bytes"])' \
	<<<"$out")" "(1, None)"
plan --peers 3 --sizes 8 --buffers 5 --directions 1 --limit 100
is "plan: 3 peers x 5 buffers x 8 sizes: 120 of 100" \
	"$rc $(figures regions headroom fits max_peers)" "0 (120, -20, False, 2)"
is "plan: a table for 2 to 8 peers" "$(json '[(r["peers"], r["regions"], r["fits"])
	for r in j["table"]]' <<<"$out")" \
	"[(2, 80, True), (3, 120, False), (4, 160, False), (5, 200, False), (6, 240, False), (7, 280, False), (8, 320, False)]"
plan --peers 3 --buffers 5 --directions 2 --limit 240
is "plan: both directions, just fits" "$(figures regions headroom fits max_peers)" \
	"(240, 0, True, 3)"
plan --peers 1000 --limit 100
is "plan: the table has the number of peers asked for" \
	"$(json '[r["peers"] for r in j["table"]]' <<<"$out")" "[2, 3, 4, 5, 6, 7, 8, 1000]"
plan --peers 1 --limit 1
is "plan: also one" "$(json '([r["peers"] for r in j["table"]], j["max_peers"])' \
	<<<"$out")" "([1, 2, 3, 4, 5, 6, 7, 8], 0)"
plan --peers 2 --buffers 4 --buffer-size 100 --buffer-size 512K --limit 100
is "plan: sizes are counted, bytes in whole lines" \
	"$(json '(j["sizes"], j["regions"], j["pool"]["bytes"])' <<<"$out")" \
	"(2, 16, $((8 * 128 + 8 * 512 * 1024)))"
# 8 buffers of 1 MiB are 3 regions of 3 MiB, and 8 of 2 MiB are 8, as none fits into
# what is left of the third
plan --peers 2 --buffers 4 --buffer-size 1M --buffer-size 2M --region 3M --limit 100
is "plan: regions of a given size" "$(json 'j["pool"]["regions"]' <<<"$out")" 11
run "$ringgate" pool plan --peers 3 --buffers 5 --limit 100
like "plan: text" "$out" "120 = 8 sizes x 5 buffers x 3 peers x 1 direction"
like "plan: text: headroom" "$out" "headroom: +-20 \(-20\.0 %\): does not fit"
like "plan: text: a row" "$out" "2 +80 +20 +20\.0 +yes"
if [ -e /sys/class/infiniband ] && [ -n "$(ls /sys/class/infiniband)" ]; then
	skip "plan without device and limit" "there is a device"
else
	plan --peers 3
	is "plan without device and limit: only the need" \
		"$rc $(figures regions limit headroom fits max_peers)" \
		"0 (96, None, None, None, None)"
	like "plan without device and limit: says so" "$err" "give --limit"
	run "$ringgate" pool plan --peers 3 --device no-such-device
	is "plan: no such device: status 1" "$rc/$out" "1/"
	RGATE_RDMA_DEVICE=no-such-device run "$ringgate" pool verify --size 4M
	is "verify: the device of the environment is not there: status 1" "$rc" 1
fi

# verify, over shared memory
all="all is back,buffers apart,carved again,carved completely,compare-swap,\
contents and red zones,descriptor past the end is found out,fetch-add,\
other buffers intact,patterns intact,peer reads,peer writes,pool destroyed,\
released in random order"
run "$ringgate" pool verify --local --size 64M --buffer 512K --json
is "verify: status 0" "$rc" 0
is "verify: passed" "$(json '(j["passed"], j["local"], j["device"], j["buffers"])' \
	<<<"$out")" "(True, True, None, 128)"
is "verify: each check" "$(json '",".join(sorted(c["name"] for c in j["checks"]
	if c["count"] and c["result"] == "ok"))' <<<"$out")" "$all"
counts=$(json '[(c["name"], c["count"]) for c in j["checks"]]' <<<"$out")
seed=$(json 'j["seed"]' <<<"$out")
run "$ringgate" pool verify --local --size 64M --buffer 512K --json --seed "$seed"
is "verify: the same by its seed" \
	"$(json '(j["seed"], [(c["name"], c["count"]) for c in j["checks"]])' <<<"$out")" \
	"($seed, $counts)"
for args in "--size 2M --buffer 2" "--size 4M --buffer 64" "--size 4M --buffer 4K" \
	    "--size 4M --buffer 100000" "--size 4M --buffer 4M" "--size 3M --buffer 1M" \
	    "--size 64M --buffer 512K --rounds 50"; do
	# shellcheck disable=SC2086 # words
	run "$ringgate" pool verify --local $args
	is "verify $args: status 0" "$rc" 0
done
like "verify: text" "$out" "contents and red zones +[0-9]+ +0 +ok"
like "verify: says that no device was tried" "$out" "Without an RDMA device"
RGATE_POOL_DEBUG=1 run "$ringgate" pool verify --local --size 16M --buffer 64K
is "verify: a pool with red zones of its own: status 0" "$rc" 0

run "$ringgate" pool verify --local --size 1000G --buffer 512M
is "verify: more than there is memory: status 1" "$rc" 1
like "verify: more than there is memory: says so" "$err" "1000\.0 GiB of memory are needed"

# begin: a run that would last long, until its processes share the memory
begin()
{
	"$ringgate" pool verify --local --size 4M --buffer 64K --rounds 1000000 "$@" \
		>"$tmp/out" 2>"$tmp/err" </dev/null &
	pid=$!
	wait_for 20 sharing
	peer=$(pgrep -P $pid)
}

sharing()
{
	local p
	p=$(pgrep -P $pid) && grep -q memfd: "/proc/$p/maps"
}

# ends: exit status of what was begun; it ends in time
ends()
{
	wait_for 20 [ ! -e /proc/$pid/exe ] || kill -9 $pid
	wait $pid
	rc=$?
	out=$(<"$tmp/out")
	err=$(<"$tmp/err")
}

begin
kill -9 "$peer"
ends
is "the peer is killed: status 1" "$rc" 1
like "the peer is killed: says so" "$err" "peer process died: signal 9 \(KILL\)"
like "the peer is killed: the seed is told" "$out" "seed 0x"

begin --timeout 1
kill -STOP "$peer"
ends
is "the peer does not answer: status 1" "$rc" 1
like "the peer does not answer: says so" "$err" "does not answer"
ok "the peer does not answer: it was ended" wait_for 10 [ ! -e /proc/"$peer"/exe ]

begin
kill -INT $pid
ends
is "Ctrl-C: status 1" "$rc" 1
like "Ctrl-C: says so" "$err" "interrupted"

begin
kill -9 $pid
ends 2>/dev/null
ok "the initiator is killed: the peer ends" wait_for 10 [ ! -e /proc/"$peer"/exe ]

# A third process that writes where it should not has to be found out
begin
fd=$(find "/proc/$pid/fd" -lname '/memfd:*' | head -1)
python3 - "$fd" <<-'END'
	import os, random, sys, time
	fd = os.open(sys.argv[1], os.O_RDWR)
	size = os.fstat(fd).st_size
	end = time.monotonic() + 1
	while time.monotonic() < end:
	    os.pwrite(fd, os.urandom(4096), random.randrange(size - 4096))
END
kill -INT $pid
ends
like "foreign writes are found" "$out" "(contents and red zones|peer reads) +[0-9]+ +[1-9]"
is "foreign writes are found: status 1" "$rc" 1
finish
