# SPDX-License-Identifier: MIT OR GPL-2.0
# shellcheck shell=bash disable=SC2154 # variables are the caller's
#
# Debian's packages from suites that this machine does not use: nothing is installed, and
# its lists stay as they are. To be sourced with these set:
#	me		name of the script
#	cache		directory for the lists of other suites

# shellcheck source=scripts/lib/progress.sh
. "${BASH_SOURCE[0]%/*}/progress.sh"

keyring=/usr/share/keyrings/debian-archive-keyring.gpg
apt() { local tool=$1; shift; "apt-$tool" "${apt_options[@]}" "$@"; }

# The Debian mirror that this machine uses.
find_mirror()
{
	# shellcheck disable=SC2016 # a format of apt
	apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' \
		'Origin: Debian' 'Label: Debian' | awk '!/^cdrom:/ && !n++'
}

# Read the lists of the suites in use.
read_lists()
{
	local log=$cache/apt.log

	[ ${#apt_options[@]} -gt 0 ] || [ "$(id -u)" = 0 ] ||
		die "the package lists were never read: run apt-get update as root"
	say "reading package lists"
	apt_get "$log" update || { tail -n 20 "$log" >&2; die "cannot read the package lists"; }
}

# From here on apt() means suite $1, and architecture $2 where it is not this machine's;
# its own packages are there as NAME:amd64. Callers take turns (they hold a lock).
use_suite()
{
	local dir=$cache/apt-$1${2:+-$2}

	[ -e "$keyring" ] || die "$keyring is missing: install debian-archive-keyring"
	mirror=$(find_mirror)
	[ -n "$mirror" ] || { read_lists; mirror=$(find_mirror); }
	[ -n "$mirror" ] || die "apt on this machine knows no mirror of Debian"
	rm -rf "$dir"
	mkdir -p "$dir"/{none,lists/partial,cache/archives/partial}
	: >"$dir/status"
	echo "deb [arch=amd64${2:+,$2} signed-by=$keyring] $mirror $1 main" >"$dir/sources.list"
	cat >"$dir/apt.conf" <<-END
	Dir::Etc::SourceList "$dir/sources.list";
	Dir::Etc::SourceParts "$dir/none";
	Dir::Etc::Preferences "$dir/none/preferences";
	Dir::Etc::PreferencesParts "$dir/none";
	Dir::State::Lists "$dir/lists";
	Dir::State::Status "$dir/status";
	Dir::Cache "$dir/cache";
	APT::Sandbox::User "root";
	Acquire::Languages "none";
	#clear APT::Update::Post-Invoke;
	#clear APT::Update::Post-Invoke-Success;
	END
	[ -z "${2:-}" ] ||
		echo "APT::Architecture \"$2\"; APT::Architectures { \"$2\"; \"amd64\"; };" \
			>>"$dir/apt.conf"
	apt_options=(-c "$dir/apt.conf")
}

# The packages that package $1 depends on and whose names match $2 (extended
# regular expression). None is not an error: the caller looks at what is printed.
points_to()
{
	apt cache show --no-all-versions "$1" 2>/dev/null |
		sed -n 's/^Depends: //p' | tr ',|' '\n\n' | awk '{ print $1 }' |
		grep -E "^($2)" || true
}

# Download packages $2... into directory $1 and unpack them into $1/root.
unpack()
{
	local dir=$1 deb size; shift

	mkdir -p "$dir/debs" "$dir/root"
	size=$(apt cache show --no-all-versions "$@" | awk '/^Size:/ { n += $2 } END { printf "%d", n / 1e6 }')
	say "downloading $*: $size MB"
	(cd "$dir/debs" && apt_get ../apt.log -o APT::Sandbox::User=root download "$@") ||
		{ tail -n 20 "$dir/apt.log" >&2; die "could not download $*"; }
	for deb in "$dir"/debs/*.deb; do
		dpkg-deb -x "$deb" "$dir/root"
	done
	rm -rf "$dir/debs"
}
