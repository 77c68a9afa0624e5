#!/bin/bash
# SPDX-License-Identifier: MIT OR GPL-2.0
# ringgate cluster keygen, pubkey and show: keys that WireGuard's own tool takes for its own,
# files that are never written over, and what is told of those that are there.

# shellcheck source=tests/cli/lib/tap.sh
. "$(dirname "$0")/lib/tap.sh"

unset RGATE_CLUSTER RGATE_NODE
cd "$tmp" || exit 1
keygen() { run "$ringgate" cluster keygen "$@"; }
show() { run "$ringgate" cluster show "$@"; }
pubkey() { "$ringgate" cluster pubkey; }
key='[A-Za-z0-9+/]{42}[AEIMQUYcgkosw048]='

# As wg genkey and wg pubkey
first=$("$ringgate" cluster keygen 2>err)
like "keygen: a private key" "$?/$(<err)/$first" "^0//$key$"
second=$("$ringgate" cluster keygen)
[ "$second" != "$first" ]
result $? "... each time another one"
# Alice's of RFC 7748
is "pubkey: what the RFC says" "$(echo dwdtCnMYpX08FsFyUbJmRd9ML4frwJkqsXf7pR25LCo= | pubkey)" \
	"hSDwCYkwp1R0i33ctD73Wg2/Og0mOBr066SpjqqbTmo="
is "... without a newline behind it, too" "$(printf %s "$first" | pubkey)" "$(echo "$first" | pubkey)"
if command -v wg >/dev/null; then
	is "... what wg says" "$(echo "$first" | pubkey)" "$(echo "$first" | wg pubkey)"
	wg=$(wg genkey)
	is "... of a key of wg's" "$(echo "$wg" | pubkey)" "$(echo "$wg" | wg pubkey)"
else
	skip "what wg says" "wg is not installed"
	skip "... of a key of wg's" "wg is not installed"
fi
for wrong in "" "x" "$first$first" "$first"$'\n'"$first" " $first" "${first%=}" "$first "; do
	printf '%s\n' "$wrong" | "$ringgate" cluster pubkey >out 2>err
	is "pubkey: not of '${wrong//$'\n'/ }'" "$? $(cat out)" "1 "
done
is "... nor with a NUL" "$(printf '%s\0' "$first" | pubkey 2>/dev/null; echo $?)" 1

# To a file
(umask 000; keygen own.key -n 3; echo "$rc/$err/$out" >said)
is "keygen FILE: the line for the cluster file" "$(<said)" "0//public-key 3 $(pubkey <own.key)"
is "... mode and length, whatever the umask" "$(stat -c '%a %s' own.key)" "600 45"
before=$(<own.key)
keygen own.key -n 3
is "a file that is there: status 1, no output" "$rc/$out" "1/"
like "... what to type" "$err" "is there already: .ringgate cluster pubkey <own.key. .* --force"
is "... and it is as it was" "$(<own.key)" "$before"
ln -s nowhere link
keygen link
is "nor through a link" "$rc/$out/$([ -e nowhere ] || echo none)" "1//none"
keygen own.key -n 3 --force
is "--force: another key" "$rc/$err/$out" "0//public-key 3 $(pubkey <own.key)"
[ "$before" != "$(<own.key)" ]
result $? "... in its place"
is "... of the same mode, and nothing else is left" "$(stat -c %a own.key) $(echo own.key*)" \
	"600 own.key"
if [ "$(id -u)" = 0 ]; then
	skip "a directory that is not ours" "root may write everywhere"
else
	keygen /etc/ringgate-test.key
	like "a directory that is not ours" "$rc $err" "^1 .*no permission to write there"
fi
if [ -e /dev/full ]; then
	"$ringgate" cluster keygen >/dev/full 2>err
	is "standard output that takes no more" "$?" 1
fi

# By the cluster file, which has no public key yet
mkdir conf
cat >conf/cluster.conf <<-END
	provider local
	node 1 gateway $tmp/n1 gw
	node 4 compute $tmp/n4
END
show -C conf/cluster.conf
is "show: no keys yet: status 1" "$rc" 1
like "... what to type" "$err" "keygen -C conf/cluster.conf -n 1.*keygen -C conf/cluster.conf -n 4"
like "... and the table nevertheless" "$out" "1 +gw +gateway +$tmp/n1 +yes +- +missing"
keygen -C conf/cluster.conf -n gw
is "keygen -n NAME" "$rc/$err/$out" "0//public-key 1 $(pubkey <conf/node1.key)"
echo "$out" >>conf/cluster.conf
keygen -C conf/cluster.conf -n 4
is "keygen -n ID, with one public key there" "$rc/$err/$out" "0//public-key 4 $(pubkey <conf/node4.key)"
echo "$out" >>conf/cluster.conf
show -C conf/cluster.conf
is "show: nothing is wrong: status 0" "$rc/$err" "0/"
like "... a line for each" "$out" "1 +gw +gateway +$tmp/n1 +yes +$key +fits.*4 +node4 +compute +$tmp/n4 +yes +$key +fits"
is "... by the environment" "$(RGATE_CLUSTER=conf/cluster.conf "$ringgate" cluster show)" "$out"
RGATE_NODE=4 show -C conf/cluster.conf --json
is "show --json" "$rc $(json '[(n["id"], n["here"], n["private_key"], n["private_key_file"]) for n in j]' <<<"$out")" \
	"0 [(1, False, 'fits', 'conf/node1.key'), (4, True, 'fits', 'conf/node4.key')]"
is "... public keys" "$(json '" ".join(n["public_key"] for n in j)' <<<"$out")" \
	"$(pubkey <conf/node1.key) $(pubkey <conf/node4.key)"
ok "what keygen made is what a node takes" "$build/tools/ringgated" --check \
	-C conf/cluster.conf -n 4 -s "$tmp/socket"

# What may be wrong with a private key
# state WORD: of node 4's
state()
{
	show -C conf/cluster.conf -n 4 --json
	is "$1" "$rc $(json '[n["private_key"] for n in j if n["id"] == 4][0]' <<<"$out")" "1 $1"
}
chmod 640 conf/node4.key
state exposed
chmod 600 conf/node4.key
echo "$first" >conf/node4.key
state other
like "... what to type" "$err" "pubkey <conf/node4.key"
echo x >conf/node4.key
state damaged
rm conf/node4.key
state missing
show -C conf/cluster.conf -n gw --json
is "elsewhere none is missed" "$rc $(json '[n["private_key"] for n in j]' <<<"$out")" "0 ['fits', None]"

# Where the file says, and by address
cat >verbs.conf <<-END
	provider verbs
	private-key $tmp/keys/%i/private
	node 0 gateway 192.0.2.1:7500
	node 6 compute 127.0.0.1
END
mkdir -p keys/6
keygen -C verbs.conf
is "the node that has an address of this machine" "$rc/$out" "0/public-key 6 $(pubkey <keys/6/private)"
echo "$out" >>verbs.conf
show -C verbs.conf
is "show: another node has no public key: status 1" "$rc" 1
like "... this one is here" "$out" "6 +node6 +compute +127.0.0.1 +yes +[^ ]+ +fits"
like "... and that one is not" "$out" "0 +node0 +gateway +192.0.2.1:7500 +- +- +-"
show -C verbs.conf -n 9
is "no such node" "$rc/$out" "2/"
finish
