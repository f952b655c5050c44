package store

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// lockName is the file whose lock says who has the directory. It is not the
// directory itself, since whoever can read that could lock it.
const lockName = ".lock"

// inode tells whether two files are the same.
type inode struct{ dev, ino uint64 }

func inodeOf(f *os.File) (inode, error) {
	var st unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &st); err != nil {
		return inode{}, &os.PathError{Op: "stat", Path: f.Name(), Err: err}
	}
	return inode{uint64(st.Dev), st.Ino}, nil
}

// root opens the store's directory, to be closed by the caller.
func (s *Store) root() (*os.File, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lock == nil {
		return nil, ErrClosed
	}
	return s.openRoot(false)
}

// openRoot opens the directory by its path each time, since a cell can have
// removed or moved it: then it is made and locked again. mu is held.
func (s *Store) openRoot(first bool) (*os.File, error) {
	if s.lock == nil && !first {
		return nil, ErrClosed // closed meanwhile: nothing may be locked again
	}
	base, err := os.Open(s.base)
	if err != nil {
		return nil, err
	}
	defer base.Close()
	runtime, err := enterOrMake(base, s.dirs[0], false)
	if err != nil {
		return nil, err
	}
	defer runtime.Close()
	root, err := enterOrMake(runtime, s.dirs[1], false)
	if err != nil {
		return nil, err
	}
	if err := s.lockIn(root, first); err != nil {
		root.Close()
		return nil, err
	}
	return root, nil
}

// lockIn takes the lock in root unless it is the directory that was locked last.
func (s *Store) lockIn(root *os.File, first bool) error {
	where, err := inodeOf(root)
	if err != nil || !first && where == s.where {
		return err
	}
	f, err := openLock(root)
	if err != nil {
		return err
	}
	err = ignoringEINTR(func() error { return unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB) })
	if err != nil {
		f.Close()
		if err == unix.EWOULDBLOCK {
			return fmt.Errorf("%s: %w", root.Name(), ErrInUse)
		}
		return &os.PathError{Op: "lock", Path: f.Name(), Err: err}
	}
	if s.lock != nil {
		s.lock.Close()
	}
	s.lock, s.where = f, where
	return nil
}

// openLock opens the lock file, mode 0600; one that isn't the agent's own, which
// somebody else could hold, is removed first.
func openLock(root *os.File) (*os.File, error) {
	for attempt := 0; ; attempt++ {
		f, err := openAt(root, lockName, unix.O_RDWR|unix.O_CREAT|unix.O_NONBLOCK, 0o600)
		if err == nil {
			var st unix.Stat_t
			err = unix.Fstat(int(f.Fd()), &st)
			if err == nil && st.Mode&unix.S_IFMT == unix.S_IFREG && int(st.Uid) == os.Geteuid() {
				return f, nil
			}
			f.Close()
			if err == nil {
				err = errors.New("not this agent's own file")
			}
		}
		if attempt == 3 {
			return nil, fmt.Errorf("%s/%s: %w", root.Name(), lockName, err)
		}
		if err := removeTree(root, lockName); err != nil {
			return nil, err
		}
	}
}

// out opens the directory of a context's files; made, with what is in the way
// removed, if create is set.
func (s *Store) out(root *os.File, context string, create bool) (*os.File, error) {
	open := enter
	if create {
		open = func(d *os.File, name string) (*os.File, error) { return enterOrMake(d, name, true) }
	}
	d, err := open(root, context)
	if err != nil {
		return nil, err
	}
	defer d.Close()
	return open(d, outDir)
}
