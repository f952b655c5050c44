#!/bin/sh
# Makes a virtual environment that the demo, the tests and the benchmarks use:
#   setup-python.sh newest|oldest     prints the path of its python
# It has what requirements-NAME.txt beside this file says, and lies in .cache of
# the checkout; a second run with the same requirements does nothing. PYTHON names
# the interpreter to make it with; without it the first of python3, python3.13,
# python3.12, python3.11 that fits.
set -eu
umask 022 # cells run as another user when the agent is root: that user has to read what is made

here=$(cd "$(dirname "$0")" && pwd)
stranger=65534 # nobody

say() { echo "setup-python: $*" >&2; }

# as_stranger COMMAND ... runs it as an unprivileged user, or as it is when this
# isn't run by root. Through a shell: setpriv itself still starts what only root may.
as_stranger() {
	if [ "$(id -u)" = 0 ] && command -v setpriv >/dev/null; then
		(cd / && setpriv --reuid $stranger --regid $stranger --clear-groups sh -c '"$0" "$@"' "$@")
	else
		"$@"
	fi
}

# fits PYTHON: it starts, is of a version in the range, can make environments, and
# can be started by an unprivileged user too (one under /root can't).
fits() {
	real=$("$1" -c 'import sys; print(sys.executable)' 2>/dev/null) || return 1
	as_stranger "$real" -c '
import sys, venv, ensurepip
low, high = (tuple(map(int, a.split("."))) for a in sys.argv[1:])
sys.exit(not low <= sys.version_info[:2] <= high)' $low $high >/dev/null 2>&1
}

# pick prints the interpreter to use.
pick() {
	for p in python3 /usr/bin/python3 python3.13 /usr/bin/python3.13 python3.12 /usr/bin/python3.12 python3.11 /usr/bin/python3.11; do
		if fits "$p"; then echo "$p"; return; fi
	done
	return 1
}

name=${1:-}
want=$here/requirements-$name.txt low=3.11 high=3.13
[ $# = 1 ] && [ -f "$want" ] || { say "usage: setup-python.sh newest|oldest"; exit 2; }
[ "$name" = oldest ] || high=3.99

cache=$(dirname "$here")/.cache
if ! as_stranger test -x "$(dirname "$here")"; then # a checkout of root's that nobody else can enter
	cache=/var/tmp/cellard-$(printf %s "$cache" | cksum | cut -d' ' -f1)
fi
venv=$cache/venv-$name
mkdir -p "$cache"
exec 9>"$venv.lock" # two runs at once make one environment
flock 9

if ! [ -x "$venv/bin/python" ] || ! cmp -s "$want" "$venv/requirements.stamp"; then
	if [ -n "${PYTHON:-}" ]; then
		python=$PYTHON
		fits "$python" || {
			say "PYTHON=$PYTHON is not what is wanted: Python $low to $high with venv and ensurepip, which an unprivileged user can start too"
			exit 1
		}
	else
		python=$(pick) || { "$here/install.sh" python3 python3-venv && python=$(pick); } || {
			say "no Python $low to $high with venv and ensurepip was found: install one, or set PYTHON"
			exit 1
		}
	fi
	say "making $venv with $("$python" -V 2>&1): a minute or so"
	rm -rf "$venv"
	"$python" -m venv "$venv"
	"$venv/bin/python" -m pip install -q --disable-pip-version-check --no-input --prefer-binary -r "$want" >&2
	cp "$want" "$venv/requirements.stamp"
fi
echo "$venv/bin/python"
