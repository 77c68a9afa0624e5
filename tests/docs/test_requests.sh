#!/bin/bash
# SPDX-License-Identifier: MIT OR GPL-2.0
# The example of requests runs; what requests.rst and services.rst name and show is there.
set -u
top=$(cd "$(dirname "$0")/../.." && pwd)
build=${RGATE_BUILD:-$top/build}
. "$(dirname "$0")/lib/tap.sh"
cd "$top" || exit 1

timeout 60 "$build/examples/request" >"$tmp/log" 2>&1
rc=$?
ok $rc "the example runs"
diff - "$tmp/log" >"$tmp/log2" <<-END
	log: user $(id -u): hello from a request
	request 1: 0
	request 2: 0
	request 3: 0, value 42
	request 4: -2
END
rc=$?
mv "$tmp/log2" "$tmp/log"
ok $rc "and prints what it should"

! "$build/examples/request" "$tmp/nowhere" >"$tmp/log" 2>&1 && grep -q '^no session: ' "$tmp/log"
ok $? "without a daemon where it is asked for one it says so"

# The service that services.rst explains is the one that is compiled.
awk '/^\.\. code-block:: text$/ { on = 1; next } on && /^[^ ]/ { on = 0 }
	on { sub(/^   /, ""); print }' Documentation/services.rst >"$tmp/shown"
while IFS= read -r line; do
	grep -qxF -- "$line" tests/unit/test_request_example.c || echo "not there: $line"
done <"$tmp/shown" >"$tmp/log"
[ "$(grep -c . "$tmp/shown")" -gt 20 ] && [ ! -s "$tmp/log" ]
ok $? "the service of services.rst is the one that is tested"

grep -ohE '``(rgate_[a-z_]+\(\)|RGATE_[A-Z_]+(\(\))?)``' Documentation/requests.rst Documentation/services.rst |
	tr -d '`()' | sort -u >"$tmp/names"
while read -r name; do
	grep -qw "$name" lib/include/ringgate/*.h uapi/ringgate/*.h lib/request/engine.h ||
		echo "$name is not there"
done <"$tmp/names" >"$tmp/log"
[ "$(wc -l <"$tmp/names")" -gt 40 ] && [ ! -s "$tmp/log" ]
ok $? "functions and constants that both name are there"

{
	sed -n 's/^RGATE_API .*\b\(rgate_[a-z_]*\)(.*/\1/p' lib/include/ringgate/rgate_session.h
	sed -n 's/^[a-z].*\b\(rgate_[a-z_]*\)(.*/\1/p' lib/request/engine.h
} | sort -u >"$tmp/names"
while read -r name; do
	grep -qF "\`\`$name()" Documentation/requests.rst Documentation/services.rst ||
		echo "$name is not told of"
done <"$tmp/names" >"$tmp/log"
[ "$(wc -l <"$tmp/names")" -gt 30 ] && [ ! -s "$tmp/log" ]
ok $? "every function of sessions and of the engine is named in its guide"

echo "1..$n"
[ "$failed" -eq 0 ]
