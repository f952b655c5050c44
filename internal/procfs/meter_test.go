package procfs

import (
	"bufio"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// spend takes some CPU time.
func spend() {
	for start := time.Now(); time.Since(start) < 50*time.Millisecond; {
		_ = strings.Repeat("x", 1000)
	}
}

func TestMeter(t *testing.T) {
	m := NewMeter(os.Getpid())
	defer m.Close()
	m.Begin()
	first, ok := m.Spent()
	if !ok {
		t.Fatal("no CPU time")
	}
	spend()
	if after, ok := m.Spent(); !ok || after <= first {
		t.Errorf("CPU time: %v, then %v", first, after)
	}
	b := make([]byte, 64<<20)
	for i := 0; i < len(b); i += 4096 {
		b[i] = 1
	}
	if n := m.Peak(); n < 64<<20 {
		t.Errorf("peak of %d bytes", n)
	}
	unix.Madvise(b, unix.MADV_DONTNEED)
	high := m.Peak()
	m.Begin()
	if n := m.Peak(); n >= high || n == 0 {
		t.Errorf("the peak was %d bytes, and counted anew is %d", high, n)
	}
}

func TestMeterOfNoProcess(t *testing.T) {
	m := NewMeter(1 << 30)
	defer m.Close()
	m.Begin()
	if d, ok := m.Spent(); ok {
		t.Errorf("a process that there isn't spent %v", d)
	}
	if n := m.Peak(); n != 0 {
		t.Errorf("and had %d bytes", n)
	}
}

// shell is a shell, with a child that runs its own lines, that says when each is done.
func shell(t *testing.T) (pid int, run func(string)) {
	cmd := exec.Command("sh", "-c", `sh -c 'while read -r line; do eval "$line"; echo done; done'; exit`)
	in, _ := cmd.StdinPipe()
	out, _ := cmd.StdoutPipe()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		in.Close()
		_ = cmd.Wait()
	})
	lines := bufio.NewReader(out)
	return cmd.Process.Pid, func(line string) {
		io.WriteString(in, line+"\n")
		if _, err := lines.ReadString('\n'); err != nil {
			t.Fatal(err)
		}
	}
}

func TestMeterOfChildren(t *testing.T) {
	const loop = "i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done"
	pid, run := shell(t)
	run(":")
	alone, both := NewMeter(pid), NewMeter(pid)
	both.Children = true
	defer alone.Close()
	defer both.Close()
	alone.Begin()
	both.Begin()
	run(loop)
	one, _ := alone.Spent()
	two, ok := both.Spent()
	if !ok || two <= one || two < 10*time.Millisecond {
		t.Errorf("the parent spent %v, with its child %v", one, two)
	}
	if p, q := alone.Peak(), both.Peak(); p == 0 || q <= p {
		t.Errorf("the parent had %d bytes, with its child %d", p, q)
	}
	both.Begin()
	if again, _ := both.Spent(); again >= two {
		t.Errorf("%v before anything was run, after %v", again, two)
	}
}
