#!/bin/bash
# SPDX-License-Identifier: MIT OR GPL-2.0
# timeout: 240
# Queues of tasks through the daemon: whom the policy lets, several programs at once, its end.

# shellcheck disable=SC2317 # functions that wait_for calls
# shellcheck source=tests/cli/lib/tap.sh
. "$(dirname "$0")/../cli/lib/tap.sh"

ringgated=$build/tools/ringgated
trap 'kill -9 $pid 2>/dev/null; rm -rf "$tmp"' EXIT
pid=

chmod 755 "$tmp"
cluster_of_two "$tmp/cluster"
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
# A build with sanitizers lies below the one that has the examples: its daemon serves them.
example=$build/examples/queue
[ -x "$example" ] || example=$(dirname "$build")/examples/queue
sums() { run timeout 60 "$example" "$tmp/r0"; }

sums
like "no daemon: what to type" "$rc $err" "^1 .*systemctl s"
start "allow any queue"
ok "the daemon" wait_for 20 ready
sums
is "a program and its worker" "$rc/$out" "0/100 sums"
# Each waits for its own tasks; whichever worker has them says what they are.
for _ in 1 2 3 4; do
	timeout 60 "$example" "$tmp/r0" >>"$tmp/all" 2>&1 &
	several+=($!)
done
for w in "${several[@]}"; do
	wait "$w"
	result $? "one of several at once"
done
is "all have theirs" "$(sort -u "$tmp/all")" "100 sums"
queue() { run env RGATE_REQUESTS="$tmp/r0" timeout 60 "$ringgate" queue "$@"; }
queue stats a
like "no such queue" "$rc $err" "^1 .*only its owner can make it"
queue create --attempts 2 a
is "create" "$rc/$err" "0/"
queue create a
like "... once" "$rc $err" "^1 .*already"
queue create --mirror m
like "a mirror needs others" "$rc $err" "^1 .*cluster of three nodes"
seq 20 | RGATE_REQUESTS=$tmp/r0 "$ringgate" queue put a
is "put" $? 0
queue peek a 2
is "peek" "$rc/$out" "0/1 ready 1
2 ready 2"
queue peek a 1 --json
is "... as JSON" "$(json '[(t["task"], t["state"], t["data"]) for t in j]' <<<"$out")" \
	"[(1, 'ready', '1')]"
queue stats a --json
is "stats" "$(json '(j["ready"], j["submitted"])' <<<"$out")" "(20, 20)"
queue run -P 4 --retry 0.01 a -- sh -c "echo {} >>$tmp/ran; [ {} != 7 ]"
is "run: each task" "$rc" 0
is "... once, and what failed as often as it may" "$(sort -n "$tmp/ran" | tr '\n' ' ')" \
	"$( (seq 20; echo 7) | sort -n | tr '\n' ' ')"
queue drain a
like "drain: one is buried" "$rc $err" "^1 .*1 tasks are buried"
queue kick a
is "kick" "$rc/$out" "0/1"
queue run a -- true
queue drain a
is "... and done then" "$rc/$err" "0/"
queue watch a
is "watch: all are over" "$rc/$out" "0/100% 20 of 20 done, 0 running, 0 buried"
seq 12 | RGATE_REQUESTS=$tmp/r0 "$ringgate" queue put a
RGATE_REQUESTS=$tmp/r0 timeout 60 "$ringgate" queue run a -- sleep 0.1 &
pid_run=$!
queue watch --interval 0.2 --json a
wait "$pid_run"
is "... while a worker runs: to the end" "$rc/$(tail -1 <<<"$out" | json '(j["completed"], j["left"], j["eta"] == 0)')" \
	"0/(32, 0, True)"
is "... with a rate and how long" "$(sed -e '1s/^/[/' -e '$!s/$/,/' -e '$s/$/]/' <<<"$out" |
	json 'any(0 < i["left"] < 12 and 0 < i.get("rate", 0) < 40 and i["eta"] > 0 for i in j)')" True
queue watch --interval 0 a
like "... between looks is some time" "$rc $err" "^2 .*interval"
queue ls
like "ls" "$rc $out" "a +[0-9]+ +0 +0 +0 +0 +0 +0 +32"
# What queue.rst shows, of a daemon that is there: one after the other
while read -r line; do
	RGATE_REQUESTS=$tmp/r0 PATH=$(dirname "$ringgate"):$PATH timeout 60 sh -c "$line" </dev/null ||
		echo "$line"
done < <(grep -P '^  \$ .*ringgate' "$top/Documentation/queue.rst" | sed 's/^  \$ //') >"$tmp/shown" 2>&1
is "what the documentation shows" "$(grep -c 'ringgate' "$tmp/shown")" 0
# A worker that is killed: another one has its task.
echo killed | RGATE_REQUESTS=$tmp/r0 "$ringgate" queue put a
queue run a -- sh -c '[ -e '"$tmp/once"' ] && exit 0; : >'"$tmp/once"'; kill -9 $PPID'
is "run: a worker was killed" "$rc" 137
queue run a -- true
queue stats a --json
is "... and the task was not lost" "$(json '(j["ready"], j["completed"], j["lost"])' <<<"$out")" \
	"(0, 33, 1)"
echo missing | RGATE_REQUESTS=$tmp/r0 "$ringgate" queue put --attempts 1 a
queue run a -- "$tmp/no such command"
like "run: what cannot be run is said" "$rc $err" "^0 .*no such command: No such file"
queue stats a --json
is "... and was an attempt" "$(json '(j["buried"], j["completed"])' <<<"$out")" "(1, 33)"
# What a command gets of its signals is what it would have without this.
echo pipe | RGATE_REQUESTS=$tmp/r0 "$ringgate" queue put --attempts 1 a
queue run a -- sh -c 'kill -PIPE $$; : >'"$tmp/survived"
[ ! -e "$tmp/survived" ]
result $? "run: commands end by a pipe that nobody reads"
# Who waits for more ends when it is told, and with the queue.
started() { [ "$("$ringgate" queue stats -S "$tmp/r0" a --json | json 'j["waiting"]')" = "$1" ]; }
follow() { RGATE_REQUESTS=$tmp/r0 timeout 60 "$ringgate" queue run -f -P 2 a -- true 2>"$tmp/follows" & }
follow
ok "run -f: two wait" wait_for 20 started 2
kill "$!"
wait "$!"
ok "... and end by a signal" wait_for 20 started 0
follow
ok "run -f: two wait" wait_for 20 started 2
queue remove a
is "remove" "$rc/$err" "0/"
wait "$!"
is "... ends who waits for its tasks" "$?" 1
like "... and says why" "$(cat "$tmp/follows")" "the queue was removed"
kill "$pid"
wait "$pid"
result $? "the daemon ends"
pid=
finish
