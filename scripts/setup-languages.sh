#!/bin/sh
# Sets up the languages that the tests run on, beside Python (setup-python.sh):
#   setup-languages.sh     prints what the tests are to know, as lines for eval
# R with IRkernel and a JDK come as Debian packages, Node.js by setup-node.sh. What
# is there already stays as it is, and a second run takes a second. Where it may not
# install, or can't, it says what is missing and fails.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
stranger=65534 # nobody

say() { echo "setup-languages: $*" >&2; }

# as_stranger COMMAND ... runs it as an unprivileged user, or as it is when this
# isn't run by root: cells run as such a user, so it is what must be able to.
as_stranger() {
	if [ "$(id -u)" = 0 ] && command -v setpriv >/dev/null; then
		(cd / && setpriv --reuid $stranger --regid $stranger --clear-groups sh -c '"$0" "$@"' "$@")
	else
		"$@"
	fi
}

# has_r: R runs, and has the packages that the tests use. They are looked for, not
# loaded: that takes a tenth of the time.
has_r() {
	for package in IRkernel ggplot2 tibble; do
		set -- "$@" -e "stopifnot(nzchar(system.file(package = '$package')))"
	done
	as_stranger Rscript --vanilla "$@" >/dev/null 2>&1
}

# has_jdk: javac of version 17 or newer, and so jdk.jshell.
has_jdk() {
	release=$(as_stranger "${JAVA_HOME:+$JAVA_HOME/bin/}javac" -version 2>&1) || return 1
	release=${release#javac }
	release=${release%%[!0-9]*}
	[ "${release:-0}" -ge 17 ]
}

[ $# = 0 ] || { say "usage: setup-languages.sh"; exit 2; }
packages=
has_r || packages="$packages r-base-core r-cran-irkernel r-cran-ggplot2 r-cran-tibble"
has_jdk || packages="$packages openjdk-17-jdk-headless"
if [ -n "$packages" ]; then
	# shellcheck disable=SC2086 # words
	"$here/install.sh" $packages
	has_r || { say "R has been installed, but an unprivileged user can't run it with IRkernel, ggplot2 and tibble: try Rscript -e 'library(IRkernel)'"; exit 1; }
	has_jdk || { say "a JDK has been installed, but javac -version does not say 17 or newer: set JAVA_HOME or PATH to it"; exit 1; }
fi
oldest=$("$here/setup-node.sh" 20)
newest=$("$here/setup-node.sh" 24)

# quote TEXT writes it as one word of a shell.
quote() { printf "'%s'" "$(printf %s "$1" | sed "s/'/'\\\\''/g")"; }

echo "export CELLARD_TEST_NODE=$(quote "$newest")"
echo "export CELLARD_TEST_NODES=$(quote "$oldest:$newest")"
