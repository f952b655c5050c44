package supervisor

import (
	"context"
	"sync"
	"time"

	"github.com/cellard/cellard/internal/environ"
)

// Shutdown ends all: running cells are interrupted and answered as lost, waiting
// ones never run, kernels end with all that came from them, and the runtime
// directory goes. A context that ends cuts the wait for cells and kills at once. No
// other method may be called after it but those that read.
func (m *Manager) Shutdown(ctx context.Context) error {
	m.mu.Lock()
	if m.stopping {
		m.mu.Unlock()
		return nil
	}
	m.stopping = true
	all := make([]*session, 0, len(m.sessions))
	for _, s := range m.sessions {
		all = append(all, s)
	}
	if m.janitor != nil {
		m.janitor.Stop()
	}
	m.mu.Unlock()
	var wg sync.WaitGroup
	for _, s := range all {
		wg.Add(1)
		go func() {
			defer wg.Done()
			s.shutDown(ctx, m.o.ShutdownGrace)
		}()
	}
	wg.Wait()
	m.installer.Close()
	m.killOrphans()
	if m.o.spawn == nil {
		m.spawn.Close()
	}
	m.groups.Close()
	m.keeper.close()
	err := environ.RemoveAll(m.o.RuntimeDir)
	if err2 := m.store.Close(); err == nil {
		err = err2
	}
	return err
}

func (s *session) shutDown(ctx context.Context, grace time.Duration) {
	const queued, value = "ContextLost", "the agent was stopped before the cell ran"
	busy := false
	s.do(func() {
		s.endTasks(s.takeQueue(), queued, value)
		busy = s.cur != nil
		s.stopCell(whyShutdown)
	})
	for end := time.Now().Add(grace); busy && ctx.Err() == nil && time.Now().Before(end); {
		time.Sleep(5 * time.Millisecond)
		s.do(func() { busy = s.cur != nil })
	}
	s.do(func() {
		s.close()
		s.stopKernel(shutdownLost(), queued, value)
	})
	<-s.gone
}

// Close frees the executions that are still kept: their files and memory. After
// Shutdown, once no reader is left.
func (m *Manager) Close() {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, r := range m.execs {
		r.e.Close()
	}
	clear(m.execs)
}
