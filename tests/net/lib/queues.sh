# SPDX-License-Identifier: MIT OR GPL-2.0
# shellcheck shell=bash disable=SC2034 # set for those who source it
#
# Three nodes of one machine, whose daemons serve queues; the queues are those of node 1. To be
# sourced after tests/cli/lib/tap.sh; start_all begins.

ringgated=$build/tools/ringgated
declare -A pid
trap 'kill -9 "${pid[@]}" 2>/dev/null; rm -rf "$tmp"' EXIT

chmod 755 "$tmp"
cluster_patient "$tmp/cluster" gw one two

# policy NODE RULE...
policy()
{
	printf '%s\n' "${@:2}" >"$tmp/policy$1"
	chmod 600 "$tmp/policy$1"
}

# start NODE
start()
{
	: >"$tmp/log$1"
	"$ringgated" -C "$tmp/cluster" -n "$1" -s "$tmp/s$1" --pool 16M \
		--requests "socket $tmp/r$1" --requests "policy $tmp/policy$1" >>"$tmp/log$1" 2>&1 &
	pid[$1]=$!
}

ready() { grep -q "is ready" "$tmp/log$1"; }

start_all()
{
	local n

	for n in 0 1 2; do
		policy $n 'allow any queue' 'node any any' "node any user:$(id -u)"
		start $n
	done
	for n in 0 1 2; do
		ok "daemon $n" wait_for 20 ready $n
	done
}

# Each as it is told to
end_all()
{
	local n

	for n in 0 1 2; do
		kill "${pid[$n]}"
		wait "${pid[$n]}"
		result $? "daemon $n ends"
		unset "pid[$n]"
	done
}

kill_node()
{
	kill -9 "${pid[$1]}"
	wait "${pid[$1]}" 2>/dev/null
	unset "pid[$1]"
}

# at NODE ACTION...: asked there
at() { cmd=(env RGATE_REQUESTS="$tmp/r$1" timeout 120 "$ringgate" queue --node 1 "${@:2}"); }
queue() { at "$@"; run "${cmd[@]}"; }
# put NODE: standard input
put() { at "$1" put "${@:2}"; "${cmd[@]}" 2>>"$tmp/puts"; }
stat_of() { at "$1" stats --json "$2"; "${cmd[@]}" 2>/dev/null | json "$3"; }
stat_is() { [ "$(stat_of "$@" 2>/dev/null)" = "$4" ]; }
said() { grep -q . "$tmp/$1"; }

# ended KEY: its exit status is in status
ended()
{
	wait "${pid[$1]}" 2>/dev/null
	status=$?
	unset "pid[$1]"
}

# work NODE KEY QUEUE: a worker whose command does not end before there is the file KEY.go
work()
{
	at "$1" run "$3" -- sh -c "echo {} >$tmp/$2; while [ ! -e $tmp/$2.go ]; do sleep 0.1; done"
	"${cmd[@]}" 2>"$tmp/$2.err" &
	pid[$2]=$!
}
