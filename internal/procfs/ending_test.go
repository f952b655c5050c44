package procfs

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// script starts a shell and waits until there are so many processes, with it.
func script(t *testing.T, n int, code string) (c *exec.Cmd, look func() []Stat) {
	t.Helper()
	c = exec.Command("bash", "-c", code)
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	look = func() (all []Stat) {
		for _, p := range All() {
			if p.Group == c.Process.Pid && p.State != 'Z' {
				all = append(all, p)
			}
		}
		return all
	}
	t.Cleanup(func() { _ = unix.Kill(-c.Process.Pid, unix.SIGKILL); _ = c.Wait() })
	sleeping := func() bool {
		asleep := 0
		for _, p := range look() {
			if Runs(p.PID, "sleep\x00300") {
				asleep++
			}
		}
		return asleep > 0 && len(look()) == n
	}
	until(t, code, sleeping)
	return c, look
}

func until(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !holds(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not so: %s", what)
		}
	}
}

// None sees another end and goes on, whatever of the signals it ignores; what catches them
// gets each once.
func TestEnding(t *testing.T) {
	for _, c := range []struct {
		processes int
		code      string
		signals   int // that it takes
		wants     string
	}{
		{3, "(sleep 300; STEP) & wait; STEP", 1, ""},
		{3, "(trap '' INT TERM; sleep 300; STEP) & wait; STEP", 1, ""},
		{2, "trap '' INT; (trap - INT; exec sleep 300); STEP", 1, ""},
		{3, "(trap '' INT; sleep 300; :); STEP", 2, ""},
		{2, "trap 'echo int >>FILE' INT; trap 'echo term >>FILE; exit' TERM; sleep 300; while :; do :; done", 2, "int\nterm\n"},
	} {
		file := filepath.Join(t.TempDir(), "steps")
		c.code = strings.ReplaceAll(strings.ReplaceAll(c.code, "STEP", "echo step >>FILE"), "FILE", file)
		cmd, look := script(t, c.processes, c.code)
		var e Ending
		for i, sig := range []unix.Signal{unix.SIGINT, unix.SIGTERM}[:c.signals] {
			first := 0
			for range 3 { // the second has nothing to do
				e.Signal(sig, look(), nil, look, func() { first++ })
			}
			if first != 3 {
				t.Errorf("%s: first was called %d times of 3", c.code, first)
			}
			if i == 0 && c.wants != "" {
				until(t, "the first is caught", func() bool { b, _ := os.ReadFile(file); return string(b) == "int\n" })
			} else if i+1 < c.signals && len(look()) == 0 {
				t.Errorf("%s: ended by the first", c.code)
			}
		}
		_ = cmd.Wait()
		until(t, "all end: "+c.code, func() bool { return len(look()) == 0 })
		if b, _ := os.ReadFile(file); string(b) != c.wants {
			t.Errorf("%s: %q, want %q", c.code, b, c.wants)
		}
	}
}

// The other signal is for what ignores SIGINT and catches it, and for nothing else.
func TestInterrupt(t *testing.T) {
	for _, c := range []struct{ trap, wants string }{
		{"trap 'echo int >>FILE' INT; trap 'echo other >>FILE' USR1", "int\n"},
		{"trap '' INT; trap 'echo other >>FILE' USR1", "other\n"},
		{"trap '' INT; trap '' USR1", ""},
	} {
		for _, stood := range []bool{false, true} {
			file := filepath.Join(t.TempDir(), "caught")
			code := strings.ReplaceAll(c.trap+"; trap 'echo end >>FILE' USR2; sleep 300 & while :; do :; done", "FILE", file)
			cmd, look := script(t, 2, code)
			if stood {
				_ = unix.Kill(cmd.Process.Pid, unix.SIGSTOP)
				Stands(cmd.Process.Pid, patience)
			}
			all := look()
			for _, p := range all {
				if p.PID == cmd.Process.Pid {
					Interrupt(p, unix.SIGUSR1)
				}
			}
			if p, ok := Read(cmd.Process.Pid); !ok || stood != (p.State == 'T') {
				t.Errorf("%s: stood %t, and is %c", c.trap, stood, p.State)
			}
			_ = unix.Kill(cmd.Process.Pid, unix.SIGCONT)
			got := func() string { b, _ := os.ReadFile(file); return string(b) }
			until(t, c.trap+": caught", func() bool { return strings.HasPrefix(got(), c.wants) })
			_ = unix.Kill(cmd.Process.Pid, unix.SIGUSR2)
			until(t, c.trap+": ends with "+c.wants, func() bool { return got() == c.wants+"end\n" })
		}
	}
}

// What stands still for the others goes on, and so does what was stopped and is ended.
func TestEndingGoesOn(t *testing.T) {
	_, spared := script(t, 2, "sleep 300; :")
	_, look := script(t, 3, "(kill -STOP $BASHPID; sleep 1) & sleep 300; :")
	until(t, "one stands", func() bool {
		for _, p := range look() {
			if p.State == 'T' {
				return true
			}
		}
		return false
	})
	var e Ending
	e.Signal(unix.SIGINT, look(), spared(), look, nil)
	e.Signal(unix.SIGTERM, look(), spared(), look, nil)
	until(t, "all end", func() bool { return len(look()) == 0 })
	for _, p := range spared() {
		until(t, "the spared go on", func() bool { p, ok := Read(p.PID); return ok && p.State != 'T' })
	}
	if len(spared()) != 2 {
		t.Error("the spared were ended")
	}
}
