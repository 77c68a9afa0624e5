#!/bin/bash
# SPDX-License-Identifier: MIT OR GPL-2.0
# Loads the module, works with it, unloads it: kmemleak finds nothing that was left, of
# this test or of those before it.
set -u
top=$(cd "$(dirname "$0")/../.." && pwd)
build=${RGATE_BUILD:-$top/build}
leaks=/sys/kernel/debug/kmemleak
echo "# timeout: 600"

mountpoint -q /sys/kernel/debug || mount -t debugfs debugfs /sys/kernel/debug
[ -w $leaks ] || { echo "1..0 # SKIP this kernel has no kmemleak"; exit 0; }
echo 1..3
"$build/tests/vm/t_receive" >/tmp/log
r=$?
[ $r = 0 ] && echo "ok 1 - frames were received" || { cat /tmp/log; echo "not ok 1 - t_receive: $r"; }
rmmod ringgate
r=$?
[ $r = 0 ] && echo "ok 2 - the module is gone" || echo "not ok 2 - rmmod: $r"
# What is young may still be on a stack or in a register: look more than once, with
# the five seconds between that kmemleak wants an object to be old.
for _ in 1 2 3; do
	sleep 6
	echo scan >$leaks
done
cat $leaks >/tmp/leaks
if grep -q '^unreferenced' /tmp/leaks; then
	sed 's/^/# /' /tmp/leaks | head -n 100
	echo "not ok 3 - kmemleak found $(grep -c '^unreferenced' /tmp/leaks) objects"
	exit 1
fi
echo "ok 3 - nothing leaked"
