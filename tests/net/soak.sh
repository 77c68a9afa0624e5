#!/bin/bash
# SPDX-License-Identifier: MIT OR GPL-2.0
# Programs as they are, of all kinds, that connect, listen, end and are killed by chance, at a gateway, at a
# node, and without a daemon: bytes by hash, and in the end nothing is left of them.
#
#   RGATE_SOAK_SECONDS  how long (20)
#   RGATE_SOAK_SEED     what there is; it is printed, so that it can be again
#   RGATE_SOAK_WORKERS  programs, and their clients, at once (4)

# shellcheck disable=SC2317 # functions that wait_for calls
# shellcheck source=tests/cli/lib/tap.sh
. "$(dirname "$0")/../cli/lib/tap.sh"
# shellcheck source=tests/net/lib/programs.sh
. "$(dirname "$0")/lib/programs.sh"
# shellcheck source=tests/net/lib/streams.sh
. "$(dirname "$0")/lib/streams.sh"

ringgated=$build/tools/ringgated
seconds=${RGATE_SOAK_SECONDS:-20}
seed=${RGATE_SOAK_SEED:-$RANDOM}
echo "# timeout: $((seconds + 300 * slow))"
echo "# seed $seed; again: RGATE_SOAK_SEED=$seed RGATE_SOAK_SECONDS=$seconds $0"
for command in python3 curl; do
	command -v $command >/dev/null || skip_all "$command is not installed"
done
build_streams
# A build with sanitizers lies below the one that has the examples.
http_get=$build/examples/http_get
[ -x "$http_get" ] || http_get=$(dirname "$build")/examples/http_get
[ -x "$http_get" ] || skip_all "Documentation/examples are not built"
# What has been freed is kept for a while there.
grep -q __asan_init "$ringgated" && export SANITIZED=1
mkdir "$tmp/www" "$tmp/run"
for size in 100 20000 300000 4000000; do
	head -c $size /dev/urandom >"$tmp/www/$size"
done
export XDG_RUNTIME_DIR=$tmp/run

gateway_with_sockets 'allow any connect tcp 127.0.0.0/8 any' 'allow any listen tcp any'
gateway=$last
node_without_network
node=$last
begin soak env RINGGATE="$ringgate" STREAMS="$streams" STATIC="$static" HTTP_GET="$http_get" WWW="$tmp/www" \
	REQUESTS="$tmp/r" REQUESTS1="$tmp/r1" GATEWAY_PID="$gateway" NODE_PID="$node" \
	"$py" -B "$(dirname "$0")/lib/soak.py" "$seconds" "$seed" "${RGATE_SOAK_WORKERS:-4}"
wait "$last"
result $? "$seconds s of programs that come and go"
sed '/^#/!s/^/# /' "$tmp/soak"

# left NODE'S-SOCKET: what a daemon says that it has for somebody
left()
{
	"$ringgate" cluster status --json -s "$1" | json '[j["requests"][k] for k in ("sessions", "under_way",
		"handles", "memory")] + [j["requests"]["sockets"][k] for k in ("open", "guests")]'
}
nothing() { [ "$(left "$1")" = "[0, 0, 0, 0, 0, 0]" ]; }
ok "the gateway has nothing of them" wait_for 30 nothing "$tmp/s"
ok "... nor has the node" wait_for 30 nothing "$tmp/s1"
is "... and both say so" "$(left "$tmp/s") $(left "$tmp/s1")" "[0, 0, 0, 0, 0, 0] [0, 0, 0, 0, 0, 0]"
for pid in "$node" "$gateway"; do
	kill "$pid"
	wait "$pid"
	is "it ends" "$?" 0
done
is "nothing else was said" "$(complaints "$tmp/daemon" "$tmp/node" "$tmp/soak")" ""
finish
