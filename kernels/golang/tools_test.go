package golang_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/cellard/cellard/protocol/jupyter/kernel"
)

// TestKilledLinker has that a cell whose linker is killed leaves nothing, and can be run
// again.
func TestKilledLinker(t *testing.T) {
	s := start(t)
	s.is("x := 1", "", "")
	front := children(os.Getpid(), "front")
	if len(front) != 1 {
		t.Fatalf("fronts: %v", front)
	}
	done, killed := make(chan struct{}), make(chan bool)
	go func() {
		for {
			select {
			case <-done:
				killed <- false
				return
			case <-time.After(time.Millisecond):
			}
			for _, pid := range children(front[0], "link") {
				if syscall.Kill(pid, syscall.SIGKILL) == nil {
					killed <- true
					return
				}
			}
		}
	}()
	r := s.run("x = 2\ny := 3")
	close(done)
	if !<-killed {
		t.Fatal("no linker was seen")
	}
	if r.err == nil || r.err.Name != "CompileError" || !strings.Contains(r.err.Value, "run the cell again") {
		t.Errorf("a killed linker: %+v", r.err)
	}
	s.is("x", "", "1")
	s.fails("y", "CompileError", "undefined: y")
	s.is("x = 2\ny := 3\nx + y", "", "5")
}

// TestStoppedLinker has that an interrupt while a cell is linked leaves no file and no
// process.
func TestStoppedLinker(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	s := start(t)
	s.is("x := 1", "", "")
	files := func() (names []string) {
		all, _ := filepath.Glob(filepath.Join(dir, "cellard-go-*", "*"))
		for _, path := range all {
			names = append(names, filepath.Base(path))
		}
		return names
	}
	before, front := files(), children(os.Getpid(), "front")
	for i := range 5 {
		ctx, cancel := context.WithCancelCause(t.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			// One that isn't seen must not let the cell run for ever.
			for end := time.Now().Add(time.Minute); len(children(front[0], "link")) == 0 && time.Now().Before(end); {
				time.Sleep(time.Millisecond)
			}
			// It is a different step each time that is interrupted.
			time.Sleep(time.Duration(i*25) * time.Millisecond)
			cancel(kernel.ErrInterrupted)
		}()
		s.runCell(ctx, "for {\n}", nil)
		cancel(nil)
		<-done
		if left := children(front[0], "link"); len(left) > 0 {
			t.Errorf("linkers are left: %v", left)
		}
		// What was linked in time stays as long as the worker has it.
		var left []string
		for _, name := range files() {
			if !slices.Contains(before, name) && !regexp.MustCompile(`^c\d+\.a$`).MatchString(name) {
				left = append(left, name)
			}
		}
		if len(left) > 0 {
			t.Errorf("files are left: %v", left)
		}
	}
	s.is("x", "", "1")
}

// children are the processes of a name that a process has started.
func children(parent int, name string) (pids []int) {
	stats, _ := filepath.Glob("/proc/[0-9]*/status")
	for _, file := range stats {
		b, err := os.ReadFile(file)
		if err == nil && strings.HasPrefix(string(b), "Name:\t"+name+"\n") && !strings.Contains(string(b), "\nState:\tZ") && strings.Contains(string(b), fmt.Sprintf("\nPPid:\t%d\n", parent)) {
			pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(file)))
			pids = append(pids, pid)
		}
	}
	return pids
}
