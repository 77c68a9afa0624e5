#!/bin/bash
# SPDX-License-Identifier: MIT OR GPL-2.0
# timeout: 240
# A daemon with a journal is killed, again and again, while others submit and work: what was taken
# runs, what was completed is, and each result is told once.

# shellcheck disable=SC2317 # functions that wait_for calls
# shellcheck source=tests/cli/lib/tap.sh
. "$(dirname "$0")/../cli/lib/tap.sh"

ringgated=$build/tools/ringgated
here=$(cd "$(dirname "$0")/queue_journal" && pwd -P)
load=$build/tests/net/queue_journal/load
export PYTHONDONTWRITEBYTECODE=1
pids=()
pid=
trap 'kill -9 $pid "${pids[@]}" 2>/dev/null; rm -rf "$tmp"' EXIT

chmod 755 "$tmp"
cluster_of_two "$tmp/cluster"
echo "allow any queue" >"$tmp/policy"
chmod 600 "$tmp/policy"
# begin JOURNAL...
begin()
{
	: >"$tmp/log0"
	"$ringgated" -C "$tmp/cluster" -n 0 -s "$tmp/s0" --pool 16M --journal "$tmp/j $*" \
		--requests "socket $tmp/r0" --requests "policy $tmp/policy" >>"$tmp/log0" 2>&1 &
	pid=$!
}
ready() { grep -q "is ready" "$tmp/log0"; }
kill_it()
{
	kill -9 "$pid"
	wait "$pid" 2>/dev/null
	cat "$tmp/log0" >>"$tmp/logs"
}
end_it()
{
	kill "$pid"
	wait "$pid"
	result $? "the daemon ends"
	cat "$tmp/log0" >>"$tmp/logs"
}
queue() { run env RGATE_REQUESTS="$tmp/r0" timeout 60 "$ringgate" queue "$@"; }
# of the journal
number() { "$ringgate" cluster status -s "$tmp/s0" --json | json "j['requests']['queues']['journal']['$1']"; }

ok "the accounting finds what cannot be" python3 "$here/account.py" --selftest

begin segment 64K
ok "a daemon with a journal" wait_for 20 ready
is "its files are its own" "$(stat -c %a "$tmp/j" "$tmp"/j/*.journal | tr '\n' ' ')" "700 600 "
queue create --attempts 1 a
is "a queue" "$rc/$err" "0/"
queue create --no-journal b
is "... and one that is not journaled" "$rc/$err" "0/"
seq 10 | RGATE_REQUESTS=$tmp/r0 "$ringgate" queue put a
seq 10 | RGATE_REQUESTS=$tmp/r0 "$ringgate" queue put b
queue stats --json a
is "what is told of the journal" "$("$ringgate" cluster status -s "$tmp/s0" --json |
	json "(lambda q: (' '.join(sorted(q)), q['directory'], 0 < q['live_bytes'] <= q['bytes'], q['error'], q['failed'], q['refused']))(j['requests']['queues']['journal'])")" \
	"('bytes directory error failed files live_bytes records refused restored syncs writes', '$tmp/j', True, '', 0, 0)"
is "stats tells" "$(json '(j["ready"], j["journaled"])' <<<"$out")" "(10, True)"
queue stats --json b
is "... of the other one" "$(json '(j["ready"], j["journaled"])' <<<"$out")" "(10, False)"
# Its worker goes with it: that is no attempt.
RGATE_REQUESTS=$tmp/r0 timeout 60 "$ringgate" queue run a -- sleep 30 2>/dev/null &
claimed() { queue stats --json a; [ "$(json 'j["running"]' <<<"$out")" = 1 ]; }
ok "a worker has one" wait_for 20 claimed
run timeout 20 "$ringgated" -C "$tmp/cluster" -n 1 -s "$tmp/s1" --pool 16M --journal "$tmp/j" \
	--requests "socket $tmp/r1"
like "a second daemon is told" "$rc $err$out" "^1 .*journal .* is another daemon's, which runs"
end_it
begin segment 64K
ok "the next one" wait_for 20 ready
like "... tells" "$(<"$tmp/log0")" "10 tasks are there again"
queue stats --json a
is "... has them, and no attempt is lost" "$(json '(j["ready"], j["buried"])' <<<"$out")" "(10, 0)"
queue stats b
like "... and not the others" "$rc $err" "^1 .*only its owner can make it"
queue run a -- true
is "they run" "$rc/$(number restored)" "0/10"
queue remove a
kill_it

# Anything in it can be wrong.
begin segment 64K
ok "killed and begun" wait_for 20 ready
seq 10 | RGATE_REQUESTS=$tmp/r0 "$ringgate" queue put c
kill_it
cp -a "$tmp/j" "$tmp/well"
last=$(ls "$tmp"/j/*.journal | tail -1)
truncate -s -5 "$last"
begin segment 64K
ok "a torn end" wait_for 20 ready
like "... is cut off, with a line" "$(<"$tmp/log0")" "were not written to their end: they are cut off"
kill_it
rm -rf "$tmp/j"
cp -a "$tmp/well" "$tmp/j"
for f in "$tmp"/j/*.journal; do
	[ "$(stat -c %s "$f")" -le 300 ] || printf 'X' | dd of="$f" bs=1 seek=100 conv=notrunc 2>/dev/null
done
run timeout 20 "$ringgated" -C "$tmp/cluster" -n 0 -s "$tmp/s0" --pool 16M --journal "$tmp/j" \
	--requests "socket $tmp/r0" --requests "policy $tmp/policy"
like "what is wrong in the middle: where, and what to do" "$rc $err$out" \
	"^1 .*$tmp/j/[0-9a-f]*\.journal: .* at byte [0-9]+: start ringgated once with 'repair'"
run timeout 20 "$ringgated" --check -C "$tmp/cluster" -n 0 -s "$tmp/s0" --journal "$tmp/j" \
	--requests "socket $tmp/r0" --requests "policy $tmp/policy"
like "... which --check finds, too" "$rc $err$out" "^1 .* at byte "
begin repair
ok "... and which repair leaves out" wait_for 20 ready
aside() { ls "$tmp"/j/*.wrong; }
ok "... with what was wrong kept aside" wait_for 20 aside
kill_it

# A disk that is full
rm -rf "$tmp/j"
if unshare -m mount -t tmpfs none "$tmp" 2>/dev/null; then
	mkdir "$tmp/j"
	: >"$tmp/log0"
	unshare -m sh -c 'mount -t tmpfs -o size=2400k,mode=700 none "$1" && shift && exec "$@"' sh "$tmp/j" \
		"$ringgated" -C "$tmp/cluster" -n 0 -s "$tmp/s0" --pool 16M --journal "$tmp/j segment 64K" \
		--requests "socket $tmp/r0" --requests "policy $tmp/policy" >>"$tmp/log0" 2>&1 &
	pid=$!
	ok "a small disk" wait_for 20 ready
	queue create full
	head -c 20000 /dev/zero | tr '\0' x >"$tmp/line"
	puts() { RGATE_REQUESTS=$tmp/r0 timeout 60 "$ringgate" queue put full <"$tmp/line" 2>"$tmp/err"; }
	for ((n = 0; n < 200; n++)); do
		puts || break
	done
	like "... is full" "$(<"$tmp/err")" "there is no room for the journal of its home"
	queue stats full --json
	is "... what was taken is there, and no more" "$(json 'j["ready"]' <<<"$out")" "$n"
	[ "$(number refused)" -ge 1 ]
	result $? "... what was not is counted"
	queue run -P 4 full -- true
	queue stats full --json
	is "... what is there ends" "$rc/$(json '(j["ready"], j["completed"])' <<<"$out")" "0/(0, $n)"
	ok "... and there is room again" wait_for 20 puts
	end_it
	rmdir "$tmp/j"
else
	echo "# no small disk can be mounted here"
fi

# Killed at random
rm -rf "$tmp/j"
for mode in "fsync never" "fsync 20" "fsync each"; do
	rm -rf "$tmp/j"
	begin segment 64K $mode
	for who in s1 s2; do
		"$load" submit "$tmp/r0" "$who" 1800 >"$tmp/seen.$who" &
		pids+=($!)
	done
	for who in w1 w2; do
		"$load" work "$tmp/r0" "$who" $((3600 * slow)) >"$tmp/seen.$who" &
		pids+=($!)
	done
	for _ in 1 2 3; do
		wait_for 20 ready
		sleep "0.$((RANDOM % 4 + 1))"
		kill_it
		begin segment 64K $mode
	done
	wait_for 20 ready
	wait "${pids[@]}"
	pids=()
	idle() { queue stats --json load; [ "$(json 'j["ready"] + j["running"] + j["claimed"]' <<<"$out")" = 0 ]; }
	ok "$mode: all has run" idle
	python3 "$here/account.py" "$tmp"/seen.* >"$tmp/account"
	result $? "$mode: what was seen can be"
	cat "$tmp/account"
	[ "$(number files)" -le 40 ]
	result $? "$mode: the journal has an end"
	end_it
done
is "nothing was complained of" "$(complaints "$tmp/logs" | grep -vE 'journal .*(are there again|are cut off|left out|wrong)')" ""
finish
