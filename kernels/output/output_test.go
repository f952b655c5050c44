package output

import (
	"encoding/base64"
	"encoding/json"
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
	"golang.org/x/sys/unix"

	"github.com/cellard/cellard/internal/procfs"
	"github.com/cellard/cellard/protocol/jupyter/kernel"
	"github.com/cellard/cellard/protocol/jupyter/kernel/kerneltest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const patience = time.Minute

func until(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !holds(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not so: %s", what)
		}
	}
}

func TestStreams(t *testing.T) {
	s, stdout, stderr, err := NewStreams()
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	fmt.Fprint(stdout, "nobody's")
	first, second := &kerneltest.Recorder{}, &kerneltest.Recorder{}
	s.SetCell(kernel.NewCell("", first))
	for range 100 {
		fmt.Fprint(stdout, "é")
	}
	for range 100 {
		fmt.Fprint(stderr, "☃")
	}
	stdout.Write([]byte("\xe2\x98")) // the half of one
	s.Drain()
	if got := first.Stream("stdout"); got != strings.Repeat("é", 100)+"\uFFFD" {
		t.Errorf("stdout %q", got)
	}
	if got := first.Stream("stderr"); got != strings.Repeat("☃", 100) {
		t.Errorf("stderr %q", got)
	}
	if n := len(first.Messages()); n > 50 {
		t.Errorf("%d messages for 200 small writes", n)
	}
	fmt.Fprint(stdout, "late") // still the first one's, without a Drain
	until(t, "late output comes", func() bool { return strings.HasSuffix(first.Stream("stdout"), "late") })
	fmt.Fprint(stdout, "very late")
	s.SetCell(kernel.NewCell("", second))
	fmt.Fprint(stdout, "second")
	s.Drain()
	if got := first.Stream("stdout"); !strings.HasSuffix(got, "very late") {
		t.Errorf("the first cell's: %q", got)
	}
	if got := second.Stream("stdout"); got != "second" {
		t.Errorf("the second cell's: %q", got)
	}
	if s.Ended() {
		t.Error("it has ended while there are writers")
	}
	stdout.Close()
	stderr.Close()
	until(t, "it ends with its writers", s.Ended)
}

// streams are Streams and their writing ends, closed when the test is over.
func streams(t *testing.T) (s *Streams, stdout, stderr *os.File) {
	t.Helper()
	s, stdout, stderr, err := NewStreams()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		stdout.Close()
		stderr.Close()
		s.Close()
	})
	return s, stdout, stderr
}

func TestStreamsHandOn(t *testing.T) {
	s, stdout, _ := streams(t)
	r := &kerneltest.Recorder{}
	s.SetCell(kernel.NewCell("", r))
	fmt.Fprint(stdout, "a\xe2\x98")
	s.HandOn()
	if got := r.Stream("stdout"); got != "a" {
		t.Errorf("stdout %q", got)
	}
	fmt.Fprint(stdout, "\x83")
	s.HandOn()
	if got := r.Stream("stdout"); got != "a☃" {
		t.Errorf("stdout %q", got)
	}
}

// Of the two, what was written first comes first, whether it is asked for or not.
func TestStreamsOrder(t *testing.T) {
	s, stdout, stderr := streams(t)
	for i := range 200 {
		r := &kerneltest.Recorder{}
		s.SetCell(kernel.NewCell("", r))
		order := []*os.File{stdout, stderr}
		if i%3 == 0 {
			slices.Reverse(order)
		}
		want := ""
		for _, f := range order {
			fmt.Fprint(f, "x")
			want += map[*os.File]string{stdout: "stdout ", stderr: "stderr "}[f]
		}
		if i%2 == 0 {
			s.HandOn()
		}
		until(t, "both come", func() bool { return len(r.Messages()) == 2 })
		got := ""
		for _, m := range r.Messages() {
			got += fmt.Sprint(m.Content["name"], " ")
		}
		if got != want {
			t.Fatalf("turn %d: %s", i, got)
		}
	}
}

// What waits for more is handed on before what comes through the pipes, however that is
// asked for, and is the cell's that it came with.
func TestStreamsBefore(t *testing.T) {
	s, stdout, _ := streams(t)
	r := &kerneltest.Recorder{}
	c := kernel.NewCell("", r)
	s.SetCell(c)
	held := ""
	s.Before(func() { c.Stdout(held); held = "" })
	want := ""
	for i, taken := range []func(){s.HandOn, s.Drain, func() { s.SetCell(nil) }, nil} {
		s.SetCell(c)
		s.Do(func() { held = fmt.Sprint("held ", i, " ") })
		fmt.Fprint(stdout, "piped ", i, "\n")
		want += fmt.Sprintf("held %d piped %d\n", i, i)
		if taken == nil {
			until(t, "text comes", func() bool {
				return strings.HasSuffix(r.Stream("stdout"), "\n") && len(r.Stream("stdout")) == len(want)
			})
		} else {
			taken()
		}
		if got := r.Stream("stdout"); got != want {
			t.Fatalf("%q, want %q", got, want)
		}
	}
	s.Do(func() { held = "kept" })
	if s.HandOn(); r.Stream("stdout") != want {
		t.Error("it was called where there is nothing in the pipes")
	}
}

// A writer that is cut between the bytes of a character, and one that writes much.
func TestStreamsWhole(t *testing.T) {
	s, stdout, stderr, err := NewStreams()
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	defer stderr.Close()
	r := &kerneltest.Recorder{}
	s.SetCell(kernel.NewCell("", r))
	want := strings.Repeat("0123456789☃é𝄞\n", 200_000)
	for b := []byte(want); len(b) > 0; {
		n := min(len(b), 4093)
		if _, err := stdout.Write(b[:n]); err != nil {
			t.Fatal(err)
		}
		b = b[n:]
	}
	stdout.Close()
	s.Drain()
	if got := r.Stream("stdout"); got != want {
		t.Errorf("%d bytes came of %d, or others", len(got), len(want))
	}
}

func TestFile(t *testing.T) {
	dir := t.TempDir()
	write := func(name, content string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	for _, c := range []struct{ name, content, mime, want string }{
		{"t.csv", "a,b\n1,2\n", "text/csv", `"a,b\n1,2\n"`},
		{"P.PNG", "\x89PNG", "image/png", `"` + base64.StdEncoding.EncodeToString([]byte("\x89PNG")) + `"`},
		{"x.svg", "<svg/>", "image/svg+xml", `"\u003csvg/\u003e"`},
		{"x.json", "\uFEFF{\"a\": [1]}", "application/json", `{"a":[1]}`},
		{"x.geojson", "{}", "application/geo+json", `{}`},
		{"x.md", "# \xff", "text/markdown", "\"# \uFFFD\""},
		{"none", "x", "application/octet-stream", `"eA=="`},
	} {
		path := write(c.name, c.content)
		bundle, err := File(path, 100)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		if b, _ := json.Marshal(bundle[c.mime]); string(b) != c.want || bundle["text/plain"] != path {
			t.Errorf("%s: %s of %v", c.name, b, bundle)
		}
	}
	// What isn't JSON is text, and no value that would fail the message.
	if bundle, err := File(write("bad.json", "{"), 100); err != nil || bundle["text/plain"] != "{" || len(bundle) != 1 {
		t.Errorf("bad JSON: %v %v", bundle, err)
	}
	fifo := filepath.Join(dir, "fifo.png")
	if err := unix.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(write("target.txt", "x"), filepath.Join(dir, "link.txt")); err != nil {
		t.Fatal(err)
	}
	if _, err := File(filepath.Join(dir, "link.txt"), 100); err != nil {
		t.Errorf("a link: %v", err)
	}
	for _, path := range []string{fifo, dir, filepath.Join(dir, "no"), write("large.txt", strings.Repeat("x", 101)), "/dev/zero", "/dev/tty"} {
		if bundle, err := File(path, 100); err == nil {
			t.Errorf("%s: shown as %v", path, bundle)
		}
	}
	// Its size is not what is believed: of /proc it is 0.
	if _, err := File("/proc/self/maps", 10); err == nil {
		t.Error("more than the limit was read")
	}
}

func TestFileLimit(t *testing.T) {
	for value, want := range map[string]int64{"": 64 << 20, "123": 123, "0": 64 << 20, "-1": 64 << 20, "x": 64 << 20} {
		t.Setenv("CELLARD_FILE_BYTES", value)
		if n := FileLimit(); n != want {
			t.Errorf("%q: %d", value, n)
		}
	}
}

// What was born since a moment is ended, however it resists, and wherever it went; what
// was there before, the spared, and the kernel's own stay.
func TestReaper(t *testing.T) {
	r := NewReaper()
	own := exec.Command("sh", "-c", "sleep 1000 & while read -r line; do eval \"$line\"; done")
	in, err := own.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Start(own); err != nil {
		t.Fatal(err)
	}
	sleepers := func() (n int) {
		for _, p := range procfs.Family(os.Getpid(), "") {
			if b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", p.PID)); strings.HasPrefix(string(b), "sleep\x00") {
				n++
			}
		}
		return n
	}
	until(t, "the first sleeps", func() bool { return sleepers() == 1 })
	since := procfs.Now()
	fmt.Fprintln(in, "sleep 1001 & (setsid sleep 1002 &); (trap '' INT TERM; exec sleep 1003) & sleep 1004 &")
	until(t, "all sleep", func() bool { return sleepers() == 5 })
	fmt.Fprintln(in, "kill -STOP $!")
	until(t, "one is stopped", func() bool {
		return slices.ContainsFunc(r.Born(since, nil), func(p procfs.Stat) bool { return p.State == 'T' })
	})
	var spared int
	for _, p := range r.Born(since, nil) {
		if b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", p.PID)); strings.HasPrefix(string(b), "sleep\x001001") {
			spared = p.PID
		}
	}
	r.End(since, func(pid int) bool { return pid == spared }, nil)
	if n := sleepers(); n != 2 {
		t.Errorf("%d sleep, wanted the first and the spared: %+v", n, r.Born(since, nil))
	}
	if _, ok := procfs.Read(own.Process.Pid); !ok {
		t.Error("the kernel's own was ended")
	}
	until(t, "orphans were waited for", func() bool {
		for _, p := range procfs.Children(os.Getpid()) {
			if p.State == 'Z' {
				return false
			}
		}
		return true
	})
	in.Close()
	if err := r.Wait(own); err != nil {
		t.Error(err)
	}
	r.Close()
	if n := sleepers(); n != 0 {
		t.Errorf("%d still sleep", n)
	}
}

// What forks another and ends, again and again, ends too, and none of it is missed; what a
// process starts that was there before is left alone. (In this process's own group a chain
// could only be run after: see procfs.KillHalted.)
func TestReaperChains(t *testing.T) {
	r := NewReaper()
	defer r.Close()
	file := filepath.Join(t.TempDir(), "chain")
	if err := os.WriteFile(file, []byte("trap '' INT TERM\n[ $2 -gt 5000 ] || sh $0 $1 $(($2 + 1)) &\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	count := func(mark string) (n int) {
		for _, p := range procfs.All() {
			if procfs.Runs(p.PID, file+"\x00"+mark) {
				n++
			}
		}
		return n
	}
	early := exec.Command("sh", "-c", "while :; do sleep 0.01; done")
	early.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := early.Start(); err != nil {
		t.Fatal(err)
	}
	time.Sleep(2 * procfs.Tick) // the moment's own precision
	since := procfs.Now()
	for range 10 {
		late := exec.Command("sh", file, "late", "0")
		late.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pgid: early.Process.Pid} // as an interpreter's are in its group
		if err := late.Start(); err != nil {
			t.Fatal(err)
		}
	}
	until(t, "chains fork", func() bool { return count("late") > 0 })
	r.End(since, nil, nil)
	for range 50 { // a look can miss what comes and goes
		if n := count("late"); n != 0 {
			t.Fatalf("%d are left", n)
		}
	}
	if p, ok := procfs.Read(early.Process.Pid); !ok || p.State == 'Z' {
		t.Error("what was there before has ended")
	}
	r.End(procfs.Moment{}, nil, nil)
	if p, ok := procfs.Read(early.Process.Pid); ok && p.State != 'Z' {
		t.Error("an end from the beginning has left a process")
	}
}

// No shell takes a further step because its command was ended.
func TestReaperTakesNoStep(t *testing.T) {
	r := NewReaper()
	defer r.Close()
	file := filepath.Join(t.TempDir(), "steps")
	since := procfs.Now()
	for _, code := range []string{
		"(sleep 300; echo a >>FILE) & wait; echo b >>FILE",
		"(trap '' INT TERM; sleep 300; echo c >>FILE) & wait; echo d >>FILE",
		"(trap '' INT; sleep 300; echo e >>FILE); echo f >>FILE",
		"trap 'echo cleaned >>FILE; exit' INT; sleep 300",
	} {
		c := exec.Command("bash", "-c", strings.ReplaceAll(code, "FILE", file))
		c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
	}
	until(t, "all sleep", func() bool {
		n := 0
		for _, p := range r.Born(since, nil) {
			if procfs.Runs(p.PID, "sleep\x00300") {
				n++
			}
		}
		return n == 4
	})
	r.End(since, nil, nil)
	if b, _ := os.ReadFile(file); string(b) != "cleaned\n" {
		t.Errorf("steps: %q", b)
	}
}

// Of commands that Run runs nobody else takes the end.
func TestReaperRun(t *testing.T) {
	r := NewReaper()
	defer r.Close()
	var wg sync.WaitGroup
	for range 8 {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for range 40 {
				var out strings.Builder
				c := exec.Command("sh", "-c", "echo said; exit 3")
				c.Stdout = &out
				err := r.Run(c)
				if out.String() != "said\n" || c.ProcessState == nil || c.ProcessState.ExitCode() != 3 {
					t.Errorf("%q %v", out.String(), err)
					return
				}
			}
		}()
	}
	wg.Wait()
}
