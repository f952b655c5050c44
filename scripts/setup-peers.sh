#!/bin/sh
# Installs the kernels that the benchmark of the languages compares ours with, as
# kernelspecs peer-LANGUAGE, and prints the directory for JUPYTER_PATH. R's peer is the
# bare IRkernel, which scripts/setup-languages.sh installs. Go has none: gonb has to be
# built from its source, which the module proxy did not have.
set -eu
umask 022
here=$(cd "$(dirname "$0")" && pwd)
python=$("$here/setup-python.sh" peers)
prefix=$(dirname "$(dirname "$python")")
specs=$prefix/share/jupyter/kernels

spec() { # NAME LANGUAGE INTERRUPT ARGV-AS-JSON
	mkdir -p "$specs/$1"
	printf '{"argv": [%s], "display_name": "%s", "language": "peer", "interrupt_mode": "%s"}\n' "$4" "$2" "$3" >"$specs/$1/kernel.json"
}
spec peer-bash bash_kernel signal "\"$python\", \"-m\", \"bash_kernel\", \"-f\", \"{connection_file}\""
spec peer-javascript Deno message "\"$prefix/bin/deno\", \"jupyter\", \"--kernel\", \"--conn\", \"{connection_file}\""
spec peer-typescript Deno message "\"$prefix/bin/deno\", \"jupyter\", \"--kernel\", \"--conn\", \"{connection_file}\""
spec peer-java JJava message "\"java\", \"-jar\", \"$specs/java/jjava-launcher.jar\", \"$specs/java/jjava.jar\", \"{connection_file}\""
spec peer-r IRkernel signal "\"R\", \"--no-save\", \"--no-restore\", \"--slave\", \"-e\", \"IRkernel::main()\", \"--args\", \"{connection_file}\""
echo "$prefix/share/jupyter"
