#!/bin/sh
# Installs Debian packages where it may: install.sh PACKAGE ...
# As root with apt-get it installs them; else it says what to do, and fails.
set -eu
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
	echo "installing $*" >&2
	export DEBIAN_FRONTEND=noninteractive
	{ apt-get update -q && apt-get -o DPkg::Lock::Timeout=600 install -yq --no-install-recommends "$@"; } </dev/null >&2
else
	echo "missing: $*. On Debian and Ubuntu, as root: apt-get install -y $* (elsewhere: your system's packages of the same purpose)" >&2
	exit 1
fi
