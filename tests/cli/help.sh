#!/bin/bash
# SPDX-License-Identifier: MIT OR GPL-2.0
# Help, version, man pages and completion: there, and agreeing with each other.

# shellcheck source=tests/cli/lib/tap.sh
. "$(dirname "$0")/lib/tap.sh"

commands="load unload status attach detach join leave set stats events top
	capture replay probe pool bench doctor cluster steer spawn ps kill queue net run"

run "$ringgate" --version
is "--version succeeds" "$rc" 0
like "--version prints the version" "$out" '^ringgate [0-9]+\.[0-9]+\.[0-9]+$'
run "$ringgate" --help
is "--help succeeds" "$rc" 0
for c in $commands; do
	like "--help names $c" "$out" "  $c +[a-z]"
done

for c in $commands; do
	run "$ringgate" "$c" --help
	help=$out
	is "$c --help succeeds" "$rc" 0
	like "$c --help tells its name" "$help" "Usage: ringgate $c"
	page=$top/Documentation/man/ringgate-$c.1
	missing=
	for o in $(grep -oE -- '--[a-z][a-z-]*' <<<"$help" | sort -u); do
		case $o in --help|--usage|--version) continue ;; esac
		grep -qE -- "Fl Fl ${o#--}( |$)" "$page" || missing+=" $o"
	done
	is "ringgate-$c.1 has all options" "$missing" ""
done

# The parts of a command that has some
for c in "pool plan" "pool verify" "cluster show" "cluster keygen" "cluster pubkey"; do
	# shellcheck disable=SC2086 # words
	run "$ringgate" $c --help
	is "$c --help succeeds" "$rc" 0
	like "$c --help tells its name" "$out" "Usage: ringgate $c"
	missing=
	for o in $(grep -oE -- '--[a-z][a-z-]*' <<<"$out" | sort -u); do
		case $o in --help|--usage|--version) continue ;; esac
		grep -qE -- "Fl Fl ${o#--}( |$)" \
			"$top/Documentation/man/ringgate-${c% *}.1" || missing+=" $o"
	done
	is "ringgate-${c% *}.1 has all options of $c" "$missing" ""
done

for page in "$top"/Documentation/man/ringgate*.1; do
	if command -v mandoc >/dev/null; then
		ok "mandoc: ${page##*/}" mandoc -T lint -W warning "$page"
	else
		skip "mandoc: ${page##*/}" "mandoc is not installed"
	fi
done

# What completion would offer for the words of a command line
complete_words()
{
	COMP_WORDS=("$ringgate" "$@") COMP_CWORD=$#
	COMPREPLY=()
	_ringgate
	echo "${COMPREPLY[*]}"
}
. "$top/tools/ringgate/completion/ringgate"
like "completion: commands" "$(complete_words '')" "^load unload .*doctor"
is "completion: a command begun" "$(complete_words det)" "detach"
like "completion: options" "$(complete_words capture --s)" "--slot-size.*--slots"
is "completion: words of an option" "$(complete_words attach --fanout '')" \
	"cpu queue hash rollover"
is "completion: parts of a command" "$(complete_words pool '')" "plan verify"
is "completion: a GPU to be measured" "$(complete_words bench '')" "gpu"
like "completion: options of that" "$(complete_words bench gpu --r)" "--rings"
like "completion: options of a part" "$(complete_words pool verify --s)" \
	"--seed.*--size|--size.*--seed"
like "completion: ... and of the other" "$(complete_words pool plan --b)" \
	"--buffer-size.*--buffers|--buffers.*--buffer-size"
is "completion: a number is not completed" "$(complete_words pool plan --peers '')" ""
like "completion: options of probe" "$(complete_words probe --m)" "--mr-limit"
is "completion: signals" "$(complete_words kill -s K)" "KILL"
printf 'provider local\nnode 3 gateway /x gw\nnode 4 compute /y\n' >"$tmp/cluster"
is "completion: nodes" "$(RGATE_CLUSTER=$tmp/cluster complete_words spawn --node '')" "gw node4"
like "completion: options of spawn" "$(complete_words spawn -a --d)" "--detach"
is "completion: parts of cluster" "$(complete_words cluster '')" \
	"status top ping show keygen pubkey"
like "completion: options of one" "$(complete_words cluster keygen --f)" "--force"
is "completion: ... and nodes" "$(RGATE_CLUSTER=$tmp/cluster complete_words cluster keygen -n '')" "gw node4"
is "completion: ... and files" "$(complete_words cluster keygen "$tmp/clu")" "$tmp/cluster"
is "completion: a file to be sent" "$(complete_words replay "$tmp/clu")" "$tmp/cluster"
like "completion: ... and its device" "$(complete_words replay x.pcapng l)" "(^| )lo( |$)"
like "completion: devices" "$(complete_words capture l)" "(^| )lo( |$)"
finish
