package procfs

import (
	"crypto/rand"
	"fmt"
	"os"
	"os/exec"
	"reflect"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// patience bounds what would else hang.
const patience = time.Minute

func TestParseStat(t *testing.T) {
	const rest = " S 7 42 43 0 -1 4194304 1 2 3 4 10 20 30 40 20 0 1 0 12345 1000 200"
	want := Stat{PID: 42, Parent: 7, Group: 42, Session: 43, State: 'S', Start: 12345, childTicks: 70}
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
	self, ok := Read(os.Getpid())
	sid, _ := unix.Getsid(0)
	if !ok || self.Parent != os.Getppid() || self.Group != unix.Getpgrp() || self.Session != sid || self.Start == 0 {
		t.Errorf("of this process: %+v, %v", self, ok)
	}
	if _, ok := Read(1 << 30); ok {
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
	f.Add([]byte(") \xb0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0")) // a state is a letter
	f.Fuzz(func(t *testing.T, b []byte) {
		s, ok := parseStat(42, b)
		if !ok {
			if s != (Stat{}) {
				t.Errorf("%q: refused, and yet %+v", b, s)
			}
			return
		}
		if s.PID != 42 {
			t.Errorf("%q: pid %d", b, s.PID)
		}
		again := fmt.Sprintf("42 (x) %c %d %d %d 0 0 0 0 0 0 0 0 0 %d 0 0 0 0 0 %d", s.State, s.Parent, s.Group, s.Session, s.childTicks, int64(s.Start))
		if r, ok := parseStat(42, []byte(again)); !ok || r != s {
			t.Errorf("%q: %+v, and %q: %+v", b, s, again, r)
		}
	})
}

func TestMoment(t *testing.T) {
	m := Moment{ticks: 100, lastPid: 500}
	for _, c := range []struct {
		s      Stat
		before bool
	}{
		{Stat{Start: 99, PID: 900}, false},
		{Stat{Start: 101, PID: 1}, true},
		{Stat{Start: 100, PID: 500}, false},
		{Stat{Start: 100, PID: 501}, true},
	} {
		if m.Before(c.s) != c.before {
			t.Errorf("%+v before %+v: want %v", m, c.s, c.before)
		}
	}
	// Processes that are started right before and right after a moment, in the
	// same tick mostly, are told apart.
	for range 30 {
		first := start(t, "sleep", "1000")
		at := Now()
		second := start(t, "sleep", "1000")
		a, ok1 := Read(first.Process.Pid)
		b, ok2 := Read(second.Process.Pid)
		if !ok1 || !ok2 || at.Before(a) || !at.Before(b) {
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

// Family finds descendants, members of the session and bearers of the mark, and
// neither the kernel itself nor strangers.
func TestFamily(t *testing.T) {
	mark := "CELLARD_KERNEL=test-" + rand.Text()
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
	sleepers := func(all []Stat) (n int) {
		for _, s := range all {
			if b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", s.PID)); strings.HasPrefix(string(b), "sleep\x00") {
				n++
			}
			if s.PID == pid || s.PID == stranger.Process.Pid || s.PID == os.Getpid() {
				t.Fatalf("one too many: %+v", s)
			}
		}
		return n
	}
	for end := time.Now().Add(patience); sleepers(Family(pid, mark)) != 4; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("want 4: %+v", Family(pid, mark))
		}
	}
	if n := sleepers(Family(pid, "")); n != 3 { // without the mark no orphan of another session
		t.Errorf("without the mark: %d", n)
	}
	if n := sleepers(Descendants(pid)); n != 3 {
		t.Errorf("by parents alone: %d", n)
	}
	if got := Descendants(1 << 30); len(got) > 0 {
		t.Errorf("of nobody: %+v", got)
	}
	if HasMark(stranger.Process.Pid, mark) || HasMarkPrefix(stranger.Process.Pid, mark[:20]) || HasMark(pid, mark[:20]) ||
		!HasMarkPrefix(pid, mark[:20]) || HasMarkPrefix(pid, "") || HasMark(1<<30, mark) {
		t.Error("a mark is seen where it isn't, or not where it is")
	}
	for _, s := range append(Family(pid, mark), Stat{PID: stranger.Process.Pid}) {
		_ = unix.Kill(s.PID, unix.SIGKILL)
	}
	in.Close()
	_ = cmd.Wait() // an error where it was taken for an orphan
	_ = stranger.Wait()
}
