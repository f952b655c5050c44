package supervisor

import (
	"context"

	"github.com/cellard/cellard/kernels"
)

// toInstall stands for the kernel of a language that is to be installed first; nil when
// it can't be.
func (m *Manager) toInstall(ctx context.Context, language string) *kernels.Launch {
	if err := m.catalogue.Installable(ctx, language); err != nil {
		return nil
	}
	// All languages that can be installed have kernels that take a cell's env and cwd.
	return &kernels.Launch{Language: language, CellEnv: true}
}

func isToInstall(l *kernels.Launch) bool { return l.Argv == nil }

// cellEnv tells whether the context's kernel takes a cell's env and cwd.
func (s *session) cellEnv() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.launch.CellEnv
}

// progress tells the cells that wait for a kernel how its install goes.
func (s *session) progress(text string) {
	s.mu.Lock()
	waiting := make([]*task, len(s.queue))
	copy(waiting, s.queue)
	s.mu.Unlock()
	for _, t := range waiting {
		t.e.Progress(text)
	}
}
