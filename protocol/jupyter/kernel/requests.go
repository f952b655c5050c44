package kernel

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/cellard/cellard/protocol/api"
	"github.com/cellard/cellard/protocol/jupyter"
	"github.com/cellard/cellard/protocol/zmtp"
)

const (
	// smallContent bounds the contents that are no code.
	smallContent = 1 << 20
	// answerWithin bounds a completion or an inspection: what it looks at may be a
	// stranger's.
	answerWithin = 10 * time.Second
)

// onShell queues a request.
func (s *server) onShell(peer []byte, frames []*zmtp.Frame) {
	if r, ok := s.parse(jupyter.Shell, peer, frames); ok {
		s.requests.add(r)
	}
}

// request does what a request on shell asks, between its busy and its idle. The error is
// the language's end.
func (s *server) request(r request) error {
	defer r.Close()
	// Before busy: whoever has seen that may interrupt.
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	s.setRunning(cancel)
	s.status(&r.Header, jupyter.StateBusy, false)
	err := s.answer(ctx, r)
	s.setRunning(nil)
	if err != nil {
		return err
	}
	s.status(&r.Header, jupyter.StateIdle, false)
	return nil
}

func (s *server) answer(ctx context.Context, r request) error {
	switch r.Header.MsgType {
	case "execute_request":
		return s.execute(ctx, r)
	case "complete_request":
		var c jupyter.CompleteRequest
		s.question(ctx, r, &c, "complete_reply", func(ctx context.Context) (any, error) {
			found, err := s.lang.Complete(ctx, c.Code, c.CursorPos)
			return completeReply(found, c.CursorPos), err
		})
	case "inspect_request":
		var c jupyter.InspectRequest
		s.question(ctx, r, &c, "inspect_reply", func(ctx context.Context) (any, error) {
			found, err := s.lang.Inspect(ctx, c.Code, c.CursorPos, c.DetailLevel)
			if found.Data == nil {
				found.Data = Bundle{}
			}
			return map[string]any{"status": jupyter.StatusOK, "found": found.Found, "data": found.Data, "metadata": struct{}{}}, err
		})
	case "is_complete_request":
		var c jupyter.IsCompleteRequest
		s.question(ctx, r, &c, "is_complete_reply", func(ctx context.Context) (any, error) {
			found, err := s.lang.IsComplete(ctx, c.Code)
			reply := map[string]any{"status": found.Status}
			switch found.Status {
			case "incomplete":
				reply["indent"] = found.Indent
			case "":
				reply["status"] = "unknown"
			}
			return reply, err
		})
	case "variables_request":
		if lister, ok := s.lang.(Lister); ok {
			s.question(ctx, r, &struct{}{}, "variables_reply", func(ctx context.Context) (any, error) {
				list, total, err := lister.Variables(ctx)
				return variablesReply(list, total), err
			})
		}
	case "history_request":
		s.reply(r, "history_reply", map[string]any{"status": jupyter.StatusOK, "history": []any{}})
	case "comm_info_request":
		s.reply(r, "comm_info_reply", map[string]any{"status": jupyter.StatusOK, "comms": struct{}{}})
	case "kernel_info_request":
		s.reply(r, "kernel_info_reply", s.kernelInfo())
	case "shutdown_request":
		s.shutdown(r)
		s.stop(ErrShutdown) // the loop sends its idle before it ends
	}
	return nil // comm_* and what we don't know: busy and idle are the answer
}

// question has the language answer one, within a bound. Its error, or a panic, is that
// question's alone.
func (s *server) question(ctx context.Context, r request, content any, msgType string, ask func(context.Context) (any, error)) {
	var reply any
	err := r.Content.Decode(content, maxMessage)
	if err == nil {
		bounded, cancel := context.WithTimeout(ctx, answerWithin)
		reply, err = caught(func() (any, error) { return ask(bounded) })
		cancel()
	}
	if err != nil {
		s.log.Warn("a question without an answer", "type", r.Header.MsgType, "error", err)
		reply = errorReply(failure(err), nil)
	}
	s.reply(r, msgType, reply)
}

// caught makes an error of a panic.
func caught(ask func() (any, error)) (reply any, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	return ask()
}

func completeReply(found Completion, cursor int) any {
	if len(found.Matches) == 0 {
		found.Matches, found.Start, found.End = []string{}, cursor, cursor
	}
	metadata := map[string]any{}
	if len(found.Types) == len(found.Matches) && len(found.Types) > 0 {
		types := make([]map[string]any, len(found.Types))
		for i, t := range found.Types {
			types[i] = map[string]any{"start": found.Start, "end": found.End, "text": found.Matches[i], "type": t}
		}
		metadata["_jupyter_types_experimental"] = types // what fronts have read since IPython 6
	}
	return map[string]any{"status": jupyter.StatusOK, "matches": found.Matches,
		"cursor_start": found.Start, "cursor_end": found.End, "metadata": metadata}
}

// variablesReply is the list, in the order of names and within its bounds.
func variablesReply(list []api.Variable, total int) any {
	slices.SortFunc(list, func(a, b api.Variable) int { return strings.Compare(a.Name, b.Name) })
	total = max(total, len(list))
	list = list[:min(len(list), api.MaxVariables)]
	return struct {
		Status string         `json:"status"`
		Data   []api.Variable `json:"data"`
		Total  int            `json:"total"`
	}{jupyter.StatusOK, append([]api.Variable{}, list...), total}
}

// kernelInfo is the reply's content, with what front ends expect besides.
func (s *server) kernelInfo() any {
	return struct {
		jupyter.KernelInfo
		HelpLinks []any `json:"help_links"`
		Debugger  bool  `json:"debugger"`
	}{s.info, []any{}, false}
}

// failure is any error as that of a cell.
func failure(err error) *Error {
	if e := (*Error)(nil); errors.As(err, &e) {
		return e
	}
	return &Error{Name: "KernelError", Value: err.Error()}
}

// errorReply is the content of a reply that failed.
func errorReply(e *Error, count *int) map[string]any {
	reply := map[string]any{"status": jupyter.StatusError, "ename": e.Name, "evalue": e.Value, "traceback": traceback(e)}
	if count != nil {
		reply["execution_count"] = *count
	}
	return reply
}

// traceback is what fronts show of an error: they show nothing else of it.
func traceback(e *Error) []string {
	if len(e.Traceback) > 0 {
		return e.Traceback
	}
	if e.Value == "" {
		return []string{e.Name}
	}
	return []string{e.Name + ": " + e.Value}
}
