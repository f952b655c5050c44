package golang_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// soakCells is how many cells the session has; CELLARD_GO_SOAK sets another number.
const soakCells = 40

// TestSession runs a long session in which every kind of declaration is made anew again
// and again, cells fail, and all that was made before stays right. What it takes of
// memory is told.
func TestSession(t *testing.T) {
	n := soakCells
	if v := os.Getenv("CELLARD_GO_SOAK"); v != "" {
		var err error
		if n, err = strconv.Atoi(v); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("TMPDIR", t.TempDir()) // for the session's files
	s := start(t)
	s.is("import \"fmt\"\nsum := 0\nvar all []func() int\ntype P struct{ a int }\nfunc f(i int) int { return i }\nx := 0", "", "")
	first := workerMemory(t)
	want := 0
	for i := 1; i <= n && !t.Failed(); i++ {
		switch i % 8 {
		case 0:
			s.is(fmt.Sprintf("func f(i int) int { return i * %d }\nf(2)", i), "", strconv.Itoa(2*i))
		case 1:
			want += i
			s.is(fmt.Sprintf("sum += %d\nsum", i), "", strconv.Itoa(want))
		case 2:
			s.is(fmt.Sprintf("type P struct{ a, b%d int }\np := P{a: %d}\np.a", i, i), "", strconv.Itoa(i))
		case 3:
			s.is(fmt.Sprintf("x := x + %d\nall = append(all, func() int { return x })\nfmt.Println(len(all))", i), fmt.Sprintln((i+5)/8), "")
		case 4:
			s.fails(fmt.Sprintf("y%d := []int{}[%d]", i, i), "panic", "index out of range")
		case 5:
			s.fails("nope()", "CompileError", "undefined")
		case 6:
			s.is("fmt.Println(p)", fmt.Sprintf("{%d 0}\n", i-4), "")
		case 7:
			// The closures have each their own x, of another cell.
			s.is("all[len(all)-1]() == x", "", "true")
		}
	}
	last := workerMemory(t)
	t.Logf("%d cells: worker %d MB, then %d MB; %.2f MB a cell that was loaded", n, first>>20, last>>20, float64(last-first)/(1<<20)/(float64(n)*7/8))
	t.Logf("front %d MB", memoryOf(t, "front")>>20)
	left, _ := filepath.Glob(filepath.Join(os.TempDir(), "cellard-go-*", "*.so"))
	if len(left) > 0 {
		t.Errorf("plugins are left: %v", left)
	}
}

func workerMemory(t *testing.T) int64 { return memoryOf(t, "worker") }

// memoryOf is the resident memory, in bytes, of a program that this process has started.
func memoryOf(t *testing.T, name string) int64 {
	t.Helper()
	stats, _ := filepath.Glob("/proc/[0-9]*/status")
	for _, file := range stats {
		b, err := os.ReadFile(file)
		if err != nil || !strings.HasPrefix(string(b), "Name:\t"+name+"\n") || !strings.Contains(string(b), fmt.Sprintf("\nPPid:\t%d\n", os.Getpid())) {
			continue
		}
		_, rest, _ := strings.Cut(string(b), "\nVmRSS:")
		kb, _ := strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
		return kb << 10
	}
	t.Fatalf("no process %s", name)
	return 0
}
