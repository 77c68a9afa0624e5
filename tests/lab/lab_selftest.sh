#!/bin/bash
# SPDX-License-Identifier: MIT OR GPL-2.0
#
# The lab has to pass on what a command does and to see what the kernel says.

set -uo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd -P)
top=$(cd "$here/../.." && pwd -P)
. "$here/tap.inc"

echo "# timeout: 600"
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$top" || exit 1

slow=${RGATE_SLOW:-1}
lab()
{
	run timeout $((150 * slow)) scripts/lab -k "${LAB_KERNEL:-6.1}" -t $((100 * slow)) "$@"
}

# shellcheck disable=SC2016 # for the shell in the VM
lab -o "$dir" -e GREETING="two  words" -- sh -c '
	echo "out $GREETING $PWD $LAB $(id -u)"
	echo err >&2
	head -c 300000 /dev/urandom >"$LAB_OUT/data"
	sha256sum <"$LAB_OUT/data" >"$LAB_OUT/sum"
	modprobe veth && ip link add lab0 type veth peer name lab1 && echo veth
	touch "$LAB_CHECKOUT/written" && echo written
	cat "$LAB_CHECKOUT/scripts/lab" | sha256sum
	exit 77' -
expect "the exit status comes through" ended_with 77
expect "standard output, environment, directory, user" said "^out two  words $top vm 0$"
expect "standard error" said "^err$"
expect "modules of the VM's kernel load" said "^veth$"
expect "the checkout can be written" said "^written$"
expect "but not the real one" test ! -e "$top/written"
expect "the checkout's files are the real ones" said "^$(sha256sum <"$top/scripts/lab")"
expect "results come back" test "$(sha256sum <"$dir/data")" = "$(cat "$dir/sum")"
expect "a clean kernel log is not remarked upon" silent_about complained

lab -- sh -c 'echo "WARNING: made up" >/dev/kmsg; echo fine'
expect "a bad kernel log fails the run" ended_with 126
expect "its lines are shown" said "WARNING: made up"

run timeout 150 scripts/lab -k "${LAB_KERNEL:-6.1}" -t 12 -- sleep 1000
expect "a command that does not end" ended_with 124
expect "the timeout is told" said "timed out after 12 s"

lab -- sh -c 'echo c >/proc/sysrq-trigger; sleep 50'
expect "a kernel that dies" ended_with 125
expect "its last words are shown" said "Kernel panic"

# A kernel that came up without its timer, as on a machine that is too busy: once, by a
# QEMU that says so and hangs, and ever again, by one that ends.
mkdir "$dir/bin"
cat >"$dir/bin/qemu-system-x86_64" <<END
#!/bin/bash
if [[ \$* = *-append* ]]; then
	echo >>"$dir/boots"
	console=\$(grep -o "path=[^ ]*/console" <<<"\$*")
	[ \$(wc -l <"$dir/boots") -gt \$TIMERLESS ] ||
		{ echo "disabling apic timer" >"\${console#path=}"; exec sleep "\$HANG"; }
fi
exec "$(command -v qemu-system-x86_64)" "\$@"
END
# Readers of what the VM prints that begin only when it has ended
printf '#!/bin/bash\nsleep 1\nexec %s "$@"\n' "$(command -v cat)" >"$dir/bin/cat"
chmod +x "$dir/bin"/*
PATH=$dir/bin:$PATH TIMERLESS=1 HANG=1000 lab --allow-dmesg 'WARNING: made up' -- \
	sh -c 'echo "WARNING: made up" >/dev/kmsg; echo fine'
expect "a kernel without a timer is booted again" said "^fine$"
expect "and that ends well, as does what has a bad kernel log that is expected" ended_with 0
: >"$dir/boots"
PATH=$dir/bin:$PATH TIMERLESS=100 HANG=0 lab -- echo fine
expect "but not for ever" ended_with 125

# The runner in the VM, with a stock module in place of the project's.
in_vm=$(cat <<'END'
echo "$(nproc) CPUs"
program() { printf '#!/bin/bash\n%s\n' "$2" >"/run/$1"; chmod +x "/run/$1"; }
program t1 'echo 1..1; [ -d /sys/module/tun ] && echo ok 1'
program t2 'echo 1..1; echo "WARNING: of t2" >/dev/kmsg; echo ok 1'
program t3 'echo 1..1; rmmod tun; echo ok 1'
program t4 'echo 1..1; echo "# allow-dmesg: of t4"; echo "WARNING: of t4" >/dev/kmsg; echo ok 1'
program t5 'echo 1..1; [ -d /sys/module/tun ] && echo ok 1'
program t6 'echo 1..1; setsid sleep 100 9<>/dev/net/tun & sleep 0.5; echo ok 1'
module=$(modinfo -n tun)
cp "$LAB_CHECKOUT"/scripts/{run-tests,dmesg-check} /run
/run/run-tests --module "$module" --dmesg /run/t[1-6]
/run/run-tests --dmesg /run/t4
END
)
lab --turns -- bash -c "$in_vm"
expect "CPUs that take turns are two" said "^2 CPUs$"
expect "judged faults do not fail the run again" ended_with 0
expect "a fault is charged to its test" said "t2: the kernel complained"
expect "expected messages are not" said "t4 1 passed, 0 failed"
expect "the module is loaded before each test" said "t5 1 passed, 0 failed"
expect "a module that stays is a failure" said "t6: the module cannot be removed"
expect "and nothing else is" said "^6 passed, 2 failed$"

run scripts/lab -t none -- true
expect "a timeout that is no number" ended_with 125
run scripts/lab -k no-such-kernel -- true
expect "a kernel that is not known" ended_with 125

tap_end
