#!/bin/sh
# Runs every fuzz target of the module for FUZZTIME each: fuzz.sh
# One after another: go test takes one target at a time.
set -eu
go=${GO:-go}
cd "$(dirname "$0")/.."
failed=0
for package in $("$go" list ./...); do
	targets=$("$go" test -list '^Fuzz' "$package" | grep '^Fuzz' || true)
	for target in $targets; do
		echo "== $package $target"
		"$go" test -run '^$' -fuzz "^$target\$" -fuzztime "${FUZZTIME:-30s}" "$package" || failed=1
	done
done
exit $failed
