package procfs

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// Who waits for the other end of a FIFO goes on; a file that is none is left alone.
func TestReleaseFIFO(t *testing.T) {
	dir := t.TempDir()
	if err := unix.Mkfifo(filepath.Join(dir, "f"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, code := range []string{"read x <f", "echo x >f", "exec 3<>f; exec 4<f 3>&-; read x <&4"} {
		c := exec.Command("sh", "-c", code)
		c.Dir = dir
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		ended := make(chan bool)
		go func() { _ = c.Wait(); close(ended) }()
		for end := time.Now().Add(time.Minute); ; {
			ReleaseFIFO(c.Process.Pid)
			select {
			case <-ended:
			case <-time.After(5 * time.Millisecond):
				if time.Now().Before(end) {
					continue
				}
				t.Errorf("%s: waits on", code)
				_ = c.Process.Kill()
				<-ended
			}
			break
		}
	}
	ReleaseFIFO(os.Getpid())
}

// Who writes more than a FIFO takes, that somebody holds open and nobody reads, goes on; of a
// pipe without a name nothing is taken.
func TestReleaseFullFIFO(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	if err := unix.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	held, err := os.OpenFile(path, os.O_RDWR|unix.O_NONBLOCK, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer held.Close()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	const size = 1 << 20
	for _, into := range []*os.File{held, w} {
		c := exec.Command("sh", "-c", "exec dd if=/dev/zero bs="+strconv.Itoa(size)+" count=1 iflag=fullblock 2>&-")
		if c.Stdout = into; into == held {
			c = exec.Command("sh", "-c", "exec "+c.Args[2][5:]+" >\"$0\"", path)
		}
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		ended := make(chan bool)
		go func() { _ = c.Wait(); close(ended) }()
		waits := func() bool {
			b, _ := os.ReadFile("/proc/" + strconv.Itoa(c.Process.Pid) + "/syscall")
			return strings.HasPrefix(string(b), strconv.Itoa(unix.SYS_WRITE)+" ")
		}
		for end := time.Now().Add(patience); !waits(); time.Sleep(time.Millisecond) {
			if time.Now().After(end) {
				t.Fatal("it does not wait for room")
			}
		}
		if into == w {
			w.Close()
			ReleaseFIFO(c.Process.Pid)
			if n, err := io.Copy(io.Discard, r); n != size || err != nil {
				t.Errorf("of %d bytes in a pipe came %d, %v", size, n, err)
			}
			<-ended
			continue
		}
		for end := time.Now().Add(patience); ; {
			ReleaseFIFO(c.Process.Pid)
			select {
			case <-ended:
			default:
				if time.Now().Before(end) {
					continue
				}
				t.Error("it waits on")
				_ = c.Process.Kill()
				<-ended
			}
			break
		}
	}
}
