#!/bin/bash
# SPDX-License-Identifier: MIT OR GPL-2.0
# timeout: 400
# ringgate pool with RDMA devices (Soft-RoCE on both ends of a veth). In the initial
# network namespace, where such devices work on every kernel.

# shellcheck source=tests/cli/lib/tap.sh
. "$(dirname "$0")/../cli/lib/tap.sh"

# shellcheck disable=SC2034 # for rxe_pair.sh
a=rgpool0 b=rgpool1 na=rgq0 nb=rgq1 net=10.79.0 pref=7730
# shellcheck source=tests/vm/lib/rxe_pair.sh
. "$(dirname "$0")/lib/rxe_pair.sh"

cleanup()
{
	rxe_pair_down
	rm -rf "$tmp"
}
trap cleanup EXIT
json_served

rxe_pair_up

# used: what is allocated on both devices, of all processes
used()
{
	rdma resource show $a | sed 's/ cm_id.* mr/ mr/'
	rdma resource show $b | sed 's/ cm_id.* mr/ mr/'
}

before=$(used)
back()
{
	[ "$(used)" = "$before" ]
}

# plan, against what the device says and what RGATE_MAX_MR leaves of it
max=$("$ringgate" probe --list --json | json '[d["max_mr"] for d in j["devices"]
	if d["name"] == "'$a'"][0]')
run "$ringgate" pool plan --peers 3 --buffers 5 --device $a --json
is "plan: the device's limit" "$(json '(j["limit"], j["limit_source"], j["fits"],
	j["device"])' <<<"$out")" "($max, '$a', True, '$a')"
export RGATE_MAX_MR=100
run "$ringgate" pool plan --peers 2 --sizes 8 --buffers 4 --device $a --json
is "plan: 2 peers x 4 buffers x 8 sizes of 100" "$rc $(json '(j["regions"], j["limit"],
	j["limit_source"], j["headroom"], j["fits"], j["max_peers"], j["pool"]["regions"])' \
	<<<"$out")" "0 (64, 100, 'RGATE_MAX_MR', 36, True, 3, 1)"
run "$ringgate" pool plan --peers 3 --sizes 8 --buffers 5 --json
is "plan: 3 peers x 5 buffers x 8 sizes of 100" "$rc $(json '(j["regions"], j["limit"],
	j["headroom"], j["fits"], j["max_peers"], j["pool"]["regions"])' <<<"$out")" \
	"0 (120, 100, -20, False, 2, 1)"
run "$ringgate" pool plan --peers 3 --device no-such-device
is "plan: a device that is not there: status 1" "$rc" 1

# verify: every check that there is, by name
all="carved completely,buffers apart,patterns intact,released in random order,all is back,\
carved again,send,contents and red zones,send with immediate,write,write with immediate,read,\
fetch-add,compare-swap,compare-swap; other value,other buffers intact,\
refused: byte before the region,refused: across the begin,refused: byte past the end,\
refused: across the end,refused: wrong key,refused: no remote write,refused: no remote read,\
refused: no remote atomic,refused: after deregistration,\
not refused: next buffer of the region,pool destroyed"

# checks DESCRIPTION NAME...: what the run before has done
checks()
{
	local what=$1 names=$2
	is "$what: status 0" "$rc" 0
	is "$what: passed" "$(json 'j["passed"], j["local"], j["isolation"]' <<<"$out")" \
		"(True, False, 'protocol')"
	is "$what: no check failed or was left out" "$(json \
		'[(c["name"], c["text"]) for c in j["checks"] if c["result"] != "ok" or
		not c["count"]]' <<<"$out")" "[]"
	is "$what: each check" "$(json \
		'",".join(sorted(c["name"].replace(",", ";") for c in j["checks"]))' \
		<<<"$out")" "$(tr , '\n' <<<"$names" | LC_ALL=C sort | paste -sd ,)"
	[ "$rc" = 0 ] || sed 's/^/# /' <<<"$err"
}

verify()
{
	timeout $((200 * slow)) "$ringgate" pool verify "$@" >"$tmp/out" 2>"$tmp/err" </dev/null
	rc=$?
	out=$(<"$tmp/out")
	err=$(<"$tmp/err")
}

verify --size 64M --buffer 512K --device $a --peer-device $b --rounds 2 --json
checks "two devices" "$all"
is "two devices: 128 buffers of 512 KiB in 64 MiB" "$(json '(j["buffers"], j["device"],
	j["peer_device"])' <<<"$out")" "(128, '$a', '$b')"
is "two devices: 8 lengths at 4 places" "$(json '{c["name"]: c["count"] for c in
	j["checks"]}["write with immediate"]' <<<"$out")" 32
ok "two devices: nothing is left" wait_for 10 back
seed=$(json 'j["seed"]' <<<"$out")

verify --size 16M --buffer 64K --device $a --rounds 1 --json
checks "one device" "$all,refused: key of another process"
verify --size 8M --buffer 192 --device $a --rounds 1 --seed "$seed"
is "buffers of 192 bytes: status 0" "$rc" 0
like "the seed that was asked for" "$out" "seed $(printf '%#x' "$seed")"
like "says what a pool does not protect from" "$out" "by protocol, not by hardware"
RGATE_MAX_MR=2 verify --size 4M --device $b --rounds 0
is "a device with two regions is enough: status 0" "$rc" 0
RGATE_MAX_MR=1 verify --size 4M --device $b --rounds 0
is "with one region the second one is refused: status 1" "$rc" 1
like "... and why" "$err" "ENOSPC"

run "$ringgate" pool verify --size 512G --buffer 1G --device $a
is "more than there is memory: status 1" "$rc" 1
like "more than there is memory: says so" "$err" "512\.0 GiB|1\.0 TiB.* are needed"
run "$ringgate" pool verify --size 4M --device $a --peer-device no-such-device
is "no such device of the peer: status 1" "$rc" 1
like "no such device of the peer: says whose" "$err" "peer"

# A run that would last for hours, until its second process is there and at work
begin()
{
	"$ringgate" pool verify --size 4M --buffer 64K --device $a --peer-device $b \
		--rounds 1000000 "$@" >"$tmp/out" 2>"$tmp/err" </dev/null &
	pid=$!
	wait_for 60 connected
	peer=$(pgrep -P $pid)
}

# The device has a queue pair of the kernel's own, which is always there.
connected()
{
	rdma resource show qp link $a/1 | grep -q "type RC state RTS .*pid $pid "
}

# ends SECONDS: exit status of what was begun; it ends in time
ends()
{
	wait_for "$1" [ ! -e /proc/$pid/exe ] || kill -9 "$pid"
	wait "$pid"
	rc=$?
	err=$(<"$tmp/err")
}

begin
kill -9 "$peer"
ends 40
is "the peer is killed: status 1" "$rc" 1
like "the peer is killed: says so" "$err" "peer process died: signal 9 \(KILL\)"
ok "the peer is killed: nothing is left" wait_for 10 back

begin --timeout 2
kill -STOP "$peer"
ends 40
is "the peer does not answer: status 1" "$rc" 1
like "the peer does not answer: says so" "$err" "does not answer|nothing came in time"
ok "the peer does not answer: it was ended" wait_for 10 [ ! -e /proc/"$peer"/exe ]
ok "the peer does not answer: nothing is left" wait_for 10 back

begin
kill -9 "$pid"
ends 10 2>/dev/null
ok "the initiator is killed: the peer ends" wait_for 10 [ ! -e /proc/"$peer"/exe ]
ok "the initiator is killed: nothing is left" wait_for 10 back

begin
kill -INT "$pid"
ends 30
is "Ctrl-C: status 1" "$rc" 1
like "Ctrl-C: says so" "$err" "interrupted"
ok "Ctrl-C: nothing is left" wait_for 10 back

# Larger, as in earnest
verify --size 256M --device $a --peer-device $b --rounds 1 --json
checks "256 MiB" "$all"
is "256 MiB: 512 buffers of 512 KiB" "$(json 'j["buffers"]' <<<"$out")" 512
finish
