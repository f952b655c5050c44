package environ

import (
	"errors"
	"os"
	"syscall"
	"time"
)

// TakeTemp is the directory that the agent has made for a kernel's own temporary files,
// and removes after it; "" where there is none. What the kernel starts has TMPDIR as it
// was before: see Launch.Temp of package kernels.
func TakeTemp() string {
	was, given := os.LookupEnv("CELLARD_TMPDIR")
	if !given {
		return ""
	}
	own := os.Getenv("TMPDIR")
	os.Unsetenv("CELLARD_TMPDIR")
	if was == "" {
		os.Unsetenv("TMPDIR")
	} else {
		os.Setenv("TMPDIR", was)
	}
	return own
}

// LockDir locks a directory of this user's as long as what it returns stays open; nil
// where it can't, as where another process has locked it.
func LockDir(dir string) *os.File {
	f, err := os.OpenFile(dir, os.O_RDONLY|syscall.O_DIRECTORY|syscall.O_NOFOLLOW, 0)
	if err != nil {
		return nil
	}
	info, err := f.Stat()
	if err == nil {
		if st, ok := info.Sys().(*syscall.Stat_t); ok && int(st.Uid) == os.Geteuid() &&
			syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil {
			return f
		}
	}
	f.Close()
	return nil
}

// RemoveAll removes a directory in which processes that are about to end may write for a
// moment yet: it tries again, for a second at most.
func RemoveAll(dir string) error {
	for try := 0; ; try++ {
		err := os.RemoveAll(dir)
		if err == nil || try == 100 || !errors.Is(err, syscall.ENOTEMPTY) && !errors.Is(err, syscall.EEXIST) {
			return err
		}
		time.Sleep(10 * time.Millisecond)
	}
}
