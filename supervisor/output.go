package supervisor

import (
	"errors"
	"io"

	"github.com/cellard/cellard/execution"
	"github.com/cellard/cellard/mime"
	"github.com/cellard/cellard/protocol/api"
	"github.com/cellard/cellard/protocol/jupyter"
)

// smallContent bounds the contents that are decoded whole.
const smallContent = 1 << 20

// decodeReply takes what counts of an execute_reply: payloads and user expressions may
// be large, and are of no use here.
func decodeReply(m *jupyter.Message) *jupyter.ExecuteReply {
	r := &jupyter.ExecuteReply{}
	if err := pick(m.Content, "status", &r.Status); err != nil {
		r.Status = jupyter.StatusError
		r.EName, r.EValue = "KernelError", "the kernel's reply could not be read: "+err.Error()
		return r
	}
	_ = pick(m.Content, "execution_count", &r.ExecutionCount)
	if r.Status == jupyter.StatusError {
		e, _ := cellError(m.Content)
		r.EName, r.EValue, r.Traceback = e.Name, e.Value, []string{e.Traceback}
	}
	return r
}

// pick decodes one small member of an object. One that isn't there is left as it is.
func pick(v jupyter.Value, key string, p any) error {
	members, err := v.Members()
	if err != nil {
		return err
	}
	if f := members.Get(key); f.Size() > 0 {
		return f.Decode(p, smallContent)
	}
	return nil
}

// output folds an iopub message into the execution that it names, running or
// finished.
func (s *session) output(e *execution.Execution, m *jupyter.Message) {
	var err error
	switch m.Header.MsgType {
	case "stream":
		err = stream(e, m.Content)
	case "display_data", "execute_result", "update_display_data":
		err = s.display(e, m)
	case "clear_output":
		var c jupyter.ClearOutput
		if err = m.Content.Decode(&c, smallContent); err == nil {
			e.Clear(c.Wait)
		}
	case "error":
		var c api.CellError
		if c, err = cellError(m.Content); err == nil {
			e.Raise(c)
		}
	}
	if err != nil {
		e.LostBytes(m.Content.Size())
		s.about(e).Warn("an output that could not be read", "generation", s.gen, "bytes", m.Content.Size(), "error", err)
	}
}

// cellError takes an error's name, value and trace, of any length: the middle of what
// is too long is cut as it comes.
func cellError(v jupyter.Value) (api.CellError, error) {
	members, err := v.Members()
	if err != nil {
		return api.CellError{}, err
	}
	e := api.CellError{Name: ends(members.Get("ename")), Value: ends(members.Get("evalue"))}
	trace := mime.NewHeadTail(smallContent)
	lines, _ := members.Get("traceback").Elements()
	for i, l := range lines {
		if i > 0 {
			trace.WriteString("\n")
		}
		_, _ = io.Copy(trace, l.Text())
	}
	e.Traceback = trace.String()
	return e, nil
}

func ends(v jupyter.Value) string {
	h := mime.NewHeadTail(smallContent)
	_, _ = io.Copy(h, v.Text()) // no string: nothing
	return h.String()
}

func stream(e *execution.Execution, v jupyter.Value) error {
	members, err := v.Members()
	if err != nil {
		return err
	}
	i := execution.Stdout
	if name, _ := members.Get("name").Unquote(1 << 10); name == "stderr" {
		i = execution.Stderr
	}
	text := members.Get("text")
	if text.Size() <= smallContent {
		t, err := text.Unquote(smallContent)
		if err == nil {
			e.Stream(i, t)
		}
		return err
	}
	return e.StreamFrom(i, text.Text())
}

func (s *session) display(e *execution.Execution, m *jupyter.Message) error {
	members, err := m.Content.Members()
	if err != nil {
		return err
	}
	var transient jupyter.Transient
	if t := members.Get("transient"); t.Size() > 0 {
		_ = t.Decode(&transient, smallContent) // without an id it can't be updated
	}
	data := members.Get("data")
	if data.Size() == 0 {
		return errors.New("a display without data")
	}
	metadata := members.Get("metadata")
	if m.Header.MsgType != "update_display_data" {
		e.Display(m.Header.MsgType == "execute_result", data, metadata, transient.DisplayID, &s.k.displays)
	} else if !e.Update(data, metadata, transient.DisplayID, &s.k.displays) {
		s.m.unmatched.Add(1)
	}
	return nil
}

// takeRaw moves the raw output to the cell: all that was written so far.
func (s *session) takeRaw(e *execution.Execution) {
	for _, p := range s.k.raw.Drain() {
		s.k.words.add(p.Bytes)
		e.Stream(p.Stream, s.decoders[p.Stream].Write(p.Bytes))
	}
}

// endRaw is takeRaw at the end of the cell: of a character nothing more comes.
func (s *session) endRaw(e *execution.Execution) {
	s.takeRaw(e)
	for i := range s.decoders {
		e.Stream(i, s.decoders[i].Flush())
	}
}
