#!/bin/bash
# SPDX-License-Identifier: MIT OR GPL-2.0
#
# The test runner has to find every way in which a test program can fail, and
# dmesg-check every kind of kernel fault.

set -uo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd -P)
scripts=$here/../../scripts
. "$here/tap.inc"

dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

# case NAME TEXT: a program with TEXT as its shell body
program()
{
	printf '#!/bin/bash\n%s\n' "$2" >"$dir/$1"
	chmod +x "$dir/$1"
}

# limited NAME STATUS LINE: the same with a limit of 1 s
limited()
{
	run timeout 30 "$scripts/run-tests" --limit 1 "$dir/$1"
	ended_with "$2" && said "^$3\$"
}

# judged NAME STATUS LINE: the runner's verdict on one program
judged()
{
	run timeout 30 "$scripts/run-tests" --timeout 2 "$dir/$1"
	ended_with "$2" && said "^$3\$"
}

program good 'echo 1..2; echo ok 1 - a; echo ok 2 - b'
program plan_last 'echo ok 1; echo ok 2; echo 1..2'
program bad 'echo 1..2; echo ok 1 - a; echo not ok 2 - b; exit 1'
program no_plan 'echo ok 1 - a'
program silent ':'
program short 'echo 1..3; echo ok 1; echo ok 2'
program long 'echo 1..1; echo ok 1; echo ok 2'
program twice 'echo 1..2; echo ok 1; echo ok 1'
program remarks 'echo 1..3; echo "# a: 0"; echo ok 1 - a; echo not ok 2 - b; echo "# t.c:7: 1 is not 2"; echo ok 3 - c
  echo "# of c"; exit 1'
program crash 'echo 1..1; echo ok 1; kill -SEGV $$'
program status 'echo 1..1; echo ok 1; exit 3'
program hang 'echo 1..1; echo ok 1; sleep 60'
program asks 'echo "# timeout: 6"; echo 1..1; sleep 3; echo ok 1'
program asks_first '# timeout: 6
echo 1..1; sleep 3; echo ok 1'
program asks_late 'sleep 3
# timeout: 6
echo 1..1; echo ok 1'
program skip 'echo 1..2; echo ok 1; echo "ok 2 - b # SKIP no such device"'
program skip_all 'echo "1..0 # SKIP no root"'
program empty 'echo 1..0'
program bail 'echo 1..1; echo ok 1; echo "Bail out! no memory"'
program groups 'echo 1..1; echo ok 1; echo 1..2; echo ok 1; echo ok 2'
program nested 'echo KTAP version 1; echo 1..1; echo "  1..1"; echo "  not ok 1 - in"; echo ok 1 - out'
program ktap 'echo KTAP version 1; echo 1..1; echo "  KTAP version 1"; echo "  1..2"
echo "  ok 1 in"; echo "  ok 2 in2"; echo ok 1 out'
program left 'sleep 60 & echo 1..1; echo ok 1'
program stdin 'read -r x && exit 1; echo 1..1; echo ok 1'

expect "two results pass" judged good 0 "2 passed, 0 failed"
expect "the plan may come last" judged plan_last 0 "2 passed, 0 failed"
expect "a failed result" judged bad 1 "1 passed, 1 failed"
expect "output of a failure is shown" said "^ +not ok 2 - b"
expect "no plan" judged no_plan 1 "1 passed, 1 failed"
expect "no output" judged silent 1 "0 passed, 1 failed"
expect "too few results" judged short 1 "2 passed, 1 failed"
expect "too many results" judged long 1 "2 passed, 1 failed"
expect "a number twice" judged twice 1 "2 passed, 1 failed"
expect "a crash after the results" judged crash 1 "1 passed, 1 failed"
expect "the signal is named" said "killed by signal 11"
expect "an exit status without a failed result" judged status 1 "1 passed, 1 failed"
expect "no end" judged hang 1 "1 passed, 1 failed"
expect "the timeout is told" said "no end after 2 s"
expect "a program may ask for more time" judged asks 0 "1 passed, 0 failed"
expect "... or in the comment at its beginning" judged asks_first 0 "1 passed, 0 failed"
expect "... but not further down" judged asks_late 1 "0 passed, 1 failed"
expect "... and not beyond a limit" limited asks 1 "0 passed, 1 failed"
expect "a skip counts apart" judged skip 0 "1 passed, 0 failed, 1 skipped"
expect "its reason is printed" said "skipped: b: no such device"
expect "a program may skip as a whole" judged skip_all 0 "0 passed, 0 failed, 1 skipped"
expect "a plan of nothing" judged empty 1 "0 passed, 1 failed"
expect "bailing out" judged bail 1 "1 passed, 1 failed"
expect "several groups in one program" judged groups 0 "3 passed, 0 failed"
expect "a nested failure under a passed result" judged nested 1 "1 passed, 1 failed"
expect "nested results do not count" judged ktap 0 "1 passed, 0 failed"
expect "a process left behind does not hold the run" judged left 0 "1 passed, 0 failed"
expect "standard input is empty" judged stdin 0 "1 passed, 0 failed"
expect "a program that is not there" judged missing 1 "0 passed, 1 failed"

run "$scripts/run-tests" --tally "$dir/a" "$dir/good" "$dir/skip"
run "$scripts/run-tests" --tally "$dir/b" "$dir/bad"
run "$scripts/run-tests" --sum "$dir/a" "$dir/b"
expect "tallies add up" said "^4 passed, 1 failed, 1 skipped$"
expect "the sum names what failed" said "^failed: bad: b$"
run "$scripts/run-tests" --tally "$dir/c" "$dir/remarks" "$dir/crash"
run "$scripts/run-tests" --sum "$dir/c"
expect "... with the remarks behind it, not those of others" said "^failed: remarks: b t.c:7: 1 is not 2$"
expect "... and what is wrong beside the results" said "^failed: crash: killed by signal 11"
head -n 3 "$dir/a" >"$dir/cut"
run "$scripts/run-tests" --sum "$dir/cut"
expect "what did not run failed" said "^2 passed, 1 failed$"
run "$scripts/run-tests" --sum "$dir/none"
expect "a missing tally failed" ended_with 1
run "$scripts/run-tests" --filter 'x*' "$dir/good"
expect "a filter that matches nothing is an error" ended_with 2

# faulty LINE / fine LINE: what dmesg-check says of a kernel message
faulty()
{
	run "$scripts/dmesg-check" <<<"[    1.0] $1"
	ended_with 1
}

fine()
{
	run "$scripts/dmesg-check" <<<"[    1.0] $1"
	ended_with 0
}

while IFS= read -r line; do
	expect "fault: $line" faulty "$line"
done <<'END'
WARNING: CPU: 1 PID: 7 at net/core/dev.c:1 f+0x1/0x2
BUG: kernel NULL pointer dereference, address: 0
Oops: 0002 [#1] PREEMPT SMP
Call Trace:
BUG: scheduling while atomic: a/1/0x2
INFO: task a:1 blocked for more than 60 seconds.
rcu: INFO: rcu_preempt self-detected stall on CPU
refcount_t: underflow; use-after-free.
unreferenced object leaked
unregister_netdevice: waiting for veth0 to become free. Usage count = 2
watchdog: BUG: soft lockup - CPU#1 stuck for 22s!
END
while IFS= read -r line; do
	expect "no fault: $line" fine "$line"
done <<'END'
ringgate: loading out-of-tree module taints kernel.
ringgate: module verification failed: signature and/or required key missing - tainting kernel
veth0: entered promiscuous mode
BUGFIX applied
END
run "$scripts/dmesg-check" --allow 'WARNING: .*mine' <<<'WARNING: this is mine'
expect "allowed lines are no fault" ended_with 0
run "$scripts/dmesg-check" --allow '(' <<<'WARNING: this is mine'
expect "a bad expression does not pass" ended_with 2

tap_end
