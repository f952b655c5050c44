package supervisor

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path"

	"golang.org/x/sys/unix"

	"github.com/cellard/cellard/notebook"
	"github.com/cellard/cellard/protocol/api"
	"github.com/cellard/cellard/store"
)

// The bounds of what a notebook gets from the store, in bytes: each value is held in memory
// while it is written, and a client holds the whole.
const (
	maxNotebookRef  = 8 << 20
	maxNotebookRefs = 24 << 20 // together
)

// maxNotebookMemory bounds a notebook that the disk has no room for.
const maxNotebookMemory = 8 << 20

// NotebookFile is a notebook that was made whole, at its beginning.
type NotebookFile struct {
	*os.File
	release func()
}

// Close frees the room that it takes.
func (f *NotebookFile) Close() error {
	err := f.File.Close()
	if f.release != nil {
		f.release()
	}
	return err
}

// Notebook makes a Jupyter notebook of what a context has run so far, which the caller
// closes. It is made whole first, in a file without a name, so that a reader who is slow
// holds no memory, and one who got an answer gets all of it. Where the disk is full, which
// is when a session is to be saved, it is made in memory, as far as that goes: then it is
// the only one until it is closed.
func (m *Manager) Notebook(ctx context.Context, id string) (*NotebookFile, error) {
	s, err := m.live(id)
	if err != nil {
		return nil, err
	}
	release := func() { <-m.writing }
	select {
	case m.writing <- struct{}{}:
	case <-ctx.Done():
		return nil, api.Errorf(api.CodeUnavailable, "another notebook is being written").WithHint("ask again")
	}
	f, err := m.store.Temp()
	if err == nil {
		err = m.writeNotebook(ctx, s, f, f)
	}
	if err == nil {
		release()
		return &NotebookFile{File: f}, nil
	}
	f.Close() // of none it is an error, and nothing else
	if noRoom(err) {
		var fd int
		if fd, err = unix.MemfdCreate("notebook", unix.MFD_CLOEXEC); err == nil {
			f = os.NewFile(uintptr(fd), "notebook")
			if err = m.writeNotebook(ctx, s, f, &limited{f, maxNotebookMemory}); err == nil {
				return &NotebookFile{f, release}, nil
			}
			f.Close()
		}
	}
	release()
	if noRoom(err) {
		return nil, api.Errorf(api.CodeUnavailable, "the notebook of context %s: %v", id, err).
			WithHint("make room on the disk of the workspace, then ask again")
	}
	return nil, api.Errorf(api.CodeUnavailable, "the notebook of context %s: %v", id, err).WithHint("ask again")
}

// errFull says that a notebook is too large to be made in memory.
var errFull = fmt.Errorf("the disk is full, and it has over %d bytes, which is too much for memory: %w", maxNotebookMemory, unix.ENOSPC)

func noRoom(err error) bool {
	return errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT) || errors.Is(err, store.ErrFull)
}

// limited writes so many bytes at most.
type limited struct {
	w    io.Writer
	room int
}

func (l *limited) Write(b []byte) (int, error) {
	if l.room -= len(b); l.room < 0 {
		return 0, errFull
	}
	return l.w.Write(b)
}

// writeNotebook writes a session's notebook to f, by way of to.
func (m *Manager) writeNotebook(ctx context.Context, s *session, f *os.File, to io.Writer) error {
	s.mu.Lock()
	x, launch := s.view, s.launch
	s.mu.Unlock()
	w := bufio.NewWriterSize(to, 64<<10)
	left := int64(maxNotebookRefs)
	err := s.journal.Write(ctx, w, notebook.Session{
		ContextID: x.ID, Generation: x.Generation,
		Kernel: notebook.Kernel{Name: launch.KernelName, DisplayName: launch.DisplayName, LanguageInfo: x.LanguageInfo, Language: x.Language},
		Fetch: func(_ context.Context, ref api.Ref) (io.ReadCloser, error) {
			if ref.Bytes > maxNotebookRef || ref.Bytes > left {
				return nil, fmt.Errorf("%w: it has %d bytes; fetch it by its ref", notebook.ErrLeftOut, ref.Bytes)
			}
			f, err := m.store.Open(x.ID, path.Base(ref.Path))
			if err != nil {
				return nil, fmt.Errorf("%w: %w", notebook.ErrLeftOut, err)
			}
			left -= ref.Bytes
			return f, nil
		},
	})
	if err == nil {
		err = w.Flush()
	}
	if err == nil {
		_, err = f.Seek(0, io.SeekStart)
	}
	return err
}
