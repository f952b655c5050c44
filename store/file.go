package store

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cellard/cellard/protocol/api"
)

// File is a file of the store, open for reading at its beginning. The caller
// closes it. It can be read to its end also when it is pushed out meanwhile.
type File struct {
	*os.File
	Size   int64
	MIME   string
	SHA256 string
}

// Open opens a context's file by its name, the last element of a ref's path. The
// error is an *api.Error: not_found, or gone for what was pushed out, or removed
// or changed by a cell.
//
// The content is read to check its hash, once: again only when the file's inode,
// size, or times of change have become others, or were too recent to tell. That
// misses what a cell of the agent's own user changes while the file is being
// read, or without changing these times (through the disk's device; by setting the
// clock back); other users can't write to it.
func (s *Store) Open(contextID, name string) (*File, error) {
	k := key{contextID, name}
	if !validContext(contextID) || !validFile(name) {
		return nil, notFound(k)
	}
	root, err := s.root()
	if err != nil {
		return nil, unavailable(k, err)
	}
	defer root.Close()

	s.mu.Lock()
	f := s.index.files[k]
	if f == nil {
		wasThere := s.index.gone[k]
		s.mu.Unlock()
		if wasThere {
			return nil, gone(k, "was pushed out to make room, or a cell removed or changed it")
		}
		return nil, notFound(k)
	}
	known := *f
	opened, err := s.openFile(root, k)
	s.mu.Unlock()

	if err == nil {
		err = s.check(opened, &known)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	current := s.index.files[k] == f
	switch {
	case err == nil && current:
		f.sha256, f.seen = known.sha256, known.seen
	case errors.Is(err, errChanged):
		if current {
			s.pushOutFile(f)
		}
		err = gone(k, "was removed or changed by a cell")
	case err != nil:
		err = unavailable(k, err)
	}
	if err != nil {
		if opened != nil {
			opened.Close()
		}
		return nil, err
	}
	return &File{File: opened, Size: known.size, MIME: known.mime, SHA256: known.sha256}, nil
}

// errChanged: the file is not the one that was put there.
var errChanged = errors.New("changed by a cell")

// openFile opens a file if it is a regular one; nothing else is opened, since
// that alone can block or do something. mu is held.
func (s *Store) openFile(root *os.File, k key) (*os.File, error) {
	out, err := s.out(root, k.context, false)
	if err != nil {
		return nil, changedIfMissing(err)
	}
	defer out.Close()
	var st unix.Stat_t
	err = ignoringEINTR(func() error { return unix.Fstatat(int(out.Fd()), k.file, &st, unix.AT_SYMLINK_NOFOLLOW) })
	if err != nil {
		return nil, changedIfMissing(err)
	}
	if st.Mode&unix.S_IFMT != unix.S_IFREG {
		return nil, errChanged
	}
	f, err := openAt(out, k.file, unix.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, changedIfMissing(err)
	}
	if err := unix.Fstat(int(f.Fd()), &st); err != nil {
		f.Close()
		return nil, err
	}
	if st.Mode&unix.S_IFMT != unix.S_IFREG { // exchanged in between
		f.Close()
		return nil, errChanged
	}
	return f, nil
}

// changedIfMissing makes errChanged of the errors that say that a file or a
// directory of it is not there, or something else is.
func changedIfMissing(err error) error {
	for _, e := range []error{unix.ENOENT, unix.ENOTDIR, unix.ELOOP, unix.ENXIO} {
		if errors.Is(err, e) {
			return fmt.Errorf("%w: %w", errChanged, err)
		}
	}
	return err
}

// check reads f unless it is known to have its hash, and leaves it at its
// beginning. It sets what is known then.
func (s *Store) check(f *os.File, known *file) error {
	id, err := identify(f)
	if err != nil {
		return err
	}
	if id == known.seen {
		return nil
	}
	if id.size != known.size {
		return errChanged
	}
	started := time.Now()
	h := sha256.New()
	n, err := io.CopyBuffer(h, struct{ io.Reader }{io.LimitReader(f, known.size+1)}, make([]byte, 64<<10))
	if err != nil {
		return err
	}
	sum := hex.EncodeToString(h.Sum(nil))
	if n != known.size || !strings.HasPrefix(sum, known.sha256) || !strings.HasPrefix(sum, hashOf(known.key.file)) {
		return errChanged
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return err
	}
	known.sha256 = sum
	if id.before(started) {
		known.seen = id
	}
	return nil
}

// identity is what changes when a file's content does.
type identity struct {
	inode
	size         int64
	mtime, ctime int64 // Unix nanoseconds
}

func identify(f *os.File) (identity, error) {
	var st unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &st); err != nil {
		return identity{}, &os.PathError{Op: "stat", Path: f.Name(), Err: err}
	}
	return identity{inode{uint64(st.Dev), st.Ino}, st.Size, st.Mtim.Nano(), st.Ctim.Nano()}, nil
}

// before reports whether the file's times are so far before t that a change
// after t must show in them: file systems count in steps of up to two seconds.
func (id identity) before(t time.Time) bool {
	return max(id.mtime, id.ctime) < t.Add(-3*time.Second).UnixNano()
}

func notFound(k key) error {
	return api.Errorf(api.CodeNotFound, "context %q has no file %q", k.context, k.file).WithHint("name one of a ref's or an overflow's, by the last part of its path")
}

func gone(k key, why string) error {
	return api.Errorf(api.CodeGone, "file %q of context %q %s", k.file, k.context, why).WithHint("run the cell again")
}

func unavailable(k key, err error) error {
	return api.Errorf(api.CodeUnavailable, "file %q of context %q can't be read: %v", k.file, k.context, err).WithHint("look at the disk of the workspace, then run the cell again")
}
