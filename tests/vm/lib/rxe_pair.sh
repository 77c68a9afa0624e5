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

ip_a=$net.1 ip_b=$net.2

# Contexts have to be closed by then, else the kernel lets a removal wait.
rxe_pair_down()
{
	local dev p

	for dev in $a $b; do
		[ ! -e /sys/class/infiniband/$dev ] || timeout 30 rdma link del $dev
	done
	[ ! -e /sys/class/net/$na ] || ip link del $na
	if ip rule | grep -q "^$((pref + 9)):"; then
		ip rule add pref 0 lookup local
		for p in $pref $((pref + 1)) $((pref + 2)) $((pref + 3)) $((pref + 9)); do
			while ip rule del pref "$p" 2>/dev/null; do :; done
		done
	fi
}

# Both addresses are this machine's own: rules send what goes from one to the other
# over the wire, and take what arrives there as local.
rxe_route()
{
	local dev=$1 addr=$2 table=$3

	sysctl -qw net.ipv4.conf.all.rp_filter=0 "net.ipv4.conf.$dev.rp_filter=0" \
		"net.ipv4.conf.$dev.accept_local=1" "net.ipv4.conf.$dev.arp_ignore=1" \
		"net.ipv4.conf.$dev.arp_announce=2"
	ip -batch - <<-END
		route replace $net.0/24 dev $dev src $addr table $table
		rule add pref $pref iif $dev lookup local
		rule add pref $((pref + 1)) from $addr to $addr lookup local
		rule add pref $((pref + 2)) from $addr lookup $table
		rule add pref $((pref + 3)) oif $dev lookup $table
	END
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
	rdma link add $a type rxe netdev $na && rdma link add $b type rxe netdev $nb ||
		{ echo "Bail out! no RDMA device"; exit 1; }
	wait_for 20 rxe_addressed $a $ip_a
	wait_for 20 rxe_addressed $b $ip_b
}
