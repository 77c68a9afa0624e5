#!/bin/bash
# SPDX-License-Identifier: MIT OR GPL-2.0
# The examples of sockets.rst talk to each other; what it shows is in them, and what it names is there.
set -u
top=$(cd "$(dirname "$0")/../.." && pwd)
build=${RGATE_BUILD:-$top/build}
. "$(dirname "$0")/lib/tap.sh"
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
	uapi/ringgate/request.h | grep -vE '_(INET|INET6|STREAM|DGRAM|EVENTS)$' |
	while read -r name; do
		grep -qxF "$name" "$tmp/names" || echo "$name is not told of"
	done >>"$tmp/log"
[ "$(wc -l <"$tmp/names")" -gt 40 ] && [ ! -s "$tmp/log" ]
ok $? "constants that it names are there, and all are named"

echo "1..$n"
[ "$failed" -eq 0 ]
