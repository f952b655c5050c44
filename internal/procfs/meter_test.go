package procfs

import (
	"bufio"
	"io"
	"os"
	"os/exec"
	"runtime"
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

// A child belongs to the thread that started it, and lives on when threads come and go.
func TestMeterFollowsThreads(t *testing.T) {
	m := NewMeter(os.Getpid())
	defer m.Close()
	m.Children = true
	kid := func(started chan<- int, end <-chan bool) {
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
		c := exec.Command("sleep", "1000")
		if err := c.Start(); err != nil {
			t.Error(err)
		}
		started <- c.Process.Pid
		<-end
		c.Process.Kill()
		c.Wait()
		started <- 0
	}
	first, second := make(chan int), make(chan int)
	end, endSecond := make(chan bool), make(chan bool)
	go kid(first, end)
	a := <-first
	m.follow()
	if m.kids[a] == nil {
		t.Errorf("the child %d is not among %v", a, m.kids)
	}
	go kid(second, endSecond)
	b := <-second
	close(end)
	<-first
	m.follow()
	if m.kids[a] != nil || m.kids[b] == nil {
		t.Errorf("of the children %d, which has ended, and %d are known: %v", a, b, m.kids)
	}
	close(endSecond)
	<-second
	if m.follow(); m.kids[b] != nil {
		t.Errorf("the child %d has ended, and is known", b)
	}
	open := func() int { names, _ := os.ReadDir("/proc/self/fd"); return len(names) }
	before := open()
	for range 50 {
		done := make(chan bool)
		go func() { runtime.LockOSThread(); m.follow(); close(done) }()
		<-done
	}
	if n := open(); n > before+maxLists {
		t.Errorf("%d files are open, after %d", n, before)
	}
}
