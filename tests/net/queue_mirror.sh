#!/bin/bash
# SPDX-License-Identifier: MIT OR GPL-2.0
# timeout: 300
# A queue with a mirror: its home and the node that submits are killed together, and each task that
# was taken is done once.

# shellcheck disable=SC2317 # functions that wait_for calls
# shellcheck source=tests/cli/lib/tap.sh
. "$(dirname "$0")/../cli/lib/tap.sh"
# shellcheck source=tests/net/lib/queues.sh
. "$(dirname "$0")/lib/queues.sh"

# of what node $1 has
count_of() { "$ringgate" cluster status -s "$tmp/s$1" --json | json "j['requests']['queues']['$2']"; }
count_is() { [ "$(count_of "$1" "$2")" = "$3" ]; }
mirror_of() { stat_of "$1" a "j['mirror']['$2']"; }

start_all

queue 2 create --mirror a
is "a queue with a mirror" "$rc/$err" "0/"
seq 20 | put 2 a
is "what node 2 puts, node 0 has copies of" "$?/$(count_of 0 copies)/$(mirror_of 0 nodes)" "0/20/[0]"
is "... all of it" "$(mirror_of 0 missed)/$(mirror_of 0 late)" "0/False"
finish
