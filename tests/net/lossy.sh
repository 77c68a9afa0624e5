#!/bin/bash
# SPDX-License-Identifier: MIT OR GPL-2.0
# timeout: 300
# A network behind the gateway that loses, delays and reorders packets: bytes of programs as they are.

# shellcheck disable=SC2317 # functions that wait_for calls
if [ "${1:-}" != inside ]; then
	if unshare -n true 2>/dev/null; then
		exec unshare -n "$0" inside
	fi
	echo "1..0 # SKIP no network namespaces for this user"
	exit 0
fi
# shellcheck source=tests/cli/lib/tap.sh
. "$(dirname "$0")/../cli/lib/tap.sh"
# shellcheck source=tests/net/lib/programs.sh
. "$(dirname "$0")/lib/programs.sh"
# shellcheck source=tests/net/lib/streams.sh
. "$(dirname "$0")/lib/streams.sh"

ringgated=$build/tools/ringgated
command -v python3 >/dev/null || skip_all "python3 is not installed"
ip link set lo up
# What the daemons say to each other does not go this way.
tc qdisc add dev lo root netem loss 5% delay 2ms 1ms reorder 25% 50% 2>/dev/null ||
	skip_all "no netem in this kernel"
build_streams
mkdir "$tmp/run"
export XDG_RUNTIME_DIR=$tmp/run
gateway_with_sockets 'allow any connect tcp 127.0.0.0/8 any' 'allow any listen tcp any'
node_without_network
node=(timeout $((120 * slow)) "$ringgate" run --socket "$tmp/r1" --loopback served)
lost() { tc -s qdisc show dev lo | sed -nE 's/.*dropped ([0-9]+),.*/\1/p'; }

serves peer
for program in "$streams" "$static"; do
	how=${program##*/}
	run "${node[@]}" "$program" ask "$at" 16 300000 1
	like "$how: streams are whole, there and back" "$rc $out" "^0 .*whole 16 reset 0 cut 0 failed 0 0 refused 0 0"
done
end "$server"
for program in "$streams" "$static"; do
	how=${program##*/}
	begin inside "${node[@]}" "$program" serve
	server=$last
	at=$(port inside)
	run "$streams" ask "$at" 8 300000 1
	like "$how: a server's, too" "$rc $out" "^0 .*whole 8 reset 0 cut 0 failed 0 0 refused 0 0"
	end "$server"
done
ok "packets were lost meanwhile ($(lost))" test "$(lost)" -gt 50
finish
