package supervisor

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"path"

	"github.com/cellard/cellard/notebook"
	"github.com/cellard/cellard/protocol/api"
)

// The bounds of what a notebook gets from the store, in bytes: each value is held in memory
// while it is written, and a client holds the whole.
const (
	maxNotebookRef  = 8 << 20
	maxNotebookRefs = 24 << 20 // together
)

// Notebook makes a Jupyter notebook of what a context has run so far: a file without a
// name, at its beginning, which the caller closes. It is made whole first, so that a reader
// who is slow holds no memory, and one who got an answer gets all of it.
func (m *Manager) Notebook(ctx context.Context, id string) (*os.File, error) {
	s, err := m.live(id)
	if err != nil {
		return nil, err
	}
	select {
	case m.writing <- struct{}{}:
		defer func() { <-m.writing }()
	case <-ctx.Done():
		return nil, api.Errorf(api.CodeUnavailable, "another notebook is being written").WithHint("ask again")
	}
	s.mu.Lock()
	x, launch := s.view, s.launch
	s.mu.Unlock()
	f, err := m.store.Temp()
	if err != nil {
		return nil, api.Errorf(api.CodeUnavailable, "a notebook: %v", err).WithHint("make room on the disk of the workspace")
	}
	w := bufio.NewWriterSize(f, 64<<10)
	left := int64(maxNotebookRefs)
	err = s.journal.Write(ctx, w, notebook.Session{
		ContextID: id, Generation: x.Generation,
		Kernel: notebook.Kernel{Name: launch.KernelName, DisplayName: launch.DisplayName, LanguageInfo: x.LanguageInfo, Language: x.Language},
		Fetch: func(_ context.Context, ref api.Ref) (io.ReadCloser, error) {
			if ref.Bytes > maxNotebookRef || ref.Bytes > left {
				return nil, fmt.Errorf("%w: it has %d bytes; fetch it by its ref", notebook.ErrLeftOut, ref.Bytes)
			}
			f, err := m.store.Open(id, path.Base(ref.Path))
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
	if err != nil {
		f.Close()
		return nil, api.Errorf(api.CodeUnavailable, "the notebook of context %s: %v", id, err).WithHint("ask again; make room on the disk of the workspace if it is full")
	}
	return f, nil
}
