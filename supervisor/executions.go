package supervisor

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/cellard/cellard/execution"
	"github.com/cellard/cellard/protocol/api"
)

// Execution finds one by its id, running or ended.
func (m *Manager) Execution(id string) (*execution.Execution, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if r := m.execs[id]; r != nil {
		return r.e, nil
	}
	return nil, api.Errorf(api.CodeNotFound, "no execution %s", id).
		WithHint("an execution is kept for %v after its end, and not past a restart of the agent", m.o.Retention)
}

func (m *Manager) record(id string) (*record, error) {
	if _, err := m.Execution(id); err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if r := m.execs[id]; r != nil {
		return r, nil
	}
	return nil, api.Errorf(api.CodeNotFound, "no execution %s", id)
}

// InterruptExecution stops a cell, or takes it out of the queue, in which case its code
// never runs. It is false for one that had ended.
func (m *Manager) InterruptExecution(id string) (bool, error) {
	r, err := m.record(id)
	if err != nil {
		return false, err
	}
	s, did := r.s, false
	s.do(func() {
		switch {
		case s.dequeue(r.e):
			did = true
			s.end(r.e, execution.Ending{Status: api.StatusInterrupted, NeverRan: true,
				Error: &api.CellError{Name: "Interrupted", Value: "the cell was interrupted before it ran"}})
		case s.cur != nil && s.cur.e == r.e:
			did = true
			s.stopCell(whyInterrupt)
		}
	})
	return did, nil
}

// Input answers a cell that asks.
func (m *Manager) Input(id, value string) error {
	r, err := m.record(id)
	if err != nil {
		return err
	}
	s, did := r.s, false
	s.do(func() {
		if c := s.cur; c != nil && c.e == r.e && c.asked != nil && c.stop == nil && c.e.Answered() {
			did = true
			s.answer(c, value)
		}
	})
	if !did {
		return api.Errorf(api.CodeConflict, "execution %s asks for no input", id).
			WithHint(`run the cell with "stdin": "live", and answer its input events`)
	}
	return nil
}

// finished keeps an execution that has ended for a while.
func (m *Manager) finished(e *execution.Execution) {
	size := e.Size()
	_, refused := e.Snapshot()
	m.mu.Lock()
	defer m.mu.Unlock()
	m.running--
	m.lastEnd = time.Now()
	r := m.execs[e.ID()]
	if r == nil {
		return
	}
	if refused != nil && r.key != "" { // its code never ran: the same key may try again
		delete(m.keys, r.key)
		r.key = ""
	}
	r.end, r.size = m.lastEnd, size
	m.ended = append(m.ended, r)
	m.bytes += size
	m.clean(m.lastEnd)
}

// clean forgets the executions that are too old or too many; the newest always stays.
func (m *Manager) clean(t time.Time) {
	n := 0
	for _, r := range m.ended[:max(0, len(m.ended)-1)] {
		if m.bytes <= m.o.RetentionBytes && t.Sub(r.end) < m.o.Retention {
			break
		}
		n++
		m.bytes -= r.size
		m.remove(r)
		r.e.Close()
	}
	if len(m.ended) > 0 && n == len(m.ended)-1 {
		if r := m.ended[n]; t.Sub(r.end) >= m.o.Retention {
			n++
			m.bytes -= r.size
			m.remove(r)
			r.e.Close()
		}
	}
	m.ended = append(m.ended[:0:0], m.ended[n:]...)
	if len(m.ended) > 0 && m.janitor == nil && !m.stopping {
		m.janitor = time.AfterFunc(m.o.Retention-t.Sub(m.ended[0].end)+time.Millisecond, func() {
			m.mu.Lock()
			defer m.mu.Unlock()
			m.janitor = nil
			m.clean(time.Now())
		})
	}
}

func (m *Manager) remove(r *record) {
	delete(m.execs, r.e.ID())
	if r.key != "" && m.keys[r.key] == r {
		delete(m.keys, r.key)
	}
}

// bodyOf is what makes two requests with one idempotency key the same: all but how the
// answer is wanted.
func bodyOf(req api.RunRequest) string {
	req.Stream, req.WaitMs, req.IdempotencyKey, req.InterruptOnDisconnect = false, nil, "", nil
	b, _ := json.Marshal(req)
	return string(b)
}

func checkRun(req api.RunRequest) error {
	bad := func(format string, args ...any) error { return api.Errorf(api.CodeInvalidRequest, format, args...) }
	switch {
	case req.TimeoutMs != nil && *req.TimeoutMs < 0:
		return bad("timeoutMs: %d is negative; 0 is for no deadline", *req.TimeoutMs)
	case req.WaitMs != nil && *req.WaitMs < 0:
		return bad("waitMs: %d is negative", *req.WaitMs)
	case len(req.IdempotencyKey) > 255:
		return bad("idempotencyKey: longer than 255 bytes")
	case strings.ContainsRune(req.Cwd, 0):
		return bad("cwd: holds a NUL")
	}
	if err := checkEnv(req.Env); err != nil {
		return bad("%v", err)
	}
	return nil
}

func checkEnv(env map[string]string) error {
	for k, v := range env {
		if k == "" || strings.ContainsAny(k, "=\x00") || strings.ContainsRune(v, 0) {
			return fmt.Errorf("env: %q is no name of a variable, or its value holds a NUL", k)
		}
	}
	return nil
}

// checkCwd makes a context's directory absolute and sees that it is one.
func (m *Manager) checkCwd(cwd *string) error {
	if *cwd == "" {
		return nil
	}
	if !filepath.IsAbs(*cwd) {
		*cwd = filepath.Join(m.o.Workspace, *cwd)
	}
	fi, err := os.Stat(*cwd)
	if err != nil {
		return fmt.Errorf("cwd: %w", err)
	}
	if !fi.IsDir() {
		return fmt.Errorf("cwd: %s is no directory", *cwd)
	}
	return nil
}

func errGeneration(id string, want, have int, gone bool) *api.Error {
	e := api.Errorf(api.CodeGeneration, "context %s is at generation %d, not %d", id, have, want)
	if gone {
		e = api.Errorf(api.CodeGeneration, "the kernel of generation %d of context %s is gone, and its variables with it", want, id)
	}
	return e.WithHint("set the variables up again, then run without ifGeneration or with the new one")
}

func errNoContext(id string) *api.Error {
	return api.Errorf(api.CodeNotFound, "no context %s", id).
		WithHint("create it with POST /v1/interpreter/contexts, or name a language to use its own")
}

func errDeleted(id string) *api.Error {
	return api.Errorf(api.CodeNotFound, "context %s was deleted", id)
}

func errStopping() *api.Error {
	return api.Errorf(api.CodeUnavailable, "the agent is stopping").WithHint("try again when it is back")
}

func asAPI(err error) error {
	var e *api.Error
	if errors.As(err, &e) {
		return e
	}
	return api.Errorf(api.CodeKernelFailed, "%v", err)
}

func shutdownLost() *api.Lost {
	return &api.Lost{Reason: api.LostShutdown, Message: "the agent was stopped"}
}
