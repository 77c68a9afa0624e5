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

unset RGATE_NODE
bad "Usage" # no command
bad "no command 'fly'" fly
bad "unrecognized option" --fly
for c in load unload status attach detach join leave set stats events top \
	 capture replay probe pool "pool plan" "pool verify" bench doctor cluster "cluster show" \
	 "cluster keygen" "cluster pubkey" steer spawn ps kill net; do
	# shellcheck disable=SC2086 # words
	bad "unrecognized option" $c --no-such-option
done
bad "NAME=VALUE" load fail
bad "NAME=VALUE" load =1
bad "exclude" load --module x --installed
bad "not a number of seconds" unload --wait soon
bad "'x' is one" unload x
bad "which device" attach
bad "which ring" attach lo
bad "one device" attach lo eth0 --ring 1
bad "your own session too: give a filter, or --all" attach lo --ring 1 --steal
bad "your own session too" attach lo --ring 1 --steal --filter ' '
bad "exclude" attach lo --ring 1 --steal --all --filter udp
bad "without it nothing is taken" attach lo --ring 1 --all
bad "none of cpu" attach lo --ring 1 --fanout best
bad "priority" attach lo --ring 1 --priority low
bad "sample" attach lo --ring 1 --sample 0
bad "sample" attach lo --ring 1 --sample -3
bad "sample" attach lo --ring 1 --sample 4294967296
bad "--thread is for --transmit" attach lo --ring 1 --thread
bad "and nothing else" attach lo --ring 1 --transmit --thread=10 --sample 2
bad "which attachment" detach
bad "not a number" detach eth0
bad "are expected" join 1
bad "one ring" join 1 2 3
bad "are expected" leave
bad "which attachment" set --steal
bad "exclude" set 1 --steal --mirror
bad "exclude" set 1 --steal --all --filter udp
bad "nothing to change" set 1 --all
bad "nothing to change" set 1
bad "one ring" stats a b
bad "interval" top --interval 0
bad "count" top --count 0
bad "count" events --count many
bad "which device" capture
bad "not a power of two" capture lo --slots 100
bad "slots" capture lo --slots 32
bad "slots" capture lo --slots 2M
bad "slot-size" capture lo --slot-size 128K
bad "slot-size" capture lo --slot-size 18446744073709551616
bad "slots" capture lo --slots 0x1000000000000000M
bad "need the module" capture lo --userspace --steal
bad "your own session too: give a filter, or --all" capture lo --steal
bad "your own session too" capture lo --steal ' '
bad "exclude" capture lo --steal --all udp
bad "without it nothing is taken" capture lo --all
bad "without it nothing is taken" capture lo --userspace --all
bad "need the module" capture --udp :9 --rings 2
bad "neither device nor filter" capture lo --udp :9
bad "neither device nor filter" capture --udp :9 port 53
bad "no ADDRESS:PORT: the port is a number" capture --udp nowhere.invalid:port
bad "no ADDRESS:PORT" capture --udp nowhere.invalid:9
for port in '' : :0 :65536 :74536 :+9 127.0.0.1:9x; do
	bad "no ADDRESS:PORT: the port is a number from 1 to 65535" capture --udp "$port"
done
bad "address is too long" capture --udp "$(printf '%0300d' 0):9"
bad "takes no device" capture lo --remote
bad "takes no device" capture --remote --udp :9
bad "takes no device" capture --remote --rings 2
bad "is for devices" capture --udp :9 --promisc
bad "is for devices" capture --remote -p
bad "several rings: --rings N" capture lo --fanout hash
bad "several rings: --rings N" capture lo --userspace --fanout hash
bad "any needs --userspace" capture any
bad "with --write" capture lo --print
bad "mix" capture lo --print -w -
bad "too long" capture a-very-long-device-name
bad "which file, and which device" replay
bad "which device" replay x.pcapng
bad "'y' is one too many" replay x.pcapng lo y
bad "too long" replay x.pcapng a-very-long-device-name
bad "no name" replay x.pcapng ''
bad "exclude" replay x.pcapng lo --full --speed 2
for speed in '' 0 -1 x 1e3 inf 0x2 1000001; do
	bad "--speed: '$speed' is not a factor from 0.001 to 1000000" replay x lo "--speed=$speed"
done
bad "power" bench --slots 100
bad "do not fit" bench --size 4000
bad "size" bench --size 1
bad "cpus" bench --cpus 1
bad "cpus" bench --cpus 0,1,2
bad "only gpu" bench disk
bad "only gpu" bench --json gpu
bad "unrecognized option" bench gpu --cpus 0,1
bad "rings" bench gpu --rings 0
bad "rings" bench gpu --rings 65
bad "power" bench gpu --slots 100
bad "do not fit" bench gpu --size 4000
bad "device" bench gpu --device first
bad "time" bench gpu --time 0
bad "'x' is one" bench gpu x
bad "show, keygen or pubkey" cluster
bad "none of status" cluster fly
bad "which node" cluster ping
bad "too much" cluster status one
bad "no node" cluster ping "a b"
bad "interval" cluster top --interval soon
bad "count" cluster top --count 0
bad "options come behind" cluster -j show
bad "'x' is not expected" cluster show x
bad "one file too many" cluster keygen a b
bad "exclude" cluster keygen -C a b
bad "goes with a file" cluster keygen --force
bad "no number from 0 to 7" cluster keygen "$tmp/key" --node one
bad "no number from 0 to 7" cluster keygen "$tmp/key" --node 8
bad "cluster pubkey <x" cluster pubkey x
bad "list, add or remove" steer
bad "none of list" steer fly away
bad "add what" steer add
bad "remove what" steer remove
bad "no rule's name" steer add --before "a b" x drop
bad "one line" steer add "$(printf '%05000d' 0)"
bad "exclude" probe --list --mr-limit
bad "goes with --mr-limit" probe --size 4K
bad "goes with --mr-limit" probe --distinct
bad "goes with the table" probe --list --memory memfd
bad "no --device" probe --list --device x
bad "max" probe --mr-limit --max 0
bad "size" probe --mr-limit --size 0
bad "seconds" probe --mr-limit --seconds never
bad "'x' is one" probe x
bad "plan or verify" pool
bad "no 'fly'" pool fly
bad "how many peers" pool plan
bad "peers" pool plan --peers 0
bad "peers" pool plan --peers -2
bad "peers" pool plan --peers 4294967296
bad "peers" pool plan --peers two
bad "sizes" pool plan --peers 2 --sizes 0
bad "buffers" pool plan --peers 2 --buffers 4K
bad "directions" pool plan --peers 2 --directions 3
bad "limit" pool plan --peers 2 --limit 0
bad "exclude" pool plan --peers 2 --limit 100 --device x
bad "more than can be counted" pool plan --peers 4294967295 --sizes 4294967295
bad "more than can be counted" pool plan --peers 4294967295 --sizes 2 \
	--buffer-size 1G --buffer-size 512M
bad "2 are given, and there are 8 sizes" pool plan --peers 2 --sizes 8 \
	--buffer-size 4K --buffer-size 8K
bad "every --buffer-size" pool plan --peers 2 --region 128M
bad "smaller than a buffer" pool plan --peers 2 --buffer-size 4M --region 2M
bad "buffer-size" pool plan --peers 2 --buffer-size 0
bad "region" pool plan --peers 2 --buffer-size 4K --region 1M
bad "'x' is one" pool plan x
bad "size" pool verify --size 1M
bad "size" pool verify --size 2T
bad "buffer" pool verify --buffer 0
bad "larger than the region" pool verify --size 2M --buffer 4M
bad "give larger ones" pool verify --size 2G --buffer 64
bad "without a device" pool verify --local --device x
bad "without a device" pool verify --local --peer-device x
bad "seed" pool verify --seed random
bad "rounds" pool verify --rounds -1
bad "timeout" pool verify --timeout 0
bad "'x' is one" pool verify x
bad "which command" spawn
bad "NAME=VALUE" spawn --env PATH true
bad "NAME=VALUE" spawn --env =x true
bad "begin with /" spawn --cwd tmp true
bad "timeout" spawn --timeout 0 true
bad "tail" spawn --tail 0 true
bad "tail" spawn --tail 2M true
bad "memory" spawn --memory lots true
bad "files" spawn --files 0 true
bad "nice" spawn --nice 20 true
bad "not an id" spawn --attach 17
bad "runs already" spawn --attach 1a-17 true
bad "one node" spawn --all --detach true
bad "one node" spawn --all --stdin /dev/null true
bad "left alone" spawn --detach --stdin /dev/null true
bad "'x' is not expected" ps x
bad "which process" kill
bad "not an id" kill 1a
bad "no signal 'NONE'" kill -s NONE 1a-17
bad "neither list nor kill" net fly
bad "'x' is not expected" net list x
bad "which socket" net kill
bad "'x' is no number of a socket" net kill x
bad "'0' is no number" net kill 0
bad "which program" run
bad "neither own nor served" run --loopback mine true
bad "one of both" run --own --socket /nonexistent true
bad "is no node" run --own --node 0 true
bad "is no name" run --group a/b true
bad "--group and --own" run --own --group a true

# Every option that takes a number refuses what is none, and what is out of its range; it
# names itself, the value, and what would be right.
refuses()
{
	local option=$1 rest=$2 value wrong=
	shift 2
	for value in '' ' ' ' 1' '1 ' '+1' '1x' '0x' 'x' '1.5.1' '1e1' 99999999999999999999999 "$@"; do
		# shellcheck disable=SC2086 # words
		run "$ringgate" $rest "$option" "$value"
		[[ $rc/$out == 2/ && $err == *"$option: '$value' is not "*" from "*" to "* ]] ||
			wrong+=" '$value'"
	done
	is "$rest $option: wrong numbers are refused, by option, value and range" "$wrong" ""
}

refuses --sample "attach lo --ring 1" 0 -1 4294967296
refuses --priority "attach lo --ring 1" 2147483648 -2147483649 --1
for share in '' 0 101 -1 x 1.5; do
	bad "--thread: '$share' is not a number from 1 to 100" attach lo --ring 1 --transmit "--thread=$share"
done
refuses --sample "set 1" 0 -1 4294967296
refuses --wait unload 0 -1 1000000001 inf nan
refuses --interval stats 0 -1 inf
refuses --count "stats --interval 1" 0 -1 4294967296
refuses --interval top 0 -1
refuses --count top 0 -1
refuses --count events 0 -1
refuses --time events 0 -1
refuses --count "capture lo" 0 -1 9223372036854775808
refuses --time "capture lo" 0 -1 inf
refuses --slots "capture lo" 0 -64 32 2M
refuses --slot-size "capture lo" 0 -1 128K
refuses --rings "capture lo" 0 -1 65
refuses --interval "cluster top" 0 -1
refuses --count "cluster top" 0 -1 1000000001
refuses --loop "replay x lo" -1 9223372036854775808
refuses --count "replay x lo" 0 -1 9223372036854775808
refuses --size bench 0 -1 1T
refuses --time bench 0 -1
refuses --slots bench 0 -64 32 2M
refuses --slot-size bench 0 -1 128K
refuses --cpus bench 0 0, ,1 -1,0 0,1024 0,1,2 "0, 1"
refuses --rings "bench gpu" 0 65
refuses --device "bench gpu" -1 2147483648
refuses --size "probe --mr-limit" 0 -1 1KB
refuses --max "probe --mr-limit" 0 -1 4294967296
refuses --seconds "probe --mr-limit" 0 -1
refuses --peers "pool plan" 0 -1 4294967296
refuses --sizes "pool plan --peers 1" 0 -1
refuses --buffers "pool plan --peers 1" 0 4K
refuses --limit "pool plan --peers 1" 0 -1
refuses --buffer-size "pool plan --peers 1" 0 -1 4KK
refuses --region "pool plan --peers 1 --buffer-size 4K" 0 1M
refuses --size "pool verify" 0 1M 2T
refuses --buffer "pool verify" 0 -1
refuses --seed "pool verify" -1 18446744073709551616
refuses --rounds "pool verify" -1
refuses --timeout "pool verify" 0 -1
refuses --timeout spawn 0 -1
refuses --memory spawn 0 -1 1KB
refuses --cpu spawn 0 -1
refuses --processes spawn 0 -1 4294967296
refuses --files spawn 0 -1
refuses --nice spawn 20 -21 2147483648
refuses --tail spawn 0 -1 2M
for id in '' - 1a 1a- ' 1a-17' 1a-17x '1a- 17' 123456789-1 1a-4294967296 1a--1 1a-0x11 0-0; do
	bad "'$id' is not an id" kill "$id"
done
for signal in 0 -1 ' 9' 9x 65 99999999999999999999 ''; do
	bad "there is no signal '$signal'" kill "--signal=$signal" 1a-17
done
for id in '' ' 1' 1x 4294967296 0 0x; do
	bad "attachment: '$id' is not a number from 1 to 4294967295" detach "$id"
done

run "$ringgate" spawn --cluster "$tmp/none" --as a true
is "no cluster file: not begun" "$rc/$out" "255/"
like "no cluster file: named" "$err" "$tmp/none: No such file"
is "no cluster file: nothing about rings" "$(grep -c module <<<"$err")" 0

# Right arguments, but no module: status 3 from every command that needs it
if [ -e /sys/module/ringgate ]; then
	skip "without the module" "the module is loaded"
else
	for args in "attach lo --ring 1" "detach 1" "join 1 1" "leave 1 1" \
		    "set 1 --mirror" stats "events -t 1" "top -n 1" \
		    "capture lo -t 1" status unload; do
		# shellcheck disable=SC2086 # words
		run "$ringgate" $args
		is "'$args' without the module: exit status 3" "$rc" 3
		like "'$args' without the module: says so" "$out$err" "not loaded"
	done
fi
finish
