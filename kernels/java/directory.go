package java

import (
	"errors"
	"os/exec"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"
)

// thread is a thread that starts the virtual machine and shares its working directory
// (CLONE_FS, which outlives exec): Java has no way to change its own, and what this
// thread changes is changed for it. The machine dies with the thread.
type thread struct {
	work chan func()
	done chan struct{}
}

func newThread() *thread {
	t := &thread{work: make(chan func()), done: make(chan struct{})}
	go func() {
		defer close(t.done)
		// Never unlocked: the thread ends with this function, since its directory is no
		// longer that of the process. Where a sandbox refuses to part them (Docker's
		// default profile), the whole process shares the machine's directory, which does
		// no harm in one that has no other work.
		runtime.LockOSThread()
		_ = unix.Unshare(unix.CLONE_FS)
		for f := range t.work {
			f()
		}
	}()
	return t
}

// do runs a function on the thread.
func (t *thread) do(f func() error) (err error) {
	over := make(chan struct{})
	t.work <- func() {
		defer close(over)
		err = f()
	}
	<-over
	return err
}

// close ends the thread.
func (t *thread) close() {
	close(t.work)
	<-t.done
}

// start starts a command that shares the thread's directory, by the function given.
func (t *thread) start(c *exec.Cmd, start func(*exec.Cmd) error) error {
	c.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: syscall.CLONE_FS,
		Pdeathsig:  syscall.SIGKILL,
		// Its own group: a Ctrl-C in a terminal is for this process, which then says what
		// is to be done.
		Setpgid: true,
	}
	return t.do(func() error { return start(c) })
}

// visit is a stay in another directory.
type visit struct {
	t    *thread
	home int // the old directory, which can be gone back to even if it was renamed
	went unix.Stat_t
	path string // the new one's
}

// enter changes the directory.
func (t *thread) enter(dir string) (*visit, error) {
	v := &visit{t: t}
	err := t.do(func() (err error) {
		if v.home, err = unix.Open(".", unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0); err != nil {
			return err
		}
		err = unix.Chdir(dir)
		if err == nil {
			err = unix.Stat(".", &v.went)
		}
		if err == nil {
			v.path, err = getwd()
		}
		if err != nil {
			err = errors.Join(err, unix.Fchdir(v.home))
			unix.Close(v.home)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return v, nil
}

// leave goes back, unless the cell has gone elsewhere itself.
func (v *visit) leave() {
	_ = v.t.do(func() error {
		defer unix.Close(v.home)
		var now unix.Stat_t
		if err := unix.Stat(".", &now); err != nil || now.Dev != v.went.Dev || now.Ino != v.went.Ino {
			return err
		}
		return unix.Fchdir(v.home)
	})
}

func getwd() (string, error) {
	buf := make([]byte, unix.PathMax)
	n, err := unix.Getcwd(buf)
	if err != nil {
		return "", err
	}
	for n > 0 && buf[n-1] == 0 {
		n--
	}
	return string(buf[:n]), nil
}
