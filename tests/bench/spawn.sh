#!/bin/bash
# SPDX-License-Identifier: MIT OR GPL-2.0
#
# Processes on another node beside posix_spawn(3) and ssh with a control master, taking
# turns with what carries them: a message there and back, writes and reads of the size that
# streams have. Arguments: bench_spawn, with bench_fabric and bench_asked beside it, rounds,
# processes a turn, MiB of output and of input. JSON lines, the machine first.
# RGATE_BENCH_ADDRS: as bench_spawn; without ssh and daemons then. "asked" is a program without a
# node, of another user where that can be, that asks the daemon of its machine.

set -euo pipefail

bench=$1 rounds=$2 times=$3 mib=$4
# that of the build which the program is of
export RGATE_SPAWNER=${RGATE_SPAWNER:-${bench%/tests/*}/tools/ringgate-spawner}
tmp=$(mktemp -d "${TMPDIR:-/tmp}/ringgate-bench.XXXXXX")
sshd=
ssh=()
daemons=()
finish()
{
	[ ${#daemons[@]} = 0 ] || kill "${daemons[@]}" 2>/dev/null || true
	[ ${#ssh[@]} = 0 ] || "${ssh[@]}" -O exit 2>/dev/null || true
	[ -z "$sshd" ] || kill "$sshd" 2>/dev/null || true
	rm -rf "$tmp"
}
trap finish EXIT

# An sshd of its own on the loopback device, with keys that end with it; and an empty home:
# what a user's shell does when it starts is not measured.
start_sshd()
{
	local port

	[ -z "${RGATE_BENCH_ADDRS:-}" ] && command -v ssh >/dev/null && [ -x /usr/sbin/sshd ] && [ "$(id -u)" = 0 ] || return 1
	port=$(python3 -c 'import socket
s = socket.socket()
s.bind(("127.0.0.1", 0))
print(s.getsockname()[1])')
	mkdir -p /run/sshd
	ssh-keygen -q -t ed25519 -N '' -f "$tmp/host"
	ssh-keygen -q -t ed25519 -N '' -f "$tmp/user"
	cp "$tmp/user.pub" "$tmp/authorized"
	cat >"$tmp/sshd_config" <<-END
		Port $port
		ListenAddress 127.0.0.1
		HostKey $tmp/host
		AuthorizedKeysFile $tmp/authorized
		StrictModes no
		UsePAM no
		PermitRootLogin prohibit-password
		PasswordAuthentication no
		MaxSessions 64
		PrintMotd no
		PidFile none
		SetEnv HOME=$tmp
	END
	/usr/sbin/sshd -D -f "$tmp/sshd_config" 2>"$tmp/sshd.log" &
	sshd=$!
	echo "[127.0.0.1]:$port $(cut -d' ' -f1,2 "$tmp/host.pub")" >"$tmp/known"
	ssh=(ssh -F none -S "$tmp/ctl" -p "$port" -i "$tmp/user" -o "UserKnownHostsFile=$tmp/known"
		-o BatchMode=yes "$(id -un)@127.0.0.1")
	for _ in $(seq 50); do
		"${ssh[@]}" -o ControlMaster=yes -o ControlPersist=yes true 2>/dev/null && return 0
		sleep 0.1
	done
	cat "$tmp/sshd.log" >&2
	return 1
}

# Two daemons of this machine: node 1 is asked, node 0 runs
asked=()
start_daemons()
{
	local n tools=${bench%/tests/*}/tools

	[ -z "${RGATE_BENCH_ADDRS:-}" ] && [ -x "$tools/ringgated" ] || return 1
	chmod 755 "$tmp"
	printf 'provider local\nnode 0 gateway %s/n0 gw\nnode 1 compute %s/n1 one\n' "$tmp" "$tmp" \
		>"$tmp/cluster"
	for n in 0 1; do
		"$tools/ringgate" cluster keygen -C "$tmp/cluster" -n $n >"$tmp/public$n"
	done
	cat "$tmp"/public? >>"$tmp/cluster"
	printf 'node one user %s\nallow one any\n' "$(id -un)" >"$tmp/policy"
	echo "allow any spawn" >"$tmp/allow"
	chmod 600 "$tmp/policy" "$tmp/allow"
	"$tools/ringgated" -C "$tmp/cluster" -n gw -s "$tmp/s0" --spawn "policy $tmp/policy" \
		2>"$tmp/log0" &
	daemons+=($!)
	"$tools/ringgated" -C "$tmp/cluster" -n one -s "$tmp/s1" --requests "socket $tmp/requests" \
		--requests "policy $tmp/allow" 2>"$tmp/log1" &
	daemons+=($!)
	[ "$(id -u)" != 0 ] || asked=(setpriv --reuid nobody --clear-groups)
	asked+=("${bench%/*}/bench_asked")
	for _ in $(seq 100); do
		! "${asked[@]}" -n 1 "$tmp/requests" 0 /bin/true >/dev/null 2>&1 || return 0
		sleep 0.1
	done
	cat "$tmp"/log? >&2
	asked=()
	return 1
}

# turn WAY WHAT ARGUMENT...: its line, with these in front
turn()
{
	local way=$1 what=$2
	shift 2
	"$bench" "$@" | sed "s/^{/{\"way\": \"$way\", \"what\": \"$what\", /"
}

# fabric WHAT ARGUMENT...: the same of bench_fabric
fabric()
{
	local what=$1
	shift
	"${bench%/*}/bench_fabric" "$@" | sed "s/^{/{\"way\": \"fabric\", \"what\": \"$what\", /"
}

printf '{"machine": {"date": "%s", "cpu": "%s", "cpus": %d, "kernel": "%s"}}\n' "$(date -I)" \
	"$(sed -n 's/^model name[^:]*: *//p' /proc/cpuinfo | head -n 1)" "$(nproc)" "$(uname -r)"
start_daemons || echo "spawn.sh: without daemons" >&2
start_sshd || { echo "spawn.sh: without ssh" >&2; ssh=(); }
for _ in $(seq "$rounds"); do
	for k in 1 16; do
		turn posix_spawn spawn -k $k -n "$times" /bin/true
		turn ringgate spawn -r -k $k -n "$times" /bin/true
		[ ${#asked[@]} = 0 ] || "${asked[@]}" -k $k -n "$times" "$tmp/requests" 0 /bin/true |
			sed 's/^{/{"way": "asked", "what": "spawn", /'
		[ $k != 1 ] || turn polled spawn -r -p -n "$times" /bin/true
		[ ${#ssh[@]} = 0 ] ||
			turn ssh spawn -k $k -n $((times / 10 + 1)) -- "${ssh[@]}" /bin/true
	done
	out=(head -c "$((mib << 20))" /dev/zero)
	turn posix_spawn output -o -n 3 "${out[@]}"
	turn ringgate output -r -o -n 3 -- "${out[@]}"
	[ ${#ssh[@]} = 0 ] || turn ssh output -o -n 1 -- "${ssh[@]}" "${out[@]}"
	in=(sh -c "exec cat >/dev/null")
	turn posix_spawn input -i "$mib" -n 3 -- "${in[@]}"
	turn ringgate input -r -i "$mib" -n 3 -- "${in[@]}"
	[ ${#ssh[@]} = 0 ] || turn ssh input -i "$mib" -n 1 -- "${ssh[@]}" "cat >/dev/null"
	fabric trip send-lat 64 "$times"
	fabric writes write-bw 262144 $((mib * 4))
	fabric reads read-lat 65536 $((mib * 4))
done
