#!/bin/bash
# SPDX-License-Identifier: MIT OR GPL-2.0
# timeout: 300
# Queue, lock and barrier of three nodes while daemons and clients are killed, stopped and cut off
# at random, beside a client and a node that are hostile: what everybody saw can be.
#
# RGATE_SOAK_SECONDS=N: for so long; RGATE_TEST_SEED=N: which is printed

# shellcheck source=tests/cli/lib/tap.sh
. "$(dirname "$0")/../cli/lib/tap.sh"

here=$(cd "$(dirname "$0")/queue_faults" && pwd -P)
command -v python3 >/dev/null || skip_all "python3 is not installed"
export PYTHONDONTWRITEBYTECODE=1
chmod 755 "$tmp"
cluster_patient "$tmp/cluster" gw one two liar
for n in 0 1 2; do
	printf '%s\n' 'allow any queue' 'allow any lock barrier' 'node any any' \
		"node 0 user:$(id -u)" "node 1 user:$(id -u)" "node 2 user:$(id -u)" \
		"node 3 user:65534" >"$tmp/policy$n"
	chmod 600 "$tmp/policy$n"
done
seed=${RGATE_TEST_SEED:-$RANDOM}
echo "# seed $seed"
ok "the checker finds the mistakes of histories" python3 "$here/history.py" --selftest
python3 "$here/faults.py" "$build" "$tmp" "$seed" "${RGATE_SOAK_SECONDS:-35}" >"$tmp/said" 2>&1
result $? "what clients saw can be, and nothing hangs"
sed 's/^/# /' "$tmp/said"
finish
