package front

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/cellard/cellard/protocol/jupyter/kernel"
)

// The directory for temporary files may have a path that is too long for a socket's, one that
// begins where the kernel does, and one that isn't ASCII.
func TestTemp(t *testing.T) {
	long := filepath.Join(t.TempDir(), strings.Repeat("long", 30))
	accents := filepath.Join(t.TempDir(), "é è")
	for _, dir := range []string{long, accents} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(t.TempDir())
	for _, temp := range []string{long, ".", accents} {
		s := start(t, func(k *Kernel) { k.o.Temp = temp })
		s.temp = temp
		s.run(`cat("1\n"); system("echo 2"); startsWith(tempdir(), "/")`).shows(t, "[1] TRUE")
		if got := s.run("plot(1)"); got.err != nil || len(got.Shown("display_data")) != 1 {
			t.Errorf("a plot: %v %v", got.err, got.Messages())
		}
		s.interrupted(`cat("go\n"); Sys.sleep(1000)`).fails(t, "interrupt")
		s.close()
	}
}

// A cell that R does not outlive has no reply, and what it has printed comes; a child that
// holds R's sockets open does not hide it.
func TestDeath(t *testing.T) {
	for _, code := range []string{
		`cat("last\n"); tools::pskill(Sys.getpid(), 9)`,
		`parallel::mcparallel(Sys.sleep(1000)); cat("last\n"); tools::pskill(Sys.getpid(), 9)`,
	} {
		s := start(t)
		got := s.run(code)
		died := (*kernel.DiedError)(nil)
		if !errors.As(got.err, &died) || died.Signal() != syscall.SIGKILL || died.Error() != "R has ended: killed" {
			t.Errorf("%s: %v", code, got.err)
		}
		if got.Stream("stdout") != "last\n" {
			t.Errorf("%s: stdout %q", code, got.Stream("stdout"))
		}
		s.close()
	}
}

// An R that can't run the kernel says why, and nothing is left of it.
func TestNoStart(t *testing.T) {
	temp := t.TempDir()
	for _, argv := range [][]string{{"/bin/sh", "-c", "exit 3"}, {"/nosuch"}} {
		k := New(Options{Argv: argv, Temp: temp})
		_, err := k.Info()
		died := (*kernel.DiedError)(nil)
		if errors.As(err, &died) && died.ExitCode() != 3 || died == nil && !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%q: %v", argv, err)
		}
		if err := k.Close(); err != nil {
			t.Error(err)
		}
	}
	if left, _ := os.ReadDir(temp); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}
