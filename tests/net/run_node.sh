#!/bin/bash
# SPDX-License-Identifier: MIT OR GPL-2.0
# timeout: 300
# Programs as they are on a node without a network: their TCP is the gateway's, whose device alone
# leads to the servers. Bytes by checksum, and by the gateway's numbers.

# shellcheck disable=SC2317 # functions that wait_for calls
if [ "${1:-}" != inside ]; then
	if unshare -n true 2>/dev/null; then
		exec unshare -n "$0" inside
	elif unshare -rn true 2>/dev/null; then
		exec unshare -rn "$0" inside
	fi
	echo "1..0 # SKIP no network namespaces for this user"
	exit 0
fi
# shellcheck source=tests/cli/lib/tap.sh
. "$(dirname "$0")/../cli/lib/tap.sh"
# shellcheck source=tests/net/lib/programs.sh
. "$(dirname "$0")/lib/programs.sh"

ringgated=$build/tools/ringgated
command -v python3 >/dev/null && command -v curl >/dev/null ||
	skip_all "python3 or curl is not installed"
server_at=10.99.0.2
program run_program.py
mkdir "$tmp/www" "$tmp/run"
head -c 5000000 /dev/urandom >"$tmp/www/file"
sum=$(sha256sum <"$tmp/www/file" | cut -d' ' -f1)
export XDG_RUNTIME_DIR=$tmp/run

# A network of its own that has nothing
own_net() { [ "$(readlink "/proc/$1/ns/net")" != "$(readlink /proc/self/ns/net)" ]; }
hold()
{
	unshare -n sleep 1000 &
	last=$!
	pids+=("$last")
	wait_for 20 own_net "$last"
}
hold
servers=(nsenter -t "$last" -n)
server_ns=$last
hold
node=(nsenter -t "$last" -n)

# This one is the gateway's.
ip link set lo up
ip link add v0 type veth peer name v1 || skip_all "no veth devices on this kernel"
ip link set v1 netns "$server_ns"
ip addr add 10.99.0.1/24 dev v0
ip link set v0 up
"${servers[@]}" ip link set lo up
"${servers[@]}" ip addr add $server_at/24 dev v1
"${servers[@]}" ip link set v1 up

cluster_of_two "$tmp/cluster"
printf 'allow any socket\n' >"$tmp/requests1"
printf 'allow any socket\nnode 1 user:%s\n' "$(id -u)" >"$tmp/requests0"
printf 'allow any connect tcp 10.99.0.0/24 any\nallow any resolve .example\n' >"$tmp/policy"
chmod 600 "$tmp/requests0" "$tmp/requests1" "$tmp/policy"
# What names mean only the gateway knows.
printf '127.0.0.1 localhost\n10.99.0.2 files.example alias.example\n' >"$tmp/hosts"
# shellcheck disable=SC2016 # sh expands it
knows=(unshare -m sh -c 'mount --bind "$0" /etc/hosts && exec "$@"' "$tmp/hosts")
"${knows[@]}" true 2>/dev/null || knows=()
begin gateway "${knows[@]}" "$ringgated" -C "$tmp/cluster" -n gw -s "$tmp/s0" --pool 16M --requests "socket $tmp/r0" \
	--requests "policy $tmp/requests0" --requests "sockets $tmp/policy"
begin one "${node[@]}" "$ringgated" -C "$tmp/cluster" -n one -s "$tmp/s1" --pool 16M \
	--requests "socket $tmp/r1" --requests "policy $tmp/requests1" --requests "sockets-at gateway"
met() { "$ringgate" cluster status -s "$tmp/s1" --json 2>/dev/null | json '[p["state"] for p in j["peers"]]' | grep -q up; }
ok "a node without a network meets its gateway" wait_for 20 met
is "... it has none" "$("${node[@]}" ip -o link | grep -vc " lo: ")$("${node[@]}" ip route)" 0
count() { "$ringgate" cluster status --json -s "$tmp/s0" | json "j[\"requests\"][\"sockets\"][\"$1\"]"; }
# device rx|tx: its bytes
device() { awk -v "at=$([ "$1" = rx ] && echo 2 || echo 10)" '$1 == "v0:" { print $at }' /proc/net/dev; }
far=("${node[@]}" timeout $((60 * slow)) "$ringgate" run --socket "$tmp/r1" --node 0)

# ---- Where they are ----

run "${node[@]}" "$ringgate" run --socket "$tmp/r1" --node 1 true
like "they are not that node's" "$rc $err" \
	"^1 ringgate run: sockets of this machine's ringgated are node 0's, not node 1's: --node 0, or .requests sockets-at. in its ringgated.conf$"
run "$ringgate" run --socket "$tmp/r0" --node 3 true
like "nor here another one's" "$rc $err" "^1 .*are node 0's, not node 3's"
run "$ringgate" run --socket "$tmp/r0" --node 0 true
is "the gateway's own are its" "$rc$err" 0
run "$ringgate" run --socket "$tmp/none" --node 0 true
like "nobody to ask" "$rc $err" "^1 .*sockets for true: no ringgated runs here"

# ---- Bytes ----

begin web "${servers[@]}" env -C "$tmp/www" "$py" -u "$tmp/program" web
url=http://$server_at:$(port web)
run "${node[@]}" curl -sS -m 5 "$url/file"
is "without it curl reaches nothing" "$rc" 7
before=$(count received) seen=$(device rx)
run "${far[@]}" -v curl -sS -o "$tmp/got" "$url/file"
is "curl has the file" "$rc $(sha256sum <"$tmp/got" | cut -d' ' -f1)" "0 $sum"
is "... by the gateway's sockets" $(($(count received) - before)) "$(moved received)"
ok "... which is all of it" test "$(moved received)" -gt 5000000
ok "... through its device" test $(($(device rx) - seen)) -gt 5000000
before=$(count sent) seen=$(device tx)
run "${far[@]}" -v curl -sS -T "$tmp/www/file" "$url/sum"
is "curl sends it" "$rc $out" "0 $sum"
is "... by the gateway's sockets" $(($(count sent) - before)) "$(moved 'bytes sent')"
ok "... through its device" test $(($(device tx) - seen)) -gt 5000000
run "${far[@]}" "$py" "$tmp/program" urllib "$url/file"
is "python's urllib has it" "$rc $out" "0 $sum"
run "${far[@]}" "$py" "$tmp/program" threads "$url/file" 8
is "eight threads have it" "$rc$out$err" "08"
run "${far[@]}" curl -sS -m 20 "http://10.98.0.2:80/"
like "what the gateway does not allow" "$rc $err" "^7 .*Permission denied|^7 .*connect"

# ---- Names ----

if [ ${#knows[@]} = 0 ]; then
	skip "names that the gateway knows" "no mount namespaces for this user"
else
	named=${url/$server_at/files.example}
	run "${node[@]}" getent hosts files.example
	is "nobody else knows that name" "$rc" 2
	run "${far[@]}" curl -sS -o "$tmp/got" "$named/file"
	is "curl has the file, by name" "$rc $(sha256sum <"$tmp/got" | cut -d' ' -f1)" "0 $sum"
	run "${far[@]}" "$py" "$tmp/program" urllib "$named/file"
	is "python has it" "$rc $out" "0 $sum"
	run "${far[@]}" "$py" "$tmp/program" names files.example alias.example $server_at
	is "the names' answers in each form" "$rc $out $err" "0 names "
	run "${far[@]}" getent hosts files.example
	like "gethostbyname2()" "$rc $out" "^0 $server_at +files.example"
	run "${far[@]}" getent ahosts files.example
	like "getaddrinfo()" "$rc $out" "^0 $server_at +STREAM files.example"
	run "${far[@]}" getent hosts nobody.example
	is "a name that there is not" "$rc$out" 2
fi

# ---- Others ----

begin echo "${servers[@]}" "$py" -u "$tmp/program" echo threaded
at=$(port echo)
# Forty connections, each of which answers; and with how many sessions they are had, once all are there
cat >"$tmp/many" <<'END'
import json, os, socket, subprocess, sys
all = [socket.create_connection((sys.argv[1], int(sys.argv[2]))) for _ in range(40)]
for s in all:
    s.sendall(b"x")
print("bytes", sum(len(s.recv(1)) for s in all))
# Without the library that this program has: a sanitizer in there wants to be the first one.
bare = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}
status = json.loads(subprocess.run(sys.argv[3:], env=bare, stdout=subprocess.PIPE, check=True).stdout)
print("sessions", status["requests"]["sessions"])
END
run "${far[@]}" "$py" "$tmp/many" $server_at "$at" "$ringgate" cluster status --json -s "$tmp/s1"
like "more connections than a session at a gateway has" "$rc $out $err" "^0 bytes 40.sessions 3 $"
alone() { [ "$("$ringgate" cluster status --json -s "$tmp/s0" | json 'j["requests"]["sessions"]')" = 0 ]; }
ok "... which end at the gateway" wait_for 20 alone
run timeout $((60 * slow)) "$ringgate" run --socket "$tmp/r0" "$py" "$tmp/many" $server_at "$at" \
	"$ringgate" cluster status --json -s "$tmp/s0"
like "... of the daemon's own more share one" "$rc $out $err" "^0 bytes 40.sessions 2 $"
nc=$(command -v nc.openbsd || command -v nc)
if [ -n "$nc" ]; then
	"${far[@]}" "$nc" -N $server_at "$at" <"$tmp/www/file" >"$tmp/got"
	ok "nc: what comes back" cmp "$tmp/got" "$tmp/www/file"
else
	skip "nc" "it is not installed"
fi
if command -v socat >/dev/null; then
	"${far[@]}" socat -t 20 - "TCP:$server_at:$at" <"$tmp/www/file" >"$tmp/got"
	ok "socat: what comes back" cmp "$tmp/got" "$tmp/www/file"
else
	skip "socat" "it is not installed"
fi
if command -v redis-server >/dev/null && command -v redis-cli >/dev/null; then
	begin redis "${servers[@]}" redis-server --bind $server_at --port 6399 --save '' --dir "$tmp" \
		--protected-mode no
	pong() { "${servers[@]}" redis-cli -h $server_at -p 6399 ping 2>/dev/null | grep -q PONG; }
	ok "redis-server" wait_for 20 pong
	is "redis-cli sets a value" OK \
		"$("${far[@]}" redis-cli -h $server_at -p 6399 -x set key <"$tmp/www/file")"
	"${far[@]}" redis-cli -h $server_at -p 6399 get key | head -c 5000000 >"$tmp/got"
	ok "... and gets it" cmp "$tmp/got" "$tmp/www/file"
else
	skip "redis" "it is not installed"
fi
if command -v openssl >/dev/null && openssl req -x509 -newkey rsa:2048 -nodes -keyout "$tmp/key" \
	-out "$tmp/cert" -subj /CN=localhost -days 2 2>/dev/null; then
	begin tls "${servers[@]}" env -C "$tmp/www" openssl s_server -accept 4433 -cert "$tmp/cert" \
		-key "$tmp/key" -quiet -HTTP
	fetch()
	{
		printf 'GET /file HTTP/1.0\r\n\r\n' |
			"${far[@]}" openssl s_client -quiet -no_ign_eof -ign_eof \
				-connect "$server_at:4433" 2>/dev/null >"$tmp/got"
		cmp -s "$tmp/got" "$tmp/www/file"
	}
	ok "openssl s_client has the file" wait_for 20 fetch
else
	skip "openssl" "it is not installed"
fi
is "no directory is left" "$(ls -A "$tmp/run")" ""
finish
