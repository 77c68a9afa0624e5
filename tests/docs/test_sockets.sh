#!/bin/bash
# SPDX-License-Identifier: MIT OR GPL-2.0
# timeout: 120
# The examples of sockets.rst talk to each other; a daemon with the lines that it shows has sockets for
# a user; what it shows of C is in the examples, and what it names is there.
set -u
top=$(cd "$(dirname "$0")/../.." && pwd)
build=${RGATE_BUILD:-$top/build}
. "$(dirname "$0")/lib/tap.sh"
. "$(dirname "$0")/lib/blocks.sh"
. "$(dirname "$0")/lib/daemon.sh"
cd "$top" || exit 1

timeout 60 "$build/examples/echo_server" 127.0.0.1:0 >"$tmp/server" 2>&1 &
server=$!
for _ in $(seq 100); do
	at=$(sed -n 's/^listens at //p' "$tmp/server")
	[ -z "$at" ] || break
	sleep 0.1
done
# It echoes the question, and ends when the client is stopped.
timeout 2 "$build/examples/http_get" "$at" /some/where >"$tmp/answer" 2>"$tmp/log"
printf 'GET /some/where HTTP/1.0\r\nHost: %s\r\n\r\n' "$at" | cmp - "$tmp/answer" >>"$tmp/log" 2>&1
rc=$?
ok $rc "a client asks, and gets its question back"
kill "$server"
wait "$server"
rc=$?
cp "$tmp/server" "$tmp/log"
ok $rc "the server ends"

# The lines of the quick start, in the files that it names: for a user and ports of this machine, and
# for a server on it, which "any" does not mean
example echo_server http_get
listens() { grep -q '^listens at ' "$tmp/server"; }
: >"$tmp/server"
"$tmp/echo_server" 127.0.0.1:0 >"$tmp/server" 2>&1 &
daemons+=($!)
wait_for 20 listens
at=$(sed -n 's/^listens at //p' "$tmp/server")
port=$(free_port)
mkdir "$tmp/etc"
block Documentation/sockets.rst "Quick start:text:3" | sed "s,/etc/ringgate/,$tmp/etc/,
	s/user:alice/user:$user/; s, any 443\$, 127.0.0.0/8 ${at##*:},; s/ 8080\$/ $port/" |
	awk -v file="$tmp/gw.lines" '$1 == "#" && $2 ~ /^\// { file = $2; next } NF { print >file }'
chmod 600 "$tmp"/etc/*
cat "$tmp/gw.lines" "$tmp"/etc/* >"$tmp/log"
[ "$(wc -l <"$tmp/gw.lines")" = 2 ] && [ "$(cat "$tmp"/etc/requests.conf "$tmp"/etc/socket.conf |
	grep -c " user:$user ")" = 5 ]
ok $? "sockets.rst has two lines for the daemon, and five in two policies"
daemon gw
ok $? "a daemon starts with them"
# get ADDRESS PATH
get() { timeout 2 "${as[@]}" "$tmp/http_get" "$1" "$2" "$tmp/gw.r" >"$tmp/answer" 2>"$tmp/log"; }
get "$at" /by/the/daemon
printf 'GET /by/the/daemon HTTP/1.0\r\nHost: %s\r\n\r\n' "$at" | cmp - "$tmp/answer" >>"$tmp/log" 2>&1
ok $? "the user asks the server by it"
get "127.0.0.1:$port" /
grep -qi 'let this user' "$tmp/log"
ok_if_root $? "... and no other port"
: >"$tmp/server"
"${as[@]}" "$tmp/echo_server" "0.0.0.0:$port" "$tmp/gw.r" >"$tmp/server" 2>&1 &
daemons+=($!)
wait_for 20 listens
ok $? "he listens at the port that is his"
timeout 20 "${as[@]}" "$tmp/echo_server" "0.0.0.0:$(free_port)" "$tmp/gw.r" >"$tmp/log" 2>&1
grep -qi 'let this user' "$tmp/log"
ok_if_root $? "... and at no other"
timeout 20 "${other[@]}" "$tmp/http_get" "$at" / "$tmp/gw.r" >"$tmp/log" 2>&1
grep -qi 'let this user' "$tmp/log"
ok_if_root $? "another user may ask for nothing"

grep -P '^\t' Documentation/sockets.rst | sed 's/^\t*//' >"$tmp/shown"
sed 's/^\t*//' Documentation/examples/echo_server.c Documentation/examples/http_get.c >"$tmp/example"
while IFS= read -r line; do
	grep -qxF -- "$line" "$tmp/example" || echo "not there: $line"
done <"$tmp/shown" >"$tmp/log"
[ "$(grep -c . "$tmp/shown")" -ge 9 ] && [ ! -s "$tmp/log" ]
ok $? "what sockets.rst shows is the examples'"

grep -ohE '``RGATE_(REQ_)?SOCKET_[A-Z0-9_]+(\(\))?``' Documentation/sockets.rst | tr -d '`()' |
	sort -u >"$tmp/names"
while read -r name; do
	grep -qw "$name" uapi/ringgate/*.h || echo "$name is not there"
done <"$tmp/names" >"$tmp/log"
sed -n 's/^#define \(RGATE_\(REQ_\)\?SOCKET_[A-Z0-9_]*\).*/\1/p;
	s/^\t\(RGATE_SOCKET_[A-Z0-9_]*\) = .*/\1/p' uapi/ringgate/socket.h \
	uapi/ringgate/request.h | grep -vE '_(INET|INET6|STREAM|DGRAM|EVENTS|RESOLVE_FLAGS)$' |
	while read -r name; do
		grep -qxF "$name" "$tmp/names" || echo "$name is not told of"
	done >>"$tmp/log"
[ "$(wc -l <"$tmp/names")" -gt 40 ] && [ ! -s "$tmp/log" ]
ok $? "constants that it names are there, and all are named"

echo "1..$n"
[ "$failed" -eq 0 ]
