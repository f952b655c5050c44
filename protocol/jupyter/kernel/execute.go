package kernel

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"
	"strings"
	"time"

	"github.com/cellard/cellard/protocol/jupyter"
)

// executeRequest is the content of execute_request; a field that isn't there has
// ipykernel's default.
type executeRequest struct {
	Code         string `json:"code"`
	Silent       bool   `json:"silent"`
	StoreHistory *bool  `json:"store_history"`
	AllowStdin   bool   `json:"allow_stdin"`
	StopOnError  *bool  `json:"stop_on_error"`
}

// surroundings are what a cell is given besides its code.
type surroundings struct {
	Cellard struct {
		Env map[string]string `json:"env"`
		Cwd string            `json:"cwd"`
	} `json:"cellard"`
}

// execute runs a cell. The error is the language's end, and then there is no reply.
func (s *server) execute(ctx context.Context, r request) error {
	var q executeRequest
	if err := r.Content.Decode(&q, maxMessage); err != nil {
		s.refuse(r, err)
		return nil
	}
	var given surroundings
	if err := json.Unmarshal(r.Metadata, &given); err != nil {
		s.refuse(r, fmt.Errorf(`metadata: want {"cellard":{"env":{NAME: TEXT},"cwd":PATH}}: %w`, err))
		return nil
	}
	r.Message.Close() // the code may be large, and the cell may run for long
	c := &Cell{
		Code: q.Code, Silent: q.Silent, Count: s.count + 1, AllowStdin: q.AllowStdin,
		StoreHistory: !q.Silent && (q.StoreHistory == nil || *q.StoreHistory),
		Env:          given.Cellard.Env, Cwd: given.Cellard.Cwd,
		sink: cellSink{s, r},
	}
	if c.StoreHistory {
		s.count++
	}
	if !q.Silent {
		s.publish(&r.Header, "execute_input", map[string]any{"code": q.Code, "execution_count": c.Count}, false)
	}
	err := s.runCell(ctx, c)
	if err == nil {
		s.reply(r, "execute_reply", map[string]any{"status": jupyter.StatusOK, "execution_count": c.Count,
			"user_expressions": struct{}{}, "payload": []any{}})
		return nil
	}
	e := (*Error)(nil)
	if !errors.As(err, &e) {
		if !interrupted(err) {
			return err
		}
		e = &Error{Name: "Interrupted", Value: "the cell was interrupted"}
	}
	s.fail(r, e, c.Count)
	if q.StopOnError == nil || *q.StopOnError {
		s.abort()
	}
	return nil
}

// runCell has the language run a cell. A panic costs the cell.
func (s *server) runCell(ctx context.Context, c *Cell) (err error) {
	defer s.watchSubscribers(ctx)()
	defer func() {
		if p := recover(); p != nil {
			s.log.Error("a panic under a cell", "panic", p)
			err = &Error{Name: "KernelPanic", Value: fmt.Sprint(p), Traceback: strings.Split(string(debug.Stack()), "\n")}
		}
	}()
	return s.lang.Execute(ctx, c)
}

// watchSubscribers sees to it that a cell whose context has ended doesn't wait for a
// subscriber that has stopped for good, until the function is called that it returns.
func (s *server) watchSubscribers(ctx context.Context) func() {
	over, ended := make(chan struct{}), make(chan struct{})
	forget := context.AfterFunc(ctx, func() {
		defer close(ended)
		again := time.NewTicker(stuckAfter / 10)
		defer again.Stop()
		for {
			select {
			case <-again.C:
				s.iopub.DropStuck(stuckAfter)
			case <-over:
				return
			}
		}
	})
	return func() {
		close(over)
		if !forget() {
			<-ended
		}
	}
}

// interrupted tells whether an error of Execute says no more than that its context ended.
func interrupted(err error) bool {
	return errors.Is(err, ErrInterrupted) || errors.Is(err, ErrShutdown) || errors.Is(err, context.Canceled)
}

// refuse ends a request that can't be run as a cell.
func (s *server) refuse(r request, err error) {
	s.stats.Malformed.Add(1)
	s.fail(r, &Error{Name: "InvalidRequest", Value: err.Error()}, s.count)
}

func (s *server) fail(r request, e *Error, count int) {
	s.publish(&r.Header, "error", jupyter.ErrorContent{EName: e.Name, EValue: e.Value, Traceback: traceback(e)}, false)
	reply := errorReply(e, &count)
	reply["user_expressions"], reply["payload"] = struct{}{}, []any{}
	var metadata any
	if e.Restored != nil {
		metadata = map[string]any{"cellard": map[string]any{"restored": e.Restored}}
	}
	s.replyWith(r, "execute_reply", metadata, reply)
}

// abort answers the cells that wait without running them, as stop_on_error asks. What
// else waits is answered as ever.
func (s *server) abort() {
	for _, r := range s.requests.waiting() {
		if r.Header.MsgType != "execute_request" {
			_ = s.request(r) // no cell: it has no error
			continue
		}
		s.status(&r.Header, jupyter.StateBusy, false)
		s.reply(r, "execute_reply", map[string]any{"status": jupyter.StatusAborted, "execution_count": s.count})
		s.status(&r.Header, jupyter.StateIdle, false)
		r.Close()
	}
}

// cellSink is where a cell's output goes: to its own request.
type cellSink struct {
	s *server
	r request
}

func (c cellSink) Publish(msgType string, content any) {
	c.s.publish(&c.r.Header, msgType, content, false)
}

func (c cellSink) Input(ctx context.Context, prompt string, password bool) (string, error) {
	return c.s.input(ctx, c.r, prompt, password)
}
