#!/bin/bash
# SPDX-License-Identifier: MIT OR GPL-2.0
# timeout: 120
# Queues of tasks through the daemon: whom the policy lets, several programs at once, its end.

# shellcheck disable=SC2317 # functions that wait_for calls
# shellcheck source=tests/cli/lib/tap.sh
. "$(dirname "$0")/../cli/lib/tap.sh"

ringgated=$build/tools/ringgated
trap 'kill -9 $pid 2>/dev/null; rm -rf "$tmp"' EXIT
pid=

chmod 755 "$tmp"
cat >"$tmp/cluster" <<-END
	provider local
	node 0 gateway $tmp/n0 gw
	node 1 compute $tmp/n1 one
END
cluster_keys "$tmp/cluster"
# start POLICY
start()
{
	echo "$1" >"$tmp/policy"
	chmod 600 "$tmp/policy"
	: >"$tmp/log0"
	"$ringgated" -C "$tmp/cluster" -n 0 -s "$tmp/s0" --pool 16M \
		--requests "socket $tmp/r0" --requests "policy $tmp/policy" >>"$tmp/log0" 2>&1 &
	pid=$!
}
ready() { grep -q "is ready" "$tmp/log0"; }
sums() { run timeout 60 "$build/examples/queue" "$tmp/r0"; }

sums
like "no daemon: what to type" "$rc $err" "^1 .*systemctl s"
start "allow any queue"
ok "the daemon" wait_for 20 ready
sums
is "a program and its worker" "$rc/$out" "0/100 sums"
# Each waits for its own tasks; whichever worker has them says what they are.
for _ in 1 2 3 4; do
	timeout 60 "$build/examples/queue" "$tmp/r0" >>"$tmp/all" 2>&1 &
	several+=($!)
done
for w in "${several[@]}"; do
	wait "$w"
	result $? "one of several at once"
done
is "all have theirs" "$(sort -u "$tmp/all")" "100 sums"
kill "$pid"
wait "$pid"
result $? "the daemon ends"
pid=
finish
