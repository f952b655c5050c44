package supervisor

import (
	"context"
	"errors"

	"github.com/cellard/cellard/kernels"
	"github.com/cellard/cellard/kernels/install"
)

// toInstall stands for the kernel of a language that is to be installed first. Where it
// can't be, the error is why there is none, missing, and what the archive lacks.
func (m *Manager) toInstall(ctx context.Context, language string, missing error) (*kernels.Launch, error) {
	if err := m.catalogue.Installable(ctx, language); err != nil {
		refused := *asAPI(missing)
		if archive := (*install.ArchiveError)(nil); errors.As(err, &archive) {
			refused.Message += "; " + archive.Lacks
		}
		return nil, &refused
	}
	// All languages that can be installed have kernels that take a cell's env and cwd.
	return &kernels.Launch{Language: language, CellEnv: true}, nil
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
