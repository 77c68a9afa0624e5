#!/bin/bash
# SPDX-License-Identifier: MIT OR GPL-2.0
#
# scripts/mutate on a library of one file: what its test sees and what it does not.

set -uo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd -P)
top=$(cd "$here/../.." && pwd -P)
# shellcheck source=tests/lab/tap.inc
. "$here/tap.inc"

echo "# timeout: 300"
# In the checkout: /tmp may not be what git calls safe.
mkdir -p "${RGATE_BUILD:-$top/build}"
dir=$(mktemp -d "${RGATE_BUILD:-$top/build}/mutate-selftest.XXXXXX")
trap 'rm -rf "$dir"' EXIT

if ! /usr/bin/python3 -c 'import clang.cindex' 2>/dev/null; then
	echo "1..0 # SKIP python3-clang is missing: scripts/deps mutate"
	exit 0
fi

mkdir -p "$dir/lib/toy" "$dir/lib/slow" "$dir/tests/unit" "$dir/scripts"
cat >"$dir/lib/toy/toy.c" <<-'END'
	#include <errno.h>
	#include <stdlib.h>

	int toy_seen(int n)
	{
	    if (n > 7)
	        return -EINVAL;
	    return n;
	}

	int toy_edge(int n)
	{
	    return n > 100;
	}

	#ifdef NEVER
	int toy_dead(int n) { return n > 3; }
	#endif

	int toy_leak(void)
	{
	    char *p = malloc(10);

	    if (!p)
	        return -ENOMEM;
	    p[0] = 1;
	    free(p);
	    return 0;
	}

	int toy_room(int n)
	{
	    volatile int room[2 + 1];

	    room[n] = n;
	    return room[n];
	}

	int toy_hint(int n)
	{
	    return __builtin_expect(n != 0, 1);
	}

	int toy_unrun(int n)
	{
	    return n == 4;
	}
END
cat >"$dir/lib/slow/hang.c" <<-'END'
	int usleep(unsigned int us);

	int toy_hang(int n)
	{
	    while (n < 3 && !usleep(1000))
	        n = n + 1;
	    return n;
	}
END
cat >"$dir/tests/unit/test_toy.c" <<-'END'
	#include <stdio.h>

	int toy_seen(int n), toy_edge(int n), toy_leak(void), toy_room(int n), toy_hang(int n);

	int main(void)
	{
	    int bad = toy_seen(7) != 7 || toy_seen(8) >= 0;

	    bad |= toy_edge(0) || !toy_edge(1000);
	    bad |= toy_leak() || toy_room(2) != 2 || toy_hang(0) != 3;
	    printf("1..1\n%sok 1 - toy\n", bad ? "not " : "");
	    return bad;
	}
END
# What the real one offers, in short
cat >"$dir/Makefile" <<-'END'
	.RECIPEPREFIX = >
	flags = $(CFLAGS) $(CPPFLAGS) $(if $(SANITIZE),-fsanitize=$(SANITIZE) -fno-sanitize-recover=all)
	all tools examples lib fabric-tests net-tests spawn-tests: ;
	unit-tests: $(O)/tests/unit/test_toy
	$(O)/obj/%.o: %.c
	> mkdir -p $(@D)
	> $(CC) $(flags) -MMD -MP -c -o $@ $<
	$(O)/tests/unit/test_toy: $(O)/obj/tests/unit/test_toy.o $(O)/obj/lib/toy/toy.o $(O)/obj/lib/slow/hang.o
	> mkdir -p $(@D)
	> $(CC) $(flags) -o $@ $^
END
printf '/build/\n' >"$dir/.gitignore"
git -C "$dir" init -q
git -C "$dir" add -A

mutate()
{
	O=$dir/build run timeout 120 "$top/scripts/mutate" --top "$dir" --jobs 1 --seed 1 "$@"
}

# at TEXT: LINE of the code
at()
{
	grep -nF -- "$1" "$dir/lib/toy/toy.c" | head -n 1 | cut -d: -f1
}

# state LINE KIND: what became of that change
state()
{
	python3 -c '
import json, sys
text = sys.stdin.read()
report = json.loads(text[text.index("{"):])
print(" ".join(m["state"] for m in report["mutants"]
               if m["line"] == int(sys.argv[1]) and m["kind"] == sys.argv[2]))
' "$1" "$2" <<<"$output"
}

lines=()
for text in 'n > 7' -EINVAL 'n > 100' 'free(p)' 'room[2 + 1]' 'n == 4'; do
	lines+=(--only "lib/toy/toy.c:$(at "$text")")
done
mutate "${lines[@]}" --json
expect "a change that the test sees" test "$(state "$(at 'n > 7')" 'comparison turned')" = noticed
expect "a check that is dropped" test "$(state "$(at 'n > 7')" 'check dropped')" = noticed
expect "an error returned as 0" test "$(state "$(at -EINVAL)" 'error returned as 0')" = noticed
expect "one that it does not see survives" \
	test "$(state "$(at 'n > 100')" 'comparison turned')" = survived
expect "a leak is seen" test "$(state "$(at 'free(p)')" 'free dropped')" = noticed
expect "so is what has no code of its own" \
	test "$(state "$(at 'room[2 + 1]')" 'sign turned')" = noticed
expect "what nothing runs is not covered" \
	test "$(state "$(at 'n == 4')" 'comparison turned')" = "not covered"
mutate --only lib/slow/hang.c:6 --json
expect "a hang is seen" test "$(state 6 'off by one')" = noticed
mutate --only "lib/toy/toy.c:$(at 'n > 3')"
expect "what is not compiled is not changed" said "nothing to change at"
mutate --only "lib/toy/toy.c:$(at __builtin_expect)" --list
expect "nor is what the compiler is told of likelihood" test "$(grep -c constant <<<"$output")" = 1

mutate -n 40 lib/toy --least 100
expect "--least: too few are noticed" ended_with 1
expect "with a table" said "^lib/toy +[0-9]+ +[0-9]+ +[0-9]+ +[0-9.]+ %$"
expect "with its seed" said "^seed 1$"
expect "survivors are shown with their line" said "^lib/toy/toy.c:$(at 'n > 100'): .*: survived$"
expect "as a difference" said "^  [+].*return n >= 100;|^  [+].*return n > 101;"
expect "and with what ran" said "^  ran: tests/unit/test_toy$"
mutate -n 5 --list lib/toy
first=$output before=$(stat -c %y "$dir"/build/mutate/0/count_exit.h)
mutate -n 5 --list lib/toy
expect "a seed draws the same again" test "$output" = "$first"
expect "what all that is counted includes stays as it is" \
	test "$(stat -c %y "$dir"/build/mutate/0/count_exit.h)" = "$before"
expect "the checkout stays as it is" test -z "$(git -C "$dir" diff --name-only)"

printf '%s\n' lib/toy/toy.c '- return n > 100;' '# the test of a test' >"$dir/scripts/mutate-equivalent"
mutate --only "lib/toy/toy.c:$(at 'n > 100')" --least 85
expect "a line marked as equivalent is not drawn" ended_with 0
expect "and told" said "equivalent by scripts/mutate-equivalent$"
printf '%s\n' lib/toy/toy.c '- return n > 99;' '# the test of a test' >"$dir/scripts/mutate-equivalent"
mutate --check
expect "an entry for a line that is gone is an error" said "has no line 'return n > 99;' any more"
printf '%s\n' lib/toy/toy.c '- return n > 100;' >"$dir/scripts/mutate-equivalent"
mutate --check
expect "an entry without a reason too" ended_with 1

run "$top/scripts/mutate" --check
expect "the list of this tree fits the tree" ended_with 0
run "$top/scripts/mutate" --only lib/ring
expect "a wrong argument" ended_with 2
run "$top/scripts/mutate" lib/nothing
expect "a folder that is not there" said "lib/nothing: no such folder"

tap_end
