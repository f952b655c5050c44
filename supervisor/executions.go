package supervisor

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
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
	return nil, m.errNoExecution(id)
}

func (m *Manager) errNoExecution(id string) *api.Error {
	return api.Errorf(api.CodeNotFound, "no execution %s", id).
		WithHint("run the cell again; an execution is kept for %v after its end, and not past a restart of the agent", m.o.Retention)
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
	return nil, m.errNoExecution(id)
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

// ending is told just before an execution's end is: who has seen the end sees what
// follows from it.
func (m *Manager) ending(e *execution.Execution, refused bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.running--
	m.lastEnd = time.Now()
	r := m.execs[e.ID()]
	if r == nil {
		return
	}
	m.code -= r.code
	if refused { // its code never ran: the same key may try again
		m.removeKey(r)
	}
}

// keep keeps an execution that has ended for a while.
func (m *Manager) keep(e *execution.Execution) {
	size := e.Size()
	m.mu.Lock()
	defer m.mu.Unlock()
	r := m.execs[e.ID()]
	if r == nil {
		return
	}
	r.end, r.size = time.Now(), size
	m.ended = append(m.ended, r)
	m.bytes += size
	m.clean(r.end)
}

// clean forgets the executions that are too old, or over the budget; the newest is never
// that, nor one that has a reader: it may be slow, but it gets all, from the disk. An
// idempotency key outlives an execution that the budget took: the code must not run a
// second time.
func (m *Manager) clean(t time.Time) {
	old := func(r *record) bool { return t.Sub(r.end) >= m.o.Retention }
	var kept []*record
	for i, r := range m.ended {
		if !old(r) && (m.bytes <= m.o.RetentionBytes || i == len(m.ended)-1) {
			kept = append(kept, m.ended[i:]...)
			break
		}
		m.bytes -= r.size
		if r.e.HasReader() {
			r.e.Spill()
			r.size = r.e.Size()
			m.bytes += r.size
			kept = append(kept, r)
			continue
		}
		delete(m.execs, r.e.ID())
		r.e.Close()
		if r.key != "" {
			r.e, r.s = nil, nil
			m.spent = append(m.spent, r)
		}
	}
	m.ended = kept
	n := 0
	for n < len(m.spent) && old(m.spent[n]) {
		m.removeKey(m.spent[n])
		n++
	}
	m.spent = append(m.spent[:0:0], m.spent[n:]...)
	next := m.ended
	if len(m.spent) > 0 {
		next = m.spent // ended earlier
	}
	if len(next) > 0 && m.janitor == nil && !m.stopping {
		wait := m.o.Retention - t.Sub(next[0].end) + time.Millisecond
		if wait <= 0 { // its reader is not done yet
			wait = m.o.Retention
		}
		m.janitor = time.AfterFunc(wait, func() {
			m.mu.Lock()
			defer m.mu.Unlock()
			m.janitor = nil
			m.clean(time.Now())
		})
	}
}

// removeKey frees a record's key for another cell.
func (m *Manager) removeKey(r *record) {
	if r.key != "" && m.keys[r.key] == r {
		delete(m.keys, r.key)
	}
	r.key = ""
}

// bodyOf is what makes two requests with one idempotency key the same: a hash of all
// but how the answer is wanted.
func bodyOf(req api.RunRequest) [sha256.Size]byte {
	req.Stream, req.WaitMs, req.IdempotencyKey, req.InterruptOnDisconnect = false, nil, "", nil
	b, _ := json.Marshal(req)
	return sha256.Sum256(b)
}

func checkRun(req api.RunRequest) error {
	bad := func(hint, format string, args ...any) error {
		return api.Errorf(api.CodeInvalidRequest, format, args...).WithHint("%s", hint)
	}
	switch {
	case req.TimeoutMs != nil && *req.TimeoutMs < 0:
		return bad("send milliseconds, or 0 for no deadline", "timeoutMs: %d is negative", *req.TimeoutMs)
	case req.WaitMs != nil && *req.WaitMs < 0:
		return bad("send milliseconds, or leave it out to wait for the end", "waitMs: %d is negative", *req.WaitMs)
	case len(req.IdempotencyKey) > 255:
		return bad("send a shorter one, a UUID or a hash", "idempotencyKey: longer than 255 bytes")
	case strings.ContainsRune(req.Cwd, 0):
		return bad("send a path without", "cwd: holds a NUL")
	}
	return checkEnv(req.Env)
}

func checkEnv(env map[string]string) error {
	for k, v := range env {
		if k == "" || strings.ContainsAny(k, "=\x00") || strings.ContainsRune(v, 0) {
			return api.Errorf(api.CodeInvalidRequest, "env: %q is no name of a variable, or its value holds a NUL", k).
				WithHint("send names without =, and values without NUL")
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
		return api.Errorf(api.CodeInvalidRequest, "cwd: %v", err).
			WithHint("make the directory first; one that is not absolute is meant in the workspace")
	}
	if !fi.IsDir() {
		return api.Errorf(api.CodeInvalidRequest, "cwd: %s is no directory", *cwd).WithHint("name a directory")
	}
	if err := m.user.enter(*cwd); err != nil {
		return api.Errorf(api.CodeInvalidRequest, "cwd: %v", err).WithHint("name a directory that cells can enter")
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
	return api.Errorf(api.CodeNotFound, "context %s was deleted", id).WithHint("create it again; its id is free")
}

func errStopping() *api.Error {
	return api.Errorf(api.CodeUnavailable, "the agent is stopping").WithHint("try again when it is back")
}

func asAPI(err error) *api.Error {
	var e *api.Error
	if errors.As(err, &e) {
		return e
	}
	return api.Errorf(api.CodeKernelFailed, "%v", err).WithHint("try again; the agent's log tells more")
}

func shutdownLost() *api.Lost {
	return &api.Lost{Reason: api.LostShutdown, Message: "the agent was stopped"}
}
