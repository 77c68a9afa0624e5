# SPDX-License-Identifier: MIT OR GPL-2.0
# shellcheck shell=bash
#
# Programs in the background, which end with the test, and what `ringgate run` says of those that
# it ran. To be sourced after tap.sh.

pids=()
# shellcheck disable=SC2086,SC2154 # those that there are; tap.sh's
trap '{ [ ${#pids[@]} = 0 ] || { kill -9 "${pids[@]}"; wait "${pids[@]}"; }; } 2>/dev/null; rm -rf "$tmp"' EXIT
# shellcheck disable=SC2034 # the test's
py=$(python3 -c 'import sys; print(sys.executable)' 2>/dev/null)

# program FILE: $tmp/program is that file of this folder's
program()
{
	local from

	from=$(dirname "${BASH_SOURCE[0]}")
	cp "$from/$1" "$tmp/program"
	cp "$from"/program_says.py "$from"/run_peer.py "$from"/run_serve.py "$tmp"
}

# begin NAME COMMAND...: in the background, as $last; its output is in $tmp/NAME
begin()
{
	local name=$1
	shift
	# Now, and not when that process comes to it: nobody is to read what another one said.
	: >"$tmp/$name"
	"$@" >>"$tmp/$name" 2>&1 &
	pids+=("$!")
	# shellcheck disable=SC2034 # the test's
	last=$!
}

said() { grep -q '^at [0-9]' "$tmp/$1"; }

# port NAME: that it says it is at
port()
{
	wait_for 20 said "$1"
	sed -n 's/^at //p' "$tmp/$1" | head -1
}

# end PID [SIGNAL]
end()
{
	kill "${2:--TERM}" "$1" 2>/dev/null
	wait "$1" 2>/dev/null
}

# moved WHAT: the number in front of that word of the last line of -v
# shellcheck disable=SC2154 # run's
moved() { sed -nE "s/.* ([0-9]+)( bytes)? $1.*/\1/p" <<<"$err" | tail -1; }

# gateway_with_sockets LINE...: a daemon, $last, of the gateway of two nodes, with a policy of these
# lines for the sockets of its users and of the other node. Programs ask at $tmp/r
gateway_with_sockets()
{
	cluster_of_two "$tmp/cluster"
	printf 'allow any socket\nnode 1 user:%s\n' "$(id -u)" >"$tmp/requests"
	printf '%s\n' "$@" >"$tmp/policy"
	chmod 600 "$tmp/requests" "$tmp/policy"
	begin daemon "$ringgated" -C "$tmp/cluster" -n gw -s "$tmp/s" --pool 16M --requests "socket $tmp/r" \
		--requests "policy $tmp/requests" --requests "sockets $tmp/policy"
	ok "a daemon that has sockets" wait_for 20 count received
}

# count WHAT: of that daemon's sockets
count()
{
	"$ringgate" cluster status --json -s "$tmp/s" 2>/dev/null | json "j[\"requests\"][\"sockets\"][\"$1\"]"
}

met_gateway()
{
	"$ringgate" cluster status -s "$tmp/s1" --json 2>/dev/null |
		json '[p["state"] for p in j["peers"]]' | grep -q up
}

# node_without_network: the other node's daemon, $last, which knows nothing of the network: its
# sockets are at the gateway. Programs ask at $tmp/r1
node_without_network()
{
	printf 'allow any socket\n' >"$tmp/requests1"
	chmod 600 "$tmp/requests1"
	begin node "$ringgated" -C "$tmp/cluster" -n one -s "$tmp/s1" --pool 16M \
		--requests "socket $tmp/r1" --requests "policy $tmp/requests1" \
		--requests "sockets-at gateway"
	ok "a node that has its sockets at this gateway" wait_for 20 met_gateway
}
