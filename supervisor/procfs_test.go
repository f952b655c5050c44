package supervisor

import (
	"fmt"
	"os"
	"os/exec"
	"reflect"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func TestParseStat(t *testing.T) {
	const rest = " S 7 42 43 0 -1 4194304 1 2 3 4 10 20 30 40 20 0 1 0 12345 1000 200"
	want := procStat{pid: 42, parent: 7, session: 43, state: 'S', start: 12345, childTicks: 70}
	for _, name := range []string{"sh", "a b", "a) R 1 1 (b", ")", "", "new\nline"} {
		if s, ok := parseStat(42, []byte("42 ("+name+")"+rest)); !ok || !reflect.DeepEqual(s, want) {
			t.Errorf("%q: %+v, %v", name, s, ok)
		}
	}
	for _, bad := range []string{"", "42", "42 (sh", "42 (sh)", "42 (sh) S 1 2", "42 (sh) SS" + rest[2:]} {
		if s, ok := parseStat(42, []byte(bad)); ok {
			t.Errorf("%q: %+v", bad, s)
		}
	}
	self, ok := readStat(os.Getpid())
	sid, _ := unix.Getsid(0)
	if !ok || self.parent != os.Getppid() || self.session != sid || self.start == 0 {
		t.Errorf("of this process: %+v, %v", self, ok)
	}
	if _, ok := readStat(1 << 30); ok {
		t.Error("a process that there isn't")
	}
}

// What parses is what the kernel could have written: put together again it parses to
// the same.
func FuzzParseStat(f *testing.F) {
	own, err := os.ReadFile("/proc/self/stat")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(own)
	f.Add([]byte("42 (a) R 1 1 (b) S 7 42 43 0 -1 4194304 1 2 3 4 10 20 30 40 20 0 1 0 12345 1000 200"))
	f.Add([]byte("1 () S"))
	f.Fuzz(func(t *testing.T, b []byte) {
		s, ok := parseStat(42, b)
		if !ok {
			if s != (procStat{}) {
				t.Errorf("%q: refused, and yet %+v", b, s)
			}
			return
		}
		if s.pid != 42 {
			t.Errorf("%q: pid %d", b, s.pid)
		}
		again := fmt.Sprintf("42 (x) %c %d 0 %d 0 0 0 0 0 0 0 0 0 %d 0 0 0 0 0 %d", s.state, s.parent, s.session, s.childTicks, int64(s.start))
		if r, ok := parseStat(42, []byte(again)); !ok || r != s {
			t.Errorf("%q: %+v, and %q: %+v", b, s, again, r)
		}
	})
}

func TestMoment(t *testing.T) {
	m := moment{ticks: 100, lastPid: 500}
	for _, c := range []struct {
		s      procStat
		before bool
	}{
		{procStat{start: 99, pid: 900}, false},
		{procStat{start: 101, pid: 1}, true},
		{procStat{start: 100, pid: 500}, false},
		{procStat{start: 100, pid: 501}, true},
	} {
		if m.before(c.s) != c.before {
			t.Errorf("%+v before %+v: want %v", m, c.s, c.before)
		}
	}
	// Processes that are started right before and right after a moment, in the
	// same tick mostly, are told apart.
	for range 30 {
		first := start(t, "sleep", "1000")
		at := now()
		second := start(t, "sleep", "1000")
		a, ok1 := readStat(first.Process.Pid)
		b, ok2 := readStat(second.Process.Pid)
		if !ok1 || !ok2 || at.before(a) || !at.before(b) {
			t.Errorf("%+v: %+v, %+v", at, a, b)
		}
		for _, c := range []*exec.Cmd{first, second} {
			_ = c.Process.Kill()
			_ = c.Wait()
		}
	}
}

func start(t *testing.T, argv ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(argv[0], argv[1:]...)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return cmd
}

// family finds descendants, members of the session and bearers of the mark, and
// neither the kernel itself nor strangers.
func TestFamily(t *testing.T) {
	mark := "CELLARD_KERNEL=test-" + newID("")
	cmd := exec.Command("sh", "-c", "sleep 1000 & setsid sleep 1000 & (setsid sleep 1000 &) ; env -i setsid sleep 1000 & read wait")
	cmd.Env = append(os.Environ(), mark)
	cmd.SysProcAttr = &unix.SysProcAttr{Setsid: true} // as a kernel; its orphans are reaped
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	stranger := start(t, "sleep", "1000")
	pid := cmd.Process.Pid
	sleepers := func(all []procStat) (n int) {
		for _, s := range all {
			if b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", s.pid)); strings.HasPrefix(string(b), "sleep\x00") {
				n++
			}
			if s.pid == pid || s.pid == stranger.Process.Pid || s.pid == os.Getpid() {
				t.Fatalf("one too many: %+v", s)
			}
		}
		return n
	}
	for end := time.Now().Add(patience); sleepers(family(pid, mark)) != 4; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("want 4: %+v", family(pid, mark))
		}
	}
	if n := sleepers(family(pid, "")); n != 3 { // without the mark no orphan of another session
		t.Errorf("without the mark: %d", n)
	}
	if hasMark(stranger.Process.Pid, mark) || hasMarkPrefix(stranger.Process.Pid, mark[:20]) || hasMark(pid, mark[:20]) ||
		!hasMarkPrefix(pid, mark[:20]) || hasMarkPrefix(pid, "") || hasMark(1<<30, mark) {
		t.Error("a mark is seen where it isn't, or not where it is")
	}
	for _, s := range append(family(pid, mark), procStat{pid: stranger.Process.Pid}) {
		_ = unix.Kill(s.pid, unix.SIGKILL)
	}
	in.Close()
	_ = cmd.Wait() // an error where it was taken for an orphan
	_ = stranger.Wait()
}

func TestAccounting(t *testing.T) {
	before, ok := cpuTime(os.Getpid())
	if !ok {
		t.Fatal("no CPU time")
	}
	for start := time.Now(); time.Since(start) < 50*time.Millisecond; {
		_ = strings.Repeat("x", 1000)
	}
	if after, ok := cpuTime(os.Getpid()); !ok || after <= before {
		t.Errorf("CPU time: %v, then %v", before, after)
	}
	if _, ok := cpuTime(1 << 22); ok {
		t.Error("CPU time of a process that there isn't")
	}
	if n := peakRSS(os.Getpid()); n < 1<<20 {
		t.Errorf("peak of %d bytes", n)
	}
	if n := peakRSS(1 << 30); n != 0 {
		t.Errorf("peak of a process that there isn't: %d", n)
	}
}
