#!/bin/bash
# SPDX-License-Identifier: MIT OR GPL-2.0
# The module's own unit tests: a build of it with RGATE_KUNIT=y runs them as it is
# loaded; the kernel's results are handed on as they are.
set -u
top=$(cd "$(dirname "$0")/../.." && pwd)
ko=${RGATE_BUILD:-$top/build}/kunit-$(uname -r)/ringgate.ko
results=/sys/kernel/debug/kunit

mountpoint -q /sys/kernel/debug || mount -t debugfs debugfs /sys/kernel/debug
! grep -q '^ringgate ' /proc/modules || rmmod ringgate || exit 1
insmod "$ko" || exit 1
suites=("$results"/ringgate-*/results)
# "    ok 2 name" of every suite, numbered through
cat "${suites[@]}" | awk '
	/^    (ok|not ok) / {
		bad = $1 == "not"
		sub(/^ *(not )?ok [0-9]+ *(- )?/, "")
		printf "%sok %d - %s\n", bad ? "not " : "", ++n, $0
	}
	/^    #/ { sub(/^ */, ""); print }
	END { print "1.." n }'
rmmod ringgate || exit 1
# All seven suites, or something was not built
[ ${#suites[@]} -ge 7 ] || { echo "# suites: ${suites[*]}"; exit 1; }
