package server

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"time"
)

// listenUnix listens on a socket of mode 0600, and has the kernel tell each
// peer's uid. Where other uids are allowed the mode is 0666, or they could not
// connect; the check is the same.
func listenUnix(path string, o ListenOptions) (*Listener, error) {
	if err := clearStale(path); err != nil {
		return nil, err
	}
	mode := os.FileMode(0o600)
	if len(o.AllowUIDs) > 0 {
		mode = 0o666
	}
	lc := net.ListenConfig{Control: func(_, _ string, c syscall.RawConn) error {
		// On Linux bind gives the file the socket's own mode, so that it is never
		// open to others, not even between bind and a chmod.
		var err error
		if e := c.Control(func(fd uintptr) { err = syscall.Fchmod(int(fd), uint32(mode)) }); e != nil {
			return e
		}
		return err
	}}
	l, err := lc.Listen(context.Background(), "unix", path)
	if err != nil {
		if errors.Is(err, syscall.EINVAL) && len(path) > 107 {
			return nil, AddressError(fmt.Sprintf("the path has %d bytes, a socket's can have 107 at most", len(path)))
		}
		if errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("%w: make the directory %s first", err, filepath.Dir(path))
		}
		return nil, err
	}
	ul := &unixListener{UnixListener: l.(*net.UnixListener), path: path}
	ul.SetUnlinkOnClose(false)
	if ul.file, err = os.Lstat(path); err == nil && ul.file.Mode().Perm() != mode {
		err = os.Chmod(path, mode) // a umask took something off
	}
	if err != nil {
		ul.Close()
		return nil, err
	}
	return &Listener{Listener: ul, address: "unix://" + path, check: unixCheck(o)}, nil
}

// unixCheck refuses peers by the uid that the kernel tells of them.
func unixCheck(o ListenOptions) func(net.Conn) error {
	allowed := append([]int{os.Geteuid(), 0}, o.AllowUIDs...)
	return func(c net.Conn) error {
		uid, err := peerUID(c)
		if err != nil {
			return fmt.Errorf("the peer's uid is not known: %w", err)
		}
		if !slices.Contains(allowed, uid) || slices.Contains(o.CellUIDs, uid) {
			return fmt.Errorf("uid %d may not call on this socket", uid)
		}
		return nil
	}
}

// unixListener removes its socket when it is closed, but not another's that has
// taken its place.
type unixListener struct {
	*net.UnixListener
	path string
	file os.FileInfo
	once sync.Once
}

func (l *unixListener) Close() error {
	l.once.Do(func() {
		if now, err := os.Lstat(l.path); err == nil && l.file != nil && os.SameFile(now, l.file) {
			_ = os.Remove(l.path)
		}
	})
	return l.UnixListener.Close()
}

// clearStale removes a socket that an agent which is no more has left at path:
// only a socket, only of our own uid, and only if nobody answers.
func clearStale(path string) error {
	fi, err := os.Lstat(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if fi.Mode().Type() != os.ModeSocket {
		return fmt.Errorf("%s is there already, and is no socket", path)
	}
	if st, ok := fi.Sys().(*syscall.Stat_t); !ok || int(st.Uid) != os.Geteuid() {
		return fmt.Errorf("%s is another user's socket", path)
	}
	c, err := net.DialTimeout("unix", path, 2*time.Second)
	if err == nil {
		c.Close()
		return fmt.Errorf("%s is in use: another agent answers there; listen on another, or stop that one", path)
	}
	if !errors.Is(err, syscall.ECONNREFUSED) {
		return fmt.Errorf("%s is there already, and can't be told to be stale: %w", path, err)
	}
	return os.Remove(path)
}
