#!/bin/bash
# SPDX-License-Identifier: MIT OR GPL-2.0
# timeout: 150
# The demonstration's cluster without RDMA: all that was sent is there, as it was sent.

# shellcheck source=tests/cli/lib/tap.sh
. "$(dirname "$0")/../cli/lib/tap.sh"

[ -x "$build/tests/demo/demo_recv" ] || skip_all "make demo-programs"
run env O="$build" "$top/scripts/demo" --local --json
is "scripts/demo --local: status 0" "$rc" 0
[ "$rc" = 0 ] || sed 's/^/# /' <<<"$err"
is "nothing is missing, and nothing was changed" "$(json 'j["wrong"]' <<<"$out")" "[]"
is "both nodes got their own, paced and fast" "$(json 'sorted({r["test"] for r in j["results"]
	if r.get("frames") and r["test"][-1] in "12"})' <<<"$out")" \
	"['local-udp-fast-1', 'local-udp-fast-2', 'local-udp-paced-1', 'local-udp-paced-2']"
is "each consumer that is woken slept, and the gateway's CPU was counted" "$(json '(all(
	r["sleeps"] > 0 and not r["polls"] for r in j["results"] if r["who"] == "ring"),
	[r["gateway_us"] > 0 for r in j["results"] if r["who"] == "cpu-ring"])' <<<"$out")" \
	"(True, [True])"
# What is being done is told beside the results, and from the beginning
is "the first line says what is done" "$(sed -n 1p <<<"$err")" \
	"demo:    0 s  a cluster on this machine: a gateway and two nodes, over shared memory"
like "each part is told" "$err" "local-udp-fast-1: 20000 frames by ring, which is woken"

run env O="$build" "$top/scripts/demo" --local
is "as tables: status 0" "$rc" 0
like "CPU time stands beside the frames" "$out" "CPU of the gateway's process: [0-9.]+ us a frame"
next=$(sed -n '/^Next:/,$s/^  \([^ ][^ ]*\).*/\1/p' <<<"$out")
is "three commands to try next" "$(wc -l <<<"$next")" 3
for command in $next; do
	ok "$command is there" test -x "$command"
done
finish
