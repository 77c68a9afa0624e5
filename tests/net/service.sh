#!/bin/bash
# SPDX-License-Identifier: MIT OR GPL-2.0
# timeout: 120
# ringgated as a service: what it tells the service manager, its configuration from a file
# alone, privileges that it gives up, the end; and the unit that is installed.

# shellcheck disable=SC2317 # functions that wait_for calls
# shellcheck source=tests/cli/lib/tap.sh
. "$(dirname "$0")/../cli/lib/tap.sh"

ringgated=$build/tools/ringgated
declare -A pid
trap 'kill -9 "${pid[@]}" 2>/dev/null; rm -rf "$tmp"' EXIT
mkdir "$tmp/var"
port=$(free_port)
cat >"$tmp/cluster" <<-END
	provider local
	node 0 gateway $tmp/var/n0 gw
	node 1 compute $tmp/var/n1 one
END
cluster_keys "$tmp/cluster"
cat >"$tmp/conf" <<-END
	# all that it needs
	cluster $tmp/cluster
	node    gw
	socket  $tmp/var/socket
	steer   $tmp/var/steer
	source  udp 127.0.0.1:$port slots 1024
	pool    16M
	spin    20
END

# listen NAME ADDRESS: what the service manager is told there, a line for each
listen()
{
	python3 - "$2" >"$tmp/$1" <<-'END' &
		import os, socket, sys
		s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
		s.bind(sys.argv[1].replace("@", "\0"))
		if sys.argv[1][0] == "/":
		    os.chmod(sys.argv[1], 0o777)  # as systemd's is
		print("listening", flush=True)
		while True:
		    print(s.recv(4096).decode(), flush=True)
	END
	pid[$1]=$!
	disown $!
	wait_for 20 grep -q listening "$tmp/$1"
}
# start NAME ADDRESS ARGUMENT...: the daemon, told to report there
start()
{
	local name=$1 at=$2
	shift 2
	listen "told-$name" "$at"
	NOTIFY_SOCKET=$at "$ringgated" -c "$tmp/conf" "$@" >>"$tmp/log" 2>&1 &
	pid[$name]=$!
}
told() { tail -n +2 "$tmp/told-$1" | tr '\n' ' '; }
has_told() { [ "$(told "$1")" = "$2" ]; }
# proc NAME FIELD: of the daemon's status
proc() { sed -n "s/^$2:[[:space:]]*//p" "/proc/${pid[$1]}/status"; }
steer() { "$ringgate" steer -s "$tmp/var/socket" "$@"; }
stop() { kill "$2" "${pid[$1]}"; wait "${pid[$1]}"; rc=$?; unset "pid[$1]"; }

start plain "$tmp/notify"
ok "READY=1 once it is ready" wait_for 20 has_told plain "READY=1 "
ok "... and it answers then" "$ringgate" cluster status -s "$tmp/var/socket"
is "no new privileges" "$(proc plain NoNewPrivs)" 1
echo "one node:1" >"$tmp/var/steer"
kill -HUP "${pid[plain]}"
ok "a reload is told" wait_for 20 has_told plain "READY=1 RELOADING=1 READY=1 "
like "... and was one" "$(steer list)" "one node:1"
stop plain -TERM
is "SIGTERM: status 0" "$rc" 0
ok "... after STOPPING=1" wait_for 5 has_told plain "READY=1 RELOADING=1 READY=1 STOPPING=1 "
[ ! -e "$tmp/var/socket" ]
result $? "the socket is gone"

start abstract "@ringgate-test-$$"
ok "an abstract socket of the service manager" wait_for 20 has_told abstract "READY=1 "
stop abstract -INT
is "SIGINT: status 0" "$rc" 0

# What is wrong is told by the status, and nobody is told that it is ready.
start wrong "$tmp/notify2" --source "carrier pigeon"
wait "${pid[wrong]}"
is "a wrong configuration: status 1" "$?" 1
unset "pid[wrong]"
is "... and not ready" "$(told wrong)" ""

if [ "$(id -u)" = 0 ]; then
	chmod 755 "$tmp"
	chown nobody "$tmp/var"
	echo "user nobody" >>"$tmp/conf"
	start user "$tmp/notify3"
	ok "as another user: ready" wait_for 20 has_told user "READY=1 "
	id=$(id -u nobody)
	is "... of that name, for good" "$(proc user Uid | xargs)" "$id $id $id $id"
	is "... with that one's groups" "$(proc user Groups | xargs)" "$(id -G nobody)"
	for set in CapInh CapPrm CapEff CapAmb; do
		is "... without privileges: $set" "$(proc user $set)" 0000000000000000
	done
	is "no new ones" "$(proc user NoNewPrivs)" 1
	is "the socket is that user's" "$(stat -c %U "$tmp/var/socket")" nobody
	ok "rules can be changed" steer add two node:1
	is "... and are kept" "$(grep -v '^#' "$tmp/var/steer")" $'one node:1\ntwo node:1'
	echo "three node:1" >"$tmp/var/steer"
	kill -HUP "${pid[user]}"
	ok "... and read again" wait_for 20 has_told user "READY=1 RELOADING=1 READY=1 "
	like "... those" "$(steer list)" "three node:1"
	stop user -TERM
	is "SIGTERM: status 0" "$rc" 0
	[ ! -e "$tmp/var/socket" ]
	result $? "the socket is gone"
	sed -i 's/^user .*/user nobody-of-this-name/' "$tmp/conf"
	run "$ringgated" -c "$tmp/conf"
	like "no such user" "$rc $err" "^1 .*no user 'nobody-of-this-name'"
else
	skip "another user" "needs root"
fi

# A cluster without a file
mapfile -t public < <(grep ^public-key "$tmp/cluster")
lines=(--cluster-line "provider local" --cluster-line "private-key $tmp/node%i.key"
	--cluster-line "node 0 gateway $tmp/var/n0" --cluster-line "node 1 compute $tmp/var/n1 one"
	--cluster-line "${public[0]}" --cluster-line "${public[1]}")
sed -i '/^cluster\|^user/d' "$tmp/conf"
start lines "$tmp/notify4" "${lines[@]}" -n 0
ok "a cluster from the command line: ready" wait_for 20 has_told lines "READY=1 "
like "... as it says" "$("$ringgate" cluster status -s "$tmp/var/socket")" "one +compute"
stop lines -TERM
{ printf 'cluster-line %s\n' "provider local" "private-key $tmp/node%i.key" "node 0 gateway $tmp/var/n0"
  echo "cluster-line node 0 compute $tmp/var/n1"; } >>"$tmp/conf"
run "$ringgated" -c "$tmp/conf" --check
like "a wrong line among them is named" "$rc $err" "^1 .*cluster-line:4: node 0 is given twice"
run "$ringgated" -c "$tmp/conf" -C "$tmp/cluster" --check
like "both a file and lines" "$rc $err" "^1 .*given twice"

# Everything on the command line: as many nodes and sources as there can be
{
	printf '%s\n' "provider local" "private-key $tmp/many%i.key" "timeout 2000"
	for i in {0..7}; do
		echo "node $i $([ "$i" = 0 ] && echo gateway || echo compute) $tmp/var/m$i"
	done
} >"$tmp/many"
cluster_keys "$tmp/many"
lines=(-n 0 -s "$tmp/var/many" -S "$tmp/var/steer" --pool 16M --spin 20
	--user "$(id -un)" --group "$(id -gn)")
while read -r line; do
	lines+=(--cluster-line "$line")
done <"$tmp/many"
for i in {1..8}; do
	lines+=(--source "udp 127.0.0.1:$((1024 + i))")
done
: >"$tmp/none"
run "$ringgated" -c "$tmp/none" "${lines[@]}" --check
is "eight nodes with their keys and eight sources, on the command line" "$rc/$err" "0/"

# The unit: what systemd says to it, and that it may do what the daemon does
unit=$tmp/ringgated.service
sed "s,@SBINDIR@,$build/tools," "$top/tools/ringgated/ringgated.service.in" >"$unit"
if command -v systemd-analyze >/dev/null; then
	run systemd-analyze verify --man=no "$unit"
	is "systemd-analyze verify" "$rc/$out$err" "0/"
else
	skip "the unit" "no systemd-analyze"
fi
is "the unit reloads by the signal that does" "$(sed -n 's/^ExecReload=//p' "$unit")" \
	"/bin/kill -HUP \$MAINPID"
finish
