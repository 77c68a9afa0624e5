#!/bin/bash
# SPDX-License-Identifier: MIT OR GPL-2.0
# The program in README.md is Documentation/examples/minimal.c and compiles; files and
# make targets that the documents name are there; each licence named has its text.
set -u
top=$(cd "$(dirname "$0")/../.." && pwd)
build=${RGATE_BUILD:-$top/build}
. "$(dirname "$0")/lib/tap.sh"
cd "$top" || exit 1

awk '/^```c$/ { on = 1; next } /^```$/ { on = 0 } on' README.md >"$tmp/minimal.c"
diff "$tmp/minimal.c" Documentation/examples/minimal.c >"$tmp/log"
ok $? "the program in README.md is the example"

for cc in gcc clang; do
	command -v $cc >/dev/null || continue
	$cc -std=gnu11 -Wall -Wextra -Werror -O2 -Iuapi -Ilib/include -o "$tmp/minimal" \
		"$tmp/minimal.c" "$build/lib/libringgate.a" -lmnl -lpcap -lpthread \
		>"$tmp/log" 2>&1
	ok $? "it compiles with $cc"
done

grep -o '](\([^):]*\))' README.md | tr -d '()]' | while read -r path; do
	[ -e "$path" ] || echo "$path is not there"
done >"$tmp/log"
[ ! -s "$tmp/log" ]
ok $? "links lead somewhere"

{
	for doc in README.md Documentation/*.rst; do
		python3 tests/docs/blocks.py "$doc" | awk -F'\t' '$2 == "shell" { print $3 }' | sort -u |
			while IFS= read -r section; do
				python3 tests/docs/blocks.py "$doc" "$section:shell"
			done
	done
	grep -hoE '`make [a-z][a-z-]*' README.md Documentation/*.rst
} | sed 's/#.*//' | grep -oE '\bmake( [a-z][a-z-]*)+' | tr -s ' ' '\n' | grep -vx make |
	sort -u | sed 's/^/make /' |
	while read -r _ target; do
		grep -qhE "^([a-z-]+ )*$target( [a-z-]+)*:" Makefile lib/gpu/gpu.mk ||
			echo "make $target is not there"
	done >"$tmp/log"
[ ! -s "$tmp/log" ]
ok $? "make targets are there"

git ls-files -zco --exclude-standard ':!LICENSES' 2>/dev/null |
	xargs -0 head -qn 2 2>/dev/null | grep -aohE 'SPDX-License-Identifier: .*' |
	sed -e 's/SPDX-License-Identifier: //' -e 's,\*/,,' -e 's/-->//' |
	sed 's/[ ()]/\n/g' |
	grep -vE '^(OR|AND|WITH|)$' | sed 's/-only$//' | sort -u >"$tmp/names"
while read -r name; do
	[ -e "LICENSES/$name" ] || echo "LICENSES/$name is not there"
done <"$tmp/names" >"$tmp/log"
[ -s "$tmp/names" ] && [ ! -s "$tmp/log" ]
ok $? "every licence named has its text"

echo "1..$n"
[ "$failed" -eq 0 ]
