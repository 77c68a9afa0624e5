# SPDX-License-Identifier: MIT OR GPL-2.0
# shellcheck shell=bash
#
# Keys for the cluster files of tests; sourced where $build is set.

# cluster_keys FILE: key pairs for the nodes of that cluster file that have none: the private
# keys where the file says, the public ones as lines at its end
cluster_keys()
{
	local id

	for id in $(awk '$1 == "node" { nodes[n++] = $2 } $1 == "public-key" { has[$2] = 1 }
			END { for (i = 0; i < n; i++) if (!(nodes[i] in has)) print nodes[i] }' "$1"); do
		"${build:?}/tools/ringgate" cluster keygen -C "$1" -n "$id" >>"$1" || return
	done
}

# cluster_of_two FILE: nodes of this machine, gw, the gateway, and one, with keys, and sockets beside
# it or at RGATE_FABRIC_ADDRS
cluster_of_two()
{
	local list=("$(dirname "$1")/n0" "$(dirname "$1")/n1")

	[ "${RGATE_FABRIC_PROVIDER:-local}" = local ] || IFS=, read -ra list <<<"$RGATE_FABRIC_ADDRS"
	cat >"$1" <<-END
		provider ${RGATE_FABRIC_PROVIDER:-local}
		node 0 gateway ${list[0]} gw
		node 1 compute ${list[1]} one
	END
	cluster_keys "$1"
}

# other_key FILE ID OTHER: in OTHER, as FILE otherwise, node ID has a pair that FILE knows not
other_key()
{
	sed -e "1 i private-key $3-%i.key" -e "/^public-key $2 /d" "$1" >"$3" && cluster_keys "$3"
}
