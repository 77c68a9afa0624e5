# SPDX-License-Identifier: MIT OR GPL-2.0
# shellcheck shell=bash disable=SC2154 # variables are the caller's
#
# Two RDMA devices in software (Soft-RoCE) on both ends of a veth, in the initial network
# namespace, where such devices work on every kernel. To be sourced after tap.sh, with
# these set:
#	a, b		names of the devices
#	na, nb		and of their network devices
#	net		first three numbers of their addresses: $net.1 and $net.2
#	pref		of the routing rules, and number of the tables; ten from here on
#	net6		if there are to be IPv6 addresses, too: $net6::1 and $net6::2; as a GID
#			begins, like fd00:0010:0080:0001

ip_a=$net.1 ip_b=$net.2
ip6_a=${net6:-}::1 ip6_b=${net6:-}::2

# Contexts have to be closed by then, else the kernel lets a removal wait.
rxe_pair_down()
{
	local dev

	for dev in $a $b; do
		[ ! -e /sys/class/infiniband/$dev ] || timeout 30 rdma link del $dev
	done
	[ ! -e /sys/class/net/$na ] || ip link del $na
	if ip rule | grep -q "^$((pref + 9)):"; then
		rxe_unrule -4
	fi
	if [ -n "${net6:-}" ] && ip -6 rule | grep -q "^$((pref + 9)):"; then
		rxe_unrule -6
	fi
}

# rxe_unrule FAMILY: as it was
rxe_unrule()
{
	local p

	ip "$1" rule add pref 0 lookup local
	for p in $pref $((pref + 1)) $((pref + 2)) $((pref + 3)) $((pref + 9)); do
		while ip "$1" rule del pref "$p" 2>/dev/null; do :; done
	done
}

# Both addresses are this machine's own: rules send what goes from one to the other
# over the wire, and take what arrives there as local.
rxe_route()
{
	local dev=$1 addr=$2 table=$3

	sysctl -qw net.ipv4.conf.all.rp_filter=0 "net.ipv4.conf.$dev.rp_filter=0" \
		"net.ipv4.conf.$dev.accept_local=1" "net.ipv4.conf.$dev.arp_ignore=1" \
		"net.ipv4.conf.$dev.arp_announce=2"
	rxe_rules -4 $dev $addr $net.0/24 "$table"
}

# rxe_rules FAMILY DEVICE ADDRESS NETWORK TABLE
rxe_rules()
{
	ip "$1" -batch - <<-END
		route replace $4 dev $2 src $3 table $5
		rule add pref $pref iif $2 lookup local
		rule add pref $((pref + 1)) from $3 to $3 lookup local
		rule add pref $((pref + 2)) from $3 lookup $5
		rule add pref $((pref + 3)) oif $2 lookup $5
	END
}

# IPv6 addresses beside the others
rxe_pair_up6()
{
	sysctl -qw net.ipv6.conf.all.disable_ipv6=0 net.ipv6.conf.$na.disable_ipv6=0 \
		net.ipv6.conf.$nb.disable_ipv6=0
	ip -6 -batch - <<-END
		addr add $ip6_a/64 dev $na nodad
		addr add $ip6_b/64 dev $nb nodad
		rule add pref $((pref + 9)) lookup local
		rule del pref 0
	END
	rxe_rules -6 $na $ip6_a $net6::/64 $pref
	rxe_rules -6 $nb $ip6_b $net6::/64 $((pref + 1))
}

# The words of its IPv6 address $2 in a GID of device $1
rxe_addressed6()
{
	grep -q "^$net6:0000:0000:0000:000${2##*:}" /sys/class/infiniband/"$1"/ports/1/gids/*
}

# rxe_pair_more N: as many more pairs of addresses, at most 16, in rxe_pairs: "A,B A,B ..."
rxe_pair_more()
{
	local i lines=()

	rxe_pairs=''
	for ((i = 16; i < 16 + $1; i++)); do
		lines+=("addr add $net.$i/24 dev $na" "addr add $net.$((i + 16))/24 dev $nb")
		rxe_pairs+="${rxe_pairs:+ }$net.$i,$net.$((i + 16))"
	done
	lines+=("rule add pref $((pref + 1)) from $net.16/28 to $net.16/28 lookup local"
		"rule add pref $((pref + 1)) from $net.32/28 to $net.32/28 lookup local"
		"rule add pref $((pref + 2)) from $net.16/28 lookup $pref"
		"rule add pref $((pref + 2)) from $net.32/28 lookup $((pref + 1))")
	printf '%s\n' "${lines[@]}" | ip -4 -batch -
	wait_for 20 rxe_addressed $a $net.$((i - 1))
	wait_for 20 rxe_addressed $b $net.$((i + 15))
}

rxe_addressed()
{
	local gid

	gid=$(printf 'ffff:%02x%02x:%02x%02x' ${2//./ })
	grep -q "$gid" /sys/class/infiniband/"$1"/ports/1/gids/*
}

rxe_pair_up()
{
	modprobe -q rdma_rxe || [ -e /sys/module/rdma_rxe ] || skip_all "no rdma_rxe here"
	ip -batch - <<-END
		link add $na mtu 4200 type veth peer name $nb mtu 4200
		addr add $ip_a/24 dev $na
		addr add $ip_b/24 dev $nb
		link set $na up
		link set $nb up
		rule add pref $((pref + 9)) lookup local
		rule del pref 0
	END
	rxe_route $na $ip_a $pref
	rxe_route $nb $ip_b $((pref + 1))
	[ -z "${net6:-}" ] || rxe_pair_up6
	rdma link add $a type rxe netdev $na && rdma link add $b type rxe netdev $nb ||
		{ echo "Bail out! no RDMA device"; exit 1; }
	wait_for 20 rxe_addressed $a $ip_a
	wait_for 20 rxe_addressed $b $ip_b
	if [ -n "${net6:-}" ]; then
		wait_for 20 rxe_addressed6 $a $ip6_a
		wait_for 20 rxe_addressed6 $b $ip6_b
	fi
}
