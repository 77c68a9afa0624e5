#!/bin/bash
# SPDX-License-Identifier: MIT OR GPL-2.0
# timeout: 300
# Queue, lock and barrier between two builds: what RGATE_OTHER_TOOLS names, a folder with ringgate
# and ringgated of another one, and this one's. Each is the client of the other's daemon, and each
# node asks the other one. All of it works, or says why not.

# shellcheck disable=SC2317 # functions that wait_for calls
# shellcheck source=tests/cli/lib/tap.sh
. "$(dirname "$0")/../cli/lib/tap.sh"

other=${RGATE_OTHER_TOOLS:-}
[ -n "$other" ] || skip_all "RGATE_OTHER_TOOLS names no other build"
if [ ! -x "$other/ringgate" ] || [ ! -x "$other/ringgated" ]; then
	echo "Bail out! $other: no ringgate"
	exit 1
fi
this=$build/tools
declare -A pid
trap 'kill -9 "${pid[@]}" 2>/dev/null; rm -rf "$tmp"' EXIT
chmod 755 "$tmp"
cluster_patient "$tmp/cluster" gw one
printf '%s\n' 'allow any queue' 'allow any lock barrier' 'node any any' "node any user:$(id -u)" \
	>"$tmp/policy"
chmod 600 "$tmp/policy"

# start TOOLS NODE
start()
{
	: >"$tmp/log$2"
	RGATE_SPAWNER=$1/ringgate-spawner "$1/ringgated" -c /dev/null -C "$tmp/cluster" -n "$2" -s "$tmp/s$2" \
		--pool 16M --requests "socket $tmp/r$2" --requests "policy $tmp/policy" \
		>>"$tmp/log$2" 2>&1 &
	pid[$2]=$!
}
stop()
{
	local n

	for n in 0 1; do
		kill "${pid[$n]}"
		wait "${pid[$n]}"
		result $? "$1: daemon $n ends"
		unset "pid[$n]"
	done
}
ready() { grep -q "is ready" "$tmp/log$1"; }
# at TOOLS NODE COMMAND HOME ARGUMENT...
at() { cmd=(env RGATE_REQUESTS="$tmp/r$2" timeout 60 "$1/ringgate" "$3" --node "$4" "${@:5}"); }
ask() { at "$@"; run "${cmd[@]}"; }
# meets TOOLS NODE TOOLS NODE HOME NAME: two who are not there without each other
meets()
{
	at "$1" "$2" barrier "$5" "$6" 2
	"${cmd[@]}" >"$tmp/first" 2>&1 &
	pid[first]=$!
	at "$3" "$4" barrier "$5" "$6" 2
	run "${cmd[@]}"
	wait "${pid[first]}"
	met=$?/$rc
	unset "pid[first]"
}

# queue_of WHAT TOOLS NODE HOME: whoever asks can do all that there is
queue_of()
{
	ask "$2" "$3" queue "$4" create q
	is "$1: a queue" "$rc/$err" "0/"
	at "$2" "$3" queue "$4" put q
	seq 50 | "${cmd[@]}" >"$tmp/put" 2>&1
	is "$1: put" "$?/$(<"$tmp/put")" "0/"
	: >"$tmp/ran"
	ask "$2" "$3" queue "$4" run -P 2 q -- sh -c "echo {} >>$tmp/ran"
	is "$1: run" "$rc/$err" "0/"
	is "$1: each was run once" "$(sort -n "$tmp/ran" | tr '\n' ' ')" "$(seq 50 | tr '\n' ' ')"
	ask "$2" "$3" queue "$4" drain q
	is "$1: drain" "$rc/$err" "0/"
	ask "$2" "$3" queue "$4" stats --json q
	is "$1: stats" "$(json '(j["completed"], j["ready"])' <<<"$out")" "(50, 0)"
	ask "$2" "$3" queue "$4" remove q
	is "$1: remove" "$rc/$err" "0/"
}

# locks_of WHAT TOOLS NODE TOOLS NODE HOME: the first has it, and the second waits
locks_of()
{
	ask "$2" "$3" lock "$6" l -- sh -c 'echo held; exit 7'
	is "$1: a lock" "$rc/$out" "7/held"
	at "$2" "$3" lock "$6" l -- sh -c "echo >$tmp/has; while [ ! -e $tmp/go ]; do sleep 0.1; done"
	rm -f "$tmp/has" "$tmp/go"
	"${cmd[@]}" >"$tmp/holder" 2>&1 &
	pid[holder]=$!
	ok "$1: it is held" wait_for 20 test -e "$tmp/has"
	ask "$4" "$5" lock "$6" -w 0.2 l -- true
	is "$1: ... so the other one has it not" "$rc" 124
	: >"$tmp/go"
	ask "$4" "$5" lock "$6" -w 20 l -- true
	is "$1: ... but then" "$rc/$err" "0/"
	wait "${pid[holder]}"
	is "$1: ... which it was told" "$?/$(<"$tmp/holder")" "0/"
	unset "pid[holder]"
	meets "$2" "$3" "$4" "$5" "$6" b
	is "$1: a barrier" "$met" "0/0"
}

# kept_of WHAT TOOLS NODE HOME: tasks of another node, or that its home is too old for that
kept_of()
{
	at "$2" "$3" queue "$4" put k
	seq 3 | "${cmd[@]}" >"$tmp/put" 2>&1
	rc=$?
	[ $rc = 0 ] || grep -q "its home cannot tell when a task has ended: update ringgated there" "$tmp/put"
	result $? "$1: put, or why not"
	echo "# put: $rc $(<"$tmp/put")"
}

# Of one machine: daemons of one build, clients of the other, and of both
for way in "$this $other" "$other $this"; do
	read -r daemons clients <<<"$way"
	what="this build's daemons, the other's clients"
	[ "$daemons" = "$this" ] || what="the other build's daemons, this one's clients"
	start "$daemons" 0
	start "$daemons" 1
	for n in 0 1; do
		ok "$what: daemon $n" wait_for 20 ready $n
	done
	queue_of "$what" "$clients" 0 0
	queue_of "$what, of another node" "$clients" 1 0
	locks_of "$what" "$clients" 0 "$daemons" 0 0
	locks_of "$what, of another node" "$daemons" 1 "$clients" 1 0
	stop "$what"
done

# Two nodes: each is the other's home
start "$this" 0
start "$other" 1
for n in 0 1; do
	ok "nodes of two builds: daemon $n" wait_for 20 ready $n
done
for home in 0 1; do
	what="this build's home, a node of the other"
	[ $home = 0 ] || what="the other build's home, a node of this one"
	tools=$this
	[ $home = 1 ] || tools=$other
	kept_of "$what" "$tools" $((1 - home)) $home
	# tasks that were submitted at the home itself
	at "$tools" $home queue $home put w
	seq 20 | "${cmd[@]}" >"$tmp/put" 2>&1
	: >"$tmp/ran"
	ask "$tools" $((1 - home)) queue $home run w -- sh -c "echo {} >>$tmp/ran"
	is "$what: a worker" "$rc/$err/$(wc -l <"$tmp/ran")" "0//20"
	locks_of "$what" "$tools" $((1 - home)) "$tools" $home $home
done
stop "nodes of two builds"
is "nothing was complained of" "$(grep -hE 'Sanitizer|runtime error:|is in use' "$tmp"/log[01])" ""
finish
