# SPDX-License-Identifier: MIT OR GPL-2.0
# shellcheck shell=bash
# What tests wait for, and where they may listen. To be sourced.

# Nobody writes to this pipe. It is opened here, for it takes the place of the last process in $!.
exec {wait_pipe}<> <(:)

# wait_for SECONDS COMMAND...: until it succeeds; on slow kernels longer
wait_for()
{
	local end=$((SECONDS + $1 * ${RGATE_SLOW:-1})) nothing
	shift
	until "$@" >/dev/null 2>&1; do
		if [ $SECONDS -ge $end ]; then
			echo "# still not so: $*" >&2
			return 1
		fi
		# a pause that starts no process
		read -rt 0.1 -u "$wait_pipe" nothing || :
	done
}

# A port of TCP and UDP that nobody has, at any address. Not one that the kernel gives: who connects
# meanwhile, as other tests do, could have that.
free_port()
{
	python3 -c 'import random
import socket

while True:
    port = random.randrange(10000, 30000)
    try:
        for kind in (socket.SOCK_DGRAM, socket.SOCK_STREAM):
            socket.socket(socket.AF_INET, kind).bind(("0.0.0.0", port))
        break
    except OSError:
        pass
print(port)'
}
