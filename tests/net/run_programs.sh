#!/bin/bash
# SPDX-License-Identifier: MIT OR GPL-2.0
# timeout: 400
# Programs of others as they are, larger ones, at both ends of what they do: bytes by checksum, and
# the daemon that has the sockets has counted them. `scripts/deps bench` has the servers: as packages
# they begin to serve where they are installed, which no test is to do to a machine.

# shellcheck disable=SC2317 # functions that wait_for calls
# shellcheck source=tests/cli/lib/tap.sh
. "$(dirname "$0")/../cli/lib/tap.sh"
# shellcheck source=tests/net/lib/programs.sh
. "$(dirname "$0")/lib/programs.sh"

ringgated=$build/tools/ringgated
command -v python3 >/dev/null || skip_all "python3 is not installed"
mkdir "$tmp/www" "$tmp/run"
export XDG_RUNTIME_DIR=$tmp/run
head -c 5000000 /dev/urandom >"$tmp/www/file"
head -c 1000 "$tmp/www/file" >"$tmp/www/small"
sum=$(sha256sum <"$tmp/www/file" | cut -d' ' -f1)
cp "$(dirname "$0")/lib/"{git_http,program_says}.py "$tmp"
gateway_with_sockets 'allow any connect any 127.0.0.0/8 any' 'allow any listen any any'
inside=(timeout $((100 * slow)) "$ringgate" run --socket "$tmp/r" --loopback served)
next_port=$((20000 + $$ % 10000))
# new_port: $port is one that nobody has had here
new_port() { port=$next_port next_port=$((next_port + 1)); }
# Of one test: what the daemon has counted in it
note() { before="$(count received) $(count sent)"; }
carried()
{
	local way=$1 least=$2 was=${before% *}
	[ "$way" = received ] || was=${before#* }
	ok "... by the daemon's sockets, $way" test $(($(count "$way") - was)) -ge "$least"
}
# has NAME...: are these installed? One that is not: $missing
has()
{
	for missing; do
		command -v "$missing" >/dev/null || [ -x "/usr/sbin/$missing" ] || return 1
	done
}
PATH+=:/usr/sbin

# ---- nginx: a master, two workers; wrk ----

# nginx_at OPTION NAME COMMAND...: it listens at $port
nginx_at()
{
	local option=$1 name=$2
	shift 2
	new_port
	cat >"$tmp/$name.conf" <<-END
		daemon off;
		worker_processes 2;
		pid $tmp/$name.pid;
		error_log stderr;
		$([ "$(id -u)" != 0 ] || echo "user root;")
		events { worker_connections 512; }
		http {
			log_format pid '\$pid';
			access_log $tmp/$name.log pid;
			client_body_temp_path $tmp/$name.body;
			proxy_temp_path $tmp/$name.proxy;
			fastcgi_temp_path $tmp/$name.fastcgi;
			uwsgi_temp_path $tmp/$name.uwsgi;
			scgi_temp_path $tmp/$name.scgi;
			sendfile on;
			server { listen 127.0.0.1:$port $option; root $tmp/www; }
		}
	END
	begin "$name" "$@" nginx -c "$tmp/$name.conf"
	nginx=$last
	serves() { curl -sS -o /dev/null "http://127.0.0.1:$port/small"; }
	ok "nginx $option" wait_for 20 serves 2>/dev/null
}
# fetched N: how many of that many at once had the whole file
fetched()
{
	for ((i = 0; i < $1; i++)); do
		curl -sS "http://127.0.0.1:$port/file" 2>>"$tmp/err" | sha256sum &
		fetches+=("$!")
	done >"$tmp/sums"
	wait "${fetches[@]}"
	fetches=()
	grep -c "^$sum" "$tmp/sums"
}
fetches=()
# wrk_says COMMAND...: without errors
wrk_says()
{
	"$@" wrk -t 2 -c 16 -d 2s "http://127.0.0.1:$port/small" >"$tmp/wrk" 2>&1
	requests=$(awk '/requests in/ { print $1 }' "$tmp/wrk")
	ok "... ${requests:-no} requests" test "${requests:-0}" -gt 100
	is "... each answered" "$(grep -E 'Socket errors|Non-2xx' "$tmp/wrk")" ""
}
if has nginx curl; then
	for option in "" reuseport; do
		note
		nginx_at "$option" nginx "${inside[@]}"
		is "... has the file for 12 at once" "$(fetched 12)" 12
		carried sent 60000000
		workers() { serves; [ "$(sort -u "$tmp/nginx.log" | wc -l)" = 2 ]; }
		ok "... of which each worker has some" wait_for 20 workers
		if has wrk; then
			wrk_says
			carried sent $((${requests:-0} * 1000))
		fi
		end "$nginx" -QUIT
		is "... and ends as it is told" "$?" 0
		rm -f "$tmp/nginx.log"
	done
	if has wrk; then
		nginx_at "" outer
		note
		wrk_says "${inside[@]}"
		carried received $((${requests:-0} * 1000))
		end "$nginx"
	fi
	has wrk || skip "wrk" "it is not installed"
else
	skip "nginx" "$missing is not installed"
fi

# ---- iperf3 ----

if has iperf3; then
	for at in inside outside; do
		new_port
		server=("${inside[@]}") client=()
		[ $at = inside ] || client=("${inside[@]}") server=()
		begin iperf "${server[@]}" iperf3 -s -B 127.0.0.1 -p "$port"
		iperf=$last
		for how in "" "-P 4" "-R" "--bidir" "-u -b 50M" "-u -b 50M -R"; do
			note
			measures()
			{
				# shellcheck disable=SC2086 # some are two words
				"${client[@]}" iperf3 -J -c 127.0.0.1 -p "$port" -t 1 $how >"$tmp/iperf.json" 2>"$tmp/err"
			}
			ok "iperf3 $how, its server $at" wait_for 20 measures
			# The end's sum, in bytes; a datagram's receiver has lost some.
			moved=$(json 'sum(j["end"].get(k, {}).get("bytes", 0) for k in ("sum_received", "sum_received_bidir_reverse")) or j["end"]["sum"]["bytes"]' <"$tmp/iperf.json")
			way=sent
			[[ $at = outside ]] || way=received
			[[ $how != *-R ]] || way=$([ $way = sent ] && echo received || echo sent)
			if [ "$how" = --bidir ]; then
				is "... both ways" "$(($(count received) - ${before% *} + $(count sent) - ${before#* } >= moved))" 1
			else
				carried "$way" $((moved * 9 / 10))
			fi
			ok "... ${moved:-no} bytes" test "${moved:-0}" -gt 1000000
		done
		end "$iperf"
	done
else
	skip "iperf3" "it is not installed"
fi

# ---- git, by its smart protocol over TLS ----

if has git openssl && git --exec-path >/dev/null && [ -x "$(git --exec-path)/git-remote-https" ]; then
	export GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_SYSTEM=/dev/null GIT_TERMINAL_PROMPT=0
	export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a
	git init -q "$tmp/one"
	cp "$tmp/www/file" "$tmp/one"
	git -C "$tmp/one" add . && git -C "$tmp/one" commit -qm one
	mkdir "$tmp/repos"
	git clone -q --bare "$tmp/one" "$tmp/repos/r.git"
	git -C "$tmp/repos/r.git" config http.receivepack true
	openssl req -x509 -newkey rsa:2048 -nodes -keyout "$tmp/key" -out "$tmp/cert" -subj /CN=127.0.0.1 \
		-addext subjectAltName=IP:127.0.0.1 -days 2 2>/dev/null
	export GIT_SSL_CAINFO=$tmp/cert
	for at in outside inside; do
		server=() client=("${inside[@]}")
		[ $at = outside ] || server=("${inside[@]}") client=()
		begin git "${server[@]}" "$py" -u "$tmp/git_http.py" "$tmp/repos" "$tmp/cert" "$tmp/key"
		git=$last
		url=https://127.0.0.1:$(port git)/r.git
		note
		rm -rf "$tmp/two"
		run "${client[@]}" git clone -q "$url" "$tmp/two"
		is "git clone over https, its server $at" "$rc $(sha256sum <"$tmp/two/file")" "0 $sum  -"
		carried "$([ $at = inside ] && echo sent || echo received)" 5000000
		note
		head -c 3000000 /dev/urandom >"$tmp/two/$at"
		git -C "$tmp/two" add . && git -C "$tmp/two" commit -qm two
		run "${client[@]}" git -C "$tmp/two" -c http.postBuffer=16777216 push -q
		is "... and git push" "$rc $(git -C "$tmp/repos/r.git" rev-parse HEAD)" \
			"0 $(git -C "$tmp/two" rev-parse HEAD)"
		carried "$([ $at = inside ] && echo received || echo sent)" 3000000
		run git -C "$tmp/repos/r.git" fsck --full
		is "... all of it" "$rc" 0
		end "$git"
	done
else
	skip "git over https" "${missing:-git-remote-https} is not installed"
fi

# ---- Java: classes that block, and those of java.nio ----

if has javac java && javac -d "$tmp" "$(dirname "$0")/lib/Program.java" 2>"$tmp/err"; then
	export JAVA_TOOL_OPTIONS=-XX:TieredStopAtLevel=1
	java=(java -cp "$tmp" Program)
	program run_program.py
	begin peer env -C "$tmp/www" "$py" -u "$tmp/program" web
	peer=$last
	url=http://127.0.0.1:$(port peer)/file
	for how in url client; do
		note
		run "${inside[@]}" "${java[@]}" $how "$url"
		is "java, $how" "$rc $out" "0 $sum"
		carried received "$([ $how = url ] && echo 5000000 || echo 40000000)"
	done
	run "${inside[@]}" "${java[@]}" refused
	is "... where nobody listens" "$rc $out" "0 refused"
	end "$peer"
	for how in threads selector; do
		note
		begin java "${inside[@]}" "${java[@]}" $how
		java_at=$last
		run "${java[@]}" echoed "$(port java)"
		is "java, a server, $how" "$rc $out" "0 same"
		run "${inside[@]}" "${java[@]}" echoed "$(port java)"
		is "... asked by one that is inside, too" "$rc $out" "0 same"
		carried sent 6000000
		end "$java_at"
	done
	program udp_program.py
	begin peer "$py" -u "$tmp/program" echo
	run "${inside[@]}" "${java[@]}" datagrams "$(port peer)"
	is "java, datagrams" "$rc $out" "0 same"
	end "$last"
	unset JAVA_TOOL_OPTIONS
else
	skip "java" "${missing:-a javac that this one takes} is not installed"
fi

# ---- ssh ----

# sshd_at COMMAND...: at $port
sshd_at()
{
	new_port
	begin sshd "$@" "$(command -v sshd)" -D -e -f /dev/null -p "$port" -h "$tmp/host" -o ListenAddress=127.0.0.1 \
		-o PidFile=none -o UsePAM=no -o StrictModes=no -o AuthorizedKeysFile="$tmp/user.pub" \
		-o PermitRootLogin=prohibit-password -o Subsystem="sftp internal-sftp"
	sshd=$last
}
# ssh_in COMMAND...: what ssh(1) or scp(1) has of it
options=(-q -F /dev/null -i "$tmp/user" -o BatchMode=yes -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null
	-o ConnectTimeout=10)
if has ssh sshd ssh-keygen scp; then
	ssh-keygen -q -t ed25519 -N '' -f "$tmp/host" && ssh-keygen -q -t ed25519 -N '' -f "$tmp/user"
	[ "$(id -u)" != 0 ] || mkdir -p /run/sshd
	client=()
	lets() { "${client[@]}" ssh "${options[@]}" -p "$port" 127.0.0.1 true </dev/null 2>/dev/null; }
	sshd_at
	if wait_for 10 lets; then
		for at in outside inside; do
			client=("${inside[@]}")
			if [ $at = inside ]; then
				client=()
				sshd_at "${inside[@]}"
			fi
			ok "ssh, its server $at" wait_for 20 lets
			note
			run "${client[@]}" ssh "${options[@]}" -p "$port" 127.0.0.1 cat "$tmp/www/file" \| sha256sum
			is "... runs a command" "$rc $out" "0 $sum  -"
			"${client[@]}" ssh "${options[@]}" -p "$port" 127.0.0.1 cat "$tmp/www/file" >"$tmp/got" 2>"$tmp/err"
			ok "... has a file" cmp "$tmp/got" "$tmp/www/file"
			carried "$([ $at = inside ] && echo sent || echo received)" 5000000
			note
			run "${client[@]}" scp "${options[@]}" -P "$port" "$tmp/www/file" "127.0.0.1:$tmp/copied"
			ok "... scp takes one there" cmp "$tmp/copied" "$tmp/www/file"
			carried "$([ $at = inside ] && echo received || echo sent)" 5000000
			rm -f "$tmp/copied"
			end "$sshd"
		done
	else
		skip "ssh" "no sshd lets this user in here"
	fi
else
	skip "ssh" "$missing is not installed"
fi
is "no directory is left" "$(ls -A "$tmp/run")" ""
finish
