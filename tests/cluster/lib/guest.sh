# SPDX-License-Identifier: MIT OR GPL-2.0
# shellcheck shell=bash
#
# What a node's VM can do; sourced in it for each command that the test sends.

node=${CLUSTER_NODE:?}
bin=$RGATE_BUILD/tests/cluster
ringgate=$RGATE_BUILD/tools/ringgate
export RGATE_SPAWNER=$RGATE_BUILD/tools/ringgate-spawner
dir=/run/node			# of this node: socket, key, logs
export RGATE_SOCKET=$dir/socket

# The wire between the VMs, with an RDMA device on it
wire_up()
{
	modprobe -a rdma_rxe rdma_ucm sch_netem sch_ingress cls_matchall act_gact
	ip link set eth0 address "52:54:00:52:47:0$node"
	case $CLUSTER_ADDRESS in
	*:*) ip addr add "$CLUSTER_ADDRESS/64" dev eth0 nodad ;;
	*)
		sysctl -qw net.ipv6.conf.all.disable_ipv6=1
		ip addr add "$CLUSTER_ADDRESS/24" dev eth0
		;;
	esac
	ip link set eth0 up
	rdma link add rxe0 type rxe netdev eth0
}

# A cable that is pulled out: nothing gets through, and nobody is told. (Soft-RoCE of 6.1
# does not survive that its device is taken down: sends that fail there end its CM's queue
# pair for good.)
wire_cut()
{
	tc qdisc add dev eth0 root netem loss 100% &&
		tc qdisc add dev eth0 ingress &&
		tc filter add dev eth0 ingress matchall action drop
}

wire_mend()
{
	tc qdisc del dev eth0 ingress
	tc qdisc del dev eth0 root
}

# wire_cut_for SECONDS: tells how long it was
wire_cut_for()
{
	local begun=${EPOCHREALTIME/[.,]/}

	wire_cut && sleep "$1" && wire_mend || return
	echo "it was cut for $(((${EPOCHREALTIME/[.,]/} - begun) / 1000)) ms"
}

# Behind the gateway: a namespace where the traffic comes from
internet_up()
{
	modprobe veth
	insmod "$RGATE_KO"
	ip netns add internet
	ip -n internet link add i0 type veth peer name gw0 netns $$
	ip -n internet addr add 10.77.0.1/24 dev i0
	ip addr add 10.77.0.2/24 dev gw0
	ip -n internet link set i0 up
	ip link set gw0 up
}

# What a process says, with the time, to the node's log
stamped()
{
	local line

	while IFS= read -r line; do
		printf '%(%T)T %s\n' -1 "$line"
	done >>"$dir/log"
}

# other_key [FILE [NODE]]: a key pair for this node, or for NODE, that the others know
# nothing of: in the cluster file, or in FILE, made of it
other_key()
{
	local file=${1:-$dir/cluster} id=${2:-$node} line

	line=$("$ringgate" cluster keygen --force -n "$id" "$dir/other$id.key") || return
	sed "s|^public-key $id .*|$line|; \$ a private-key $dir/other%i.key" \
		"$LAB_SHARE/cluster" >"$file.new" && mv "$file.new" "$file"
}
# own_key: the one that they know
own_key() { cp "$LAB_SHARE/cluster" "$dir/"; }

# daemon [ARGUMENT...]: ringgated of this node, in the background, once it listens; with
# $by_address it finds out itself which node it is
daemon()
{
	local args=() i

	# Room for what comes until a node that is gone is taken for dead: what waits for it
	# stays in the ring, and is in the way of others when that is full.
	if [ "$node" = 0 ]; then
		args=(-S "$dir/steer" --source
			"module gw0 slots 16384 slot_size 2048 action steal filter udp dst port 9000")
	fi
	[ -n "${by_address:-}" ] || args+=(-n "$node")
	[ ! -e "$dir/spawn" ] || args+=(--spawn "policy $dir/spawn")
	setsid "$RGATE_BUILD/tools/ringgated" -v -C "$dir/cluster" -s "$dir/socket" \
		--pool 16M "${args[@]}" "$@" </dev/null > >(stamped) 2>&1 &
	echo $! >"$dir/daemon.pid"
	for ((i = 0; i < 300 * RGATE_SLOW; i++)); do
		! status >/dev/null 2>&1 || return 0
		running daemon || break
		sleep 0.1
	done
	echo "the daemon does not start"
	return 1
}

# receive NAME [ARGUMENT...]: cluster_recv in the background, reporting to the machine
# outside
receive()
{
	local name=$1
	shift
	rm -f "$LAB_SHARE/got/$name"
	setsid "$bin/cluster_recv" -m "$name" "$@" "$LAB_SHARE/got/$name" \
		</dev/null > >(stamped) 2>&1 &
	echo $! >"$dir/$name.pid"
}

# asking WHAT ARGUMENT...: ringgate spawn, ps or kill, as node $as of the cluster's file
# $cluster
asking() { exec "$ringgate" "$1" -C "${cluster:-$dir/cluster}" -A "${as:-first}" "${@:2}"; }
spawn() { (asking spawn "$@"); }
listed() { (asking ps "$@"); }
killed() { (asking kill "$@"); }

# begin NAME ARGUMENT...: spawn as node NAME, in the background; $dir/NAME.out, .err and .rc
# have what came of it
begin()
{
	local as=$1
	shift
	rm -f "$dir/$as".{out,err,rc}
	{
		asking spawn "$@" </dev/null >"$dir/$as.out" 2>"$dir/$as.err" &
		echo $! >"$dir/$as.pid"
		wait $!
		echo $? >"$dir/$as.rc"
	} >/dev/null 2>&1 &
}

# transmit NAME ARGUMENT...: cluster_send in the internet, in the background; how many it
# sent goes to $dir/NAME
transmit()
{
	local name=$1
	shift
	setsid ip netns exec internet "$bin/cluster_send" "$@" 10.77.0.2 9000 \
		</dev/null >"$dir/$name" 2>>"$dir/log" &
	echo $! >"$dir/$name.pid"
}

send() { ip netns exec internet "$bin/cluster_send" "$@" 10.77.0.2 9000; }

# sent NAME: how many, once it was stopped
sent() { cat "$dir/$1"; }

running() { kill -0 "$(cat "$dir/$1.pid")" 2>/dev/null; }

# stop NAME [SIGNAL]: and wait for its end, 20 s at most (RGATE_SLOW)
stop()
{
	local i

	kill "${2:--TERM}" "$(cat "$dir/$1.pid")" 2>/dev/null
	for ((i = 0; i < 200 * RGATE_SLOW; i++)); do
		running "$1" || return 0
		sleep 0.1
	done
	echo "$1 does not end"
	return 1
}

status() { "$ringgate" cluster status --json; }

# What the daemon holds, in a line: descriptors, KiB of memory of its own (rings, pools and
# queues are mapped, and counted as they are touched), what the device counts
held()
{
	local pid

	pid=$(cat "$dir/daemon.pid")
	echo "boot $(cat /proc/sys/kernel/random/boot_id) pid $pid" \
		"fds $(find "/proc/$pid/fd" -mindepth 1 | wc -l)" \
		"anon $(awk '/^RssAnon/ { print $2 }' "/proc/$pid/status")" \
		"$(rdma resource show | sed 's/^[^:]*: [^:]*: //')"
}

# The daemon's memory, and the keys of what it has registered
regions()
{
	rdma resource show mr -d | sed -n 's/.* mrn .* rkey/mr rkey/p'
	sed 's/^/map /' "/proc/$(cat "$dir/daemon.pid")/maps"
}

# hostile VICTIM: writes to what targets.py chose there
hostile()
{
	"$bin/cluster_hostile" "$dir/cluster" "$node" "$1" <"$LAB_SHARE/targets.$1"
}

# intact NODE: nothing of what cluster_hostile writes is in this node's daemon
intact()
{
	python3 "${BASH_SOURCE[0]%/*}/targets.py" intact "$(cat "$dir/daemon.pid")" \
		<"$LAB_SHARE/targets"
}
