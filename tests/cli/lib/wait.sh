# SPDX-License-Identifier: MIT OR GPL-2.0
# shellcheck shell=bash
# What tests wait for, and where they may listen. To be sourced.

# wait_for SECONDS COMMAND...: until it succeeds; on slow kernels longer
wait_for()
{
	local end=$((SECONDS + $1 * ${RGATE_SLOW:-1}))
	shift
	until "$@" >/dev/null 2>&1; do
		if [ $SECONDS -ge $end ]; then
			echo "# still not so: $*" >&2
			return 1
		fi
		sleep 0.1
	done
}

# A UDP port of loopback that nobody has
free_port()
{
	python3 -c 'import socket
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.bind(("127.0.0.1", 0))
print(s.getsockname()[1])'
}
