#!/bin/bash
# SPDX-License-Identifier: MIT OR GPL-2.0
#
# What scripts/demo makes of results: rates and their ratio, CPU time, a sentence where the ring is
# behind.

set -uo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd -P)
top=$(cd "$here/../.." && pwd -P)
. "$here/tap.inc"

# rates KIND...: the table of the result lines that come in, with a row for each test t1, t2 of
# these kinds: `process`, whose CPU time is told by who spent it, `machine`, by the whole one, or
# `stream`, as that, but KiB are counted
rates()
{
	run python3 -B -c '
import importlib.machinery, importlib.util, json, sys
loader = importlib.machinery.SourceFileLoader("demo", sys.argv[1])
demo = importlib.util.module_from_spec(importlib.util.spec_from_loader("demo", loader))
loader.exec_module(demo)
demo.show_rates(demo.Results([json.loads(line) for line in sys.stdin]),
                [(f"t{i}", f"row {i}", kind != "process", "KiB" if kind == "stream" else "frame")
                 for i, kind in enumerate(sys.argv[2:], 1)])
' "$top/scripts/demo" "$@"
}

# sender TEST START_NS CPU_US, and what received that: got TEST WHO FRAMES LAST_NS CPU_US MACHINE_US;
# BYTES, if they are not 64 a frame
sender()
{
	printf '{"test": "%s", "who": "sender", "start_ns": %s, "cpu_us": %s}\n' "$@"
}

got()
{
	printf '{"test": "%s", "who": "%s", "frames": %s, "last_ns": %s, ' "${@:1:4}"
	printf '"cpu_us": %s, "machine_us": %s, "bytes": %s, "seconds": 50}\n' "${@:5:2}" "${7:-$(($3 * 64))}"
}

# sentences TITLE N: so many begin with it
sentences()
{
	# shellcheck disable=SC2154 # run's
	[ "$(grep -c "^  $1: " <<<"$output")" = "$2" ] || { echo "# not $2 of $1"; told; return 1; }
}

# Frames in one second from the sender's start: 900 in the ring, 1000 by recvmmsg; and the same
rates process machine < <(
	sender t1 4000000000 450
	got t1 ring 900 5000000000 900 77777
	sender t1 6000000000 500
	got t1 recvmmsg 1000 7000000000 500 77777
	sender t2 4000000000 77777
	got t2 ring 1000 5000000000 77777 4000
	sender t2 6000000000 77777
	got t2 recvmmsg 1000 7000000000 77777 3000
)
expect "there are results to tell" ended_with 0
expect "a ratio below 1, CPU time of sender and receiver" \
	said '^  row 1, frame +900 +1,000 +0\.90 +1\.50 +1\.00$'
expect "has one sentence" sentences "row 1" 1
expect "which tells what a frame took" said '^  row 1: .*1\.5 us of CPU a frame, 1\.0 by recvmmsg'
expect "a ratio of 1, CPU time of the machine" said '^  row 2, frame +1,000 +1,000 +1\.00 +4\.00 +3\.00$'
expect "has none" sentences "row 2" 0

# The machine's own sentence
rates machine process < <(
	sender t1 0 77777
	got t1 ring 500 1000000000 77777 1000
	sender t1 0 77777
	got t1 recvmmsg 1000 1000000000 77777 1000
	sender t2 0 0
	got t2 ring 1500 1000000000 1500 0
	sender t2 0 0
	got t2 recvmmsg 1000 1000000000 1000 0
)
expect "a ratio below 1 in a VM" said '^  row 1, frame +500 +1,000 +0\.50 +2\.00 +1\.00$'
expect "has one sentence as well" sentences "row 1" 1
expect "which is about the module's copy" said '^  row 1: the module copies .*2\.0 us of CPU'
expect "a ratio above 1" said '^  row 2, frame +1,500 +1,000 +1\.50 '
expect "has none, too" sentences "row 2" 0

# Five rounds in turn, each with its own sender: the middle one, by rate and by CPU time, each alone
rates process < <(
	for round in '900 1100' '100 300' '2000 5000' '950 2000' '10 200'; do
		read -r frames cpu <<<"$round"
		sender t1 $((frames * 1000)) "$frames"
		got t1 ring "$frames" $((1000000000 + frames * 1000)) "$((cpu - frames))" 0
		sender t1 7000 0
		got t1 recvmmsg $((frames == 2000 ? 9000 : 1000)) 1000007000 2000 0
	done
)
# of 1100/900, 3, 2.5, 2000/950 and 20
expect "the median of rounds" said '^  row 1, frame +900 +1,000 +0\.90 +2\.50 +2\.00$'
expect "has one sentence, not one for each round" sentences "row 1" 1

# What came without a sender of the demo's (TCP): by the receiver's own seconds
rates machine < <(
	got t1 ring 5000 1 77777 10000
	got t1 recvmmsg 2500 1 77777 10000
)
expect "a row without a sender" said '^  row 1, frame +100 +50 +2\.00 +2\.00 +4\.00$'

# The same bytes in other frames
rates stream < <(
	got t1 ring 500 1 77777 4000 $((2000 << 10))
	got t1 recvmmsg 1000 1 77777 8000 $((4000 << 10))
)
expect "KiB are counted where frames are not the same" said '^  row 1, KiB +40 +80 +0\.50 +2\.00 +2\.00$'
expect "and the sentence says so" said '^  row 1: .*2\.0 us of CPU a KiB, 2\.0 by recvmmsg'

tap_end
