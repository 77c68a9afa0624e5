#!/bin/bash
# SPDX-License-Identifier: MIT OR GPL-2.0
# timeout: 240
# An irregular tree is searched by two workers, of which one is killed half-way: every node is
# counted once.

# shellcheck disable=SC2317 # functions that wait_for calls
# shellcheck source=tests/cli/lib/tap.sh
. "$(dirname "$0")/../cli/lib/tap.sh"
# shellcheck source=tests/net/lib/queues.sh
. "$(dirname "$0")/lib/queues.sh"

# A build with sanitizers lies below the one that has the examples.
tree=$build/examples/tree
[ -x "$tree" ] || tree=$(dirname "$build")/examples/tree
[ -x "$tree" ] || skip_all "examples/tree is not built"
args=(-g 3000 -r 8000)
nodes=1769001
q=example/tree

search()
{
	timeout 200 "$tree" -s "$tmp/r1" "${args[@]}" search >"$tmp/found" 2>"$tmp/search.err" &
	pid[search]=$!
	ok "a search begins" wait_for 20 stat_is 1 "$q" 'j["ready"] > 0' True
}
# worker KEY MS: so long a task takes
worker()
{
	"$tree" -s "$tmp/r1" -t 1 "${args[@]}" -p "$2" work 2>"$tmp/$1.err" &
	pid[$1]=$!
}
# Both stand still, and have one task each
have_two()
{
	kill -STOP "${pid[a]}" "${pid[b]}"
	sleep 0.05
	stat_is 1 "$q" 'j["running"]' 2 && return
	kill -CONT "${pid[a]}" "${pid[b]}"
	false
}
has_done() { [ "$(stat_of 1 "$q" "j['completed'] >= $1")" = True ]; }
found() { json "j['$1']" <"$tmp/found"; }

start_all
search
worker a 100
worker b 100
ok "two workers are at it" wait_for 60 has_done 10
ok "... and have a task each" wait_for 30 have_two
kill -9 "${pid[a]}"
wait "${pid[a]}" 2>/dev/null
unset "pid[a]"
kill -CONT "${pid[b]}"
worker c 0
ended search
is "one is killed half-way, and another one comes: the search ends" "$status/$(<"$tmp/search.err")" "0/"
is "... with the exact count" "$(found nodes)/$(found alone)" "$nodes/$nodes"
is "... though a task was lost" "$(found lost)" 1
ok "... and was done by many" test "$(found tasks)" -gt 100
for w in b c; do
	ended $w
	is "the other ones end with the queue" "$status/$(<"$tmp/$w.err")" "0/"
done
end_all
is "nothing was complained of" "$(complaints "$tmp"/log[012])" ""
finish
