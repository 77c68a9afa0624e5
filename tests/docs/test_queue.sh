#!/bin/bash
# SPDX-License-Identifier: MIT OR GPL-2.0
# The examples of queue.rst run; what that shows is in them; its constants are there.
set -u
top=$(cd "$(dirname "$0")/../.." && pwd)
build=${RGATE_BUILD:-$top/build}
. "$(dirname "$0")/lib/tap.sh"
cd "$top" || exit 1

timeout 60 "$build/examples/queue" >"$tmp/log" 2>&1
rc=$?
ok $rc "the example runs"
[ "$(cat "$tmp/log")" = "100 sums" ]
ok $? "and prints what it should"

timeout 60 "$build/examples/queue_memory" >"$tmp/log" 2>&1
rc=$?
ok $rc "the one with exported memory runs"
[ "$(cat "$tmp/log")" = "the sum of 1000000 bytes: 127493856" ]
ok $? "and prints what it should"

timeout 60 "$build/examples/tree" >"$tmp/log" 2>&1
rc=$?
ok $rc "the one that searches a tree runs"
grep -q '"nodes": 610161, "alone": 610161, ' "$tmp/log"
ok $? "and finds all nodes"

timeout 60 "$build/examples/shard" >"$tmp/log" 2>&1
rc=$?
ok $rc "the one without a daemon runs"
[ "$(cat "$tmp/log")" = "100 results: 328350" ]
ok $? "and prints what it should"

# Blocks of C, however they are indented or called: no line that nobody compiles
python3 tests/docs/blocks.py Documentation/queue.rst | while IFS=$'\t' read -r at _ _; do
	sed -n "$((at + 1)),\$ { /^[^[:space:]]/q; p }" Documentation/queue.rst | sed 's/^[[:space:]]*//; /^$/d' >"$tmp/block"
	! grep -q 'rgate_[a-z_]*(' "$tmp/block" || cat "$tmp/block"
done >"$tmp/shown"
cat Documentation/examples/{queue,queue_memory,shard}.c | sed 's/^\t*//' >"$tmp/example"
while IFS= read -r line; do
	grep -qxF -- "$line" "$tmp/example" || echo "not there: $line"
done <"$tmp/shown" >"$tmp/log"
[ "$(grep -c rgate_ "$tmp/shown")" -ge 8 ] && [ ! -s "$tmp/log" ]
ok $? "what queue.rst shows of C is its examples'"

# Each command as it stands there, of a daemon that is not there: its arguments are right
export RGATE_REQUESTS=$tmp/none
grep -P '^  \$ .*ringgate' Documentation/queue.rst | sed 's/^  \$ .*ringgate //' >"$tmp/commands"
while read -r line; do
	# shellcheck disable=SC2086 # words
	"$build/tools/ringgate" $line </dev/null >"$tmp/said" 2>&1
	[ $? = 1 ] && grep -q "no ringgated runs here" "$tmp/said" || echo "$line: $(cat "$tmp/said")"
done <"$tmp/commands" >"$tmp/log"
[ "$(wc -l <"$tmp/commands")" -ge 7 ] && [ ! -s "$tmp/log" ]
ok $? "commands that it shows are right"

grep -ohE '``RGATE_(REQ_)?(QUEUE|TASK|SUBMIT|CLAIM|WAIT)_[A-Z0-9_]+(\(\))?``' \
	Documentation/queue.rst | tr -d '`()' | sort -u >"$tmp/names"
while read -r name; do
	grep -qw "$name" uapi/ringgate/*.h || echo "$name is not there"
done <"$tmp/names" >"$tmp/log"
sed -n 's/^#define RGATE_REQ_QUEUE_\([A-Z0-9_]*\).*/\1/p' uapi/ringgate/request.h |
	while read -r name; do
		grep -qF "\`\`$name\`\`" Documentation/queue.rst || echo "$name is not told of"
	done >>"$tmp/log"
[ "$(wc -l <"$tmp/names")" -gt 10 ] && [ ! -s "$tmp/log" ]
ok $? "constants that it names are there, and all operations are named"

echo "1..$n"
[ "$failed" -eq 0 ]
