package api

import "encoding/json"

// Kind is what an event tells.
type Kind string

// The kinds. KindExecution or KindFailure is always the last line of a stream.
const (
	KindStart     Kind = "start"
	KindStdout    Kind = "stdout"
	KindStderr    Kind = "stderr"
	KindResult    Kind = "result"
	KindUpdate    Kind = "update"
	KindClear     Kind = "clear"
	KindInput     Kind = "input"
	KindError     Kind = "error"
	KindEnd       Kind = "end"
	KindExecution Kind = "execution"
	KindFailure   Kind = "failure"
	KindPing      Kind = "ping"
	KindProgress  Kind = "progress"
	KindGap       Kind = "gap"
)

// Event is one line of a stream. Which fields are set follows from K; MarshalJSON
// writes those and no others.
type Event struct {
	K   Kind
	Seq int64
	// ID is the execution's id: on start, stdout, stderr, result, update, error, end.
	ID string
	// N is the execution count (start).
	N int
	// Text is of stdout, stderr and progress.
	Text string
	// Main, Data and Refs are of result; Data, Refs and DisplayID of update. A
	// result that can be updated has a DisplayID too; Metadata is there for both where the
	// kernel says something of the values.
	Main      bool
	Data      map[string]json.RawMessage
	Refs      map[string]Ref
	Metadata  map[string]json.RawMessage
	DisplayID string
	// Wait is of clear.
	Wait bool
	// Prompt and Password are of input.
	Prompt   string
	Password bool
	// Err is of error.
	Err *CellError
	// Status and Ms are of end.
	Status Status
	Ms     int64
	// Execution is of execution.
	Execution *Execution
	// Failure is of failure.
	Failure *Error
	// Missed is of gap: how many events are no longer there; Seq is the last of them.
	Missed int64
}

type wireEvent struct {
	K           Kind                       `json:"k"`
	ID          *string                    `json:"id,omitempty"`
	N           *int                       `json:"n,omitempty"`
	Text        *string                    `json:"text,omitempty"`
	Main        *bool                      `json:"main,omitempty"`
	Data        map[string]json.RawMessage `json:"data,omitempty"`
	Refs        map[string]Ref             `json:"refs,omitempty"`
	Metadata    map[string]json.RawMessage `json:"metadata,omitempty"`
	DisplayID   string                     `json:"displayId,omitempty"`
	Wait        *bool                      `json:"wait,omitempty"`
	Prompt      *string                    `json:"prompt,omitempty"`
	Password    *bool                      `json:"password,omitempty"`
	Name        *string                    `json:"name,omitempty"`
	Value       *string                    `json:"value,omitempty"`
	Traceback   *string                    `json:"traceback,omitempty"`
	Status      any                        `json:"status,omitempty"`
	Ms          *int64                     `json:"ms,omitempty"`
	Execution   *Execution                 `json:"execution,omitempty"`
	Code        Code                       `json:"code,omitempty"`
	Message     *string                    `json:"message,omitempty"`
	Hint        *string                    `json:"hint,omitempty"`
	MissedCount *int64                     `json:"missed,omitempty"`
	Seq         int64                      `json:"seq"`
}

// resultWire differs from wireEvent in writing empty maps as {}.
type resultWire struct {
	K         Kind                       `json:"k"`
	ID        string                     `json:"id"`
	Main      *bool                      `json:"main,omitempty"`
	Data      map[string]json.RawMessage `json:"data"`
	Refs      map[string]Ref             `json:"refs"`
	Metadata  map[string]json.RawMessage `json:"metadata,omitempty"`
	DisplayID string                     `json:"displayId,omitempty"`
	Seq       int64                      `json:"seq"`
}

// MarshalJSON writes the fields of the event's kind, zero values included.
func (e Event) MarshalJSON() ([]byte, error) {
	w := wireEvent{K: e.K, Seq: e.Seq}
	switch e.K {
	case KindStart:
		w.ID, w.N = &e.ID, &e.N
	case KindStdout, KindStderr:
		w.ID, w.Text = &e.ID, &e.Text
	case KindProgress:
		w.Text = &e.Text
	case KindResult, KindUpdate:
		r := resultWire{K: e.K, ID: e.ID, Data: e.Data, Refs: e.Refs, Metadata: e.Metadata, DisplayID: e.DisplayID, Seq: e.Seq}
		if e.K == KindResult {
			r.Main = &e.Main
		}
		if r.Data == nil {
			r.Data = map[string]json.RawMessage{}
		}
		if r.Refs == nil {
			r.Refs = map[string]Ref{}
		}
		return marshal(r)
	case KindClear:
		w.Wait = &e.Wait
	case KindInput:
		w.Prompt, w.Password = &e.Prompt, &e.Password
	case KindError:
		w.ID = &e.ID
		if e.Err != nil {
			w.Name, w.Value, w.Traceback = &e.Err.Name, &e.Err.Value, &e.Err.Traceback
		}
	case KindEnd:
		w.ID, w.Status, w.Ms = &e.ID, e.Status, &e.Ms
	case KindExecution:
		w.Execution = e.Execution
	case KindFailure:
		if e.Failure != nil {
			w.Code, w.Message, w.Hint = e.Failure.Code, &e.Failure.Message, &e.Failure.Hint
			w.Status = e.Failure.HTTPStatus()
		}
	case KindGap:
		w.MissedCount = &e.Missed
	}
	return marshal(w)
}

// UnmarshalJSON reads any kind of event; fields of kinds that it does not know
// are left out.
func (e *Event) UnmarshalJSON(b []byte) error {
	var w wireEvent
	if err := json.Unmarshal(b, &w); err != nil {
		return err
	}
	*e = Event{K: w.K, Seq: w.Seq, ID: val(w.ID), N: val(w.N), Text: val(w.Text), Main: val(w.Main),
		Data: w.Data, Refs: w.Refs, Metadata: w.Metadata, DisplayID: w.DisplayID, Wait: val(w.Wait), Prompt: val(w.Prompt),
		Password: val(w.Password), Ms: val(w.Ms), Execution: w.Execution, Missed: val(w.MissedCount)}
	switch w.K {
	case KindError:
		e.Err = &CellError{Name: val(w.Name), Value: val(w.Value), Traceback: val(w.Traceback)}
	case KindEnd:
		s, _ := w.Status.(string)
		e.Status = Status(s)
	case KindFailure:
		e.Failure = &Error{Code: w.Code, Message: val(w.Message), Hint: val(w.Hint)}
		if n, ok := w.Status.(float64); ok {
			e.Failure.Status = int(n)
		}
	}
	return nil
}

func val[T any](p *T) (v T) {
	if p != nil {
		v = *p
	}
	return v
}
