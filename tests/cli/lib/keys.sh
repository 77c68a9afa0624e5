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

# cluster_of_two FILE: nodes of this machine, gw, the gateway, and one, with keys and sockets beside it
cluster_of_two()
{
	local at

	at=$(dirname "$1")
	cat >"$1" <<-END
		provider local
		node 0 gateway $at/n0 gw
		node 1 compute $at/n1 one
	END
	cluster_keys "$1"
}

# cluster_patient FILE NAME...: nodes of this machine that wait as long as a slow one wants, the first of
# them the gateway, with keys and sockets beside it
cluster_patient()
{
	local file=$1 role=gateway n=0 name at
	shift

	at=$(dirname "$file")
	printf 'provider local\ntimeout %u\n' $((${slow:?} > 15 ? 60000 : 4000 * slow)) >"$file"
	for name; do
		echo "node $n $role $at/n$n $name" >>"$file"
		role=compute
		n=$((n + 1))
	done
	cluster_keys "$file"
}

# other_key FILE ID OTHER: in OTHER, as FILE otherwise, node ID has a pair that FILE knows not
other_key()
{
	sed -e "1 i private-key $3-%i.key" -e "/^public-key $2 /d" "$1" >"$3" && cluster_keys "$3"
}
