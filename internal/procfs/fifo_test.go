package procfs

import (
	"os"
	"os/exec"
	"path/filepath"
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
