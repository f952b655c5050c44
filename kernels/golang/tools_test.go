package golang_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
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
