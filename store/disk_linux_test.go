package store

import (
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

const mib = 1 << 20

// TestFullDevice writes to a device that is always full.
func TestFullDevice(t *testing.T) {
	s := openStore(t, storeDir(t), Options{MinFree: -1})
	put(t, s, "python", 1, "text/plain", []byte("old"))
	p, err := s.newSpool("python")
	must(t, err)
	defer p.discard()
	p.f.Close()
	p.f, err = os.OpenFile("/dev/full", os.O_WRONLY, 0)
	must(t, err)
	if n, err := p.Write(make([]byte, 1000)); n != 0 || !errors.Is(err, ErrFull) || !errors.Is(err, unix.ENOSPC) {
		t.Errorf("wrote %d, %v", n, err)
	}
	p.discard()
	if s.Usage() != 0 { // the old one had to go first
		t.Errorf("%d bytes are used", s.Usage())
	}
}

// TestDisk runs testDisk where it may mount a disk of its own.
func TestDisk(t *testing.T) {
	cmd, out := helper(t, "TestHelperDisk", t.TempDir())
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  unix.CLONE_NEWUSER | unix.CLONE_NEWNS,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}},
	}
	err := cmd.Start()
	if errors.Is(err, unix.EPERM) && os.Getuid() == 0 { // no user namespaces; root may do without
		cmd = &exec.Cmd{Path: cmd.Path, Args: cmd.Args, Env: cmd.Env, Stderr: os.Stderr, SysProcAttr: &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWNS}}
		out, err = cmd.StdoutPipe()
		must(t, err)
		err = cmd.Start()
	}
	if errors.Is(err, unix.EPERM) || errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EACCES) {
		t.Skipf("this machine lets us mount nothing (%v); TestFullDevice still ran", err)
	}
	must(t, err)
	said, _ := io.ReadAll(out)
	if err := cmd.Wait(); err != nil || !strings.Contains(string(said), "PASS") {
		t.Errorf("%v:\n%s", err, said)
	}
}

// TestHelperDisk is the helper of TestDisk.
func TestHelperDisk(t *testing.T) {
	if os.Getenv(helperEnv) != "" {
		testDisk(t, os.Args[2])
	}
}

// testDisk is on a disk of 8 MiB and few inodes.
func testDisk(t *testing.T, dir string) {
	must(t, unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""))
	must(t, unix.Mount("tmpfs", dir, "tmpfs", 0, "size=8m,nr_inodes=40"))
	defer unix.Unmount(dir, unix.MNT_DETACH)
	zeros := func(n int) io.Reader { return bytes.NewReader(make([]byte, n)) }
	free := func() int64 {
		var fs unix.Statfs_t
		must(t, unix.Statfs(dir, &fs))
		return int64(fs.Bavail) * int64(fs.Bsize)
	}
	fill := func() string {
		hog := filepath.Join(dir, "hog")
		f, err := os.Create(hog)
		must(t, err)
		_, err = io.CopyN(f, zeros(64*mib), 64*mib)
		f.Close()
		if !errors.Is(err, unix.ENOSPC) {
			t.Fatalf("the disk didn't get full: %v", err)
		}
		return hog
	}
	for _, named := range []bool{false, true} {
		s := openStore(t, filepath.Join(dir, ".runtime", "interpreter"), Options{MinFree: -1})
		s.tmpfile = s.tmpfile && !named
		empty := free()

		// The oldest make room for the new.
		first := put(t, s, "python", 1, "image/png", bytes.Repeat([]byte("1"), 3*mib))
		second := put(t, s, "python", 1, "image/png", bytes.Repeat([]byte("2"), 3*mib))
		third := put(t, s, "python", 1, "image/png", bytes.Repeat([]byte("3"), 3*mib))
		if _, err := os.Stat(first.Path); err == nil {
			t.Error("the first is still there")
		}
		read(t, s, "python", filepath.Base(second.Path))
		read(t, s, "python", filepath.Base(third.Path))
		must(t, s.Drop("python"))

		// What can't fit is an error that leaves nothing.
		if _, err := s.Put("python", 1, "image/png", zeros(9*mib)); !errors.Is(err, ErrFull) {
			t.Errorf("got %v", err)
		}
		if free() != empty || s.Usage() != 0 {
			t.Errorf("%d bytes are free where %d were, %d are used", free(), empty, s.Usage())
		}

		// A disk that others filled.
		o := overflow(t, s)
		o.WriteString(strings.Repeat("a", mib))
		hog := fill()
		if _, err := s.Put("python", 1, "image/png", zeros(mib)); !errors.Is(err, ErrFull) || !strings.Contains(err.Error(), "make room") {
			t.Errorf("got %v", err)
		}
		o.WriteString(strings.Repeat("b", mib))
		must(t, os.Remove(hog))
		o.WriteString("c") // comes too late: the file is the stream's beginning
		over, err := o.Finish()
		if !errors.Is(err, ErrFull) {
			t.Errorf("got %v", err)
		}
		got := read(t, s, "python", filepath.Base(over.Path))
		if over.Bytes != 2*mib+1 || int64(len(got)) != over.Bytes-over.Dropped || len(got) < mib || len(got) > mib+overflowBuffer ||
			!strings.HasPrefix(string(got), strings.Repeat("a", mib)) {
			t.Errorf("%d bytes are kept of %+v", len(got), over)
		}
		must(t, s.Drop("python"))

		// No inode for a new file.
		var many []string
		for i := 0; ; i++ {
			f, err := os.Create(filepath.Join(dir, strings.Repeat("i", i+1)))
			if err != nil {
				break
			}
			f.Close()
			many = append(many, f.Name())
		}
		if _, err := s.Put("python", 1, "image/png", zeros(10)); !errors.Is(err, ErrFull) {
			t.Errorf("got %v", err)
		}
		o = overflow(t, s)
		o.WriteString("lost")
		if over, err := o.Finish(); !errors.Is(err, ErrFull) || over.Path != "" || over.Bytes != 4 || over.Dropped != 4 {
			t.Errorf("%+v, %v", over, err)
		}
		for _, f := range many {
			must(t, os.Remove(f))
		}
		must(t, s.Close())

		// Some is kept free for others.
		s = openStore(t, filepath.Join(dir, ".runtime", "interpreter"), Options{MinFree: 4 * mib})
		s.tmpfile = s.tmpfile && !named
		first = put(t, s, "python", 1, "image/png", bytes.Repeat([]byte("1"), 3*mib))
		put(t, s, "python", 1, "image/png", bytes.Repeat([]byte("2"), 2*mib))
		if _, err := os.Stat(first.Path); err == nil || free() < 4*mib {
			t.Errorf("%d bytes are free, the first: %v", free(), err)
		}
		if _, err := s.Put("python", 1, "image/png", zeros(5*mib)); !errors.Is(err, ErrFull) {
			t.Errorf("got %v", err)
		}
		if free() < 4*mib {
			t.Errorf("%d bytes are free", free())
		}
		must(t, s.Drop("python"), s.Close())
	}
}
