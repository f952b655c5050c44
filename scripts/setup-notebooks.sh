#!/bin/sh
# Fetches the notebooks that cellard run is tried on, and prints the directory that they
# lie in: those of the source distributions in notebooks.txt, with what lies beside them.
# A second run does nothing. setup-python.sh makes the environment that it needs.
set -eu
umask 022

here=$(cd "$(dirname "$0")" && pwd)
python=$("$here/setup-python.sh" notebook)
dir=$(dirname "$(dirname "$(dirname "$python")")")/notebooks

exec 9>"$dir.lock" # two runs at once fetch once
flock 9
if ! cmp -s "$here/notebooks.txt" "$dir/stamp"; then
	echo "setup-notebooks: fetching the notebooks" >&2
	rm -rf "$dir"
	mkdir -p "$dir/sdists"
	# pip looks into what it downloads: by the build tools of the environment, which are pinned.
	"$python" -m pip download -q --disable-pip-version-check --no-input --no-deps --no-build-isolation \
		--no-binary :all: --require-hashes -r "$here/notebooks.txt" -d "$dir/sdists" >&2
	for f in "$dir"/sdists/*.tar.gz; do tar -xzf "$f" -C "$dir" --no-same-owner; done
	rm -r "$dir/sdists"
	cp "$here/notebooks.txt" "$dir/stamp"
fi
echo "$dir"
