package store

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/cellard/cellard/protocol/api"
)

// What an error of the store's can be.
var (
	// ErrInUse: another process has the directory.
	ErrInUse = errors.New("another agent uses this directory: give one of them another --workspace")
	// ErrFull: there is no room, not even after pushing out all that may be.
	ErrFull = errors.New("no room")
	// ErrClosed: the Store was closed.
	ErrClosed = errors.New("the store is closed")
)

// Options are a Store's bounds. The zero value stands for the defaults.
type Options struct {
	// Quota bounds the bytes of all files, those being written included; 2 GiB.
	Quota int64
	// SpoolLimit bounds the bytes of one overflow file; 1 GiB.
	SpoolLimit int64
	// MinFree is how many bytes of the disk are left to others; 64 MiB, but at most a
	// twentieth of the disk. Negative: none.
	MinFree int64
}

// Store keeps files under one directory.
type Store struct {
	base string    // the directory that the two below lie in; links in it are followed
	dirs [2]string // .runtime, interpreter
	path string    // of all three
	o    Options

	// tmpfile: files can be made without a name and get it when they are whole.
	tmpfile bool

	// mu also covers giving names to files and taking them, so that the index and
	// the directory agree.
	mu    sync.Mutex
	lock  *os.File // nil once closed
	where inode    // of the directory that lock lies in
	index index
	stats Stats // what only rises of it
}

// Open makes a Store of dir, whose last two elements are its own and are made if
// they are not there, and whose parent above them is the workspace. It removes
// what a killed agent left half done, and counts the files of earlier ones.
func Open(dir string, o Options) (*Store, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("store: %w", err)
	}
	if o.Quota <= 0 {
		o.Quota = 2 << 30
	}
	if o.SpoolLimit <= 0 {
		o.SpoolLimit = 1 << 30
	}
	upper := filepath.Dir(dir)
	s := &Store{
		base: filepath.Dir(upper),
		dirs: [2]string{filepath.Base(upper), filepath.Base(dir)},
		path: dir,
		o:    o,
	}
	s.index.init()
	if err := os.MkdirAll(s.base, 0o755); err != nil {
		return nil, fmt.Errorf("store: %w", err)
	}
	// Nobody else has s yet, so mu is not needed.
	root, err := s.openRoot(true)
	if err != nil {
		return nil, fmt.Errorf("store: %w", err)
	}
	defer root.Close()
	if err := s.ready(root); err != nil {
		s.lock.Close()
		return nil, fmt.Errorf("store: %w", err)
	}
	return s, nil
}

// ready is the rest of Open, once the directory is locked.
func (s *Store) ready(root *os.File) error {
	if s.o.MinFree == 0 {
		var fs unix.Statfs_t
		if err := unix.Fstatfs(int(root.Fd()), &fs); err != nil {
			return &os.PathError{Op: "statfs", Path: root.Name(), Err: err}
		}
		s.o.MinFree = min(64<<20, int64(fs.Blocks)*int64(fs.Bsize)/20)
	}
	if err := s.scan(root); err != nil {
		return err
	}
	s.pushOut(s.index.used - s.o.Quota)
	// Find out now that nothing can be written, not when a cell has shown a result.
	s.tmpfile = probeUnnamed(root)
	p, err := s.newSpoolIn(root)
	if err != nil {
		return err
	}
	p.discard()
	return nil
}

// Close gives the directory up; the files stay. What is being written then
// fails, and what was handed out is still its getter's to close.
func (s *Store) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lock == nil {
		return nil
	}
	err := s.lock.Close()
	s.lock = nil
	return err
}

// Usage is how many bytes count towards the quota.
func (s *Store) Usage() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.index.used
}

// Stats are a Store's figures.
type Stats struct {
	Quota, Used int64 // bytes; those of files that are being written are in Used
	Files       int

	// From Open on:
	Written, WrittenBytes int64 // files that were made
	Evicted, EvictedBytes int64 // those that were pushed out for room
}

// Stats tells what the Store has and did.
func (s *Store) Stats() Stats {
	s.mu.Lock()
	defer s.mu.Unlock()
	st := s.stats
	st.Quota, st.Used, st.Files = s.o.Quota, s.index.used, len(s.index.files)
	return st
}

// Put streams r into a file of a context's, and returns the ref to it. It pushes
// out the oldest files for room. An error, also one of r's, leaves nothing; it
// wraps ErrFull where there is no room. The same content put again in the same
// generation is the same file.
func (s *Store) Put(contextID string, generation int, mimeType string, r io.Reader) (api.Ref, error) {
	p, err := s.newSpool(contextID)
	if err != nil {
		return api.Ref{}, fmt.Errorf("store: %w", err)
	}
	defer p.discard()
	// Not io.Copy: os.File and *bytes.Reader would bring buffers of any size.
	if _, err := io.CopyBuffer(struct{ io.Writer }{p}, struct{ io.Reader }{r}, make([]byte, 64<<10)); err != nil {
		return api.Ref{}, fmt.Errorf("store: %w", err)
	}
	f, err := p.commit(generation, mimeType)
	if err != nil {
		return api.Ref{}, fmt.Errorf("store: %w", err)
	}
	return api.Ref{Path: s.filePath(f.key), Bytes: f.size, SHA256: f.sha256}, nil
}

// Temp makes a file without a name on the store's disk, mode 0600, for what is
// held only for a while. It doesn't count towards the quota. The caller closes
// it, and with that it is gone.
func (s *Store) Temp() (*os.File, error) {
	root, err := s.root()
	if err != nil {
		return nil, fmt.Errorf("store: %w", err)
	}
	defer root.Close()
	f, name, err := s.scratch(root)
	if err != nil {
		return nil, fmt.Errorf("store: %w", err)
	}
	if name != "" {
		if err := remove(root, name); err != nil {
			f.Close()
			return nil, fmt.Errorf("store: %w", err)
		}
	}
	return f, nil
}

// Drop removes all that a context has, and forgets what was pushed out of it, so
// that a new one can take its id. What of the context's is still being written
// comes after it: the caller ends that first.
func (s *Store) Drop(contextID string) error {
	if !validContext(contextID) {
		return fmt.Errorf("store: %q is no context's id", contextID)
	}
	root, err := s.root()
	if err != nil {
		return fmt.Errorf("store: %w", err)
	}
	defer root.Close()
	name := scratchName()
	s.mu.Lock()
	s.index.dropContext(contextID)
	err = rename(root, contextID, root, name)
	s.mu.Unlock()
	if errors.Is(err, unix.ENOENT) {
		return nil
	}
	if err == nil {
		err = removeTree(root, name)
	}
	if err != nil {
		return fmt.Errorf("store: %w", err)
	}
	return nil
}

func (s *Store) filePath(k key) string {
	return filepath.Join(s.path, k.context, outDir, k.file)
}

// outDir is where a context's files lie in its directory.
const outDir = "out"
