#!/bin/bash
# SPDX-License-Identifier: MIT OR GPL-2.0
# timeout: 200
# What is printed in wrong situations with the module, and around its loading: the rows of
# cli_messages.table.

if [ "${1:-}" != inside ]; then
	exec unshare -n -m "$0" inside
fi

# shellcheck source=tests/cli/lib/tap.sh
. "$(dirname "$0")/../cli/lib/tap.sh"
# shellcheck source=tests/cli/lib/messages.sh
. "$cli_dir/lib/messages.sh"
json_served

mount -t sysfs sysfs /sys 2>/dev/null
ip link set lo up
chmod 755 "$tmp"
[ ! -e /sys/module/ringgate ] || rmmod ringgate ||
	{ echo "Bail out! the module is loaded and in use"; exit 1; }
# For the rows: what must not hang
ringgate="timeout $((60 * slow)) $ringgate"

# ring: one of a program that runs until the row is over, called "other"
ring()
{
	$ringgate capture -q lo ether proto 0x1234 >/dev/null 2>&1 &
	later="kill $!; wait $!"
	wait_for 20 eval '[ -n "$(other)" ]'
}

other()
{
	$ringgate status --json | json 'j["rings"][0]["name"]'
}

# sender: a ring called "replay" that is bound to lo until the row is over
sender()
{
	[ -e slow.pcapng ] || "$cli_dir/lib/frames.py" write slow.pcapng gap=3600000000000
	$ringgate replay -q slow.pcapng lo >/dev/null 2>&1 &
	later="kill $!; wait $!"
	wait_for 20 sending
}

sending()
{
	$ringgate status --json |
		json 'j["attachments"][0]["kind"] == "transmit" or 1 / 0'
}

messages "$(dirname "$0")/cli_messages.table"
[ "$rows" -ge 20 ]
result $? "the table has 20 rows or more"
rmmod ringgate
finish
