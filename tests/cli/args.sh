#!/bin/bash
# SPDX-License-Identifier: MIT OR GPL-2.0
# Wrong arguments: exit status 2, nothing on standard output, and a message that
# names what is wrong.

# shellcheck source=tests/cli/lib/tap.sh
. "$(dirname "$0")/lib/tap.sh"

# bad REGEX ARGUMENT...
bad()
{
	local want=$1 rest
	shift
	run "$ringgate" "$@"
	rest="$rc/$out"
	is "'$*': exit status 2, no output" "$rest" "2/"
	like "'$*': says why" "$err" "$want"
}

bad "Usage" # no command
bad "no command 'fly'" fly
bad "unrecognized option" --fly
for c in load unload status attach detach join leave set stats events top \
	 capture bench doctor; do
	bad "unrecognized option" "$c" --no-such-option
done
bad "NAME=VALUE" load fail
bad "exclude" load --module x --installed
bad "not a number of seconds" unload --wait soon
bad "'x' is one" unload x
bad "which device" attach
bad "which ring" attach lo
bad "one device" attach lo eth0 --ring 1
bad "neither steal nor mirror" attach lo --ring 1 --action take
bad "none of cpu" attach lo --ring 1 --fanout best
bad "priority" attach lo --ring 1 --priority low
bad "sample" attach lo --ring 1 --sample 0
bad "sample" attach lo --ring 1 --sample -3
bad "sample" attach lo --ring 1 --sample 4294967296
bad "which attachment" detach
bad "not a number" detach eth0
bad "are expected" join 1
bad "one ring" join 1 2 3
bad "are expected" leave
bad "which attachment" set --action steal
bad "nothing to change" set 1
bad "one ring" stats a b
bad "interval" top --interval 0
bad "count" top --count 0
bad "count" events --count many
bad "which device" capture
bad "not a power of two" capture lo --slots 100
bad "slots" capture lo --slots 32
bad "slots" capture lo --slots 2M
bad "slot size" capture lo --slot-size 128K
bad "slot size" capture lo --slot-size 18446744073709551616
bad "slots" capture lo --slots 0x1000000000000000M
bad "need the module" capture lo --userspace --steal
bad "need the module" capture --udp :9 --rings 2
bad "neither device nor filter" capture lo --udp :9
bad "neither device nor filter" capture --udp :9 port 53
bad "no ADDRESS:PORT" capture --udp nowhere.invalid:port
bad "any needs --userspace" capture any
bad "with --write" capture lo --print
bad "mix" capture lo --print -w -
bad "too long" capture a-very-long-device-name
bad "power" bench --slots 100
bad "do not fit" bench --size 4000
bad "size" bench --size 1
bad "cpus" bench --cpus 1
bad "cpus" bench --cpus 0,1,2

# Right arguments, but no module: status 3 from every command that needs it
if [ -e /sys/module/ringgate ]; then
	skip "without the module" "the module is loaded"
else
	for args in "attach lo --ring 1" "detach 1" "join 1 1" "leave 1 1" \
		    "set 1 --action steal" stats "events -t 1" "top -n 1" \
		    "capture lo -t 1" status unload; do
		# shellcheck disable=SC2086 # words
		run "$ringgate" $args
		is "'$args' without the module: exit status 3" "$rc" 3
		like "'$args' without the module: says so" "$out$err" "not loaded"
	done
fi
finish
