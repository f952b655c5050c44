package store

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// reserve counts n bytes that are about to be written to f, and pushes out the
// oldest files where the quota or the disk has no room for them. The store gives
// way to whoever else fills the disk.
func (s *Store) reserve(f *os.File, n int64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lock == nil {
		return ErrClosed
	}
	s.pushOut(s.index.used + n - s.o.Quota)
	if s.index.used+n > s.o.Quota {
		return fmt.Errorf("%w within the store's quota of %d bytes", ErrFull, s.o.Quota)
	}
	if lack := s.lack(f, n); lack > 0 && s.pushOut(lack) < lack {
		return fmt.Errorf("%w on the disk: it has to keep %d bytes free; make room on it", ErrFull, s.o.MinFree)
	}
	s.index.used += n
	return nil
}

func (s *Store) release(n int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.index.used -= n
}

// lack is how many bytes too few the disk of f has for n more.
func (s *Store) lack(f *os.File, n int64) int64 {
	var fs unix.Statfs_t
	// A file system that doesn't tell is full when a write says so.
	if s.o.MinFree < 0 || unix.Fstatfs(int(f.Fd()), &fs) != nil || fs.Blocks == 0 {
		return 0
	}
	return s.o.MinFree + n - int64(fs.Bavail)*int64(fs.Bsize)
}

// pushOut removes the oldest files until those removed have n bytes, or there
// are none, and returns how many they had. mu is held.
func (s *Store) pushOut(n int64) int64 {
	var sum int64
	for sum < n {
		f := s.index.oldest()
		if f == nil {
			break
		}
		sum += f.size
		s.pushOutFile(f)
	}
	return sum
}

// pushOutFile removes a file, whatever lies there now under its name.
func (s *Store) pushOutFile(f *file) {
	s.stats.Evicted++
	s.stats.EvictedBytes += f.size
	s.index.remove(f)
	s.index.setGone(f.key)
	root, err := s.openRoot(false)
	if err != nil {
		return // the directory is gone or hidden, and the file with it
	}
	defer root.Close()
	out, err := s.out(root, f.key.context, false)
	if err != nil {
		return
	}
	defer out.Close()
	_ = removeTree(out, f.key.file) // one that can't be removed is another's by now
}

// pushOutForDisk makes room after a write of n bytes found the disk full, and
// reports whether it could.
func (s *Store) pushOutForDisk(n int64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.pushOut(n) > 0
}

func isDiskFull(err error) bool {
	return errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT)
}
