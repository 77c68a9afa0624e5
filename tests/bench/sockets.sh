#!/bin/bash
# SPDX-License-Identifier: MIT OR GPL-2.0
#
# A program's connections to one behind a veth pair, by ringgated and by others, in turns; prints
# lines of JSON. Arguments: bench_sockets, rounds, rounds with idle connections, of these how many.
#
# Three networks: this one has the device, and is ringgated's, haproxy's, nginx's and pasta's; who is
# connected to is in one of its own; the program is in one that has nothing, but for direct sockets,
# haproxy and nginx, whom it reaches over this one's loopback.

set -euo pipefail

bench=$1 rounds=$2 idle_rounds=$3 idle=$4
if [ "${5:-}" != inside ]; then
	[ "$(id -u)" = 0 ] || { echo "sockets.sh: network namespaces need root" >&2; exit 1; }
	exec unshare -n "$0" "$@" inside
fi
tools=${bench%/tests/*}/tools
far=10.99.0.2:7000
tmp=$(mktemp -d)
chmod 755 "$tmp"
# Sockets of 'ringgate run' have files there: in memory, as it is in a session that logged in.
XDG_RUNTIME_DIR=$(mktemp -d -p /dev/shm 2>/dev/null || mktemp -d -p "$tmp")
export XDG_RUNTIME_DIR
pids=()
inside=
cleanup()
{
	[ ${#pids[@]} = 0 ] || kill "${pids[@]}" 2>/dev/null || true
	# The first process of a namespace hears nothing else.
	[ -z "$inside" ] || kill -9 "$inside" 2>/dev/null || true
	wait
	rm -rf "$tmp" "$XDG_RUNTIME_DIR"
}
trap cleanup EXIT
die() { echo "sockets.sh: $*" >&2; exit 1; }
say() { echo "sockets.sh: $*" >&2; }

for word in nsenter ip pgrep; do
	command -v $word >/dev/null || die "$word is not installed"
done
[ -x "$tools/ringgated" ] || die "$tools/ringgated is not built: make tools"
ulimit -n 65536 2>/dev/null || ulimit -n "$(ulimit -Hn)"
# A relay has two descriptors of each connection.
most=$((($(ulimit -n) - 600) / 2))
[ "$idle" -le $most ] || { say "at most $most idle connections, for want of descriptors"; idle=$most; }

# until COMMAND...: it succeeds, within ten seconds
until_true()
{
	for _ in $(seq 200); do
		! "$@" >/dev/null 2>&1 || return 0
		sleep 0.05
	done
	cat "$tmp"/*.log >&2
	die "in vain: $*"
}

# begin NAME COMMAND...: in the background, as $last
begin()
{
	local name=$1
	shift
	"$@" >"$tmp/$name.log" 2>&1 &
	last=$!
	pids+=("$last")
}

own_net() { [ "$(readlink "/proc/$1/ns/net")" != "$(readlink /proc/self/ns/net)" ]; }
# A network that has nothing, held by $last
network()
{
	begin network unshare -n sleep 100000
	until_true own_net "$last"
}
children() { cat "/proc/$1/task/$1/children"; }
# pids_of PID: it and what it has started, with commas
pids_of() { echo "$1 $(children "$1")" | tr -s ' ' ',' | sed 's/,$//'; }

network
load=(nsenter -t "$last" -n)
ip link set lo up
ip link add v0 type veth peer name v1
ip link set v1 netns "$last"
ip addr add 10.99.0.1/24 dev v0
ip link set v0 up
# pasta takes its address and gateway from a default route.
ip route add default via 10.99.0.254
"${load[@]}" ip link set lo up
"${load[@]}" ip addr add 10.99.0.2/24 dev v1
"${load[@]}" ip link set v1 up
# What one turn leaves behind is not to be in the way of the next one.
for at in env "${load[*]}"; do
	$at sysctl -qw net.ipv4.tcp_max_tw_buckets=0 net.ipv4.ip_local_port_range='2048 65000' ||
		say "this kernel does not let one forget connections at once"
done
begin serve "${load[@]}" "$bench" serve $far
# What the kernel does of them later counts as well.
common=$last$(pgrep -x 'ksoftirqd/[0-9]+' | sed 's/^/,/' | tr -d '\n')
answers() { (exec 3<>"/dev/tcp/${1%:*}/${1#*:}") 2>/dev/null; }
until_true answers $far

# ---- The ways: how a program is started, where it connects to, whose CPU and memory counts ----

ways=(direct)
declare -A kind=([direct]=plain) at=([direct]=$far) with=([direct]=$common) front=([direct]='')

# way NAME KIND ADDRESS PIDS COMMAND...: one more; the words of the command have no blanks
way()
{
	local name=$1
	ways+=("$name")
	kind[$name]=$2 at[$name]=$3 with[$name]=$common,$4
	shift 4
	front[$name]=$*
}

haproxy_with()
{
	local name=$1 port=$2
	shift 2
	{
		printf 'global\n\tmaxconn %s\n\tmaxpipes 64\ndefaults\n' $((most + 100))
		printf '\tmode tcp\n\ttimeout connect 10s\n'
		printf '\ttimeout client 1h\n\ttimeout server 1h\n'
		[ $# = 0 ] || printf '\t%s\n' "$@"
		printf 'listen all\n\tbind 127.0.0.1:%s backlog 4096\n\tserver far %s\n' "$port" $far
	} >"$tmp/$name.conf"
	begin "$name" haproxy -db -f "$tmp/$name.conf"
	until_true answers "127.0.0.1:$port"
	way "$name" plain "127.0.0.1:$port" "$(pids_of "$last")"
}

if command -v haproxy >/dev/null; then
	haproxy_with haproxy 7001
	haproxy_with haproxy-splice 7002 'option splice-auto' 'option splice-request' 'option splice-response'
else
	say "without haproxy"
fi

nginx=$(command -v nginx || command -v /usr/sbin/nginx || true)
module=/usr/lib/nginx/modules/ngx_stream_module.so
if [ -n "$nginx" ]; then
	{
		[ ! -f $module ] || echo "load_module $module;"
		printf 'daemon off;\nworker_processes auto;\npid %s/nginx.pid;\nerror_log stderr;\n' "$tmp"
		printf 'events { worker_connections 30000; }\n'
		printf 'stream { server { listen 127.0.0.1:7003 backlog=4096; proxy_pass %s;' $far
		printf ' proxy_timeout 1h; proxy_socket_keepalive off; tcp_nodelay on; } }\n'
	} >"$tmp/nginx.conf"
	begin nginx "$nginx" -p "$tmp" -c "$tmp/nginx.conf"
	until_true answers 127.0.0.1:7003
	way nginx plain 127.0.0.1:7003 "$(pids_of "$last")"
else
	say "without nginx"
fi

if command -v pasta >/dev/null; then
	begin pasta pasta -f -4 --config-net -t none -u none -T none -U none --runas 0 -- sleep 100000
	until_true pgrep -P "$last" -x sleep
	inside=$(pgrep -P "$last" -x sleep)
	until_true timeout 1 nsenter -t "$inside" -n bash -c "exec 3<>/dev/tcp/${far%:*}/${far#*:}"
	way pasta plain $far "$last" nsenter -t "$inside" -n
else
	say "without pasta"
fi

# ---- ringgate's: a daemon of this machine, and a node that has its sockets at that one ----

printf 'provider local\nnode 0 gateway %s/n0 gw\nnode 1 compute %s/n1 one\n' "$tmp" "$tmp" >"$tmp/cluster"
for n in 0 1; do
	"$tools/ringgate" cluster keygen -C "$tmp/cluster" -n $n >"$tmp/public$n"
done
cat "$tmp"/public? >>"$tmp/cluster"
printf '%s\n' 'allow any socket' 'node 1 user:0' \
	'limit any sessions 4096 handles 65536 requests 65536 memory 2G' >"$tmp/policy"
printf 'allow any connect tcp 10.99.0.0/24 any\nlimit any sockets 30000\nsockets 30000\n' >"$tmp/sockets"
chmod 600 "$tmp/policy" "$tmp/sockets"
network
node=(nsenter -t "$last" -n)
begin gateway "$tools/ringgated" -C "$tmp/cluster" -n gw -s "$tmp/s0" --requests "socket $tmp/r0" \
	--requests "policy $tmp/policy" --requests "sockets $tmp/sockets"
gateway=$last
begin node "${node[@]}" "$tools/ringgated" -C "$tmp/cluster" -n one -s "$tmp/s1" \
	--requests "socket $tmp/r1" --requests "policy $tmp/policy" --requests "sockets-at gateway"
daemons=$gateway,$last
until_true "${node[@]}" "$bench" -s "$tmp/r0" ringgate $far trip 64 10
until_true "${node[@]}" "$bench" -s "$tmp/r1" ringgate $far trip 64 10
way library ringgate $far "$gateway" "${node[@]}"
way shim plain $far "$gateway" "${node[@]}" "$tools/ringgate" run -S "$tmp/r0" --
way library-node ringgate $far "$daemons" "${node[@]}"
way shim-node plain $far "$daemons" "${node[@]}" "$tools/ringgate" run -S "$tmp/r1" --

# measure WAY WHAT NUMBER NUMBER
measure()
{
	local name=$1 socket=$tmp/r0 command piece=$((64 << 10))
	shift
	[ "${name%-node}" = "$name" ] || socket=$tmp/r1
	# More than a gateway takes at once, and less than what caches have; to others it is all the same.
	[ "$name" != library ] || piece=$((128 << 10))
	read -ra command <<<"${front[$name]}"
	timeout 120 "${command[@]}" "$bench" -b $piece -n "$name" -s "$socket" -p "${with[$name]}" "${kind[$name]}" \
		"${at[$name]}" "$@" 2>"$tmp/last.log" || {
		cat "$tmp/last.log" >&2
		case $name in
		# The tables do without what another one cannot do.
		haproxy*|nginx|pasta) say "$name: $* failed" ;;
		*) cat "$tmp/gateway.log" "$tmp/node.log" >&2; die "$name: $* failed" ;;
		esac
	}
}

# Bytes that a stream has; messages take longer
bytes()
{
	case $1 in
	*-node) echo $((256 << 20)) ;;
	pasta) echo $((32 << 20)) ;;
	*) echo $((1 << 30)) ;;
	esac
}

say "all streams, by length and hash: ${ways[*]}"
for name in "${ways[@]}"; do
	measure "$name" check 8 $((4 << 20)) >/dev/null
done
for ((i = 1; i <= rounds; i++)); do
	say "round $i of $rounds"
	for name in "${ways[@]}"; do
		n=$(bytes "$name")
		measure "$name" push 1 "$n"
		measure "$name" push 8 $((n / 8))
		measure "$name" pull 1 "$n"
		measure "$name" trip 64 4000
		measure "$name" meet 8 2000
	done
done
for ((i = 1; i <= idle_rounds; i++)); do
	for name in "${ways[@]}"; do
		case $name in
		*-node|nginx|haproxy-splice|pasta) continue ;;
		esac
		say "$idle idle connections, round $i of $idle_rounds: $name"
		measure "$name" idle "$idle" 4000
	done
done
