package store

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// spool is a file being written, which comes under its name when it is whole.
type spool struct {
	s       *Store
	context string
	f       *os.File // nil once committed or discarded
	name    string   // in the store's directory; "" for a file without one
	hash    hash.Hash
	size    int64 // written, and counted as used
}

func (s *Store) newSpool(contextID string) (*spool, error) {
	if !validContext(contextID) {
		return nil, fmt.Errorf("%q is no context's id", contextID)
	}
	root, err := s.root()
	if err != nil {
		return nil, err
	}
	defer root.Close()
	p, err := s.newSpoolIn(root)
	if err != nil {
		return nil, err
	}
	p.context = contextID
	return p, nil
}

func (s *Store) newSpoolIn(root *os.File) (*spool, error) {
	f, name, err := s.scratch(root)
	if err != nil {
		if isDiskFull(err) {
			err = fmt.Errorf("%w on the disk: %w", ErrFull, err)
		}
		return nil, err
	}
	return &spool{s: s, f: f, name: name, hash: sha256.New()}, nil
}

// scratch makes a file in root, without a name where the file system can.
func (s *Store) scratch(root *os.File) (*os.File, string, error) {
	if s.tmpfile {
		f, err := openUnnamed(root)
		if err == nil {
			return f, "", nil
		}
	}
	name := scratchName()
	f, err := openAt(root, name, unix.O_RDWR|unix.O_CREAT|unix.O_EXCL, 0o600)
	return f, name, err
}

// Write is of io.Writer: all of b or an error.
func (p *spool) Write(b []byte) (int, error) {
	if p.f == nil {
		return 0, os.ErrClosed
	}
	if err := p.s.reserve(p.f, int64(len(b))); err != nil {
		return 0, err
	}
	p.size += int64(len(b))
	for rest := b; len(rest) > 0; {
		n, err := p.f.Write(rest)
		rest = rest[n:]
		if err == nil || isDiskFull(err) && p.s.pushOutForDisk(int64(len(rest))) {
			continue
		}
		written := int64(len(b) - len(rest))
		p.hash.Write(b[:written])
		p.size -= int64(len(rest))
		p.s.release(int64(len(rest)))
		if isDiskFull(err) {
			err = fmt.Errorf("%w on the disk; make room on it: %w", ErrFull, err)
		}
		return int(written), err
	}
	p.hash.Write(b)
	return len(b), nil
}

// reset takes back all that was written.
func (p *spool) reset() error {
	if err := p.f.Truncate(0); err != nil {
		return err
	}
	if _, err := p.f.Seek(0, io.SeekStart); err != nil {
		return err
	}
	p.s.release(p.size)
	p.size = 0
	p.hash.Reset()
	return nil
}

// discard takes the file away unless it was committed.
func (p *spool) discard() {
	if p.f == nil {
		return
	}
	p.f.Close()
	p.f = nil
	p.s.release(p.size)
	if p.name != "" {
		if root, err := p.s.root(); err == nil {
			_ = remove(root, p.name)
			root.Close()
		}
	}
}

// commit gives the file its name. After an error it is still to be discarded.
func (p *spool) commit(generation int, mimeType string) (file, error) {
	if p.f == nil {
		return file{}, os.ErrClosed
	}
	sum := p.hash.Sum(nil)
	f := &file{
		key:    key{p.context, fileName(generation, sum, mimeType)},
		size:   p.size,
		mime:   mimeType,
		sha256: hex.EncodeToString(sum),
	}
	if err := p.f.Chmod(0o444); err != nil {
		return file{}, err
	}
	s := p.s
	root, err := s.root()
	if err != nil {
		return file{}, err
	}
	defer root.Close()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lock == nil {
		return file{}, ErrClosed
	}
	out, err := s.out(root, p.context, true)
	if err != nil {
		return file{}, err
	}
	defer out.Close()
	if err := p.link(root, out, f.key.file); err != nil {
		if isDiskFull(err) {
			err = fmt.Errorf("%w on the disk: %w", ErrFull, err)
		}
		return file{}, err
	}
	p.f.Close()
	p.f = nil
	s.index.used -= p.size // add counts it
	stored := *f           // others change f from here on
	s.index.add(f)
	s.stats.Written++
	s.stats.WrittenBytes += f.size
	if len(s.index.files) > maxFiles {
		s.pushOutFile(s.index.oldest())
	}
	return stored, nil
}

// link puts the file into out, in place of what may lie there.
func (p *spool) link(root, out *os.File, name string) error {
	for attempt := 0; ; attempt++ {
		var err error
		if p.name == "" {
			err = nameUnnamed(p.f, out, name)
		} else {
			err = rename(root, p.name, out, name)
		}
		if err == nil || attempt == 3 {
			return err
		}
		if !errors.Is(err, unix.EEXIST) && !errors.Is(err, unix.EISDIR) && !errors.Is(err, unix.ENOTEMPTY) {
			return err
		}
		if err := removeTree(out, name); err != nil {
			return err
		}
	}
}
