#!/bin/bash
# SPDX-License-Identifier: MIT OR GPL-2.0
# What the system-call fuzzer found, its seed finds again: a single thread does the same
# every time, by the kernel's answers too.
set -u
top=$(cd "$(dirname "$0")/../.." && pwd)
fuzz=${RGATE_BUILD:-$top/build}/tests/debug/fuzz_device
ko=${RGATE_KO:?}
echo "# timeout: 300"
echo "# allow-dmesg: fuzz_device: vmalloc|page allocation failure|Call Trace"
echo 1..3

# The fuzzer unloads the module, which run-tests wants to find and unload.
end_of()
{
	grep -q '^ringgate ' /proc/modules || insmod "$ko" || exit 1
	taskset -c 0 "$fuzz" -t 120 -n 3000 -w 1 -j 1 -s "$1" >/tmp/log || sed 's/^/# /' /tmp/log >&2
	sed -n 's/^# end of 0.0: //p' /tmp/log
}

seed=${FUZZ_SEED:-0x$(od -An -N8 -tx8 /dev/urandom | tr -d ' ')}
one=$(end_of "$seed")
two=$(end_of "$seed")
other=$(end_of 0x123456789)
echo "# seed $seed"
echo "# $one"
echo "# $two"
echo "# with another seed: $other"
[[ $one = "3000 operations"* ]] && r='' || r='not '
echo "${r}ok 1 - 3000 operations of one thread"
[ -n "$one" ] && [ "$one" = "$two" ] && r='' || r='not '
echo "${r}ok 2 - the same seed does the same again"
[ -n "$other" ] && [ "$one" != "$other" ] && r='' || r='not '
echo "${r}ok 3 - another does not"
